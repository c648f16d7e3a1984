//! `/queue`: what waits until the turn is over, to change, to send now or to drop.

use super::{App, Choice, Command, Dialog};
use crate::dialog::{Entry, Picker};
use crate::text;

/// What is to become of something that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Edit,
    SendNow,
    First,
    Drop,
}

impl App {
    pub(super) fn show_queue(&mut self) {
        if self.queue.is_empty() {
            self.remark("Nothing waits to be sent; Tab puts something here while a turn runs");
            return;
        }
        let entry = |(index, prompt): (usize, &crate::composer::Prompt)| Entry {
            label: text::one_line(&prompt.typed),
            detail: String::new(),
            value: Choice::Queued(index),
        };
        let entries = self.queue.iter().enumerate().map(entry).collect();
        self.dialogs.push_back(Dialog::Pick(Picker::new("Waiting to be sent, in this order", entries)));
    }

    pub(super) fn ask_about_queued(&mut self, index: usize) {
        // The turn may have ended meanwhile, and it was sent.
        let Some(prompt) = self.queue.get(index) else { return };
        let entry = |label: &str, detail: &str, wish| Entry {
            label: label.into(),
            detail: detail.into(),
            value: Choice::Queue(wish, index),
        };
        let mut entries = vec![
            entry("Change it", "it comes back to the prompt", Wish::Edit),
            entry("Send it now", "the agent reads it before its next step", Wish::SendNow),
            entry("Drop it", "it stays in the history", Wish::Drop),
        ];
        if index > 0 {
            entries.insert(2, entry("Send it first", "before the others", Wish::First));
        }
        entries.push(Entry { label: "Never mind".into(), detail: String::new(), value: Choice::Nothing });
        let picker = Picker::new("What shall become of it?", entries).with_notes(vec![prompt.typed.clone()]);
        self.dialogs.push_back(Dialog::Pick(picker));
    }

    pub(super) fn change_queue(&mut self, wish: Wish, index: usize, commands: &mut Vec<Command>) {
        let Some(prompt) = self.queue.remove(index) else { return };
        match wish {
            Wish::Edit => {
                // What is being written is not lost for it.
                let draft = Some(self.composer.opened()).filter(|draft| !draft.trim().is_empty());
                let both: Vec<String> = [prompt.text].into_iter().chain(draft).collect();
                self.composer.set_text(&both.join("\n"));
            }
            Wish::SendNow => self.say(prompt, commands),
            Wish::First => self.queue.push_front(prompt),
            Wish::Drop => self.remark("Dropped; the history has it"),
        }
    }
}
