//! Which files a patch touches: unified diffs and the `*** Update File:` form.

/// Larger patches are not examined.
const MAX_PATCH: usize = 256 * 1024;
/// More files than a reviewed change has; beyond it the patch counts as unreadable.
const MAX_FILES: usize = 512;

/// What a patch touches.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Touched {
    Files(Vec<String>),
    /// It names no file.
    None,
    /// It cannot be told.
    Unreadable,
}

/// The files named in the headers of `patch`.
///
/// Header-like lines inside hunks are taken for headers too. That can only add subjects, and an added subject can
/// only make a decision stricter.
pub(crate) fn touched(patch: &str) -> Touched {
    if patch.len() > MAX_PATCH {
        return Touched::Unreadable;
    }
    let mut files: Vec<String> = Vec::new();
    for line in patch.lines() {
        let named: &[(&str, &str)] = if let Some(rest) = line.strip_prefix("*** ") {
            let marks =
                ["Update File: ", "Add File: ", "Delete File: ", "Move to: ", "Move File: ", "Rename to: "];
            match marks.iter().find_map(|mark| rest.strip_prefix(mark)) {
                Some(path) => &[(path, "")],
                // The header of a context diff: `*** a/file`, but not `*** Begin Patch` or `*** 1,2 ****`.
                None if rest.starts_with("a/") || rest.starts_with('/') => &[(rest, "a/")],
                None => &[],
            }
        } else if let Some(rest) = line.strip_prefix("--- ") {
            &[(rest, "a/")]
        } else if let Some(rest) = line.strip_prefix("+++ ") {
            &[(rest, "b/")]
        } else if let Some(rest) =
            ["rename from ", "rename to ", "copy from ", "copy to "].iter().find_map(|m| line.strip_prefix(m))
        {
            &[(rest, "")]
        } else if let Some(rest) = line.strip_prefix("diff --git ") {
            match git_header(rest) {
                Some((old, new)) => &[(old, "a/"), (new, "b/")],
                None => return Touched::Unreadable,
            }
        } else {
            &[]
        };
        for (header, prefix) in named {
            let Some(name) = file_name(header, prefix) else { return Touched::Unreadable };
            if name != "/dev/null" && !files.contains(&name) {
                if files.len() == MAX_FILES {
                    return Touched::Unreadable;
                }
                files.push(name);
            }
        }
    }
    if files.is_empty() { Touched::None } else { Touched::Files(files) }
}

/// `a/x b/x`: both halves, when the line can be cut in one way only.
fn git_header(rest: &str) -> Option<(&str, &str)> {
    let mut cuts = rest.match_indices(" b/").map(|(at, _)| (&rest[..at], &rest[at + 1..]));
    let first = cuts.next().or_else(|| rest.split_once(' '))?;
    cuts.next().is_none().then_some(first)
}

/// The name in a header: no time stamp, and without git's `prefix`. Names in C quotes are not decoded.
///
/// Only the prefix of its own side is taken off: `--- a/x` with `+++ a/x` is a diff without git's prefixes, and then
/// both readings of it become subjects.
fn file_name(header: &str, prefix: &str) -> Option<String> {
    let name = header.split('\t').next().unwrap_or_default().trim_end();
    if name.is_empty() || name.starts_with('"') {
        return None;
    }
    Some(name.strip_prefix(prefix).unwrap_or(name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(patch: &str) -> Vec<String> {
        match touched(patch) {
            Touched::Files(files) => files,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_file_of_a_unified_diff_is_found() {
        let patch = "diff --git a/x.rs b/y.rs\nrename from x.rs\nrename to y.rs\n--- a/x.rs\t2020\n+++ b/y.rs\n@@ -1 +1 @@\n-a\n+b\n--- a/gone\n+++ /dev/null\n";
        assert_eq!(files(patch), ["x.rs", "y.rs", "gone"]);
    }

    #[test]
    fn every_file_of_an_envelope_patch_is_found() {
        let patch = "*** Begin Patch\n*** Update File: a.rs\n*** Move to: b.rs\n*** Add File: c.rs\n+x\n*** Delete File: d.rs\n*** End Patch";
        assert_eq!(files(patch), ["a.rs", "b.rs", "c.rs", "d.rs"]);
    }

    #[test]
    fn what_cannot_be_read_says_so() {
        assert_eq!(touched("--- \"a/\\303\\244\"\n"), Touched::Unreadable);
        assert_eq!(touched(&"x".repeat(MAX_PATCH + 1)), Touched::Unreadable);
        assert_eq!(touched("@@ -1 +1 @@\n-a\n+b\n"), Touched::None);
    }
}
