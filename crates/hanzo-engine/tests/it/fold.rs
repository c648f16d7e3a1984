use hanzo_engine::fold::{Cause, DigestBy, Folded, Limits, Plan, apply, arrange, plan};
use hanzo_engine::tokens::{Estimator, Size};
use hanzo_protocol::item::{Item, ItemContent};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::items::{Maker, call, digests, text_of, users};

const WINDOW: u64 = 8_000;

fn limits() -> Limits {
    Limits::new(Some(WINDOW), 0.8).unwrap()
}

fn planned(items: &[Item], cause: Cause) -> Option<Plan> {
    plan(items, &limits(), &Estimator::new(), 500, cause)
}

fn tokens(items: &[Item]) -> u64 {
    Estimator::new().tokens(items.iter().map(Size::of_item).sum())
}

/// A conversation well over the line: `turns` turns of four steps.
fn conversation(maker: &mut Maker, turns: usize) -> Vec<Item> {
    let mut items = Vec::new();
    for turn in 0..turns {
        maker.next_turn();
        items.push(maker.user(&format!("please do thing number {turn}")));
        for step in 0..4 {
            items.push(maker.thought("let me look at it"));
            items.push(maker.agent("I read the file"));
            let arguments = json!({"action": "read", "path": format!("src/f{turn}_{step}.rs")});
            items.push(maker.call("fs.read", &arguments, &"line of code\n".repeat(60)));
        }
        items.push(maker.agent(&format!("thing {turn} is done")));
    }
    items
}

fn fold(items: &mut Vec<Item>, maker: &mut Maker, summary: Option<&str>) -> Folded {
    let folded = planned(items, Cause::Due).unwrap().finish(summary).unwrap();
    let compaction = maker.of(folded.content());
    apply(items, &folded, compaction);
    folded
}

#[test]
fn the_lines_are_eight_tenths_of_what_was_reported_and_nine_tenths_of_the_estimate() {
    let limits = Limits::new(Some(64_000), 0.8).unwrap();
    assert!(!limits.due_before_turn(51_199) && limits.due_before_turn(51_200));
    assert!(!limits.due_before_request(57_600) && limits.due_before_request(57_601));
    let other = Limits::new(Some(100_000), 0.5).unwrap();
    assert!(other.due_before_turn(50_000) && !other.due_before_turn(49_999));
}

#[test]
fn a_window_that_is_not_known_or_zero_is_never_folded_for() {
    assert_eq!(Limits::new(None, 0.8), None);
    assert_eq!(Limits::new(Some(0), 0.8), None);
    for odd in [f64::NAN, -1.0, 0.0, 7.0] {
        assert_eq!(Limits::new(Some(1000), odd), Limits::new(Some(1000), 0.8), "{odd}");
    }
}

#[test]
fn work_folds_and_what_the_user_said_stays_verbatim_with_the_digest_before_the_tail() {
    let mut maker = Maker::new();
    let mut items = conversation(&mut maker, 8);
    let (before, said) = (items.clone(), users(&items).into_iter().map(str::to_owned).collect::<Vec<_>>());
    let folded = fold(&mut items, &mut maker, Some("## Goal: do the things"));

    assert_eq!(folded.by, DigestBy::Model);
    assert_eq!(users(&items), said);
    assert_eq!(digests(&items).len(), 1);
    assert!(digests(&items)[0].contains("## Goal: do the things"));
    let gone: Vec<&Item> = before.iter().filter(|item| folded.ids.contains(&item.id)).collect();
    assert!(
        !gone.is_empty() && gone.iter().all(|item| !matches!(item.content, ItemContent::UserMessage { .. }))
    );
    // The tail is untouched and in order, and the digest is told before it.
    let place = items.iter().position(|item| matches!(item.content, ItemContent::Compaction { .. })).unwrap();
    let tail = &items[place + 1..];
    assert!(tail.len() > 3);
    assert_eq!(tail, &before[before.len() - tail.len()..]);
    assert!(items[..place].iter().all(|item| matches!(item.content, ItemContent::UserMessage { .. })));
    assert_eq!(folded.before, Some(tail[0].id));
    // What is said to be saved is saved.
    assert!(folded.tokens_after < folded.tokens_before);
    let (real_before, real_after) = (tokens(&before) + 500, tokens(&items) + 500);
    assert!(folded.tokens_before.abs_diff(real_before) <= 2 && folded.tokens_after.abs_diff(real_after) <= 8);
    assert!(folded.tokens_after < WINDOW / 2, "{folded:?}");
}

#[test]
fn an_earlier_digest_stays_verbatim_through_later_folds() {
    let mut maker = Maker::new();
    let mut items = conversation(&mut maker, 6);
    fold(&mut items, &mut maker, Some("the first digest"));
    let first = digests(&items)[0].to_owned();
    for round in 0..3 {
        items.extend(conversation(&mut maker, 6));
        fold(&mut items, &mut maker, Some(&format!("digest of round {round}")));
        assert_eq!(digests(&items)[0], first);
    }
    assert_eq!(digests(&items).len(), 4);
    let rounds: Vec<bool> =
        (0..3).map(|round| digests(&items)[round + 1].contains(&format!("round {round}"))).collect();
    assert_eq!(rounds, [true; 3]);
}

#[test]
fn nothing_is_folded_twice_in_a_row() {
    let mut maker = Maker::new();
    let mut items = conversation(&mut maker, 8);
    fold(&mut items, &mut maker, None);
    assert!(planned(&items, Cause::Due).is_none());
    assert!(planned(&items, Cause::Asked).is_none());
    items.push(maker.user("a user message is nothing to fold"));
    assert!(planned(&items, Cause::Asked).is_none());
    items.extend(conversation(&mut maker, 8));
    assert!(planned(&items, Cause::Due).is_some());
}

#[test]
fn a_vendor_that_says_it_is_too_long_is_believed_even_right_after_a_fold() {
    let mut maker = Maker::new();
    let mut items = conversation(&mut maker, 8);
    fold(&mut items, &mut maker, None);
    let mut last = tokens(&items);
    let mut rounds = 0;
    while let Some(folded) = planned(&items, Cause::Overflow).and_then(|plan| plan.finish(None)) {
        let compaction = maker.of(folded.content());
        apply(&mut items, &folded, compaction);
        assert!(tokens(&items) < last);
        last = tokens(&items);
        rounds += 1;
        assert!(rounds < 20, "it never ends");
    }
    assert!(rounds >= 1);
}

#[test]
fn without_an_answer_the_work_is_shortened_deterministically() {
    let mut maker = Maker::new();
    let mut items = conversation(&mut maker, 6);
    items.insert(3, maker.call("proc.exec", &json!({"command": "cargo test"}), "ok"));
    items.insert(
        4,
        maker.item(call("proc.exec", &json!({"command": "cargo build"}), "failed", "error[E0308]")),
    );
    items.insert(5, maker.call("fs.apply_patch", &json!({"path": "src/main.rs"}), "ok"));
    let plan = planned(&items, Cause::Due).unwrap();
    let none = plan.finish(None).unwrap();
    assert_eq!(none.by, DigestBy::Truncation);
    assert_eq!(plan.finish(Some(" \n\t")).unwrap(), none, "a blank answer is none");
    assert_eq!(plan.finish(None).unwrap(), none);
    for fact in ["Changed: src/main.rs", "`cargo test`: ok", "`cargo build`: failed"] {
        assert!(none.digest.contains(fact), "{fact} is not in:\n{}", none.digest);
    }
}

#[test]
fn a_summary_of_any_length_leaves_the_thread_smaller() {
    let mut maker = Maker::new();
    let items = conversation(&mut maker, 6);
    let plan = planned(&items, Cause::Due).unwrap();
    for summary in ["x".repeat(1_000_000), "é".repeat(100_000), "short".to_owned()] {
        let folded = plan.finish(Some(&summary)).unwrap();
        assert_eq!(folded.by, DigestBy::Model);
        assert!(folded.tokens_after < folded.tokens_before);
        assert!(folded.digest.len() < 4_000, "{}", folded.digest.len());
    }
}

#[test]
fn the_request_for_a_digest_has_no_tools_fits_the_window_and_asks_for_what_matters() {
    let mut maker = Maker::new();
    let mut items = conversation(&mut maker, 40);
    items.insert(2, maker.call("fs.read", &json!({"path": "huge"}), &"z".repeat(500_000)));
    let request = planned(&items, Cause::Due).unwrap().request("some-model");
    assert_eq!(request.model, "some-model");
    assert!(request.tools.is_empty());
    let size = Estimator::new().tokens(Size::of_request(&request));
    assert!(size + request.max_tokens.unwrap() <= WINDOW, "{size} + {:?}", request.max_tokens);
    let instructions = &request.messages[0].content;
    for wanted in ["Goal", "Decisions", "Files", "Commands", "Open problems", "Next steps"] {
        assert!(instructions.contains(wanted), "{wanted}");
    }
    assert!(request.messages[1].content.contains("fs.read"));
}

#[test]
fn a_message_too_big_to_be_a_brief_folds_unless_it_is_the_newest() {
    let mut maker = Maker::new();
    let mut items = vec![maker.user(&"a pasted log line\n".repeat(300))];
    items.extend(conversation(&mut maker, 6));
    items.push(maker.user(&"the newest paste\n".repeat(300)));
    fold(&mut items, &mut maker, Some("s"));
    assert!(!users(&items).iter().any(|text| text.starts_with("a pasted log")));
    assert!(users(&items).last().unwrap().starts_with("the newest paste"));
}

#[test]
fn a_newest_message_larger_than_the_window_folds_as_well() {
    let mut maker = Maker::new();
    let mut items = conversation(&mut maker, 1);
    items.push(maker.user(&"word ".repeat(20_000)));
    let folded = fold(&mut items, &mut maker, None);
    assert!(folded.tokens_after < WINDOW * 9 / 10, "{}", folded.tokens_after);
}

#[test]
fn the_user_s_answers_and_the_plan_are_quoted_whatever_the_summary_says() {
    let mut maker = Maker::new();
    let mut items = vec![
        maker.user("start"),
        maker.item(json!({
            "type": "question", "questionId": hanzo_protocol::ids::QuestionId::new(), "text": "Which port?",
            "answer": {"text": "4711, never 8080", "by": "user"},
        })),
        maker.item(json!({"type": "plan", "steps": [
            {"text": "open the port", "status": "done"}, {"text": "close it again", "status": "active"},
        ]})),
    ];
    items.extend(conversation(&mut maker, 6));
    for summary in [Some("a summary that forgets"), None] {
        let digest = planned(&items, Cause::Due).unwrap().finish(summary).unwrap().digest;
        for kept in ["Which port? → 4711, never 8080", "[done] open the port", "[doing] close it again"] {
            assert!(digest.contains(kept), "{kept} is not in:\n{digest}");
        }
    }
}

#[test]
fn instructions_and_the_newest_environment_are_the_same_before_and_after() {
    let mut maker = Maker::new();
    let mut items = vec![
        maker.fragment("environment", "date: 2026-01-01"),
        maker.fragment("instructions", "## sub/AGENTS.md\nuse tabs"),
        maker.fragment("git-state", "clean"),
    ];
    items.extend(conversation(&mut maker, 3));
    items.insert(8, maker.fragment("environment", "date: 2026-01-02"));
    items.extend(conversation(&mut maker, 3));
    fold(&mut items, &mut maker, None);
    let fragments: Vec<&str> = items
        .iter()
        .filter(|item| matches!(item.content, ItemContent::Fragment { .. }))
        .map(text_of)
        .collect();
    assert_eq!(fragments, ["## sub/AGENTS.md\nuse tabs", "date: 2026-01-02"]);
}

#[test]
fn a_step_stays_whole_and_a_call_that_runs_is_never_folded() {
    let mut maker = Maker::new();
    let mut items = conversation(&mut maker, 6);
    let arguments = json!({"path": "x"});
    // The last step: thoughts and three calls made at once, together larger than the tail.
    maker.next_turn();
    let thought = maker.thought("three at once");
    items.push(thought.clone());
    for _ in 0..3 {
        items.push(maker.beside(call("fs.read", &arguments, "completed", &"y".repeat(2_500))));
    }
    let folded = planned(&items, Cause::Due).unwrap().finish(None).unwrap();
    assert_eq!(folded.before, Some(thought.id), "the tail begins with the whole step");

    // One of several calls made at once still runs, and the others have returned a lot.
    items.push(maker.item(call("proc.exec", &arguments, "running", "")));
    let running = items.last().unwrap().id;
    for _ in 0..3 {
        items.push(maker.beside(call("fs.read", &arguments, "completed", &"y".repeat(20_000))));
    }
    for cause in [Cause::Due, Cause::Asked, Cause::Overflow] {
        let folded = planned(&items, cause).unwrap().finish(None).unwrap();
        assert!(!folded.ids.contains(&running), "{cause:?}");
    }
}

#[test]
fn large_instructions_leave_less_room_for_the_tail() {
    let mut maker = Maker::new();
    let items = conversation(&mut maker, 1).split_off(4);
    assert!((600..900).contains(&tokens(&items)), "{}", tokens(&items));
    let beside = |fixed| plan(&items, &limits(), &Estimator::new(), fixed, Cause::Due).is_some();
    assert!(!beside(500) && beside(6_800));
}

#[test]
fn when_what_is_pinned_fills_half_the_window_the_oldest_digests_go_first() {
    let mut maker = Maker::new();
    let mut items = Vec::new();
    let long = "a fact worth keeping ".repeat(200);
    for _ in 0..60 {
        items.extend(conversation(&mut maker, 6));
        fold(&mut items, &mut maker, Some(&long));
        assert!(tokens(&items) < WINDOW * 3 / 4, "{}", tokens(&items));
    }
    assert!(digests(&items).len() < 20);
    assert!(users(&items).iter().any(|text| text.contains("thing number")));
}

/// Two thousand calls in one turn, as a loop that only the force line stops.
fn long_turn(summary: Option<&str>, window: u64) -> (usize, usize, u64) {
    let mut maker = Maker::new();
    let limits = Limits::new(Some(window), 0.8).unwrap();
    let mut estimator = Estimator::new();
    let (fixed, fixed_size) = (2_000, Size { bytes: 7_000, attachments: 0 });
    let mut items = vec![maker.user("rename it everywhere")];
    let (mut folds, mut most_items, mut most_tokens) = (0, 0, 0);
    for number in 0..2_000 {
        let size = |items: &[Item]| items.iter().map(Size::of_item).sum::<Size>() + fixed_size;
        if limits.due_before_request(estimator.request(size(&items))) {
            let plan = plan(&items, &limits, &estimator, fixed, Cause::Due).expect("there is work to fold");
            let folded = plan.finish(summary).expect("it becomes smaller");
            let compaction = maker.of(folded.content());
            apply(&mut items, &folded, compaction);
            estimator.forget_last();
            folds += 1;
        }
        let sent = size(&items);
        // The vendor's tokenizer has 3.9 bytes to the token.
        let reported = sent.bytes * 10 / 39;
        assert!(reported < window, "call {number}: {reported}");
        estimator.observe(sent, reported);
        most_tokens = most_tokens.max(reported);
        most_items = most_items.max(items.len());
        let output = "match on line\n".repeat(20 + (number * 37) % 200);
        items.push(maker.call("fs.search_text", &json!({"pattern": number}), &output));
    }
    assert_eq!(users(&items), ["rename it everywhere"]);
    (folds, most_items, most_tokens)
}

#[test]
fn two_thousand_calls_in_one_turn_stay_within_the_window() {
    for summary in [None, Some("## Goal: rename\n".repeat(400))] {
        let (folds, most_items, most_tokens) = long_turn(summary.as_deref(), 64_000);
        assert!((10..60).contains(&folds), "{folds} folds");
        assert!(most_items < 250, "{most_items} items");
        assert!(most_tokens > 50_000, "the window is used: {most_tokens}");
    }
}

#[test]
fn a_small_window_with_a_large_prompt_still_makes_room() {
    let (folds, _, _) = long_turn(None, 16_000);
    assert!(folds > 40, "{folds}");
}

/// Something to happen in a thread.
#[derive(Debug, Clone)]
enum Happening {
    User(usize),
    Step { thinks: bool, says: usize, calls: Vec<usize> },
    Fragment(usize),
    Notice,
    Question,
    Fold { answers: Option<usize>, cause: Cause },
}

fn happening() -> impl Strategy<Value = Happening> {
    let size = || prop_oneof![4 => 0usize..400, 2 => 400usize..4_000, 1 => 4_000usize..20_000];
    let step = (any::<bool>(), 0usize..300, proptest::collection::vec(size(), 0..4));
    let cause = prop_oneof![Just(Cause::Due), Just(Cause::Asked), Just(Cause::Overflow)];
    prop_oneof![
        2 => size().prop_map(Happening::User),
        8 => step.prop_map(|(thinks, says, calls)| Happening::Step { thinks, says, calls }),
        1 => size().prop_map(Happening::Fragment),
        1 => Just(Happening::Notice),
        1 => Just(Happening::Question),
        2 => (proptest::option::of(size()), cause).prop_map(|(answers, cause)| Happening::Fold { answers, cause }),
    ]
}

fn happen(happening: &Happening, maker: &mut Maker, number: usize) -> Vec<Item> {
    let text = |size: &usize| format!("{number} ") + &"wörter ".repeat(size / 8);
    match happening {
        Happening::User(size) => {
            maker.next_turn();
            vec![maker.user(&text(size))]
        }
        Happening::Step { thinks, says, calls } => {
            let mut items = Vec::new();
            if *thinks {
                items.push(maker.thought("hm"));
            }
            if *says > 0 {
                items.push(maker.agent(&text(says)));
            }
            let mut first = true;
            for size in calls {
                let wire = call("fs.read", &json!({"path": "p"}), "completed", &text(size));
                items.push(if std::mem::take(&mut first) { maker.item(wire) } else { maker.beside(wire) });
            }
            items
        }
        Happening::Fragment(size) => vec![maker.fragment("git-state", &text(size))],
        Happening::Notice => vec![maker.item(json!({"type": "notice", "level": "info", "text": "n"}))],
        Happening::Question => vec![maker.item(question(number))],
        Happening::Fold { .. } => Vec::new(),
    }
}

fn question(number: usize) -> Value {
    let id = hanzo_protocol::ids::QuestionId::new();
    json!({"type": "question", "questionId": id, "text": format!("q{number}")})
}

/// What a later fold may take away: everything that is small enough to be pinned stays while pins fit into half the room.
fn pins_fit(items: &[Item]) -> bool {
    let pinned = items.iter().filter(|item| {
        matches!(item.content, ItemContent::UserMessage { .. } | ItemContent::Compaction { .. })
    });
    pinned.map(|item| tokens(std::slice::from_ref(item))).sum::<u64>() < (WINDOW - 500) / 2 - 50
}

fn check_fold(before: &[Item], after: &[Item], folded: &Folded, cause: Cause) -> Result<(), TestCaseError> {
    prop_assert!(folded.tokens_after < folded.tokens_before);
    prop_assert!(tokens(after) < tokens(before), "{} -> {}", tokens(before), tokens(after));
    // Everything that did not fold is there, unchanged and in order.
    let kept: Vec<&Item> = before.iter().filter(|item| !folded.ids.contains(&item.id)).collect();
    let rest: Vec<&Item> = after.iter().filter(|item| before.iter().any(|old| old.id == item.id)).collect();
    prop_assert_eq!(&kept, &rest);
    prop_assert_eq!(after.len(), kept.len() + 1);
    let small = |item: &Item| tokens(std::slice::from_ref(item)) <= 300;
    if pins_fit(before) {
        for item in before.iter().filter(|item| folded.ids.contains(&item.id)) {
            match &item.content {
                ItemContent::UserMessage { .. } => prop_assert!(!small(item), "a brief was folded"),
                ItemContent::Compaction { .. } => prop_assert!(false, "a digest was folded"),
                _ => {}
            }
        }
    }
    // The tail does not begin inside a step, unless the step is larger than what may be kept of it.
    if let Some(first) = folded.before {
        let place = before.iter().position(|item| item.id == first).unwrap();
        let visible = |item: &&Item| !matches!(item.content, ItemContent::Notice { .. });
        let previous = before[..place].iter().rfind(visible);
        let said = |item: &Item| {
            matches!(item.content, ItemContent::AgentMessage { .. } | ItemContent::Reasoning(_))
        };
        let call = |item: &Item| matches!(item.content, ItemContent::ToolCall(_));
        if let Some(previous) = previous.filter(|previous| previous.turn_id == before[place].turn_id) {
            prop_assert!(!(said(previous) && (said(&before[place]) || call(&before[place]))));
        }
    }
    if cause != Cause::Overflow {
        prop_assert!(planned(after, Cause::Due).is_none(), "it would fold again at once");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(hanzo_testkit::scale::rounds(2_000)))]

    #[test]
    fn any_thread_folds_to_something_smaller_that_says_what_the_user_said(
        happenings in proptest::collection::vec(happening(), 1..60),
    ) {
        let mut maker = Maker::new();
        // As the engine holds it, and as the store has it: in the order of appending.
        let (mut live, mut stored): (Vec<Item>, Vec<Item>) = (Vec::new(), Vec::new());
        for (number, happening) in happenings.iter().enumerate() {
            let new = happen(happening, &mut maker, number);
            live.extend(new.clone());
            stored.extend(new);
            let Happening::Fold { answers, cause } = happening else { continue };
            let summary = answers.map(|size| "s".repeat(size));
            let Some(folded) = planned(&live, *cause).and_then(|plan| plan.finish(summary.as_deref())) else {
                continue;
            };
            let before = live.clone();
            let compaction = maker.of(folded.content());
            stored.retain(|item| !folded.ids.contains(&item.id));
            stored.push(compaction.clone());
            apply(&mut live, &folded, compaction);
            check_fold(&before, &live, &folded, *cause)?;
        }
        let visible = |items: &[Item]| {
            let shown = items.iter().filter(|item| !matches!(item.content, ItemContent::Notice { .. }));
            shown.map(|item| item.id).collect::<Vec<_>>()
        };
        prop_assert_eq!(visible(&arrange(stored)), visible(&live), "opening it again tells it the same way");
    }
}
