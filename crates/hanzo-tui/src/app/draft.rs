//! What is written and not sent. It is kept a moment after the user stops typing, so that it outlives the process however
//! that ends, and is there again at the next start.

use std::time::Duration;

use hanzo_protocol::event::EventContent;
use hanzo_protocol::item::NoticeLevel;

use super::{App, Command, Event};

/// How long the text must be quiet before it is kept.
const PAUSE: Duration = Duration::from_millis(400);

/// What of the draft is kept, and when the rest will be.
#[derive(Debug, Default)]
pub(super) struct Draft {
    kept: String,
    due: Option<Duration>,
}

impl Draft {
    /// When it is to be kept.
    pub(super) fn due(&self) -> Option<Duration> {
        self.due
    }
}

impl App {
    /// Whether an event may change what is not sent yet. What the engine streams does not, and is not worth looking.
    pub(super) fn may_write(event: &Event) -> bool {
        match event {
            Event::Engine(notification) => matches!(
                notification.content,
                EventContent::TurnCompleted { .. } | EventContent::TurnFailed { .. }
            ),
            Event::Completions(..) | Event::Surroundings { .. } | Event::Tick => false,
            _ => true,
        }
    }

    /// Everything the user wrote that the engine does not have: what waits, then the draft.
    pub fn unsent(&self) -> String {
        let waiting = self.early.iter().chain(&self.queue).map(|prompt| prompt.text.clone());
        let draft = Some(self.composer.opened()).filter(|draft| !draft.trim().is_empty());
        waiting.chain(draft).collect::<Vec<_>>().join("\n\n")
    }

    pub(super) fn draft_written(&mut self) {
        if self.unsent() == self.draft.kept {
            self.draft.due = None;
        } else {
            self.draft.due = Some(self.now + PAUSE);
        }
    }

    pub(super) fn draft_due(&mut self, commands: &mut Vec<Command>) {
        if self.draft.due.is_some_and(|due| due <= self.now) {
            self.draft.due = None;
            self.draft.kept = self.unsent();
            commands.push(Command::KeepDraft(self.draft.kept.clone()));
        }
    }

    /// The draft of the last time is in the composer again.
    pub(super) fn take_draft(&mut self) {
        if let Some(draft) = self.setup.draft.take() {
            self.composer.paste(&draft);
            let words = "What you wrote last time and did not send is in the prompt again; Ctrl+C clears it";
            self.tell(NoticeLevel::Info, words);
        }
    }
}
