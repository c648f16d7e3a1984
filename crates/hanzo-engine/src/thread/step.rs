//! One step of a turn: the request, the answer as it streams, and its calls.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hanzo_backoff::{Backoff, Retries};
use hanzo_protocol::BoxStream;
use hanzo_protocol::item::{Item, NoticeLevel, TurnEnd};
use hanzo_protocol::message::{ApiError, ApiErrorKind, StopReason, StreamEvent};
use hanzo_protocol::tool::{Place, Reach};
use hanzo_protocol::usage::Usage;
use hanzo_store::StoreError;
use jiff::Timestamp;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::calls::{Calls, LiveCall};
use super::draft::Draft;
use super::journal::Beside;
use super::state::{Failure, StepContext, Thread};
use crate::answer::{Heard, next};
use crate::fold::Cause;
use crate::gate::{Classified, Gated, Pace, Refusal};
use crate::turn::{Asked, EndReason, Steps};

/// How often an answer that was cut off after it began is asked for again. What fails before that is the client's to try again.
const ATTEMPTS: u32 = 4;
const FIRST_DELAY_MS: u64 = 250;
const LONGEST_DELAY_MS: u64 = 8_000;

impl From<EndReason> for End {
    fn from(reason: EndReason) -> Self {
        match reason {
            EndReason::Answered(_) => Self(TurnEnd::Completed),
            EndReason::StepLimit => Self(TurnEnd::StepLimit),
        }
    }
}

/// Why a turn ended.
pub(crate) struct End(pub(super) TurnEnd);

/// An answer that did not become whole.
struct Broken {
    error: ApiError,
    /// Whether some of it was heard.
    began: bool,
}

/// How long the store waits with calls that are over, unless somebody waits for it: the request with their results goes
/// first, because the model is what everybody waits for.
const LINGER: Duration = Duration::from_millis(2);

/// Calls that are over and being stored.
pub(super) struct Settling {
    done: JoinHandle<Result<(), StoreError>>,
    /// Somebody waits.
    hurry: Arc<Notify>,
}

impl Settling {
    fn begin(calls: Arc<Calls>, over: Vec<Arc<LiveCall>>) -> Self {
        let hurry = Arc::new(Notify::new());
        let wanted = Arc::clone(&hurry);
        let done = tokio::spawn(async move {
            let _ = tokio::time::timeout(LINGER, wanted.notified()).await;
            calls.settle(&over).await
        });
        Self { done, hurry }
    }
}

impl Steps for Thread {
    type Error = Failure;
    type End = End;
    type Call = (Arc<LiveCall>, Classified);

    async fn ask(&mut self) -> Result<Asked<Self::Call, End>, Failure> {
        self.hear_steering().await?;
        if self.budget.is_spent() {
            return Ok(Asked::Ends(End(TurnEnd::BudgetReached)));
        }
        self.fold_before_request().await?;
        let step = self.capture();
        self.turn.steps += 1;
        let (stop, usage) = self.hear_out(&step).await?;
        self.settled().await?;
        let Some(draft) = self.turn.draft.take() else { return Ok(Asked::Rests(stop)) };
        self.turn.last_words.clone_from(&draft.answer.text);
        let made = Timestamp::now();
        let calls: Vec<Self::Call> = draft
            .answer
            .calls
            .iter()
            .map(|call| self.calls.prepare(call, self.calls.gate.classify(call), None, self.turn.id, made))
            .collect();
        let said = draft.items();
        let mut items = said.clone();
        items.extend(calls.iter().map(|(live, _)| live.item()));
        // From here on an interruption finds the calls and answers them.
        self.turn.said = said;
        self.turn.open = calls.iter().map(|(live, _)| Arc::clone(live)).collect();
        let beside = Beside { usage: Some((usage, self.price_of(&usage))), ..Beside::default() };
        self.journal.write(&items, beside).await?;
        if calls.is_empty() {
            self.close_step().await;
            return Ok(Asked::Rests(stop));
        }
        Ok(Asked::Calls(calls))
    }

    async fn answer(&mut self, calls: Vec<Self::Call>) -> Result<Option<End>, Failure> {
        let mut gate = self.capture().gate;
        self.calls.set_stance(gate.clone());
        let reached: Vec<Reach> = calls.iter().filter_map(|(_, call)| call.reach().cloned()).collect();
        let mut pace = Pace::Moving;
        let mut rest = calls.into_iter().peekable();
        while let Some(first) = rest.next() {
            self.settled().await?;
            let mut group = vec![first];
            while group[0].1.is_parallel() && rest.peek().is_some_and(|(_, call)| call.is_parallel()) {
                group.extend(rest.next());
            }
            let shared = Arc::clone(&self.calls);
            let step = &gate;
            let mut running: FuturesUnordered<_> = group
                .into_iter()
                .map(|(live, call)| {
                    let shared = &shared;
                    async move { (shared.run(step, call, &live).await, live) }
                })
                .collect();
            let mut taint = None;
            while let Some(first) = running.next().await {
                let mut over = vec![first];
                // What is over at the same moment is stored together.
                while let Some(Some(another)) = running.next().now_or_never() {
                    over.push(another);
                }
                for (gated, live) in &over {
                    taint = taint.or(live.taint());
                    if self.note(gated) == Pace::Stuck {
                        pace = Pace::Stuck;
                    }
                }
                let over: Vec<Arc<LiveCall>> = over.into_iter().map(|(_, live)| live).collect();
                // The model is told while this is stored: it costs no time, and after a crash the call is as good as
                // unanswered either way.
                self.settled().await?;
                let shared = Arc::clone(&shared);
                self.turn.settling = Some(Settling::begin(shared, over));
            }
            drop(running);
            self.turn.taint = self.turn.taint.or(taint);
            gate.taint = self.turn.taint;
        }
        self.close_step().await;
        self.plan_accepted().await?;
        self.tell_instructions(&reached).await?;
        Ok((pace == Pace::Stuck).then_some(End(TurnEnd::NoProgress)))
    }

    fn has_more(&self) -> bool {
        !self.steering().is_empty()
    }
}

impl Thread {
    /// Waits until the calls that are over are stored.
    pub(super) async fn settled(&mut self) -> Result<(), Failure> {
        // Not taken out before it is done: whoever waits here may be interrupted.
        let Some(settling) = &mut self.turn.settling else { return Ok(()) };
        settling.hurry.notify_one();
        let outcome = (&mut settling.done).await;
        self.turn.settling = None;
        match outcome {
            Ok(stored) => Ok(stored?),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Ok(()), // the program ends
            },
        }
    }

    /// Asks until there is a whole answer, as far as asking again makes sense. The answer is in `self.turn.draft`.
    async fn hear_out(&mut self, step: &StepContext) -> Result<(StopReason, Usage), Failure> {
        let mut retries = Retries::new(Backoff::new(FIRST_DELAY_MS, LONGEST_DELAY_MS), ATTEMPTS);
        let mut folded = false;
        loop {
            let Broken { error, began } = match self.hear(step).await {
                Ok((stop, usage)) => {
                    self.account(usage);
                    self.reported = usage.prompt_tokens();
                    self.estimator.observe(self.size, self.reported);
                    self.note_sent().await?;
                    return Ok((stop, usage));
                }
                Err(broken) => broken,
            };
            if error.kind == ApiErrorKind::ContextOverflow && !folded {
                folded = true;
                self.retire_draft().await?;
                if self.fold(Cause::Overflow).await? {
                    continue;
                }
            } else if began
                && error.kind.is_transient()
                && let Some(delay) = retries.next_delay(retry_after(&error).as_deref())
            {
                self.retire_draft().await?;
                let text = format!("the answer was cut off ({error}); asking again");
                self.journal.notice(NoticeLevel::Warning, text);
                tokio::time::sleep(delay).await;
                continue;
            }
            return Err(Failure::Api(error));
        }
    }

    /// Sends the request and hears the answer.
    async fn hear(&mut self, step: &StepContext) -> Result<(StopReason, Usage), Broken> {
        let mut draft = Draft::new(self.id, self.turn.id);
        let mut stream = step.model.client.send_message(&self.request);
        self.turn.draft = Some(draft);
        loop {
            // It lives in the turn while we wait, where an interruption finds it.
            let event = self.next_event(&mut stream).await;
            let hub = Arc::clone(&self.journal.hub);
            draft = self.turn.draft.take().unwrap_or_else(|| Draft::new(self.id, self.turn.id));
            let heard = match event {
                Some(event) => draft.hear(event, &hub),
                None => Heard::Failed(cut_off()),
            };
            let began = draft.has_begun();
            self.turn.draft = Some(draft);
            match heard {
                Heard::More => {}
                Heard::Complete(stop, usage) => return Ok((stop, usage)),
                Heard::Failed(error) => return Err(Broken { error, began }),
            }
        }
    }

    /// The next event; shows in the meantime what was held back.
    async fn next_event(&mut self, stream: &mut BoxStream<'static, StreamEvent>) -> Option<StreamEvent> {
        if let Some(at) = self.turn.draft.as_ref().and_then(Draft::show_at) {
            if let Ok(event) = tokio::time::timeout_at(at.into(), next(stream)).await {
                return event;
            }
            let hub = Arc::clone(&self.journal.hub);
            if let Some(draft) = &mut self.turn.draft {
                draft.show_rest(&hub);
            }
            // Numbers are given out with every piece shown; the store must not fall behind. Should it fail, the commit at the
            // end of the answer fails too and says so.
            let _ = self.journal.keep_count().await;
        }
        next(stream).await
    }

    /// Ends what was shown of an answer that is asked for again.
    async fn retire_draft(&mut self) -> Result<(), Failure> {
        if let Some(draft) = self.turn.draft.take() {
            let items = draft.retired_items();
            self.end_shown(&items).await?;
        }
        Ok(())
    }

    /// Keeps what was shown of an answer that broke off.
    pub(super) async fn keep_draft(&mut self) -> Result<(), Failure> {
        if let Some(mut draft) = self.turn.draft.take() {
            draft.show_rest(&Arc::clone(&self.journal.hub));
            let items = draft.kept_items();
            self.weave(&items).await;
            self.end_shown(&items).await?;
        }
        Ok(())
    }

    async fn end_shown(&self, items: &[Item]) -> Result<(), Failure> {
        if !items.is_empty() {
            self.journal.write(items, Beside::default()).await?;
        }
        Ok(())
    }

    /// Counts what a request took.
    pub(super) fn account(&mut self, usage: Usage) {
        self.turn.usage += usage;
        if let Some(cost) = self.price_of(&usage) {
            self.turn.cost = Some(self.turn.cost.unwrap_or_default() + cost);
            self.budget.spend(cost);
        }
    }

    fn price_of(&self, usage: &Usage) -> Option<hanzo_protocol::usage::Cost> {
        self.model.price.map(|price| price.cost(usage))
    }

    /// Takes note of how a call ended.
    fn note(&mut self, gated: &Gated) -> Pace {
        if gated.refusal == Some(Refusal::NeedsPerson) {
            self.turn.refused += 1;
        }
        for notice in &gated.notices {
            self.journal.notice(NoticeLevel::Warning, notice.as_str());
        }
        gated.pace
    }

    /// Tells the instruction files of directories the agent has just entered.
    async fn tell_instructions(&mut self, reached: &[Reach]) -> Result<(), Failure> {
        let mut items = Vec::new();
        for path in reached.iter().flat_map(|reach| &reach.paths).filter(|path| path.place == Place::Inside) {
            let entered = self.nested.entered(&self.parts.workspace, &path.real);
            for notice in entered.notices {
                self.journal.notice(notice.level, notice.text);
            }
            items.extend(entered.fragment.map(|fragment| self.item(fragment.into())));
        }
        if !items.is_empty() {
            self.append(items).await?;
        }
        Ok(())
    }
}

fn cut_off() -> ApiError {
    ApiError {
        kind: ApiErrorKind::Network,
        message: "the model's answer was cut off".to_owned(),
        status: None,
        retry_after_ms: None,
    }
}

fn retry_after(error: &ApiError) -> Option<String> {
    error.retry_after_ms.map(|wish| Duration::from_millis(wish).as_secs().max(1).to_string())
}
