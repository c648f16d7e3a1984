//! A thread's notifications. The hub keeps the newest ones; a reader has nothing but its place in them and pulls. So a slow
//! reader costs no memory and holds up nothing: what has left the hub by the time it looks is read from the store, where
//! every completed item is.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hanzo_protocol::event::{Event, EventContent, EventCursor};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::item::{Item, ItemContent};
use jiff::Timestamp;
use tokio::sync::watch;

/// How many notifications about items are kept, and how much text in them. A reader that is further behind reads the store.
const ITEM_EVENTS: usize = 512;
const ITEM_BYTES: usize = 512 * 1024;
/// How many other notifications are kept. They are small, rare, and nowhere else.
const OTHER_EVENTS: usize = 1024;
/// How far the stored number runs ahead of the last one given out, so that after a crash none is given out twice.
const HEADROOM: u64 = 4096;

/// The notifications of one thread.
pub(crate) struct Hub {
    thread: ThreadId,
    state: Mutex<State>,
    /// The last notification readers may see.
    visible: watch::Sender<u64>,
    /// Where requests for a person's answer are shown as well: the parent of a subagent's thread.
    above: Option<Arc<Hub>>,
}

struct State {
    next: u64,
    /// Numbers whose notification is still being stored. Later ones wait for them, so that readers see them in order.
    held: BTreeSet<u64>,
    items: VecDeque<Event>,
    bytes: usize,
    others: VecDeque<Event>,
    /// The last notification about an item that is no longer here.
    floor: u64,
    /// The number the store knows.
    stored: u64,
    closed: bool,
}

/// What a reader gets.
#[derive(Debug, PartialEq)]
pub(crate) enum Pulled {
    /// The next notifications, deltas of one item joined; empty when there are none yet.
    Events(Vec<Event>),
    /// Items up to `floor` have to be read from the store; these are the other notifications up to there.
    Behind { floor: u64, others: Vec<Event> },
    /// There will be no more.
    Closed,
}

impl Hub {
    /// The hub of a thread whose last notification had the number `last`.
    pub(crate) fn new(thread: ThreadId, last: EventCursor, above: Option<Arc<Hub>>) -> Self {
        let state = State {
            next: last.0 + 1,
            held: BTreeSet::new(),
            items: VecDeque::new(),
            bytes: 0,
            others: VecDeque::new(),
            floor: last.0,
            stored: last.0,
            closed: false,
        };
        Self { thread, state: Mutex::new(state), visible: watch::channel(last.0).0, above }
    }

    /// The last number given out.
    pub(crate) fn last(&self) -> EventCursor {
        EventCursor(self.state().next - 1)
    }

    /// The number to store with the next commit.
    pub(crate) fn mark(&self) -> EventCursor {
        let mut state = self.state();
        if state.next + HEADROOM / 2 > state.stored {
            state.stored = state.next + HEADROOM;
        }
        EventCursor(state.stored)
    }

    /// Whether numbers are about to be given out that the store would give out again after a crash.
    pub(crate) fn mark_is_due(&self) -> bool {
        let state = self.state();
        state.next + 64 > state.stored
    }

    /// Tells everybody.
    pub(crate) fn emit(&self, content: EventContent) -> EventCursor {
        let mut state = self.state();
        let cursor = state.take_number();
        state.insert(self.event(cursor, content));
        self.show(state);
        cursor
    }

    /// Tells everybody, and those who watch the threads above: a person is needed.
    pub(crate) fn emit_upwards(&self, content: &EventContent) {
        self.emit(content.clone());
        if let Some(above) = &self.above {
            above.emit_upwards(content);
        }
    }

    /// Takes a number for a notification that is to be stored first.
    pub(crate) fn hold(&self) -> Held<'_> {
        let mut state = self.state();
        let cursor = state.take_number();
        state.held.insert(cursor.0);
        Held { hub: self, cursor, open: true }
    }

    /// What comes after `cursor`.
    pub(crate) fn after(&self, cursor: EventCursor, limit: usize) -> Pulled {
        let state = self.state();
        let visible = state.visible();
        if cursor.0 < state.floor {
            let others = between(&state.others, cursor.0, state.floor).cloned().collect();
            return Pulled::Behind { floor: state.floor, others };
        }
        let mut items = between(&state.items, cursor.0, visible).peekable();
        let mut others = between(&state.others, cursor.0, visible).peekable();
        let mut events: Vec<Event> = Vec::new();
        while events.len() < limit {
            let item_first = match (items.peek(), others.peek()) {
                (Some(item), Some(other)) => item.cursor < other.cursor,
                (item, _) => item.is_some(),
            };
            let Some(event) = (if item_first { items.next() } else { others.next() }) else { break };
            join_or_push(&mut events, event);
        }
        if events.is_empty() && state.closed { Pulled::Closed } else { Pulled::Events(events) }
    }

    /// Changes whenever there is something new to pull.
    pub(crate) fn watch(&self) -> watch::Receiver<u64> {
        self.visible.subscribe()
    }

    /// Whether somebody reads.
    pub(crate) fn is_watched(&self) -> bool {
        self.visible.receiver_count() > 0
    }

    /// Ends every reader once it has read what there is.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        self.show(state);
    }

    /// Whether it was closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.state().closed
    }

    fn event(&self, cursor: EventCursor, content: EventContent) -> Event {
        Event { cursor, thread_id: self.thread, at: Timestamp::now(), content }
    }

    fn show(&self, state: MutexGuard<'_, State>) {
        let visible = state.visible();
        drop(state);
        // Sent also when the number is the same, because closing is news too.
        self.visible.send_replace(visible);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take_number(&mut self) -> EventCursor {
        let cursor = EventCursor(self.next);
        self.next += 1;
        cursor
    }

    fn visible(&self) -> u64 {
        self.held.first().map_or(self.next, |held| *held) - 1
    }

    fn insert(&mut self, event: Event) {
        let weight = weight(&event.content);
        let about_item = weight.is_some();
        self.bytes += weight.unwrap_or(0);
        let queue = if about_item { &mut self.items } else { &mut self.others };
        let place = queue.partition_point(|other| other.cursor < event.cursor);
        queue.insert(place, event);
        while self.items.len() > ITEM_EVENTS || self.bytes > ITEM_BYTES {
            let Some(gone) = self.items.pop_front() else { break };
            self.bytes -= self::weight(&gone.content).unwrap_or(0);
            self.floor = gone.cursor.0;
        }
        if self.others.len() > OTHER_EVENTS {
            self.others.pop_front();
        }
    }
}

/// A number whose notification is being stored. Dropped without an event it is skipped.
pub(crate) struct Held<'a> {
    hub: &'a Hub,
    cursor: EventCursor,
    open: bool,
}

impl Held<'_> {
    /// The number.
    pub(crate) fn cursor(&self) -> EventCursor {
        self.cursor
    }

    /// Tells everybody, now that it is stored.
    pub(crate) fn emit(mut self, content: EventContent) {
        self.open = false;
        let mut state = self.hub.state();
        state.held.remove(&self.cursor.0);
        state.insert(self.hub.event(self.cursor, content));
        self.hub.show(state);
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if self.open {
            let mut state = self.hub.state();
            state.held.remove(&self.cursor.0);
            self.hub.show(state);
        }
    }
}

fn between(queue: &VecDeque<Event>, after: u64, until: u64) -> impl Iterator<Item = &Event> {
    let start = queue.partition_point(|event| event.cursor.0 <= after);
    queue.range(start..).take_while(move |event| event.cursor.0 <= until)
}

fn join_or_push(events: &mut Vec<Event>, event: &Event) {
    if let EventContent::ItemDelta { item_id, delta } = &event.content
        && let Some(last) = events.last_mut()
        && let EventContent::ItemDelta { item_id: same, delta: text } = &mut last.content
        && same == item_id
    {
        text.push_str(delta);
        last.cursor = event.cursor;
    } else {
        events.push(event.clone());
    }
}

/// Roughly how much memory a notification about an item takes; `None` for one about something else.
fn weight(content: &EventContent) -> Option<usize> {
    match content {
        EventContent::ItemDelta { delta, .. } => Some(128 + delta.len()),
        EventContent::ItemStarted { item } | EventContent::ItemCompleted { item } => {
            Some(512 + text_size(item))
        }
        _ => None,
    }
}

fn text_size(item: &Item) -> usize {
    match &item.content {
        ItemContent::UserMessage { text, .. }
        | ItemContent::AgentMessage { text }
        | ItemContent::Fragment { text, .. } => text.len(),
        ItemContent::Reasoning(reasoning) => {
            reasoning.text.len() + reasoning.signature.as_ref().map_or(0, String::len)
        }
        ItemContent::ToolCall(call) => {
            // The envelope has the output again.
            call.arguments.len() + call.result.as_ref().map_or(0, |result| 2 * result.output.len())
        }
        ItemContent::Compaction { digest, .. } => digest.len(),
        _ => 256,
    }
}

#[cfg(test)]
mod tests {
    use hanzo_protocol::ids::ItemId;
    use hanzo_protocol::item::NoticeLevel;

    use super::*;

    fn hub() -> Hub {
        Hub::new(ThreadId::new(), EventCursor(10), None)
    }

    fn notice(text: &str) -> EventContent {
        EventContent::Notice { level: NoticeLevel::Info, text: text.into() }
    }

    fn cursors(pulled: &Pulled) -> Vec<u64> {
        match pulled {
            Pulled::Events(events) => events.iter().map(|event| event.cursor.0).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn deltas_of_one_item_are_joined_for_a_reader_who_comes_late() {
        let hub = hub();
        let item_id = ItemId::new();
        for part in ["a", "b", "c"] {
            hub.emit(EventContent::ItemDelta { item_id, delta: part.into() });
        }
        hub.emit(notice("x"));
        let Pulled::Events(events) = hub.after(EventCursor(10), 10) else { panic!("they are there") };
        assert_eq!(events.len(), 2);
        assert_eq!(events[0].content, EventContent::ItemDelta { item_id, delta: "abc".into() });
        assert_eq!(events[0].cursor, EventCursor(13));
        assert_eq!(cursors(&hub.after(EventCursor(11), 10)), [13, 14], "from the middle, the rest is joined");
    }

    #[test]
    fn what_comes_after_a_number_that_is_held_waits_for_it() {
        let hub = hub();
        let held = hub.hold();
        hub.emit(notice("later"));
        assert_eq!(cursors(&hub.after(EventCursor(10), 10)), [0u64; 0]);
        held.emit(notice("first"));
        assert_eq!(cursors(&hub.after(EventCursor(10), 10)), [11, 12]);

        drop(hub.hold());
        hub.emit(notice("after one that came to nothing"));
        assert_eq!(cursors(&hub.after(EventCursor(12), 10)), [14]);
    }

    #[test]
    fn deltas_leave_before_what_is_nowhere_else() {
        let hub = hub();
        hub.emit(notice("kept"));
        for _ in 0..ITEM_EVENTS + 5 {
            // Different items, so that none is joined.
            hub.emit(EventContent::ItemDelta { item_id: ItemId::new(), delta: "x".into() });
        }
        let Pulled::Behind { floor, others } = hub.after(EventCursor(10), 10) else { panic!("it is behind") };
        assert_eq!((floor, others.len()), (16, 1));
        assert_eq!(cursors(&hub.after(EventCursor(floor), 2)), [17, 18]);
    }

    #[test]
    fn large_items_do_not_pile_up() {
        let hub = hub();
        for _ in 0..100 {
            hub.emit(EventContent::ItemDelta { item_id: ItemId::new(), delta: "x".repeat(50_000) });
        }
        assert!(hub.state().bytes <= ITEM_BYTES);
        assert!(hub.state().items.len() < 11);
    }

    #[test]
    fn the_stored_number_is_always_ahead() {
        let hub = hub();
        assert!(hub.mark_is_due());
        assert!(hub.mark().0 > 10);
        for _ in 0..10_000 {
            if hub.mark_is_due() {
                hub.mark();
            }
            hub.emit(notice("x"));
            let last = hub.last().0;
            assert!(hub.state().stored >= last);
        }
    }

    #[test]
    fn a_closed_hub_is_read_to_its_end() {
        let hub = hub();
        hub.emit(notice("last"));
        hub.close();
        assert_eq!(cursors(&hub.after(EventCursor(10), 10)), [11]);
        assert_eq!(hub.after(EventCursor(11), 10), Pulled::Closed);
    }
}
