//! Searching the thread. The terminal's own scrollback cannot be moved by us, so what is found is listed, narrowed by typing,
//! and shown again in full where it is chosen.

use std::collections::VecDeque;

use hanzo_protocol::engine::{Page, Request, ThreadRead};
use hanzo_protocol::item::{Item, ItemContent, Visibility};

use super::{App, Asked, Choice, Command, Dialog};
use crate::dialog::{Entry, Picker};
use crate::text;
use crate::transcript::{self, Detail, RenderContext};

/// The most items that are listed: the newest of them.
const LISTED: usize = 2_000;
/// How much of an item is searched by typing on.
const SEARCHED: usize = 20_000;

/// What was found so far, oldest first.
#[derive(Debug, Default)]
pub(super) struct Found {
    items: VecDeque<Item>,
}

impl App {
    /// Searches the thread for `words`; without any it lists everything, to be narrowed.
    pub(super) fn find(&mut self, words: &str, commands: &mut Vec<Command>) {
        self.found = Found::default();
        self.read_on(words.to_owned(), None, commands);
    }

    fn read_on(&mut self, words: String, cursor: Option<String>, commands: &mut Vec<Command>) {
        let read = |thread_id| Request::ThreadRead(ThreadRead { thread_id, cursor, limit: Some(500) });
        self.call(Asked::Find(words), read, commands);
    }

    pub(super) fn found_page(&mut self, words: String, page: Page<Item>, commands: &mut Vec<Command>) {
        let wanted: Vec<String> = words.split_whitespace().map(str::to_lowercase).collect();
        for item in page.entries {
            if item.visibility == Visibility::Rewound {
                continue;
            }
            let Some((_, text)) = spoken(&item) else { continue };
            let lower = text.to_lowercase();
            if wanted.iter().all(|word| lower.contains(word.as_str())) {
                self.found.items.push_back(item);
                if self.found.items.len() > LISTED {
                    self.found.items.pop_front();
                }
            }
        }
        match page.next {
            Some(next) => self.read_on(words, Some(next), commands),
            None => self.pick_found(&words),
        }
    }

    fn pick_found(&mut self, words: &str) {
        let items = std::mem::take(&mut self.found).items;
        if items.is_empty() {
            self.remark(match words {
                "" => "Nothing was said in this thread yet".to_owned(),
                words => format!("`{words}` does not occur in this thread"),
            });
            return;
        }
        let entry = |item: Item| {
            let (who, mut text) = spoken(&item)?;
            text.truncate(text.floor_char_boundary(SEARCHED));
            let label = format!("{who}{}", text::one_line(&text));
            let detail = item.created_at.strftime("%H:%M").to_string();
            Some(Entry { label, detail, value: Choice::Item(Box::new(item)) })
        };
        let entries = items.into_iter().rev().filter_map(entry).collect();
        let picker = Picker::new("Find in this thread", entries).filtered(words);
        self.dialogs.push_back(Dialog::Pick(picker));
    }

    /// Shows an item again.
    pub(super) fn show_item(&mut self, item: &Item) {
        let context = RenderContext { results: Detail::Full, reasoning: Detail::Full, ..self.context() };
        let lines = transcript::render_item(item, &context);
        let lines = self.live.say(lines);
        self.out.extend(lines);
    }
}

/// Who said something, and what.
fn spoken(item: &Item) -> Option<(&'static str, String)> {
    let said = match &item.content {
        ItemContent::UserMessage { text, .. } => ("you: ", transcript::said(text)),
        ItemContent::AgentMessage { text } => ("", text.clone()),
        ItemContent::ToolCall(call) => {
            let result = call.result.as_ref().map(transcript::shown).unwrap_or_default();
            ("", format!("{} {} {result}", call.tool, transcript::subject(&call.arguments)))
        }
        ItemContent::Question(question) => {
            let answer = question.answer.as_ref().map(|answer| answer.text.as_str()).unwrap_or_default();
            ("asked: ", format!("{} {answer}", question.text))
        }
        ItemContent::Compaction { digest, .. } => ("digest: ", digest.clone()),
        ItemContent::Notice { text, .. } => ("note: ", text.clone()),
        _ => return None,
    };
    (!said.1.trim().is_empty()).then(|| (said.0, text::clean(&said.1)))
}
