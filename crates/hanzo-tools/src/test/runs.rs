//! The test runs of a thread: what was started, and what came of it once it is over.

use std::collections::VecDeque;
use std::fmt;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{FileUri, Range};
use serde_json::json;

use super::locate::{Locator, Order};
use super::outcome::Outcome;
use super::report_dir::ReportDir;
use super::{cargo, go, jest, junit, plan};
use crate::contract::Cancelled;
use crate::host::Host;
use crate::proc::{Job, Phase, ProcId, Source, clean};
use crate::project::Runner;
use crate::search::walk::{Scope, Walk};

/// Runs remembered.
const MAX_RUNS: usize = 64;
/// How much of a stream is read for results.
const MAX_STREAM: usize = 16 << 20;
/// How much of its end, when it is longer.
const MAX_TAIL: usize = 64 << 10;
/// Reports of one run that are read.
const MAX_REPORTS: usize = 2_000;
/// A clock of a file system may be behind by a tick.
const SLACK_NS: i128 = 50_000_000;

/// Where the results of a run are.
#[derive(Debug, Clone)]
pub(super) enum Format {
    /// In what cargo prints.
    Cargo,
    /// In a JUnit report, and in what nextest prints.
    Nextest,
    /// In a JUnit report.
    Junit,
    /// In a JSON report.
    Jest,
    /// In what go prints; the module's path.
    Go(Option<String>),
    /// In JUnit reports in the workspace that are newer than the run.
    Scattered { glob: String, since_ns: i128 },
}

/// A run.
pub(super) struct Run {
    number: u64,
    pub(super) job: Arc<Job>,
    pub(super) suite: String,
    pub(super) runner: Runner,
    pub(super) directory: PathBuf,
    format: Format,
    report: Mutex<Option<ReportDir>>,
    result: Mutex<Option<Arc<Results>>>,
}

/// What came of a run, with places.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) outcome: Outcome,
    pub(super) places: Vec<Option<(FileUri, Range)>>,
}

/// The test runs of a thread.
#[derive(Default)]
pub struct Runs(Mutex<Table>);

impl fmt::Debug for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.table().runs.iter().map(|run| run.id()).collect();
        f.debug_tuple("Runs").field(&names).finish()
    }
}

#[derive(Default)]
struct Table {
    last: u64,
    runs: VecDeque<Arc<Run>>,
}

/// What is known of a run when it is started.
pub(super) struct Started {
    pub(super) job: Arc<Job>,
    pub(super) suite: String,
    pub(super) runner: Runner,
    pub(super) directory: PathBuf,
    pub(super) format: Format,
    pub(super) report: Option<ReportDir>,
}

impl Runs {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, started: Started) -> Arc<Run> {
        let Started { job, suite, runner, directory, format, report } = started;
        let mut table = self.table();
        table.last += 1;
        let run = Arc::new(Run {
            number: table.last,
            job,
            suite,
            runner,
            directory,
            format,
            report: Mutex::new(report),
            result: Mutex::default(),
        });
        table.runs.push_back(Arc::clone(&run));
        if table.runs.len() > MAX_RUNS {
            let over = table.runs.iter().position(|run| run.job.phase() != Phase::Running);
            table.runs.remove(over.unwrap_or(0));
        }
        run
    }

    /// The run a caller names, by its own name or its process's; the last one when none is named.
    pub(super) fn find(&self, name: Option<&str>) -> Result<Arc<Run>, ToolError> {
        let table = self.table();
        let named = |run: &&Arc<Run>| match name {
            None => true,
            Some(name) => {
                run.id() == name
                    || ProcId::parse(name).is_some_and(|id| id == run.job.id() && name.contains("proc_"))
            }
        };
        table.runs.iter().rev().find(named).cloned().ok_or_else(|| {
            let known: Vec<String> = table.runs.iter().map(|run| run.id()).collect();
            let text = match name {
                Some(name) => format!("there is no test run `{name}`"),
                None => "nothing was run in this thread".to_owned(),
            };
            ToolError::new(ErrorCode::NotFound, text).with_details(json!({ "known": known }))
        })
    }
}

impl Run {
    pub(super) fn id(&self) -> String {
        format!("run_{}", self.number)
    }

    /// What came of it, or what is known so far. Reads files and parses: not for a thread that must not block.
    pub(super) fn results(&self, host: &Host, cancelled: &Cancelled) -> Arc<Results> {
        let mut result = self.result.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &*result {
            return Arc::clone(known);
        }
        let is_over = self.job.phase() != Phase::Running;
        let outcome = if is_over { self.read(host, cancelled) } else { self.so_far() };
        let order = if self.runner == Runner::Pytest { Order::Last } else { Order::First };
        let locator = Locator::new(&host.workspace, &self.directory, order);
        let place = |failure| locator.find(failure).map(|found| (found.uri, found.range));
        let places = outcome.failures.iter().map(place).collect();
        let found = Arc::new(Results { outcome, places });
        if is_over && !cancelled.is_set() {
            *result = Some(Arc::clone(&found));
            // Everything in it has been read.
            self.report.lock().unwrap_or_else(PoisonError::into_inner).take();
        }
        found
    }

    fn so_far(&self) -> Outcome {
        match &self.format {
            Format::Cargo => Outcome { notes: Vec::new(), ..cargo::parse(&self.text(Source::Stdout), "") },
            Format::Go(module) => go::parse(&self.text(Source::Stdout), "", module.as_deref()),
            _ => Outcome::default(),
        }
    }

    fn read(&self, host: &Host, cancelled: &Cancelled) -> Outcome {
        match &self.format {
            Format::Cargo => cargo::parse(&self.text(Source::Stdout), &self.text(Source::Stderr)),
            Format::Go(module) => {
                go::parse(&self.text(Source::Stdout), &self.text(Source::Stderr), module.as_deref())
            }
            Format::Nextest => self.nextest(),
            Format::Junit => self.reported(|report| report.read(plan::REPORT), junit::parse),
            Format::Jest => self.reported(|report| report.read(plan::REPORT), jest::parse),
            Format::Scattered { glob, since_ns } => scattered(host, glob, *since_ns, cancelled),
        }
    }

    fn nextest(&self) -> Outcome {
        let errors = self.text(Source::Stderr);
        let mut outcome = self.reported(|report| report.read_xml_in("default"), junit::parse);
        for failure in &mut outcome.failures {
            failure.text = cargo::without_backtrace(&failure.text).to_owned();
        }
        outcome.skip += cargo::nextest_skipped(&errors).unwrap_or(0);
        if outcome.total() == 0 {
            let build = cargo::compile_errors(&errors);
            outcome.is_build_failure = !build.is_empty();
            for error in build {
                outcome.keep(error);
            }
        }
        outcome
    }

    fn reported(
        &self,
        read: impl FnOnce(&ReportDir) -> std::io::Result<Option<Vec<u8>>>,
        parse: impl FnOnce(&[u8]) -> Outcome,
    ) -> Outcome {
        let report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = |note: String| Outcome { notes: vec![note], ..Outcome::default() };
        match report.as_ref().map(read) {
            Some(Ok(Some(bytes))) => parse(&bytes),
            Some(Ok(None)) | None => missing("the runner wrote no report".to_owned()),
            Some(Err(error)) => missing(format!("the runner's report cannot be read: {error}")),
        }
    }

    /// A stream as text, its middle left out when it is very long.
    fn text(&self, source: Source) -> String {
        let mut bytes = self.job.output(source, MAX_STREAM).unwrap_or_default();
        let state = self.job.state();
        let capture = state.capture(source);
        let missing = capture.total().saturating_sub(bytes.len() as u64);
        if missing > 0 {
            bytes.push(b'\n');
            bytes.extend(capture.last(MAX_TAIL.min(usize::try_from(missing).unwrap_or(MAX_TAIL))));
        }
        drop(state);
        clean(&bytes)
    }

    /// The end of what it wrote, at most `budget` bytes; errors behind output.
    pub(super) fn tail(&self, budget: usize) -> String {
        let state = self.job.state();
        let end =
            |source: Source, budget: usize| clean(&state.capture(source).last(budget)).trim().to_owned();
        let errors = end(Source::Stderr, budget / 2);
        let output = end(Source::Stdout, budget - errors.len().min(budget / 2));
        [output, errors].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
    }
}

/// The JUnit reports in the workspace that fit `glob` and are newer than the run.
fn scattered(host: &Host, glob: &str, since_ns: i128, cancelled: &Cancelled) -> Outcome {
    let mut outcome = Outcome::default();
    let root = host.workspace.path();
    let Ok(matcher) = globset::Glob::new(glob).map(|glob| glob.compile_matcher()) else {
        outcome.notes.push(format!("`{glob}` is no glob"));
        return outcome;
    };
    // Only below the part of the glob that is plain.
    let plain = |part: &&str| !part.contains(['*', '?', '[', '{']);
    let parts: Vec<&str> = glob.split('/').collect();
    let start: PathBuf = parts[..parts.len() - 1].iter().take_while(|part| plain(part)).collect();
    let walk = Walk { start: root.join(start), depth: None, scope: Scope::All, after: None };
    let (mut fresh, mut stale) = (0, 0);
    let walked = walk.run(&host.workspace, cancelled, &mut |found| {
        let real = found.real();
        let fits = real.strip_prefix(root).is_ok_and(|relative| matcher.is_match(relative));
        if !fits || found.kind != hanzo_sandbox::paths::FileKind::File {
            return ControlFlow::Continue(());
        }
        match read_fresh(host, &real, since_ns) {
            Some(bytes) => {
                outcome.add(junit::parse(&bytes));
                fresh += 1;
            }
            None => stale += 1,
        }
        if fresh < MAX_REPORTS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if fresh == 0 {
        let old = if stale > 0 { "; those there are older than the run" } else { "" };
        outcome.notes.push(match walked {
            Ok(()) => format!("the command wrote no report that fits `{glob}`{old}"),
            Err(error) => format!("no report was found: {error}"),
        });
    }
    outcome
}

fn read_fresh(host: &Host, path: &Path, since_ns: i128) -> Option<Vec<u8>> {
    let found = host.workspace.stat(path).ok()?;
    if found.modified_ns + SLACK_NS < since_ns {
        return None;
    }
    let mut bytes = Vec::new();
    host.workspace.open_read(path).ok()?.take(64 << 20).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
