//! Tests that cannot run here. They end without having proved anything, and nobody is to take them for proof: each says so on
//! standard error, past what the harness holds back, and in the file `cargo xtask test` gathers them from.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

/// The environment variable that names the file.
pub const FILE_VARIABLE: &str = "HANZO_NOT_RUN";

/// Says that the test that calls this, or a part of it, is not run, because it needs `what`: `a model server (…)`.
pub fn not_run(what: &str) {
    let thread = std::thread::current();
    // The harness calls the thread of a test by its name, unless it was told to use one thread for all.
    let name = thread.name().filter(|name| *name != "main").unwrap_or("a test");
    let line = line(name, what);
    // Not by `eprintln!`, which the harness shows for tests that fail only. Nobody is left to tell when it is closed.
    let _ = std::io::stderr().write_all(line.as_bytes());
    if let Some(file) = std::env::var_os(FILE_VARIABLE) {
        write(file.as_ref(), &line);
    }
}

/// The line, which is also what a reader of the output looks for.
fn line(name: &str, what: &str) -> String {
    format!("not run: {name}: needs {}\n", what.lines().next().unwrap_or_default())
}

fn write(file: &Path, line: &str) {
    // One small write to the end of the file, which other test processes append to at the same time.
    let opened = OpenOptions::new().append(true).create(true).open(file);
    opened.and_then(|mut file| file.write_all(line.as_bytes())).expect("the list of tests that were not run");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_names_the_test_and_what_it_needs() {
        assert_eq!(line("crash::a", "`unshare`\nand more"), "not run: crash::a: needs `unshare`\n");
        let file = std::env::temp_dir().join(format!("hanzo-not-run-{}", std::process::id()));
        write(&file, &line("a", "x"));
        write(&file, &line("b", "y"));
        let written = std::fs::read_to_string(&file);
        let _ = std::fs::remove_file(&file);
        assert_eq!(written.expect("it was written"), "not run: a: needs x\nnot run: b: needs y\n");
        assert_eq!(
            std::thread::current().name(),
            Some("not_run::tests::the_line_names_the_test_and_what_it_needs")
        );
    }
}
