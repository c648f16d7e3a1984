//! The loop: what happens goes into the [`App`], what it wants done is done, and what changed is drawn. One place waits for
//! everything, so that nothing runs while nothing happens.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use crossterm::event::EventStream;
use crossterm::terminal::size;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use hanzo_protocol::engine::{EngineClient, EngineError, Request, Response};
use hanzo_protocol::event::Event as Notification;
use hanzo_protocol::item::NoticeLevel;
use hanzo_protocol::{BoxFuture, BoxStream};
use ratatui::text::Line;
use tokio::sync::mpsc;

use crate::app::{App, Asked, Command, Event, Setup};
use crate::host::Host;
use crate::terminal::{Guard, Input, Reflow, Screen, install_panic_hook, translate};

/// How long the answers of the machine may pile up; the user types one character at a time.
const HOST_ANSWERS: usize = 64;
/// How often what the engine says is drawn at most. What the user types is drawn at once.
const PACE: Duration = Duration::from_millis(25);
/// How long the terminal's size must be quiet before it is believed: while a window is dragged, what is drawn for one size
/// arrives at another.
const SETTLED: Duration = Duration::from_millis(40);

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
    let guard = Guard::take()?;
    let began = Instant::now();
    let (app, commands) = App::new(setup, width, height);
    let (sender, from_host) = mpsc::channel(HOST_ANSWERS);
    let screen = Screen::new(io::stdout(), width, height, reflow());
    let mut face = Face {
        app,
        screen,
        guard,
        host,
        sender,
        client,
        began,
        waiting: VecDeque::new(),
        in_order: None,
        beside: FuturesUnordered::new(),
        events: None,
        input: Some(EventStream::new()),
        backlog: VecDeque::new(),
        ended: false,
    };
    face.draw()?;
    face.carry_out(commands)?;
    face.watch(from_host, stop).await?;
    face.end()
}

struct Face<'a> {
    app: App,
    screen: Screen<io::Stdout>,
    guard: Guard,
    host: Arc<dyn Host>,
    sender: mpsc::Sender<Event>,
    client: &'a dyn EngineClient,
    began: Instant,
    /// Requests whose order matters wait for one another.
    waiting: VecDeque<(Asked, Request)>,
    in_order: Option<BoxFuture<'a, Answer>>,
    beside: FuturesUnordered<BoxFuture<'a, Answer>>,
    events: Option<BoxStream<'a, Notification>>,
    input: Option<EventStream>,
    /// Final lines that are not written yet.
    backlog: VecDeque<Line<'static>>,
    ended: bool,
}

impl Face<'_> {
    async fn watch(
        &mut self,
        mut from_host: mpsc::Receiver<Event>,
        stop: impl Future<Output = ()>,
    ) -> io::Result<()> {
        tokio::pin!(stop);
        let mut drawn = Instant::now();
        let mut dirty = false;
        let mut resized: Option<Instant> = None;
        while !self.ended {
            let wake = self.app.wake_at().map(|at| self.began + at);
            let frame = dirty.then(|| drawn + PACE);
            let settle = resized.map(|at| at + SETTLED);
            let next = [wake, frame, settle].into_iter().flatten().min();
            let happened = tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                input = next_input(&mut self.input) => match input {
                    Some(Ok(event)) => Happened::Typed(event),
                    // The terminal is gone.
                    Some(Err(_)) | None => return Ok(()),
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
                Happened::Typed(event) => match translate(event) {
                    Some(Input::Resize(..)) => {
                        resized = Some(Instant::now());
                        continue;
                    }
                    Some(input) => {
                        urgent = true;
                        self.update(Event::Input(input))
                    }
                    None => continue,
                },
                Happened::Other(event) => {
                    urgent = matches!(*event, Event::Completions(..));
                    self.update(*event)
                }
                Happened::Time => {
                    if settle.is_some_and(|at| at <= Instant::now()) {
                        resized = None;
                        urgent = true;
                        let (width, height) = size()?;
                        self.screen.resize(width, height)?;
                        self.update(Event::Input(Input::Resize(width, height)))
                    } else if wake.is_some_and(|at| at <= Instant::now()) {
                        self.update(Event::Tick)
                    } else {
                        urgent = true;
                        Vec::new()
                    }
                }
            };
            self.carry_out(commands)?;
            dirty = true;
            let due = resized.is_none() && (urgent || drawn.elapsed() >= PACE);
            // The terminal may have another size already and the news of it be under way: rows written now would be taken for
            // rows that it broke anew, and as many lines above them erased.
            if due && self.is_resized()? {
                resized = Some(Instant::now());
            } else if due {
                self.draw()?;
                drawn = Instant::now();
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
        self.backlog.extend(self.app.take_lines());
        let count = self.backlog.len().min(LINES_AT_ONCE);
        let lines: Vec<Line<'static>> = self.backlog.drain(..count).collect();
        self.screen.draw(&lines, &self.app.view())
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
                Command::Copy(text) => {
                    let count = text.chars().count();
                    self.write(&clipboard(&text, std::env::var_os("TMUX").is_some()))?;
                    let words = format!("Sent {count} characters to the terminal's clipboard (OSC 52)");
                    let more = self.update(Event::Remark(words));
                    self.carry_out(more)?;
                }
                Command::Notify(text) => {
                    let text: String = text.chars().filter(|c| !c.is_control()).collect();
                    self.write(format!("\x1b]9;{text}\x07\x07").as_bytes())?;
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
        self.draw()?;
        while !self.backlog.is_empty() {
            self.draw()?;
        }
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
        self.input = Some(EventStream::new());
        Ok(done)
    }

    fn end(mut self) -> io::Result<Left> {
        // Before anything that needs a terminal, which may be what is gone.
        self.host.keep_draft(&self.app.unsent());
        self.draw()?;
        while !self.backlog.is_empty() {
            self.draw()?;
        }
        self.screen.leave()?;
        let left = Left {
            farewell: self.app.farewell(),
            bytes: self.screen.bytes(),
            failed: self.app.failed().cloned(),
        };
        self.guard.release()?;
        Ok(left)
    }
}

enum Happened {
    Typed(crossterm::event::Event),
    Other(Box<Event>),
    Time,
}

async fn next_input(input: &mut Option<EventStream>) -> Option<io::Result<crossterm::event::Event>> {
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

/// What puts text on the clipboard of the terminal the user sits at, also through SSH. tmux passes it on only when wrapped,
/// or takes it itself, as it is configured; so it gets both.
fn clipboard(text: &str, in_tmux: bool) -> Vec<u8> {
    let plain = format!("\x1b]52;c;{}\x07", base64::engine::general_purpose::STANDARD.encode(text));
    if !in_tmux {
        return plain.into_bytes();
    }
    let wrapped = plain.replace('\x1b', "\x1b\x1b");
    format!("{plain}\x1bPtmux;{wrapped}\x1b\\").into_bytes()
}

/// What this terminal does with lines that no longer fit.
fn reflow() -> Reflow {
    let linux = std::env::var("TERM").is_ok_and(|term| term == "linux");
    let multiplexed = std::env::var_os("TMUX").is_some();
    let xterm = std::env::var_os("XTERM_VERSION").is_some();
    if !multiplexed && (linux || xterm) { Reflow::Cuts } else { Reflow::Wraps }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmux_gets_the_clipboard_twice_and_others_once() {
        assert_eq!(clipboard("hi", false), b"\x1b]52;c;aGk=\x07");
        assert_eq!(clipboard("hi", true), b"\x1b]52;c;aGk=\x07\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\");
    }
}
