//! The files at the beginning and at the end of a turn. The walk at the beginning runs beside the first request; nothing is
//! changed before it is complete, so that it is the state before anything happened.

use std::sync::{Arc, Mutex, PoisonError};

use hanzo_protocol::ids::{CheckpointId, ItemId, ThreadId, TurnId};
use hanzo_protocol::item::NoticeLevel;
use hanzo_protocol::primitives::ContentHash;
use hanzo_store::{Checkpointer, LeftOut, Moment, RestoreOptions, Restored, Store, StoreError};
use tokio::task::JoinHandle;

use super::calls::Calls;

/// What would be done, what the checkpoint does not have, and how much more of that there is.
pub(crate) type Preview = (Restored, Vec<LeftOut>, u64);

/// Makes the checkpoints of a thread.
pub(crate) struct Checkpoints {
    thread: ThreadId,
    store: Arc<dyn Store>,
    maker: Option<Maker>,
    begun: Option<JoinHandle<()>>,
}

#[derive(Clone)]
struct Maker {
    checkpointer: Checkpointer,
    workspace: std::path::PathBuf,
    /// The newest checkpoint of this thread.
    last: Arc<Mutex<Option<(CheckpointId, ContentHash)>>>,
}

impl Checkpoints {
    pub(crate) fn new(
        thread: ThreadId,
        store: Arc<dyn Store>,
        workspace: &std::path::Path,
        checkpointer: Option<Checkpointer>,
    ) -> Self {
        let workspace = workspace.to_owned();
        let maker = checkpointer.map(|checkpointer| Maker { checkpointer, workspace, last: Arc::default() });
        Self { thread, store, maker, begun: None }
    }

    /// Begins the checkpoint of a turn's start; `after` is the last item before the turn.
    pub(crate) fn begin(&mut self, turn: Option<TurnId>, after: Option<ItemId>, calls: &Arc<Calls>) {
        let Some(maker) = self.maker.clone() else { return };
        let (thread, store, calls) = (self.thread, Arc::clone(&self.store), Arc::clone(calls));
        calls.writable.send_replace(false);
        self.begun = Some(tokio::spawn(async move {
            let _open = Open(Arc::clone(&calls));
            if let Err(error) = maker.make(thread, turn, Moment::TurnStart, after, store.as_ref()).await {
                let text = format!("the files cannot be taken back to before this turn: {error}");
                calls.journal.notice(NoticeLevel::Warning, text);
            }
        }));
    }

    /// The state at the end of a turn. When nothing was changed it is that of its beginning, if that is known yet.
    pub(crate) async fn end(
        &mut self,
        turn: Option<TurnId>,
        after: Option<ItemId>,
        changed: Changed,
    ) -> Result<Option<CheckpointId>, StoreError> {
        let Some(maker) = &self.maker else { return Ok(None) };
        let begun = self.begun.take();
        match changed {
            Changed::Nothing => {
                let done = begun.is_none_or(|begun| begun.is_finished());
                Ok(if done { maker.last().map(|(id, _)| id) } else { None })
            }
            Changed::Something => {
                if let Some(begun) = begun {
                    // It reported its own failure.
                    let _ = begun.await;
                }
                maker.make(self.thread, turn, Moment::TurnEnd, after, self.store.as_ref()).await.map(Some)
            }
        }
    }

    /// Takes the files back.
    pub(crate) async fn restore(&self, to: ContentHash) -> Result<Option<Restored>, StoreError> {
        let Some(maker) = &self.maker else { return Ok(None) };
        let since = maker.last().map(|(_, manifest)| manifest);
        let restored = maker.checkpointer.restore(to, since, RestoreOptions::default()).await?;
        // The next rewind goes on from here: what this one did is nobody else's change.
        let now = maker.checkpointer.take().await?.manifest;
        if let Some((_, last)) = maker.last.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            *last = now;
        }
        Ok(Some(restored))
    }

    /// What taking the files back would do.
    pub(crate) async fn preview(&self, to: ContentHash) -> Result<Option<Preview>, StoreError> {
        let Some(maker) = &self.maker else { return Ok(None) };
        let since = maker.last().map(|(_, manifest)| manifest);
        maker.checkpointer.preview(to, since).await.map(Some)
    }
}

/// Whether a turn may have changed files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Changed {
    Nothing,
    Something,
}

impl Maker {
    async fn make(
        &self,
        thread: ThreadId,
        turn: Option<TurnId>,
        moment: Moment,
        after: Option<ItemId>,
        store: &dyn Store,
    ) -> Result<CheckpointId, StoreError> {
        if self.last().is_none()
            && let Some(earlier) = store.last_checkpoint(self.workspace.clone()).await?
        {
            self.checkpointer.resume(earlier.manifest).await;
        }
        let checkpoint = self.checkpointer.take().await?;
        let record = checkpoint.record(thread, turn, moment, &self.workspace, after);
        let id = record.id;
        store.save_checkpoint(record).await?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some((id, checkpoint.manifest));
        Ok(id)
    }

    fn last(&self) -> Option<(CheckpointId, ContentHash)> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Lets files be changed again when it is dropped, however the walk ended.
struct Open(Arc<Calls>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.writable.send_replace(true);
    }
}
