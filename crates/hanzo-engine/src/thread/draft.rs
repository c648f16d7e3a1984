//! An answer while it is heard: shown as it comes, kept when it is whole.

use std::time::{Duration, Instant};

use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::{ItemId, ThreadId, TurnId};
use hanzo_protocol::item::{Item, ItemContent, Visibility};
use hanzo_protocol::message::{Reasoning, StreamEvent};

use super::hub::Hub;
use super::state::new_item;
use crate::answer::{Answer, Heard};

/// How often text that streams in is shown. Words that come faster are shown together.
const SHOW_EVERY: Duration = Duration::from_millis(10);

/// An answer while it is heard.
pub(crate) struct Draft {
    thread: ThreadId,
    turn: Option<TurnId>,
    pub(crate) answer: Answer,
    /// The message as its item began.
    message: Option<Item>,
    /// The piece of reasoning that is being heard, and its text so far.
    thinking: Option<(Item, String)>,
    /// Complete pieces.
    thoughts: Vec<Item>,
    unshown: Option<(ItemId, String)>,
    shown_at: Option<Instant>,
    began: bool,
}

impl Draft {
    pub(crate) fn new(thread: ThreadId, turn: Option<TurnId>) -> Self {
        Self {
            thread,
            turn,
            answer: Answer::default(),
            message: None,
            thinking: None,
            thoughts: Vec::new(),
            unshown: None,
            shown_at: None,
            began: false,
        }
    }

    /// Whether anything of the answer has come, so that whoever sent the request no longer tries it again by itself.
    pub(crate) fn has_begun(&self) -> bool {
        self.began
    }

    /// When text that is not shown yet has to be.
    pub(crate) fn show_at(&self) -> Option<Instant> {
        self.unshown.as_ref().map(|_| self.shown_at.map_or_else(Instant::now, |shown| shown + SHOW_EVERY))
    }

    /// Takes in an event and shows what it brings.
    pub(crate) fn hear(&mut self, event: StreamEvent, hub: &Hub) -> Heard {
        match &event {
            StreamEvent::ContentDelta { text } if !text.is_empty() => {
                self.began = true;
                if self.message.is_none() {
                    let item = self.start(ItemContent::AgentMessage { text: String::new() }, hub);
                    self.message = Some(item);
                }
                if let Some(id) = self.message.as_ref().map(|item| item.id) {
                    self.show(id, text, hub);
                }
            }
            StreamEvent::ReasoningDelta { text } if !text.is_empty() => {
                self.began = true;
                if self.thinking.is_none() {
                    let empty = Reasoning { text: String::new(), signature: None };
                    self.thinking = Some((self.start(ItemContent::Reasoning(empty), hub), String::new()));
                }
                if let Some((item, so_far)) = &mut self.thinking {
                    so_far.push_str(text);
                    let id = item.id;
                    self.show(id, text, hub);
                }
            }
            StreamEvent::Reasoning(reasoning) => {
                self.began = true;
                let content = ItemContent::Reasoning(reasoning.clone());
                let item = match self.thinking.take() {
                    Some((item, _)) => Item { content, ..item },
                    None => new_item(self.thread, self.turn, content),
                };
                self.thoughts.push(item);
            }
            StreamEvent::ToolUse(_) => self.began = true,
            StreamEvent::MessageStop { .. } | StreamEvent::Error(_) => self.show_rest(hub),
            _ => {}
        }
        self.answer.hear(event)
    }

    /// Shows what was held back.
    pub(crate) fn show_rest(&mut self, hub: &Hub) {
        if let Some((item_id, delta)) = self.unshown.take() {
            self.shown_at = Some(Instant::now());
            hub.emit(EventContent::ItemDelta { item_id, delta });
        }
    }

    fn start(&mut self, content: ItemContent, hub: &Hub) -> Item {
        self.show_rest(hub);
        let item = new_item(self.thread, self.turn, content);
        hub.emit(EventContent::ItemStarted { item: item.clone() });
        item
    }

    fn show(&mut self, id: ItemId, text: &str, hub: &Hub) {
        match &mut self.unshown {
            Some((same, unshown)) if *same == id => unshown.push_str(text),
            _ => {
                self.show_rest(hub);
                self.unshown = Some((id, text.to_owned()));
            }
        }
        if self.shown_at.is_none_or(|shown| shown.elapsed() >= SHOW_EVERY) {
            self.show_rest(hub);
        }
    }

    /// The items of a whole answer, in the order in which the model is told them.
    pub(crate) fn items(self) -> Vec<Item> {
        let Self { answer, message, thinking, mut thoughts, .. } = self;
        // Shown, but never given as a complete piece: it is kept to be read, and not told to the model.
        thoughts.extend(thinking.map(|(item, text)| Item {
            content: ItemContent::Reasoning(Reasoning { text, signature: None }),
            visibility: Visibility::Rewound,
            ..item
        }));
        let blank = answer.text.trim().is_empty();
        thoughts.extend(message.map(|item| Item {
            // An item that has begun has to end, also one of nothing but blanks.
            visibility: if blank { Visibility::Rewound } else { item.visibility },
            content: ItemContent::AgentMessage { text: answer.text },
            ..item
        }));
        thoughts
    }

    /// The items of an answer that broke off and is kept: the text, for the user has seen it. Reasoning is no longer told to
    /// the model, for a vendor takes its own back only whole; and nobody is going to run the calls.
    pub(crate) fn kept_items(self) -> Vec<Item> {
        let mut items = self.items();
        items.iter_mut().filter(|item| matches!(item.content, ItemContent::Reasoning(_))).for_each(retire);
        items
    }

    /// The items of an answer that broke off and is asked for again: what was shown is over and out of the conversation.
    pub(crate) fn retired_items(self) -> Vec<Item> {
        let mut items = self.items();
        items.iter_mut().for_each(retire);
        items
    }
}

fn retire(item: &mut Item) {
    item.visibility = Visibility::Rewound;
}
