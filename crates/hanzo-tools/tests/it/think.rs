//! `think`: records, says back, stays small.

use hanzo_protocol::tool::{Effect, Place};
use serde_json::{Value, json};

use crate::support::Stage;

fn ok(stage: &Stage, arguments: &Value) -> Value {
    let result = stage.call("think", arguments.clone());
    assert!(!result.is_error, "{arguments}: {}", result.output);
    result.envelope.unwrap()["data"].clone()
}

#[test]
fn thoughts_are_numbered_and_the_earlier_ones_named() {
    let stage = Stage::new();
    let first = ok(&stage, &json!({"action": "think", "thought": "It is the cache.\nBecause of the lock."}));
    assert_eq!((first["number"].as_u64(), first["text"].as_str().map(str::len)), (Some(1), Some(37)));
    let second =
        ok(&stage, &json!({"action": "critic", "analysis": "A lock repairs it.", "context": "two threads"}));
    assert_eq!(second["earlier"], json!(["1 (think): It is the cache."]));
    assert!(
        second["questions"].as_array().unwrap().len() >= 3
            && second["text"].as_str().unwrap().contains("two threads")
    );
    for number in 0..400 {
        ok(&stage, &json!({"action": "think", "thought": format!("thought {number} {}", "x".repeat(100))}));
    }
    let last = stage.call("think", json!({"action": "think", "thought": "y".repeat(300_000)}));
    assert!(last.output.len() < 2_000, "what is said back is bounded: {}", last.output.len());
    let data = &last.envelope.unwrap()["data"];
    assert_eq!((data["number"].as_u64(), data["characters"].as_u64()), (Some(403), Some(300_000)));
    assert_eq!(data["earlier"].as_array().unwrap().len(), 8);
}

#[test]
fn a_review_has_the_questions_of_its_focus_and_says_which_files_are_there() {
    let stage = Stage::new();
    stage.write("src/a.rs", "fn main() {}\n");
    let focuses = [
        "general",
        "functionality",
        "readability",
        "maintainability",
        "testing",
        "documentation",
        "architecture",
        "security",
        "performance",
        "GENERAL",
        "TESTING",
    ];
    let mut questions = std::collections::BTreeSet::new();
    for focus in focuses {
        let data = ok(
            &stage,
            &json!({
                "action": "review", "work_description": "It is locked now.", "focus": focus,
                "file_paths": ["src/a.rs", "src/none.rs", "src"], "code_snippets": ["\nlet x = 1;\nlet y = 2;"],
            }),
        );
        questions.insert(data["questions"].to_string());
        assert_eq!(data["files"][0]["size"], 13, "{data:#}");
        assert!(
            data["files"][1]["problem"].is_string() && data["files"][2]["problem"].is_string(),
            "{data:#}"
        );
        assert_eq!(data["snippets"], json!(["let x = 1;"]));
    }
    assert_eq!(questions.len(), 9);
    let reach = stage
        .tools
        .get("think")
        .unwrap()
        .reach(&json!({"action": "review", "work_description": "x", "file_paths": ["/etc/hosts"]}));
    assert_eq!(
        (reach.effect, reach.paths[0].place),
        (Effect::Read, Place::Outside),
        "the gate sees the files"
    );
}

#[test]
fn mistakes_are_named() {
    let stage = Stage::new();
    for arguments in [
        json!({"action": "think"}),
        json!({"action": "think", "thought": " \n"}),
        json!({"action": "critic", "analysis": ""}),
        json!({"action": "review", "work_description": "x", "focus": "vibes"}),
        json!({"action": "review", "work_description": "x", "file_paths": vec!["a"; 60]}),
        json!({"action": "review", "work_description": "x", "file_paths": ["a\u{0}b"]}),
    ] {
        let result = stage.call("think", arguments.clone());
        assert!(result.output.starts_with("error INVALID_ARGUMENTS"), "{arguments}: {}", result.output);
    }
}
