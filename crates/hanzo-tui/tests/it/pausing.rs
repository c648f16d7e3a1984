//! Keys that came too early for a dialog that opened by itself: they never answer it.

use hanzo_protocol::engine::{ApprovalAnswer, Request};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::{ApprovalId, ItemId, QuestionId};
use hanzo_protocol::item::{Approval, Question, TurnEnd};
use hanzo_tui::app::Event;
use hanzo_tui::edit::InputMode;
use hanzo_tui::terminal::Input;
use hanzo_tui::theme::Theme;

use crate::stage::{Stage, setup};

const WAITS: &str = "stop typing for a moment";

fn approval() -> EventContent {
    EventContent::ApprovalRequested {
        approval: Approval {
            approval_id: ApprovalId::new(),
            item_id: ItemId::new(),
            tool: "proc.exec".into(),
            summary: "Run `cargo test`".into(),
            reason: "No rule covers it".into(),
            scopes: vec!["Bash(cargo test)".into()],
        },
    }
}

fn question(choices: &[&str]) -> EventContent {
    EventContent::QuestionAsked {
        question: Question {
            question_id: QuestionId::new(),
            text: "Which one?".into(),
            choices: choices.iter().map(|&choice| choice.to_owned()).collect(),
            answer: None,
        },
    }
}

/// A stage with a turn under way and nobody typing.
fn working() -> Stage {
    working_with(Stage::new(80, 24))
}

fn working_with(mut stage: Stage) -> Stage {
    stage.ask("test it");
    stage.wait(1_000);
    stage.take_wanted();
    stage
}

fn answers(stage: &mut Stage) -> Vec<Request> {
    let is = |request: &Request| matches!(request, Request::ApprovalRespond(_) | Request::QuestionRespond(_));
    stage.requests().into_iter().filter(is).collect()
}

#[test]
fn what_is_typed_while_a_dialog_opens_goes_on_into_the_draft() {
    for asked in [approval(), question(&["yes", "no"]), question(&[])] {
        let mut stage = working();
        stage.keys("ma");
        stage.engine(asked);
        stage.take_wanted();
        stage.keys("ybe 1 ap");
        assert!(answers(&mut stage).is_empty(), "the user was typing");
        let screen = stage.screen();
        assert!(screen.contains("› maybe 1 ap") && screen.contains(WAITS), "{screen}");
        stage.pause();
        let screen = stage.screen();
        assert!(!screen.contains(WAITS), "{screen}");
        assert_eq!(
            screen.matches("maybe 1 ap").count(),
            0,
            "a dialog that owns the keys hides the composer\n{screen}"
        );
    }
}

#[test]
fn a_key_pressed_right_after_a_dialog_opened_does_not_answer_even_when_nobody_typed_before() {
    for key in ["y", "a", "p", "<CR>", "n"] {
        let mut stage = working();
        stage.engine(approval());
        stage.take_wanted();
        stage.keys(key);
        assert!(answers(&mut stage).is_empty(), "{key}");
        assert!(stage.screen().contains("Allow this?"), "{key}");
        // Each key begins the pause again.
        stage.wait(380);
        stage.keys("e");
        assert!(answers(&mut stage).is_empty(), "{key}");
        stage.wait(399);
        assert!(stage.screen().contains(WAITS), "{key}");
        stage.wait(1);
        stage.keys("y");
        assert_eq!(answers(&mut stage).len(), 1, "{key}");
    }
}

#[test]
fn enter_sends_what_was_typed_into_the_turn() {
    let mut stage = working();
    stage.keys("and then ");
    stage.engine(approval());
    stage.take_wanted();
    stage.keys("stop, yes<CR>");
    let requests = stage.requests();
    assert!(
        matches!(&requests[..], [Request::TurnSteer(said)] if said.text == "and then stop, yes"),
        "{requests:?}"
    );
    assert!(
        stage.screen().contains("Allow this?")
            && stage.screen().contains("for this turn: and then stop, yes")
    );
}

#[test]
fn a_dialog_that_is_not_on_the_screen_yet_cannot_be_answered() {
    let mut stage = working();
    // The terminal is busy: nothing is drawn, however much time passes.
    stage.hold();
    stage.engine(approval());
    stage.wait(5_000);
    stage.take_wanted();
    stage.keys("y");
    assert!(answers(&mut stage).is_empty());
    stage.wait(5_000);
    stage.draw();
    stage.keys("y");
    assert!(answers(&mut stage).is_empty());
    stage.pause();
    stage.keys("y");
    assert_eq!(answers(&mut stage).len(), 1);
}

#[test]
fn escape_and_control_c_never_wait() {
    let mut stage = working();
    stage.keys("draf");
    stage.engine(approval());
    stage.take_wanted();
    stage.keys("<Esc>");
    let given = answers(&mut stage);
    assert!(
        matches!(&given[..], [Request::ApprovalRespond(said)] if said.answer == ApprovalAnswer::Deny { reason: None }),
        "{given:?}"
    );
    assert!(stage.screen().contains("› draf"), "{}", stage.screen());

    let mut stage = working();
    stage.engine(approval());
    stage.take_wanted();
    stage.keys("<C-c>");
    assert!(matches!(&stage.requests()[..], [Request::TurnInterrupt(_)]));
}

#[test]
fn escape_in_the_middle_of_a_word_is_for_the_vim_keys() {
    let mut vim = setup();
    vim.input = InputMode::Vim;
    let mut stage = Stage::with(vim, 80, 24);
    stage.keys("itest it<CR>");
    stage.engine(EventContent::TurnStarted { turn_id: stage.turn });
    stage.keys("iword");
    stage.engine(approval());
    stage.take_wanted();
    stage.keys("<Esc>");
    assert!(answers(&mut stage).is_empty(), "insert mode is left");
    stage.keys("<Esc>");
    assert_eq!(answers(&mut stage).len(), 1, "and then it is no");
}

#[test]
fn a_key_that_repeats_does_not_answer_the_next_dialog_and_is_not_typed_either() {
    let mut stage = working();
    stage.engine(approval());
    stage.engine(approval());
    stage.pause();
    stage.take_wanted();
    stage.keys("yyyy");
    assert_eq!(answers(&mut stage).len(), 1);
    assert!(stage.screen().contains(WAITS), "{}", stage.screen());
    stage.pause();
    stage.keys("y");
    assert_eq!(answers(&mut stage).len(), 1);
    assert!(stage.screen().contains("› Enter adds to the turn"), "nothing was typed\n{}", stage.screen());
}

#[test]
fn what_is_typed_for_a_list_is_not_for_the_dialog_that_covers_it() {
    let mut stage = working();
    stage.keys("/resume<CR>");
    stage.keys("ear");
    stage.engine(approval());
    stage.take_wanted();
    stage.keys("ly<CR>");
    assert!(stage.requests().is_empty());
    stage.pause();
    stage.keys("<Esc>");
    assert_eq!(answers(&mut stage).len(), 1);
    let screen = stage.screen();
    assert!(screen.contains("Go on with which thread?  ear") && screen.contains(WAITS), "{screen}");
}

#[test]
fn pasted_text_goes_into_the_draft_as_well() {
    let mut stage = working();
    stage.engine(question(&[]));
    stage.take_wanted();
    stage.event(Event::Input(Input::Paste("a pasted word".into())));
    stage.keys("<CR>");
    assert!(answers(&mut stage).is_empty());
}

#[test]
fn the_question_whether_to_carry_out_a_plan_waits_too_and_goes_when_something_else_is_said() {
    let mut stage = Stage::new(80, 24);
    stage.keys("<S-Tab><S-Tab>");
    stage.ask("plan something");
    stage.say("1. do it");
    stage.keys("not like ");
    stage.take_wanted();
    stage.turn_ends(TurnEnd::Completed);
    assert!(
        stage.screen().contains("Carry out this plan?") && stage.screen().contains(WAITS),
        "{}",
        stage.screen()
    );
    stage.take_wanted();
    stage.keys("this<CR>");
    let requests = stage.requests();
    assert!(
        matches!(&requests[..], [Request::TurnStart(said)] if said.text == "not like this"),
        "{requests:?}"
    );
    stage.pause();
    assert!(!stage.screen().contains("Carry out this plan?"), "{}", stage.screen());
}

/// Until it takes keys, a dialog looks so, with colours and without, and is as high as afterwards.
#[test]
fn a_dialog_that_waits_looks_like_it() {
    for theme in [Theme::ansi(), Theme::plain(), Theme::words()] {
        let mut with = setup();
        with.theme = theme;
        let mut stage = working_with(Stage::with(with, 80, 24));
        stage.engine(approval());
        let row = |stage: &Stage, words: &str| {
            let view = stage.app.view();
            let row = view.rows.iter().find(|row| row.to_string().contains(words)).unwrap();
            row.spans.iter().map(|span| span.style).collect::<Vec<_>>()
        };
        let (before, height) = (row(&stage, "Yes, this once"), stage.app.view().rows.len());
        assert!(before.iter().all(|style| *style == theme.dim), "{}: {before:?}", theme.name);
        assert!(stage.screen().contains(WAITS), "{}", stage.screen());
        stage.pause();
        assert_ne!(row(&stage, "Yes, this once"), before, "{}", theme.name);
        assert_eq!(stage.app.view().rows.len(), height, "{}: nothing jumps", theme.name);
    }
}
