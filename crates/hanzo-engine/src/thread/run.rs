//! A turn of a thread from the user's input to its end, whichever way it ends.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{MutexGuard, PoisonError};

use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::TurnId;
use hanzo_protocol::item::{ItemContent, NoticeLevel, Taint, TurnEnd, TurnSummary};
use hanzo_protocol::message::ApiError;
use hanzo_protocol::tool::ToolCaller;
use hanzo_protocol::usage::Cost;
use hanzo_store::{StoreError, ThreadChange};
use jiff::Zoned;

use super::checkpoints::Changed;
use super::prefix::{LastRequest, Prefix, Sent};
use super::state::{Failure, Input, Thread, Turn};
use super::step::End;
use crate::prompt::{Environment, Network, environment_fragment};
use crate::references::{self, Resolved, Sources};
use crate::turn::drive;

/// The longest title made of what the user said.
const LONGEST_TITLE: usize = 72;

/// How a turn came to rest, for whoever began it.
#[derive(Debug, Clone)]
pub(crate) struct TurnReport {
    /// How it ended.
    pub(crate) outcome: Result<TurnSummary, ApiError>,
    /// The last thing the agent said.
    pub(crate) last_words: String,
    /// Where untrusted content it has seen came from.
    pub(crate) taint: Option<Taint>,
}

impl Thread {
    /// Runs a turn. Dropping the future stops everything under way; then [`Thread::rest`] puts the conversation in order.
    pub(crate) async fn run(&mut self, turn: TurnId, input: Input) -> Result<TurnEnd, ApiError> {
        self.turn = Turn {
            id: Some(turn),
            posture: input.posture,
            spent_before: self.budget.spent(),
            taint: self.inherited_taint,
            ..Turn::default()
        };
        self.journal.set_turn(Some(turn));
        self.journal.hub.emit(EventContent::TurnStarted { turn_id: turn });
        self.calls.gate.begin_turn();
        let after = self.journal.last_item();
        self.checkpoints.begin(Some(turn), after, &self.calls);
        Ok(self.steps(input).await?)
    }

    async fn steps(&mut self, input: Input) -> Result<TurnEnd, Failure> {
        self.cross_boundary().await?;
        self.describe_surroundings().await?;
        self.plan_first(&input).await?;
        self.tell_mode().await?;
        self.say(input).await?;
        let (End(end), _) = drive(self, self.max_steps()).await?;
        Ok(end)
    }

    /// What may change the prefix happens here, and is recorded: another model, other tools, a fold that is due.
    async fn cross_boundary(&mut self) -> Result<(), Failure> {
        if let Some(model) = self.next_model.take()
            && model.reference != self.model.reference
        {
            self.request.model.clone_from(&model.name);
            self.request.max_tokens = model.max_tokens;
            self.model = model;
            self.estimator.forget_last();
        }
        self.request.effort = self.effort;
        if let Some(changes) = self.parts.tool_changes.clone() {
            changes.settle().await;
            self.refresh_tools();
        }
        self.record_breaks().await?;
        self.fold_before_turn().await
    }

    /// Records why the next request will not begin like the last, if it will not. The thread may have been closed in between.
    async fn record_breaks(&mut self) -> Result<(), Failure> {
        let now = Prefix::of(&self.model.reference, &self.request);
        // Before the first request there is no prefix to break.
        let breaks = self.recorded.as_ref().map(|before| now.breaks_since(before)).unwrap_or_default();
        if self.recorded.is_some() {
            self.recorded = Some(now);
        }
        if !breaks.is_empty() {
            let items =
                breaks.into_iter().map(|reason| self.item(ItemContent::PrefixBreak { reason })).collect();
            self.append(items).await?;
        }
        Ok(())
    }

    /// Takes note of what an answered request began with, and of a break where it did not repeat the one before.
    pub(super) async fn note_sent(&mut self) -> Result<(), Failure> {
        // It changes between turns only, so it is hashed once for each.
        let prefix = match &self.turn.prefix {
            Some(prefix) => prefix.clone(),
            None => Prefix::of(&self.model.reference, &self.request),
        };
        self.turn.prefix = Some(prefix.clone());
        let now = Sent { prefix, telling: self.telling };
        let before = self.sent.replace(now.clone());
        if before.as_ref().is_some_and(|before| *before != now) {
            self.turn.prefix_breaks += 1;
        }
        if before.is_none_or(|before| before.prefix != now.prefix) {
            self.recorded = Some(now.prefix);
            self.keep_last_request().await?;
        }
        Ok(())
    }

    /// Keeps with the thread what the next process has to know of the last request.
    async fn keep_last_request(&mut self) -> Result<(), StoreError> {
        let Some(sent) = &self.sent else { return Ok(()) };
        let last = LastRequest { prefix: sent.prefix.clone(), reported: self.reported };
        if self.kept.as_ref() != Some(&last) {
            let change = ThreadChange { state: Some(last.to_state()), ..ThreadChange::default() };
            self.journal.store.update_thread(self.id, change).await?;
            self.kept = Some(last);
        }
        Ok(())
    }

    /// Tells the model what is true today and here, when that is news to it.
    async fn describe_surroundings(&mut self) -> Result<(), Failure> {
        let environment = Environment {
            day: Zoned::now().date(),
            sandbox: self.parts.sandbox.level(),
            network: if self.parts.sandbox.network() { Network::On } else { Network::Off },
            branch: branch(self.parts.workspace.path()),
            workspace: self
                .parts
                .workspace
                .path()
                .file_name()
                .map(|name| name.to_string_lossy().into_owned()),
        };
        let fragment = environment_fragment(&environment);
        if self.surroundings.as_deref() != Some(fragment.text.as_str()) {
            self.surroundings = Some(fragment.text.clone());
            let item = self.item(fragment.into());
            self.append(vec![item]).await?;
        }
        Ok(())
    }

    /// Adds what the user says, with what it refers to. What an agent or somebody from elsewhere writes refers to nothing: references
    /// are read past the gate, which only the user at this machine may.
    pub(super) async fn say(&mut self, input: Input) -> Result<(), Failure> {
        let resolved = if self.summary.parent.is_none() && self.caller == ToolCaller::Local {
            let sources = Sources {
                workspace: self.parts.workspace.clone(),
                home: self.parts.places.home.clone(),
                resources: self.parts.resources.clone(),
            };
            references::resolve(&input.text, &sources).await
        } else {
            Resolved { text: input.text.clone(), ..Resolved::default() }
        };
        for notice in resolved.notices {
            self.journal.notice(notice.level, notice.text);
        }
        self.turn.taint = self.turn.taint.or(resolved.taint);
        let mut attachments = input.attachments;
        attachments.extend(resolved.attachments);
        if self.summary.title.is_empty() {
            self.summary.title = title(&input.text);
            let change = ThreadChange { title: Some(self.summary.title.clone()), ..ThreadChange::default() };
            self.journal.store.update_thread(self.id, change).await?;
        }
        let mut item = self.item(ItemContent::UserMessage { text: resolved.text, attachments });
        item.taint = resolved.taint;
        Ok(self.append(vec![item]).await?)
    }

    /// Adds what was said while the turn runs.
    pub(super) async fn hear_steering(&mut self) -> Result<(), Failure> {
        loop {
            let Some(input) = self.steering().pop_front() else { return Ok(()) };
            self.say(input).await?;
        }
    }

    pub(super) fn steering(&self) -> MutexGuard<'_, VecDeque<Input>> {
        self.steering.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn max_steps(&self) -> u32 {
        let configured = self.parts.settings.agent.max_steps;
        self.options.max_steps.or(self.parts.manifest.max_steps).unwrap_or(configured)
    }

    /// Ends the turn. `None` is an interruption: whatever was under way has been dropped.
    pub(crate) async fn rest(&mut self, outcome: Option<Result<TurnEnd, ApiError>>) -> TurnReport {
        let put_in_order = self.put_in_order().await.map_err(ApiError::from);
        let outcome = match (outcome.unwrap_or(Ok(TurnEnd::Interrupted)), put_in_order) {
            (Ok(end), Ok(())) => self.sum_up(end).await,
            (Err(error), _) | (_, Err(error)) => Err(error),
        };
        self.journal.set_turn(None);
        self.turn.posture = None;
        let turn_id = self.turn.id.take().unwrap_or_else(TurnId::new);
        self.journal.hub.emit(match &outcome {
            Ok(summary) => EventContent::TurnCompleted { turn_id, summary: summary.clone() },
            Err(error) => EventContent::TurnFailed { turn_id, error: error.clone() },
        });
        TurnReport { outcome, last_words: std::mem::take(&mut self.turn.last_words), taint: self.turn.taint }
    }

    /// Answers every open call and keeps what was shown, so that the next request is valid and a face has nothing open.
    async fn put_in_order(&mut self) -> Result<(), Failure> {
        self.settled().await?;
        self.keep_draft().await?;
        let open: Vec<_> = self.turn.open.iter().filter(|call| !call.is_stored()).cloned().collect();
        for call in &open {
            call.interrupt();
        }
        self.close_step().await;
        if !open.is_empty() {
            self.calls.settle(&open).await?;
        }
        Ok(())
    }

    /// What the turn cost, subagents included; `None` when no price is known.
    fn turn_cost(&self) -> Option<Cost> {
        let spent = self.budget.spent().nano_usd().saturating_sub(self.turn.spent_before.nano_usd());
        (self.turn.cost.is_some() || spent > 0).then(|| Cost::from_nano_usd(spent))
    }

    async fn sum_up(&mut self, ended: TurnEnd) -> Result<TurnSummary, ApiError> {
        let changed = if self.calls.take_wrote() { Changed::Something } else { Changed::Nothing };
        let after = self.journal.last_item();
        let checkpoint = match self.checkpoints.end(self.turn.id, after, changed).await {
            Ok(checkpoint) => checkpoint,
            Err(error) => {
                let text = format!("the files at the end of this turn were not kept: {error}");
                self.journal.notice(NoticeLevel::Warning, text);
                None
            }
        };
        let kept = self.keep_last_request().await;
        let synced = match kept {
            Ok(()) => self.journal.store.sync().await,
            failed => failed,
        };
        synced.map_err(|error| ApiError::from(Failure::Store(error)))?;
        let (context_tokens, context_window) = self.context();
        Ok(TurnSummary {
            ended,
            steps: self.turn.steps,
            usage: self.turn.usage,
            cost: self.turn_cost(),
            checkpoint,
            refused: self.turn.refused,
            prefix_breaks: self.turn.prefix_breaks,
            context_tokens: Some(context_tokens),
            context_window,
        })
    }
}

/// The first line of what the user said.
fn title(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("untitled");
    match line.char_indices().nth(LONGEST_TITLE) {
        Some((cut, _)) => format!("{}…", line[..cut].trim_end()),
        None => line.to_owned(),
    }
}

/// The branch that is checked out, as the file that says so has it. No process is started for it.
fn branch(workspace: &Path) -> Option<String> {
    let head = std::fs::read_to_string(workspace.join(".git/HEAD")).ok()?;
    Some(head.trim().strip_prefix("ref: refs/heads/")?.to_owned())
}
