//! What hooks are promised: exit codes, variables, input, order, names.

use hanzo_hooks::{Hook, HookEvent, Notice, OnError, PreVerdict, ToolEvent};
use serde_json::{Value, json};
use tempfile::tempdir;

use crate::{event, hooks_in, pre, read, reason};

#[tokio::test]
async fn exit_codes_mean_what_they_should() {
    let place = tempdir().unwrap();
    let input = json!({});
    for (command, on_error, expected, reports) in [
        ("exit 0", OnError::Block, None, 0),
        ("echo no >&2; exit 2", OnError::Block, Some("no"), 0),
        ("echo no >&2; exit 2", OnError::Warn, Some("no"), 0),
        ("exit 2", OnError::Block, Some("the hook gave no reason"), 0),
        ("echo no; exit 2", OnError::Block, Some("the hook gave no reason"), 0),
        ("exit 1", OnError::Block, Some("the hook ended with code 1"), 1),
        ("echo oops >&2; exit 127", OnError::Block, Some("the hook ended with code 127: oops"), 1),
        ("kill -9 $$", OnError::Block, Some("the hook was ended by signal 9"), 1),
        ("exit 1", OnError::Warn, None, 1),
        ("kill -9 $$", OnError::Warn, None, 1),
        ("", OnError::Block, Some("cannot start the hook: its command is empty"), 1),
        ("", OnError::Warn, None, 1),
    ] {
        let hooks = hooks_in(place.path(), vec![Hook { on_error, ..pre(command) }]);
        let outcome = hooks.pre(&event("fs.read", &input)).await;
        match expected {
            Some(expected) => assert_eq!(reason(&outcome), expected, "{command}"),
            None => assert_eq!(outcome.verdict, PreVerdict::Allow, "{command}"),
        }
        assert_eq!(outcome.reports.len(), reports, "{command} {:?}", outcome.reports);
    }
}

#[tokio::test]
async fn a_hook_knows_the_tool_its_input_and_the_session() {
    let place = tempdir().unwrap();
    let command = r#"printf '%s\n' "$HANZO_TOOL_NAME" "$HANZO_TOOL_INPUT" "$HANZO_SESSION_ID" "${HANZO_TOOL_OUTPUT-none}" > seen; cat > stdin"#;
    let hooks = hooks_in(place.path(), vec![pre(command)]);
    let input = json!({"command": "echo \"ü\"\n$HOME `x`", "nul": "\u{0}"});
    assert_eq!(hooks.pre(&event("proc.exec", &input)).await.verdict, PreVerdict::Allow);
    assert_eq!(read(place.path(), "seen"), format!("proc.exec\n{input}\nthread-1\nnone\n"));
    assert_eq!(read(place.path(), "stdin"), format!("{input}\n"));
}

#[tokio::test]
async fn what_is_too_long_for_a_variable_is_on_standard_input() {
    let place = tempdir().unwrap();
    let command =
        r#"printf '%s' "${#HANZO_TOOL_INPUT} ${HANZO_TOOL_INPUT_TRUNCATED-no}" > seen; cat > stdin"#;
    let hooks = hooks_in(place.path(), vec![pre(command)]);
    // Around the limit to the byte, and far beyond what a pipe holds.
    for (length, expected) in
        [(99_000, "99008 no"), (99_992, "100000 no"), (99_993, "0 1"), (5_000_000, "0 1")]
    {
        let input = json!({"x": "y".repeat(length)});
        assert_eq!(hooks.pre(&event("fs.write", &input)).await.verdict, PreVerdict::Allow);
        assert_eq!(read(place.path(), "seen"), expected);
        assert_eq!(read(place.path(), "stdin").trim_end(), input.to_string());
    }
}

#[tokio::test]
async fn after_a_call_hooks_see_the_output_and_cannot_fail_it() {
    let place = tempdir().unwrap();
    let command = r#"printf '%s' "$HANZO_TOOL_OUTPUT|${HANZO_TOOL_OUTPUT_TRUNCATED-no}" > seen; cat > stdin; echo late >&2; exit 2"#;
    let hooks = hooks_in(place.path(), vec![Hook::new(HookEvent::PostToolUse, command)]);
    let input = json!({"a": 1});
    let reports = hooks.post(&event("fs.read", &input), "text\0 with nul").await;
    assert_eq!(read(place.path(), "seen"), "text\u{fffd} with nul|no");
    let stdin = read(place.path(), "stdin");
    let lines: Vec<Value> = stdin.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines, [input.clone(), json!({"tool_output": "text\0 with nul"})]);
    assert_eq!(reports[0].problem, "the hook ended with code 2: late");
    hooks.post(&event("fs.read", &input), &"x".repeat(100_001)).await;
    assert_eq!(read(place.path(), "seen"), "|1");
}

#[tokio::test]
async fn hooks_run_in_order_and_stop_at_the_first_refusal() {
    let place = tempdir().unwrap();
    let hooks = hooks_in(
        place.path(),
        vec![
            pre("echo one >> log"),
            pre("echo other >> log").for_tools("vcs.*"),
            Hook { event: HookEvent::PostToolUse, ..pre("echo post >> log") },
            pre("echo two >> log; exit 2"),
            pre("echo three >> log"),
        ],
    );
    let outcome = hooks.pre(&event("fs.read", &json!({}))).await;
    assert!(matches!(outcome.verdict, PreVerdict::Deny { hook, .. } if hook.starts_with("echo two")));
    assert_eq!(read(place.path(), "log"), "one\ntwo\n");
}

#[tokio::test]
async fn a_hook_for_one_name_is_a_hook_for_all_names_of_the_tool() {
    let place = tempdir().unwrap();
    let input = json!({});
    let call = ToolEvent { aliases: vec!["bash", "proc"], ..event("proc.exec", &input) };
    for (pattern, runs) in [
        ("bash", true),
        ("proc", true),
        ("proc.*", true),
        ("*", true),
        ("", true),
        (" bash ", true),
        ("zsh", false),
        ("bas", false),
    ] {
        let hooks = hooks_in(place.path(), vec![pre("exit 2").for_tools(pattern)]);
        assert_eq!(hooks.pre(&call).await.verdict != PreVerdict::Allow, runs, "{pattern}");
    }
}

#[tokio::test]
async fn a_notification_says_only_what_it_is_given() {
    let place = tempdir().unwrap();
    let command = "env | grep '^HANZO' | sort > seen; cat > stdin";
    let hooks = hooks_in(place.path(), vec![Hook::new(HookEvent::Notification, command)]);
    let notice = Notice { tool: "memory.remember", aliases: vec![], session: "s", summary: None };
    assert!(hooks.notify(&notice).await.is_empty());
    assert_eq!(read(place.path(), "seen"), "HANZO_SESSION_ID=s\nHANZO_TOOL_NAME=memory.remember\n");
    assert_eq!(read(place.path(), "stdin"), "{\"tool_name\":\"memory.remember\"}\n");
    hooks.notify(&Notice { summary: Some("Write `a`"), ..notice }).await;
    assert!(read(place.path(), "seen").contains("HANZO_SUMMARY=Write `a`"));
}

#[tokio::test]
async fn secrets_in_our_environment_are_not_passed_on() {
    let place = tempdir().unwrap();
    let hooks = hooks_in(place.path(), vec![pre("env > seen")]);
    hooks.pre(&event("fs.read", &json!({}))).await;
    let known = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_", "TERM", "TMPDIR", "TZ", "HANZO_", "PWD",
        "OLDPWD", "SHLVL", "_",
    ];
    for line in read(place.path(), "seen").lines() {
        assert!(known.iter().any(|name| line.starts_with(name)), "{line}");
    }
}

#[test]
fn settings_are_read_with_their_defaults_and_unknown_fields_refused() {
    let hook: Hook = serde_json::from_value(json!({"event": "post_tool_use", "command": "x"})).unwrap();
    assert_eq!(hook, Hook::new(HookEvent::PostToolUse, "x"));
    assert_eq!((hook.tool_pattern.as_str(), hook.timeout_ms, hook.on_error), ("*", 5000, OnError::Block));
    for wrong in [
        json!({"event": "pre_tool_use"}),
        json!({"event": "sometimes", "command": "x"}),
        json!({"event": "pre_tool_use", "command": "x", "on_error": "ignore"}),
        json!({"event": "pre_tool_use", "command": "x", "patern": "y"}),
        json!({"event": "pre_tool_use", "command": "x", "timeout_ms": -1}),
    ] {
        assert!(serde_json::from_value::<Hook>(wrong.clone()).is_err(), "{wrong}");
    }
}
