//! Makes a conversation fit its budget of tokens (seed 000 §5). A pure function: the same messages and the same summary
//! give the same result on every platform, and `test-vectors/session-compaction.json` holds them to it.
//!
//! # The rules
//!
//! Numbers are whole; "characters" are Unicode scalar values; divisions round down unless it says otherwise.
//!
//! * *Tokens* of a message: its `token_count`; without one, a quarter, rounded up, of the characters of its content and
//!   of the arguments of its calls.
//! * *The line* is nine tenths of `max_tokens`. A conversation is left alone while its tokens do not exceed it.
//! * *Kept* as they are: a system message at index 0, and the last `reserve_recent` turns. A turn begins at a user
//!   message. With fewer turns than that, all are kept; without any turn, everything is kept (unless `reserve_recent` is
//!   0, which keeps nothing but the system message).
//! * *Folded*: everything between, into one assistant message. A single assistant message without calls is not folded:
//!   it is what a fold leaves behind, and folding it again would lose more each time and gain nothing.
//! * *The fold's text* is the summary the caller passes, unless that is blank (nothing but spaces, tabs, CRs and LFs).
//!   Otherwise it is the transcript of what was folded, shortened: its wording is not part of the contract, except that
//!   tool results read `[compacted]`.
//! * *The fold's size* is at most `min(folded - 1, max(room, max_tokens / 20, 16))` tokens, where `folded` is the size of
//!   what it replaces, and `room` is what the kept messages leave of the line for a summary, and of half of `max_tokens`
//!   for a shortened transcript, which is worth less and would otherwise fill the window up to the line each time. A
//!   summary that is too long loses its end to a `…`. Under 3 tokens nothing can be said, and the conversation is left
//!   alone.

use std::borrow::Cow;
use std::ops::Range;

use hanzo_protocol::message::{Message, Role};

/// What stands for a tool result that has been folded.
pub const COMPACTED: &str = "[compacted]";

/// How many turns are kept unless the caller says otherwise.
pub const DEFAULT_RESERVE_RECENT: usize = 3;

const CHARS_PER_TOKEN: u64 = 4;
/// `[compacted]` and a `…` need this many tokens.
const SMALLEST_FOLD: u64 = 3;
/// What a fold may take however little room there is.
const ALWAYS_ALLOWED: u64 = 16;
/// Texts of a transcript are not shortened below this, for less says nothing; whole messages are left out instead.
const SHORTEST_TEXT: usize = 16;

/// How many tokens a message takes: its own count, or the estimate the module's documentation defines.
pub fn tokens_of(message: &Message) -> u64 {
    message.token_count.unwrap_or_else(|| {
        let arguments = message.tool_calls.iter().map(|call| call.arguments.as_str());
        estimate(arguments.chain([message.content.as_str()]).map(chars_of).sum())
    })
}

/// How many tokens the messages take together.
pub fn total_tokens(messages: &[Message]) -> u64 {
    messages.iter().map(tokens_of).fold(0, u64::saturating_add)
}

/// A conversation after compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompactionResult {
    /// The messages to go on with.
    pub messages: Vec<Message>,
    /// How many messages were folded into one; 0 when the conversation was left alone.
    pub compacted_count: usize,
    /// By how many tokens the conversation is smaller now; 0 when it was left alone, and never 0 otherwise.
    pub tokens_saved: u64,
}

/// Folds the middle of a conversation when it takes more tokens than its budget allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionCompactor {
    max_tokens: u64,
    reserve_recent: usize,
}

impl SessionCompactor {
    /// A compactor for a budget of `max_tokens` that keeps the last three turns.
    pub fn new(max_tokens: u64) -> Self {
        Self { max_tokens, reserve_recent: DEFAULT_RESERVE_RECENT }
    }

    /// The compactor for a limit that may not be configured. Without one, and with 0, there is no compaction.
    pub fn from_limit(max_tokens: Option<u64>) -> Option<Self> {
        max_tokens.filter(|limit| *limit > 0).map(Self::new)
    }

    /// The same compactor, keeping the last `turns` turns.
    #[must_use]
    pub fn reserve_recent(mut self, turns: usize) -> Self {
        self.reserve_recent = turns;
        self
    }

    /// Whether the conversation takes more than nine tenths of the budget.
    pub fn needs_compaction(&self, messages: &[Message]) -> bool {
        u128::from(total_tokens(messages)) * 10 > u128::from(self.max_tokens) * 9
    }

    /// Which messages [`compact`](Self::compact) would fold; `None` when it would leave the conversation alone. For the
    /// caller who wants a model's summary of them: [`transcript`] is the text to show to that model.
    pub fn foldable(&self, messages: &[Message]) -> Option<Range<usize>> {
        let range = self.middle(messages);
        let worth_it = match &messages[range.clone()] {
            [] => false,
            [lone] if lone.role == Role::Assistant && lone.tool_calls.is_empty() => false,
            folded => total_tokens(folded) > SMALLEST_FOLD,
        };
        (worth_it && self.needs_compaction(messages)).then_some(range)
    }

    /// Folds without a summary: what is folded is shortened.
    pub fn compact(&self, messages: &[Message]) -> CompactionResult {
        self.compact_with(messages, None)
    }

    /// Folds, with the summary a model wrote of what [`foldable`](Self::foldable) named. `None`, for when that model could
    /// not be asked, and a blank summary do what [`compact`](Self::compact) does.
    pub fn compact_with(&self, messages: &[Message], summary: Option<&str>) -> CompactionResult {
        let Some(range) = self.foldable(messages) else {
            return CompactionResult { messages: messages.to_vec(), compacted_count: 0, tokens_saved: 0 };
        };
        let folded = &messages[range.clone()];
        let size = total_tokens(folded);
        let kept =
            total_tokens(&messages[..range.start]).saturating_add(total_tokens(&messages[range.end..]));
        let most = |line: u64| {
            let allowed = line.saturating_sub(kept).max(self.max_tokens / 20).max(ALWAYS_ALLOWED);
            let tokens = allowed.min(size - 1);
            usize::try_from(tokens.saturating_mul(CHARS_PER_TOKEN)).unwrap_or(usize::MAX)
        };
        let text = match summary {
            Some(summary) if !is_blank(summary) => cut(summary, most(nine_tenths(self.max_tokens))),
            _ => Cow::Owned(shortened(folded, most(self.max_tokens / 2))),
        };
        let tokens = estimate(chars_of(&text));
        let fold = Message::assistant(text).with_token_count(tokens);

        let mut compacted = messages[..range.start].to_vec();
        compacted.push(fold);
        compacted.extend_from_slice(&messages[range.end..]);
        CompactionResult {
            messages: compacted,
            compacted_count: range.len(),
            tokens_saved: size.saturating_sub(tokens),
        }
    }

    /// What lies between the messages that are always kept.
    fn middle(&self, messages: &[Message]) -> Range<usize> {
        let start = usize::from(messages.first().is_some_and(|first| first.role == Role::System));
        if self.reserve_recent == 0 {
            return start..messages.len();
        }
        let turns: Vec<usize> =
            (start..messages.len()).filter(|&index| messages[index].role == Role::User).collect();
        let first_kept = turns.get(turns.len().saturating_sub(self.reserve_recent));
        start..first_kept.copied().unwrap_or(start)
    }
}

/// The messages as text, one paragraph each, in the form in which a model is asked to summarise them: what was said,
/// which tools were called, and [`COMPACTED`] for what the tools returned.
pub fn transcript(messages: &[Message]) -> String {
    paragraphs(messages, usize::MAX).join("\n")
}

fn paragraphs(messages: &[Message], longest: usize) -> Vec<String> {
    messages.iter().map(|message| paragraph(message, longest)).collect()
}

fn paragraph(message: &Message, longest: usize) -> String {
    let said = cut(&message.content, longest);
    match message.role {
        Role::System => format!("system: {said}"),
        Role::User => format!("user: {said}"),
        Role::Assistant if message.tool_calls.is_empty() => format!("assistant: {said}"),
        Role::Assistant => {
            let names: Vec<&str> = message.tool_calls.iter().map(|call| call.name.as_str()).collect();
            let space = if said.is_empty() { "" } else { " " };
            format!("assistant: {said}{space}[called {}]", names.join(", "))
        }
        Role::Tool => format!("{}: {COMPACTED}", message.name.as_deref().unwrap_or("tool")),
    }
}

/// The transcript in at most `room` characters: with shorter and shorter texts, then with only the newest messages.
pub(crate) fn shortened(messages: &[Message], room: usize) -> String {
    let lengths = std::iter::successors(Some(room / 2), |length| Some(length / 2));
    let texts = std::iter::once(usize::MAX).chain(lengths.take_while(|length| *length >= SHORTEST_TEXT));
    let fits = |text: &String| text.chars().count() <= room;
    texts
        .map(|length| paragraphs(messages, length).join("\n"))
        .find(fits)
        .unwrap_or_else(|| newest(messages, room))
}

fn newest(messages: &[Message], room: usize) -> String {
    let results = messages.iter().any(|message| message.role == Role::Tool);
    // First in the text, so that it survives the hardest cut.
    let mark = if results { COMPACTED } else { "" };
    let head = format!("{mark}… {} earlier messages, the last of them:", messages.len());
    let mut left = room.saturating_sub(head.chars().count());
    let mut lines = Vec::new();
    for line in messages.iter().rev().map(|message| paragraph(message, SHORTEST_TEXT)) {
        let Some(rest) = left.checked_sub(line.chars().count() + 1) else { break };
        left = rest;
        lines.push(line);
    }
    if lines.is_empty() {
        return cut(&head, room).into_owned();
    }
    lines.push(head);
    lines.reverse();
    lines.join("\n")
}

fn is_blank(text: &str) -> bool {
    text.chars().all(|c| matches!(c, ' ' | '\t' | '\r' | '\n'))
}

/// `text` in at most `longest` characters, the last of which is a `…` where something is missing.
fn cut(text: &str, longest: usize) -> Cow<'_, str> {
    let Some(kept) = longest.checked_sub(1) else { return Cow::Borrowed("") };
    let mut ends = text.char_indices().map(|(index, _)| index).skip(kept);
    match (ends.next(), ends.next()) {
        (Some(end), Some(_)) => Cow::Owned(format!("{}…", &text[..end])),
        _ => Cow::Borrowed(text),
    }
}

fn chars_of(text: &str) -> u64 {
    text.chars().count() as u64
}

fn estimate(chars: u64) -> u64 {
    chars.div_ceil(CHARS_PER_TOKEN)
}

fn nine_tenths(tokens: u64) -> u64 {
    // `tokens * 9 / 10` without the overflow.
    tokens - tokens.div_ceil(10)
}
