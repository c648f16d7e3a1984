//! The face's state and what changes it. [`App::update`] takes what happened and says what is to be done about it; it waits
//! for nothing, so that a test needs neither a terminal nor an engine.

mod draft;
mod engine;
mod find;
mod git;
mod keys;
mod live;
mod mcp;
mod memory;
mod menu;
mod opening;
mod pause;
mod queue;
mod rewind;
mod slash;
mod view;

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::time::Duration;

use hanzo_protocol::engine::{
    EngineError, ExportFormat, Mode, Posture, Request, Response, RewindWhat, ThreadConfigure, ThreadOptions,
    ThreadSummary,
};
use hanzo_protocol::event::{Event as Notification, EventCursor};
use hanzo_protocol::ids::{ApprovalId, CheckpointId, ItemId, ThreadId};
use hanzo_protocol::item::{Item, NoticeLevel, PlanStep};
use hanzo_protocol::usage::{Cost, Usage};
use ratatui::text::Line;

use crate::composer::{Composer, Prompt, PromptHistory};
use crate::dialog::{ApprovalDialog, Picker, QuestionDialog};
use crate::edit::InputMode;
use crate::host::{Completion, FileEdit, Memory};
use crate::keymap::Keymap;
use crate::terminal::{Input, Modes, Reflow};
use crate::theme::Theme;
use crate::transcript::{self, Detail, RenderContext};

pub use git::{Afterwards, Job};
use live::Live;
use menu::Menu;
pub use menu::SlashCommand;
use opening::Replayed;
pub use view::Part;

/// How long a second press of a key that needs two may take.
const TWICE: Duration = Duration::from_millis(1_500);
/// How often what moves is drawn.
pub(crate) const FRAME: Duration = Duration::from_millis(120);
/// How long a passing remark stays.
const REMARK: Duration = Duration::from_secs(4);

/// Which thread to begin with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Begin {
    /// A new one.
    #[default]
    New,
    /// The newest of the workspace.
    Newest,
    /// The one whose id begins so.
    Id(String),
    /// The user chooses.
    Choose,
}

/// How the face is set up.
#[derive(Debug, Clone)]
pub struct Setup {
    /// The workspace.
    pub workspace: PathBuf,
    /// Which thread to begin with.
    pub begin: Begin,
    /// How threads work.
    pub options: ThreadOptions,
    /// What to say first.
    pub prompt: Option<String>,
    /// The keys of the composer.
    pub input: InputMode,
    /// What the user bound keys to.
    pub keymap: Keymap,
    /// How long an unfinished command of the vim keys waits for its next key; zero waits for ever.
    pub pending_timeout: Duration,
    /// What was written last time and not sent.
    pub draft: Option<String>,
    /// Earlier prompts, oldest first.
    pub prompts: Vec<String>,
    /// The styles.
    pub theme: Theme,
    /// Sentences to show first.
    pub notices: Vec<String>,
    /// The program's version.
    pub version: String,
    /// What is asked of the terminal.
    pub terminal: TerminalSetup,
}

/// What is asked of the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TerminalSetup {
    /// Its modes.
    pub modes: Modes,
    /// Whether the theme follows what the terminal says of its background.
    pub background: Follow,
    /// How the user is called who looks elsewhere.
    pub notify: Notify,
    /// Which terminal it is, as far as that matters to how rows are broken.
    pub reflow: Reflow,
}

/// Whether something that was chosen by us follows the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Follow {
    /// It was chosen by the user and stays.
    #[default]
    Stays,
    /// It follows.
    Follows,
}

/// How the user is called who looks elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notify {
    /// By a message of the desktop, where the terminal shows them, and by the bell.
    #[default]
    Desktop,
    /// By the bell.
    Bell,
    /// Not at all.
    Never,
}

/// Something that happened.
#[derive(Debug)]
pub enum Event {
    /// The terminal said something.
    Input(Input),
    /// The engine said something about the thread.
    Engine(Box<Notification>),
    /// The engine answered a request.
    Answer(Asked, Result<Response, EngineError>),
    /// What could be typed, for the text it was asked about.
    Completions(String, Vec<Completion>),
    /// What is known of the surroundings.
    Surroundings {
        /// The branch.
        branch: Option<String>,
        /// What confines commands.
        sandbox: Option<String>,
    },
    /// The user's editor was closed.
    Edited(Result<String, String>),
    /// A program ended: what it printed, or why it failed.
    Ran(Job, Result<String, String>),
    /// The image on the clipboard.
    Clipboard(Result<hanzo_protocol::message::Attachment, String>),
    /// The instruction files.
    Memories(Vec<Memory>),
    /// A file was in the user's editor.
    FileEdited(PathBuf, Result<FileEdit, String>),
    /// Markdown to show in the transcript.
    Report(String),
    /// An image was looked for at a pasted path.
    Image(String, Option<hanzo_protocol::message::Attachment>),
    /// Text that was to be copied, and the program that took it; none did when it is absent.
    Copied(String, Option<&'static str>),
    /// Something to say in the transcript.
    Told(NoticeLevel, String),
    /// Something to say in passing.
    Remark(String),
    /// Time passed.
    Tick,
}

/// What a request was for.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// To open a thread.
    Open,
    /// The newest thread, to open it.
    Newest,
    /// The thread whose id begins so, to open it.
    ById(String),
    /// The threads, to choose one.
    Threads,
    /// The items of a reopened thread, to show them again.
    Replay,
    /// The commands there are.
    Commands,
    /// The models, to choose one.
    Models,
    /// The MCP servers, to do something with one.
    McpServers,
    /// The items in which these words occur, from the page it was asked for on.
    Find(String),
    /// The checkpoints, to choose one.
    Checkpoints,
    /// The items, to say what each checkpoint was.
    Prompts,
    /// What going back there would do to the files.
    Preview(CheckpointId),
    /// To go back.
    Rewind(RewindWhat),
    /// To copy the thread.
    Fork,
    /// To write it out.
    Export(ExportFormat),
    /// To throw it away.
    Discard,
    /// To say something.
    Say(Prompt),
    /// To say something while a turn runs.
    Steer(Prompt),
    /// To stop.
    Interrupt,
    /// To work differently.
    Configure,
    /// A slash command.
    Command(String),
    /// A command of the user for the shell.
    Shell(String),
    /// An answer to a dialog.
    Answered,
}

/// Something to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Ask the engine.
    Call(Asked, Request),
    /// Watch a thread from there on, and no other.
    Watch(ThreadId, EventCursor),
    /// Find out what could be typed.
    Complete(String),
    /// Find out about the surroundings.
    LookAround(ThreadId),
    /// Look for an image at a pasted path.
    FindImage(String),
    /// Let the user write in an editor.
    Edit(String),
    /// Let the user change a file.
    EditFile(PathBuf),
    /// Find the instruction files.
    Memories,
    /// Check the installation.
    Doctor,
    /// Look for an image on the clipboard.
    PasteImage,
    /// Keep what is not sent, or forget what was kept.
    KeepDraft(String),
    /// Run a program of the user's, in the workspace.
    Run(Job, &'static str, Vec<String>),
    /// Remember a prompt.
    Remember(String),
    /// Put text on the clipboard.
    Copy(String),
    /// Have the terminal do it.
    CopyByTerminal(String),
    /// Write a document.
    Write(String, String),
    /// Call the user, who looks elsewhere.
    Notify(String),
    /// Give the terminal to the shell.
    Suspend,
    /// Draw everything anew.
    Redraw,
    /// End.
    Quit,
}

/// A turn under way.
#[derive(Debug, Clone, Copy)]
struct Turn {
    began: Duration,
    stopping: bool,
}

/// What the user can be choosing from a list.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Choice {
    Nothing,
    Thread(ThreadId),
    Model(String),
    Checkpoint(CheckpointId),
    Rewind(CheckpointId, RewindWhat),
    Prompt(String),
    Discard,
    Carry(Posture),
    Theme(&'static str),
    Commit,
    EditMessage,
    Server(mcp::Server),
    Control(&'static str, String),
    Memory(PathBuf),
    Item(Box<Item>),
    Queued(usize),
    Queue(queue::Wish, usize),
}

/// What asks the user something.
#[derive(Debug)]
pub(crate) enum Dialog {
    Approval(Box<ApprovalDialog>),
    Question(Box<QuestionDialog>),
    Pick(Picker<Choice>),
}

/// A remark that passes.
#[derive(Debug, Clone)]
struct Remark {
    text: String,
    until: Duration,
}

/// What the status line tells.
#[derive(Debug, Clone, Default)]
pub(crate) struct Figures {
    pub usage: Usage,
    pub cost: Option<Cost>,
    pub context: Option<(u64, Option<u64>)>,
    pub branch: Option<String>,
    pub sandbox: Option<String>,
}

/// The face's state.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own; all of their combinations exist"
)]
pub struct App {
    setup: Setup,
    size: (usize, usize),
    now: Duration,
    thread: Option<ThreadSummary>,
    composer: Composer,
    live: Live,
    out: Vec<Line<'static>>,
    /// Those the engine opened come first; a list the user opened is last.
    dialogs: VecDeque<Dialog>,
    readiness: pause::Readiness,
    last_key: Option<Duration>,
    menu: Option<Menu>,
    menu_closed_for: Option<String>,
    commands: Vec<SlashCommand>,
    turn: Option<Turn>,
    shell: usize,
    /// Commands the user typed, whose calls need no further consent.
    own_commands: Vec<String>,
    own_calls: HashSet<ItemId>,
    answered: HashSet<ApprovalId>,
    /// What the shell printed, for the next input.
    shell_outputs: Vec<String>,
    queue: VecDeque<Prompt>,
    /// What was sent before there was a thread to send it to.
    early: VecDeque<Prompt>,
    /// The first key of a binding of two.
    chord: Option<crate::edit::Key>,
    found: find::Found,
    draft: draft::Draft,
    steering: Vec<String>,
    plan: Vec<PlanStep>,
    plan_changed: bool,
    plan_shown: bool,
    reasoning: Detail,
    /// The posture while an approved plan is carried out.
    window: Option<Posture>,
    commit: Option<git::Commit>,
    figures: Figures,
    remark: Option<Remark>,
    armed: Option<(Armed, Duration)>,
    focused: bool,
    last_answer: String,
    last_calls: VecDeque<Item>,
    replayed: Replayed,
    rewinding: rewind::Rewinding,
    opening: bool,
    help: bool,
    quit: bool,
    failed: Option<EngineError>,
}

/// A key that has to be pressed twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Armed {
    Leave,
    Escape,
}

impl App {
    /// The state at the start, and what is to be done first.
    pub fn new(setup: Setup, width: u16, height: u16) -> (Self, Vec<Command>) {
        let history = PromptHistory::new(setup.prompts.iter().cloned());
        let mut composer = Composer::new(setup.input, history);
        composer.set_pending_timeout(setup.pending_timeout);
        let mut app = Self {
            size: (usize::from(width), usize::from(height)),
            now: Duration::ZERO,
            thread: None,
            composer,
            live: Live::default(),
            out: Vec::new(),
            dialogs: VecDeque::new(),
            readiness: pause::Readiness::default(),
            last_key: None,
            menu: None,
            menu_closed_for: None,
            commands: Vec::new(),
            turn: None,
            shell: 0,
            own_commands: Vec::new(),
            own_calls: HashSet::new(),
            answered: HashSet::new(),
            shell_outputs: Vec::new(),
            queue: VecDeque::new(),
            early: VecDeque::new(),
            chord: None,
            found: find::Found::default(),
            draft: draft::Draft::default(),
            steering: Vec::new(),
            plan: Vec::new(),
            plan_changed: false,
            plan_shown: true,
            reasoning: Detail::Folded,
            window: None,
            commit: None,
            figures: Figures::default(),
            remark: None,
            armed: None,
            focused: true,
            last_answer: String::new(),
            last_calls: VecDeque::new(),
            replayed: Replayed::default(),
            rewinding: rewind::Rewinding::default(),
            opening: true,
            help: false,
            quit: false,
            failed: None,
            setup,
        };
        app.take_draft();
        let commands = app.begin();
        (app, commands)
    }

    /// Takes in what happened at `now`, a time that only grows.
    pub fn update(&mut self, event: Event, now: Duration) -> Vec<Command> {
        self.now = now;
        self.settle_dialog();
        let mut commands = Vec::new();
        let is_written = Self::may_write(&event);
        match event {
            Event::Input(input) => self.input(input, &mut commands),
            Event::Engine(notification) => self.notified(*notification, &mut commands),
            Event::Answer(asked, answer) => self.answered(asked, answer, &mut commands),
            Event::Completions(typed, found) => self.completions(&typed, found),
            Event::Surroundings { branch, sandbox } => {
                self.figures.branch = branch;
                self.figures.sandbox = sandbox.or(self.figures.sandbox.take());
            }
            Event::Edited(Ok(text)) => self.edited(&text),
            Event::Ran(job, ended) => self.program_ended(job, ended, &mut commands),
            Event::Edited(Err(why)) => self.tell(NoticeLevel::Error, &why),
            Event::Clipboard(Err(why)) => self.remark(why),
            Event::Memories(files) => self.pick_memory(files),
            Event::FileEdited(path, edited) => self.memory_edited(&path, edited),
            Event::Report(markdown) => self.show_markdown(&markdown),
            Event::Image(_, Some(attachment)) | Event::Clipboard(Ok(attachment)) => {
                self.composer.attach(attachment);
            }
            Event::Image(path, None) => self.composer.paste(&path),
            Event::Copied(text, by) => self.copied(text, by, &mut commands),
            Event::Told(level, text) => self.tell(level, &text),
            Event::Remark(text) => self.remark(text),
            Event::Tick => {
                self.composer.tick(now);
                self.draft_due(&mut commands);
            }
        }
        if is_written {
            self.draft_written();
        }
        if self.remark.as_ref().is_some_and(|remark| remark.until <= now) {
            self.remark = None;
        }
        if self.armed.is_some_and(|(_, until)| until <= now) {
            self.armed = None;
        }
        commands
    }

    /// The lines that became final since this was last asked.
    pub fn take_lines(&mut self) -> Vec<Line<'static>> {
        std::mem::take(&mut self.out)
    }

    /// When something will look different by itself; `None` while nothing moves.
    pub fn wake_at(&self) -> Option<Duration> {
        let moves = self.turn.is_some() || self.shell > 0;
        let frame = (moves && self.setup.theme.shapes()).then(|| self.now + FRAME);
        let remark = self.remark.as_ref().map(|remark| remark.until);
        let armed = self.armed.map(|(_, until)| until);
        let pending = self.composer.editor().deadline().map(|deadline| deadline + Duration::from_millis(1));
        let draft = self.draft.due();
        [frame, remark, armed, pending, draft, self.ready_at()].into_iter().flatten().min()
    }

    /// Whether something asks the user, who answers with keys that otherwise do something else.
    pub fn has_dialog(&self) -> bool {
        !self.dialogs.is_empty() || self.menu.is_some()
    }

    /// Whether the user has left.
    pub fn has_quit(&self) -> bool {
        self.quit
    }

    /// Why no thread could be opened, so that there was nothing to stay for.
    pub fn failed(&self) -> Option<&EngineError> {
        self.failed.as_ref()
    }

    /// The thread that is open.
    pub fn thread(&self) -> Option<&ThreadSummary> {
        self.thread.as_ref()
    }

    /// Earlier lines of the thread, for its end.
    pub fn farewell(&self) -> Option<String> {
        let thread =
            self.thread.as_ref().filter(|thread| !thread.title.is_empty() || !self.last_answer.is_empty())?;
        Some(format!("To go on with this thread: hanzo-dev --resume {}", thread.id))
    }

    fn context(&self) -> RenderContext {
        RenderContext {
            width: self.size.0.max(1),
            theme: self.setup.theme,
            reasoning: self.reasoning,
            results: Detail::Folded,
        }
    }

    /// Writes a sentence into the transcript.
    fn tell(&mut self, level: NoticeLevel, words: &str) {
        let lines = transcript::notice(level, words, &self.context());
        let lines = self.live.say(lines);
        self.out.extend(lines);
    }

    /// Writes Markdown into the transcript.
    fn show_markdown(&mut self, markdown: &str) {
        let lines = transcript::markdown(markdown, &self.context());
        let lines = self.live.say(lines);
        self.out.extend(lines);
    }

    /// Says something in passing.
    fn remark(&mut self, text: impl Into<String>) {
        self.remark = Some(Remark { text: text.into(), until: self.now + REMARK });
    }

    fn is_busy(&self) -> bool {
        self.turn.is_some() || self.shell > 0
    }

    fn thread_id(&self) -> Option<ThreadId> {
        self.thread.as_ref().map(|thread| thread.id)
    }

    fn call(
        &self,
        asked: Asked,
        request: impl FnOnce(ThreadId) -> Request,
        commands: &mut Vec<Command>,
    ) -> bool {
        let Some(id) = self.thread_id() else { return false };
        commands.push(Command::Call(asked, request(id)));
        true
    }

    /// Changes posture and mode, here at once and in the engine.
    fn configure(&mut self, mode: Option<Mode>, posture: Option<Posture>, commands: &mut Vec<Command>) {
        let Some(thread) = &mut self.thread else { return };
        thread.mode = mode.unwrap_or(thread.mode);
        if let Some(posture) = posture {
            thread.posture = posture;
            self.window = None;
        }
        let change = ThreadConfigure { thread_id: thread.id, model: None, mode, posture, effort: None };
        commands.push(Command::Call(Asked::Configure, Request::ThreadConfigure(change)));
    }
}
