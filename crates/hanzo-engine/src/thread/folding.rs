//! Folds older work when the thread comes near to the model's window.

use hanzo_protocol::event::EventContent;
use hanzo_protocol::item::{BreakReason, Item, ItemContent, NoticeLevel, Visibility};
use hanzo_protocol::message::ModelRequest;
use hanzo_store::{ItemQuery, StoreError, export};

use super::conversation::messages_of;
use super::journal::Beside;
use super::state::{Failure, Thread};
use crate::answer::{Answer, Heard, next};
use crate::fold::{self, Cause, DigestBy, Limits, Plan};
use crate::tokens::Size;

impl Thread {
    /// Folds before the next turn when the vendor's count has reached the line.
    pub(super) async fn fold_before_turn(&mut self) -> Result<(), Failure> {
        let due = self.limits().is_some_and(|limits| limits.due_before_turn(self.reported));
        if due {
            self.fold(Cause::Due).await?;
        }
        Ok(())
    }

    /// Folds before this very request when it would come too near to the window.
    pub(super) async fn fold_before_request(&mut self) -> Result<(), Failure> {
        let estimate = self.estimator.request(self.size);
        if self.limits().is_some_and(|limits| limits.due_before_request(estimate)) {
            self.fold(Cause::Due).await?;
        }
        Ok(())
    }

    fn limits(&self) -> Option<Limits> {
        Limits::new(self.model.context_window, self.parts.settings.agent.compact_ratio)
    }

    /// Folds, if there is something to fold. Until everything is ready nothing changes; then it is one transaction.
    pub(super) async fn fold(&mut self, cause: Cause) -> Result<bool, Failure> {
        let limits = self.limits().unwrap_or_else(|| Limits::for_request(self.model.context_window));
        self.settled().await?;
        let mut items = self.active_items().await?;
        let fixed = self.request.messages.first().map(Size::of_message).unwrap_or_default()
            + Size::of_tools(&self.request.tools);
        let fixed = self.estimator.tokens(fixed);
        let Some(plan) = fold::plan(&items, &limits, &self.estimator, fixed, cause) else { return Ok(false) };
        let summary = self.digest(plan.request(self.model.name.as_str())).await;
        let Some(folded) = plan.finish(summary.as_deref()) else { return Ok(false) };
        if !self.ephemeral {
            self.archive(&plan).await;
        }
        let compaction = self.item(folded.content());
        let visibility = folded.ids.iter().map(|id| (*id, Visibility::Folded)).collect();
        let broken = self.item(ItemContent::PrefixBreak { reason: BreakReason::Compaction });
        let beside = Beside { visibility, ..Beside::default() };
        self.journal.write(&[compaction.clone(), broken], beside).await?;
        fold::apply(&mut items, &folded, compaction);
        self.rebuild(&items).await;
        self.reported = 0;
        if folded.by == DigestBy::Truncation {
            let text = "earlier work was shortened without the model, which could not summarise it";
            self.journal.notice(NoticeLevel::Warning, text);
        }
        Ok(true)
    }

    /// The items the model is told, in the order in which it is told them.
    pub(super) async fn active_items(&self) -> Result<Vec<Item>, StoreError> {
        let page = self.journal.store.items(ItemQuery::active(self.id)).await?;
        Ok(fold::arrange(page.entries.into_iter().map(|stored| stored.item).collect()))
    }

    /// Asks the thread's own model for a summary, without tools. Whatever goes wrong, there is another way.
    async fn digest(&mut self, request: ModelRequest) -> Option<String> {
        let mut stream = self.model.client.send_message(&request);
        let mut answer = Answer::default();
        loop {
            match answer.hear(next(&mut stream).await?) {
                Heard::More => {}
                Heard::Complete(_, usage) => {
                    self.account(usage);
                    return Some(answer.text);
                }
                Heard::Failed(error) => {
                    let text = format!("the model could not summarise earlier work: {error}");
                    self.journal.hub.emit(EventContent::Notice { level: NoticeLevel::Warning, text });
                    return None;
                }
            }
        }
    }

    /// Writes the originals out, one message per line. They stay in the store as well, so a failure is only told.
    async fn archive(&self, plan: &Plan) {
        let messages = messages_of(plan.items());
        let directory = self.parts.places.config.join("archive");
        let written = tokio::task::spawn_blocking(move || export::archive(&directory, &messages)).await;
        if let Ok(Err(error)) = written {
            self.journal.notice(NoticeLevel::Warning, format!("earlier work was not archived: {error}"));
        }
    }
}
