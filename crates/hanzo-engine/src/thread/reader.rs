//! A face that watches a thread.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::stream;
use hanzo_protocol::BoxStream;
use hanzo_protocol::event::{Event, EventContent, EventCursor};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::item::NoticeLevel;
use hanzo_store::{ItemQuery, Store, StoreError};
use jiff::Timestamp;
use tokio::sync::watch;

use super::hub::{Hub, Pulled};
use super::journal::told;

/// How many notifications a reader takes at a time, from the hub or from the store. This is all the memory it needs.
const AT_A_TIME: usize = 64;

struct Reader {
    thread: ThreadId,
    hub: Arc<Hub>,
    store: Arc<dyn Store>,
    news: watch::Receiver<u64>,
    /// Everything up to here has been taken.
    cursor: EventCursor,
    taken: VecDeque<Event>,
    ended: bool,
}

/// The notifications of a thread from just after `cursor`.
pub(crate) fn read(
    thread: ThreadId,
    hub: Arc<Hub>,
    store: Arc<dyn Store>,
    cursor: EventCursor,
) -> BoxStream<'static, Event> {
    let news = hub.watch();
    let reader = Reader { thread, hub, store, news, cursor, taken: VecDeque::new(), ended: false };
    Box::pin(stream::unfold(reader, |mut reader| async move { Some((reader.next().await?, reader)) }))
}

impl Reader {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.taken.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            // Seen before looking, so that what comes while looking is not slept through.
            self.news.borrow_and_update();
            match self.hub.after(self.cursor, AT_A_TIME) {
                Pulled::Closed => return None,
                Pulled::Events(events) => match events.last() {
                    Some(last) => {
                        self.cursor = last.cursor;
                        self.taken.extend(events);
                    }
                    None => self.news.changed().await.ok()?,
                },
                Pulled::Behind { floor, others } => {
                    if let Err(error) = self.catch_up(floor, others).await {
                        self.ended = true;
                        return Some(self.lost(&error));
                    }
                }
            }
        }
    }

    /// Takes what is no longer in the hub from the store: items, each as it is now.
    async fn catch_up(&mut self, floor: u64, others: Vec<Event>) -> Result<(), StoreError> {
        let limit = Some(u32::try_from(AT_A_TIME).unwrap_or(u32::MAX));
        let query = ItemQuery { limit, ..ItemQuery::after(self.thread, self.cursor) };
        let page = self.store.items(query).await?;
        let last = page.entries.last().map(|stored| stored.cursor.0);
        let until = match (page.next, last) {
            (Some(_), Some(last)) => last.min(floor),
            _ => floor,
        };
        let items = page.entries.into_iter().filter(|stored| stored.cursor.0 <= until).map(|stored| Event {
            cursor: stored.cursor,
            thread_id: self.thread,
            at: stored.item.created_at,
            content: told(stored.item),
        });
        let mut events: Vec<Event> = items.collect();
        events.extend(others.into_iter().filter(|event| event.cursor.0 <= until));
        events.sort_by_key(|event| event.cursor);
        self.cursor = EventCursor(until);
        self.taken.extend(events);
        Ok(())
    }

    fn lost(&self, error: &StoreError) -> Event {
        let text = format!("cannot read what was missed: {error}");
        Event {
            cursor: self.cursor,
            thread_id: self.thread,
            at: Timestamp::now(),
            content: EventContent::Notice { level: NoticeLevel::Error, text },
        }
    }
}
