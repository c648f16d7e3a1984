//! Slash commands: what the engine's registry lists, done here or passed on.

use hanzo_protocol::engine::{
    CommandPurpose, CommandRun, ExportFormat, List, ListKind, Mode, Posture, Request, ThreadExport,
    ThreadFork,
};
use hanzo_protocol::item::NoticeLevel;

use super::{App, Asked, Choice, Command, Dialog};
use crate::composer::Prompt;
use crate::dialog::{Entry, Picker};
use crate::keymap::Action;
use crate::theme::Theme;

/// What is said when a plan is approved.
const CARRY_OUT: &str = "The plan is approved. Carry it out.";

impl App {
    /// The command in `text`, when it is one the registry lists. Anything else that begins with a slash, such as a path, is
    /// said to the agent.
    pub(super) fn slash(&self, text: &str) -> Option<(String, String)> {
        let rest = text.trim().strip_prefix('/')?;
        let (name, arguments) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let known = self.commands.iter().any(|command| command.name == name);
        // A word nobody knows goes to the engine too: it says what may have been meant.
        let word = !name.is_empty()
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | ':' | '.'));
        (known || (word && arguments.is_empty())).then(|| (name.to_owned(), arguments.trim().to_owned()))
    }

    pub(super) fn run_slash(&mut self, name: &str, arguments: &str, commands: &mut Vec<Command>) {
        if self.git(name, arguments, commands) {
            return;
        }
        match (name, arguments) {
            ("new", _) => {
                self.tell(NoticeLevel::Info, "A new thread; `/resume` goes back to the one before");
                self.start_new(commands);
            }
            ("clear", _) => self.ask_discard(),
            ("resume", "") => self.list_threads(commands),
            ("resume", id) => match id.parse() {
                Ok(id) => self.resume(id, commands),
                Err(_) => self.list_threads(commands),
            },
            ("rewind", _) => self.ask_rewind(commands),
            ("model", "") => {
                let list =
                    |thread_id| Request::List(List { kind: ListKind::Models, thread_id: Some(thread_id) });
                self.call(Asked::Models, list, commands);
            }
            ("fork", "") => {
                let fork = |thread_id| Request::ThreadFork(ThreadFork { thread_id, until: None });
                self.call(Asked::Fork, fork, commands);
            }
            ("export", format) => {
                let format = if format == "jsonl" { ExportFormat::Jsonl } else { ExportFormat::Markdown };
                let export = |thread_id| Request::ThreadExport(ThreadExport { thread_id, format });
                self.call(Asked::Export(format), export, commands);
            }
            ("mcp", "") => self.list_servers(commands),
            ("memory", _) => commands.push(Command::Memories),
            ("doctor", _) => commands.push(Command::Doctor),
            ("find", words) => self.find(words, commands),
            ("queue", _) => self.show_queue(),
            ("copy", _) => self.copy(commands),
            ("theme", "") => self.pick_theme(),
            ("theme", name) => self.set_theme(name),
            ("quit" | "exit", _) => self.leave(commands),
            ("keys", _) => self.help = true,
            ("help", _) => {
                self.help = true;
                self.command(name, arguments, commands);
            }
            _ => self.command(name, arguments, commands),
        }
    }

    /// Has the engine run a command.
    pub(super) fn command(&mut self, name: &str, arguments: &str, commands: &mut Vec<Command>) {
        let run = |thread_id| {
            Request::CommandRun(CommandRun {
                thread_id,
                name: name.to_owned(),
                arguments: arguments.to_owned(),
                purpose: CommandPurpose::Run,
            })
        };
        self.call(Asked::Command(name.to_owned()), run, commands);
    }

    fn ask_discard(&mut self) {
        let entries = vec![
            Entry { label: "Never mind".to_owned(), detail: String::new(), value: Choice::Nothing },
            Entry {
                label: "Discard it".to_owned(),
                detail: "the thread is deleted for good; files stay".to_owned(),
                value: Choice::Discard,
            },
        ];
        self.dialogs.push_back(Dialog::Pick(Picker::new("Discard this thread and start anew?", entries)));
    }

    fn copy(&mut self, commands: &mut Vec<Command>) {
        if self.last_answer.is_empty() {
            self.remark("There is no answer to copy yet");
        } else {
            commands.push(Command::Copy(self.last_answer.clone()));
        }
    }

    /// Says what became of text that was to be copied: a terminal does not tell whether it took it.
    pub(super) fn copied(&mut self, text: String, by: Option<&'static str>, commands: &mut Vec<Command>) {
        let count = text.chars().count();
        if let Some(program) = by {
            self.remark(format!("Copied {count} characters with {program}"));
        } else {
            self.remark(format!("Sent {count} characters to the terminal's clipboard (OSC 52)"));
            commands.push(Command::CopyByTerminal(text));
        }
    }

    fn pick_theme(&mut self) {
        let entry = |label: &str, detail: &str, name| Entry {
            label: label.to_owned(),
            detail: detail.to_owned(),
            value: Choice::Theme(name),
        };
        let entries = Theme::NAMES.map(|(name, about)| entry(name, about, name)).to_vec();
        let now = self.setup.theme.name;
        let picker = Picker::new("Which theme?", entries)
            .starting_at(|choice| matches!(choice, Choice::Theme(name) if *name == now));
        self.dialogs.push_back(Dialog::Pick(picker));
    }

    pub(super) fn set_theme(&mut self, name: &str) {
        let Some(theme) = Theme::named(name) else {
            self.warn(&format!("There is no theme `{name}`\n\nhint: `/theme` lists them"));
            return;
        };
        self.setup.theme = theme;
        self.remark(format!("The theme is `{name}` from now on"));
    }

    /// Leaves plan mode and has the plan carried out. With `auto` its calls need no consent until the turn is over; the posture of the
    /// thread stays what it is.
    pub(super) fn carry_out(&mut self, posture: Posture, commands: &mut Vec<Command>) {
        let own = self.thread.as_ref().map(|thread| thread.posture).unwrap_or_default();
        self.window = (posture == Posture::Auto && own == Posture::Ask).then_some(posture);
        self.configure(Some(Mode::Normal), None, commands);
        self.say(Prompt { posture: self.window, ..Prompt::of(CARRY_OUT) }, commands);
    }

    /// The keys, for `?`.
    pub(super) fn key_help(&self) -> Vec<(String, &'static str)> {
        let mut rows = vec![
            ("Enter".to_owned(), "send; while a turn runs: add to it"),
            ("Up, Down".to_owned(), "earlier prompts"),
            ("/  @  !".to_owned(), "command, file, shell command"),
        ];
        rows.extend(Action::ALL.iter().map(|action| (self.setup.keymap.keys(*action), action.about())));
        rows
    }
}
