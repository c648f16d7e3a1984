//! Step 3, the loop guard: stops a call that keeps coming to the same.
//!
//! There is no fixed number of calls. What counts is a call with the same arguments *and* the same outcome, for as long as nothing new
//! happens in between: any outcome that was not seen before, of whatever call, is progress and starts the count anew. So editing and
//! testing in turns is fine, polling something that changes is fine, and A B A B with nothing new is not.
//!
//! First the result carries a warning, then the call is refused, then the turn is over.

use std::collections::HashMap;

use hanzo_protocol::tool::Effect;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::refused::Refused;
use super::types::{Pace, Refusal};

/// How many times the same call may come to the same without progress.
#[derive(Debug, Clone, Copy)]
struct Patience {
    /// The result of this one carries a warning.
    warn: u32,
    /// After this many it is refused.
    refuse: u32,
    /// After this many, refusals included, the turn is over.
    stop: u32,
}

/// Changing something in the same way again and again is odd sooner than looking at it again is: whoever waits for something looks
/// often.
const WRITER: Patience = Patience { warn: 3, refuse: 4, stop: 7 };
const READER: Patience = Patience { warn: 5, refuse: 8, stop: 12 };

/// The most calls that are remembered; the oldest go first. A loop over more than this many different calls is not seen.
const MOST_REMEMBERED: usize = 512;

type Key = [u8; 16];

/// What identifies a call: its action and its arguments, in whatever order they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct CallKey(Key);

impl CallKey {
    pub(super) fn new(action: &str, arguments: &Value) -> Self {
        let mut hasher = Sha256::new();
        hasher.update(action);
        hasher.update([0]);
        feed(&mut hasher, arguments);
        Self(shortened(hasher))
    }
}

fn shortened(hasher: Sha256) -> Key {
    let digest = hasher.finalize();
    let mut key = Key::default();
    key.copy_from_slice(&digest[..16]);
    key
}

fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by_key(|(key, _)| *key);
            hasher.update(b"{");
            for (key, value) in entries {
                feed(hasher, &Value::from(key.as_str()));
                feed(hasher, value);
            }
            hasher.update(b"}");
        }
        Value::Array(values) => {
            hasher.update(b"[");
            for value in values {
                feed(hasher, value);
            }
            hasher.update(b"]");
        }
        other => hasher.update(format!("{other},")),
    }
}

#[derive(Debug)]
struct Seen {
    outcome: Key,
    /// The stretch without progress in which it was last seen.
    stretch: u64,
    /// How often it came to this outcome in that stretch.
    times: u32,
    /// For forgetting the oldest.
    last: u64,
}

/// What the guard has seen since the turn began.
#[derive(Debug, Default)]
pub(super) struct Guard {
    seen: HashMap<CallKey, Seen>,
    stretch: u64,
    clock: u64,
}

/// What the guard adds to a result, and whether the turn can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Noted {
    pub(super) warning: Option<String>,
    pub(super) pace: Pace,
}

impl Guard {
    /// Whether the call may run once more.
    pub(super) fn check(&self, key: CallKey, effect: Effect) -> Result<(), Refused> {
        let times = self.times(key);
        if times < patience(effect).refuse {
            return Ok(());
        }
        Err(Refused::new(
            Refusal::LoopGuard,
            format!(
                "this exact call has come to exactly the same {times} times and nothing new has happened since, so it was not run again. Change the approach: other arguments, another tool, or tell the user what is in the way. If something has to be waited for, wait for it in one call."
            ),
        ))
    }

    /// Takes in what a call came to. A refusal by the guard itself counts as the outcome it stands for.
    pub(super) fn finish(
        &mut self,
        key: CallKey,
        effect: Effect,
        refusal: Option<Refusal>,
        output: &str,
    ) -> Noted {
        self.clock += 1;
        let mut hasher = Sha256::new();
        hasher.update(output);
        let outcome = shortened(hasher);
        let known = self.seen.get(&key).map(|seen| (seen.outcome, self.times(key)));
        let (outcome, times) = match known {
            Some((before, times)) if before == outcome || refusal == Some(Refusal::LoopGuard) => {
                (before, times + 1)
            }
            _ => {
                self.stretch += 1;
                (outcome, 1)
            }
        };
        self.seen.insert(key, Seen { outcome, stretch: self.stretch, times, last: self.clock });
        self.forget_oldest();
        let patience = patience(effect);
        let warning = (times >= patience.warn && refusal != Some(Refusal::LoopGuard)).then(|| {
            format!(
                "note: the same call has now come to exactly this {times} times and nothing new has happened in between. Repeating it will not help."
            )
        });
        let pace = if times >= patience.stop { Pace::Stuck } else { Pace::Moving };
        Noted { warning, pace }
    }

    fn times(&self, key: CallKey) -> u32 {
        // What it came to before the last progress does not count, but it is one time already.
        self.seen.get(&key).map_or(0, |seen| if seen.stretch == self.stretch { seen.times } else { 1 })
    }

    fn forget_oldest(&mut self) {
        if self.seen.len() > MOST_REMEMBERED
            && let Some(oldest) = self.seen.iter().min_by_key(|(_, seen)| seen.last).map(|(key, _)| *key)
        {
            self.seen.remove(&oldest);
        }
    }
}

fn patience(effect: Effect) -> Patience {
    if effect.is_read_only() { READER } else { WRITER }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// What a scripted sequence of calls comes to: `r` ran, `w` ran with a warning, `x` was refused, `!` ended the turn.
    fn play(effect: Effect, calls: &[(&str, &str)]) -> String {
        let mut guard = Guard::default();
        let mut story = String::new();
        for (call, outcome) in calls {
            let key = CallKey::new("proc.exec", &json!({ "command": call }));
            let refusal = guard.check(key, effect).err().map(|refused| refused.by);
            let noted = guard.finish(key, effect, refusal, outcome);
            story.push(match (noted.pace, refusal, noted.warning) {
                (Pace::Stuck, ..) => '!',
                (_, Some(_), _) => 'x',
                (_, None, Some(_)) => 'w',
                (_, None, None) => 'r',
            });
        }
        story
    }

    #[test]
    fn the_same_call_with_the_same_outcome_is_warned_refused_and_ended() {
        assert_eq!(play(Effect::Execute, &[("make", "error"); 8]), "rrwwxx!!");
        assert_eq!(play(Effect::Read, &[("cat x", "y"); 13]), "rrrrwwwwxxx!!");
    }

    #[test]
    fn polling_something_that_changes_is_fine() {
        let outcomes: Vec<String> = (0..100).map(|n| format!("{n} %")).collect();
        let calls: Vec<(&str, &str)> =
            outcomes.iter().map(|outcome| ("progress", outcome.as_str())).collect();
        assert_eq!(play(Effect::Read, &calls), "r".repeat(100));
    }

    #[test]
    fn editing_and_testing_in_turns_is_fine() {
        let edits: Vec<String> = (0..50).map(|n| format!("edit {n}")).collect();
        let calls: Vec<(&str, &str)> =
            edits.iter().flat_map(|edit| [(edit.as_str(), "ok"), ("cargo test", "1 failed")]).collect();
        assert_eq!(play(Effect::Execute, &calls), "r".repeat(100));
    }

    #[test]
    fn alternating_between_calls_that_come_to_nothing_new_is_a_loop() {
        let story = play(Effect::Execute, &[("a", "1"), ("b", "2")].repeat(8));
        assert!(story.starts_with("rrrrww"), "{story}");
        assert!(story.contains('x') && story.ends_with('!'), "{story}");
        let story = play(Effect::Execute, &[("a", "1"), ("b", "2"), ("c", "3")].repeat(8));
        assert!(story.contains('x') && story.ends_with('!'), "{story}");
    }

    #[test]
    fn an_outcome_that_goes_back_and_forth_is_not_a_loop_of_the_guards_making() {
        // Each change is news; only an unchanged outcome counts.
        let story = play(Effect::Execute, &[("toggle", "on"), ("toggle", "off")].repeat(20));
        assert_eq!(story, "r".repeat(40));
    }

    #[test]
    fn something_new_starts_the_count_anew() {
        let mut calls = vec![("make", "error"); 5];
        calls.push(("cat Makefile", "all:"));
        calls.extend([("make", "error"); 2]);
        assert_eq!(play(Effect::Execute, &calls), "rrwwxrrw");
    }

    #[test]
    fn the_order_of_arguments_does_not_make_another_call() {
        let one = CallKey::new("fs.read", &json!({"path": "a", "range": {"x": 1, "y": [1, 2]}}));
        let same: Value = serde_json::from_str(r#"{"range": {"y": [1, 2], "x": 1}, "path": "a"}"#).unwrap();
        assert_eq!(one, CallKey::new("fs.read", &same));
        assert_ne!(one, CallKey::new("fs.read", &json!({"path": "a", "range": {"x": 1, "y": [2, 1]}})));
        assert_ne!(one, CallKey::new("fs.stat", &same));
        assert_ne!(CallKey::new("a", &json!(["1,2"])), CallKey::new("a", &json!([1, 2])));
    }

    #[test]
    fn it_remembers_a_bounded_number_of_calls() {
        let mut guard = Guard::default();
        for n in 0..2_000 {
            guard.finish(CallKey::new("a", &json!(n)), Effect::Read, None, "x");
        }
        assert_eq!(guard.seen.len(), MOST_REMEMBERED);
    }

    proptest! {
        /// The guard never gets in the way of a sequence in which every outcome is new.
        #[test]
        fn what_always_comes_to_something_new_is_never_refused(calls in prop::collection::vec(0u8..4, 1..80)) {
            let outcomes: Vec<String> = (0..calls.len()).map(|n| n.to_string()).collect();
            let names: Vec<String> = calls.iter().map(u8::to_string).collect();
            let script: Vec<(&str, &str)> =
                names.iter().zip(&outcomes).map(|(name, outcome)| (name.as_str(), outcome.as_str())).collect();
            prop_assert_eq!(play(Effect::Execute, &script), "r".repeat(script.len()));
        }
    }
}
