//! Puts the version git knows into the binary.

use std::process::Command;

fn main() {
    for path in ["HEAD", "index", "refs/tags"] {
        if let Some(file) = git(&["rev-parse", "--git-path", path]) {
            println!("cargo::rerun-if-changed={file}");
        }
    }
    println!("cargo::rerun-if-env-changed=HANZO_DEV_VERSION");
    // A packager who builds from an archive names the version; a checkout asks git; anything else has the package's.
    let version = std::env::var("HANZO_DEV_VERSION")
        .ok()
        .or_else(|| git(&["describe", "--tags", "--always", "--dirty"]))
        .map_or_else(|| env!("CARGO_PKG_VERSION").to_owned(), |described| full(&described));
    println!("cargo::rustc-env=HANZO_DEV_VERSION={version}");
}

/// `v0.1.0-3-gabc` says everything; a bare commit is put behind the package's version.
fn full(described: &str) -> String {
    match described.strip_prefix('v') {
        Some(tagged) if tagged.starts_with(|c: char| c.is_ascii_digit()) => tagged.to_owned(),
        _ => format!("{} ({described})", env!("CARGO_PKG_VERSION")),
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(done.stdout).ok()?.trim().to_owned();
    (done.status.success() && !text.is_empty()).then_some(text)
}
