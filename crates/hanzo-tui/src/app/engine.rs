//! What the engine says, and its answers.

use hanzo_protocol::engine::{CommandOutcome, EngineError, Mode, Posture, Response};
use hanzo_protocol::event::{Event as Notification, EventContent};
use hanzo_protocol::item::{Approval, Item, ItemContent, NoticeLevel, ToolCallStatus, TurnEnd, TurnSummary};
use hanzo_protocol::tool::ToolResult;
use serde_json::Value;

use super::{App, Asked, Choice, Command, Dialog, Turn};
use crate::composer::Prompt;
use crate::dialog::{ApprovalDialog, Entry, Picker, QuestionDialog};
use crate::text;
use crate::transcript;

/// How many results are kept for those who want to see them in full.
const KEPT_RESULTS: usize = 5;
/// The most of a shell command's output that is sent to the model.
const SHELL_OUTPUT: usize = 16 * 1024;

impl App {
    pub(super) fn notified(&mut self, notification: Notification, commands: &mut Vec<Command>) {
        let ours = self.thread_id() == Some(notification.thread_id);
        match notification.content {
            EventContent::ApprovalRequested { approval } => self.consent(approval, commands),
            EventContent::ApprovalResolved { approval_id, allowed, by } => {
                if self.answered.remove(&approval_id) {
                    return;
                }
                let is = |dialog: &Dialog| matches!(dialog, Dialog::Approval(d) if d.approval.approval_id == approval_id);
                let asked = self.dialogs.iter().position(is).and_then(|at| self.dialogs.remove(at));
                if let Some(Dialog::Approval(asked)) = asked {
                    self.live.set_status(asked.approval.item_id, ToolCallStatus::Pending);
                    self.uncovered();
                    let what = if allowed { "allowed" } else { "refused" };
                    self.tell(NoticeLevel::Info, &format!("This was {what} through {by}"));
                }
            }
            EventContent::QuestionAsked { question } => {
                self.open(
                    Dialog::Question(Box::new(QuestionDialog::new(question, self.setup.input))),
                    commands,
                );
            }
            _ if !ours => {}
            EventContent::ThreadStarted { thread } | EventContent::ThreadChanged { thread } => {
                self.thread = Some(thread);
            }
            EventContent::TurnStarted { .. } => {
                let turn = self.turn.get_or_insert(Turn { began: self.now, stopping: false });
                turn.began = turn.began.min(self.now);
            }
            EventContent::ItemStarted { item } => self.item_started(item),
            EventContent::ItemDelta { item_id, delta } => {
                let context = self.context();
                let lines = self.live.grew(item_id, &delta, &context);
                self.out.extend(lines);
            }
            EventContent::ItemCompleted { item } => self.item_completed(item),
            EventContent::TurnCompleted { summary, .. } => self.turn_completed(&summary, commands),
            EventContent::TurnFailed { error, .. } => {
                self.turn_over(commands);
                self.tell(NoticeLevel::Error, &error.message);
                self.call_user("the turn failed", commands);
            }
            EventContent::Notice { level, text } => self.tell(level, &text),
            _ => {}
        }
    }

    fn item_started(&mut self, item: Item) {
        if let ItemContent::ToolCall(call) = &item.content
            && item.turn_id.is_none()
        {
            let typed = serde_json::from_str::<Value>(&call.arguments).ok();
            let typed = typed.and_then(|arguments| arguments["command"].as_str().map(str::to_owned));
            if let Some(at) = typed.and_then(|typed| self.own_commands.iter().position(|own| *own == typed)) {
                self.own_commands.remove(at);
                self.own_calls.insert(item.id);
            }
        }
        if !matches!(item.content, ItemContent::Plan { .. }) {
            self.live.started(item);
        }
    }

    fn item_completed(&mut self, item: Item) {
        match &item.content {
            ItemContent::Plan { steps } => {
                self.plan.clone_from(steps);
                self.plan_changed = true;
                return;
            }
            ItemContent::AgentMessage { text } => self.last_answer.clone_from(text),
            ItemContent::UserMessage { text, .. } => {
                let said = transcript::said(text);
                if let Some(at) = self.steering.iter().position(|steering| said.contains(steering.as_str())) {
                    self.steering.remove(at);
                } else if !self.steering.is_empty() {
                    // A command that became another text.
                    self.steering.remove(0);
                }
            }
            ItemContent::ToolCall(_) => {
                self.own_calls.remove(&item.id);
                self.last_calls.push_back(item.clone());
                if self.last_calls.len() > KEPT_RESULTS {
                    self.last_calls.pop_front();
                }
            }
            _ => {}
        }
        let context = self.context();
        let lines = self.live.completed(item, &context);
        self.out.extend(lines);
    }

    fn consent(&mut self, approval: Approval, commands: &mut Vec<Command>) {
        // The user typed this command: that was the consent.
        if self.own_calls.contains(&approval.item_id) {
            let once = hanzo_protocol::engine::ApprovalAnswer::Once;
            self.respond(approval.approval_id, once, commands);
            return;
        }
        self.live.set_status(approval.item_id, ToolCallStatus::AwaitingApproval);
        let arguments = self.live.arguments(approval.item_id).map(str::to_owned);
        let dialog = ApprovalDialog::new(approval, arguments, self.setup.input);
        self.open(Dialog::Approval(Box::new(dialog)), commands);
    }

    /// Opens a dialog the engine asks for.
    fn open(&mut self, dialog: Dialog, commands: &mut Vec<Command>) {
        let what = match &dialog {
            Dialog::Approval(dialog) => {
                format!("consent is needed: {}", text::one_line(&dialog.approval.summary))
            }
            _ => "the agent asks something".to_owned(),
        };
        self.open_unasked(dialog);
        self.call_user(&what, commands);
    }

    fn call_user(&self, what: &str, commands: &mut Vec<Command>) {
        if !self.focused {
            commands.push(Command::Notify(format!("hanzo-dev: {}", text::clip(what, 120))));
        }
    }

    fn turn_completed(&mut self, summary: &TurnSummary, commands: &mut Vec<Command>) {
        self.figures.usage += summary.usage;
        if let Some(cost) = summary.cost {
            self.figures.cost = Some(self.figures.cost.unwrap_or_default() + cost);
        }
        if let Some(used) = summary.context_tokens {
            self.figures.context = Some((used, summary.context_window));
        }
        let took = self.turn.map(|turn| self.now.saturating_sub(turn.began));
        let planned = self.thread.as_ref().is_some_and(|thread| thread.mode == Mode::Plan);
        self.turn_over(commands);
        let end = match summary.ended {
            TurnEnd::Completed => None,
            TurnEnd::Interrupted => Some("Stopped. What was done so far stays; say how to go on"),
            TurnEnd::StepLimit => {
                Some("The turn reached the most steps it may take (`agent.max_steps`). Say “go on” to go on")
            }
            TurnEnd::BudgetReached => Some("The turn reached its budget"),
            TurnEnd::NoProgress => Some("The agent kept repeating itself and was stopped"),
            _ => Some("The turn ended"),
        };
        match (end, took) {
            (Some(words), _) => self.tell(NoticeLevel::Warning, words),
            (None, Some(took)) if took.as_secs() >= 20 => {
                let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                let words = format!("Worked for {}, {} steps", transcript::duration(millis), summary.steps);
                self.tell(NoticeLevel::Info, &words);
            }
            _ => {}
        }
        self.call_user("the agent rests", commands);
        self.message_written(summary.ended == TurnEnd::Completed);
        if summary.ended == TurnEnd::Interrupted {
            // What waited is the user's again, to change or to send.
            let waiting: Vec<String> = self.queue.drain(..).map(|prompt| prompt.typed).collect();
            if !waiting.is_empty() {
                let draft = Some(self.composer.opened()).filter(|draft| !draft.is_empty());
                let all: Vec<String> = waiting.into_iter().chain(draft).collect();
                self.composer.set_text(&all.join("\n"));
            }
        } else if let Some(next) = self.queue.pop_front() {
            self.say(next, commands);
        } else if planned && self.commit.is_none() && summary.ended == TurnEnd::Completed {
            self.ask_plan();
        }
    }

    /// The turn is over, however it ended.
    fn turn_over(&mut self, commands: &mut Vec<Command>) {
        self.turn = None;
        self.steering.clear();
        let context = self.context();
        let lines = self.live.finish(&context);
        self.out.extend(lines);
        if std::mem::take(&mut self.plan_changed) && !self.plan.is_empty() {
            let lines = transcript::plan(&self.plan, &context);
            let lines = self.live.say(lines);
            self.out.extend(lines);
            if self.plan.iter().all(|step| is_over(step.status)) {
                self.plan.clear();
            }
        }
        // Whoever asked is gone.
        let before = self.dialogs.len();
        self.dialogs.retain(|dialog| matches!(dialog, Dialog::Pick(_)));
        if self.dialogs.len() < before {
            self.uncovered();
        }
        self.window = None;
        if let Some(id) = self.thread_id() {
            commands.push(Command::LookAround(id));
        }
    }

    /// The plan is made: whether to carry it out.
    fn ask_plan(&mut self) {
        let posture = self.thread.as_ref().map(|thread| thread.posture).unwrap_or_default();
        let entry =
            |label: &str, detail: &str, value| Entry { label: label.into(), detail: detail.into(), value };
        let as_now = match posture {
            Posture::Ask => "what no rule speaks of is asked",
            Posture::Auto => "with posture auto, as now: what no rule speaks of is allowed",
            Posture::Yolo => "with posture yolo, as now: only deny rules hold",
        };
        let mut notes = Vec::new();
        let mut entries = vec![
            entry("Keep planning", "say what should be different", Choice::Nothing),
            entry("Carry it out", as_now, Choice::Carry(Posture::Ask)),
        ];
        if posture == Posture::Ask {
            entries.push(entry(
                "Carry it out with posture auto",
                "until this turn ends",
                Choice::Carry(Posture::Auto),
            ));
            // What is granted is never cut, so it stands where it can be wrapped.
            notes.push(
                "With posture auto, what no rule speaks of is allowed until this turn ends; ask and deny rules hold."
                    .to_owned(),
            );
        }
        let list = Picker::new("Carry out this plan?", entries).with_notes(notes);
        self.open_unasked(Dialog::Pick(list));
    }

    pub(super) fn answered(
        &mut self,
        asked: Asked,
        answer: Result<Response, EngineError>,
        commands: &mut Vec<Command>,
    ) {
        let response = match answer {
            Ok(response) => response,
            Err(error) => return self.refused(asked, &error, commands),
        };
        match (asked, response) {
            (Asked::Configure, Response::ThreadConfigure(summary)) => {
                if self.thread_id() == Some(summary.id) {
                    self.thread = Some(summary);
                }
            }
            (Asked::Command(name), Response::CommandRun(CommandOutcome::Shown { text })) => {
                self.show_markdown(&text);
                if ["model", "mode", "permissions", "effort"].contains(&name.as_str()) {
                    self.configure(None, None, commands);
                }
            }
            (Asked::Command(_), Response::CommandRun(CommandOutcome::Turn(_))) => {
                self.turn.get_or_insert(Turn { began: self.now, stopping: false });
            }
            (Asked::Shell(command), Response::ToolCall(result)) => self.shell_ended(&command, &result),
            (Asked::McpServers, Response::List(listed)) => self.pick_server(listed.entries),
            (Asked::Find(words), Response::ThreadRead(page)) => self.found_page(words, page, commands),
            (asked, response) => self.opened(asked, response, commands),
        }
    }

    fn refused(&mut self, asked: Asked, error: &EngineError, commands: &mut Vec<Command>) {
        match asked {
            // What could not be said is not lost.
            Asked::Say(prompt) => {
                self.turn = None;
                self.give_back(&prompt);
            }
            Asked::Steer(prompt) => {
                self.steering.retain(|steering| *steering != prompt.typed);
                self.give_back(&prompt);
            }
            // Without its files the conversation can still be taken back.
            Asked::Preview(id) => self.ask_what_to_rewind(id, None),
            // What was sent early must not wait for a list that does not come.
            Asked::Commands => self.send_early(commands),
            Asked::Shell(_) => self.shell = self.shell.saturating_sub(1),
            Asked::Interrupt => {
                if let Some(turn) = &mut self.turn {
                    turn.stopping = false;
                }
            }
            Asked::Open | Asked::Newest | Asked::ById(_) => {
                self.opening = false;
                if self.thread.is_none() {
                    self.failed = Some(error.clone());
                    return self.leave(commands);
                }
                self.send_early(commands);
            }
            _ => {}
        }
        self.tell(NoticeLevel::Error, &error.message);
    }

    fn give_back(&mut self, prompt: &Prompt) {
        if self.composer.is_empty() {
            self.composer.set_text(&prompt.typed);
        }
    }

    fn shell_ended(&mut self, command: &str, result: &ToolResult) {
        self.shell = self.shell.saturating_sub(1);
        let mut output = text::clean(&transcript::shown(result));
        if output.len() > SHELL_OUTPUT {
            let cut = output.ceil_char_boundary(output.len() - SHELL_OUTPUT);
            output = format!("…\n{}", &output[cut..]);
        }
        let block = super::git::block("shell", &format!("$ {command}\n{output}"));
        self.shell_outputs.push(block);
        self.remark("The agent will see this output with your next message");
    }
}

fn is_over(status: hanzo_protocol::item::PlanStatus) -> bool {
    use hanzo_protocol::item::PlanStatus::{Done, Dropped};
    matches!(status, Done | Dropped)
}
