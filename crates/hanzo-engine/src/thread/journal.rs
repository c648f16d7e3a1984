//! What a thread keeps and tells: an item is committed first and told then, so that whatever a face has seen completed is
//! there after a crash.

use std::sync::{Arc, Mutex, PoisonError};

use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::{ItemId, ThreadId, TurnId};
use hanzo_protocol::item::{Item, ItemContent, NoticeLevel, Visibility};
use hanzo_protocol::usage::{Cost, Usage};
use hanzo_store::{AuditBuffer, AuditEntry, Batch, Durability, Store, StoreError, StoredItem, ThreadChange};

use super::hub::{Held, Hub};

/// Writes one thread's items.
pub(crate) struct Journal {
    pub(crate) thread: ThreadId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) hub: Arc<Hub>,
    /// Where the audit of a thread that is forgotten is kept all the same.
    books: Option<Books>,
    last: Mutex<Option<ItemId>>,
    turn: Mutex<Option<TurnId>>,
}

/// The audit of a thread that is forgotten.
struct Books {
    store: Arc<dyn Store>,
    /// Entries of what only looked, which are written together.
    buffer: AuditBuffer,
}

/// What is committed together with items.
#[derive(Default)]
pub(crate) struct Beside {
    pub(crate) audit: Vec<AuditEntry>,
    pub(crate) usage: Option<(Usage, Option<Cost>)>,
    pub(crate) visibility: Vec<(ItemId, Visibility)>,
    pub(crate) durability: Durability,
}

impl Journal {
    /// The journal of a thread whose newest item is `last`.
    pub(crate) fn new(thread: ThreadId, store: Arc<dyn Store>, hub: Arc<Hub>, last: Option<ItemId>) -> Self {
        Self { thread, store, hub, books: None, last: Mutex::new(last), turn: Mutex::default() }
    }

    /// The same journal, whose audit goes to `books` as well.
    #[must_use]
    pub(crate) fn with_books(mut self, books: Option<Arc<dyn Store>>) -> Self {
        self.books = books.map(|store| Books { buffer: AuditBuffer::new(Arc::clone(&store)), store });
        self
    }

    /// Whether nothing of the thread is kept but its audit.
    pub(crate) fn is_forgotten(&self) -> bool {
        self.books.is_some()
    }

    /// Keeps audit entries at once, where nothing else is kept.
    pub(crate) async fn audit(&self, entries: Vec<AuditEntry>) -> Result<(), StoreError> {
        match &self.books {
            Some(books) => books.store.append_audit(entries.into()).await,
            None => Ok(()),
        }
    }

    /// Tells of an item that is not kept, if it is told; its audit entries are written with others, soon.
    pub(crate) fn tell(&self, item: Option<Item>, audit: Vec<AuditEntry>) {
        if let Some(books) = &self.books {
            for entry in audit {
                books.buffer.push(entry);
            }
        }
        if let Some(item) = item {
            self.hub.emit(told(item));
        }
    }

    /// Waits while too much waits to be written.
    pub(crate) async fn room(&self) {
        if let Some(books) = &self.books {
            books.buffer.room().await;
        }
    }

    /// Writes what waits to be written.
    pub(crate) async fn flush(&self) {
        if let Some(books) = &self.books
            && let Err(error) = books.buffer.flush().await
        {
            self.notice(NoticeLevel::Error, format!("audit records could not be written: {error}"));
        }
    }

    /// The running turn.
    pub(crate) fn turn(&self) -> Option<TurnId> {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another turn runs, or none.
    pub(crate) fn set_turn(&self, turn: Option<TurnId>) {
        *self.turn.lock().unwrap_or_else(PoisonError::into_inner) = turn;
    }

    /// The newest item.
    pub(crate) fn last_item(&self) -> Option<ItemId> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Commits items in one transaction and tells of each.
    pub(crate) async fn write(&self, items: &[Item], beside: Beside) -> Result<(), StoreError> {
        let held: Vec<Held<'_>> = items.iter().map(|_| self.hub.hold()).collect();
        let stored =
            |(item, held): (&Item, &Held<'_>)| StoredItem { item: item.clone(), cursor: held.cursor() };
        let kept = items.iter().zip(&held).map(stored).collect();
        self.commit(kept, beside).await?;
        let newest = items.iter().map(|item| item.id).max();
        // Ids grow with time; a call that ends late is not newer for it.
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last = (*last).max(newest);
        drop(last);
        for (item, held) in items.iter().zip(held) {
            held.emit(told(item.clone()));
        }
        Ok(())
    }

    /// Commits an item that changed without being over, and tells nobody.
    pub(crate) async fn update(&self, item: Item, beside: Beside) -> Result<(), StoreError> {
        let cursor = self.hub.last();
        self.commit(vec![StoredItem { item, cursor }], beside).await
    }

    async fn commit(&self, items: Vec<StoredItem>, beside: Beside) -> Result<(), StoreError> {
        let Beside { audit, usage, visibility, durability } = beside;
        if let Some(books) = self.books.as_ref().filter(|_| !audit.is_empty()) {
            books.store.append_audit(audit.clone().into()).await?;
        }
        let batch = Batch {
            items,
            audit,
            usage,
            visibility,
            durability,
            cursor: self.hub.mark(),
            ..Batch::new(self.thread)
        };
        self.store.commit(batch).await
    }

    /// Lets the store know how far notifications have been counted, when it is time.
    pub(crate) async fn keep_count(&self) -> Result<(), StoreError> {
        if self.hub.mark_is_due() {
            let change = ThreadChange { cursor: Some(self.hub.mark()), ..ThreadChange::default() };
            self.store.update_thread(self.thread, change).await?;
        }
        Ok(())
    }

    /// Tells everybody something the user should know.
    pub(crate) fn notice(&self, level: NoticeLevel, text: impl Into<String>) {
        self.hub.emit(EventContent::Notice { level, text: text.into() });
    }
}

/// The notification of a committed item.
pub(crate) fn told(item: Item) -> EventContent {
    if is_open(&item) { EventContent::ItemStarted { item } } else { EventContent::ItemCompleted { item } }
}

/// Whether an item may still grow.
fn is_open(item: &Item) -> bool {
    match &item.content {
        ItemContent::ToolCall(call) => !call.status.is_final(),
        ItemContent::Question(question) => question.answer.is_none(),
        _ => false,
    }
}
