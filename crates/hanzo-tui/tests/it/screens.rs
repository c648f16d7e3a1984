//! What a person sees, at four widths.

use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::{ApprovalId, QuestionId};
use hanzo_protocol::item::{Approval, ItemContent, PlanStatus, PlanStep, Question, ToolCallStatus, TurnEnd};
use hanzo_protocol::tool::ToolResult;
use serde_json::json;

use crate::stage::{Stage, call, setup};

const WIDTHS: [u16; 4] = [20, 40, 80, 200];

fn at_all_widths(name: &str, play: impl Fn(&mut Stage)) {
    for width in WIDTHS {
        let mut stage = Stage::new(width, 30);
        play(&mut stage);
        for line in stage.screen().lines() {
            assert!(hanzo_tui::text::width(line) <= usize::from(width), "{width}: {line}");
        }
        insta::assert_snapshot!(format!("{name}-{width}"), stage.screen());
    }
}

#[test]
fn the_first_screen() {
    at_all_widths("first", |_| {});
}

#[test]
fn a_turn_at_work() {
    at_all_widths("working", |stage| {
        stage.ask("fix the failing test in the parser");
        stage.say("I'll look at the test first, then at what it tests.");
        let result = ToolResult::success("fn parse() {}\n");
        stage.completed(call(
            "fs.read",
            &json!({"uri": "src/parser.rs"}),
            ToolCallStatus::Completed,
            Some(result),
        ));
        let item = stage.item(call(
            "proc.exec",
            &json!({"command": "cargo test --workspace"}),
            ToolCallStatus::Running,
            None,
        ));
        stage.engine(EventContent::ItemStarted { item: item.clone() });
        stage.engine(EventContent::ItemDelta {
            item_id: item.id,
            delta: "   Compiling parser v0.1.0\n".into(),
        });
        let step = |text: &str, status| PlanStep { text: text.into(), status };
        let steps = vec![step("Read the test", PlanStatus::Done), step("Fix the parser", PlanStatus::Active)];
        stage.completed(ItemContent::Plan { steps });
        stage.keys("and be quick");
    });
}

#[test]
fn a_request_for_consent() {
    at_all_widths("consent", |stage| {
        stage.ask("run it");
        stage.wait(1_000);
        let item = stage.item(call(
            "proc.exec",
            &json!({"command": "cargo test"}),
            ToolCallStatus::AwaitingApproval,
            None,
        ));
        stage.engine(EventContent::ItemStarted { item: item.clone() });
        let approval = Approval {
            approval_id: ApprovalId::new(),
            item_id: item.id,
            tool: "proc.exec".into(),
            summary: "Run `cargo test --workspace`".into(),
            reason: "No rule covers it".into(),
            scopes: vec!["Bash(cargo test --workspace)".into(), "Bash(cargo test:*)".into()],
        };
        stage.engine(EventContent::ApprovalRequested { approval });
        stage.pause();
    });
}

#[test]
fn a_question_with_answers() {
    at_all_widths("question", |stage| {
        stage.ask("store it");
        stage.wait(1_000);
        let question = Question {
            question_id: QuestionId::new(),
            text: "Which database should the sessions be kept in, given that there is one already?".into(),
            choices: vec!["SQLite, in a file beside the others".into(), "PostgreSQL".into()],
            answer: None,
        };
        stage.engine(EventContent::QuestionAsked { question });
        stage.pause();
    });
}

#[test]
fn a_plan_to_carry_out() {
    at_all_widths("plan", |stage| {
        stage.keys("<S-Tab><S-Tab>");
        stage.ask("plan it");
        stage.say("1. Read the notes\n2. Write the summary");
        stage.wait(10_000);
        stage.turn_ends(TurnEnd::Completed);
        stage.pause();
    });
}

#[test]
fn the_menu_of_commands() {
    at_all_widths("menu", |stage| stage.keys("/re"));
}

#[test]
fn the_keys() {
    at_all_widths("keys", |stage| stage.keys("?"));
}

#[test]
fn a_finished_turn() {
    at_all_widths("finished", |stage| {
        stage.ask("say hello");
        stage.say("Hello! 你好，世界 👋🏽");
        let failed = ToolResult::failure("COMMAND_FAILED: exit code 101");
        stage.completed(call(
            "proc.exec",
            &json!({"command": "cargo test"}),
            ToolCallStatus::Failed,
            Some(failed),
        ));
        stage.turn_ends(TurnEnd::Completed);
    });
}

#[test]
fn without_colours_nothing_is_coloured_and_in_words_nothing_is_drawn() {
    let theme = hanzo_tui::theme::Theme::plain();
    let play = |theme| {
        let mut stage = Stage::with(hanzo_tui::Setup { theme, ..setup() }, 80, 24);
        stage.ask("go");
        let result = ToolResult::success("ok");
        stage.completed(call("fs.list", &json!({"uri": "src"}), ToolCallStatus::Completed, Some(result)));
        stage.keys("/re");
        stage
    };
    let stage = play(theme);
    let text = String::from_utf8_lossy(&stage.written).into_owned();
    for sequence in text.split("\x1b[").skip(1) {
        let Some((codes, _)) = sequence.split_once('m') else { continue };
        let coloured = codes.split(';').any(|code| matches!(code.parse::<u8>(), Ok(30..=49 | 90..=107)));
        assert!(!coloured || !codes.bytes().all(|b| b.is_ascii_digit() || b == b';'), "{codes}");
    }
    let mut stage = play(theme.in_words());
    let all = stage.everything();
    assert!(!all.contains(['─', '│', '●', '❯', '›', '⠋']), "{all}");
    assert!(all.contains("You: go"));
}
