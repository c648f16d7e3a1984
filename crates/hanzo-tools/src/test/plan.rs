//! The command line of each runner: how it is told to write its report, what to leave out, and how many at once.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_sandbox::paths::{FileKind, Workspace};

use super::report_dir::ReportDir;
use crate::proc::plain_words;
use crate::project::{Runner, Suite};

/// The report's name, for runners that write one.
pub(super) const REPORT: &str = "report";
const NEXTEST_CONFIG: &str = "nextest.toml";

/// Which of a cargo project's tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    All,
    Unit,
    Integration,
    Doc,
}

impl Part {
    pub(super) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "unit" | "lib" => Self::Unit,
            "integration" => Self::Integration,
            "doc" | "docs" => Self::Doc,
            _ => return None,
        })
    }
}

/// What to run.
pub(super) struct Wanted<'a> {
    pub(super) part: Part,
    pub(super) filter: Option<&'a str>,
    pub(super) parallel: Option<u32>,
    /// Files or directories to keep to, absolute.
    pub(super) within: Option<&'a Path>,
}

/// A command line.
pub(super) struct Plan {
    pub(super) argv: Vec<OsString>,
    pub(super) env: Vec<(&'static str, &'static str)>,
}

/// How `suite` is run.
pub(super) fn plan(
    workspace: &Workspace,
    suite: &Suite,
    wanted: &Wanted<'_>,
    report: &ReportDir,
) -> Result<Plan, ToolError> {
    if let Some(filter) = wanted.filter.filter(|filter| filter.starts_with('-') || filter.contains('\0')) {
        let text = format!("`filter` is part of a test's name, not an option: `{filter}`");
        return Err(ToolError::new(ErrorCode::InvalidArguments, text));
    }
    let mut line = Line { words: Vec::new() };
    let mut env = vec![("NO_COLOR", "1")];
    match suite.runner {
        Runner::Cargo => cargo(&mut line, wanted),
        Runner::Nextest if wanted.part == Part::Doc => cargo(&mut line, wanted),
        Runner::Nextest => nextest(&mut line, wanted, report)?,
        Runner::Pytest => pytest(&mut line, workspace, suite, wanted, report),
        Runner::Node => node(&mut line, suite, wanted, report),
        Runner::Vitest => {
            line.word(program(workspace, &suite.directory, "vitest", &mut env));
            line.text("run --reporter=default --reporter=json");
            line.joined("--outputFile.json=", report.seen(REPORT));
            line.option("--testNamePattern=", wanted.filter);
            line.option("--maxWorkers=", wanted.parallel.map(|count| count.to_string()).as_deref());
            line.within(suite, wanted);
        }
        Runner::Jest => {
            line.word(program(workspace, &suite.directory, "jest", &mut env));
            line.text("--ci --json");
            line.joined("--outputFile=", report.seen(REPORT));
            line.option("--testNamePattern=", wanted.filter);
            line.option("--maxWorkers=", wanted.parallel.map(|count| count.to_string()).as_deref());
            line.within(suite, wanted);
        }
        Runner::Go => {
            line.text("go test -json");
            if let Some(count) = wanted.parallel {
                line.text(&format!("-p={count} -parallel={count}"));
            }
            line.option("-run=", wanted.filter);
            let inner = wanted.within.and_then(|path| path.strip_prefix(&suite.directory).ok());
            let inner = inner
                .map(|path| if path.extension().is_some() { path.parent().unwrap_or(path) } else { path });
            match inner.filter(|path| !path.as_os_str().is_empty()) {
                Some(inner) => line.word(Path::new(".").join(inner).join("...").into_os_string()),
                None => line.text("./..."),
            }
        }
        Runner::Ctest => {
            line.text("ctest --output-on-failure --test-dir");
            line.word(suite.detail.as_deref().unwrap_or("build").into());
            line.word("--output-junit".into());
            line.word(report.seen(REPORT).into_os_string());
            if let Some(count) = wanted.parallel {
                line.text(&format!("-j {count}"));
            }
            if let Some(filter) = wanted.filter {
                line.word("-R".into());
                line.word(filter.into());
            }
        }
        Runner::Junit => unreachable!("its command is given"),
    }
    // What a program may colour or ask differs where nobody looks; the words must not.
    env.push(("CARGO_TERM_COLOR", "never"));
    Ok(Plan { argv: line.words, env })
}

/// A command line in the making.
struct Line {
    words: Vec<OsString>,
}

impl Line {
    fn word(&mut self, word: OsString) {
        self.words.push(word);
    }

    fn text(&mut self, words: &str) {
        self.words.extend(words.split(' ').map(OsString::from));
    }

    fn joined(&mut self, option: &str, value: PathBuf) {
        let mut word = OsString::from(option);
        word.push(value);
        self.words.push(word);
    }

    fn option(&mut self, option: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.words.push(format!("{option}{value}").into());
        }
    }

    fn within(&mut self, suite: &Suite, wanted: &Wanted<'_>) {
        if let Some(path) = wanted.within {
            let path = path.strip_prefix(&suite.directory).unwrap_or(path);
            // A name cannot be taken for an option this way.
            self.words.push(Path::new(".").join(path).into_os_string());
        }
    }
}

fn cargo(line: &mut Line, wanted: &Wanted<'_>) {
    line.text("cargo test --no-fail-fast");
    parts(line, wanted.part);
    line.text("--");
    if let Some(count) = wanted.parallel {
        line.text(&format!("--test-threads={}", count.max(1)));
    }
    line.words.extend(wanted.filter.map(OsString::from));
}

fn parts(line: &mut Line, part: Part) {
    match part {
        Part::All => {}
        Part::Unit => line.text("--lib --bins"),
        Part::Integration => line.text("--test *"),
        Part::Doc => line.text("--doc"),
    }
}

fn nextest(line: &mut Line, wanted: &Wanted<'_>, report: &ReportDir) -> Result<(), ToolError> {
    let store = report.seen("");
    let store = toml::Value::String(store.to_string_lossy().into_owned());
    let config = format!("[store]\ndir = {store}\n[profile.default.junit]\npath = \"junit.xml\"\n");
    report.write(NEXTEST_CONFIG, &config).map_err(|error| {
        ToolError::new(ErrorCode::Io, format!("cannot write the settings of nextest: {error}"))
    })?;
    line.text("cargo nextest run --profile default --no-fail-fast --tool-config-file");
    line.joined("hanzo-dev:", report.seen(NEXTEST_CONFIG));
    parts(line, wanted.part);
    if let Some(count) = wanted.parallel {
        line.text(&format!("--test-threads={}", count.max(1)));
    }
    if let Some(filter) = wanted.filter {
        line.text("--");
        line.word(filter.into());
    }
    Ok(())
}

fn pytest(line: &mut Line, workspace: &Workspace, suite: &Suite, wanted: &Wanted<'_>, report: &ReportDir) {
    let python = upwards(workspace, &suite.directory, &[".venv/bin/python", "venv/bin/python"]);
    line.word(python.map_or_else(|| "python3".into(), PathBuf::into_os_string));
    line.text("-m pytest --color=no -o junit_family=xunit1");
    line.joined("--junitxml=", report.seen(REPORT));
    if let Some(count) = wanted.parallel.filter(|count| *count > 1) {
        line.text(&format!("-n {count}"));
    }
    match wanted.filter {
        // A node id names a test exactly.
        Some(filter) if filter.contains("::") || filter.strip_suffix(".py").is_some() => {
            line.word(filter.into());
        }
        Some(filter) => {
            line.word("-k".into());
            line.word(filter.into());
        }
        None => {}
    }
    line.within(suite, wanted);
}

fn node(line: &mut Line, suite: &Suite, wanted: &Wanted<'_>, report: &ReportDir) {
    // `node --import tsx --test src/` has its reasons.
    let script = suite.detail.as_deref().and_then(plain_words);
    let own: Vec<&str> = script.unwrap_or_default().into_iter().skip(1).collect();
    let (options, files): (Vec<&str>, Vec<&str>) = match own.iter().position(|word| *word == "--test") {
        Some(at) => (own[..at].to_vec(), own[at + 1..].to_vec()),
        None => (Vec::new(), Vec::new()),
    };
    line.word("node".into());
    line.words.extend(options.into_iter().map(OsString::from));
    line.text("--test --test-reporter=spec --test-reporter-destination=stdout --test-reporter=junit");
    line.joined("--test-reporter-destination=", report.seen(REPORT));
    line.option("--test-name-pattern=", wanted.filter);
    line.option("--test-concurrency=", wanted.parallel.map(|count| count.to_string()).as_deref());
    if wanted.within.is_some() {
        line.within(suite, wanted);
    } else {
        let plain = |word: &&str| !word.starts_with("--test-reporter");
        line.words.extend(files.into_iter().filter(plain).map(OsString::from));
    }
}

/// A package's program, from the project when it is installed there.
fn program(
    workspace: &Workspace,
    directory: &Path,
    name: &str,
    env: &mut Vec<(&'static str, &'static str)>,
) -> OsString {
    env.push(("CI", "1"));
    let installed = upwards(workspace, directory, &[&format!("node_modules/.bin/{name}")]);
    installed.map_or_else(|| name.into(), PathBuf::into_os_string)
}

/// The first of `names` that is in `directory` or one above it, within the workspace.
fn upwards(workspace: &Workspace, directory: &Path, names: &[&str]) -> Option<PathBuf> {
    let above = directory.ancestors().take_while(|dir| dir.starts_with(workspace.path()));
    let mut candidates = above.flat_map(|dir| names.iter().map(|name| dir.join(name)));
    candidates.find(|path| workspace.stat(path).is_ok_and(|found| found.kind == FileKind::File))
}
