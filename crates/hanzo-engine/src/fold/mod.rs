//! Folds a thread's older work into a digest when it comes near to the model's window (seed 004 §3.6, conflict C8).
//!
//! Everything here is pure: the engine asks [`Limits`] whether it is time, [`plan`] what to fold, sends
//! [`Plan::request`] to the thread's own model, and [`Plan::finish`] says what becomes of the items, with the model's
//! summary or, when there is none, by deterministic truncation. Only then is anything stored, in one transaction:
//! [`Folded::ids`] turn [`Folded`](Visibility::Folded), and a compaction item is appended. A crash before leaves the
//! original, a crash after leaves the digest.
//!
//! # What folds
//!
//! Work folds: what the agent said and thought, its calls and their results, fragments. What the user said stays
//! verbatim for ever, and so do earlier digests; a single message that is too big to be a brief folds with the work.
//! The recent tail stays. Instructions live in the system message and in fragments of their own kind, and are the same
//! bytes before and after.
//!
//! One thing is stronger than "for ever": a window is finite. When what is pinned would take more than half of it, the
//! oldest digests are folded together, and only when there are none left, the oldest user messages. The originals stay
//! readable in the store either way.

use std::collections::HashSet;

use hanzo_protocol::ids::ItemId;
use hanzo_protocol::item::{Item, ItemContent, Visibility};
use hanzo_protocol::message::{Message, ModelRequest};

use crate::tokens::{Estimator, Size};

mod digest;
mod select;

pub use digest::DIGEST_INSTRUCTIONS;

/// Fragments of this kind are standing instructions and never fold.
pub const INSTRUCTIONS_KIND: &str = "instructions";
/// Of fragments of this kind the newest stays.
pub const ENVIRONMENT_KIND: &str = "environment";

/// The share of the window at which work is folded whatever else holds, on the estimate of the next request.
const FORCE_RATIO: f64 = 0.9;
const DEFAULT_RATIO: f64 = 0.8;
/// What `/compact` goes by when nobody said how large the window is.
const ASSUMED_WINDOW: u64 = 128_000;

/// When and how far a thread's work is folded. All numbers are tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    window: u64,
    line: u64,
    force_line: u64,
    /// What the window leaves for items.
    room: u64,
}

impl Limits {
    /// The limits of a model with this window; `None`, which is never, when the window is not known or 0 (C9).
    /// A ratio that makes no sense is taken for the default.
    pub fn new(window: Option<u64>, compact_ratio: f64) -> Option<Self> {
        let window = window.filter(|window| *window > 0)?;
        let ratio = if compact_ratio > 0.0 && compact_ratio <= 1.0 { compact_ratio } else { DEFAULT_RATIO };
        Some(Self {
            window,
            line: share(window, ratio),
            force_line: share(window, FORCE_RATIO),
            room: window,
        })
    }

    /// The limits for a fold the user asked for, which needs no known window.
    pub fn for_request(window: Option<u64>) -> Self {
        let window = window.filter(|window| *window > 0).unwrap_or(ASSUMED_WINDOW);
        Self {
            window,
            line: share(window, DEFAULT_RATIO),
            force_line: share(window, FORCE_RATIO),
            room: window,
        }
    }

    /// The model's window.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// Whether to fold before the next turn: the last prompt the vendor reported has reached the line.
    pub fn due_before_turn(&self, reported: u64) -> bool {
        reported >= self.line
    }

    /// Whether to fold before this very request: its estimate, the incoming message included, exceeds the force line.
    pub fn due_before_request(&self, estimate: u64) -> bool {
        estimate > self.force_line
    }

    /// The same limits when the system message and the tools take `fixed`: large instructions in a small window must not
    /// leave a tail that is all there is room for.
    fn beside(mut self, fixed: u64) -> Self {
        self.room = self.window.saturating_sub(fixed).max(self.window / 8);
        self
    }

    /// What the recent tail may take.
    fn tail(&self) -> u64 {
        self.room * 3 / 20
    }

    /// What a user message may take to be kept as a brief.
    fn pin(&self) -> u64 {
        (self.room / 20).clamp(64, 8_000)
    }

    /// What a message may take to be kept only because it is the newest.
    fn newest_pin(&self) -> u64 {
        self.room / 3
    }

    /// What everything pinned may take together.
    fn pins(&self) -> u64 {
        self.room / 2
    }
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a window of a few million tokens"
)]
fn share(window: u64, ratio: f64) -> u64 {
    (window as f64 * ratio) as u64
}

/// Why a fold is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// A line was crossed.
    Due,
    /// The user asked for it, so that less is kept of the tail.
    Asked,
    /// The vendor refused the request as too long: nothing is kept that need not be. Not stopped by the rule that
    /// something must have been added since the last fold; each one makes the thread strictly smaller.
    Overflow,
}

/// What to fold, and with which room.
#[derive(Debug, Clone)]
pub struct Plan {
    folded: Vec<Item>,
    standing: Option<Item>,
    before: Option<ItemId>,
    tokens_before: u64,
    tokens_folded: u64,
    digest_tokens: u64,
    window: u64,
    estimator: Estimator,
}

/// A fold that is ready to be applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The items that become [`Visibility::Folded`].
    pub ids: Vec<ItemId>,
    /// What stands in their place.
    pub digest: String,
    /// The item before which the digest is told; `None` is the end.
    pub before: Option<ItemId>,
    /// What the next request would have taken.
    pub tokens_before: u64,
    /// What it takes now; always less.
    pub tokens_after: u64,
    /// Who wrote the digest.
    pub by: DigestBy,
}

/// Who wrote a digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DigestBy {
    /// The thread's own model.
    Model,
    /// Nobody: the work was shortened.
    Truncation,
}

impl Folded {
    /// The content of the compaction item to append.
    pub fn content(&self) -> ItemContent {
        ItemContent::Compaction {
            digest: self.digest.clone(),
            folded: self.ids.len() as u64,
            tokens_saved: self.tokens_before - self.tokens_after,
            before: self.before,
        }
    }
}

/// What to fold of a thread's items, in the order in which the model is told them; `None` when there is nothing that is
/// worth it, or nothing was added since the last fold. `fixed` is what the system message and the tools take, in tokens.
pub fn plan(
    items: &[Item],
    limits: &Limits,
    estimator: &Estimator,
    fixed: u64,
    cause: Cause,
) -> Option<Plan> {
    let selection = select::select(items, &limits.beside(fixed), estimator, cause)?;
    let visible = items.iter().filter(|item| item.visibility == Visibility::Active);
    let tokens_before = estimator.tokens(visible.map(Size::of_item).sum()).saturating_add(fixed);
    Some(Plan {
        folded: selection.folded.iter().map(|&index| items[index].clone()).collect(),
        standing: selection.plan.map(|index| items[index].clone()),
        before: selection.before,
        tokens_before,
        tokens_folded: selection.tokens_folded,
        digest_tokens: selection.digest_tokens,
        window: limits.window,
        estimator: *estimator,
    })
}

impl Plan {
    /// How many items fold.
    pub fn len(&self) -> usize {
        self.folded.len()
    }

    /// Never: a plan without items is not made.
    pub fn is_empty(&self) -> bool {
        self.folded.is_empty()
    }

    /// The items that fold, for the archive.
    pub fn items(&self) -> &[Item] {
        &self.folded
    }

    /// What the thread's own model is asked: a summary of what folds, without tools. It fits the model's window.
    pub fn request(&self, model: impl Into<String>) -> ModelRequest {
        // The answer's own room and the instructions come off.
        let room = self.estimator.bytes(self.window * 3 / 5).min(digest::LARGEST_TRANSCRIPT);
        ModelRequest {
            model: model.into(),
            messages: vec![
                Message::system(DIGEST_INSTRUCTIONS),
                Message::user(digest::question(&self.folded, room, self.digest_tokens)),
            ],
            // Room for a model that thinks first: an answer cut off in its thoughts would be no answer.
            max_tokens: Some((self.digest_tokens * 2).max(self.window / 8).clamp(64, 16_000)),
            ..ModelRequest::default()
        }
    }

    /// What becomes of the items, with the summary the model wrote; `None` as the summary when it could not be asked. A
    /// summary that is blank is no summary, and one that is not smaller than what it replaces is not used. `None` when
    /// the thread would not become smaller: then nothing is applied.
    pub fn finish(&self, summary: Option<&str>) -> Option<Folded> {
        let written = summary.map(str::trim).filter(|summary| !summary.is_empty());
        written
            .and_then(|summary| self.with(summary, DigestBy::Model))
            .or_else(|| self.with("", DigestBy::Truncation))
    }

    fn with(&self, summary: &str, by: DigestBy) -> Option<Folded> {
        let room = self.estimator.bytes(self.digest_tokens);
        let digest = digest::write(&self.folded, self.standing.as_ref(), summary, by, room);
        let ids: Vec<ItemId> = self.folded.iter().map(|item| item.id).collect();
        let tokens = self.estimator.tokens(Size::of_text(&digest)) + self.framing();
        let tokens_after = self.tokens_before.checked_sub(self.tokens_folded)?.checked_add(tokens)?;
        (tokens_after < self.tokens_before).then_some(Folded {
            ids,
            digest,
            before: self.before,
            tokens_before: self.tokens_before,
            tokens_after,
            by,
        })
    }

    /// What a compaction item takes beside its text, and the rounding of the sums.
    fn framing(&self) -> u64 {
        self.estimator.tokens(Size::of_message(&digest_message(""))) + 1
    }
}

/// Applies a fold to the items in memory: the folded ones go, and `compaction`, which holds [`Folded::content`], takes its
/// place.
pub fn apply(items: &mut Vec<Item>, folded: &Folded, compaction: Item) {
    let gone: HashSet<ItemId> = folded.ids.iter().copied().collect();
    items.retain(|item| !gone.contains(&item.id));
    let place = folded.before.and_then(|before| items.iter().position(|item| item.id == before));
    items.insert(place.unwrap_or(items.len()), compaction);
}

/// Puts active items, read from the store in the order in which they were appended, into the order in which the model is
/// told them: each digest before the tail it was made for.
pub fn arrange(items: Vec<Item>) -> Vec<Item> {
    let moved = |item: &Item| matches!(item.content, ItemContent::Compaction { before: Some(_), .. });
    if !items.iter().any(moved) {
        return items;
    }
    let (digests, mut arranged): (Vec<Item>, Vec<Item>) = items.into_iter().partition(moved);
    for digest in digests {
        let ItemContent::Compaction { before: Some(before), .. } = digest.content else { continue };
        let is_digest = |item: &Item| matches!(item.content, ItemContent::Compaction { .. });
        let exact = arranged.iter().position(|item| item.id == before);
        // That item has been folded since: ids sort by the moment they were made, and digests stay in their order.
        let comes_later = |item: &Item| if is_digest(item) { item.id > digest.id } else { item.id >= before };
        let later = || arranged.iter().position(comes_later);
        let place = exact.or_else(later).unwrap_or(arranged.len());
        arranged.insert(place, digest);
    }
    arranged
}

/// A digest as the model is told it.
pub fn digest_message(digest: &str) -> Message {
    Message::user(format!("<digest>\n{digest}\n</digest>"))
}
