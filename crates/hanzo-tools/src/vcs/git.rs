//! Running git: in the sandbox, by argument list, with what a repository could run on its own switched off. The flags are the
//! second line; the sandbox is the first, because filters, `core.sshCommand`, `gpg.program` and `include.path` remain.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::PageCursor;
use hanzo_protocol::spawn::{ProcessStatus, SpawnError, Spawner};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::json;

use crate::contract::place;
use crate::contract::{Answer, Call};
use crate::host::Host;
use crate::proc::{self, JobError, Launch, LaunchInput, Phase, Source};

/// What git is told before every command.
const HARDENED: [&str; 11] = [
    "core.fsmonitor=",
    "core.hooksPath=/dev/null",
    "core.pager=cat",
    "core.quotePath=false",
    "diff.external=",
    "diff.noprefix=false",
    "diff.mnemonicPrefix=false",
    "diff.relative=false",
    "protocol.ext.allow=never",
    // A key agent is out of a sandbox's reach, so a signature could only fail.
    "commit.gpgSign=false",
    "submodule.recurse=false",
];

/// How many settings come from us.
pub(super) fn hardened() -> usize {
    HARDENED.len()
}

/// For commands that print a patch: one that `git apply`, `patch` and `fs.apply_patch` read, whatever is configured.
pub(super) const PATCH: [&str; 9] = [
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--inter-hunk-context=0",
    "--submodule=short",
    "--no-renames",
];

/// How much of git's output is read at all.
const MOST: usize = 64 << 20;
/// How much text an answer has at most: below the cap of every tool result.
const PAGE: usize = 40_000;

/// What a command does to the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Looks; takes no locks.
    Read,
    /// Changes it.
    Write,
    /// Talks to another machine.
    Network,
}

/// Git in one directory.
pub(super) struct Git<'a> {
    host: &'a Host,
    spawner: &'a Arc<dyn Spawner>,
    cwd: PathBuf,
}

/// What a command left.
#[derive(Debug)]
pub(super) struct Ran {
    pub(super) code: i32,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: String,
}

impl<'a> Git<'a> {
    /// Git in `cwd`, or in the workspace.
    pub(super) fn new(call: &'a Call<'_>, cwd: Option<&str>) -> Result<Self, ToolError> {
        let cwd = match cwd {
            Some(given) => proc::directory(call.host, given)?,
            None => call.host.workspace.path().to_owned(),
        };
        Ok(Self { host: call.host, spawner: &call.host.spawner, cwd })
    }

    /// The same outside the sandbox, which the user was asked about.
    pub(super) fn outside(mut self) -> Result<Self, ToolError> {
        self.spawner = self.host.outside.as_ref().ok_or_else(|| {
            let text = "git's configuration is closed to what runs in the sandbox, and nothing can run outside it here";
            ToolError::new(ErrorCode::Unsupported, text)
        })?;
        Ok(self)
    }

    pub(super) fn host(&self) -> &Host {
        self.host
    }

    /// Goes to the top of the working tree: patches name files from there.
    pub(super) async fn at_top(mut self) -> Result<Self, ToolError> {
        if !self.cwd.join(".git").exists() {
            let top = self.text(Access::Read, ["rev-parse", "--show-toplevel"]).await?;
            self.cwd = PathBuf::from(top.trim_end_matches('\n'));
        }
        Ok(self)
    }

    /// Runs a command and returns what it left, whatever its exit code.
    pub(super) async fn try_run(
        &self,
        access: Access,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        stdin: Option<Vec<u8>>,
    ) -> Result<Ran, ToolError> {
        let mut argv: Vec<OsString> = vec!["git".into(), "--no-pager".into()];
        for setting in HARDENED {
            argv.extend(["-c".into(), setting.into()]);
        }
        argv.extend(arguments.into_iter().map(Into::into));
        let mut launch = Launch::new(argv);
        launch.cwd = Some(self.cwd.clone());
        let mut env = vec![
            ("LC_ALL", "C"),
            ("LANGUAGE", "C"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", "true"),
            ("GIT_EDITOR", "true"),
            ("GIT_PAGER", "cat"),
        ];
        if access == Access::Read {
            env.push(("GIT_OPTIONAL_LOCKS", "0"));
        }
        launch.env = env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        launch.input = stdin.map_or(LaunchInput::Empty, LaunchInput::Bytes);
        launch.timeout = (access == Access::Network).then(|| Duration::from_mins(5));
        let job = self.host.jobs.run_unlisted(self.spawner, launch).await.map_err(|error| match &error {
            JobError::Spawn(SpawnError::Program { .. }) => {
                ToolError::new(ErrorCode::Unavailable, format!("{error}; git has to be installed"))
            }
            _ => proc::failure(&error),
        })?;
        let output = |source| {
            let cannot =
                |error| ToolError::new(ErrorCode::Io, format!("cannot read what git wrote: {error}"));
            job.output(source, MOST).map_err(cannot)
        };
        let (stdout, stderr) = (output(Source::Stdout)?, output(Source::Stderr)?);
        if job.state().stdout.total() > stdout.len() as u64 {
            let text = format!("git wrote more than {MOST} bytes; name paths to see less");
            return Err(ToolError::new(ErrorCode::TooLarge, text));
        }
        let code = match job.phase() {
            Phase::Over(over) => match over.status {
                ProcessStatus::Exited(code) => code,
                ProcessStatus::TimedOut => {
                    return Err(ToolError::new(ErrorCode::Timeout, "git took too long and was stopped"));
                }
                other => {
                    return Err(ToolError::new(ErrorCode::Error, format!("git was ended: {other:?}")));
                }
            },
            Phase::Running => unreachable!("it was waited for"),
        };
        Ok(Ran { code, stdout, stderr: String::from_utf8_lossy(&stderr).into_owned() })
    }

    /// Runs a command that has to succeed.
    pub(super) async fn run(
        &self,
        access: Access,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
        stdin: Option<Vec<u8>>,
    ) -> Result<Vec<u8>, ToolError> {
        let ran = self.try_run(access, arguments, stdin).await?;
        if ran.code == 0 { Ok(ran.stdout) } else { Err(failure(&ran)) }
    }

    /// The same for output that is text.
    pub(super) async fn text(
        &self,
        access: Access,
        arguments: impl IntoIterator<Item = impl Into<OsString>>,
    ) -> Result<String, ToolError> {
        let bytes = self.run(access, arguments, None).await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Paths as git takes them, behind the `--` that ends options and refs.
    pub(super) fn pathspecs(&self, paths: Option<&Paths>) -> Result<Vec<OsString>, ToolError> {
        let Some(Paths(paths)) = paths else { return Ok(Vec::new()) };
        let mut words = vec!["--".into()];
        for given in paths {
            words.push(self.host.workspace.path().join(place::parse(given)?).into_os_string());
        }
        Ok(words)
    }
}

/// Git's failure as a tool's, sorted by the words git has used for years in the C locale.
pub(super) fn failure(ran: &Ran) -> ToolError {
    let said =
        format!("{}{}", ran.stderr, String::from_utf8_lossy(&ran.stdout[..ran.stdout.len().min(2000)]));
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let (code, hint) = if has(&["not a git repository", "Not a git repository"]) {
        (
            ErrorCode::NotFound,
            "there is no repository here; `cwd` names another directory, `git init` through proc makes one",
        )
    } else if has(&["dubious ownership"]) {
        (
            ErrorCode::Denied,
            "the repository belongs to somebody else; the user can add it to git's safe.directory",
        )
    } else if has(&["index.lock", "Unable to create", "cannot lock ref"]) {
        (ErrorCode::Conflict, "another git works here, or one was killed and left its lock file behind")
    } else if has(&["must be run in a work tree"]) {
        (
            ErrorCode::Unsupported,
            "the repository is bare: it has a history (`log`, `show`, `branch`) and no files to work on",
        )
    } else if has(&["unmerged files", "needs merge", "resolve your current index", "during a merge"]) {
        (
            ErrorCode::Conflict,
            "a merge is under way; resolve the files that `status` calls unmerged, then commit with `all`",
        )
    } else if has(&["nothing to commit", "no changes added to commit", "nothing added to commit"]) {
        (ErrorCode::Conflict, "nothing is staged; name files in `paths`, or set `all`")
    } else if has(&["Please tell me who you are", "empty ident name", "unable to auto-detect email"]) {
        (ErrorCode::Unavailable, "git does not know the author; the user can set user.name and user.email")
    } else if has(&[
        "would be overwritten",
        "patch does not apply",
        "patch failed",
        "does not match index",
        "CONFLICT",
        "not fully merged",
        "local changes",
        "checked out at",
        "already used by worktree",
        "is dirty",
        "contains modified or untracked",
    ]) {
        (ErrorCode::Conflict, "")
    } else if has(&["already exists"]) {
        (ErrorCode::AlreadyExists, "")
    } else if has(&[
        "corrupt patch",
        "No valid patches",
        "unrecognized input",
        "invalid path",
        "is beyond a symbolic link",
        "not a valid branch name",
        "is outside repository",
    ]) {
        (ErrorCode::InvalidArguments, "")
    } else if has(&[
        "unknown revision",
        "bad revision",
        "did not match any",
        "not a valid object name",
        "invalid reference",
        "not a commit",
        "no such path",
        "No stash entries",
        "is not a valid reference",
        "not found",
        "does not have any commits",
        "is not a working tree",
        "No such remote",
        "bad object",
        "ambiguous argument",
        "does not exist",
        "No such file",
    ]) {
        (ErrorCode::NotFound, "")
    } else if has(&[
        "Could not resolve host",
        "Network is unreachable",
        "Permission denied (publickey",
        "could not read Username",
        "Connection refused",
    ]) {
        (ErrorCode::Unavailable, "the remote could not be reached from here")
    } else if has(&["Read-only file system", "Device or resource busy"]) {
        (ErrorCode::SandboxDenied, "the sandbox keeps git's configuration and hooks as they are")
    } else {
        (ErrorCode::Error, "")
    };
    let mut message = format!("git: {}", said.trim_end().chars().take(2000).collect::<String>());
    if !hint.is_empty() {
        message = format!("{message}\n\nhint: {hint}");
    }
    ToolError::new(code, message).with_details(json!({ "exit_code": ran.code }))
}

/// One path or several.
#[derive(Debug, Clone)]
pub(super) struct Paths(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for Paths {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            One(String),
            Several(Vec<String>),
        }
        Ok(Self(match Form::deserialize(deserializer)? {
            Form::One(path) => vec![path],
            Form::Several(paths) => paths,
        }))
    }
}

impl JsonSchema for Paths {
    fn schema_name() -> Cow<'static, str> {
        "Paths".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": ["array", "string"], "items": {"type": "string"}})
    }
}

/// Other names of `paths`.
pub(super) const PATH_ALIASES: &[(&str, &str)] = &[("path", "paths"), ("files", "paths"), ("file", "paths")];

pub(super) fn invalid(what: impl Into<String>) -> ToolError {
    ToolError::new(ErrorCode::InvalidArguments, what)
}

/// A revision, branch, remote or other name that git cannot take for an option.
pub(super) fn name<'t>(field: &str, text: &'t str) -> Result<&'t str, ToolError> {
    if text.is_empty() || text.starts_with('-') || text.chars().any(char::is_control) {
        return Err(invalid(format!("`{field}` is {text:?}, which names nothing in git")));
    }
    Ok(text)
}

/// What has to be there.
pub(super) fn needed<'t>(field: &str, text: Option<&'t String>) -> Result<&'t str, ToolError> {
    let text = text.ok_or_else(|| invalid(format!("`{field}` is missing")))?;
    name(field, text)
}

/// One page of a long text, by lines, and the answer that carries it.
pub(super) fn paged<T>(
    call: &Call<'_>,
    cursor: Option<&PageCursor>,
    bytes: &[u8],
    make: impl FnOnce(String, bool) -> T,
) -> Result<Answer<T>, ToolError> {
    let start: usize = call.position(cursor)?.unwrap_or(0);
    let rest = bytes
        .get(start..)
        .ok_or_else(|| invalid("`cursor` is beyond the end; the repository has changed"))?;
    let mut page = &rest[..rest.len().min(PAGE)];
    if page.len() < rest.len() {
        let line_end = page.iter().rposition(|byte| *byte == b'\n').map(|at| at + 1);
        page = &page[..line_end.unwrap_or(page.len())];
    }
    let end = start + page.len();
    let more = end < bytes.len();
    let answer = Answer::new(make(String::from_utf8_lossy(page).into_owned(), more)).by("git");
    Ok(if more { answer.paged(call.more(&end)) } else { answer })
}
