//! Saying something, hearing the answer, stopping, leaving.

use hanzo_protocol::engine::{Mode, Posture, Request};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::item::{ItemContent, PlanStatus, PlanStep, ToolCallStatus, TurnEnd};
use hanzo_protocol::message::Reasoning;
use hanzo_protocol::tool::ToolResult;
use hanzo_tui::app::Command;
use hanzo_tui::terminal::Input;
use serde_json::json;

use crate::stage::{Stage, call, setup};

#[test]
fn what_is_typed_is_said_and_the_answer_stays_in_the_scrollback() {
    let mut stage = Stage::new(60, 12);
    stage.take_wanted();
    stage.keys("fix it<CR>");
    let requests = stage.requests();
    assert!(matches!(&requests[..], [Request::TurnStart(turn)] if turn.text == "fix it"), "{requests:?}");
    stage.engine(EventContent::TurnStarted { turn_id: stage.turn });
    stage.completed(ItemContent::UserMessage { text: "fix it".into(), attachments: Vec::new() });
    let answer = (1..=40).map(|n| format!("answer line {n}.\n\n")).collect::<Vec<_>>().concat();
    stage.say(&answer);
    stage.turn_ends(TurnEnd::Completed);
    let all = stage.everything();
    for n in 1..=40 {
        assert_eq!(all.matches(&format!("answer line {n}.")).count(), 1, "line {n}\n{all}");
    }
    assert_eq!(all.matches("› fix it").count(), 1);
    let text = String::from_utf8_lossy(&stage.written).into_owned();
    assert!(!text.contains("\x1b[2J") && !text.contains("\x1b[3J"), "the screen is never cleared");
}

#[test]
fn any_split_of_a_stream_leaves_the_same_transcript() {
    let answer =
        "First line.\nSecond line, which is longer than the terminal is wide, so that it is broken.\n\nLast";
    let transcript = |size| {
        let mut stage = Stage::new(40, 20);
        stage.ask("go");
        let item = stage.stream(answer, size);
        stage.engine(EventContent::ItemCompleted { item });
        stage.turn_ends(TurnEnd::Completed);
        stage.everything()
    };
    let whole = transcript(10_000);
    for size in [1, 2, 7, 13] {
        assert_eq!(transcript(size), whole, "pieces of {size}");
    }
}

#[test]
fn the_caret_is_where_the_next_letter_goes() {
    let mut stage = Stage::new(20, 10);
    stage.keys("héllo 日本");
    let (row, column) = stage.cursor();
    assert_eq!(column, 2 + 6 + 4, "behind the last wide character");
    assert!(stage.screen().lines().nth(usize::from(row)).unwrap().contains("héllo"));
    stage.keys("<Left>");
    assert_eq!(stage.cursor().1, 2 + 6 + 2);
}

#[test]
fn escape_stops_the_turn_and_says_so() {
    let mut stage = Stage::new(80, 20);
    stage.ask("slow");
    stage.take_wanted();
    stage.keys("<Esc>");
    assert!(matches!(&stage.requests()[..], [Request::TurnInterrupt(_)]));
    assert!(stage.screen().contains("Stopping…"));
    stage.turn_ends(TurnEnd::Interrupted);
    assert!(stage.screen().contains("Stopped. What was done so far stays"));
    assert!(!stage.screen().contains("Stopping…"));
}

#[test]
fn control_c_stops_then_clears_then_leaves() {
    let mut stage = Stage::new(80, 20);
    stage.ask("slow");
    stage.take_wanted();
    stage.keys("<C-c>");
    assert!(matches!(&stage.requests()[..], [Request::TurnInterrupt(_)]));
    stage.turn_ends(TurnEnd::Interrupted);
    stage.take_wanted();
    stage.keys("a draft<C-c>");
    assert!(!stage.screen().contains("› a draft"));
    assert!(!stage.app.has_quit());
    stage.keys("<Up>");
    assert!(stage.screen().contains("› a draft"), "a cleared draft is in the history");
    stage.keys("<C-c><C-c>");
    assert!(stage.screen().contains("Ctrl+C again leaves"));
    stage.keys("<C-c>");
    assert!(stage.app.has_quit());
}

#[test]
fn one_control_c_alone_does_not_leave_after_a_while() {
    let mut stage = Stage::new(80, 20);
    stage.keys("<C-c>");
    stage.wait(2_000);
    assert!(!stage.screen().contains("again leaves"));
    stage.keys("<C-c>");
    assert!(!stage.app.has_quit());
    stage.keys("x<C-d>");
    assert!(!stage.app.has_quit(), "not with a draft");
    stage.keys("<BS><C-d>");
    assert!(stage.app.has_quit());
}

#[test]
fn enter_steers_the_running_turn_and_tab_waits_for_its_end() {
    let mut stage = Stage::new(80, 20);
    stage.ask("begin");
    stage.take_wanted();
    stage.keys("also this<CR>");
    assert!(matches!(&stage.requests()[..], [Request::TurnSteer(turn)] if turn.text == "also this"));
    assert!(stage.screen().contains("↳ for this turn: also this"));
    stage.completed(ItemContent::UserMessage { text: "also this".into(), attachments: Vec::new() });
    assert!(!stage.screen().contains("↳ for this turn"), "it was heard");
    stage.keys("later<Tab>");
    assert!(stage.screen().contains("↓ after it: later"));
    assert!(stage.requests().is_empty(), "it waits");
    stage.turn_ends(TurnEnd::Completed);
    assert!(matches!(&stage.requests()[..], [Request::TurnStart(turn)] if turn.text == "later"));
}

#[test]
fn what_waits_can_be_taken_back_and_comes_back_when_the_turn_is_stopped() {
    let mut stage = Stage::new(80, 20);
    stage.ask("begin");
    stage.keys("later<Tab><M-Up>");
    assert!(stage.screen().contains("› later"));
    stage.keys("<Tab><Esc>");
    stage.turn_ends(TurnEnd::Interrupted);
    assert!(stage.screen().contains("› later"), "{}", stage.screen());
}

#[test]
fn what_could_not_be_said_is_not_lost() {
    let mut stage = Stage::new(80, 20);
    stage.keys("/unknown<CR>");
    let error = hanzo_protocol::engine::EngineError {
        kind: hanzo_protocol::engine::EngineErrorKind::NotFound,
        message: "the engine is shutting down".into(),
    };
    let prompt = hanzo_tui::composer::Prompt::of("do");
    stage.event(hanzo_tui::app::Event::Answer(hanzo_tui::app::Asked::Say(prompt), Err(error)));
    assert!(stage.screen().contains("› do"));
    assert!(stage.screen().contains("error: the engine is shutting down"));
}

#[test]
fn calls_under_way_are_shown_and_become_final_in_order() {
    let mut stage = Stage::new(60, 24);
    stage.ask("look");
    let first = stage.item(call("fs.read", &json!({"uri": "a.rs"}), ToolCallStatus::Running, None));
    let second = stage.item(call("fs.read", &json!({"uri": "b.rs"}), ToolCallStatus::Running, None));
    stage.engine(EventContent::ItemStarted { item: first.clone() });
    stage.engine(EventContent::ItemStarted { item: second.clone() });
    assert!(stage.screen().contains("○ fs.read a.rs"));
    let done = |uri: &str| {
        call("fs.read", &json!({"uri": uri}), ToolCallStatus::Completed, Some(ToolResult::success("x")))
    };
    stage.engine(EventContent::ItemCompleted {
        item: hanzo_protocol::item::Item { content: done("b.rs"), ..second },
    });
    stage.engine(EventContent::ItemCompleted {
        item: hanzo_protocol::item::Item { content: done("a.rs"), ..first },
    });
    stage.say("Both read.");
    stage.turn_ends(TurnEnd::Completed);
    let all = stage.everything();
    let at = |text: &str| all.find(text).unwrap_or_else(|| panic!("{text} in\n{all}"));
    assert!(at("fs.read a.rs") < at("fs.read b.rs") && at("fs.read b.rs") < at("Both read."));
    assert_eq!(all.matches("fs.read a.rs").count(), 1);
}

#[test]
fn output_of_a_running_command_is_seen_while_it_comes() {
    let mut stage = Stage::new(60, 24);
    stage.ask("run");
    let item = stage.item(call("proc.exec", &json!({"command": "make"}), ToolCallStatus::Running, None));
    stage.engine(EventContent::ItemStarted { item: item.clone() });
    for n in 0..20 {
        stage.engine(EventContent::ItemDelta { item_id: item.id, delta: format!("compiling {n}\n") });
    }
    let screen = stage.screen();
    assert!(screen.contains("│ compiling 19") && !screen.contains("compiling 3\n"), "{screen}");
}

#[test]
fn shift_tab_goes_from_ask_to_auto_to_plan_and_back() {
    let mut stage = Stage::new(80, 20);
    stage.take_wanted();
    let mut seen = Vec::new();
    for _ in 0..3 {
        stage.keys("<S-Tab>");
        for request in stage.requests() {
            if let Request::ThreadConfigure(change) = request {
                seen.push((change.mode, change.posture));
            }
        }
    }
    let expected = [
        (Some(Mode::Normal), Some(Posture::Auto)),
        (Some(Mode::Plan), Some(Posture::Ask)),
        (Some(Mode::Normal), Some(Posture::Ask)),
    ];
    assert_eq!(seen, expected);
    stage.keys("<S-Tab><S-Tab>");
    stage.wait(10_000);
    assert!(stage.screen().contains("── plan · mock/test-model"), "{}", stage.screen());
}

#[test]
fn an_approved_plan_is_carried_out_in_a_window_that_closes() {
    let mut stage = Stage::new(80, 24);
    stage.keys("<S-Tab><S-Tab>");
    stage.ask("plan something");
    stage.say("1. do it");
    stage.take_wanted();
    stage.wait(1_000);
    stage.turn_ends(TurnEnd::Completed);
    assert!(stage.screen().contains("Carry out this plan?"), "{}", stage.screen());
    stage.pause();
    stage.keys("<Down><Down><CR>");
    let requests = stage.requests();
    assert!(
        matches!(&requests[..], [Request::ThreadConfigure(change), Request::TurnStart(turn)]
            if change.mode == Some(Mode::Normal) && change.posture.is_none()
                && turn.posture == Some(Posture::Auto) && turn.text.contains("approved")),
        "{requests:?}"
    );
    stage.engine(EventContent::TurnStarted { turn_id: stage.turn });
    stage.wait(10_000);
    assert!(stage.screen().contains("── auto · "), "{}", stage.screen());
    stage.turn_ends(TurnEnd::Completed);
    let requests = stage.requests();
    assert!(requests.is_empty(), "nothing has to be taken back: {requests:?}");
    stage.wait(10_000);
    assert!(stage.screen().contains("── ask · "), "{}", stage.screen());
    assert!(!stage.screen().contains("Carry out"), "only a turn in plan mode ends with that question");
}

#[test]
fn the_user_who_looks_elsewhere_is_called() {
    let mut stage = Stage::new(80, 24);
    stage.ask("go");
    stage.take_wanted();
    stage.turn_ends(TurnEnd::Completed);
    assert!(
        !stage.take_wanted().iter().any(|command| matches!(command, Command::Notify(_))),
        "they are here"
    );
    stage.ask("go");
    stage.event(hanzo_tui::app::Event::Input(Input::Focus(false)));
    stage.turn_ends(TurnEnd::Completed);
    assert!(
        stage
            .take_wanted()
            .iter()
            .any(|command| matches!(command, Command::Notify(text) if text.contains("rests")))
    );
}

#[test]
fn nothing_moves_while_nothing_happens() {
    let mut stage = Stage::new(80, 24);
    stage.wait(10_000);
    assert_eq!(stage.app.wake_at(), None, "an idle face sleeps");
    stage.ask("go");
    assert!(stage.app.wake_at().is_some());
    let mut still =
        Stage::with(hanzo_tui::Setup { theme: hanzo_tui::theme::Theme::words(), ..setup() }, 80, 24);
    still.ask("go");
    still.wait(10_000);
    assert_eq!(still.app.wake_at(), None, "with a screen reader nothing spins");
}

#[test]
fn the_bytes_for_a_streamed_word_are_few() {
    let mut stage = Stage::new(100, 40);
    stage.ask("go");
    let before = stage.written.len();
    let words: String = "several words on a line that goes on ".repeat(50) + "\n";
    stage.stream(&words, 6);
    let deltas = words.len().div_ceil(6);
    let each = (stage.written.len() - before) / deltas;
    assert!(each < 200, "{each} bytes for a word of 6");
}

#[test]
fn a_resize_loses_no_line_and_leaves_no_old_viewport() {
    let mut stage = Stage::new(60, 16);
    stage.ask("go");
    let answer = (1..=30).map(|n| format!("line {n}.\n\n")).collect::<Vec<_>>().concat();
    let item = stage.stream(&answer, 9);
    stage.resize(60, 10);
    stage.resize(60, 24);
    stage.engine(EventContent::ItemCompleted { item });
    stage.turn_ends(TurnEnd::Completed);
    let all = stage.everything();
    for n in 1..=30 {
        assert_eq!(all.lines().filter(|line| *line == format!("line {n}.")).count(), 1, "line {n}\n{all}");
    }
    assert_eq!(all.matches("what shall be done?").count(), 1, "{all}");
    assert_eq!(all.matches("Working").count(), 0, "{all}");
}

#[test]
fn without_a_thread_there_is_nothing_to_stay_for() {
    let (mut app, commands) = hanzo_tui::app::App::new(setup(), 80, 24);
    assert!(matches!(&commands[..], [Command::Call(hanzo_tui::app::Asked::Open, Request::ThreadStart(_))]));
    let error = hanzo_protocol::engine::EngineError {
        kind: hanzo_protocol::engine::EngineErrorKind::NotFound,
        message: "no model is configured".into(),
    };
    let answer = hanzo_tui::app::Event::Answer(hanzo_tui::app::Asked::Open, Err(error.clone()));
    app.update(answer, std::time::Duration::from_secs(1));
    assert!(app.has_quit());
    assert_eq!(app.failed(), Some(&error), "the program says why, once, and ends with its code");
}

#[test]
fn what_the_model_thinks_is_folded_until_it_is_wanted() {
    let mut stage = Stage::new(80, 30);
    let thought = || {
        ItemContent::Reasoning(Reasoning {
            text: "First the tests.\nThen the quokka.".into(),
            signature: None,
        })
    };
    stage.ask("go");
    stage.completed(thought());
    let screen = stage.screen();
    assert!(screen.contains("Thought: First the tests.") && screen.contains("Alt+T shows"), "{screen}");
    stage.keys("<M-t>");
    stage.completed(thought());
    let screen = stage.screen();
    assert!(screen.contains("Then the quokka."), "{screen}");
    assert_eq!(screen.matches("Alt+T shows").count(), 1, "{screen}");
    stage.keys("<M-t>");
    stage.completed(thought());
    assert_eq!(stage.screen().matches("Alt+T shows").count(), 2, "{}", stage.screen());
}

#[test]
fn the_plan_is_shown_while_it_is_carried_out_and_can_be_hidden() {
    let step = |text: &str, status| PlanStep { text: text.into(), status };
    let steps = vec![step("Read it", PlanStatus::Done), step("Fix the quokka", PlanStatus::Active)];
    for (height, words) in [(24, "▸ Fix the quokka"), (9, "Plan 1/2: Fix the quokka")] {
        let mut stage = Stage::new(80, height);
        stage.ask("go");
        stage.completed(ItemContent::Plan { steps: steps.clone() });
        assert!(stage.screen().contains(words), "{height} rows\n{}", stage.screen());
        stage.keys("<C-t>");
        assert!(!stage.screen().contains("quokka"), "{}", stage.screen());
        stage.keys("<C-t>");
        assert!(stage.screen().contains(words), "{}", stage.screen());
    }
}

#[test]
fn what_was_folded_of_a_result_is_shown_in_full_when_it_is_wanted() {
    let mut stage = Stage::new(80, 40);
    stage.ask("go");
    let printed = (1..=20).map(|n| format!("row {n}\n")).collect::<Vec<_>>().concat();
    let result = ToolResult::success(printed);
    stage.completed(call("proc.exec", &json!({"command": "seq"}), ToolCallStatus::Completed, Some(result)));
    let screen = stage.screen();
    assert!(screen.contains("+14 lines (Ctrl+O shows)") && !screen.contains("row 20"), "{screen}");
    stage.keys("<C-o>");
    assert!(stage.screen().contains("row 20"), "{}", stage.screen());
}

#[test]
fn the_status_line_says_what_matters() {
    let mut stage = Stage::new(120, 24);
    let sandbox = Some("full".to_owned());
    stage.event(hanzo_tui::app::Event::Surroundings { branch: Some("main".into()), sandbox });
    stage.ask("go");
    stage.turn_ends(TurnEnd::Completed);
    let line = "── ask · mock/test-model · context 12 % · $0.0123 · cache 80 % · sandbox full · main ─";
    assert!(stage.screen().contains(line), "{}", stage.screen());
}
