//! The record that every evaluation leaves.

use serde::{Deserialize, Serialize};

use crate::explain::Explanation;
use crate::verdict::Decision;

/// Who called, and in which session. The clock is the caller's: the crate reads none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditContext<'a> {
    /// When, as the caller writes times (RFC 3339 in the product).
    pub timestamp: &'a str,
    /// The session.
    pub session_id: &'a str,
    /// The user, when there is one.
    pub user: Option<&'a str>,
}

/// One evaluation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRecord {
    /// When.
    pub timestamp: String,
    /// The session.
    pub session_id: String,
    /// Who.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The tool, `fs` of `fs.write`.
    pub tool_name: String,
    /// The action, `write` of `fs.write`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<String>,
    /// The decision.
    pub mode: Decision,
    /// The rule that decided, as written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule_matched: Option<String>,
    /// Why. Every denial has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What the call acted on, cut to 200 bytes. Values of other arguments are never recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
}

/// The most of a subject that is recorded.
const MAX_SUBJECT: usize = 200;

impl AuditRecord {
    /// The record of an explained decision.
    pub fn new(context: &AuditContext<'_>, explanation: &Explanation) -> Self {
        let (tool, action) = match explanation.tool.split_once('.') {
            Some((tool, action)) => (tool.to_owned(), Some(action.to_owned())),
            None => (explanation.tool.clone(), None),
        };
        let subject = explanation.subject.as_ref().or(explanation.subjects.first());
        Self {
            timestamp: context.timestamp.to_owned(),
            session_id: context.session_id.to_owned(),
            user: context.user.map(str::to_owned),
            tool_name: tool,
            action,
            mode: explanation.decision,
            rule_matched: explanation.rule.as_ref().map(|rule| rule.text.clone()),
            reason: Some(explanation.reason()),
            subject: subject.map(|s| s[..s.floor_char_boundary(MAX_SUBJECT)].to_owned()),
        }
    }
}
