//! Runs `test-vectors/permission-policy.json`.

use hanzo_permissions::hip::{PermissionMode, PermissionPolicy, PermissionRule};
use hanzo_permissions::{Call, Decision, PolicyTable};
use hanzo_testkit::vectors;
use serde::Deserialize;
use serde_json::Value;

const FILE: &str = "permission-policy.json";

#[derive(Debug, Deserialize)]
#[serde(tag = "style", rename_all = "lowercase", deny_unknown_fields)]
enum Case {
    Hip { name: String, rules: Vec<PermissionRule>, tool: String, expected: PermissionMode },
    Policy { name: String, policy: PolicyTable, call: VectorCall, expected: Decision },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct VectorCall {
    tool: String,
    args: Value,
    read_only: Option<bool>,
    workspace: Option<String>,
}

/// The name and what went wrong, for each case that fails.
fn failures(cases: &[Case]) -> Vec<String> {
    let mut failures = Vec::new();
    for case in cases {
        match case {
            Case::Hip { name, rules, tool, expected } => {
                let actual = PermissionPolicy::new(rules.clone()).evaluate(tool);
                if actual != *expected {
                    failures.push(format!("{name}: {actual:?}, expected {expected:?}"));
                }
            }
            Case::Policy { name, policy, call, expected } => {
                let policy = match policy.clone().load(None) {
                    Ok(policy) => policy,
                    Err(error) => {
                        failures.push(format!("{name}: {error}"));
                        continue;
                    }
                };
                let mut made = Call::new(&call.tool, &call.args);
                if let Some(read_only) = call.read_only {
                    made = made.read_only(read_only);
                }
                if let Some(workspace) = &call.workspace {
                    made = made.in_workspace(workspace);
                }
                let explanation = policy.explain(&made);
                if explanation.decision != *expected {
                    failures.push(format!("{name}: expected {expected}\n{explanation}"));
                }
            }
        }
    }
    failures
}

#[test]
fn permission_policy_vectors_pass() {
    let cases: Vec<Case> = vectors::cases(FILE, 120);
    let failures = failures(&cases);
    assert!(failures.is_empty(), "{} of {} fail:\n{}", failures.len(), cases.len(), failures.join("\n"));
    if vectors::are_our_own() {
        let hip = cases.iter().filter(|case| matches!(case, Case::Hip { .. })).count();
        let policy = cases.len() - hip;
        assert!(hip >= 60 && policy >= 60, "{hip} hip cases, {policy} policy cases");
    }
}

#[test]
fn a_wrong_expectation_is_noticed() {
    let cases: Vec<Case> = serde_json::from_str(
        r#"[{"name": "h", "style": "hip", "rules": [], "tool": "x", "expected": "allow"},
            {"name": "p", "style": "policy", "policy": {}, "call": {"tool": "bash", "args": {}}, "expected": "allow"}]"#,
    )
    .expect("cases");
    assert_eq!(failures(&cases).len(), 2);
}
