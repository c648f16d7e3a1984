//! The processes of one thread: started, listed, read and ended here. They end with the thread, detached ones excepted.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hanzo_protocol::spawn::{Leftovers, SpawnError, SpawnRequest, Spawner, Stdin, Streams};
use hanzo_protocol::tool::OutputSink;
use tokio::task::AbortHandle;

use super::job::{Input, Job, Order, Phase, ProcId, Pump, RunTag, Start};

/// How a thread's processes are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobOptions {
    /// Where output goes that is too long for memory. Files there have no name and are gone with the process that made them.
    pub spool_dir: PathBuf,
    /// How much of each stream is kept, in bytes. More is counted, and its end kept.
    pub spool_limit: u64,
    /// How many processes may run at once.
    pub live_limit: usize,
    /// How many that are over are remembered, with their output.
    pub remembered: usize,
    /// What their names end with; `None` for letters nobody else has.
    pub run: Option<RunTag>,
}

impl Default for JobOptions {
    fn default() -> Self {
        let spool_dir = std::env::temp_dir();
        Self { spool_dir, spool_limit: 64 << 20, live_limit: 64, remembered: 128, run: None }
    }
}

/// The processes of one thread. Dropping it kills all that are not detached.
pub struct Jobs {
    options: JobOptions,
    run: RunTag,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    last: u64,
    /// Processes about to be started count as running.
    starting: usize,
    jobs: BTreeMap<ProcId, Entry>,
}

struct Entry {
    job: Arc<Job>,
    /// The task that reads it, once it is in the background.
    task: Option<AbortHandle>,
}

/// A process to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// What to call it in a list.
    pub title: String,
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Where to run it; the workspace when absent.
    pub cwd: Option<PathBuf>,
    /// More variables.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads.
    pub input: LaunchInput,
    /// The terminal it gets, as rows and columns; pipes when absent.
    pub terminal: Option<(u16, u16)>,
    /// When to kill it.
    pub timeout: Option<Duration>,
    /// How long to wait before it goes to the background.
    pub wait: Wait,
    /// Whether it survives its thread.
    pub lifetime: Lifetime,
    /// What becomes of what it leaves behind.
    pub leftovers: Leftovers,
}

impl Launch {
    /// `argv` with pipes and no input, waited for to its end.
    pub fn new(argv: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        let argv: Vec<OsString> = argv.into_iter().map(Into::into).collect();
        let title = argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ");
        Self {
            title,
            argv,
            cwd: None,
            env: Vec::new(),
            input: LaunchInput::Empty,
            terminal: None,
            timeout: None,
            wait: Wait::Unlimited,
            lifetime: Lifetime::Thread,
            leftovers: Leftovers::Kill,
        }
    }
}

/// What a process reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LaunchInput {
    /// Nothing.
    Empty,
    /// These bytes, then the end.
    Bytes(Vec<u8>),
    /// These bytes, then what is written to it.
    Open(Vec<u8>),
}

/// How long a call waits for a process before it goes to the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    None,
    /// This long.
    For(Duration),
    /// Until the end.
    Unlimited,
}

/// Whether a process survives its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lifetime {
    /// It ends with the thread.
    Thread,
    /// It goes on while the program that runs us does.
    Detached,
}

/// Why a process was not started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// As many run as may.
    #[error(
        "{limit} processes are running, which is as many as a thread may have\n\nhint: end one with `kill`; `ps` lists them"
    )]
    TooMany {
        /// How many may.
        limit: usize,
    },
    /// The spawner could not.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// Its streams could not be watched.
    #[error("cannot watch the process: {0}")]
    Watch(#[from] std::io::Error),
}

impl Jobs {
    /// No processes yet.
    pub fn new(options: JobOptions) -> Self {
        let run = options.run.unwrap_or_else(RunTag::random);
        Self { options, run, table: Mutex::default() }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process and waits as long as `launch` says: when this is done it is over or in the background. Dropping the
    /// future kills the process and all it started.
    pub async fn run(
        &self,
        spawner: &Arc<dyn Spawner>,
        launch: Launch,
        live: Option<Arc<dyn OutputSink>>,
    ) -> Result<Arc<Job>, JobError> {
        let (wait, detached) = (launch.wait, launch.lifetime == Lifetime::Detached);
        let mut pump = self.start(spawner, launch, live.filter(|_| wait != Wait::None)).await?;
        let job = Arc::clone(pump.job());
        let over = match wait {
            Wait::None => false,
            Wait::For(limit) => tokio::time::timeout(limit, pump.until_over()).await.is_ok(),
            Wait::Unlimited => {
                pump.until_over().await;
                true
            }
        };
        let lingers = matches!(job.phase(), Phase::Over(over) if over.leftovers);
        if over && !lingers {
            return Ok(job);
        }
        pump.go_to_background();
        let task = tokio::spawn(pump.run());
        if !detached && let Some(entry) = self.table().jobs.get_mut(&job.id) {
            entry.task = Some(task.abort_handle());
        }
        Ok(job)
    }

    /// Runs a program to its end without listing it: what a tool does for itself.
    pub(crate) async fn run_unlisted(
        &self,
        spawner: &Arc<dyn Spawner>,
        launch: Launch,
    ) -> Result<Arc<Job>, JobError> {
        let mut pump = self.spawn(ProcId { number: 0, run: self.run }, spawner, launch, None).await?;
        pump.until_over().await;
        Ok(Arc::clone(pump.job()))
    }

    async fn start(
        &self,
        spawner: &Arc<dyn Spawner>,
        launch: Launch,
        live: Option<Arc<dyn OutputSink>>,
    ) -> Result<Pump, JobError> {
        let place = Place::take(self)?;
        let id = {
            let mut table = self.table();
            table.last += 1;
            ProcId { number: table.last, run: self.run }
        };
        let pump = self.spawn(id, spawner, launch, live).await?;
        place.fill(pump.job());
        Ok(pump)
    }

    async fn spawn(
        &self,
        id: ProcId,
        spawner: &Arc<dyn Spawner>,
        launch: Launch,
        live: Option<Arc<dyn OutputSink>>,
    ) -> Result<Pump, JobError> {
        let reads = match launch.input {
            LaunchInput::Empty => Stdin::Empty,
            LaunchInput::Bytes(_) | LaunchInput::Open(_) => Stdin::Pipe,
        };
        let streams = match launch.terminal {
            Some((rows, columns)) => Streams::Terminal { rows, columns },
            None => Streams::Pipes { stdin: reads },
        };
        let request = SpawnRequest {
            argv: launch.argv,
            cwd: launch.cwd,
            env: launch.env,
            streams,
            timeout: launch.timeout,
            leftovers: launch.leftovers,
        };
        let process = spawner.spawn(request).await?;
        let input = match (launch.input, launch.terminal) {
            // The end of a terminal's input is a key, not a closed pipe: everything else would hang up on the program.
            (LaunchInput::Bytes(mut bytes), Some(_)) => {
                bytes.push(0x04);
                Input::Open(bytes)
            }
            (LaunchInput::Empty, _) => Input::None,
            (LaunchInput::Bytes(bytes), None) => Input::Once(bytes),
            (LaunchInput::Open(bytes), _) => Input::Open(bytes),
        };
        let start = Start {
            id,
            command: launch.title,
            detached: launch.lifetime == Lifetime::Detached,
            input,
            spool_dir: self.options.spool_dir.clone(),
            spool_limit: self.options.spool_limit,
            live,
        };
        Ok(Pump::new(process, Arc::clone(spawner), start)?)
    }

    /// Whether `id` was given out here, to a process that may be forgotten.
    pub fn gave(&self, id: ProcId) -> bool {
        id.run == self.run && (1..=self.table().last).contains(&id.number)
    }

    /// The process called `id`.
    pub fn get(&self, id: ProcId) -> Option<Arc<Job>> {
        self.table().jobs.get(&id).map(|entry| Arc::clone(&entry.job))
    }

    /// All processes that are remembered, in the order in which they were started.
    pub fn list(&self) -> Vec<Arc<Job>> {
        self.table().jobs.values().map(|entry| Arc::clone(&entry.job)).collect()
    }

    /// Kills every process that is not detached and waits until they are dead, at most `limit`.
    pub async fn end(&self, limit: Duration) {
        let jobs: Vec<_> = self.list().into_iter().filter(|job| !job.detached && job.may_live()).collect();
        let all = async {
            for job in &jobs {
                job.order(Order::Kill).await;
            }
            for job in &jobs {
                job.over().await;
            }
        };
        let _ = tokio::time::timeout(limit, all).await;
    }
}

impl Drop for Jobs {
    fn drop(&mut self) {
        for entry in self.table().jobs.values() {
            if let Some(task) = &entry.task {
                task.abort();
            }
        }
    }
}

/// One of the places for running processes.
struct Place<'a>(&'a Jobs);

impl<'a> Place<'a> {
    fn take(jobs: &'a Jobs) -> Result<Self, JobError> {
        let mut table = jobs.table();
        let live = table.jobs.values().filter(|entry| entry.job.is_live()).count();
        let limit = jobs.options.live_limit;
        if live + table.starting >= limit {
            return Err(JobError::TooMany { limit });
        }
        table.starting += 1;
        Ok(Self(jobs))
    }

    /// Remembers the process that took it, and forgets the oldest that are over.
    fn fill(self, job: &Arc<Job>) {
        let mut table = self.0.table();
        table.jobs.insert(job.id, Entry { job: Arc::clone(job), task: None });
        let over = |entry: &Entry| !entry.job.may_live();
        let mut excess = table.jobs.values().filter(|entry| over(entry)).count();
        excess = excess.saturating_sub(self.0.options.remembered);
        table.jobs.retain(|_, entry| {
            let forget = excess > 0 && over(entry);
            excess -= usize::from(forget);
            !forget
        });
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.table().starting -= 1;
    }
}
