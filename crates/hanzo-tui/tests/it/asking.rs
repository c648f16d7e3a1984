//! Consent and questions: what each key answers, and who owns the keys.

use hanzo_protocol::engine::{ApprovalAnswer, Request};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::{ApprovalId, ItemId, QuestionId};
use hanzo_protocol::item::{Approval, ItemContent, Question, ToolCallStatus, TurnEnd};
use hanzo_tui::app::Part;
use serde_json::json;

use crate::stage::{Stage, call};

fn approval(item: ItemId) -> Approval {
    Approval {
        approval_id: ApprovalId::new(),
        item_id: item,
        tool: "proc.exec".into(),
        summary: "Run `cargo test`".into(),
        reason: "No rule covers it".into(),
        scopes: vec!["Bash(cargo test)".into(), "Bash(cargo:*)".into()],
    }
}

/// A stage with a dialog open, the user not typing.
fn asked() -> Stage {
    let mut stage = Stage::new(80, 24);
    stage.ask("test it");
    stage.wait(1_000);
    let item = stage.item(call(
        "proc.exec",
        &json!({"command": "cargo test"}),
        ToolCallStatus::AwaitingApproval,
        None,
    ));
    stage.engine(EventContent::ItemStarted { item: item.clone() });
    stage.engine(EventContent::ApprovalRequested { approval: approval(item.id) });
    stage.pause();
    stage.take_wanted();
    stage
}

fn answer(stage: &mut Stage) -> ApprovalAnswer {
    let requests = stage.requests();
    match &requests[..] {
        [Request::ApprovalRespond(respond)] => {
            assert_eq!(respond.by, "terminal");
            respond.answer.clone()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_answer_says_exactly_what_it_grants() {
    let stage = asked();
    let screen = stage.screen();
    for words in [
        "Run `cargo test`",
        "Why it is asked: No rule covers it",
        "y  Yes, this once",
        "a  Yes, until this thread ends: Bash(cargo test)",
        "p  Always, saved in your settings: Bash(cargo test)",
        "n  No, and say why",
    ] {
        assert!(screen.contains(words), "{words}\n{screen}");
    }
}

#[test]
fn each_key_gives_its_answer() {
    let rule = |rule: &str| rule.to_owned();
    let cases = [
        ("y", ApprovalAnswer::Once),
        ("<CR>", ApprovalAnswer::Once),
        ("a", ApprovalAnswer::Session { rule: rule("Bash(cargo test)") }),
        ("p", ApprovalAnswer::Always { rule: rule("Bash(cargo test)") }),
        ("<Tab>p", ApprovalAnswer::Always { rule: rule("Bash(cargo:*)") }),
        ("<Tab><Tab>a", ApprovalAnswer::Session { rule: rule("Bash(cargo test)") }),
        ("<Down><CR>", ApprovalAnswer::Session { rule: rule("Bash(cargo test)") }),
        ("<Esc>", ApprovalAnswer::Deny { reason: None }),
        ("nuse nextest<CR>", ApprovalAnswer::Deny { reason: Some("use nextest".into()) }),
        ("n<CR>", ApprovalAnswer::Deny { reason: None }),
        ("n<Esc>y", ApprovalAnswer::Once),
    ];
    for (keys, expected) in cases {
        let mut stage = asked();
        stage.keys(keys);
        assert_eq!(answer(&mut stage), expected, "{keys}");
        assert!(!stage.screen().contains("Allow this?"), "{keys}: the dialog is gone");
    }
}

#[test]
fn a_question_mark_explains_and_other_keys_do_nothing() {
    let mut stage = asked();
    stage.keys("xyz"); // `y` answers; the others must not have.
    assert_eq!(answer(&mut stage), ApprovalAnswer::Once);
    let mut stage = asked();
    stage.keys("?");
    assert!(stage.screen().contains(r#"The call: proc.exec {"command":"cargo test"}"#), "{}", stage.screen());
    assert!(stage.requests().is_empty());
}

#[test]
fn without_scopes_only_this_once_can_be_granted() {
    let mut stage = Stage::new(80, 24);
    stage.ask("go");
    stage.wait(1_000);
    let asked = Approval { scopes: Vec::new(), ..approval(ItemId::new()) };
    stage.engine(EventContent::ApprovalRequested { approval: asked });
    stage.pause();
    stage.take_wanted();
    stage.keys("ap");
    assert!(stage.requests().is_empty());
    assert!(!stage.screen().contains("Always"));
    stage.keys("y");
    assert_eq!(answer(&mut stage), ApprovalAnswer::Once);
}

#[test]
fn an_answer_given_elsewhere_closes_the_dialog_and_says_who_gave_it() {
    let mut stage = Stage::new(80, 24);
    stage.ask("go");
    stage.wait(1_000);
    let asked = approval(ItemId::new());
    let approval_id = asked.approval_id;
    stage.engine(EventContent::ApprovalRequested { approval: asked });
    stage.engine(EventContent::ApprovalResolved { approval_id, allowed: true, by: "web".into() });
    assert!(!stage.screen().contains("Allow this?"));
    assert!(stage.screen().contains("This was allowed through web"));
}

#[test]
fn the_end_of_the_turn_closes_what_it_asked() {
    let mut stage = asked();
    stage.turn_ends(TurnEnd::Interrupted);
    assert!(!stage.screen().contains("Allow this?"));
}

#[test]
fn the_answers_of_a_long_question_are_in_sight() {
    for (width, height) in [(20, 14), (40, 12), (80, 16), (200, 12)] {
        let mut stage = Stage::new(width, height);
        stage.ask("go");
        stage.wait(1_000);
        let summary = (0..100)
            .map(|n| format!("step {n} of a very long command line &&\n"))
            .collect::<Vec<_>>()
            .concat();
        let asked = Approval { summary, ..approval(ItemId::new()) };
        stage.engine(EventContent::ApprovalRequested { approval: asked });
        stage.pause();
        let screen = stage.screen();
        for words in ["Allow this?", "y  Yes", "n  No"] {
            assert!(screen.contains(words), "{width}x{height}: {words}\n{screen}");
        }
        stage.keys("<PageDown>");
        assert!(!stage.screen().contains("step 0 of"), "it scrolls\n{}", stage.screen());
    }
}

#[test]
fn a_question_is_answered_by_number_by_arrow_or_in_own_words() {
    let question = |choices: &[&str]| Question {
        question_id: QuestionId::new(),
        text: "Which one?".into(),
        choices: choices.iter().map(|&choice| choice.to_owned()).collect(),
        answer: None,
    };
    let two: &[&str] = &["SQLite", "PostgreSQL"];
    let cases = [
        (two, "2", "PostgreSQL"),
        (two, "<CR>", "SQLite"),
        (two, "<Down><CR>", "PostgreSQL"),
        (two, "oneither<CR>", "neither"),
        (two, "<Down><Down><CR>both<CR>", "both"),
        (&[], "free text<CR>", "free text"),
    ];
    for (choices, keys, expected) in cases {
        let mut stage = Stage::new(80, 24);
        stage.ask("go");
        stage.wait(1_000);
        stage.engine(EventContent::QuestionAsked { question: question(choices) });
        stage.pause();
        stage.take_wanted();
        stage.keys(keys);
        let requests = stage.requests();
        assert!(
            matches!(&requests[..], [Request::QuestionRespond(respond)] if respond.text == expected),
            "{keys}: {requests:?}"
        );
    }
}

/// Seed 004 §3.8: below what is under way there is either a panel and the status line, or a panel, the composer and the
/// status line.
#[test]
fn a_modal_dialog_hides_the_composer_and_one_typed_in_has_an_input() {
    let rows = |stage: &Stage, part: Part| -> usize {
        stage.app.layout().1.into_iter().filter(|(other, _)| *other == part).map(|(_, rows)| rows).sum()
    };
    let total = |stage: &Stage| stage.app.layout().1.iter().map(|(_, rows)| rows).sum::<usize>();
    let mut stage = asked();
    assert!(rows(&stage, Part::Panel) > 0 && rows(&stage, Part::Composer) == 0, "an approval is modal");
    stage.keys("n");
    assert!(rows(&stage, Part::Panel) > 0 && rows(&stage, Part::Composer) > 0, "its reason is typed");
    assert_eq!(total(&stage), stage.app.view().rows.len());

    let mut stage = Stage::new(80, 24);
    stage.keys("/re");
    assert!(rows(&stage, Part::Panel) > 0 && rows(&stage, Part::Composer) > 0, "a menu keeps the composer");
    stage.keys("<Esc><C-c>/resume<CR>");
    assert!(
        rows(&stage, Part::Panel) > 0 && rows(&stage, Part::Composer) == 0,
        "a list is modal\n{}",
        stage.screen()
    );
    assert_eq!(rows(&stage, Part::Status), 1);
    assert_eq!(total(&stage), stage.app.view().rows.len());

    let mut stage = Stage::new(80, 24);
    stage.ask("go");
    stage.wait(1_000);
    let question = Question {
        question_id: QuestionId::new(),
        text: "Which?".into(),
        choices: vec!["a".into()],
        answer: None,
    };
    stage.engine(EventContent::QuestionAsked { question });
    stage.pause();
    assert!(rows(&stage, Part::Composer) == 0, "a card with choices is modal");
    stage.keys("o");
    assert!(rows(&stage, Part::Composer) > 0, "free text is typed");
}

#[test]
fn the_menu_keeps_its_height_while_the_agent_speaks() {
    let mut stage = Stage::new(80, 24);
    stage.ask("go");
    stage.keys("/");
    let height = |stage: &Stage| {
        stage.app.layout().1.into_iter().find(|(part, _)| *part == Part::Panel).map(|(_, rows)| rows)
    };
    let before = height(&stage);
    let item = stage.item(ItemContent::AgentMessage { text: String::new() });
    stage.engine(EventContent::ItemStarted { item: item.clone() });
    for _ in 0..30 {
        stage.engine(EventContent::ItemDelta { item_id: item.id, delta: "more words\n".into() });
        assert_eq!(height(&stage), before);
    }
}

#[test]
fn whoever_is_asked_to_allow_a_change_sees_it() {
    let mut stage = Stage::new(80, 30);
    stage.ask("fix it");
    stage.wait(1_000);
    let patch = "*** Begin Patch\n*** Update File: src/a.rs\n@@\n fn a() {\n-    one();\n+    two();\n }\n*** End Patch\n";
    let arguments = json!({"action": "apply_patch", "patch": patch});
    // The engine tells of the call once, before it is asked about.
    let item = stage.item(call("fs.apply_patch", &arguments, ToolCallStatus::Pending, None));
    stage.engine(EventContent::ItemStarted { item: item.clone() });
    let asked = Approval { tool: "fs.apply_patch".into(), ..approval(item.id) };
    stage.engine(EventContent::ApprovalRequested { approval: asked });
    stage.pause();
    let screen = stage.screen();
    assert!(screen.contains("fs.apply_patch src/a.rs  waits for your consent"), "{screen}");
    assert!(screen.contains("    -     one();") && screen.contains("    +     two();"), "{screen}");
    assert!(!screen.contains("Begin Patch"), "{screen}");
    stage.keys("y");
    assert!(!stage.screen().contains("waits for your consent"), "{}", stage.screen());
}

#[test]
fn a_change_that_is_longer_than_the_screen_can_be_read_to_its_end_before_it_is_allowed() {
    for (width, height) in [(40, 15), (80, 24), (200, 50)] {
        let mut stage = Stage::new(width, height);
        stage.ask("write it");
        stage.wait(1_000);
        let content = (1..=90).map(|n| format!("line {n} of the file\n")).collect::<Vec<_>>().concat();
        let content = format!("{}that is a long one\n{content}", "word ".repeat(50));
        let arguments = json!({"action": "write", "uri": "a.txt", "content": content});
        let item = stage.item(call("fs.write", &arguments, ToolCallStatus::Pending, None));
        stage.engine(EventContent::ItemStarted { item: item.clone() });
        let asked = Approval { tool: "fs.write".into(), ..approval(item.id) };
        stage.engine(EventContent::ApprovalRequested { approval: asked });
        stage.pause();
        let mut seen = String::new();
        for _ in 0..60 {
            let screen = stage.screen();
            assert!(screen.contains("y  Yes, this once") && screen.contains("n  No"), "{screen}");
            seen.push_str(&screen);
            stage.keys("<PageDown>");
        }
        assert!(stage.screen().contains("this is the end"), "{}", stage.screen());
        stage.keys("<PageUp>");
        assert!(!stage.screen().contains("+ line 90 of"), "{}", stage.screen());
        assert!(seen.contains("that is a long one"), "what is consented to is not cut\n{seen}");
        for n in 1..=90 {
            assert!(seen.contains(&format!("+ line {n} of the file")), "{width}x{height}: line {n}\n{seen}");
        }
        assert!(stage.requests().iter().all(|request| !matches!(request, Request::ApprovalRespond(_))));
    }
}

#[test]
fn what_a_command_prints_is_seen_while_it_runs() {
    let mut stage = Stage::new(80, 24);
    stage.ask("build");
    let item = stage.item(call("proc.exec", &json!({"command": "make"}), ToolCallStatus::Pending, None));
    stage.engine(EventContent::ItemStarted { item: item.clone() });
    stage.engine(EventContent::ItemDelta { item_id: item.id, delta: "compiling quokka\n".into() });
    assert!(stage.screen().contains("│ compiling quokka"), "{}", stage.screen());
}
