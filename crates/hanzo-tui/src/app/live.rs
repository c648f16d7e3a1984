//! The items that are not final yet, and the order in which lines become final. Nothing final is kept: it is in the
//! terminal's scrollback, and in the engine.

use hanzo_protocol::ids::ItemId;
use hanzo_protocol::item::{Item, ItemContent, ToolCallStatus};
use ratatui::text::Line;

use crate::text;
use crate::transcript::{Detail, RenderContext, StreamingMessage, card_line, render_item};

/// How much of a running call's output is kept to be looked at.
const KEPT_OUTPUT: usize = 4 * 1024;
/// How many rows of it are shown.
const OUTPUT_ROWS: usize = 4;

/// What stands between two blocks of the transcript.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Card,
    Other,
}

#[derive(Debug)]
struct Growing {
    item: Item,
    /// For the agent's words.
    stream: StreamingMessage,
    /// What has arrived by pieces: words, thoughts or output.
    heard: String,
    /// How many bytes of the words have arrived.
    length: usize,
    /// Whether lines of it were written already.
    begun: bool,
    done: bool,
}

/// The items that are not final yet.
#[derive(Debug, Default)]
pub struct Live {
    items: Vec<Growing>,
    last: Option<Sort>,
}

impl Live {
    /// An item began, or has another state.
    pub fn started(&mut self, item: Item) {
        match self.find(item.id) {
            Some(known) => known.item = item,
            None => self.items.push(Growing::new(item, false)),
        }
    }

    /// An item grew. Returns the lines that are final now.
    pub fn grew(&mut self, id: ItemId, delta: &str, context: &RenderContext) -> Vec<Line<'static>> {
        let first = self.items.first().is_some_and(|first| first.item.id == id);
        let Some(growing) = self.find(id) else { return Vec::new() };
        growing.length += delta.len();
        if let ItemContent::ToolCall(call) = &mut growing.item.content {
            // What prints runs; nothing else tells.
            call.status = ToolCallStatus::Running;
        }
        if !matches!(growing.item.content, ItemContent::AgentMessage { .. }) {
            growing.heard.push_str(delta);
            if growing.heard.len() > 2 * KEPT_OUTPUT
                && matches!(growing.item.content, ItemContent::ToolCall(_))
            {
                let cut = growing.heard.ceil_char_boundary(growing.heard.len() - KEPT_OUTPUT);
                growing.heard.drain(..cut);
            }
            return Vec::new();
        }
        if !first {
            // Its lines have to wait for what began before it.
            growing.heard.push_str(delta);
            return Vec::new();
        }
        let waiting = std::mem::take(&mut growing.heard);
        let lines = growing.stream.push(&(waiting + delta), context);
        self.write_first(lines)
    }

    /// An item is final. Returns the lines that are final now.
    pub fn completed(&mut self, item: Item, context: &RenderContext) -> Vec<Line<'static>> {
        match self.find(item.id) {
            Some(known) => {
                known.item = item;
                known.done = true;
            }
            None => self.items.push(Growing::new(item, true)),
        }
        self.drain(context)
    }

    /// Nothing more comes: everything is final as it is.
    pub fn finish(&mut self, context: &RenderContext) -> Vec<Line<'static>> {
        for growing in &mut self.items {
            growing.done = true;
        }
        self.drain(context)
    }

    /// Lines that belong to no item, in their place.
    pub fn say(&mut self, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        let mut written = self.space(Sort::Other);
        written.extend(lines);
        written
    }

    /// Forgets everything: another thread follows.
    pub fn clear(&mut self) {
        self.items.clear();
        self.last = None;
    }

    fn find(&mut self, id: ItemId) -> Option<&mut Growing> {
        self.items.iter_mut().find(|growing| growing.item.id == id)
    }

    /// A call has another state, which is known here before it is final.
    pub fn set_status(&mut self, id: ItemId, status: ToolCallStatus) {
        if let Some(Growing { item: Item { content: ItemContent::ToolCall(call), .. }, .. }) = self.find(id) {
            call.status = status;
        }
    }

    /// The arguments of a call that is under way.
    pub fn arguments(&self, id: ItemId) -> Option<&str> {
        self.items.iter().find(|growing| growing.item.id == id).and_then(|growing| {
            match &growing.item.content {
                ItemContent::ToolCall(call) => Some(call.arguments.as_str()),
                _ => None,
            }
        })
    }

    fn drain(&mut self, context: &RenderContext) -> Vec<Line<'static>> {
        let mut lines = Vec::new();
        while self.items.first().is_some_and(|first| first.done) {
            let growing = self.items.remove(0);
            let sort = growing.sort();
            let (begun, rest) = growing.lines(context);
            if rest.is_empty() {
                continue;
            }
            if !begun {
                lines.extend(self.space(sort));
            }
            self.last = Some(sort);
            lines.extend(rest);
        }
        // What waited behind them may show its lines now.
        if let Some(first) = self.items.first_mut()
            && matches!(first.item.content, ItemContent::AgentMessage { .. })
            && !first.heard.is_empty()
        {
            let heard = std::mem::take(&mut first.heard);
            let written = first.stream.push(&heard, context);
            lines.extend(self.write_first(written));
        }
        lines
    }

    fn write_first(&mut self, lines: Vec<Line<'static>>) -> Vec<Line<'static>> {
        if lines.is_empty() {
            return lines;
        }
        let begun = self.items.first_mut().is_some_and(|first| std::mem::replace(&mut first.begun, true));
        let mut written = if begun { Vec::new() } else { self.space(Sort::Other) };
        self.last = Some(Sort::Other);
        written.extend(lines);
        written
    }

    /// The blank line before a block; cards stand together.
    fn space(&mut self, sort: Sort) -> Vec<Line<'static>> {
        let together = sort == Sort::Card && self.last == Some(Sort::Card);
        self.last = Some(sort);
        if together { Vec::new() } else { vec![Line::default()] }
    }

    /// The rows that show what is under way, at most `most`, the newest last.
    pub fn rows(&self, context: &RenderContext, most: usize) -> Vec<Line<'static>> {
        let mut rows: Vec<Line<'static>> = Vec::new();
        let mut last = self.last;
        for growing in &self.items {
            let block = growing.rows(context);
            if block.is_empty() {
                continue;
            }
            let sort = growing.sort();
            let joins = growing.begun || (sort == Sort::Card && last == Some(Sort::Card));
            if !joins {
                rows.push(Line::default());
            }
            last = Some(sort);
            rows.extend(block);
        }
        let hidden = rows.len().saturating_sub(most);
        rows.drain(..hidden);
        rows
    }
}

impl Growing {
    fn new(item: Item, done: bool) -> Self {
        Self {
            item,
            stream: StreamingMessage::default(),
            heard: String::new(),
            length: 0,
            begun: false,
            done,
        }
    }

    fn sort(&self) -> Sort {
        if matches!(self.item.content, ItemContent::ToolCall(_)) { Sort::Card } else { Sort::Other }
    }

    /// Whether lines were written already, and those that are left.
    fn lines(mut self, context: &RenderContext) -> (bool, Vec<Line<'static>>) {
        if let ItemContent::AgentMessage { text } = &self.item.content {
            if self.length == 0 {
                return (false, render_item(&self.item, context));
            }
            // What the pieces did not bring, the whole has.
            let missing = text.get(self.length..).unwrap_or_default().to_owned();
            let heard = std::mem::take(&mut self.heard) + &missing;
            let mut lines = self.stream.push(&heard, context);
            lines.extend(self.stream.finish(context));
            return (self.begun, lines);
        }
        (self.begun, render_item(&self.item, context))
    }

    fn rows(&self, context: &RenderContext) -> Vec<Line<'static>> {
        match &self.item.content {
            ItemContent::AgentMessage { .. } => self.stream.tail(context),
            ItemContent::Reasoning(_) if context.reasoning == Detail::Full => {
                let rows =
                    text::wrap(text::clean(&self.heard).trim(), context.width.saturating_sub(2).max(4));
                rows.into_iter().map(|row| Line::styled(format!("  {row}"), context.theme.dim)).collect()
            }
            ItemContent::Reasoning(_) => {
                // The end of a thought is the news in it.
                let words = text::one_line(&self.heard);
                let line = format!("Thinking: {}", text::clip_left(&words, context.width.saturating_sub(11)));
                vec![Line::styled(line, context.theme.dim)]
            }
            // The question itself is in sight.
            ItemContent::ToolCall(call) if call.tool == "ask" && !self.done => Vec::new(),
            ItemContent::ToolCall(call) if !self.done => {
                let mut rows = vec![card_line(call, context)];
                if call.status == ToolCallStatus::Running {
                    let output = text::clean(&self.heard);
                    let all: Vec<&str> = output.lines().collect();
                    for row in &all[all.len().saturating_sub(OUTPUT_ROWS)..] {
                        let row = text::clip(row, context.width.saturating_sub(4));
                        rows.push(Line::styled(format!("  │ {row}"), context.theme.dim));
                    }
                }
                rows
            }
            // A question is shown by its card until it is answered.
            ItemContent::Question(_) if !self.done => Vec::new(),
            ItemContent::Plan { .. } => Vec::new(),
            _ => render_item(&self.item, context),
        }
    }
}
