//! `vcs.diff`, `vcs.apply` and `vcs.show`: patches. What one prints the other applies, and `fs.apply_patch` too.

use hanzo_protocol::envelope::ToolError;
use hanzo_protocol::primitives::PageCursor;
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::git::{Access, Git, PATCH, PATH_ALIASES, Paths, invalid, name, paged};
use super::history::{COMMIT_FORMAT, Commit};
use crate::contract::{Action, Answer, Call, Target};

/// Prints a patch.
pub(super) struct Diff;

/// The arguments of `vcs.diff`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DiffInput {
    /// Commit, branch or a..b
    r#ref: Option<String>,
    staged: Option<bool>,
    paths: Option<Paths>,
    /// Counts per file instead
    stat: Option<bool>,
    cwd: Option<String>,
    /// From the previous page
    #[schemars(with = "Option<String>")]
    cursor: Option<PageCursor>,
}

/// The answer of `vcs.diff`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DiffOutput {
    /// Whether there is more than this page.
    truncated: bool,
    /// What changed in each file, when `stat` was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<FileCounts>,
    /// The unified diff; empty when nothing differs.
    diff: String,
}

/// What changed in a file.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub(super) struct FileCounts {
    path: String,
    /// Absent for a binary file.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deleted: Option<u64>,
}

impl Action for Diff {
    const NAME: &'static str = "diff";
    const SUMMARY: &'static str = "unified, as apply and fs.apply_patch take it";
    const EXAMPLE: &'static str = r#"{"ref":"HEAD~1"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = PATH_ALIASES;
    const HIDDEN: &'static [&'static str] = &["cwd", "stat"];
    const QUIET: &'static [&'static str] = &["ref", "cursor"];
    type Input = DiffInput;
    type Output = DiffOutput;

    fn effect(&self, _: &DiffInput) -> Effect {
        Effect::Read
    }

    fn targets(&self, input: &DiffInput) -> Vec<Target> {
        read_targets(input.paths.as_ref())
    }

    async fn run(&self, call: &Call<'_>, input: DiffInput) -> Result<Answer<DiffOutput>, ToolError> {
        let git = Git::new(call, input.cwd.as_deref())?;
        let mut arguments: Vec<std::ffi::OsString> = vec!["diff".into()];
        arguments.extend(PATCH.map(Into::into));
        let stat = input.stat == Some(true);
        if stat {
            arguments.extend(["--numstat".into(), "-z".into()]);
        }
        if input.staged == Some(true) {
            arguments.push("--cached".into());
        }
        if let Some(revision) = &input.r#ref {
            arguments.push(name("ref", revision)?.into());
        }
        let paths = git.pathspecs(input.paths.as_ref())?;
        // Without it a ref that does not exist would be taken for a path.
        arguments.extend(if paths.is_empty() { vec!["--".into()] } else { paths });
        let bytes = git.run(Access::Read, arguments, None).await?;
        if stat {
            let output = DiffOutput { truncated: false, files: counts(&bytes), diff: String::new() };
            return Ok(Answer::new(output).by("git"));
        }
        paged(call, input.cursor.as_ref(), &bytes, |diff, truncated| DiffOutput {
            truncated,
            files: Vec::new(),
            diff,
        })
    }
}

pub(super) fn read_targets(paths: Option<&Paths>) -> Vec<Target> {
    paths.map(|Paths(paths)| paths.iter().map(Target::read).collect()).unwrap_or_default()
}

/// Reads `--numstat -z`.
fn counts(bytes: &[u8]) -> Vec<FileCounts> {
    let mut files = Vec::new();
    for record in bytes.split(|byte| *byte == 0) {
        let text = String::from_utf8_lossy(record);
        let mut words = text.trim_start_matches('\n').splitn(3, '\t');
        let (Some(added), Some(deleted), Some(path)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        files.push(FileCounts {
            path: path.to_owned(),
            added: added.parse().ok(),
            deleted: deleted.parse().ok(),
        });
    }
    files
}

/// Applies a patch.
pub(super) struct Apply;

/// The arguments of `vcs.apply`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ApplyInput {
    /// Unified diff
    patch: String,
    /// Stage it too
    index: Option<bool>,
    cwd: Option<String>,
}

/// The answer of `vcs.apply`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ApplyOutput {
    /// What changed.
    files: Vec<FileCounts>,
}

impl Action for Apply {
    const NAME: &'static str = "apply";
    const SUMMARY: &'static str = "a diff";
    const EXAMPLE: &'static str = r#"{"patch":"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n"}"#;
    const WORST: Effect = Effect::Write;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[("diff", "patch")];
    const HIDDEN: &'static [&'static str] = &["cwd", "index"];
    const QUIET: &'static [&'static str] = &["patch"];
    type Input = ApplyInput;
    type Output = ApplyOutput;

    fn effect(&self, _: &ApplyInput) -> Effect {
        Effect::Write
    }

    fn targets(&self, input: &ApplyInput) -> Vec<Target> {
        patched(&input.patch).into_iter().map(Target::write).collect()
    }

    async fn run(&self, call: &Call<'_>, input: ApplyInput) -> Result<Answer<ApplyOutput>, ToolError> {
        if input.patch.trim().is_empty() {
            return Err(invalid("`patch` is empty"));
        }
        let git = Git::new(call, input.cwd.as_deref())?.at_top().await?;
        let mut arguments = vec!["apply", "--apply", "--numstat", "-z", "--whitespace=nowarn"];
        if input.index == Some(true) {
            arguments.push("--index");
        }
        arguments.push("-");
        let mut patch = input.patch.into_bytes();
        // Models forget the last newline, and git calls such a patch corrupt.
        if !patch.ends_with(b"\n") {
            patch.push(b'\n');
        }
        let bytes = git.run(Access::Write, arguments, Some(patch)).await?;
        Ok(Answer::new(ApplyOutput { files: counts(&bytes) }).by("git"))
    }
}

/// The files a patch names, for the gate. Git has the last word on what they are, and stays in the working tree.
fn patched(patch: &str) -> Vec<String> {
    let mut paths: Vec<String> = Vec::new();
    for line in patch.lines() {
        let marked = line.strip_prefix("--- ").or_else(|| line.strip_prefix("+++ "));
        let renamed = line.strip_prefix("rename to ").or_else(|| line.strip_prefix("rename from "));
        let path = match (marked, renamed) {
            (Some(path), _) => {
                let path = path.split('\t').next().unwrap_or(path);
                path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path)
            }
            (None, Some(path)) => path,
            (None, None) => continue,
        };
        if path != "/dev/null" && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}

/// Shows a commit, or a file as it was.
pub(super) struct Show;

/// The arguments of `vcs.show`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ShowInput {
    /// Commit, branch or a..b
    r#ref: Option<String>,
    paths: Option<Paths>,
    cwd: Option<String>,
    /// From the previous page
    #[schemars(with = "Option<String>")]
    cursor: Option<PageCursor>,
}

/// The answer of `vcs.show`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct ShowOutput {
    #[serde(flatten)]
    commit: Option<Commit>,
    /// Whether there is more than this page.
    truncated: bool,
    /// What the commit changed, as a unified diff.
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    /// The file, when `ref` is `commit:path`.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl Action for Show {
    const NAME: &'static str = "show";
    const SUMMARY: &'static str = "commit, or HEAD:file";
    const EXAMPLE: &'static str = r#"{"ref":"HEAD~2:src/main.rs"}"#;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = PATH_ALIASES;
    const HIDDEN: &'static [&'static str] = &["cwd", "paths"];
    const QUIET: &'static [&'static str] = &["ref", "cursor"];
    type Input = ShowInput;
    type Output = ShowOutput;

    fn effect(&self, _: &ShowInput) -> Effect {
        Effect::Read
    }

    async fn run(&self, call: &Call<'_>, input: ShowInput) -> Result<Answer<ShowOutput>, ToolError> {
        let git = Git::new(call, input.cwd.as_deref())?;
        let revision = name("ref", input.r#ref.as_deref().unwrap_or("HEAD"))?;
        if revision.contains(':') {
            let bytes = git.run(Access::Read, ["cat-file", "blob", revision], None).await?;
            return paged(call, input.cursor.as_ref(), &bytes, |text, truncated| ShowOutput {
                commit: None,
                truncated,
                diff: None,
                text: Some(text),
            });
        }
        let mut arguments: Vec<std::ffi::OsString> = vec!["show".into(), "--no-show-signature".into()];
        arguments.extend(PATCH.map(Into::into));
        arguments.extend([COMMIT_FORMAT.into(), revision.into()]);
        let paths = git.pathspecs(input.paths.as_ref())?;
        arguments.extend(if paths.is_empty() { vec!["--".into()] } else { paths });
        let bytes = git.run(Access::Read, arguments, None).await?;
        // The format ends with a NUL; the patch follows.
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        let commit = Commit::parse(&bytes[..end]);
        let patch = bytes.get(end + 1..).unwrap_or_default();
        let patch = patch.strip_prefix(b"\n").unwrap_or(patch);
        let patch = patch.strip_prefix(b"\n").unwrap_or(patch);
        paged(call, input.cursor.as_ref(), patch, |diff, truncated| ShowOutput {
            commit,
            truncated,
            diff: Some(diff),
            text: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_a_patch_are_found() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/new file\t2020\n@@ -0,0 +1 @@\n+c\nrename from p\nrename to q\n";
        assert_eq!(patched(patch), ["x", "new file", "p", "q"]);
    }
}
