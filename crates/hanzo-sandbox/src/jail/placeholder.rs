//! Placeholders for protected paths that do not exist. They stand in the user's own tree while commands run, so they are
//! few, empty, gone afterwards, and written down first: whoever finds the record of a dead jail removes them.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use super::config::{Placeholder, Protected};
use super::orders::{Step, StepError};

/// The placeholders of a running jail. Held by the supervisor, whose view of the file system is already the jail's: a link
/// planted by a command cannot make it create anything outside.
pub(crate) struct Placeholders {
    record: File,
    standing: Vec<Standing>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Standing {
    path: PathBuf,
    /// `None` for a directory.
    content: Option<String>,
}

impl Placeholders {
    /// `record` must have been opened before the mounts went read-only.
    pub(crate) fn new(record: File) -> Self {
        Self { record, standing: Vec::new() }
    }

    /// Makes what is missing.
    pub(crate) fn ensure(&mut self, protected: &[Protected], roots: &[PathBuf]) -> Result<(), StepError> {
        for Protected { path, placeholder } in protected {
            let content = match placeholder {
                Placeholder::OnlyIfPresent => continue,
                Placeholder::Directory => None,
                Placeholder::File(content) => Some(content),
            };
            if !roots.iter().any(|root| path.starts_with(root)) || fs::symlink_metadata(path).is_ok() {
                continue;
            }
            // Another command already runs behind one.
            let held = |standing: &Standing| path.starts_with(&standing.path) && standing.path.exists();
            if self.standing.iter().any(held) {
                continue;
            }
            // Only the first missing part: an empty read-only directory there has no way to what lies beneath.
            let mut first = path.clone();
            while let Some(parent) = first.parent().filter(|parent| fs::symlink_metadata(parent).is_err()) {
                first = parent.to_path_buf();
            }
            let content = content.filter(|_| first == *path).cloned();
            self.make(&Standing { path: first.clone(), content })
                .step(|| format!("hold the place of `{}`", first.display()))?;
        }
        Ok(())
    }

    fn make(&mut self, standing: &Standing) -> io::Result<()> {
        if !self.standing.contains(standing) {
            self.record.write_all(encode(standing).as_bytes())?;
            self.standing.push(standing.clone());
        }
        match &standing.content {
            None => fs::create_dir(&standing.path),
            Some(content) => {
                let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&standing.path)?;
                file.write_all(content.as_bytes())
            }
        }
    }

    /// Removes them all; called when the last command has ended.
    pub(crate) fn clear(&mut self) {
        if self.standing.is_empty() {
            return;
        }
        self.standing.iter().rev().for_each(remove);
        self.standing.clear();
        // The record may only shrink after the tree is clean. A stale line would do no harm: see `remove`.
        let _ = self.record.set_len(0);
        let _ = io::Seek::rewind(&mut self.record);
    }
}

/// Removes what the record of a dead jail names.
pub(crate) fn sweep(record: &Path) {
    let Ok(text) = fs::read_to_string(record) else { return };
    let standing: Vec<Standing> = text.lines().filter_map(decode).collect();
    standing.iter().rev().for_each(remove);
}

/// Only what is still as we made it: an empty directory, a file with exactly our content. Somebody may have put his own
/// there in the meantime.
fn remove(standing: &Standing) {
    let Ok(metadata) = fs::symlink_metadata(&standing.path) else { return };
    let _ = match &standing.content {
        None => fs::remove_dir(&standing.path),
        Some(content)
            if metadata.is_file() && fs::read(&standing.path).is_ok_and(|now| now == content.as_bytes()) =>
        {
            fs::remove_file(&standing.path)
        }
        Some(_) => Ok(()),
    };
}

fn encode(standing: &Standing) -> String {
    let hex = |bytes: &[u8]| bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"));
    let content = standing
        .content
        .as_ref()
        .map_or_else(|| "d".to_owned(), |content| format!("f{}", hex(content.as_bytes())));
    format!("{content} {}\n", hex(standing.path.as_os_str().as_bytes()))
}

fn decode(line: &str) -> Option<Standing> {
    let unhex = |text: &str| -> Option<Vec<u8>> {
        text.as_bytes()
            .chunks(2)
            .map(|pair| {
                u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok().filter(|_| pair.len() == 2)
            })
            .collect()
    };
    let (kind, path) = line.split_once(' ')?;
    let content = match kind.split_at_checked(1)? {
        ("d", "") => None,
        ("f", content) => Some(String::from_utf8(unhex(content)?).ok()?),
        _ => return None,
    };
    Some(Standing { path: std::ffi::OsString::from_vec(unhex(path)?).into(), content })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholders(dir: &Path) -> Placeholders {
        Placeholders::new(File::create(dir.join("record")).unwrap())
    }

    #[test]
    fn missing_paths_are_held_recorded_and_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("w");
        fs::create_dir_all(root.join("there")).unwrap();
        let protected = [
            Protected::new(root.join("a/b/c")),
            Protected::file(root.join("there/x"), ".\n"),
            Protected::new(root.join("there")),
            Protected::if_present(root.join("never")),
            Protected::new("/elsewhere/y"),
        ];
        let mut held = placeholders(dir.path());
        held.ensure(&protected, std::slice::from_ref(&root)).unwrap();
        held.ensure(&protected, std::slice::from_ref(&root)).unwrap();
        assert!(root.join("a").is_dir() && !root.join("a/b").exists());
        assert_eq!(fs::read_to_string(root.join("there/x")).unwrap(), ".\n");
        assert!(!root.join("never").exists());
        held.clear();
        assert!(!root.join("a").exists() && !root.join("there/x").exists() && root.join("there").exists());
        assert_eq!(fs::metadata(dir.path().join("record")).unwrap().len(), 0);
    }

    #[test]
    fn a_sweep_takes_only_what_is_still_ours() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("w ü\n");
        fs::create_dir(&root).unwrap();
        let names = ["gone", "filled", "same", "changed"].map(|name| root.join(name));
        let mut held = placeholders(dir.path());
        held.ensure(
            &[
                Protected::new(&names[0]),
                Protected::new(&names[1]),
                Protected::file(&names[2], ""),
                Protected::file(&names[3], ""),
            ],
            &[root],
        )
        .unwrap();
        drop(held); // a crash
        fs::write(names[1].join("user"), "x").unwrap();
        fs::write(&names[3], "user").unwrap();
        sweep(&dir.path().join("record"));
        assert_eq!(names.each_ref().map(|path| path.exists()), [false, true, false, true]);
    }
}
