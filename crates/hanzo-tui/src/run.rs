//! The loop: what happens goes into the [`App`], what it wants done is done, and what changed is drawn. One place waits for
//! everything, so that nothing runs while nothing happens.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossterm::terminal::size;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hanzo_protocol::engine::{EngineClient, EngineError, Request, Response};
use hanzo_protocol::event::Event as Notification;
use hanzo_protocol::item::NoticeLevel;
use hanzo_protocol::{BoxFuture, BoxStream};
use ratatui::text::Line;
use tokio::sync::mpsc;

use crate::app::{App, Asked, Command, Event, Follow, Setup, TerminalSetup};
use crate::host::Host;
use crate::terminal::{Asking, Extent, Guard, Input, Pages, Reader, Screen, View, install_panic_hook};

mod sequences;
mod sizes;

use sequences::{clipboard, in_tmux, notification, through_tmux};
use sizes::{ANSWER, Resizing};

/// How long the answers of the machine may pile up; the user types one character at a time.
const HOST_ANSWERS: usize = 64;
/// How often what the engine says is drawn at most. What the user types is drawn at once.
const PACE: Duration = Duration::from_millis(25);

/// How many lines are written at once. Between two lots the keys have their turn, however much there is to write.
const LINES_AT_ONCE: usize = 1_000;

type Answer = (Asked, Result<Response, EngineError>);

/// What the face leaves behind when it ends.
#[derive(Debug, Default)]
pub struct Left {
    /// A sentence to print below the transcript.
    pub farewell: Option<String>,
    /// How many bytes were written to the terminal.
    pub bytes: u64,
    /// Why no thread could be opened.
    pub failed: Option<EngineError>,
}

/// Runs the face on the process's terminal until the user leaves. `stop` is done when the process is asked to end.
pub async fn run(
    client: &dyn EngineClient,
    host: Arc<dyn Host>,
    setup: Setup,
    stop: impl Future<Output = ()>,
) -> io::Result<Left> {
    install_panic_hook();
    let (width, height) = size()?;
    let terminal = setup.terminal;
    let guard = Guard::take(terminal.modes)?;
    let began = Instant::now();
    let (app, commands) = App::new(setup, width, height);
    let (sender, from_host) = mpsc::channel(HOST_ANSWERS);
    let mut screen = Screen::new(io::stdout(), width, height, terminal.reflow);
    screen.extend(terminal.modes.extent);
    screen.ask(Asking::EachFrame);
    let mut face = Face {
        app,
        screen,
        guard,
        terminal,
        pages: Pages::default(),
        host,
        sender,
        client,
        began,
        waiting: VecDeque::new(),
        in_order: None,
        beside: FuturesUnordered::new(),
        events: None,
        input: Some(Reader::new()?),
        backlog: VecDeque::new(),
        resizing: Resizing::Not,
        resized: None,
        real: None,
        wanted: 1,
        hushed: None,
        has_answered: false,
        drawn: began,
        ended: false,
    };
    face.draw()?;
    if terminal.background == Follow::Follows {
        face.write(b"\x1b]11;?\x1b\\")?;
    }
    face.carry_out(commands)?;
    let ended = face.watch(from_host, stop).await;
    ended?;
    face.end()
}

struct Face<'a> {
    app: App,
    screen: Screen<io::Stdout>,
    guard: Guard,
    terminal: TerminalSetup,
    /// The lines, where the terminal does not keep them.
    pages: Pages,
    host: Arc<dyn Host>,
    sender: mpsc::Sender<Event>,
    client: &'a dyn EngineClient,
    began: Instant,
    /// Requests whose order matters wait for one another.
    waiting: VecDeque<(Asked, Request)>,
    in_order: Option<BoxFuture<'a, Answer>>,
    beside: FuturesUnordered<BoxFuture<'a, Answer>>,
    events: Option<BoxStream<'a, Notification>>,
    input: Option<Reader>,
    /// Final lines that are not written yet.
    backlog: VecDeque<Line<'static>>,
    resizing: Resizing,
    /// When there last was something new about the size.
    resized: Option<Instant>,
    /// The width the terminal said it had when it was last asked.
    real: Option<usize>,
    /// How many answers have to agree with what we are told, one after the other.
    wanted: u32,
    /// Until then nothing is drawn that can wait.
    hushed: Option<Instant>,
    /// Whether the terminal ever answered a question.
    has_answered: bool,
    drawn: Instant,
    ended: bool,
}

impl Face<'_> {
    async fn watch(
        &mut self,
        mut from_host: mpsc::Receiver<Event>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        tokio::pin!(stop);
        let mut dirty = false;
        while !self.ended {
            let wake = self.app.wake_at().map(|at| self.began + at);
            let next = [wake, self.next_frame(dirty), self.resizing.until()].into_iter().flatten().min();
            let happened = tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                input = next_input(&mut self.input) => match input {
                    Ok(Some(input)) => Happened::Typed(input),
                    // The terminal is gone.
                    Ok(None) | Err(_) => return Ok(()),
                },
                answer = in_order(&mut self.in_order) => {
                    self.in_order = None;
                    self.go_on();
                    Happened::Other(Box::new(Event::Answer(answer.0, answer.1)))
                }
                Some(answer) = self.beside.next() => Happened::Other(Box::new(Event::Answer(answer.0, answer.1))),
                Some(event) = from_host.recv() => Happened::Other(Box::new(event)),
                event = next_event(&mut self.events) => {
                    let Some(event) = event else {
                        self.events = None;
                        continue;
                    };
                    Happened::Other(Box::new(Event::Engine(Box::new(event))))
                }
                () = sleep_until(next) => Happened::Time,
            };
            let mut urgent = false;
            let commands = match happened {
                Happened::Typed(input) => match self.typed(input) {
                    Some(input) => {
                        urgent = true;
                        dirty = true;
                        self.update(Event::Input(input))
                    }
                    None => Vec::new(),
                },
                Happened::Other(event) => {
                    urgent = matches!(*event, Event::Completions(..));
                    dirty = true;
                    self.update(*event)
                }
                Happened::Time if wake.is_some_and(|at| at <= Instant::now()) => {
                    dirty = true;
                    self.update(Event::Tick)
                }
                Happened::Time => Vec::new(),
            };
            self.carry_out(commands)?;
            if self.go_on_resizing()? {
                dirty = true;
                urgent = true;
            }
            let now = Instant::now();
            let due = urgent || self.next_frame(dirty).is_some_and(|at| at <= now);
            if !due || !dirty || self.resizing != Resizing::Not {
                continue;
            }
            // The terminal may have another size already and the news of it be under way.
            if self.is_resized()? {
                self.resize_soon();
            } else {
                self.draw()?;
                dirty = !self.backlog.is_empty();
            }
        }
        Ok(())
    }

    fn update(&mut self, event: Event) -> Vec<Command> {
        self.app.update(event, self.began.elapsed())
    }

    fn is_resized(&self) -> io::Result<bool> {
        let (width, height) = size()?;
        Ok(self.screen.size() != (usize::from(width.max(1)), usize::from(height.max(1))))
    }

    fn draw(&mut self) -> io::Result<()> {
        if self.screen.is_waiting() && !self.has_answered && self.drawn.elapsed() >= ANSWER {
            self.screen.ask(Asking::Never);
        }
        self.drawn = Instant::now();
        self.backlog.extend(self.app.take_lines());
        let (width, height) = self.screen.size();
        if self.terminal.modes.extent == Extent::Whole {
            self.pages.push(self.backlog.drain(..).collect(), width);
            let view = self.pages.view(self.app.view(), width, height);
            self.screen.draw(&[], &view)?;
        } else {
            let count = self.backlog.len().min(LINES_AT_ONCE);
            let lines: Vec<Line<'static>> = self.backlog.drain(..count).collect();
            self.screen.draw(&lines, &self.app.view())?;
        }
        self.app.drawn(self.began.elapsed());
        Ok(())
    }

    /// Draws all there is and hears the terminal's last answers.
    fn draw_out(&mut self) -> io::Result<()> {
        self.screen.ask(Asking::Never);
        self.draw()?;
        while !self.backlog.is_empty() {
            self.draw()?;
        }
        let Some(input) = &mut self.input else { return Ok(()) };
        let screen = &mut self.screen;
        input.settle(ANSWER, |answer| {
            if let Some((row, column)) = answer {
                screen.answered(row, column);
            }
            screen.is_waiting()
        })
    }

    fn carry_out(&mut self, commands: Vec<Command>) -> io::Result<()> {
        for command in commands {
            match command {
                Command::Call(asked, request) => self.call(asked, request),
                Command::Watch(thread, cursor) => self.events = Some(self.client.subscribe(thread, cursor)),
                Command::Complete(typed) => self.ask_host(move |host| {
                    let mut found = host.complete(&typed);
                    if found.is_empty() || !typed.contains('/') {
                        let beside = if typed.is_empty() { Vec::new() } else { host.find(&typed) };
                        for completion in beside {
                            if !found.iter().any(|known| known.insert == completion.insert) {
                                found.push(completion);
                            }
                        }
                    }
                    Some(Event::Completions(typed, found))
                }),
                Command::LookAround(thread) => self.ask_host(move |host| {
                    Some(Event::Surroundings { branch: host.branch(), sandbox: host.sandbox(thread) })
                }),
                Command::FindImage(path) => self.ask_host(move |host| {
                    let image = host.image(&path);
                    Some(Event::Image(path, image))
                }),
                Command::Remember(prompt) => self.ask_host(move |host| {
                    host.remember(&prompt);
                    None
                }),
                Command::Write(name, text) => self.ask_host(move |host| {
                    Some(match host.write(&name, &text) {
                        Ok(path) => Event::Told(NoticeLevel::Info, format!("Written to {}", path.display())),
                        Err(why) => Event::Told(NoticeLevel::Error, why),
                    })
                }),
                Command::Run(job, program, arguments) => {
                    self.ask_host(move |host| Some(Event::Ran(job, host.run(program, &arguments))));
                }
                Command::Copy(text) => self.ask_host(move |host| {
                    let by = host.copy(&text);
                    Some(Event::Copied(text, by))
                }),
                Command::CopyByTerminal(text) => self.write(&through_tmux(&clipboard(&text), in_tmux()))?,
                Command::Notify(text) => {
                    self.write(&notification(&text, self.terminal.notify, in_tmux()))?;
                }
                Command::Edit(text) => {
                    let edited = self.elsewhere(|host| host.edit(&text))?;
                    let more = self.update(Event::Edited(edited));
                    self.carry_out(more)?;
                }
                Command::EditFile(path) => {
                    let edited = self.elsewhere(|host| host.edit_file(&path))?;
                    let more = self.update(Event::FileEdited(path, edited));
                    self.carry_out(more)?;
                }
                Command::Memories => self.ask_host(|host| Some(Event::Memories(host.memories()))),
                Command::Doctor => self.ask_host(|host| Some(Event::Report(host.doctor()))),
                Command::PasteImage => self.ask_host(|host| Some(Event::Clipboard(host.clipboard_image()))),
                // At once and in order: it is small, and what is kept last must be what was written last.
                Command::KeepDraft(draft) => self.host.keep_draft(&draft),
                Command::Suspend => {
                    self.elsewhere(|_| {
                        rustix::process::kill_process_group(
                            rustix::process::getpgrp(),
                            rustix::process::Signal::TSTP,
                        )
                    })?
                    .map_err(io::Error::from)?;
                }
                Command::Redraw => {
                    self.screen.leave()?;
                    self.screen.forget();
                }
                Command::Quit => self.ended = true,
            }
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let out = self.screen.output();
        out.write_all(bytes)?;
        out.flush()
    }

    fn call(&mut self, asked: Asked, request: Request) {
        let beside = matches!(
            asked,
            Asked::Shell(_)
                | Asked::Answered
                | Asked::Interrupt
                | Asked::Commands
                | Asked::Models
                | Asked::McpServers
                | Asked::Find(_)
                | Asked::Threads
        );
        if beside {
            let call = self.client.call(request);
            self.beside.push(Box::pin(async move { (asked, call.await) }));
        } else {
            self.waiting.push_back((asked, request));
            self.go_on();
        }
    }

    /// Sends the next request whose order matters.
    fn go_on(&mut self) {
        if self.in_order.is_none()
            && let Some((asked, request)) = self.waiting.pop_front()
        {
            let call = self.client.call(request);
            self.in_order = Some(Box::pin(async move { (asked, call.await) }));
        }
    }

    fn ask_host(&self, job: impl FnOnce(&dyn Host) -> Option<Event> + Send + 'static) {
        let (host, sender) = (Arc::clone(&self.host), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            if let Some(event) = job(host.as_ref()) {
                // When nobody listens any more, nobody needs it.
                let _ = sender.blocking_send(event);
            }
        });
    }

    /// Gives the terminal away while `job` runs.
    fn elsewhere<T>(&mut self, job: impl FnOnce(&dyn Host) -> T) -> io::Result<T> {
        self.draw_out()?;
        // The reader of keys would take those that are not for us.
        self.input = None;
        self.screen.leave()?;
        self.guard.release()?;
        let done = job(self.host.as_ref());
        self.guard.retake()?;
        self.screen.forget();
        let (width, height) = size()?;
        self.screen.resize(width, height)?;
        let _ = self.update(Event::Input(Input::Resize(width, height)));
        self.input = Some(Reader::new()?);
        self.screen.ask(Asking::EachFrame);
        Ok(done)
    }

    fn end(mut self) -> io::Result<Left> {
        // Before anything that needs a terminal, which may be what is gone.
        self.host.keep_draft(&self.app.unsent());
        self.draw_out()?;
        self.screen.leave()?;
        let left = Left {
            farewell: self.app.farewell(),
            bytes: self.screen.bytes(),
            failed: self.app.failed().cloned(),
        };
        self.guard.release()?;
        if self.terminal.modes.extent == Extent::Whole {
            // What was on the alternate screen is gone with it; the transcript stays.
            let mut out = io::stdout();
            let (width, height) = size()?;
            let mut screen = Screen::new(&mut out, width, height, self.terminal.reflow);
            screen.draw(&self.pages.into_lines(), &View::default())?;
            screen.leave()?;
        }
        Ok(left)
    }
}

enum Happened {
    Typed(Input),
    Other(Box<Event>),
    Time,
}

async fn next_input(input: &mut Option<Reader>) -> io::Result<Option<Input>> {
    match input {
        Some(input) => input.next().await,
        None => std::future::pending().await,
    }
}

async fn next_event(events: &mut Option<BoxStream<'_, Notification>>) -> Option<Notification> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

async fn in_order(call: &mut Option<BoxFuture<'_, Answer>>) -> Answer {
    match call {
        Some(call) => call.await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
