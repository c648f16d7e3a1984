//! Asking the person at the client: consent and questions as elicitations.

use hanzo_protocol::engine::{ApprovalAnswer, ApprovalRespond, Attendance, QuestionRespond, Request};
use hanzo_protocol::item::{Approval, Question};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, ProtocolVersion};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

/// How answers of this face are known to others.
const FACE: &str = "MCP client";
const DECISION: &str = "decision";
const ANSWER: &str = "answer";
const ONCE: &str = "Allow once";
const DENY: &str = "Deny";

/// How the person at the client can be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Asking {
    /// Not at all: the rule for headless threads decides.
    No,
    /// By a request to the client.
    ByRequest,
    /// By a result that says what is needed; the client calls again with the answer (protocol 2026-07-28).
    ByResult,
}

impl Asking {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        let capabilities = context.client_capabilities();
        let form = capabilities
            .and_then(|capabilities| capabilities.elicitation)
            .is_some_and(|can| can.form.is_some() || can.url.is_none());
        match context.protocol_version() {
            _ if !form => Self::No,
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => Self::ByResult,
            _ => Self::ByRequest,
        }
    }

    pub(super) fn attendance(self) -> Attendance {
        match self {
            Self::No => Attendance::Headless,
            Self::ByRequest | Self::ByResult => Attendance::Attended,
        }
    }
}

/// Something to ask.
#[derive(Debug, Clone)]
pub(super) enum Asked {
    /// For consent.
    Approval(Box<Approval>),
    /// A question of an agent.
    Question(Question),
}

impl Asked {
    /// The form to show; `None` when it cannot be made, and then nobody is asked.
    pub(super) fn form(&self) -> Option<ElicitRequestParams> {
        let (message, field, property) = match self {
            Self::Approval(approval) => {
                let mut choices = vec![ONCE.to_owned()];
                choices.extend(approval.scopes.iter().map(|rule| for_session(rule)));
                choices.push(DENY.to_owned());
                let message = format!(
                    "`{}` needs your consent: {}\n\n{}",
                    approval.tool, approval.summary, approval.reason
                );
                (message, DECISION, json!({"type": "string", "title": "Decision", "enum": choices}))
            }
            Self::Question(question) if question.choices.is_empty() => {
                (question.text.clone(), ANSWER, json!({"type": "string", "title": "Answer"}))
            }
            Self::Question(question) => {
                let property = json!({"type": "string", "title": "Answer", "enum": question.choices});
                (question.text.clone(), ANSWER, property)
            }
        };
        let schema = json!({"type": "object", "properties": {field: property}, "required": [field]});
        let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
        Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
    }

    /// What to tell the engine. Only an explicit yes is one.
    pub(super) fn answered(&self, result: Option<&ElicitResult>) -> Request {
        let accepted = result.filter(|result| result.action == ElicitationAction::Accept);
        let content = accepted.and_then(|result| result.content.as_ref());
        match self {
            Self::Approval(approval) => {
                let decision = content.and_then(|content| content[DECISION].as_str()).unwrap_or(DENY);
                let granted = approval.scopes.iter().find(|rule| for_session(rule) == decision);
                let answer = match granted {
                    _ if decision == ONCE => ApprovalAnswer::Once,
                    Some(rule) => ApprovalAnswer::Session { rule: rule.clone() },
                    None if result.is_none() => {
                        let reason = Some("nobody at the client could be asked".to_owned());
                        ApprovalAnswer::Deny { reason }
                    }
                    None => ApprovalAnswer::Deny { reason: None },
                };
                Request::ApprovalRespond(ApprovalRespond {
                    approval_id: approval.approval_id,
                    answer,
                    by: FACE.to_owned(),
                })
            }
            Self::Question(question) => {
                let text = content.and_then(|content| content[ANSWER].as_str());
                let text = text.unwrap_or("(no answer: the user did not want to say)").to_owned();
                Request::QuestionRespond(QuestionRespond { question_id: question.question_id, text })
            }
        }
    }
}

fn for_session(rule: &str) -> String {
    format!("Allow `{rule}` until the connection ends")
}

/// The answer in a client's second call.
pub(super) fn result_of(value: &Value) -> Option<ElicitResult> {
    serde_json::from_value(value.clone()).ok()
}
