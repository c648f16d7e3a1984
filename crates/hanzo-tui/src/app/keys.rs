//! What keys do.

use hanzo_protocol::engine::{
    ApprovalAnswer, ApprovalRespond, Mode, Posture, QuestionRespond, Request, ThreadAt, ToolCallRequest,
    TurnStart,
};
use hanzo_protocol::item::{NoticeLevel, ToolCallStatus};
use serde_json::json;

use super::menu::Taken;
use super::pause::Strays;
use super::{App, Armed, Asked, Choice, Command, Dialog, Follow, TWICE};
use crate::composer::Prompt;
use crate::dialog::{Entry, Picker, Reply};
use crate::edit::{HistoryStep, InputMode, Key, KeyCode, Mode as EditMode, Outcome};
use crate::keymap::{Action, Binding, spoken};
use crate::terminal::Input;
use crate::theme::Theme;
use crate::transcript::Detail;

impl App {
    pub(super) fn input(&mut self, input: Input, commands: &mut Vec<Command>) {
        match input {
            Input::Key(key) => {
                self.last_key = Some(self.now);
                self.key(key, commands);
            }
            Input::Paste(text) => self.pasted(&text, commands),
            Input::Resize(width, height) => self.size = (usize::from(width), usize::from(height)),
            Input::Focus(focused) => self.focused = focused,
            Input::Background(background) => {
                if self.setup.terminal.background == Follow::Follows {
                    self.setup.theme = Theme::for_background(background);
                }
            }
            // The wheel moves in whatever is open, as the arrow keys do.
            Input::Wheel(by) if self.has_dialog() => {
                let key = Key::new(if by < 0 { KeyCode::Up } else { KeyCode::Down });
                if self.dialogs.is_empty() {
                    self.key(key, commands);
                } else {
                    self.dialog_key(key, commands);
                }
            }
            Input::Click { row, .. } => self.clicked(usize::from(row), commands),
            Input::Wheel(_) | Input::Position(..) => {}
        }
    }

    /// A click chooses an entry, a second one takes it: one that went astray answers nothing.
    fn clicked(&mut self, row: usize, commands: &mut Vec<Command>) {
        let Some(index) = self.entry_at(row) else { return };
        let again = match self.dialogs.front_mut() {
            Some(Dialog::Approval(dialog)) => dialog.select(index),
            Some(Dialog::Question(dialog)) => dialog.select(index),
            Some(Dialog::Pick(picker)) => picker.select(index),
            None => self.menu.as_mut().is_some_and(|menu| menu.select(index)),
        };
        if again {
            self.key(Key::new(KeyCode::Enter), commands);
        }
    }

    fn pasted(&mut self, text: &str, commands: &mut Vec<Command>) {
        let strays = self.strays();
        if strays == Some(Strays::Nowhere) {
            return;
        }
        match self.dialogs.front_mut().filter(|_| strays.is_none()) {
            Some(Dialog::Approval(dialog)) => dialog.paste(text),
            Some(Dialog::Question(dialog)) => dialog.paste(text),
            Some(Dialog::Pick(picker)) => picker.paste(text),
            None => {
                let path = text.trim().trim_matches(['\'', '"']);
                let path = path.strip_prefix("file://").unwrap_or(path);
                let image = ["png", "jpg", "jpeg", "gif", "webp"];
                let ending = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
                if image.contains(&ending.as_str()) && !path.contains('\n') && path.len() < 4_096 {
                    commands.push(Command::FindImage(path.replace("\\ ", " ")));
                } else {
                    self.composer.paste(text);
                    self.refresh_menu(commands);
                }
            }
        }
    }

    fn key(&mut self, key: Key, commands: &mut Vec<Command>) {
        let action = match self.setup.keymap.binding(self.chord.take(), key) {
            Binding::Action(action) => Some(action),
            Binding::Begun if self.dialogs.is_empty() && self.is_writing() => {
                self.chord = Some(key);
                return self.remark(format!("{} …", spoken(key)));
            }
            Binding::Begun | Binding::Nothing => None,
        };
        // These work wherever one is.
        match action {
            Some(Action::Suspend) => return commands.push(Command::Suspend),
            Some(Action::Redraw) => return commands.push(Command::Redraw),
            Some(Action::Cancel) => return self.cancel(commands),
            _ => {}
        }
        if !self.dialogs.is_empty() {
            match self.strays() {
                None => return self.dialog_key(key, commands),
                // To say no is never too early. In the middle of a word it may be for the vim keys.
                Some(_) if key.code == KeyCode::Escape && !self.is_escape_of_vim() => {
                    return self.dialog_key(key, commands);
                }
                Some(Strays::Nowhere) => return,
                Some(Strays::Draft) => {}
            }
        }
        if self.help {
            self.help = false;
            if key.code == KeyCode::Escape {
                return;
            }
        }
        match self.menu_key(key, commands) {
            Taken::Yes => return,
            Taken::Run => return self.submit(commands),
            Taken::No => {}
        }
        if let Some(action) = action
            && self.act(action, key, commands)
        {
            return;
        }
        if key == Key::char('?') && self.composer.is_empty() && self.types() {
            self.show_help();
            return;
        }
        // `\` before Enter is a line break for terminals that cannot say Shift+Enter.
        if key == Key::new(KeyCode::Enter) && self.types() && self.ends_with_backslash() {
            self.composer.key(Key::new(KeyCode::Backspace), self.now);
            self.composer.insert("\n");
            return;
        }
        let outcome = self.composer.key(key, self.now);
        self.outcome(outcome, commands);
    }

    /// Shows the keys: above the composer as long as nothing else is typed, or in the transcript where there is no room.
    fn show_help(&mut self) {
        let rows = self.help_rows(self.size.0.max(1));
        if rows.len() + 3 < self.size.1 {
            self.help = true;
        } else {
            let lines = self.live.say(rows);
            self.out.extend(lines);
        }
    }

    /// Whether keys write, or would if the vim keys were told so: in their other modes a key may be a command of theirs.
    fn is_writing(&self) -> bool {
        self.composer.editor().settings().input != InputMode::Vim || self.types()
    }

    /// Whether a character would be typed now.
    fn types(&self) -> bool {
        self.composer.editor().mode() == EditMode::Insert
    }

    fn ends_with_backslash(&self) -> bool {
        let editor = self.composer.editor();
        let text = editor.text();
        text[..editor.byte_offset(editor.cursor())].ends_with('\\')
    }

    fn outcome(&mut self, outcome: Outcome, commands: &mut Vec<Command>) {
        match outcome {
            Outcome::Submit => self.submit(commands),
            Outcome::SubmitAndQuit => {
                self.submit(commands);
                self.leave(commands);
            }
            Outcome::Quit if self.composer.is_empty() => self.leave(commands),
            Outcome::Quit => self.composer.clear_to_history(),
            Outcome::Copy(text) => commands.push(Command::Copy(text)),
            Outcome::SearchHistory => self.search_history(),
            Outcome::InputMode(mode) => {
                self.setup.input = mode;
                self.remark(format!("{} keys from now on", mode.name()));
            }
            Outcome::Message(text) => self.remark(text),
            Outcome::History(HistoryStep::Older | HistoryStep::Newer) => {}
            _ => self.refresh_menu(commands),
        }
    }

    /// Does what a key is bound to; `false` when the key means something to the text instead.
    fn act(&mut self, action: Action, key: Key, commands: &mut Vec<Command>) -> bool {
        match action {
            Action::Interrupt => return self.escape(commands),
            Action::Leave => {
                if !self.composer.is_empty() {
                    return false;
                }
                self.leave(commands);
            }
            Action::Queue => {
                if key.code == KeyCode::Tab && (!self.is_busy() || self.composer.is_empty()) {
                    return true;
                }
                let prompt = self.composer.take();
                remember(&prompt, commands);
                self.queue.push_back(prompt);
            }
            Action::Posture => self.cycle(commands),
            Action::Newline => {
                self.composer.insert("\n");
                self.menu = None;
            }
            Action::SearchHistory => {
                // In vim's normal mode the key is redo.
                if !self.is_writing() {
                    return false;
                }
                self.search_history();
            }
            Action::Find => {
                // Where the key moves, it moves as long as there is text to move in.
                let moves = self.composer.editor().settings().input != InputMode::Default;
                if moves && !self.composer.is_empty() {
                    return false;
                }
                self.find("", commands);
            }
            Action::Image => {
                if !self.is_writing() {
                    return false;
                }
                commands.push(Command::PasteImage);
            }
            Action::Editor => commands.push(Command::Edit(self.composer.opened())),
            Action::Transcript => self.show_results(),
            Action::Plan => {
                self.plan_shown = !self.plan_shown;
                if self.plan.is_empty() {
                    self.remark("There is no plan yet");
                }
            }
            Action::Reasoning => {
                self.reasoning = if self.reasoning == Detail::Full { Detail::Folded } else { Detail::Full };
                self.remark(match self.reasoning {
                    Detail::Full => "What the model thinks is shown from now on",
                    Detail::Folded => "What the model thinks is folded from now on",
                });
            }
            Action::Unqueue => {
                if let Some(prompt) = self.queue.pop_back() {
                    self.composer.set_text(&prompt.typed);
                }
            }
            Action::Cancel | Action::Redraw | Action::Suspend => {}
        }
        true
    }

    /// Whether Escape means something to the vim keys.
    fn is_escape_of_vim(&self) -> bool {
        let editor = self.composer.editor();
        let vim = editor.settings().input == InputMode::Vim;
        vim && (editor.mode() != EditMode::Normal || !editor.pending_keys().is_empty())
    }

    /// Escape: the vim keys first, then the turn, then the draft or the past.
    fn escape(&mut self, commands: &mut Vec<Command>) -> bool {
        if self.is_escape_of_vim() {
            return false;
        }
        if self.is_busy() {
            self.stop(commands);
            return true;
        }
        if matches!(self.armed, Some((Armed::Escape, _))) {
            self.armed = None;
            if self.composer.is_empty() {
                self.ask_rewind(commands);
            } else {
                self.composer.clear_to_history();
                self.remark("The draft is in the history: Up brings it back");
            }
        } else {
            self.armed = Some((Armed::Escape, self.now + TWICE));
        }
        true
    }

    fn cancel(&mut self, commands: &mut Vec<Command>) {
        if self.turn.is_some_and(|turn| !turn.stopping) || self.shell > 0 {
            self.stop(commands);
        } else if matches!(self.dialogs.front(), Some(Dialog::Pick(_))) {
            self.dialogs.pop_front();
            self.uncovered();
        } else if !self.composer.is_empty() {
            self.composer.clear_to_history();
            self.menu = None;
            self.remark("The draft is in the history: Up brings it back");
        } else if matches!(self.armed, Some((Armed::Leave, _))) {
            self.leave(commands);
        } else {
            self.armed = Some((Armed::Leave, self.now + TWICE));
        }
    }

    pub(super) fn leave(&mut self, commands: &mut Vec<Command>) {
        self.quit = true;
        commands.push(Command::Quit);
    }

    fn stop(&mut self, commands: &mut Vec<Command>) {
        if let Some(turn) = &mut self.turn {
            turn.stopping = true;
        }
        self.call(Asked::Interrupt, |thread_id| Request::TurnInterrupt(ThreadAt { thread_id }), commands);
    }

    /// Shift+Tab: ask → auto → plan.
    fn cycle(&mut self, commands: &mut Vec<Command>) {
        let Some(thread) = &self.thread else { return };
        let (mode, posture, words) = match (thread.mode, self.window.unwrap_or(thread.posture)) {
            (Mode::Plan, _) => (Mode::Normal, Posture::Ask, "ask: what no rule speaks of is asked"),
            (_, Posture::Ask) => (Mode::Normal, Posture::Auto, "auto: what no rule speaks of is allowed"),
            _ => (Mode::Plan, Posture::Ask, "plan: the agent looks and plans, and changes nothing"),
        };
        self.configure(Some(mode), Some(posture), commands);
        self.remark(words);
    }

    fn search_history(&mut self) {
        let found = self.composer.history.search("");
        let entries: Vec<Entry<Choice>> = found
            .into_iter()
            .map(|prompt| Entry {
                label: prompt.to_owned(),
                detail: String::new(),
                value: Choice::Prompt(prompt.to_owned()),
            })
            .collect();
        if entries.is_empty() {
            self.remark("Nothing was asked before");
            return;
        }
        self.dialogs.push_back(Dialog::Pick(Picker::new("Earlier prompts", entries)));
    }

    /// Sends what is written: to the agent, to the shell, or to a command.
    pub(super) fn submit(&mut self, commands: &mut Vec<Command>) {
        self.menu = None;
        let text = self.composer.text();
        if text.trim().is_empty() {
            return;
        }
        let prompt = self.composer.take();
        remember(&prompt, commands);
        // What a command is called is known only from the list of them.
        let unlisted = self.commands.is_empty() && prompt.text.trim_start().starts_with('/');
        if self.thread.is_none() || self.opening || unlisted {
            self.early.push_back(prompt);
            self.remark("This is sent when the thread is open");
            return;
        }
        self.send(prompt, commands);
    }

    /// Does with a prompt what it says: to the shell, to a command, or to the agent.
    fn send(&mut self, prompt: Prompt, commands: &mut Vec<Command>) {
        if let Some(command) = prompt.text.trim().strip_prefix('!') {
            let command = command.trim().to_owned();
            if !command.is_empty() {
                self.run_shell(command, commands);
            }
            return;
        }
        if let Some((name, arguments)) = self.slash(&prompt.text) {
            return self.run_slash(&name, &arguments, commands);
        }
        self.say(prompt, commands);
    }

    /// Sends what was sent before there was a thread. What follows the first one waits for its turn's end.
    pub(super) fn send_early(&mut self, commands: &mut Vec<Command>) {
        // The commands may have been listed for the thread before.
        if self.opening {
            return;
        }
        while let Some(prompt) = self.early.pop_front() {
            if self.turn.is_some() {
                self.queue.push_back(prompt);
            } else {
                self.send(prompt, commands);
            }
        }
    }

    /// Says something to the agent: now, or into the running turn.
    pub(super) fn say(&mut self, prompt: Prompt, commands: &mut Vec<Command>) {
        let Some(thread_id) = self.thread_id() else { return };
        let mut text = prompt.text.clone();
        for output in self.shell_outputs.drain(..).rev() {
            text = format!("{output}\n\n{text}");
        }
        let posture = prompt.posture;
        let start = TurnStart { thread_id, text, attachments: prompt.attachments.clone(), posture };
        if self.turn.is_some() {
            self.steering.push(prompt.typed.clone());
            commands.push(Command::Call(Asked::Steer(prompt), Request::TurnSteer(start)));
        } else {
            // Whoever says something else has answered whether to carry out the plan.
            let is_plan = |choice: &Choice| matches!(choice, Choice::Carry(_));
            self.dialogs.retain(|dialog| !matches!(dialog, Dialog::Pick(list) if list.offers(is_plan)));
            self.turn = Some(super::Turn { began: self.now, stopping: false });
            commands.push(Command::Call(Asked::Say(prompt), Request::TurnStart(start)));
        }
    }

    fn run_shell(&mut self, command: String, commands: &mut Vec<Command>) {
        let arguments = json!({"action": "exec", "command": command});
        let call = |thread_id| {
            Request::ToolCall(ToolCallRequest {
                thread_id,
                tool: "proc".to_owned(),
                arguments,
                item_id: None,
            })
        };
        if self.call(Asked::Shell(command.clone()), call, commands) {
            self.shell += 1;
            self.own_commands.push(command);
        }
    }

    fn dialog_key(&mut self, key: Key, commands: &mut Vec<Command>) {
        let now = self.now;
        match self.dialogs.front_mut() {
            Some(Dialog::Approval(dialog)) => {
                // Stopping the turn is an answer too.
                if let Reply::Done(answer) = dialog.key(key, now) {
                    let (approval_id, item) = (dialog.approval.approval_id, dialog.approval.item_id);
                    self.dialogs.pop_front();
                    self.live.set_status(item, ToolCallStatus::Pending);
                    self.uncovered();
                    self.respond(approval_id, answer, commands);
                }
            }
            Some(Dialog::Question(dialog)) => match dialog.key(key, now) {
                Reply::Done(text) => {
                    let question_id = dialog.question.question_id;
                    self.dialogs.pop_front();
                    self.uncovered();
                    let respond = QuestionRespond { question_id, text };
                    commands.push(Command::Call(Asked::Answered, Request::QuestionRespond(respond)));
                }
                Reply::Closed => {
                    self.dialogs.pop_front();
                    self.uncovered();
                    self.stop(commands);
                }
                Reply::Stay | Reply::Ignored => {}
            },
            Some(Dialog::Pick(picker)) => match picker.key(key) {
                Reply::Done(choice) => {
                    self.dialogs.pop_front();
                    self.uncovered();
                    self.chosen(choice, commands);
                }
                Reply::Closed => {
                    self.dialogs.pop_front();
                    self.uncovered();
                    if self.thread.is_none() && !self.opening {
                        self.start_new(commands);
                    }
                }
                Reply::Stay | Reply::Ignored => {}
            },
            None => {}
        }
    }

    /// Answers a request for consent.
    pub(super) fn respond(
        &mut self,
        approval_id: hanzo_protocol::ids::ApprovalId,
        answer: ApprovalAnswer,
        commands: &mut Vec<Command>,
    ) {
        let respond = ApprovalRespond { approval_id, answer, by: "terminal".to_owned() };
        self.answered.insert(approval_id);
        commands.push(Command::Call(Asked::Answered, Request::ApprovalRespond(respond)));
    }

    /// Writes the results of the last calls into the transcript in full.
    fn show_results(&mut self) {
        let context = crate::transcript::RenderContext {
            results: Detail::Full,
            reasoning: Detail::Full,
            ..self.context()
        };
        let calls: Vec<_> = self.last_calls.drain(..).collect();
        if calls.is_empty() {
            self.remark("No tool has returned anything since this was last shown");
            return;
        }
        for item in calls {
            let lines = crate::transcript::render_item(&item, &context);
            let lines = self.live.say(lines);
            self.out.extend(lines);
        }
    }

    /// What the status line reminds of, where there is room.
    pub(super) fn hint_keys(&self) -> String {
        let posture = self.setup.keymap.keys(Action::Posture);
        let newline = self.setup.keymap.keys(Action::Newline);
        let first = newline.split(", ").next().unwrap_or_default().to_owned();
        format!("{first} newline · {posture} posture · / commands · @ files · ! shell · ? keys")
    }

    pub(super) fn warn(&mut self, words: &str) {
        self.tell(NoticeLevel::Warning, words);
    }
}

/// Has a prompt remembered for the next start.
fn remember(prompt: &Prompt, commands: &mut Vec<Command>) {
    if !prompt.text.trim().is_empty() {
        commands.push(Command::Remember(prompt.text.clone()));
    }
}
