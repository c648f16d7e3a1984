//! `test`: finds a project's test runners, runs them as jobs of `proc`, and puts what they say into one form. Results come from
//! the runner's machine format where it has one; the whole output stays behind the process's refs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::{FileUri, Range, Ref};
use hanzo_protocol::spawn::{Leftovers, SpawnError};
use hanzo_protocol::tool::{Effect, ReachConfinement, TimeLimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::contract::{Action, Answer, Call, Cancelled, Target, ToolBuilder, UnifiedTool, place};
use crate::host::Host;
use crate::proc::{
    self, JobError, Launch, LaunchInput, Lifetime, Seconds, Shell, Source, Standing, Status, Wait,
};
use crate::project::{Runner, Suite};

mod cargo;
mod choose;
mod go;
mod jest;
mod junit;
mod locate;
mod outcome;
mod plan;
mod report_dir;
mod runs;

pub use runs::Runs;

use choose::{Detected, NOTHING, choose, detect};
use plan::{Part, Wanted};
use report_dir::ReportDir;
use runs::{Format, Results, Run, Started};

/// A run that nobody ends has this long.
const LONGEST: Duration = Duration::from_mins(30);
/// Failures an answer has at most.
const SHOWN: usize = 30;
/// Text of one failure.
const MESSAGE: usize = 1_500;
/// Text of all.
const MESSAGES: usize = 20_000;
/// Of the output, when the results do not tell what happened.
const TAIL: usize = 3_000;

/// The tool, to be given a host.
pub fn tool() -> ToolBuilder {
    UnifiedTool::builder(
        "test",
        "Test suites of cargo, pytest, node, vitest, jest, go, ctest; counts and where tests failed.",
    )
    .action(RunAction)
    .action(StatusAction)
    .action(List)
}

/// Lists suites.
struct List;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListInput {
    /// Directory or file to test
    path: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ListOutput {
    suites: Vec<Listed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    uri: FileUri,
    suite: String,
    runner: Runner,
    /// What has to be done first.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'static str>,
}

impl Action for List {
    const NAME: &'static str = "list";
    const SUMMARY: &'static str = "the suites there are; runs nothing";
    const EXAMPLE: &'static str = "{}";
    type Input = ListInput;
    type Output = ListOutput;

    fn effect(&self, _: &ListInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &ListInput) -> Vec<Target> {
        input.path.iter().map(Target::read).collect()
    }

    async fn run(&self, call: &Call<'_>, input: ListInput) -> Result<Answer<ListOutput>, ToolError> {
        let found =
            call.blocking(move |host, cancelled| detect(host, input.path.as_deref(), cancelled)).await?;
        let hint = found.suites.is_empty().then(|| NOTHING.to_owned());
        let listed = |suite: Suite| Listed {
            uri: place::uri(&suite.directory),
            suite: suite.name,
            runner: suite.runner,
            missing: suite.missing,
        };
        Ok(Answer::new(ListOutput { suites: found.suites.into_iter().map(listed).collect(), hint }))
    }
}

/// Runs tests.
struct RunAction;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunInput {
    /// From list; cargo also unit, integration, doc
    suite: Option<String>,
    /// Part of a test's name
    filter: Option<String>,
    /// How many at once
    parallel: Option<u32>,
    /// Directory or file to test
    path: Option<String>,
    /// Seconds until killed
    timeout: Option<Seconds>,
    /// Seconds until it goes to the background
    wait: Option<Seconds>,
    /// A command line that runs tests and writes JUnit XML
    command: Option<String>,
    /// Glob of the reports it writes, from the workspace
    report: Option<String>,
    /// Ask to run it outside the sandbox
    unconfined: Option<bool>,
}

/// How a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// It goes on in the background.
    Running,
    /// No test failed.
    Passed,
    /// Some did.
    Failed,
    /// What is to be tested does not build.
    BuildFailed,
    /// There was nothing to run.
    NoTests,
    /// The runner failed in another way; its output tells how.
    Error,
    /// It ran into its time limit.
    TimedOut,
    /// It was killed, or died of a signal.
    Killed,
}

/// The answer of `test.run` and `test.status`.
#[derive(Debug, Serialize, JsonSchema)]
struct RunOutput {
    run_id: String,
    suite: String,
    status: Verdict,
    pass: u64,
    fail: u64,
    skip: u64,
    /// Seconds.
    duration: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    command: String,
    proc_id: String,
    stdout_ref: Ref,
    stderr_ref: Ref,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// Failures that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    more_failures: u64,
    failure_locations: Vec<Located>,
    /// The end of what it wrote, when the results do not tell what happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A failed test.
#[derive(Debug, Serialize, JsonSchema)]
struct Located {
    /// The file, when it is in the workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    uri: Option<FileUri>,
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<Range>,
    name: String,
    message: String,
}

impl Action for RunAction {
    const NAME: &'static str = "run";
    const SUMMARY: &'static str = "run tests; long runs go to the background";
    const EXAMPLE: &'static str = r#"{"filter":"parser","timeout":300}"#;
    const WORST: Effect = Effect::Execute;
    const HIDDEN: &'static [&'static str] = &["wait", "command", "report", "unconfined"];
    type Input = RunInput;
    type Output = RunOutput;

    fn effect(&self, _: &RunInput) -> Effect {
        Effect::Execute
    }

    fn targets(&self, input: &RunInput) -> Vec<Target> {
        input.path.iter().map(Target::read).collect()
    }

    fn confinement(&self, input: &RunInput) -> ReachConfinement {
        if input.unconfined == Some(true) { ReachConfinement::Outside } else { ReachConfinement::Inside }
    }

    fn time_limit(&self, _: &RunInput) -> TimeLimit {
        TimeLimit::Own
    }

    async fn run(&self, call: &Call<'_>, input: RunInput) -> Result<Answer<RunOutput>, ToolError> {
        let host = call.host;
        let spawner = host.spawner_for(self.confinement(&input))?;
        let wait = match input.wait {
            Some(seconds) if seconds.is_zero() => Wait::None,
            Some(seconds) => Wait::For(seconds.positive()?),
            None => Wait::For(host.options.proc.background_after),
        };
        let timeout = input.timeout.map(Seconds::positive).transpose()?.unwrap_or(LONGEST);
        let outside = Arc::clone(spawner);
        let Prepared { launch, suite, runner, directory, format, report } =
            call.blocking(move |host, cancelled| prepare(host, outside.as_ref(), &input, cancelled)).await?;
        let program = launch.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        let launch = Launch { timeout: Some(timeout), wait, ..launch };
        let job =
            host.jobs.run(spawner, launch, call.context.output.clone()).await.map_err(
                |error| match &error {
                    JobError::Spawn(SpawnError::Program { .. }) => ToolError::new(
                        ErrorCode::Unavailable,
                        format!("{error}; `{program}` has to be installed to run `{suite}`"),
                    ),
                    _ => proc::failure(&error),
                },
            )?;
        let run = host.runs.add(Started { job, suite, runner, directory, format, report });
        answer(call, run).await
    }
}

/// A run about to be started.
struct Prepared {
    launch: Launch,
    suite: String,
    runner: Runner,
    directory: PathBuf,
    format: Format,
    report: Option<ReportDir>,
}

fn prepare(
    host: &Host,
    spawner: &dyn hanzo_protocol::spawn::Spawner,
    input: &RunInput,
    cancelled: &Cancelled,
) -> Result<Prepared, ToolError> {
    if input.command.is_some() || input.report.is_some() {
        return prepare_command(host, input);
    }
    let Detected { suites, within } = detect(host, input.path.as_deref(), cancelled)?;
    let (suite, part) = choose(suites, input.suite.as_deref())?;
    let report = ReportDir::create(spawner).map_err(|error| {
        ToolError::new(ErrorCode::Io, format!("cannot make a directory for the runner's report: {error}"))
    })?;
    let wanted = Wanted {
        part,
        filter: input.filter.as_deref(),
        parallel: input.parallel,
        within: within.as_deref().filter(|path| *path != suite.directory),
    };
    let plan::Plan { argv, env } = plan::plan(&host.workspace, &suite, &wanted, &report)?;
    let format = match suite.runner {
        Runner::Nextest if part != Part::Doc => Format::Nextest,
        Runner::Cargo | Runner::Nextest => Format::Cargo,
        Runner::Vitest | Runner::Jest => Format::Jest,
        Runner::Go => Format::Go(suite.detail.clone()),
        Runner::Pytest | Runner::Node | Runner::Ctest | Runner::Junit => Format::Junit,
    };
    let mut launch = launch(Launch::new(argv), &suite.directory);
    launch.env.extend(env.into_iter().map(|(name, value)| (name.into(), value.into())));
    Ok(Prepared {
        launch,
        suite: suite.name,
        runner: suite.runner,
        directory: suite.directory,
        format,
        report: Some(report),
    })
}

/// A command of the caller's that writes JUnit XML.
fn prepare_command(host: &Host, input: &RunInput) -> Result<Prepared, ToolError> {
    let invalid = |text: &str| Err(ToolError::new(ErrorCode::InvalidArguments, text));
    let (Some(command), Some(glob)) = (&input.command, &input.report) else {
        return invalid(
            "`command` and `report` go together: what to run, and a glob of the JUnit XML it writes",
        );
    };
    if command.trim().is_empty() || command.contains('\0') {
        return invalid("`command` is empty or contains a NUL byte");
    }
    if input.filter.is_some() || input.suite.is_some() || input.parallel.is_some() {
        return invalid("`suite`, `filter` and `parallel` are for suites of `list`; say it in `command`");
    }
    let glob = glob.trim_start_matches("./");
    if globset::Glob::new(glob).is_err() || glob.starts_with('/') || glob.split('/').any(|part| part == "..")
    {
        return invalid(
            "`report` is a glob relative to the workspace, such as `build/test-results/**/*.xml`",
        );
    }
    let directory = match &input.path {
        Some(path) => proc::directory(host, path)?,
        None => host.workspace.path().to_owned(),
    };
    let shell = Shell::choose(&host.options.proc.shell, proc::on_path);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let since_ns = i128::try_from(now.as_nanos()).unwrap_or(i128::MAX);
    let launch = Launch { title: command.clone(), ..launch(Launch::new(shell.argv(command)), &directory) };
    let format = Format::Scattered { glob: glob.to_owned(), since_ns };
    Ok(Prepared { launch, suite: "junit".to_owned(), runner: Runner::Junit, directory, format, report: None })
}

fn launch(launch: Launch, directory: &Path) -> Launch {
    Launch {
        cwd: Some(directory.to_owned()),
        env: vec![("PWD".into(), directory.as_os_str().to_owned())],
        input: LaunchInput::Empty,
        lifetime: Lifetime::Thread,
        leftovers: Leftovers::Kill,
        ..launch
    }
}

/// Says how a run is.
struct StatusAction;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StatusInput {
    /// Default the last run
    run_id: Option<String>,
    /// Seconds until it goes to the background
    wait: Option<Seconds>,
}

impl Action for StatusAction {
    const NAME: &'static str = "status";
    const SUMMARY: &'static str = "how a run is; waits for its end up to `wait`";
    const EXAMPLE: &'static str = r#"{"run_id":"run_1","wait":60}"#;
    type Input = StatusInput;
    type Output = RunOutput;

    fn effect(&self, _: &StatusInput) -> Effect {
        Effect::Read
    }

    fn time_limit(&self, _: &StatusInput) -> TimeLimit {
        TimeLimit::Own
    }

    async fn run(&self, call: &Call<'_>, input: StatusInput) -> Result<Answer<RunOutput>, ToolError> {
        let run = call.host.runs.find(input.run_id.as_deref())?;
        if let Some(wait) = input.wait {
            let _ = tokio::time::timeout(wait.at_least_zero()?, run.job.over()).await;
        }
        answer(call, run).await
    }
}

async fn answer(call: &Call<'_>, run: Arc<Run>) -> Result<Answer<RunOutput>, ToolError> {
    let standing = Standing::of(&run.job);
    let denial = standing.denied();
    let output = call
        .blocking(move |host, cancelled| {
            let results = run.results(host, cancelled);
            Ok(report(&run, &standing, &results))
        })
        .await?;
    let backend = output.1;
    let mut answer = Answer::new(output.0).by(backend);
    answer.denial = denial;
    Ok(answer)
}

fn report(run: &Run, standing: &Standing, results: &Results) -> (RunOutput, &'static str) {
    let outcome = &results.outcome;
    let status = verdict(standing, run.runner, outcome);
    let mut left = MESSAGES;
    let mut failure_locations = Vec::new();
    for (failure, place) in outcome.failures.iter().zip(&results.places).take(SHOWN) {
        let text = &failure.text[..failure.text.floor_char_boundary(MESSAGE.min(left))];
        left -= text.len();
        let cut = if text.len() < failure.text.len() { "…" } else { "" };
        let (uri, range) = place.clone().unzip();
        failure_locations.push(Located {
            uri,
            range,
            name: failure.name.clone(),
            message: format!("{text}{cut}"),
        });
    }
    let listed = outcome.failures.len().max(usize::try_from(outcome.fail).unwrap_or(usize::MAX));
    let id = run.job.id();
    let tells =
        matches!(status, Verdict::Passed) || (!outcome.failures.is_empty() && status != Verdict::TimedOut);
    let tail = if tells { String::new() } else { run.tail(TAIL) };
    let hint = match status {
        Verdict::Running => Some(format!(
            "it goes on: `status` with run_id={} waits for it, `proc.kill` with proc_id={id} ends it",
            run.id()
        )),
        Verdict::TimedOut => Some("a longer `timeout`, or a `filter`, may let it finish".to_owned()),
        Verdict::NoTests => Some("nothing fits; leave `filter` out or look at `list`".to_owned()),
        _ => None,
    };
    let output = RunOutput {
        run_id: run.id(),
        suite: run.suite.clone(),
        status,
        pass: outcome.pass,
        fail: outcome.fail,
        skip: outcome.skip,
        duration: (outcome.seconds.unwrap_or_else(|| run.job.duration().as_secs_f64()) * 1000.0).round()
            / 1000.0,
        exit_code: standing.exit_code,
        command: proc::clean(run.job.command().as_bytes()).chars().take(300).collect(),
        proc_id: id.to_string(),
        stdout_ref: proc::handle(id, Source::Stdout),
        stderr_ref: proc::handle(id, Source::Stderr),
        notes: if status == Verdict::Running {
            Vec::new()
        } else {
            outcome.notes.iter().take(5).cloned().collect()
        },
        hint,
        more_failures: (listed - failure_locations.len()) as u64,
        failure_locations,
        output: (!tail.is_empty()).then_some(tail),
    };
    (output, run.runner.name())
}

/// Whether a run without results had nothing to run, and did not fail to begin.
fn found_none(code: Option<i32>, runner: Runner, outcome: &outcome::Outcome) -> bool {
    let ran = outcome.pass + outcome.fail > 0;
    match runner {
        Runner::Pytest => !ran && code == Some(5),
        Runner::Nextest => !ran && code == Some(4),
        _ => outcome.total() == 0 && code == Some(0) && outcome.notes.is_empty(),
    }
}

fn verdict(standing: &Standing, runner: Runner, outcome: &outcome::Outcome) -> Verdict {
    match standing.status {
        Status::Running => Verdict::Running,
        Status::TimedOut => Verdict::TimedOut,
        Status::Killed => Verdict::Killed,
        Status::Exited if outcome.is_build_failure => Verdict::BuildFailed,
        Status::Exited if outcome.fail > 0 => Verdict::Failed,
        Status::Exited if found_none(standing.exit_code, runner, outcome) => Verdict::NoTests,
        Status::Exited if standing.exit_code == Some(0) && outcome.total() > 0 => Verdict::Passed,
        Status::Exited => Verdict::Error,
    }
}
