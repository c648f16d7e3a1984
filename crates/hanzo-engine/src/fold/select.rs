//! Which items fold: what is pinned, where the tail begins, and how much room the digest gets.

use hanzo_protocol::ids::ItemId;
use hanzo_protocol::item::{Item, ItemContent, Visibility};

use super::{Cause, ENVIRONMENT_KIND, INSTRUCTIONS_KIND, Limits};
use crate::tokens::{Estimator, Size};

/// Less than this is not worth breaking the prompt's prefix for.
const SMALLEST_FOLD: u64 = 48;

pub(super) struct Selection {
    /// Indices of the items that fold, in order.
    pub folded: Vec<usize>,
    /// The first item that is kept behind them.
    pub before: Option<ItemId>,
    pub tokens_folded: u64,
    /// What the digest may take.
    pub digest_tokens: u64,
    /// The plan as it stands, when the call that made it folds.
    pub plan: Option<usize>,
}

/// What an item is to a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    /// The model does not see it.
    Aside,
    /// Stays verbatim.
    Pinned(Pin),
    /// Folds when it is old enough.
    Work,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pin {
    User,
    Digest,
    Standing,
}

struct View<'a> {
    items: &'a [Item],
    classes: Vec<Class>,
    tokens: Vec<u64>,
}

pub(super) fn select(
    items: &[Item],
    limits: &Limits,
    estimator: &Estimator,
    cause: Cause,
) -> Option<Selection> {
    let tokens: Vec<u64> = items.iter().map(|item| estimator.tokens(Size::of_item(item))).collect();
    let view = View { classes: classify(items, &tokens, limits), items, tokens };
    if cause != Cause::Overflow && !view.work_since_last_fold() {
        return None;
    }
    let boundary = view.boundary(limits, cause);
    let mut folded: Vec<usize> = (0..boundary).filter(|&index| view.classes[index] == Class::Work).collect();
    if folded.is_empty() {
        return None;
    }
    let pins = view.release_pins(&mut folded, boundary, limits);
    folded.sort_unstable();
    // Sums of estimates that were each rounded up; rounding once is what the request does.
    let tokens_folded = estimator.tokens(folded.iter().map(|&index| Size::of_item(&items[index])).sum());
    if tokens_folded < SMALLEST_FOLD {
        return None;
    }
    // Digests are told in the order they were made, also when what folds lies before the last one.
    let is_digest = |item: &Item| matches!(item.content, ItemContent::Compaction { .. });
    let after_digests = items.iter().rposition(is_digest).map_or(0, |index| index + 1);
    let before = items.get(boundary.max(after_digests)).map(|item| item.id);
    let plan = items.iter().rposition(is_plan).filter(|index| *index < boundary);
    Some(Selection {
        plan,
        folded,
        before,
        tokens_folded,
        digest_tokens: digest_room(limits, pins, tokens_folded),
    })
}

/// A digest gets an eighth of what is free for things that stay, so that many of them fit before any must be folded
/// again; and never more than half of what it replaces.
fn digest_room(limits: &Limits, pins: u64, folded: u64) -> u64 {
    let free = limits.pins().saturating_sub(pins);
    (free / 8).clamp(limits.room / 64, limits.room / 16).max(24).min(folded / 2)
}

fn classify(items: &[Item], tokens: &[u64], limits: &Limits) -> Vec<Class> {
    let newest = |wanted: &dyn Fn(&ItemContent) -> bool| {
        items.iter().rposition(|item| item.visibility == Visibility::Active && wanted(&item.content))
    };
    let newest_user = newest(&|content| matches!(content, ItemContent::UserMessage { .. }));
    let newest_plan = items.iter().rposition(is_plan);
    let newest_environment =
        newest(&|content| matches!(content, ItemContent::Fragment { kind, .. } if kind == ENVIRONMENT_KIND));
    let class = |(index, item): (usize, &Item)| {
        if item.visibility != Visibility::Active {
            return Class::Aside;
        }
        let here = Some(index);
        match &item.content {
            ItemContent::UserMessage { .. } => {
                let most = if here == newest_user { limits.newest_pin() } else { limits.pin() };
                if tokens[index] <= most { Class::Pinned(Pin::User) } else { Class::Work }
            }
            ItemContent::Compaction { .. } => Class::Pinned(Pin::Digest),
            ItemContent::Fragment { kind, .. } if kind == INSTRUCTIONS_KIND => Class::Pinned(Pin::Standing),
            ItemContent::Fragment { .. } if here == newest_environment => Class::Pinned(Pin::Standing),
            // The model saw it as a call of its own; the newest is also quoted by the digest.
            ItemContent::Plan { .. } if here == newest_plan => Class::Aside,
            ItemContent::AgentMessage { .. }
            | ItemContent::Reasoning(_)
            | ItemContent::ToolCall(_)
            | ItemContent::Plan { .. }
            | ItemContent::Question(_)
            | ItemContent::Fragment { .. } => Class::Work,
            _ => Class::Aside,
        }
    };
    items.iter().enumerate().map(class).collect()
}

impl View<'_> {
    /// Whether there is work newer than the last digest. Ids sort by the moment they were made.
    fn work_since_last_fold(&self) -> bool {
        let digests = self.items.iter().filter(|item| {
            item.visibility == Visibility::Active && matches!(item.content, ItemContent::Compaction { .. })
        });
        let Some(last) = digests.map(|item| item.id).max() else { return true };
        (0..self.items.len()).any(|index| {
            self.classes[index] == Class::Work && self.tokens[index] > 0 && self.items[index].id > last
        })
    }

    /// Where the tail begins: nothing before it that is work stays, everything from it on does.
    fn boundary(&self, limits: &Limits, cause: Cause) -> usize {
        let end = self.items.iter().position(is_open_call).unwrap_or(self.items.len());
        // What is left of the work from an index on.
        let mut rest = vec![0; self.items.len() + 1];
        for index in (0..self.items.len()).rev() {
            let work = if self.classes[index] == Class::Work { self.tokens[index] } else { 0 };
            rest[index] = rest[index + 1] + work;
        }
        let (tail, last_step) = match cause {
            Cause::Due => (limits.tail(), limits.newest_pin()),
            Cause::Asked => (limits.tail().min(rest[0] / 4), limits.newest_pin()),
            Cause::Overflow => (limits.tail() / 4, limits.tail() / 4),
        };
        let fits = |index: &usize| rest[*index] <= tail && rest[*index] > 0;
        let cuts = self.cuts();
        let clean = || (0..end).filter(|&index| cuts[index] == Cut::Clean);
        clean()
            .find(fits)
            .or_else(|| clean().next_back().filter(|&index| rest[index] > 0 && rest[index] <= last_step))
            .or_else(|| (0..end).filter(|&index| cuts[index] != Cut::Never).find(fits))
            .unwrap_or(end)
    }

    /// Whether the tail may begin with each item. A call and its result are one item, so no result can be orphaned; but
    /// a step (thoughts, words, calls made at the same moment) is one message to the vendor, and one that signs its
    /// thoughts wants them back with the calls they led to.
    fn cuts(&self) -> Vec<Cut> {
        let mut cuts = Vec::with_capacity(self.items.len());
        let mut previous: Option<&Item> = None;
        for (item, class) in self.items.iter().zip(&self.classes) {
            if *class == Class::Aside {
                cuts.push(Cut::Never);
                continue;
            }
            cuts.push(previous.map_or(Cut::Clean, |previous| Cut::between(previous, item)));
            previous = Some(item);
        }
        cuts
    }

    /// Unpins the oldest digests, then the oldest user messages, while what is pinned takes more than its share. Returns
    /// what stays pinned.
    fn release_pins(&self, folded: &mut Vec<usize>, boundary: usize, limits: &Limits) -> u64 {
        let pinned = |wanted: &[Pin]| {
            (0..self.items.len())
                .filter(|&index| matches!(self.classes[index], Class::Pinned(pin) if wanted.contains(&pin)))
                .collect::<Vec<_>>()
        };
        let mut total: u64 =
            pinned(&[Pin::User, Pin::Digest, Pin::Standing]).iter().map(|&index| self.tokens[index]).sum();
        if total <= limits.pins() {
            return total;
        }
        // Well below the share, or the next fold would have to do it again.
        let goal = limits.pins() * 3 / 4;
        let newest_user = pinned(&[Pin::User]).last().copied();
        for wanted in [Pin::Digest, Pin::User] {
            for index in pinned(&[wanted]) {
                if total <= goal {
                    return total;
                }
                if index < boundary && Some(index) != newest_user {
                    total -= self.tokens[index];
                    folded.push(index);
                }
            }
        }
        total
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// Between two steps.
    Clean,
    /// Between two calls of one step, whose thoughts would be lost; better than keeping it all.
    Rough,
    /// Inside one message.
    Never,
}

impl Cut {
    fn between(previous: &Item, item: &Item) -> Self {
        if previous.turn_id != item.turn_id {
            return Self::Clean;
        }
        let said = |item: &Item| {
            matches!(item.content, ItemContent::AgentMessage { .. } | ItemContent::Reasoning(_))
        };
        let call = |item: &Item| matches!(item.content, ItemContent::ToolCall(_));
        if said(previous) && (said(item) || call(item)) {
            Self::Never
        } else if call(previous) && call(item) && previous.created_at == item.created_at {
            Self::Rough
        } else {
            Self::Clean
        }
    }
}

fn is_open_call(item: &Item) -> bool {
    item.visibility == Visibility::Active
        && matches!(&item.content, ItemContent::ToolCall(call) if !call.status.is_final())
}

fn is_plan(item: &Item) -> bool {
    item.visibility == Visibility::Active && matches!(item.content, ItemContent::Plan { .. })
}
