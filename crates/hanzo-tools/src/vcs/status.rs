//! `vcs.status`.

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::git::{Access, Git};
use crate::contract::{Action, Answer, Call};

/// How many entries an answer has.
const MOST: usize = 1000;

/// Tells how the working tree is.
pub(super) struct Status;

/// The arguments of `vcs.status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StatusInput {
    cwd: Option<String>,
}

/// How a working tree is.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct StatusOutput {
    /// The branch; absent when a commit is checked out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) branch: Option<String>,
    /// The commit; absent before the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) commit: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<String>,
    /// Commits the upstream does not have.
    #[serde(skip_serializing_if = "Option::is_none")]
    ahead: Option<u32>,
    /// Commits only the upstream has.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<u32>,
    /// Whether nothing is changed, staged or untracked.
    clean: bool,
    /// What is not as committed.
    entries: Vec<Entry>,
    /// How many more entries there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<usize>,
}

/// A file that is not as committed.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
struct Entry {
    /// From the top of the working tree.
    path: String,
    /// What is staged.
    #[serde(skip_serializing_if = "Option::is_none")]
    index: Option<Change>,
    /// What is changed and not staged.
    #[serde(skip_serializing_if = "Option::is_none")]
    worktree: Option<Change>,
    /// Where it was before.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Change {
    Modified,
    TypeChanged,
    Added,
    Deleted,
    Renamed,
    Copied,
    Unmerged,
    Untracked,
}

impl Change {
    fn of(letter: u8) -> Option<Self> {
        Some(match letter {
            b'M' => Self::Modified,
            b'T' => Self::TypeChanged,
            b'A' => Self::Added,
            b'D' => Self::Deleted,
            b'R' => Self::Renamed,
            b'C' => Self::Copied,
            b'U' => Self::Unmerged,
            _ => return None,
        })
    }
}

impl Action for Status {
    const NAME: &'static str = "status";
    const SUMMARY: &'static str = "branch, changed files";
    const EXAMPLE: &'static str = "{}";
    const HIDDEN: &'static [&'static str] = &["cwd"];
    type Input = StatusInput;
    type Output = StatusOutput;

    fn effect(&self, _: &StatusInput) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, input: StatusInput) -> Result<Answer<StatusOutput>, ToolError> {
        let git = Git::new(call, input.cwd.as_deref())?;
        let arguments =
            ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=normal", "--find-renames"];
        let bytes = git.run(Access::Read, arguments, None).await?;
        Ok(Answer::new(parse(&bytes)).by("git"))
    }
}

/// Where a repository stands: the status without its files.
pub(super) async fn standing(git: &Git<'_>) -> Result<StatusOutput, ToolError> {
    let arguments =
        ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=no", "--ignore-submodules=all"];
    Ok(parse(&git.run(Access::Read, arguments, None).await?))
}

/// Reads porcelain v2 with NULs. What it does not know it leaves out: git may add kinds of lines.
fn parse(bytes: &[u8]) -> StatusOutput {
    let mut status = StatusOutput { clean: true, ..StatusOutput::default() };
    let mut left_out = 0;
    let mut records = bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty());
    while let Some(record) = records.next() {
        let text = String::from_utf8_lossy(record);
        if let Some(header) = text.strip_prefix("# ") {
            read_header(header, &mut status);
            continue;
        }
        let letters = text.as_bytes();
        let entry = match letters.first() {
            Some(b'1') => changed(&text, 9, None),
            Some(b'2') => {
                let from = records.next().map(|from| String::from_utf8_lossy(from).into_owned());
                changed(&text, 10, from)
            }
            Some(b'u') => changed(&text, 11, None).map(|entry| Entry {
                index: Some(Change::Unmerged),
                worktree: Some(Change::Unmerged),
                ..entry
            }),
            Some(b'?') => text.get(2..).map(|path| Entry {
                path: path.to_owned(),
                index: None,
                worktree: Some(Change::Untracked),
                from: None,
            }),
            _ => None,
        };
        let Some(entry) = entry else { continue };
        status.clean = false;
        if status.entries.len() < MOST {
            status.entries.push(entry);
        } else {
            left_out += 1;
        }
    }
    status.left_out = (left_out > 0).then_some(left_out);
    status
}

/// A line of `fields` fields, of which the second is the two letters and the last the path.
fn changed(text: &str, fields: usize, from: Option<String>) -> Option<Entry> {
    let mut words = text.splitn(fields, ' ');
    let letters = words.nth(1)?.as_bytes();
    let path = words.nth(fields - 3)?.to_owned();
    let (index, worktree) = (Change::of(*letters.first()?), Change::of(*letters.get(1)?));
    Some(Entry { path, index, worktree, from })
}

fn read_header(header: &str, status: &mut StatusOutput) {
    match header.split_once(' ') {
        Some(("branch.oid", oid)) if oid != "(initial)" => status.commit = Some(oid.to_owned()),
        Some(("branch.head", name)) if name != "(detached)" => status.branch = Some(name.to_owned()),
        Some(("branch.upstream", name)) => status.upstream = Some(name.to_owned()),
        Some(("branch.ab", counts)) => {
            if let Some((ahead, behind)) = counts.split_once(' ') {
                status.ahead = ahead.trim_start_matches('+').parse().ok();
                status.behind = behind.trim_start_matches('-').parse().ok();
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_status_with_everything_in_it_is_understood() {
        let text = "# branch.oid 1234\0# branch.head main\0# branch.upstream origin/main\0# branch.ab +2 -1\0\
            1 .M N... 100644 100644 100644 aa bb a file\x001 A. N... 000000 100644 100644 00 cc new\0\
            2 R. N... 100644 100644 100644 aa aa R100 to here\0from there\0\
            u UU N... 100644 100644 100644 100644 a b c both\0? untracked dir/\0! ignored\0";
        let status = parse(text.as_bytes());
        assert_eq!(status.branch.as_deref(), Some("main"));
        assert_eq!((status.ahead, status.behind, status.clean), (Some(2), Some(1), false));
        let seen: Vec<_> = status
            .entries
            .iter()
            .map(|e| (e.path.as_str(), e.index, e.worktree, e.from.as_deref()))
            .collect();
        assert_eq!(
            seen,
            [
                ("a file", None, Some(Change::Modified), None),
                ("new", Some(Change::Added), None, None),
                ("to here", Some(Change::Renamed), None, Some("from there")),
                ("both", Some(Change::Unmerged), Some(Change::Unmerged), None),
                ("untracked dir/", None, Some(Change::Untracked), None),
            ]
        );
        let fresh = parse(b"# branch.oid (initial)\0# branch.head (detached)\0");
        assert_eq!((fresh.branch, fresh.commit, fresh.clean), (None, None, true));
    }

    proptest! {
        #[test]
        fn nothing_git_could_say_is_a_panic(text in "[12u?# .MARDU0-9a-z\\x00]{0,200}") {
            let _ = parse(text.as_bytes());
        }
    }
}
