//! The Seatbelt profile for commands on macOS, as text for `sandbox-exec -p`.
//!
//! Pure: it can be written and tested anywhere. In the profile language a later rule wins over an earlier one, so
//! the order is: everything allowed, writes denied, writable roots allowed, protected and unreadable paths denied.
//! Seatbelt compares *real* paths, where `/tmp`, `/var` and `/etc` are links into `/private`.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
};

use crate::{
    config::{Network, SandboxConfig},
    protected::{self, Protected, ProtectedKind},
};

/// A profile could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Leaving the path out would silently change what is allowed, so there is no profile at all.
    #[error("cannot name `{}` in a sandbox profile: {reason}", path.display())]
    Unrepresentable {
        /// The path.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
}

/// Writes the profile for commands run in `workspace`. `tmp` is the private temporary directory, writable too.
pub fn seatbelt_profile(
    config: &SandboxConfig,
    workspace: &Path,
    tmp: Option<&Path>,
) -> Result<String, ProfileError> {
    let mut text = String::from(HEAD);
    text.push_str("\n; Writable roots.\n");
    let roots = protected::writable_roots(config, workspace);
    for root in roots.iter().map(PathBuf::as_path).chain(tmp) {
        rule(&mut text, "allow file-write*", "subpath", &string(&real(root))?);
    }
    text.push_str("\n; Protected inside them, also while missing and in any spelling of the letters.\n");
    for protected in protected::protected_under(config, workspace) {
        protect(&mut text, &protected, &roots)?;
    }
    text.push_str("\n; Unreadable.\n");
    for path in &config.unreadable {
        let path = real(&workspace.join(path));
        rule(&mut text, "deny file-read*", "subpath", &string(&path)?);
    }
    match config.network {
        Network::On => {}
        Network::Off => {
            text.push_str(NETWORK_OFF);
            for root in roots.iter().map(PathBuf::as_path).chain(tmp) {
                rule(&mut text, "allow network-bind network-outbound", "subpath", &string(&real(root))?);
            }
        }
    }
    Ok(text)
}

const HEAD: &str = "(version 1)
(allow default)
; Ways of having somebody outside the sandbox do the work.
(deny appleevent-send)
(deny lsopen)
(deny job-creation)
(deny file-write*)
(allow file-write-data file-ioctl
    (literal \"/dev/null\")
    (literal \"/dev/zero\")
    (literal \"/dev/tty\")
    (literal \"/dev/ptmx\")
    (literal \"/dev/dtracehelper\")
    (regex \"^/dev/ttys[0-9]+$\"))
";

const NETWORK_OFF: &str = "
; Loopback only.
(deny network*)
(allow network-bind network-inbound (local ip \"localhost:*\"))
(allow network-outbound (remote ip \"localhost:*\"))
";

fn protect(text: &mut String, protected: &Protected, roots: &[PathBuf]) -> Result<(), ProfileError> {
    let path = real(&protected.path);
    let filter = match protected.kind {
        ProtectedKind::File => "literal",
        ProtectedKind::Directory => "subpath",
    };
    rule(text, "deny file-write*", filter, &string(&path)?);
    // The default file system ignores case: a missing `.git/hooks` can be created as `.git/Hooks`.
    rule(text, "deny file-write*", "regex", &string_of(&any_case(&path, protected.kind)?));
    // Moving a parent away, or a prepared one here, would get round the rules above.
    let Some(root) = roots.iter().map(|root| real(root)).find(|root| path.starts_with(root)) else {
        return Ok(());
    };
    for parent in path.ancestors().skip(1).take_while(|parent| *parent != root && parent.starts_with(&root)) {
        let parent = string(parent)?;
        let line = format!("(deny file-write-create file-write-unlink (literal {parent}))\n");
        if !text.contains(&line) {
            text.push_str(&line);
        }
    }
    Ok(())
}

fn rule(text: &mut String, what: &str, filter: &str, quoted: &str) {
    writeln!(text, "({what} ({filter} {quoted}))").expect("writing to a string cannot fail");
}

/// The form Seatbelt compares: `/tmp/x` is really `/private/tmp/x`.
fn real(path: &Path) -> PathBuf {
    for link in ["/tmp", "/var", "/etc"] {
        if path.starts_with(link) {
            return Path::new("/private").join(path.strip_prefix("/").unwrap_or(path));
        }
    }
    path.to_owned()
}

fn text_of(path: &Path) -> Result<&str, ProfileError> {
    let unrepresentable = |reason| ProfileError::Unrepresentable { path: path.to_owned(), reason };
    let text = path.to_str().ok_or_else(|| unrepresentable("it is not UTF-8"))?;
    if !text.starts_with('/') {
        return Err(unrepresentable("it is not absolute"));
    }
    if text.split('/').any(|part| part == "..") {
        return Err(unrepresentable("it contains `..`"));
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(unrepresentable("it contains a control character"));
    }
    Ok(text)
}

/// A path as a quoted string of the profile language.
fn string(path: &Path) -> Result<String, ProfileError> {
    text_of(path).map(string_of)
}

fn string_of(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}

/// A regular expression for the path with its ASCII letters in either case.
fn any_case(path: &Path, kind: ProtectedKind) -> Result<String, ProfileError> {
    let mut pattern = String::from("^");
    for c in text_of(path)?.chars() {
        if c.is_ascii_alphabetic() {
            let _ = write!(pattern, "[{}{}]", c.to_ascii_uppercase(), c.to_ascii_lowercase());
        } else if c.is_ascii_punctuation() && !matches!(c, '/' | '-' | '_') {
            pattern.push('\\');
            pattern.push(c);
        } else {
            pattern.push(c);
        }
    }
    pattern.push_str(match kind {
        ProtectedKind::File => "$",
        ProtectedKind::Directory => "(/|$)",
    });
    Ok(pattern)
}
