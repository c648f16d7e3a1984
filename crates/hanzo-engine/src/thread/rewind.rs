//! Taking a thread back to a checkpoint.

use hanzo_protocol::engine::{EngineError, EngineErrorKind, Mode, NotRewound, RewindPreview, RewindWhat};
use hanzo_protocol::ids::{CheckpointId, ItemId};
use hanzo_protocol::item::{BreakReason, Item, ItemContent, NoticeLevel, Visibility};
use hanzo_store::{CheckpointRecord, ItemQuery, LeftOutWhy};

use super::journal::Beside;
use super::open::store_failed;
use super::state::Thread;
use crate::fold;
use crate::parts::refuse;

/// How many of the files that a checkpoint does not have are named.
const NAMED: usize = 100;

impl Thread {
    async fn own_checkpoint(&self, id: CheckpointId) -> Result<CheckpointRecord, EngineError> {
        let checkpoint = self.journal.store.checkpoint(id).await.map_err(store_failed)?;
        checkpoint
            .filter(|checkpoint| checkpoint.thread == self.id)
            .ok_or_else(|| refuse(EngineErrorKind::NotFound, format!("this thread has no checkpoint `{id}`")))
    }

    /// What taking the files back to a checkpoint would do.
    pub(crate) async fn preview(&self, to: CheckpointId) -> Result<RewindPreview, EngineError> {
        let checkpoint = self.own_checkpoint(to).await?;
        let previewed = self.checkpoints.preview(checkpoint.manifest).await.map_err(store_failed)?;
        let (would, left_out, more) = previewed.ok_or_else(not_kept)?;
        let beyond = left_out.len().saturating_sub(NAMED) as u64;
        let reason = |why| {
            match why {
                LeftOutWhy::Ignored => "ignored",
                LeftOutWhy::TooLarge => "too large",
                LeftOutWhy::Unreadable => "unreadable",
                LeftOutWhy::Name => "its name is not Unicode",
                LeftOutWhy::Special => "not a file",
                LeftOutWhy::TooMany => "too many files",
                _ => "it took too long",
            }
            .to_owned()
        };
        Ok(RewindPreview {
            written: would.written,
            removed: would.removed,
            kept: would
                .kept
                .into_iter()
                .map(|kept| NotRewound { path: kept.path, reason: kept.reason })
                .collect(),
            left_out: left_out
                .into_iter()
                .take(NAMED)
                .map(|left| NotRewound { path: left.path, reason: reason(left.why) })
                .collect(),
            left_out_more: more + beyond,
        })
    }

    /// Takes conversation, files or both back to a checkpoint. Nothing is deleted.
    pub(crate) async fn rewind(&mut self, to: CheckpointId, what: RewindWhat) -> Result<(), EngineError> {
        let checkpoint = self.own_checkpoint(to).await?;
        if matches!(what, RewindWhat::Files | RewindWhat::Both) {
            let restored = self.checkpoints.restore(checkpoint.manifest).await.map_err(store_failed)?;
            let restored = restored.ok_or_else(not_kept)?;
            if !restored.kept.is_empty() {
                let named: Vec<String> = restored
                    .kept
                    .iter()
                    .take(10)
                    .map(|kept| format!("`{}` ({})", kept.path, kept.reason))
                    .collect();
                let count = restored.kept.len();
                let text = format!("{count} files were left as they are: {}", named.join(", "));
                self.journal.notice(NoticeLevel::Warning, text);
            }
        }
        if matches!(what, RewindWhat::Conversation | RewindWhat::Both) {
            self.rewind_conversation(checkpoint.after).await?;
        }
        Ok(())
    }

    async fn rewind_conversation(&mut self, after: Option<ItemId>) -> Result<(), EngineError> {
        let page = self.journal.store.items(ItemQuery::all(self.id)).await.map_err(store_failed)?;
        let mut items: Vec<Item> = page.entries.into_iter().map(|stored| stored.item).collect();
        let visibility = rewound(&mut items, after);
        let beside = Beside { visibility, ..Beside::default() };
        let text = "the conversation was taken back to an earlier point".to_owned();
        let notice = self.item(ItemContent::Notice { level: NoticeLevel::Info, text });
        let broken = self.item(ItemContent::PrefixBreak { reason: BreakReason::Rewind });
        self.journal.write(&[notice, broken], beside).await.map_err(store_failed)?;
        items.retain(|item| item.visibility == Visibility::Active);
        self.surroundings = None;
        self.told_mode = Mode::Normal;
        self.reported = 0;
        self.rebuild(&fold::arrange(items)).await;
        Ok(())
    }
}

fn not_kept() -> EngineError {
    refuse(EngineErrorKind::Conflict, "the files of this thread are not kept, so they cannot be taken back")
}

/// Changes what the model sees to what it saw just after `after`: later items go, and what only a later fold took away comes
/// back. Returns the changes.
fn rewound(items: &mut [Item], after: Option<ItemId>) -> Vec<(ItemId, Visibility)> {
    let kept = after.map_or(0, |after| items.iter().take_while(|item| item.id <= after).count());
    let (before, later) = items.split_at_mut(kept);
    let folded_later = later.iter().any(|item| matches!(item.content, ItemContent::Compaction { .. }));
    // What an earlier fold took away stays away: everything before the tail it left.
    let tail = before.iter().rev().find_map(|item| match &item.content {
        ItemContent::Compaction { before, .. } if item.visibility != Visibility::Rewound => Some(*before),
        _ => None,
    });
    let mut changes = Vec::new();
    for item in later.iter_mut().filter(|item| item.visibility != Visibility::Rewound) {
        item.visibility = Visibility::Rewound;
        changes.push((item.id, Visibility::Rewound));
    }
    for item in before.iter_mut().filter(|item| folded_later && item.visibility == Visibility::Folded) {
        let in_tail = match tail {
            None => true,
            Some(first) => first.is_some_and(|first| item.id >= first),
        };
        if in_tail {
            item.visibility = Visibility::Active;
            changes.push((item.id, Visibility::Active));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use hanzo_protocol::ids::ThreadId;

    use super::super::state::new_item;
    use super::*;

    fn said(text: &str, visibility: Visibility) -> Item {
        let content = ItemContent::AgentMessage { text: text.into() };
        Item { visibility, ..new_item(ThreadId::new(), None, content) }
    }

    #[test]
    fn what_came_later_goes_and_what_only_a_later_fold_took_comes_back() {
        let mut items =
            vec![said("a", Visibility::Folded), said("b", Visibility::Active), said("c", Visibility::Active)];
        let until = items[1].id;
        let digest =
            ItemContent::Compaction { digest: "a".into(), folded: 1, tokens_saved: 1, before: Some(until) };
        items.push(new_item(ThreadId::new(), None, digest));
        rewound(&mut items, Some(until));
        let seen: Vec<Visibility> = items.iter().map(|item| item.visibility).collect();
        assert_eq!(
            seen,
            [Visibility::Active, Visibility::Active, Visibility::Rewound, Visibility::Rewound],
            "nothing is folded any more, because the fold is taken back"
        );
        assert!(rewound(&mut items, Some(until)).is_empty(), "a second time changes nothing");
    }

    #[test]
    fn to_the_very_beginning_everything_goes() {
        let mut items = vec![said("a", Visibility::Active), said("b", Visibility::Folded)];
        assert_eq!(rewound(&mut items, None).len(), 2);
    }
}
