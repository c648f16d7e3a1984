//! Tool calls under way. What looks runs beside others, what changes something runs alone and in order; a call is kept
//! before its effect, and whatever becomes of it has a result.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hanzo_protocol::BoxFuture;
use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::{ItemId, TurnId};
use hanzo_protocol::item::{Item, ItemContent, Taint, ToolCallItem, ToolCallStatus, Visibility};
use hanzo_protocol::message::ToolCall;
use hanzo_protocol::tool::{Effect, Place, Reach, ReachConfinement, ToolResult};
use hanzo_store::{AuditEntry, Durability, StoreError};
use jiff::Timestamp;
use tokio::sync::{Notify, Semaphore, SemaphorePermit, watch};

use super::conversation::INTERRUPTED;
use super::desk::{Desk, ThreadAsker};
use super::journal::{Beside, Journal};
use crate::gate::{CallWatch, Classified, Gate, GateStep, Gated};

/// How many calls that only look run at once.
const READERS: u32 = 8;
/// How often output of a running call is shown, and how much of it at a time; the result has all of it.
const SHOW_EVERY: Duration = Duration::from_millis(30);
const SHOWN_AT_ONCE: usize = 16 * 1024;

/// What every call of a thread needs, whether it comes from the model or from a face.
pub(crate) struct Calls {
    pub(crate) journal: Arc<Journal>,
    pub(crate) gate: Gate,
    asker: ThreadAsker,
    /// A reader takes one permit, a writer all of them.
    lane: Semaphore,
    /// Held by the writer of a family of threads: a subagent and its parent do not write at once either.
    writing: Arc<Semaphore>,
    /// Whether files may be changed: not before the checkpoint of the turn's start is complete.
    pub(crate) writable: watch::Sender<bool>,
    /// Whether something may have been changed.
    wrote: AtomicBool,
    /// How calls from a face are judged.
    stance: Mutex<GateStep>,
    stopped: Notify,
}

impl Calls {
    pub(crate) fn new(
        journal: Arc<Journal>,
        gate: Gate,
        desk: Arc<Desk>,
        writing: Arc<Semaphore>,
        stance: GateStep,
    ) -> Self {
        let asker = ThreadAsker { desk, hub: Arc::clone(&journal.hub) };
        let lane = Semaphore::new(READERS as usize);
        Self {
            journal,
            gate,
            asker,
            lane,
            writing,
            writable: watch::channel(true).0,
            wrote: AtomicBool::new(false),
            stance: Mutex::new(stance),
            stopped: Notify::new(),
        }
    }

    /// The right to write, for subagents to share.
    pub(crate) fn writing(&self) -> Arc<Semaphore> {
        Arc::clone(&self.writing)
    }

    /// How calls from a face are judged.
    pub(crate) fn stance(&self) -> GateStep {
        self.stance.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Judges calls from a face so from now on.
    pub(crate) fn set_stance(&self, stance: GateStep) {
        *self.stance.lock().unwrap_or_else(PoisonError::into_inner) = stance;
    }

    /// Stops calls from faces.
    pub(crate) fn stop(&self) {
        self.stopped.notify_waiters();
    }

    /// Waits until calls from faces are stopped.
    pub(crate) async fn stopped(&self) {
        self.stopped.notified().await;
    }

    /// Somebody else writes on behalf of this thread: waits until that may be, and remembers it.
    pub(crate) async fn lend(&self) {
        let mut writable = self.writable.subscribe();
        let _ = writable.wait_for(|writable| *writable).await;
        self.wrote.store(true, Ordering::Relaxed);
    }

    /// Whether something may have been changed since this was last asked.
    pub(crate) fn take_wrote(&self) -> bool {
        self.wrote.swap(false, Ordering::Relaxed)
    }

    /// Makes the item of a call that was looked up.
    pub(crate) fn prepare(
        &self,
        call: &ToolCall,
        mut classified: Classified,
        item: Option<ItemId>,
        turn: Option<TurnId>,
        made: Timestamp,
    ) -> (Arc<LiveCall>, Classified) {
        classified.item = item.unwrap_or(classified.item);
        let tool = classified.action().to_owned();
        let plain = tool.split_once('.').map_or(tool.as_str(), |(tool, _)| tool);
        let called_as = (plain != call.name).then(|| call.name.clone());
        let item = Item {
            id: classified.item,
            thread_id: self.journal.thread,
            turn_id: turn,
            created_at: made,
            visibility: Visibility::Active,
            taint: None,
            content: ItemContent::ToolCall(ToolCallItem {
                call_id: call.id.clone(),
                called_as,
                tool,
                arguments: call.arguments.clone(),
                effect: classified.reach().map(|reach| reach.effect),
                status: ToolCallStatus::Pending,
                result: None,
                full_output: None,
                trace_id: classified.trace,
                duration_ms: None,
            }),
        };
        // A face's call in a thread that is forgotten is told and audited; to keep its item would only fill the memory.
        let keeping = match turn {
            None if self.journal.is_forgotten() => Keeping::Audit,
            _ => Keeping::Item,
        };
        let live = LiveCall {
            keeping,
            journal: Arc::clone(&self.journal),
            writable: self.writable.subscribe(),
            id: item.id,
            state: Mutex::new(State {
                item,
                audit: Vec::new(),
                shown: None,
                waiting: String::new(),
                stored: false,
            }),
        };
        (Arc::new(live), classified)
    }

    /// Runs a call through the gate when it is its turn. Nothing is stored at its end yet.
    pub(crate) async fn run(&self, step: &GateStep, call: Classified, live: &LiveCall) -> Gated {
        let parallel = call.is_parallel();
        let _right = self.right_of_way(parallel).await;
        if !parallel {
            self.wrote.store(true, Ordering::Relaxed);
        }
        let gated = self.gate.run(step, call, &self.asker, live).await;
        live.finish(&gated);
        gated
    }

    async fn right_of_way(
        &self,
        parallel: bool,
    ) -> Option<(SemaphorePermit<'_>, Option<SemaphorePermit<'_>>)> {
        // A semaphore that is never closed gives its permits.
        if parallel {
            return Some((self.lane.acquire().await.ok()?, None));
        }
        let lane = self.lane.acquire_many(READERS).await.ok()?;
        Some((lane, Some(self.writing.acquire().await.ok()?)))
    }

    /// Keeps a call that begins and tells of it.
    pub(crate) async fn begin(&self, call: &LiveCall) -> Result<(), StoreError> {
        match call.keeping {
            Keeping::Item => self.journal.write(&[call.item()], Beside::default()).await,
            Keeping::Audit => {
                self.journal.tell(call.told(), Vec::new());
                Ok(())
            }
        }
    }

    /// Stores calls that are over and tells of them.
    pub(crate) async fn settle(&self, calls: &[Arc<LiveCall>]) -> Result<(), StoreError> {
        if let [call] = calls
            && matches!(call.keeping, Keeping::Audit)
        {
            self.journal.tell(call.told(), call.take_audit());
            call.state().stored = true;
            self.journal.room().await;
            return Ok(());
        }
        let items: Vec<Item> = calls.iter().map(|call| call.item()).collect();
        let audit = calls.iter().flat_map(|call| call.take_audit()).collect();
        self.journal.write(&items, Beside { audit, ..Beside::default() }).await?;
        for call in calls {
            call.state().stored = true;
        }
        Ok(())
    }
}

/// What is kept of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeping {
    /// Its item and its audit entry.
    Item,
    /// Its audit entry. Its item is told when somebody listens.
    Audit,
}

/// A call while it runs.
pub(crate) struct LiveCall {
    keeping: Keeping,
    journal: Arc<Journal>,
    writable: watch::Receiver<bool>,
    pub(crate) id: ItemId,
    state: Mutex<State>,
}

struct State {
    item: Item,
    /// Audit entries that are stored with the result.
    audit: Vec<AuditEntry>,
    shown: Option<Instant>,
    waiting: String,
    /// Whether its end is stored.
    stored: bool,
}

impl LiveCall {
    /// The item as it is now.
    pub(crate) fn item(&self) -> Item {
        self.state().item.clone()
    }

    fn is_told(&self) -> bool {
        self.keeping != Keeping::Audit || self.journal.hub.is_watched()
    }

    /// The item as it is now, for those who listen.
    fn told(&self) -> Option<Item> {
        self.is_told().then(|| self.item())
    }

    /// Where untrusted content in its result came from.
    pub(crate) fn taint(&self) -> Option<Taint> {
        self.state().item.taint
    }

    /// Whether its end is stored.
    pub(crate) fn is_stored(&self) -> bool {
        self.state().stored
    }

    /// Answers the call as stopped, unless it is over.
    pub(crate) fn interrupt(&self) {
        let mut state = self.state();
        if let Some(call) = call_of(&mut state.item).filter(|call| !call.status.is_final()) {
            close(call);
        }
    }

    fn finish(&self, gated: &Gated) {
        let mut state = self.state();
        state.audit.extend(gated.audit.iter().cloned());
        state.item.taint = gated.result.taint;
        // Of what is neither kept nor told nobody needs a copy.
        let needed = self.is_told();
        if let Some(call) = call_of(&mut state.item) {
            call.status = gated.status;
            call.result = needed.then(|| gated.result.clone());
            call.full_output.clone_from(&gated.full_output);
            call.duration_ms = gated.duration.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        }
    }

    fn take_audit(&self) -> Vec<AuditEntry> {
        std::mem::take(&mut self.state().audit)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers a call as stopped.
pub(crate) fn close(call: &mut ToolCallItem) {
    call.status = ToolCallStatus::Interrupted;
    call.result = Some(ToolResult::failure(INTERRUPTED));
}

fn call_of(item: &mut Item) -> Option<&mut ToolCallItem> {
    match &mut item.content {
        ItemContent::ToolCall(call) => Some(call),
        _ => None,
    }
}

impl CallWatch for LiveCall {
    fn about_to_run<'a>(&'a self, reach: &'a Reach, audit: AuditEntry) -> BoxFuture<'a, Result<(), String>> {
        self.status(ToolCallStatus::Running);
        if reach.effect.is_read_only() {
            // Looking can be repeated: it is enough when result and audit are stored together.
            self.state().audit.push(audit);
            return Box::pin(std::future::ready(Ok(())));
        }
        Box::pin(async move {
            let mut writable = self.writable.clone();
            // The checkpoint's own end closes the channel at worst, and then nothing is to be waited for.
            let _ = writable.wait_for(|writable| *writable).await;
            if matches!(self.keeping, Keeping::Audit) {
                return self.journal.audit(vec![audit]).await.map_err(|error| error.to_string());
            }
            let beside = Beside { audit: vec![audit], durability: durability(reach), ..Beside::default() };
            let item = self.item();
            self.journal.update(item, beside).await.map_err(|error| error.to_string())
        })
    }

    fn status(&self, status: ToolCallStatus) {
        if let Some(call) = call_of(&mut self.state().item) {
            call.status = status;
        }
    }

    fn output(&self, text: &str) {
        let mut state = self.state();
        state.waiting.push_str(text);
        if state.waiting.len() > SHOWN_AT_ONCE {
            // The end is what matters to somebody who watches.
            let cut = state.waiting.ceil_char_boundary(state.waiting.len() - SHOWN_AT_ONCE);
            state.waiting.drain(..cut);
        }
        if state.shown.is_none_or(|shown| shown.elapsed() >= SHOW_EVERY) {
            state.shown = Some(Instant::now());
            let delta = std::mem::take(&mut state.waiting);
            drop(state);
            self.journal.hub.emit(EventContent::ItemDelta { item_id: self.id, delta });
        }
    }
}

/// What cannot be repeated or taken back is on the disk before it happens.
fn durability(reach: &Reach) -> Durability {
    let outside = reach.confinement == ReachConfinement::Outside
        || reach.paths.iter().any(|path| path.place == Place::Outside);
    match reach.effect {
        Effect::Network | Effect::Memory | Effect::Screen => Durability::Disk,
        _ if outside => Durability::Disk,
        _ => Durability::Process,
    }
}
