//! `vcs.log` and `vcs.blame`.

use std::collections::HashMap;

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::primitives::PageCursor;
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::diff::read_targets;
use super::git::{Access, Git, PATH_ALIASES, Paths, invalid, name};
use crate::contract::{Action, Answer, Call, Target};

/// One commit, ended by a NUL: hash, author, date, names, subject, body, with unit separators between.
pub(super) const COMMIT_FORMAT: &str = "--format=%H%x1f%an <%ae>%x1f%aI%x1f%D%x1f%s%x1f%b%x00";

/// A commit.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[expect(clippy::struct_field_names, reason = "the field is what a caller sees")]
pub(super) struct Commit {
    commit: String,
    author: String,
    /// When it was written.
    date: String,
    /// Branches and tags that are at it.
    #[serde(skip_serializing_if = "String::is_empty")]
    refs: String,
    subject: String,
    /// The rest of the message.
    #[serde(skip_serializing_if = "String::is_empty")]
    body: String,
}

impl Commit {
    pub(super) fn parse(record: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(record);
        let mut fields = text.trim_start_matches('\n').splitn(6, '\u{1f}').map(str::to_owned);
        Some(Self {
            commit: fields.next().filter(|hash| !hash.is_empty())?,
            author: fields.next()?,
            date: fields.next()?,
            refs: fields.next()?,
            subject: fields.next()?,
            body: fields.next()?.trim_end().to_owned(),
        })
    }
}

/// Lists commits.
pub(super) struct Log;

/// The arguments of `vcs.log`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LogInput {
    limit: Option<u32>,
    paths: Option<Paths>,
    /// Commit, branch or a..b
    r#ref: Option<String>,
    cwd: Option<String>,
    /// From the previous page
    #[schemars(with = "Option<String>")]
    cursor: Option<PageCursor>,
}

/// The answer of `vcs.log`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LogOutput {
    /// The newest first.
    commits: Vec<Commit>,
}

impl Action for Log {
    const NAME: &'static str = "log";
    const SUMMARY: &'static str = "commits";
    const EXAMPLE: &'static str = r#"{"limit":5,"paths":"src/lib.rs"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = PATH_ALIASES;
    const HIDDEN: &'static [&'static str] = &["cwd"];
    const QUIET: &'static [&'static str] = &["ref", "cursor"];
    type Input = LogInput;
    type Output = LogOutput;

    fn effect(&self, _: &LogInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &LogInput) -> Vec<Target> {
        read_targets(input.paths.as_ref())
    }

    async fn run(&self, call: &Call<'_>, input: LogInput) -> Result<Answer<LogOutput>, ToolError> {
        let git = Git::new(call, input.cwd.as_deref())?;
        let limit = usize::try_from(input.limit.unwrap_or(20)).unwrap_or(usize::MAX).clamp(1, 500);
        let skip: usize = call.position(input.cursor.as_ref())?.unwrap_or(0);
        let mut arguments: Vec<std::ffi::OsString> = vec!["log".into(), "--no-show-signature".into()];
        // One more than wanted says whether there are more.
        arguments.extend([COMMIT_FORMAT.into(), format!("--max-count={}", limit + 1).into()]);
        arguments.push(format!("--skip={skip}").into());
        arguments.push(name("ref", input.r#ref.as_deref().unwrap_or("HEAD"))?.into());
        let paths = git.pathspecs(input.paths.as_ref())?;
        arguments.extend(if paths.is_empty() { vec!["--".into()] } else { paths });
        let bytes = git.run(Access::Read, arguments, None).await?;
        let mut commits: Vec<Commit> = bytes.split(|byte| *byte == 0).filter_map(Commit::parse).collect();
        let more = commits.len() > limit;
        commits.truncate(limit);
        let answer = Answer::new(LogOutput { commits }).by("git");
        Ok(if more { answer.paged(call.more(&(skip + limit))) } else { answer })
    }
}

/// Tells who wrote each line.
pub(super) struct Blame;

/// The arguments of `vcs.blame`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BlameInput {
    paths: Paths,
    /// First line, from 0
    line: Option<u32>,
    limit: Option<u32>,
    /// Commit, branch or a..b
    r#ref: Option<String>,
    cwd: Option<String>,
}

/// The answer of `vcs.blame`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct BlameOutput {
    /// Whether the file goes on.
    truncated: bool,
    /// Lines that came with one commit, in the order of the file.
    hunks: Vec<Hunk>,
}

#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Hunk {
    /// The first line, from 0.
    line: u32,
    commit: String,
    author: String,
    /// Seconds since 1970.
    time: i64,
    subject: String,
    text: String,
}

impl Action for Blame {
    const NAME: &'static str = "blame";
    const SUMMARY: &'static str = "who wrote it";
    const EXAMPLE: &'static str = r#"{"paths":"src/main.rs","line":10,"limit":20}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = PATH_ALIASES;
    const HIDDEN: &'static [&'static str] = &["cwd", "line", "limit", "ref"];
    type Input = BlameInput;
    type Output = BlameOutput;

    fn effect(&self, _: &BlameInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &BlameInput) -> Vec<Target> {
        read_targets(Some(&input.paths))
    }

    async fn run(&self, call: &Call<'_>, input: BlameInput) -> Result<Answer<BlameOutput>, ToolError> {
        let git = Git::new(call, input.cwd.as_deref())?;
        let [_] = input.paths.0.as_slice() else { return Err(invalid("`paths` names one file here")) };
        let first = u64::from(input.line.unwrap_or(0)) + 1;
        let limit = u64::from(input.limit.unwrap_or(200).clamp(1, 2000));
        let mut arguments: Vec<std::ffi::OsString> =
            vec!["blame".into(), "--porcelain".into(), "-L".into(), format!("{first},+{}", limit + 1).into()];
        if let Some(revision) = &input.r#ref {
            arguments.push(name("ref", revision)?.into());
        }
        arguments.extend(git.pathspecs(Some(&input.paths))?);
        let bytes = git.run(Access::Read, arguments, None).await?;
        let (hunks, truncated) = hunks(&bytes, first, limit);
        Ok(Answer::new(BlameOutput { truncated, hunks }).by("git"))
    }
}

/// What git tells once about a commit.
#[derive(Debug, Clone, Default)]
struct About {
    author: String,
    time: i64,
    subject: String,
}

/// Reads `--porcelain`: a header line with the commit, what is not yet known about it, and the line after a tab.
fn hunks(bytes: &[u8], first: u64, limit: u64) -> (Vec<Hunk>, bool) {
    let text = String::from_utf8_lossy(bytes);
    let mut known = HashMap::<String, About>::new();
    let mut hunks: Vec<Hunk> = Vec::new();
    let (mut commit, mut line) = (String::new(), 0u64);
    for row in text.lines() {
        if let Some(content) = row.strip_prefix('\t') {
            if line >= first + limit {
                return (hunks, true);
            }
            let About { author, time, subject } = known.get(&commit).cloned().unwrap_or_default();
            match hunks.last_mut() {
                Some(hunk) if hunk.commit == commit => {
                    hunk.text.push_str(content);
                    hunk.text.push('\n');
                }
                _ => hunks.push(Hunk {
                    line: u32::try_from(line.saturating_sub(1)).unwrap_or(u32::MAX),
                    commit: commit.clone(),
                    author,
                    time,
                    subject,
                    text: format!("{content}\n"),
                }),
            }
            continue;
        }
        let (word, rest) = row.split_once(' ').unwrap_or((row, ""));
        match word {
            "author" => rest.clone_into(&mut known.entry(commit.clone()).or_default().author),
            "author-time" => known.entry(commit.clone()).or_default().time = rest.parse().unwrap_or(0),
            "summary" => rest.clone_into(&mut known.entry(commit.clone()).or_default().subject),
            hash if hash.len() >= 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                hash.clone_into(&mut commit);
                line = rest.split(' ').nth(1).and_then(|number| number.parse().ok()).unwrap_or(0);
            }
            _ => {}
        }
    }
    (hunks, false)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn nothing_git_could_say_is_a_panic(text in "([0-9a-f]{40} [0-9 ]{0,9}|author x|author-time [0-9]{0,3}|summary [a-z\\x1f]*|\t.*|.*)\n{0,3}") {
            let _ = hunks(text.repeat(3).as_bytes(), 1, 2);
            let _ = Commit::parse(text.as_bytes());
        }
    }
}
