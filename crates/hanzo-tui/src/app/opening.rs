//! Threads: opening, showing again, going back.

use std::collections::VecDeque;

use hanzo_protocol::engine::{
    Attendance, List, ListKind, Request, Response, ThreadAt, ThreadList, ThreadOptions, ThreadRead,
    ThreadResume, ThreadStart, ThreadSummary,
};
use hanzo_protocol::ids::ThreadId;
use hanzo_protocol::item::{Item, ItemContent, NoticeLevel, Visibility};
use serde_json::Value;

use super::{App, Asked, Begin, Choice, Command, Dialog, Figures};
use crate::composer::Prompt;
use crate::dialog::{Entry, Picker};
use crate::text;
use crate::transcript;

/// How many items of a reopened thread are shown again.
const SHOWN_AGAIN: usize = 60;

/// What is read of a thread before it is shown again.
#[derive(Debug, Default)]
pub(super) struct Replayed {
    items: VecDeque<Item>,
    skipped: usize,
}

impl App {
    /// The first thing to do: the thread.
    pub(super) fn begin(&mut self) -> Vec<Command> {
        let mut commands = Vec::new();
        for notice in std::mem::take(&mut self.setup.notices) {
            self.tell(NoticeLevel::Warning, &notice);
        }
        let list = |limit| ThreadList {
            workspace: Some(self.setup.workspace.clone()),
            limit: Some(limit),
            ..ThreadList::default()
        };
        match self.setup.begin.clone() {
            Begin::New => self.start_new(&mut commands),
            Begin::Newest => commands.push(Command::Call(Asked::Newest, Request::ThreadList(list(50)))),
            Begin::Id(prefix) => {
                if let Ok(id) = prefix.parse::<ThreadId>() {
                    self.resume(id, &mut commands);
                } else {
                    let all = ThreadList { limit: Some(200), ..ThreadList::default() };
                    commands.push(Command::Call(Asked::ById(prefix), Request::ThreadList(all)));
                }
            }
            Begin::Choose => commands.push(Command::Call(Asked::Threads, Request::ThreadList(list(100)))),
        }
        commands
    }

    fn options(&self) -> ThreadOptions {
        ThreadOptions { attendance: Attendance::Attended, ..self.setup.options.clone() }
    }

    pub(super) fn start_new(&mut self, commands: &mut Vec<Command>) {
        self.opening = true;
        let start = ThreadStart {
            workspace: self.setup.workspace.clone(),
            agent: None,
            ephemeral: false,
            options: self.options(),
        };
        commands.push(Command::Call(Asked::Open, Request::ThreadStart(start)));
    }

    pub(super) fn resume(&mut self, thread_id: ThreadId, commands: &mut Vec<Command>) {
        self.opening = true;
        let options = self.options();
        commands.push(Command::Call(Asked::Open, Request::ThreadResume(ThreadResume { thread_id, options })));
    }

    pub(super) fn list_threads(&mut self, commands: &mut Vec<Command>) {
        let list = ThreadList {
            workspace: Some(self.setup.workspace.clone()),
            limit: Some(100),
            ..ThreadList::default()
        };
        commands.push(Command::Call(Asked::Threads, Request::ThreadList(list)));
    }

    /// An answer about threads.
    pub(super) fn opened(&mut self, asked: Asked, response: Response, commands: &mut Vec<Command>) {
        match (asked, response) {
            (Asked::Open, Response::ThreadStart(thread)) => self.enter(thread, commands),
            (Asked::Open | Asked::Fork, Response::ThreadResume(thread)) => {
                let id = thread.id;
                self.enter(thread, commands);
                read_again(id, None, commands);
            }
            (Asked::Fork, Response::ThreadFork(copy)) => {
                self.tell(
                    NoticeLevel::Info,
                    "This is a copy now; the thread it was made of is kept (`/resume`)",
                );
                let resume = ThreadResume { thread_id: copy.id, options: self.options() };
                // It shows what is on the screen already, so it is not shown again.
                commands.push(Command::Call(Asked::Configure, Request::ThreadResume(resume)));
                self.thread = Some(copy);
            }
            (Asked::Configure, Response::ThreadResume(thread)) => {
                commands.push(Command::Watch(thread.id, thread.cursor));
                self.thread = Some(thread);
            }
            (Asked::Newest, Response::ThreadList(page)) => {
                if let Some(thread) = page.entries.iter().find(|thread| has_words(thread)) {
                    self.resume(thread.id, commands);
                } else {
                    let words = "There is no thread of this workspace yet; this is the first";
                    self.tell(NoticeLevel::Info, words);
                    self.start_new(commands);
                }
            }
            (Asked::ById(prefix), Response::ThreadList(page)) => {
                let fits: Vec<&ThreadSummary> =
                    page.entries.iter().filter(|thread| thread.id.to_string().starts_with(&prefix)).collect();
                match fits.as_slice() {
                    [one] => self.resume(one.id, commands),
                    [] => {
                        self.tell(NoticeLevel::Error, &format!("No thread's id begins with `{prefix}`"));
                        self.pick_thread(page.entries);
                    }
                    _ => self.pick_thread(page.entries),
                }
            }
            (Asked::Threads, Response::ThreadList(page)) => self.pick_thread(page.entries),
            (Asked::Replay, Response::ThreadRead(page)) => {
                let Some(id) = self.thread_id() else { return };
                for item in page.entries.into_iter().filter(|item| item.visibility != Visibility::Rewound) {
                    self.replayed.items.push_back(item);
                    if self.replayed.items.len() > SHOWN_AGAIN {
                        self.replayed.items.pop_front();
                        self.replayed.skipped += 1;
                    }
                }
                match page.next {
                    Some(next) => read_again(id, Some(next), commands),
                    None => self.show_again(),
                }
            }
            (Asked::Commands, Response::List(listed)) => {
                let read = |entry: Value| serde_json::from_value(entry).ok();
                self.commands = listed.entries.into_iter().filter_map(read).collect();
                self.menu_listed(commands);
                self.send_early(commands);
            }
            (Asked::Models, Response::List(listed)) => self.pick_model(&listed.entries),
            (Asked::Checkpoints, Response::List(listed)) => {
                self.list_checkpoints(listed.entries, commands);
            }
            (Asked::Prompts, Response::ThreadRead(page)) => self.checkpoint_page(page, commands),
            (Asked::Preview(id), Response::ThreadPreview(preview)) => {
                self.ask_what_to_rewind(id, Some(&preview));
            }
            (Asked::Rewind(what), Response::ThreadRewind(thread)) => self.rewound(what, thread),
            (Asked::Export(format), Response::ThreadExport(exported)) => {
                let ending = match format {
                    hanzo_protocol::engine::ExportFormat::Markdown => "md",
                    hanzo_protocol::engine::ExportFormat::Jsonl => "jsonl",
                };
                let name = self.thread_id().map(|id| format!("thread-{id}.{ending}")).unwrap_or_default();
                commands.push(Command::Write(name, exported.text));
            }
            (Asked::Discard, _) => {
                self.tell(NoticeLevel::Info, "The thread was discarded; this is a new one");
                self.start_new(commands);
            }
            _ => {}
        }
    }

    /// Goes on in `thread`.
    fn enter(&mut self, thread: ThreadSummary, commands: &mut Vec<Command>) {
        let first = self.thread.is_none();
        self.opening = false;
        if first {
            self.welcome(&thread);
        }
        commands.push(Command::Watch(thread.id, thread.cursor));
        commands.push(Command::LookAround(thread.id));
        let list = List { kind: ListKind::Commands, thread_id: Some(thread.id) };
        commands.push(Command::Call(Asked::Commands, Request::List(list)));
        self.live.clear();
        self.dialogs.clear();
        self.uncovered();
        self.turn = None;
        self.queue.clear();
        self.steering.clear();
        self.plan.clear();
        self.window = None;
        self.figures = Figures { branch: self.figures.branch.take(), ..Figures::default() };
        self.thread = Some(thread);
        if let Some(text) = self.setup.prompt.take() {
            self.say(Prompt::of(text), commands);
        }
    }

    fn welcome(&mut self, thread: &ThreadSummary) {
        let theme = self.setup.theme;
        let place = thread.workspace.display().to_string();
        let width = self.size.0;
        let title = format!("hanzo-dev {}", self.setup.version);
        let lines = vec![ratatui::text::Line::from(vec![
            ratatui::text::Span::styled(title.clone(), theme.strong),
            ratatui::text::Span::styled(
                format!("  {}", text::clip_left(&place, width.saturating_sub(text::width(&title) + 3))),
                theme.dim,
            ),
        ])];
        self.out.extend(lines);
        let hint =
            "Say what to do. `?` shows the keys, `/` the commands; Shift+Tab changes how much is asked.";
        self.out.extend(
            text::wrap(hint, width.max(8)).into_iter().map(|row| ratatui::text::Line::styled(row, theme.dim)),
        );
    }

    /// Shows what was read of a reopened thread.
    fn show_again(&mut self) {
        let Replayed { items, skipped } = std::mem::take(&mut self.replayed);
        if skipped > 0 {
            self.tell(
                NoticeLevel::Info,
                &format!("{skipped} earlier items are not shown; `/export` writes all of them out"),
            );
        }
        let context = self.context();
        for item in items {
            match &item.content {
                ItemContent::Plan { steps } => {
                    self.plan.clone_from(steps);
                    continue;
                }
                ItemContent::AgentMessage { text } => self.last_answer.clone_from(text),
                ItemContent::UserMessage { text, .. } => self.composer.history.add(&transcript::said(text)),
                _ => {}
            }
            let lines = self.live.completed(item, &context);
            self.out.extend(lines);
        }
    }

    fn pick_thread(&mut self, threads: Vec<ThreadSummary>) {
        self.opening = false;
        let threads: Vec<ThreadSummary> = threads.into_iter().filter(has_words).collect();
        if threads.is_empty() {
            self.tell(NoticeLevel::Info, "There is no earlier thread of this workspace");
            return;
        }
        let entry = |thread: ThreadSummary| Entry {
            label: thread.title,
            detail: format!("{} · {}", thread.updated_at.strftime("%Y-%m-%d %H:%M"), thread.model),
            value: Choice::Thread(thread.id),
        };
        let entries = threads.into_iter().map(entry).collect();
        self.dialogs.push_back(Dialog::Pick(Picker::new("Go on with which thread?", entries)));
    }

    fn pick_model(&mut self, models: &[Value]) {
        let current = self.thread.as_ref().map(|thread| thread.model.clone()).unwrap_or_default();
        let entry = |model: &Value| {
            let name = model["reference"].as_str()?.to_owned();
            let window = model["contextWindow"].as_u64().or(model["context_window"].as_u64());
            let window = window.map(|window| format!("{}k window", window / 1_000));
            let price = &model["price"];
            let price = price["input"].as_f64().zip(price["output"].as_f64());
            let price = price.map(|(input, output)| format!("${input}/${output} per million tokens"));
            let now = (name == current).then(|| "in use".to_owned());
            let detail = [now, window, price].into_iter().flatten().collect::<Vec<_>>().join(" · ");
            Some(Entry { label: name.clone(), detail, value: Choice::Model(name) })
        };
        let entries: Vec<_> = models.iter().filter_map(entry).collect();
        if entries.is_empty() {
            self.warn("No model is configured\n\nhint: `hanzo-dev setup` finds keys and model servers");
            return;
        }
        let picker = Picker::new("Which model?", entries)
            .starting_at(|choice| *choice == Choice::Model(current.clone()));
        self.dialogs.push_back(Dialog::Pick(picker));
    }

    /// The user chose from a list.
    pub(super) fn chosen(&mut self, choice: Choice, commands: &mut Vec<Command>) {
        match choice {
            Choice::Nothing => self.commit = None,
            Choice::Thread(id) => self.resume(id, commands),
            Choice::Model(model) => self.command("model", &model, commands),
            Choice::Prompt(prompt) => self.composer.set_text(&prompt),
            Choice::Checkpoint(id) => self.preview(id, commands),
            Choice::Rewind(checkpoint, what) => {
                let rewind = |thread_id| {
                    Request::ThreadRewind(hanzo_protocol::engine::ThreadRewind {
                        thread_id,
                        checkpoint,
                        what,
                    })
                };
                self.call(Asked::Rewind(what), rewind, commands);
            }
            Choice::Discard => {
                self.call(
                    Asked::Discard,
                    |thread_id| Request::ThreadDelete(ThreadAt { thread_id }),
                    commands,
                );
            }
            Choice::Carry(posture) => self.carry_out(posture, commands),
            Choice::Theme(name) => self.set_theme(name),
            Choice::Commit => self.commit_now(commands),
            Choice::EditMessage => self.edit_message(commands),
            Choice::Server(server) => self.ask_about_server(&server),
            Choice::Control(what, name) => self.command("mcp", &format!("{what} {name}"), commands),
            Choice::Memory(path) => commands.push(Command::EditFile(path)),
            Choice::Item(item) => self.show_item(&item),
            Choice::Queued(index) => self.ask_about_queued(index),
            Choice::Queue(wish, index) => self.change_queue(wish, index, commands),
        }
    }
}

/// Whether anything was said in a thread.
fn has_words(thread: &ThreadSummary) -> bool {
    !thread.title.is_empty()
}

/// Asks for the items of a thread, to show them again.
fn read_again(thread_id: ThreadId, cursor: Option<String>, commands: &mut Vec<Command>) {
    let read = ThreadRead { thread_id, cursor, limit: Some(500) };
    commands.push(Command::Call(Asked::Replay, Request::ThreadRead(read)));
}
