//! `/rewind`: to which turn, and what of it. What would happen to the files is shown before anything does, and what cannot be
//! brought back is named.

use std::collections::{HashMap, HashSet};

use hanzo_protocol::engine::{
    List, ListKind, NotRewound, Page, Request, RewindPreview, RewindWhat, ThreadPreview, ThreadRead,
    ThreadSummary,
};
use hanzo_protocol::ids::{CheckpointId, ItemId, TurnId};
use hanzo_protocol::item::{Item, ItemContent, NoticeLevel, Visibility};
use serde::Deserialize;
use serde_json::Value;

use super::{App, Asked, Choice, Command, Dialog};
use crate::dialog::{Entry, Picker};
use crate::text;
use crate::transcript;

/// How many files are named before a rewind.
const NAMED: usize = 12;

/// A checkpoint as the engine lists it.
#[derive(Debug, Clone, Deserialize)]
struct Checkpoint {
    id: CheckpointId,
    #[serde(default)]
    turn: Option<TurnId>,
    #[serde(default)]
    moment: Value,
    #[serde(default)]
    after: Option<ItemId>,
}

/// What is gathered before the list can be shown.
#[derive(Debug, Default)]
pub(super) struct Rewinding {
    checkpoints: Vec<Checkpoint>,
    /// What each turn began with.
    said: HashMap<TurnId, String>,
    /// The calls that changed something.
    wrote: Vec<ItemId>,
    /// What was taken back before and is not there to go back to.
    gone: HashSet<TurnId>,
}

impl App {
    pub(super) fn ask_rewind(&mut self, commands: &mut Vec<Command>) {
        if self.is_busy() {
            self.remark("Stop the turn first (Esc)");
            return;
        }
        let list =
            |thread_id| Request::List(List { kind: ListKind::Checkpoints, thread_id: Some(thread_id) });
        self.call(Asked::Checkpoints, list, commands);
    }

    pub(super) fn list_checkpoints(&mut self, entries: Vec<Value>, commands: &mut Vec<Command>) {
        let read = |entry: Value| serde_json::from_value::<Checkpoint>(entry).ok();
        let checkpoints =
            entries.into_iter().filter_map(read).filter(|checkpoint| is_before(&checkpoint.moment));
        self.rewinding = Rewinding { checkpoints: checkpoints.collect(), ..Rewinding::default() };
        self.read_prompts(None, commands);
    }

    fn read_prompts(&mut self, cursor: Option<String>, commands: &mut Vec<Command>) {
        let read = |thread_id| Request::ThreadRead(ThreadRead { thread_id, cursor, limit: Some(500) });
        self.call(Asked::Prompts, read, commands);
    }

    pub(super) fn checkpoint_page(&mut self, page: Page<Item>, commands: &mut Vec<Command>) {
        for item in page.entries {
            match (&item.content, item.turn_id) {
                (ItemContent::UserMessage { text, .. }, Some(turn)) => {
                    if item.visibility == Visibility::Rewound {
                        self.rewinding.gone.insert(turn);
                    } else {
                        let said = &mut self.rewinding.said;
                        said.entry(turn).or_insert_with(|| transcript::said(text));
                    }
                }
                _ if changes_something(&item) => self.rewinding.wrote.push(item.id),
                _ => {}
            }
        }
        match page.next {
            Some(next) => self.read_prompts(Some(next), commands),
            None => self.pick_checkpoint(),
        }
    }

    fn pick_checkpoint(&mut self) {
        let Rewinding { checkpoints, said, wrote, gone } = std::mem::take(&mut self.rewinding);
        let mut entries: Vec<Entry<Choice>> = Vec::new();
        for checkpoint in checkpoints {
            let Some(turn) = checkpoint.turn.filter(|turn| !gone.contains(turn)) else { continue };
            let Some(words) = said.get(&turn) else { continue };
            let later = wrote.iter().filter(|id| checkpoint.after.is_none_or(|after| **id > after));
            let detail = match later.count() {
                0 => String::new(),
                1 => "1 call changed something since".to_owned(),
                count => format!("{count} calls changed something since"),
            };
            let label = format!("before: {}", text::one_line(words));
            entries.push(Entry { label, detail, value: Choice::Checkpoint(checkpoint.id) });
        }
        entries.reverse();
        if entries.is_empty() {
            self.remark("There is nothing to go back to yet");
            return;
        }
        let never = Entry { label: "Never mind".to_owned(), detail: String::new(), value: Choice::Nothing };
        entries.insert(0, never);
        self.dialogs.push_back(Dialog::Pick(Picker::new("Go back to which point?", entries)));
    }

    pub(super) fn preview(&mut self, checkpoint: CheckpointId, commands: &mut Vec<Command>) {
        let preview = |thread_id| Request::ThreadPreview(ThreadPreview { thread_id, checkpoint });
        self.call(Asked::Preview(checkpoint), preview, commands);
    }

    /// Asks what to take back; without a preview the files cannot be.
    pub(super) fn ask_what_to_rewind(&mut self, id: CheckpointId, preview: Option<&RewindPreview>) {
        let entry =
            |label: &str, detail: &str, value| Entry { label: label.into(), detail: detail.into(), value };
        let mut entries = vec![
            entry("Never mind", "", Choice::Nothing),
            entry("Conversation", "the files stay as they are", Choice::Rewind(id, RewindWhat::Conversation)),
        ];
        if preview.is_some() {
            entries.push(entry("Files", "the conversation stays", Choice::Rewind(id, RewindWhat::Files)));
            entries.push(entry("Both", "", Choice::Rewind(id, RewindWhat::Both)));
        }
        let notes = preview.map(notes).unwrap_or_default();
        self.dialogs.push_back(Dialog::Pick(Picker::new("Take back what?", entries).with_notes(notes)));
    }

    pub(super) fn rewound(&mut self, what: RewindWhat, thread: ThreadSummary) {
        self.thread = Some(thread);
        // About the conversation the engine itself leaves a notice.
        if what != RewindWhat::Conversation {
            self.tell(NoticeLevel::Info, "the files were taken back to an earlier point");
        }
    }
}

/// What a rewind would do to the files, in sentences.
fn notes(preview: &RewindPreview) -> Vec<String> {
    let mut notes = Vec::new();
    if preview.written.is_empty() && preview.removed.is_empty() {
        notes.push("No file would change.".to_owned());
    }
    if !preview.written.is_empty() {
        notes.push(format!("Would be again what they were: {}", named(&preview.written)));
    }
    if !preview.removed.is_empty() {
        notes.push(format!("Would be removed: {}", named(&preview.removed)));
    }
    let with_reason = |files: &[NotRewound]| -> Vec<String> {
        files.iter().map(|file| format!("{} ({})", file.path, file.reason)).collect()
    };
    if !preview.kept.is_empty() {
        notes.push(format!("Would stay as they are: {}", named(&with_reason(&preview.kept))));
    }
    if !preview.left_out.is_empty() {
        let more = preview.left_out_more;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let files = named(&with_reason(&preview.left_out));
        notes.push(format!("Cannot be brought back: {files}{more}"));
    }
    notes.push("What happened outside the workspace or over the network stays.".to_owned());
    notes
}

fn named(files: &[String]) -> String {
    let shown: Vec<String> = files.iter().take(NAMED).map(|file| text::one_line(file)).collect();
    let more = match files.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", shown.join(", "))
}

fn is_before(moment: &Value) -> bool {
    moment.as_str().is_none_or(|moment| {
        let moment = moment.to_ascii_lowercase();
        !moment.contains("end") && !moment.contains("after")
    })
}

/// Whether an item is a call that changed something.
fn changes_something(item: &Item) -> bool {
    use hanzo_protocol::tool::Effect;
    matches!(&item.content, ItemContent::ToolCall(call) if call.effect.is_some_and(|effect| effect != Effect::Read))
}
