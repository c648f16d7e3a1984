//! Builds the binary we ship (static, fat LTO, stripped) and tries it where there is nothing else: an empty root
//! directory, with no library, no shell and no certificates.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::workspace::{cargo_with, output, target};

/// Where `chroot` is; the program itself finds nothing there.
const SEARCH: &str = "/usr/sbin:/usr/bin:/sbin:/bin";
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// How it is linked: without libraries; functions that are the same are kept once, and the list of addresses to adjust at
/// the start, all of which is read, is packed, both for the memory a session takes. The two names are asked for because the
/// standard library only uses them where they happen to be there; without them every program is started by copying this
/// one first, which costs more than the start.
const FLAGS: &str = concat!(
    "-C target-feature=+crt-static -C link-arg=-Wl,--icf=all -C link-arg=-Wl,-z,pack-relative-relocs",
    " -C link-arg=-Wl,-u,gnu_get_libc_version",
    " -C link-arg=-Wl,-u,posix_spawn_file_actions_addchdir_np",
);

/// Builds it; where it is.
pub fn build() -> Result<PathBuf> {
    // The target must be named: otherwise the flags would reach proc-macros, which cannot be static.
    cargo_with(
        &["build", "--package", "hanzo-dev", "--profile", "dist", "--target", TRIPLE],
        &[("RUSTFLAGS", FLAGS)],
    )?;
    Ok(target().join(TRIPLE).join("dist/hanzo-dev"))
}

/// Builds and tries it.
pub fn build_and_try() -> Result<()> {
    let binary = build()?;
    let size = std::fs::metadata(&binary).with_context(|| format!("no {}", binary.display()))?.len();
    try_in_empty_root(&binary)?;
    println!("{}: {} kB, static, works in an empty root", binary.display(), size / 1000);
    Ok(())
}

fn try_in_empty_root(binary: &Path) -> Result<()> {
    let empty = target().join("dist-root");
    let _ = std::fs::remove_dir_all(&empty);
    std::fs::create_dir_all(&empty)?;
    std::fs::copy(binary, empty.join("hanzo-dev"))?;
    for (arguments, expected) in [
        (&["--version"][..], "hanzo-dev "),
        (&["config", "path"][..], "settings.toml"),
        (&["permissions", "explain", "--tool", "proc.exec", "--args", r#"{"command":"ls"}"#][..], "ask"),
    ] {
        let is_root = output(Command::new("id").arg("-u"))?.trim() == "0";
        let mut command = Command::new(if is_root { "chroot" } else { "unshare" });
        if !is_root {
            command.args(["--map-root-user", "chroot"]);
        }
        let printed =
            output(command.arg(&empty).arg("/hanzo-dev").args(arguments).env_clear().env("PATH", SEARCH))?;
        if !printed.contains(expected) {
            bail!("`hanzo-dev {}` in an empty root printed {printed:?}", arguments.join(" "));
        }
    }
    Ok(())
}
