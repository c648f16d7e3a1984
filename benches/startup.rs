//! How long `hanzo-dev --version` takes beside `/bin/true`. The limit is twice `/bin/true` plus 10 ms.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark's product is what it prints")]

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use hanzo_benches::{Candidate, compare, print_table};

fn main() -> ExitCode {
    let binary = target().join("release/hanzo-dev");
    if !binary.exists() {
        eprintln!(
            "error: there is no {}\n\nhint: run `cargo xtask bench startup`, which builds it",
            binary.display()
        );
        return ExitCode::FAILURE;
    }
    let work = std::env::temp_dir();
    let start = |program: &Path, arguments: &[&str]| {
        let mut command = Command::new(program);
        command.args(arguments).current_dir(&work).stdout(Stdio::null()).stderr(Stdio::null());
        // A program that cannot be started would look very fast.
        let status = command.status().unwrap_or_else(|error| panic!("{}: {error}", program.display()));
        assert!(status.success(), "{} ended with {status}", program.display());
        1
    };
    let rows = compare(
        200,
        &mut [
            Candidate::new("`/bin/true`", || start(Path::new("/bin/true"), &[])),
            Candidate::new("`hanzo-dev --version`", || start(&binary, &["--version"])),
            Candidate::new("`hanzo-dev config show`", || start(&binary, &["config", "show"])),
            Candidate::new("`python3 -c pass`", || start(Path::new("python3"), &["-c", "pass"])),
        ],
    );
    print_table("Start-up, fork and exec included", None, &rows);
    let limit = rows[0].median * 2 + Duration::from_millis(10);
    println!(
        "\n`--version` takes {:.2} of its limit ({limit:?})",
        rows[1].median.as_secs_f64() / limit.as_secs_f64()
    );
    if rows[1].median > limit { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn target() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    std::env::var_os("CARGO_TARGET_DIR").map_or(own, PathBuf::from)
}
