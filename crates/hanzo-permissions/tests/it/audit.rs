//! The audit record.

use hanzo_permissions::{AuditContext, AuditRecord, Call, Decision};
use serde_json::json;

use crate::policy;

const CONTEXT: AuditContext<'_> =
    AuditContext { timestamp: "2026-01-02T03:04:05Z", session_id: "s-1", user: Some("ada") };

#[test]
fn every_evaluation_leaves_a_record_with_its_rule() {
    let args = json!({"command": "git status"});
    let policy = policy(&["Bash(git status:*)"], &[], &[]);
    let record = AuditRecord::new(&CONTEXT, &policy.explain(&Call::new("bash", &args)));
    let value = serde_json::to_value(&record).expect("json");
    assert_eq!(value["timestamp"], "2026-01-02T03:04:05Z");
    assert_eq!(value["sessionId"], "s-1");
    assert_eq!(value["user"], "ada");
    assert_eq!(value["toolName"], "proc");
    assert_eq!(value["action"], "exec");
    assert_eq!(value["mode"], "allow");
    assert_eq!(value["ruleMatched"], "Bash(git status:*)");
    assert_eq!(serde_json::from_value::<AuditRecord>(value).expect("a record"), record);
}

#[test]
fn every_denial_says_why() {
    let args = json!({"command": "rm -rf x"});
    let by_rule = policy(&[], &[], &["Bash(rm -rf*)"]);
    let mut by_mode = policy(&[], &[], &[]);
    by_mode.mode = Decision::Deny;
    for policy in [by_rule, by_mode] {
        let record = AuditRecord::new(&CONTEXT, &policy.explain(&Call::new("bash", &args)));
        assert_eq!(record.mode, Decision::Deny);
        assert!(record.reason.is_some_and(|reason| !reason.is_empty()));
    }
}

#[test]
fn a_record_holds_no_more_than_the_start_of_the_subject() {
    let args = json!({"command": format!("echo {}", "ä".repeat(50_000)), "env": {"TOKEN": "hunter2"}});
    let record = AuditRecord::new(&CONTEXT, &policy(&[], &[], &[]).explain(&Call::new("bash", &args)));
    assert!(record.subject.as_ref().is_some_and(|s| s.len() <= 200));
    assert!(!serde_json::to_string(&record).expect("json").contains("hunter2"));
}
