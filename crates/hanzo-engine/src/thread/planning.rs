//! Plan mode and the turn. A task that looks large may begin with a plan, and a plan the user accepts ends plan mode in the
//! middle of the turn: what it takes to carry it out is allowed until the turn is over (`gate`).

use hanzo_protocol::engine::{Attendance, Mode};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::item::{Item, ItemContent, NoticeLevel, Visibility};
use hanzo_store::ThreadChange;

use super::state::{Failure, Input, Thread};
use crate::fragment::Fragment;

/// What a fragment about the mode is called.
const KIND: &str = "mode";
const PLANNING: &str = "The thread is in plan mode: look, and change nothing. When the plan is complete, propose it with the tool \
                        `plan`, action `exit`; the user decides.";
const PLANNED: &str = "Plan mode is over: changes are possible again, as the rules say.";

/// From how many words, or entries of a list, on a task looks large.
const MANY_WORDS: usize = 120;
const MANY_ENTRIES: usize = 4;
/// With one of these words, fewer are enough.
const SOME_WORDS: usize = 25;
const LARGE: [&str; 9] = [
    "refactor",
    "migrate",
    "rewrite",
    "redesign",
    "rearchitect",
    "port ",
    "implement",
    "replace all",
    "throughout",
];

impl Thread {
    /// With `agent.auto_plan` a task that looks large begins in plan mode, whatever the posture.
    pub(super) async fn plan_first(&mut self, input: &Input) -> Result<(), Failure> {
        let wanted = self.parts.settings.agent.auto_plan
            && self.options.attendance == Attendance::Attended
            && self.summary.mode == Mode::Normal
            && self.summary.parent.is_none()
            && looks_large(&input.text);
        if wanted {
            self.go_into(Mode::Plan).await?;
            let text = "this looks like a large task, so a plan comes first (`agent.auto_plan`); nothing is changed before \
                        you accept it";
            self.journal.notice(NoticeLevel::Info, text);
        }
        Ok(())
    }

    /// The user may just have accepted a plan.
    pub(super) async fn plan_accepted(&mut self) -> Result<(), Failure> {
        if self.summary.mode == Mode::Plan && self.calls.gate.plan_is_accepted() {
            self.go_into(Mode::Normal).await?;
            // The answer to the call has told it.
            self.told_mode = Mode::Normal;
        }
        Ok(())
    }

    async fn go_into(&mut self, mode: Mode) -> Result<(), Failure> {
        let change = ThreadChange { mode: Some(mode), ..ThreadChange::default() };
        self.journal.store.update_thread(self.id, change).await?;
        self.summary.mode = mode;
        self.own_mode = Some(mode);
        self.calls.set_stance(self.capture().gate);
        self.journal.hub.emit(EventContent::ThreadChanged { thread: self.summary.clone() });
        Ok(())
    }

    /// Tells the model when the mode is another than it knows.
    pub(super) async fn tell_mode(&mut self) -> Result<(), Failure> {
        let mode = self.summary.mode;
        let text = match (self.told_mode, mode) {
            (Mode::Plan, Mode::Plan) => return Ok(()),
            (_, Mode::Plan) => PLANNING,
            (Mode::Plan, _) => PLANNED,
            _ => return Ok(()),
        };
        self.told_mode = mode;
        let item = self.item(Fragment { kind: KIND, text: text.to_owned() }.into());
        self.append(vec![item]).await?;
        Ok(())
    }
}

/// The mode the model was told of last.
pub(super) fn told(items: &[Item]) -> Mode {
    let newest = items.iter().rev().find_map(|item| match &item.content {
        ItemContent::Fragment { kind, text } if kind == KIND && item.visibility == Visibility::Active => {
            Some(text)
        }
        _ => None,
    });
    if newest.is_some_and(|text| text == PLANNING) { Mode::Plan } else { Mode::Normal }
}

/// Whether a task looks as if it were better planned first.
fn looks_large(text: &str) -> bool {
    let words = text.split_whitespace().count();
    let is_entry = |line: &&str| {
        let line = line.trim_start();
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let numbered = number.len() < line.len() && number.starts_with(['.', ')']);
        numbered || ["- ", "* ", "+ "].iter().any(|mark| line.starts_with(mark))
    };
    let lower = text.to_lowercase();
    words >= MANY_WORDS
        || text.lines().filter(is_entry).count() >= MANY_ENTRIES
        || (words >= SOME_WORDS && LARGE.iter().any(|word| lower.contains(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_looks_large_is_planned_first() {
        for small in ["fix the typo", "what does this do?", "refactor this function", "- one\n- two", ""] {
            assert!(!looks_large(small), "{small}");
        }
        let long = "word ".repeat(130);
        let some = format!("implement a parser for the format {}", "and more of it ".repeat(6));
        for large in [long.as_str(), "1. a\n2. b\n3) c\n4. d", &some] {
            assert!(looks_large(large), "{large}");
        }
    }
}
