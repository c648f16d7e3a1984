//! The face on an emulated terminal, with a test in the place of the engine.

use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use hanzo_protocol::engine::{
    CommandOutcome, Done, Listed, Mode, Page, Posture, Request, Response, ThreadOptions, ThreadSummary,
    TurnStarted,
};
use hanzo_protocol::event::{Event as Notification, EventContent, EventCursor};
use hanzo_protocol::ids::{ItemId, ThreadId, ToolCallId, TraceId, TurnId};
use hanzo_protocol::item::{
    Item, ItemContent, ToolCallItem, ToolCallStatus, TurnEnd, TurnSummary, Visibility,
};
use hanzo_protocol::tool::{Effect, ToolResult};
use hanzo_protocol::usage::Usage;
use hanzo_tui::app::{App, Asked, Begin, Command, Event, Setup};
use hanzo_tui::edit::{InputMode, Key};
use hanzo_tui::keymap::Keymap;
use hanzo_tui::terminal::{Input, Reflow, Screen};
use hanzo_tui::theme::Theme;
use serde_json::json;

pub struct Stage {
    pub app: App,
    pub thread: ThreadId,
    pub turn: TurnId,
    screen: Screen<Vec<u8>>,
    terminal: vt100::Parser,
    /// Every byte that was written.
    pub written: Vec<u8>,
    /// What the face wanted done and the stage did not answer by itself.
    pub wanted: Vec<Command>,
    now: Duration,
    cursor: u64,
    /// Whether nothing is drawn by itself.
    held: bool,
}

fn cells(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap()
}

pub fn setup() -> Setup {
    Setup {
        workspace: PathBuf::from("/home/user/project"),
        begin: Begin::New,
        options: ThreadOptions::default(),
        prompt: None,
        input: InputMode::Default,
        keymap: Keymap::default(),
        pending_timeout: Duration::from_millis(500),
        draft: None,
        prompts: Vec::new(),
        theme: Theme::ansi(),
        notices: Vec::new(),
        version: "0.1.0".to_owned(),
        terminal: hanzo_tui::TerminalSetup::default(),
    }
}

impl Stage {
    /// A face with an open thread.
    pub fn new(width: u16, height: u16) -> Self {
        Self::with(setup(), width, height)
    }

    pub fn with(setup: Setup, width: u16, height: u16) -> Self {
        let (app, commands) = App::new(setup, width, height);
        let mut stage = Self {
            app,
            thread: "01900000-0000-7000-8000-000000000001".parse().unwrap(),
            turn: TurnId::new(),
            screen: Screen::new(Vec::new(), width, height, Reflow::Cuts),
            terminal: vt100::Parser::new(cells(height), cells(width), 10_000),
            written: Vec::new(),
            wanted: Vec::new(),
            now: Duration::from_secs(100),
            cursor: 0,
            held: false,
        };
        stage.done(commands);
        stage.draw();
        stage
    }

    pub fn summary(&self) -> ThreadSummary {
        ThreadSummary {
            id: self.thread,
            title: String::new(),
            workspace: PathBuf::from("/home/user/project"),
            agent: "coder".into(),
            model: "mock/test-model".into(),
            mode: Mode::Normal,
            posture: Posture::Ask,
            parent: None,
            created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            updated_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            cursor: EventCursor(0),
        }
    }

    /// Answers what an engine answers at once; the rest is kept for the test.
    fn done(&mut self, commands: Vec<Command>) {
        for command in commands {
            let answer = match &command {
                Command::Call(Asked::Open, Request::ThreadStart(_)) => {
                    Some(Response::ThreadStart(self.summary()))
                }
                Command::Call(Asked::Commands, _) => Some(Response::List(Listed { entries: registry() })),
                Command::Call(_, Request::TurnStart(_)) => {
                    Some(Response::TurnStart(TurnStarted::Started { turn_id: self.turn }))
                }
                Command::Call(_, Request::TurnSteer(_)) => {
                    Some(Response::TurnSteer(TurnStarted::Steered { turn_id: self.turn }))
                }
                Command::Call(_, Request::TurnInterrupt(_)) => Some(Response::TurnInterrupt(Done {})),
                Command::Call(_, Request::ApprovalRespond(_)) => Some(Response::ApprovalRespond(Done {})),
                Command::Call(_, Request::QuestionRespond(_)) => Some(Response::QuestionRespond(Done {})),
                Command::Call(_, Request::ThreadConfigure(change)) => {
                    let before = self.app.thread().cloned().unwrap_or_else(|| self.summary());
                    let mode = change.mode.unwrap_or(before.mode);
                    let posture = change.posture.unwrap_or(before.posture);
                    Some(Response::ThreadConfigure(ThreadSummary { mode, posture, ..before }))
                }
                Command::Call(_, Request::CommandRun(run)) => {
                    let text = format!("{} was run.", run.name);
                    Some(Response::CommandRun(CommandOutcome::Shown { text }))
                }
                Command::Call(_, Request::ThreadList(_)) => {
                    let mut other = self.summary();
                    other.id = "01900000-0000-7000-8000-000000000002".parse().unwrap();
                    other.title = "an earlier task".into();
                    Some(Response::ThreadList(Page { entries: vec![other], next: None }))
                }
                _ => None,
            };
            let asked = match &command {
                Command::Call(asked, _) => Some(asked.clone()),
                _ => None,
            };
            // The menu asks for the commands whenever it opens; that is nobody's test's business.
            if !matches!(command, Command::Call(Asked::Commands, _)) {
                self.wanted.push(command);
            }
            if let (Some(asked), Some(answer)) = (asked, answer) {
                self.event(Event::Answer(asked, Ok(answer)));
            }
        }
    }

    pub fn event(&mut self, event: Event) {
        let commands = self.app.update(event, self.now);
        self.done(commands);
        if !self.held {
            self.draw();
        }
    }

    /// Draws nothing from now on unless told to.
    pub fn hold(&mut self) {
        self.held = true;
    }

    pub fn answer(&mut self, asked: Asked, response: Response) {
        self.event(Event::Answer(asked, Ok(response)));
    }

    pub fn draw(&mut self) {
        let lines = self.app.take_lines();
        self.screen.draw(&lines, &self.app.view()).unwrap();
        let bytes = std::mem::take(self.screen.output());
        self.terminal.process(&bytes);
        self.written.extend(bytes);
        self.app.drawn(self.now);
    }

    /// Types keys, in the editor's notation, each a while after the other.
    pub fn keys(&mut self, notation: &str) {
        for key in Key::parse_all(notation).unwrap() {
            self.now += Duration::from_millis(10);
            self.event(Event::Input(Input::Key(key)));
        }
    }

    /// Lets the time pass after which a dialog that opened by itself takes keys.
    pub fn pause(&mut self) {
        self.wait(400);
    }

    /// Lets time pass.
    pub fn wait(&mut self, millis: u64) {
        self.now += Duration::from_millis(millis);
        self.event(Event::Tick);
    }

    pub fn resize(&mut self, width: u16, height: u16) {
        self.terminal.screen_mut().set_size(cells(height), cells(width));
        self.screen.resize(width, height).unwrap();
        let bytes = std::mem::take(self.screen.output());
        self.terminal.process(&bytes);
        self.event(Event::Input(Input::Resize(width, height)));
    }

    pub fn engine(&mut self, content: EventContent) {
        self.cursor += 1;
        let at = "2026-01-02T03:04:05Z".parse().unwrap();
        let event = Notification { cursor: EventCursor(self.cursor), thread_id: self.thread, at, content };
        self.event(Event::Engine(Box::new(event)));
    }

    pub fn item(&self, content: ItemContent) -> Item {
        Item {
            id: ItemId::new(),
            thread_id: self.thread,
            turn_id: Some(self.turn),
            created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            visibility: Visibility::Active,
            taint: None,
            content,
        }
    }

    pub fn completed(&mut self, content: ItemContent) {
        let item = self.item(content);
        self.engine(EventContent::ItemCompleted { item });
    }

    /// Types a prompt, sends it and has the engine begin.
    pub fn ask(&mut self, prompt: &str) {
        self.keys(prompt);
        self.keys("<CR>");
        self.engine(EventContent::TurnStarted { turn_id: self.turn });
        self.completed(ItemContent::UserMessage { text: prompt.to_owned(), attachments: Vec::new() });
    }

    /// Streams an answer in pieces of `size` characters; it is not complete yet.
    pub fn stream(&mut self, text: &str, size: usize) -> Item {
        let item = self.item(ItemContent::AgentMessage { text: String::new() });
        self.engine(EventContent::ItemStarted { item: item.clone() });
        let chars: Vec<char> = text.chars().collect();
        for piece in chars.chunks(size) {
            let delta = piece.iter().collect();
            self.engine(EventContent::ItemDelta { item_id: item.id, delta });
        }
        Item { content: ItemContent::AgentMessage { text: text.to_owned() }, ..item }
    }

    pub fn say(&mut self, text: &str) {
        let item = self.stream(text, 7);
        self.engine(EventContent::ItemCompleted { item });
    }

    pub fn turn_ends(&mut self, ended: TurnEnd) {
        let usage =
            Usage { input_tokens: 200, cache_read_tokens: 800, output_tokens: 50, ..Usage::default() };
        let summary = TurnSummary {
            ended,
            steps: 2,
            usage,
            cost: Some(hanzo_protocol::usage::Cost::from_nano_usd(12_300_000)),
            checkpoint: None,
            refused: 0,
            prefix_breaks: 0,
            context_tokens: Some(12_000),
            context_window: Some(100_000),
        };
        self.engine(EventContent::TurnCompleted { turn_id: self.turn, summary });
    }

    /// What is on the screen, trailing blanks removed.
    pub fn screen(&self) -> String {
        let contents = self.terminal.screen().contents();
        contents.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// The scrollback and the screen.
    pub fn everything(&mut self) -> String {
        let screen = self.terminal.screen_mut();
        let (rows, _) = screen.size();
        let mut lines: Vec<String> = Vec::new();
        let mut above = screen.scrollback_len();
        while above > 0 {
            screen.set_scrollback(above);
            let take = above.min(usize::from(rows.get()));
            lines.extend(screen.rows(0, u16::MAX).take(take));
            above -= take;
        }
        screen.set_scrollback(0);
        lines.extend(screen.rows(0, u16::MAX));
        lines.iter().map(|line| line.trim_end()).collect::<Vec<_>>().join("\n")
    }

    /// Where the cursor is: row and column.
    pub fn cursor(&self) -> (u16, u16) {
        self.terminal.screen().cursor_position()
    }

    pub fn take_wanted(&mut self) -> Vec<Command> {
        std::mem::take(&mut self.wanted)
    }

    /// The requests since this was last asked.
    pub fn requests(&mut self) -> Vec<Request> {
        let wanted = self.take_wanted();
        wanted
            .into_iter()
            .filter_map(|command| match command {
                Command::Call(_, request) => Some(request),
                _ => None,
            })
            .collect()
    }
}

pub fn call(
    tool: &str,
    arguments: &serde_json::Value,
    status: ToolCallStatus,
    result: Option<ToolResult>,
) -> ItemContent {
    ItemContent::ToolCall(ToolCallItem {
        call_id: ToolCallId::new("call_1"),
        tool: tool.to_owned(),
        called_as: None,
        arguments: arguments.to_string(),
        effect: Some(Effect::Read),
        status,
        duration_ms: result.is_some().then_some(12),
        result,
        full_output: None,
        trace_id: TraceId::new(),
    })
}

fn registry() -> Vec<serde_json::Value> {
    let command = |name: &str, kind: &str, hint: Option<&str>, about: &str| json!({"name": name, "kind": kind, "argumentHint": hint, "description": about, "origin": "builtIn"});
    vec![
        command("help", "engine", None, "Show what can be typed here"),
        command("compact", "engine", None, "Fold older work into a digest to free context"),
        command("new", "local", None, "Start a new thread; this one is kept"),
        command("clear", "local", None, "Discard this thread and start anew; asks first"),
        command("resume", "local", Some("[thread]"), "Go on with an earlier thread"),
        command("fork", "engine", Some("[item]"), "Copy this thread and go on in the copy"),
        command(
            "rewind",
            "local",
            Some("[checkpoint]"),
            "Take back turns: the conversation, the files or both",
        ),
        command("export", "engine", Some("[markdown|jsonl]"), "Write this thread out"),
        command("copy", "local", None, "Copy the last answer"),
        command("model", "engine", Some("[provider/model]"), "Show or choose the model"),
        command("mode", "engine", Some("[normal|plan]"), "Show or choose the mode; plan only looks"),
        command("cost", "engine", None, "Show tokens, cache hits and cost"),
        command("diff", "local", None, "Show the uncommitted changes"),
        command("branch", "local", Some("<name>"), "Make a git branch and switch to it"),
        command("commit", "local", None, "Commit tracked changes"),
        command("worktree", "local", Some("<name>"), "Make a git worktree"),
        command("stash", "local", None, "Put uncommitted changes away"),
        command("mcp", "engine", Some("[enable|disable|reconnect server]"), "Show the MCP servers"),
        command("memory", "engine", None, "Show and edit the instruction files in force"),
        command("find", "local", Some("[words]"), "Search this thread"),
        command("queue", "local", None, "Show what waits to be sent"),
        command("doctor", "local", None, "Check this installation"),
        command("review", "turn", Some("<focus>"), "Review the staged diff"),
    ]
}
