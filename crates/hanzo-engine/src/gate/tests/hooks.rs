//! Hooks around calls: real shell scripts where the system has a shell.

use std::sync::{Arc, Mutex};

use hanzo_hooks::{
    Captured, Hook, HookEnd, HookEvent, HookOutput, HookRun, HookSpawner, Hooks, OnError, Shell, StartError,
};
use hanzo_protocol::item::ToolCallStatus;
use serde_json::json;

use super::world::{World, call, hooks, no, yes};
use crate::gate::Refusal;

#[cfg(unix)]
#[tokio::test]
async fn a_script_refuses_what_a_rule_allows_whatever_the_call_is_named() {
    let script =
        r#"case "$HANZO_TOOL_INPUT" in *secret*) echo "hands off: $HANZO_TOOL_NAME" >&2; exit 2;; esac"#;
    let hook = Hook::new(HookEvent::PreToolUse, script).for_tools("bash");
    let world = World {
        allow: vec!["Bash"],
        hooks: Arc::new(Hooks::new(vec![hook], Arc::new(Shell::new()))),
        ..World::new()
    };
    for name in ["bash", "proc"] {
        let refused =
            world.run(&call(name, &json!({"effect": "execute", "command": "cat secret"})), &yes()).await;
        assert_eq!(
            (refused.status, refused.refusal),
            (ToolCallStatus::Denied, Some(Refusal::Hook)),
            "{name}"
        );
        assert!(refused.result.output.contains("hands off: proc.exec"), "{}", refused.result.output);
        let run = world.run(&call(name, &json!({"effect": "execute", "command": "cat plain"})), &yes()).await;
        assert_eq!(run.refusal, None, "{name}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_script_sees_the_output_and_its_failure_changes_nothing() {
    let place = tempfile::tempdir().unwrap();
    let script = r#"printf '%s %s' "$HANZO_TOOL_NAME" "$HANZO_TOOL_OUTPUT" > seen; echo oops >&2; exit 2"#;
    let hook = Hook::new(HookEvent::PostToolUse, script);
    let world = World {
        hooks: Arc::new(Hooks::new(vec![hook], Arc::new(Shell::new().in_directory(place.path())))),
        ..World::new()
    };
    let gated = world.run(&call("probe", &json!({"says": "hello"})), &yes()).await;
    assert_eq!((gated.status, gated.result.output.as_str()), (ToolCallStatus::Completed, "hello"));
    assert_eq!(std::fs::read_to_string(place.path().join("seen")).unwrap(), "probe hello");
    assert!(gated.notices[0].contains("oops"), "{:?}", gated.notices);
}

#[tokio::test]
async fn hooks_come_after_consent_and_before_the_run() {
    let world = World { hooks: Arc::new(hooks(HookEvent::PreToolUse, &["2"])), ..World::new() };
    let person = no();
    let gated = world.run(&call("write_file", &json!({"effect": "write", "path": "a"})), &person).await;
    assert_eq!(
        (gated.refusal, person.asked().len()),
        (Some(Refusal::Person), 1),
        "no hook for what is refused"
    );
    let gated = world.run(&call("write_file", &json!({"effect": "write", "path": "a"})), &yes()).await;
    assert_eq!(gated.refusal, Some(Refusal::Hook));
}

#[tokio::test]
async fn a_hook_that_may_fail_is_reported_and_the_call_goes_on() {
    let hook = Hook { on_error: OnError::Warn, ..Hook::new(HookEvent::PreToolUse, "7") };
    let world =
        World { hooks: Arc::new(Hooks::new(vec![hook], Arc::new(super::world::Codes))), ..World::new() };
    let gated = world.run(&call("probe", &json!({})), &yes()).await;
    assert_eq!(gated.refusal, None);
    assert!(gated.notices[0].contains("ended with code 7"), "{:?}", gated.notices);
}

/// Remembers what it was told to run.
#[derive(Default)]
struct Told(Mutex<Vec<HookRun>>);

impl HookSpawner for Told {
    fn run(&self, run: HookRun) -> hanzo_hooks::BoxFuture<'_, Result<HookOutput, StartError>> {
        self.0.lock().unwrap().push(run);
        let nothing = Captured::default;
        Box::pin(
            async move { Ok(HookOutput { end: HookEnd::Exited(0), stdout: nothing(), stderr: nothing() }) },
        )
    }
}

#[tokio::test]
async fn a_notification_about_memory_holds_the_tools_name_and_nothing_else() {
    struct Later(crate::gate::Answered);
    impl crate::gate::Asker for Later {
        fn ask(
            &self,
            _: hanzo_protocol::item::Approval,
        ) -> hanzo_protocol::BoxFuture<'_, crate::gate::Answered> {
            Box::pin(async {
                tokio::task::yield_now().await;
                self.0.clone()
            })
        }
    }
    let told = Arc::new(Told::default());
    let notify = Hook::new(HookEvent::Notification, "notify");
    let world = World {
        hooks: Arc::new(Hooks::new(vec![notify], Arc::clone(&told) as Arc<dyn HookSpawner>)),
        ..World::new()
    };
    let (gate, _) = world.gate();
    let answer = hanzo_protocol::engine::ApprovalAnswer::Once;
    let later = Later(crate::gate::Answered::By { answer, face: "test".into() });
    for (name, effect, expected) in [("remember", "memory", 0), ("write_file", "write", 1)] {
        let call = call(name, &json!({"effect": effect, "text": "private matter", "path": "private matter"}));
        gate.run(&world.step, gate.classify(&call), &later, &super::world::Watch::default()).await;
        let run = told.0.lock().unwrap().pop().expect("the hook was told");
        let heard = format!("{:?} {}", run.env, String::from_utf8(run.stdin).unwrap());
        assert_eq!(heard.matches("private matter").count().min(1), expected, "{heard}");
        assert!(heard.contains("HANZO_TOOL_NAME"));
    }
}
