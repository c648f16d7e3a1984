//! One process of a thread: what it wrote, how it is, and the loop that reads it. The loop runs inside the call that started
//! the process as long as the call waits, so that nothing has to be handed from task to task, and is moved to a task of its
//! own when the process goes to the background: nothing is lost on the way because nothing changes hands.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hanzo_protocol::spawn::{Denial, Process, ProcessEnd, ProcessStatus, ProcessStreams, Spawner};
use hanzo_protocol::tool::OutputSink;
use tokio::sync::{Notify, mpsc, oneshot};

use super::capture::Capture;
use super::stream::{Got, Reader, Writer};
use super::text::Stripper;

/// How much is read at once; what a pipe holds.
const CHUNK: usize = 64 << 10;
/// How many chunks are read from one stream before the others get their turn.
const TURNS: usize = 16;
/// Output is shown at most this often while a command runs.
const SHOW_EVERY: Duration = Duration::from_millis(50);
/// How much unseen output is kept to be shown; of more the end is shown.
const SHOW_AT_MOST: usize = 32 << 10;
/// How much of the errors a denial is looked for in.
const EVIDENCE: usize = 4 << 10;

/// A process's name: `proc_1_qkzvx` is the first its thread started since it was opened. The letters are another five every time
/// a thread is opened, so that a name in an old conversation never means a process it was not given to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcId {
    pub(crate) number: u64,
    pub(crate) run: RunTag,
}

impl fmt::Display for ProcId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proc_{}_{}", self.number, self.run)
    }
}

impl ProcId {
    /// Reads `proc_1_qkzvx`, or the ref of one of its streams.
    pub fn parse(text: &str) -> Option<Self> {
        let name =
            text.strip_prefix("stdout_ref:").or_else(|| text.strip_prefix("stderr_ref:")).unwrap_or(text);
        let (digits, run) = name.strip_prefix("proc_").unwrap_or(name).split_once('_')?;
        let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self { number: digits.parse().ok().filter(|_| plain)?, run: RunTag::new(run)? })
    }
}

/// What tells the processes of one opening of a thread from those of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunTag([u8; 5]);

impl RunTag {
    /// The tag with these five letters; `None` for anything else.
    pub fn new(letters: &str) -> Option<Self> {
        let letters: [u8; 5] = letters.as_bytes().try_into().ok()?;
        letters.iter().all(u8::is_ascii_lowercase).then_some(Self(letters))
    }

    pub(crate) fn random() -> Self {
        use std::hash::{BuildHasher as _, Hasher as _, RandomState};

        let mut rest = RandomState::new().build_hasher().finish();
        Self([(); 5].map(|()| {
            let letter = b"abcdefghijklmnopqrstuvwxyz"[usize::try_from(rest % 26).unwrap_or_default()];
            rest /= 26;
            letter
        }))
    }
}

impl fmt::Display for RunTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|letter| write!(f, "{}", char::from(*letter)))
    }
}

/// Which of a process's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Its output, or what its terminal shows.
    Stdout,
    /// Its errors.
    Stderr,
}

/// How a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// It runs.
    Running,
    /// It is over.
    Over(Over),
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Over {
    /// Why it is over.
    pub status: ProcessStatus,
    /// How long it ran.
    pub duration: Duration,
    /// Whether something it started goes on.
    pub leftovers: bool,
    /// What the sandbox was probably in the way of.
    pub denial: Option<Denial>,
}

pub(crate) struct State {
    pub(crate) stdout: Capture,
    pub(crate) stderr: Capture,
    pub(crate) phase: Phase,
    /// Whether a stream is still open.
    pub(crate) open: bool,
    pub(crate) backgrounded: bool,
}

impl State {
    pub(crate) fn capture(&self, source: Source) -> &Capture {
        match source {
            Source::Stdout => &self.stdout,
            Source::Stderr => &self.stderr,
        }
    }
}

/// What can be asked of a process by other calls than the one that started it.
pub(crate) enum Order {
    /// End it and all it started.
    Kill,
    /// Send the main process and what it started a signal.
    Signal(i32, oneshot::Sender<Result<(), String>>),
    /// Write to it.
    Write(Vec<u8>, Close, oneshot::Sender<Result<(), String>>),
}

/// Whether the input ends with what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Close {
    After,
    Never,
}

/// A process of a thread, running or over.
pub struct Job {
    pub(crate) id: ProcId,
    pub(crate) command: String,
    pub(crate) started: Instant,
    pub(crate) detached: bool,
    state: Mutex<State>,
    ended: Notify,
    orders: mpsc::Sender<Order>,
}

impl Job {
    /// Its name.
    pub fn id(&self) -> ProcId {
        self.id
    }

    /// What it was started as.
    pub(crate) fn command(&self) -> &str {
        &self.command
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How it is.
    pub fn phase(&self) -> Phase {
        self.state().phase.clone()
    }

    /// Whether it runs, or something it started still writes to its streams.
    pub(crate) fn is_live(&self) -> bool {
        let state = self.state();
        match &state.phase {
            Phase::Running => true,
            Phase::Over(over) => over.leftovers && state.open,
        }
    }

    /// Whether something of it may be alive.
    pub(crate) fn may_live(&self) -> bool {
        match self.phase() {
            Phase::Running => true,
            Phase::Over(over) => over.leftovers,
        }
    }

    /// How long it has run, or ran.
    pub(crate) fn duration(&self) -> Duration {
        match self.phase() {
            Phase::Running => self.started.elapsed(),
            Phase::Over(over) => over.duration,
        }
    }

    /// Done when the process is over.
    pub(crate) async fn over(&self) {
        let mut ended = std::pin::pin!(self.ended.notified());
        loop {
            ended.as_mut().enable();
            if self.phase() != Phase::Running {
                return;
            }
            ended.as_mut().await;
            ended.set(self.ended.notified());
        }
    }

    /// Passes an order on; `false` when nobody is there to take it.
    pub(crate) async fn order(&self, order: Order) -> bool {
        self.orders.send(order).await.is_ok()
    }

    /// All of a stream, at most `limit` bytes from its start.
    pub(crate) fn output(&self, source: Source, limit: usize) -> io::Result<Vec<u8>> {
        let state = self.state();
        let capture = state.capture(source);
        let mut bytes = Vec::new();
        while bytes.len() < limit {
            let piece = capture.read(bytes.len() as u64, limit - bytes.len())?;
            if piece.bytes.is_empty() || piece.offset != bytes.len() as u64 {
                break;
            }
            bytes.extend(piece.bytes);
        }
        Ok(bytes)
    }
}

/// Whether the process reads from us.
pub(crate) enum Input {
    /// Nothing to write.
    None,
    /// This, and then its end.
    Once(Vec<u8>),
    /// This, and what is written later.
    Open(Vec<u8>),
}

/// Reads a process until it is over. Dropping it kills the process and all it started.
pub(crate) struct Pump {
    job: Arc<Job>,
    process: Box<dyn Process>,
    /// What a detached process needs to live on when its thread is gone.
    _spawner: Arc<dyn Spawner>,
    stdout: Option<Reader>,
    stderr: Option<Reader>,
    stdin: Option<Writer>,
    input: VecDeque<u8>,
    close: Close,
    orders: mpsc::Receiver<Order>,
    buffer: Vec<u8>,
    live: Option<Live>,
}

/// What a pump needs beside the process.
pub(crate) struct Start {
    pub(crate) id: ProcId,
    pub(crate) command: String,
    pub(crate) detached: bool,
    pub(crate) input: Input,
    pub(crate) spool_dir: std::path::PathBuf,
    pub(crate) spool_limit: u64,
    pub(crate) live: Option<Arc<dyn OutputSink>>,
}

enum Event {
    Order(Option<Order>),
    Readable(Source),
    Wrote(io::Result<usize>),
    End(ProcessEnd),
    Show,
}

impl Pump {
    pub(crate) fn new(
        mut process: Box<dyn Process>,
        spawner: Arc<dyn Spawner>,
        start: Start,
    ) -> io::Result<Self> {
        let ProcessStreams { stdin, stdout, stderr, terminal } = std::mem::take(process.streams());
        let (reads, writes) = match terminal {
            Some(terminal) => (Some(terminal.try_clone()?), Some(terminal)),
            None => (stdout, stdin),
        };
        let (input, close) = match start.input {
            Input::None => (Vec::new(), Close::Never),
            Input::Once(bytes) => (bytes, Close::After),
            Input::Open(bytes) => (bytes, Close::Never),
        };
        let (sender, orders) = mpsc::channel(16);
        let capture = || Capture::new(start.spool_dir.clone(), start.spool_limit);
        let job = Arc::new(Job {
            id: start.id,
            command: start.command,
            started: Instant::now(),
            detached: start.detached,
            state: Mutex::new(State {
                stdout: capture(),
                stderr: capture(),
                phase: Phase::Running,
                open: true,
                backgrounded: false,
            }),
            ended: Notify::new(),
            orders: sender,
        });
        let mut pump = Self {
            job,
            process,
            _spawner: spawner,
            stdout: reads.map(Reader::new).transpose()?,
            stderr: stderr.map(Reader::new).transpose()?,
            stdin: writes.map(Writer::new).transpose()?,
            input: input.into(),
            close,
            orders,
            buffer: vec![0; CHUNK],
            live: start.live.map(Live::new),
        };
        pump.close_input_when_done();
        Ok(pump)
    }

    pub(crate) fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// Stops showing output: the call that wanted to is over.
    pub(crate) fn go_to_background(&mut self) {
        self.live = None;
        self.job.state().backgrounded = true;
    }

    /// Reads until the process is over and everything it wrote is read. May be dropped and called again.
    pub(crate) async fn until_over(&mut self) {
        while self.job.phase() == Phase::Running {
            match self.next().await {
                Event::End(end) => self.finish(&end),
                event => self.handle(event),
            }
        }
    }

    /// After the end: reads on what leftovers write, and waits for an order to kill them.
    pub(crate) async fn linger(mut self) {
        let leftovers = |job: &Job| matches!(job.phase(), Phase::Over(Over { leftovers: true, .. }));
        while leftovers(&self.job) {
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(order) => self.obey(order),
                    None => return,
                },
                () = readable(self.stdout.as_ref()) => self.read(Source::Stdout, Reader::try_read),
                () = readable(self.stderr.as_ref()) => self.read(Source::Stderr, Reader::try_read),
            }
        }
    }

    /// The life of a process in the background.
    pub(crate) async fn run(mut self) {
        self.until_over().await;
        self.linger().await;
    }

    async fn next(&mut self) -> Event {
        let Self { process, stdout, stderr, stdin, input, orders, live, .. } = self;
        let (front, _) = input.as_slices();
        tokio::select! {
            biased;
            Some(order) = orders.recv() => Event::Order(Some(order)),
            () = readable(stdout.as_ref()) => Event::Readable(Source::Stdout),
            () = readable(stderr.as_ref()) => Event::Readable(Source::Stderr),
            wrote = write(stdin.as_ref(), front) => Event::Wrote(wrote),
            end = process.wait() => Event::End(end.unwrap_or(ProcessEnd {
                status: ProcessStatus::Killed,
                cpu_time: Duration::ZERO,
                max_rss: 0,
                leftovers: false,
            })),
            () = due(live.as_ref()) => Event::Show,
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Readable(source) => self.read(source, Reader::try_read),
            Event::Order(Some(order)) => self.obey(order),
            Event::Wrote(Ok(count)) => {
                self.input.drain(..count);
                self.close_input_when_done();
            }
            // It does not read (any more), which is its right.
            Event::Wrote(Err(_)) => {
                self.input.clear();
                self.stdin = None;
            }
            Event::Show => {
                if let Some(live) = &mut self.live {
                    live.show();
                }
            }
            Event::Order(None) | Event::End(_) => {}
        }
    }

    fn close_input_when_done(&mut self) {
        if self.input.is_empty() && self.close == Close::After {
            self.stdin = None;
        }
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::Kill => {
                self.process.kill();
                // Leftovers are not waited for again; the process itself is.
                if let Phase::Over(over) = &mut self.job.state().phase {
                    over.leftovers = false;
                }
            }
            Order::Signal(signal, answer) => {
                let result = self.process.signal(signal).map_err(|error| error.to_string());
                let _ = answer.send(result);
            }
            Order::Write(bytes, close, answer) => {
                let result = if self.stdin.is_none() {
                    Err("its input is closed".to_owned())
                } else {
                    self.input.extend(bytes);
                    self.close = close;
                    self.close_input_when_done();
                    Ok(())
                };
                let _ = answer.send(result);
            }
        }
    }

    /// Reads what is there, up to a bound.
    fn read(&mut self, source: Source, read: impl Fn(&Reader, &mut [u8]) -> Got) {
        let stream = match source {
            Source::Stdout => &mut self.stdout,
            Source::Stderr => &mut self.stderr,
        };
        let mut ended = false;
        if let Some(open) = stream {
            for _ in 0..TURNS {
                match read(open, &mut self.buffer) {
                    Got::Bytes(count) => {
                        let bytes = &self.buffer[..count];
                        let mut state = self.job.state();
                        match source {
                            Source::Stdout => state.stdout.push(bytes),
                            Source::Stderr => state.stderr.push(bytes),
                        }
                        drop(state);
                        if let Some(live) = &mut self.live {
                            live.push(source, bytes);
                        }
                    }
                    Got::Nothing => break,
                    Got::End => {
                        ended = true;
                        break;
                    }
                }
            }
        }
        if ended {
            *stream = None;
            self.job.state().open = self.stdout.is_some() || self.stderr.is_some();
        }
    }

    fn finish(&mut self, end: &ProcessEnd) {
        // All writers are dead, or leftovers have the pipes: what was written before the end is there to be read now.
        self.read(Source::Stdout, Reader::read_now);
        self.read(Source::Stderr, Reader::read_now);
        if !end.leftovers {
            self.stdout = None;
            self.stderr = None;
        }
        let mut state = self.job.state();
        let denial = self.process.denial(end, &state.stderr.last(EVIDENCE));
        // A terminal has no errors of its own.
        let denial = denial.or_else(|| {
            self.process.denial(end, &state.stdout.last(EVIDENCE)).filter(|_| state.stderr.total() == 0)
        });
        state.open = self.stdout.is_some() || self.stderr.is_some();
        state.phase = Phase::Over(Over {
            status: end.status.clone(),
            duration: self.job.started.elapsed(),
            leftovers: end.leftovers,
            denial,
        });
        drop(state);
        self.stdin = None;
        self.job.ended.notify_waiters();
    }
}

impl Drop for Pump {
    fn drop(&mut self) {
        let mut state = self.job.state();
        let running = state.phase == Phase::Running;
        if running {
            let duration = self.job.started.elapsed();
            state.phase =
                Phase::Over(Over { status: ProcessStatus::Killed, duration, leftovers: false, denial: None });
        }
        let leftovers = match &mut state.phase {
            Phase::Over(over) => std::mem::take(&mut over.leftovers),
            Phase::Running => false,
        };
        state.open = false;
        drop(state);
        // A process that is over with its leftovers kept is not killed by being dropped.
        if running || (leftovers && !self.job.detached) {
            self.process.kill();
        }
        self.job.ended.notify_waiters();
    }
}

async fn readable(stream: Option<&Reader>) {
    match stream {
        Some(stream) => stream.readable().await,
        None => std::future::pending().await,
    }
}

async fn write(stream: Option<&Writer>, bytes: &[u8]) -> io::Result<usize> {
    match stream {
        Some(stream) if !bytes.is_empty() => stream.write(bytes).await,
        _ => std::future::pending().await,
    }
}

async fn due(live: Option<&Live>) {
    match live.and_then(Live::due) {
        Some(when) => tokio::time::sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}

/// Shows output while a command runs, not more often than a person can see.
struct Live {
    sink: Arc<dyn OutputSink>,
    strippers: [Stripper; 2],
    pending: String,
    skipped: usize,
    next: Instant,
}

impl Live {
    fn new(sink: Arc<dyn OutputSink>) -> Self {
        Self {
            sink,
            strippers: Default::default(),
            pending: String::new(),
            skipped: 0,
            // What a short command writes is shown with its result.
            next: Instant::now() + SHOW_EVERY,
        }
    }

    fn push(&mut self, source: Source, bytes: &[u8]) {
        let stripper = &mut self.strippers[usize::from(source == Source::Stderr)];
        self.pending.push_str(&stripper.push(bytes));
        if self.pending.len() > SHOW_AT_MOST {
            let cut = self.pending.ceil_char_boundary(self.pending.len() - SHOW_AT_MOST / 2);
            self.skipped += cut;
            self.pending.drain(..cut);
        }
    }

    fn due(&self) -> Option<Instant> {
        (!self.pending.is_empty()).then_some(self.next)
    }

    fn show(&mut self) {
        let mut text = std::mem::take(&mut self.pending);
        if self.skipped > 0 {
            text.insert_str(0, &format!("\n[… {} bytes not shown …]\n", self.skipped));
            self.skipped = 0;
        }
        self.sink.push(&text);
        self.next = Instant::now() + SHOW_EVERY;
    }
}
