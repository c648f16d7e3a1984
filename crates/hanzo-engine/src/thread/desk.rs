//! What waits for a person: requests for consent and questions. One desk for the whole engine, because an answer names
//! only what it answers. The first answer counts.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hanzo_protocol::BoxFuture;
use hanzo_protocol::engine::{
    ApprovalAnswer, ApprovalRespond, EngineError, EngineErrorKind, QuestionRespond,
};
use hanzo_protocol::event::EventContent;
use hanzo_protocol::ids::{ApprovalId, QuestionId};
use hanzo_protocol::item::Approval;
use tokio::sync::oneshot;

use super::hub::Hub;
use crate::gate::{Answered, Asker};
use crate::parts::refuse;

/// How many answers are remembered, to tell a late one that somebody was first.
const REMEMBERED: usize = 256;

/// What waits for a person.
#[derive(Default)]
pub(crate) struct Desk {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    approvals: HashMap<ApprovalId, oneshot::Sender<(ApprovalAnswer, String)>>,
    questions: HashMap<QuestionId, oneshot::Sender<String>>,
    answered: VecDeque<(ApprovalId, String)>,
}

impl Desk {
    /// Answers a request for consent.
    pub(crate) fn answer(&self, respond: ApprovalRespond) -> Result<(), EngineError> {
        let ApprovalRespond { approval_id, answer, by } = respond;
        let mut state = self.state();
        let Some(waiting) = state.approvals.remove(&approval_id) else {
            return Err(match state.answered.iter().find(|(id, _)| *id == approval_id) {
                Some((_, first)) => {
                    refuse(EngineErrorKind::Conflict, format!("this was already answered through {first}"))
                }
                None => refuse(EngineErrorKind::NotFound, "nothing waits for this answer any more"),
            });
        };
        state.answered.push_back((approval_id, by.clone()));
        if state.answered.len() > REMEMBERED {
            state.answered.pop_front();
        }
        // Whoever asked may have been interrupted in this very moment; then the answer is not needed.
        let _ = waiting.send((answer, by));
        Ok(())
    }

    /// Answers a question.
    pub(crate) fn answer_question(&self, respond: QuestionRespond) -> Result<(), EngineError> {
        let waiting = self.state().questions.remove(&respond.question_id);
        let waiting = waiting.ok_or_else(|| {
            refuse(EngineErrorKind::NotFound, "this question was answered or is no longer asked")
        })?;
        let _ = waiting.send(respond.text);
        Ok(())
    }

    /// Puts a question up; from now on it can be answered.
    pub(crate) fn question(&self, id: QuestionId) -> Waiting<'_, QuestionId, String> {
        let (sender, answer) = oneshot::channel();
        self.state().questions.insert(id, sender);
        Waiting {
            answer,
            _withdraw: Withdraw { desk: self, take: |state, id| drop(state.questions.remove(id)), id },
        }
    }

    fn approval(&self, id: ApprovalId) -> Waiting<'_, ApprovalId, (ApprovalAnswer, String)> {
        let (sender, answer) = oneshot::channel();
        self.state().approvals.insert(id, sender);
        Waiting {
            answer,
            _withdraw: Withdraw { desk: self, take: |state, id| drop(state.approvals.remove(id)), id },
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Something that waits for its answer. Dropping it withdraws it.
pub(crate) struct Waiting<'a, Id, Answer> {
    answer: oneshot::Receiver<Answer>,
    _withdraw: Withdraw<'a, Id>,
}

impl<Id, Answer> Waiting<'_, Id, Answer> {
    /// The answer; `None` when the engine ends first.
    pub(crate) async fn answer(mut self) -> Option<Answer> {
        (&mut self.answer).await.ok()
    }
}

/// Takes back what was asked when nobody waits for the answer any more.
struct Withdraw<'a, Id> {
    desk: &'a Desk,
    take: fn(&mut State, &Id),
    id: Id,
}

impl<Id> Drop for Withdraw<'_, Id> {
    fn drop(&mut self) {
        (self.take)(&mut self.desk.state(), &self.id);
    }
}

/// Asks for consent on behalf of one thread.
pub(crate) struct ThreadAsker {
    pub(crate) desk: Arc<Desk>,
    pub(crate) hub: Arc<Hub>,
}

impl Asker for ThreadAsker {
    fn ask(&self, approval: Approval) -> BoxFuture<'_, Answered> {
        Box::pin(async move {
            let approval_id = approval.approval_id;
            let waiting = self.desk.approval(approval_id);
            self.hub.emit_upwards(&EventContent::ApprovalRequested { approval });
            let Some((answer, by)) = waiting.answer().await else { return Answered::Nobody };
            let allowed = !matches!(answer, ApprovalAnswer::Deny { .. });
            self.hub.emit_upwards(&EventContent::ApprovalResolved { approval_id, allowed, by: by.clone() });
            Answered::By { answer, face: by }
        })
    }
}
