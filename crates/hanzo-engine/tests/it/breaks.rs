//! What breaks the prompt's prefix is recorded with its reason and counted, also when it happened while the thread was closed.

use std::sync::Arc;

use hanzo_protocol::engine::{ThreadAt, ThreadConfigure, ThreadOptions, ThreadResume};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::item::{BreakReason, ItemContent};
use hanzo_protocol::message::{Effort, Reasoning, StopReason, StreamEvent};
use hanzo_protocol::narrowing::{Narrowed, Narrowing};
use hanzo_protocol::tool::Reach;
use hanzo_protocol::usage::Usage;
use serde_json::json;

use crate::harness::{Bench, Brain, Setup, ask};
use crate::mocks::{call, locked, stop, text};

fn answer(words: &str) -> Vec<StreamEvent> {
    let thought = Reasoning { text: "hm".into(), signature: Some("signed".into()) };
    vec![StreamEvent::Reasoning(thought), text(words), stop(StopReason::EndTurn)]
}

async fn breaks(bench: &Bench, thread: ThreadId) -> Vec<BreakReason> {
    let reason = |content: &ItemContent| match content {
        ItemContent::PrefixBreak { reason } => Some(*reason),
        _ => None,
    };
    bench.items(thread).await.iter().filter_map(|item| reason(&item.content)).collect()
}

/// Opens the thread again as another process would, after `change` was made to what it is set up with.
async fn reopened(
    bench: Bench,
    brain: &Arc<Brain>,
    thread: ThreadId,
    model: Option<&str>,
    change: impl FnOnce(&mut Setup),
) -> Bench {
    bench.engine.shutdown().await;
    let mut setup = Setup {
        home: bench.setup.home.clone(),
        workspace: bench.setup.workspace.clone(),
        settings: bench.setup.settings.clone(),
        ..Setup::new(brain.clone())
    };
    drop(bench);
    change(&mut setup);
    let bench = setup.engine().await;
    let options = ThreadOptions { model: model.map(ToOwned::to_owned), ..ThreadOptions::default() };
    ask!(bench.engine, ThreadResume, ThreadResume { thread_id: thread, options }).unwrap();
    bench
}

#[tokio::test]
async fn what_changed_while_the_thread_was_closed_is_recorded_with_its_reason() {
    let brain = Brain::saying((0..6).map(|number| answer(&format!("Answer {number}"))).collect());
    let setup = Setup::new(brain.clone());
    let file = setup.workspace.join("AGENTS.md");
    std::fs::write(&file, "Be kind.").unwrap();
    let bench = setup.engine().await;
    let thread = bench.thread().await.id;
    assert_eq!(bench.turn(thread, "One").await.1.unwrap().prefix_breaks, 0, "there is nothing to break yet");

    let bench = reopened(bench, &brain, thread, None, |_| {}).await;
    assert_eq!(bench.turn(thread, "Two").await.1.unwrap().prefix_breaks, 0, "nothing changed");
    assert_eq!(breaks(&bench, thread).await, []);

    let bench = reopened(bench, &brain, thread, None, |_| std::fs::write(&file, "Be brief.").unwrap()).await;
    assert_eq!(bench.turn(thread, "Three").await.1.unwrap().prefix_breaks, 1);
    assert_eq!(breaks(&bench, thread).await, [BreakReason::InstructionsChanged]);

    let bench = reopened(bench, &brain, thread, Some("test/other"), |setup| {
        setup.settings.agent.temperature = Some(0.5);
    })
    .await;
    assert_eq!(bench.turn(thread, "Four").await.1.unwrap().prefix_breaks, 1);
    let so_far = [BreakReason::InstructionsChanged, BreakReason::ModelSwitch];
    assert_eq!(breaks(&bench, thread).await, so_far);
    {
        let requests = locked(&brain.requests);
        let thoughts = |index: usize| {
            requests[index].messages.iter().map(|message| message.reasoning.len()).sum::<usize>()
        };
        assert_eq!((thoughts(2), thoughts(3)), (2, 0), "another model is not told the thoughts of the first");
    }

    let bench = reopened(bench, &brain, thread, None, |setup| {
        setup.settings.agent.temperature = Some(0.7);
    })
    .await;
    assert_eq!(bench.turn(thread, "Five").await.1.unwrap().prefix_breaks, 1);
    assert_eq!(
        bench.turn(thread, "Six").await.1.unwrap().prefix_breaks,
        0,
        "a break is one, and then it is over"
    );
    assert_eq!(breaks(&bench, thread).await[2..], [BreakReason::SettingsChanged]);

    // What is counted is what was sent: each request but those three begins with the one before.
    let requests = locked(&brain.requests);
    let fixed = |index: usize| {
        let request = &requests[index];
        (request.model.clone(), request.temperature, request.messages[0].clone())
    };
    let broken: Vec<usize> = (1..requests.len())
        .filter(|&index| {
            fixed(index) != fixed(index - 1)
                || !requests[index].messages.starts_with(&requests[index - 1].messages)
        })
        .collect();
    assert_eq!(broken, [2, 3, 4]);
}

#[tokio::test]
async fn tools_are_told_what_they_returned_when_the_thread_is_opened_again() {
    let calls = vec![call("1", "far", "{}"), call("2", "look", "{}"), stop(StopReason::ToolUse)];
    let brain = Brain::saying(vec![calls, answer("Done")]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    bench.turn(thread, "Go").await.1.unwrap();
    let bench = reopened(bench, &brain, thread, None, |_| {}).await;
    assert_eq!(bench.log(), ["remind far Network"]);
}

#[tokio::test]
async fn several_changes_at_once_are_one_break_with_several_reasons() {
    let brain = Brain::saying(vec![answer("One"), answer("Two"), answer("Three")]);
    let bench = Setup::new(brain.clone()).engine().await;
    let thread = bench.thread().await.id;
    let configure = |model: &str, effort| ThreadConfigure {
        thread_id: thread,
        model: Some(model.into()),
        mode: None,
        posture: None,
        effort,
    };
    // Before the first request there is no prefix to break.
    ask!(bench.engine, ThreadConfigure, configure("test/first", None)).unwrap();
    assert_eq!(bench.turn(thread, "One").await.1.unwrap().prefix_breaks, 0);
    assert_eq!(breaks(&bench, thread).await, []);
    ask!(bench.engine, ThreadConfigure, configure("test/first", Some(Effort::High))).unwrap();
    let bench = reopened(bench, &brain, thread, None, |setup| {
        setup.settings.custom_instructions = "Rhyme.".into();
    })
    .await;
    assert_eq!(bench.turn(thread, "Two").await.1.unwrap().prefix_breaks, 1);
    let both = [BreakReason::InstructionsChanged, BreakReason::SettingsChanged];
    assert_eq!(breaks(&bench, thread).await, both, "the effort was configured before the thread was closed");
    assert_eq!(bench.turn(thread, "Three").await.1.unwrap().prefix_breaks, 0);
}

#[tokio::test]
async fn a_fold_between_turns_breaks_the_next_request_also_after_a_restart() {
    let step = |number: u32| {
        let arguments = json!({"n": number + 3, "text": "w".repeat(9_000 + number as usize)}).to_string();
        vec![call(&number.to_string(), "look", &arguments), stop(StopReason::ToolUse)]
    };
    let mut answers: Vec<Vec<StreamEvent>> = (0..12).map(step).collect();
    answers.extend([answer("Done"), answer("A summary"), answer("Next"), answer("After that")]);
    let brain = Brain::saying(answers);
    let bench = Setup { window: Some(100_000), ..Setup::new(brain.clone()) }.engine().await;
    let thread = bench.thread().await.id;
    assert_eq!(bench.turn(thread, "Go").await.1.unwrap().prefix_breaks, 0);
    ask!(bench.engine, ThreadCompact, ThreadAt { thread_id: thread }).unwrap();
    let bench = reopened(bench, &brain, thread, None, |setup| setup.window = Some(100_000)).await;
    assert_eq!(bench.turn(thread, "And now?").await.1.unwrap().prefix_breaks, 1);
    assert_eq!(bench.turn(thread, "And then?").await.1.unwrap().prefix_breaks, 0);
    assert_eq!(breaks(&bench, thread).await, [BreakReason::Compaction]);
}

#[tokio::test]
async fn what_the_cache_gave_is_reported_with_the_turn() {
    let cached = |read, fresh| {
        let usage =
            Usage { input_tokens: fresh, cache_read_tokens: read, output_tokens: 1, ..Usage::default() };
        StreamEvent::MessageStop { reason: StopReason::EndTurn, usage }
    };
    let brain = Brain::saying(vec![vec![text("a"), cached(0, 1_000)], vec![text("b"), cached(960, 40)]]);
    let bench = Setup::new(brain).engine().await;
    let thread = bench.thread().await.id;
    assert_eq!(bench.turn(thread, "One").await.1.unwrap().usage.cache_hit_ratio(), Some(0.0));
    assert_eq!(bench.turn(thread, "Two").await.1.unwrap().usage.cache_hit_ratio(), Some(0.96));
}

/// Leaves `look` out.
struct NoLooking;

impl Narrowing for NoLooking {
    fn check(&self, reach: &Reach) -> Result<(), Narrowed> {
        if reach.action != "look" {
            return Ok(());
        }
        Err(Narrowed { action: "look".into(), by: "the test".into(), reason: "nobody looks".into() })
    }
}

#[tokio::test]
async fn a_subagent_keeps_to_what_its_parent_keeps_to() {
    let task = json!({"agent": "helper", "task": "Look at it"}).to_string();
    let answers = || {
        vec![
            vec![call("sub", "agent", &task), stop(StopReason::ToolUse)],
            vec![call("c", "look", "{}"), stop(StopReason::ToolUse)],
            vec![text("That is all"), stop(StopReason::EndTurn)],
            vec![text("Done"), stop(StopReason::EndTurn)],
        ]
    };
    for (narrowed, looks) in [(false, 1), (true, 0)] {
        let brain = Brain::saying(answers());
        let mut setup = Setup::new(brain.clone());
        if narrowed {
            setup.narrowing = Arc::new(NoLooking);
        }
        let agents = setup.home.path().join("config/agents");
        std::fs::create_dir_all(&agents).unwrap();
        for (name, may_spawn) in [("coder", "\"helper\""), ("helper", "")] {
            let manifest =
                format!("description = \"x\"\nmay_spawn = [{may_spawn}]\n[capabilities]\ntools = [\"*\"]\n");
            std::fs::write(agents.join(format!("{name}.toml")), manifest).unwrap();
        }
        let bench = setup.engine().await;
        let thread = bench.thread().await.id;
        bench.turn(thread, "Go").await.1.unwrap();
        let looked = bench.log().iter().filter(|line| line.starts_with("begin look")).count();
        assert_eq!(looked, looks);
        if narrowed {
            let told = brain.shapes()[2].last().unwrap().clone();
            assert!(told.contains("nobody looks") || told.contains("DENIED"), "{told}");
        }
    }
}
