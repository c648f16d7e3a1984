//! What `cargo test` prints: libtest's own text on standard output, cargo's on standard error. Its JSON is not stable. And
//! what nextest prints beside its JUnit report.

use super::outcome::{Failure, Outcome};

/// The counts of one test program.
#[derive(Default)]
struct Program {
    pass: u64,
    fail: u64,
    skip: u64,
    is_over: bool,
}

/// What `cargo test` said so far.
pub(super) fn parse(stdout: &str, stderr: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let mut programs: Vec<Program> = Vec::new();
    let mut blocks: Vec<(String, String)> = Vec::new();
    let mut in_block = false;
    for line in stdout.lines() {
        if in_block && !is_end_of_block(line) && header(line).is_none() {
            if let Some((_, text)) = blocks.last_mut() {
                text.push_str(line);
                text.push('\n');
            }
            continue;
        }
        if let Some(name) = header(line) {
            blocks.push((name.to_owned(), String::new()));
            in_block = true;
            continue;
        }
        in_block = false;
        if is_start(line) {
            programs.push(Program::default());
        } else if let Some(program) = programs.last_mut() {
            read(line, program, &mut outcome.seconds);
        }
    }
    for program in &programs {
        outcome.pass += program.pass;
        outcome.fail += program.fail;
        outcome.skip += program.skip;
    }
    for (name, text) in blocks {
        outcome.keep(failure(&name, &text));
    }
    for (program, end) in crashes(stderr) {
        let mut crash = Failure::new(&program, &format!("the test program was ended: {end}"));
        crash.at = program.strip_suffix(".rs").map(|_| (program.clone(), 0, 0));
        outcome.failed(crash);
    }
    if programs.is_empty() {
        let errors = compile_errors(stderr);
        outcome.is_build_failure = !errors.is_empty();
        for error in errors {
            outcome.keep(error);
        }
    } else if programs.iter().any(|program| !program.is_over) {
        outcome.notes.push("a test program ended without a result".to_owned());
    }
    outcome
}

/// `running 5 tests`.
fn is_start(line: &str) -> bool {
    let number = line.strip_prefix("running ").and_then(|rest| rest.split_once(' '));
    number.is_some_and(|(count, what)| count.parse::<u64>().is_ok() && matches!(what, "test" | "tests"))
}

/// `---- name stdout ----`.
fn header(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

fn is_end_of_block(line: &str) -> bool {
    line == "failures:" || line.starts_with("test result: ")
}

fn read(line: &str, program: &mut Program, seconds: &mut Option<f64>) {
    if let Some(rest) = line.strip_prefix("test result: ") {
        let count = |what: &str| {
            let part = rest.split([';', '.']).find_map(|part| part.trim().strip_suffix(what));
            part.and_then(|number| number.trim().parse::<u64>().ok())
        };
        if let (Some(pass), Some(fail), Some(skip)) = (count(" passed"), count(" failed"), count(" ignored"))
        {
            *program = Program { pass, fail, skip, is_over: true };
        }
        let took =
            rest.rsplit_once("finished in ").and_then(|(_, time)| time.trim_end_matches('s').parse().ok());
        *seconds = match (*seconds, took) {
            (Some(a), Some(b)) => Some(a + b),
            (a, b) => a.or(b),
        };
        return;
    }
    let Some((_, verdict)) = line.strip_prefix("test ").and_then(|rest| rest.rsplit_once(" ... ")) else {
        return;
    };
    match verdict {
        "ok" => program.pass += 1,
        "FAILED" => program.fail += 1,
        _ if verdict.starts_with("ignored") => program.skip += 1,
        _ => {}
    }
}

fn failure(name: &str, text: &str) -> Failure {
    let mut failure = Failure::new(name, without_backtrace(text));
    failure.at = doctest(name);
    failure
}

/// The text up to the backtrace, which is about the standard library for the most part.
pub(super) fn without_backtrace(text: &str) -> &str {
    let end = text.find("\nstack backtrace:").or_else(|| text.find("\nnote: run with `RUST_BACKTRACE"));
    text[..end.unwrap_or(text.len())].trim_end()
}

/// `src/lib.rs - item (line 3)` is how an example in documentation is called.
fn doctest(name: &str) -> Option<(String, u32, u32)> {
    let (path, rest) = name.split_once(" - ")?;
    let line: u32 = rest.rsplit_once("(line ")?.1.split(')').next()?.parse().ok()?;
    Some((path.to_owned(), line.saturating_sub(1), 0))
}

/// Test programs that were ended by a signal or with a code of their own, by the source cargo names.
fn crashes(stderr: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut running: Vec<(&str, &str)> = Vec::new();
    for line in stderr.lines().map(str::trim) {
        if let Some((source, program)) = line.strip_prefix("Running ").and_then(|rest| rest.rsplit_once(" ("))
        {
            let source = source.strip_prefix("unittests ").unwrap_or(source);
            running.push((program.trim_end_matches(')'), source));
        }
        let Some(rest) = line.strip_prefix("process didn't exit successfully: `") else { continue };
        let Some((command, end)) = rest.rsplit_once("` (") else { continue };
        // 101 is how libtest says that tests failed.
        if end.starts_with("exit status: 101") {
            continue;
        }
        let source = running
            .iter()
            .rev()
            .find(|(program, _)| command.split(' ').next().is_some_and(|command| command.ends_with(program)));
        let name = source.map_or(command, |(_, source)| source);
        found.push((name.to_owned(), end.trim_end_matches(')').to_owned()));
    }
    found
}

/// `error…: message` with the place under it.
pub(super) fn compile_errors(stderr: &str) -> Vec<Failure> {
    let mut errors = Vec::new();
    let mut lines = stderr.lines().peekable();
    while let Some(line) = lines.next() {
        let is_error = line.starts_with("error[") || line.starts_with("error: ");
        let is_summary =
            ["error: could not compile", "error: aborting due to", "error: test failed", "error: command `"]
                .iter()
                .any(|start| line.starts_with(start));
        if !is_error || is_summary {
            continue;
        }
        let mut text = vec![line];
        let mut at = None;
        while let Some(next) = lines.next_if(|next| !next.is_empty() && text.len() < 30) {
            if at.is_none() {
                at = next.trim().strip_prefix("--> ").and_then(place);
            }
            text.push(next);
        }
        let mut error = Failure::new("build", &text.join("\n"));
        error.at = at;
        errors.push(error);
    }
    errors
}

/// `src/lib.rs:3:5`, counted from 1.
fn place(text: &str) -> Option<(String, u32, u32)> {
    let (rest, column) = text.rsplit_once(':')?;
    let (path, line) = rest.rsplit_once(':')?;
    let from_one = |number: &str| number.parse::<u32>().ok().map(|number| number.saturating_sub(1));
    Some((path.to_owned(), from_one(line)?, from_one(column)?))
}

/// The tests nextest did not run, which its report leaves out, from `Summary [ 0.3s] 6 tests run: 2 passed, 1 skipped`.
pub(super) fn nextest_skipped(stderr: &str) -> Option<u64> {
    let line = stderr.lines().rev().find(|line| line.trim_start().starts_with("Summary ["))?;
    let part = line.split([',', ':']).find_map(|part| part.trim().strip_suffix(" skipped"));
    Some(part.and_then(|number| number.trim().parse().ok()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STDOUT: &str = "\nrunning 5 tests\ntest tests::calm - should panic ... FAILED\ntest tests::good ... ok\n\
test tests::later ... ignored, not yet\ntest tests::bad ... FAILED\ntest src/lib.rs - sum (line 7) ... FAILED\n\nfailures:\n\n\
---- tests::calm stdout ----\nnote: test did not panic as expected at src/lib.rs:1:225\n\
---- tests::bad stdout ----\n\nthread 'tests::bad' (5279) panicked at src/lib.rs:1:65:\nassertion failed\n\
test result: lies ... ok\nstack backtrace:\n   0: rust\n\n---- src/lib.rs - sum (line 7) stdout ----\nboom\n\n\
failures:\n    tests::bad\n    tests::calm\n\ntest result: FAILED. 1 passed; 3 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.25s\n\n\
\nrunning 2 tests\ntest fine ... ok\n";
    const STDERR: &str = "     Running unittests src/lib.rs (target/debug/deps/x-1)\nerror: test failed, to rerun pass `--lib`\n\
     Running tests/it.rs (target/debug/deps/it-2)\nerror: test failed, to rerun pass `--test it`\n\nCaused by:\n  \
process didn't exit successfully: `/w/target/debug/deps/it-2 --flag` (signal: 6, SIGABRT: process abort signal)\n";

    #[test]
    fn counts_failures_and_a_crash_are_read() {
        let outcome = parse(STDOUT, STDERR);
        assert_eq!((outcome.pass, outcome.fail, outcome.skip), (2, 4, 1));
        assert_eq!(outcome.seconds, Some(0.25));
        let seen: Vec<(&str, &str)> =
            outcome.failures.iter().map(|failure| (failure.name.as_str(), failure.text.as_str())).collect();
        assert_eq!(seen[0], ("tests::calm", "note: test did not panic as expected at src/lib.rs:1:225"));
        assert!(seen[1].1.starts_with("thread 'tests::bad'") && !seen[1].1.contains("backtrace"), "{seen:?}");
        assert_eq!(outcome.failures[2].at, Some(("src/lib.rs".into(), 6, 0)));
        assert_eq!(
            seen[3],
            ("tests/it.rs", "the test program was ended: signal: 6, SIGABRT: process abort signal")
        );
        assert_eq!(outcome.notes.len(), 1);
    }

    #[test]
    fn errors_of_the_compiler_are_failures_with_their_place() {
        let stderr = "   Compiling x v0.1.0\nerror[E0425]: cannot find value `y` in this scope\n --> src/lib.rs:3:13\n  |\n3 |     y\n  |     ^\n\n\
error: could not compile `x` (lib test) due to 1 previous error\n";
        let outcome = parse("", stderr);
        assert!(outcome.is_build_failure);
        assert_eq!(outcome.failures.len(), 1);
        assert_eq!(outcome.failures[0].at, Some(("src/lib.rs".into(), 2, 12)));
    }

    #[test]
    fn what_nextest_left_out_is_in_its_summary() {
        let summary = "  Summary [   0.332s] 6 tests run: 2 passed, 4 failed, 1 skipped\n  FAIL x\n";
        assert_eq!(nextest_skipped(summary), Some(1));
        assert_eq!(nextest_skipped("Summary [ 1s] 1 test run: 1 passed"), Some(0));
        assert_eq!(nextest_skipped("error: no tests"), None);
    }

    proptest! {
        #[test]
        fn nothing_a_test_prints_is_a_panic(
            lines in prop::collection::vec("(running [0-9]+ tests?|test [a-z: ]* \\.\\.\\. (ok|FAILED|x)|---- .{0,5} stdout ----|failures:|test result: .{0,40}|.{0,20})", 0..40),
            errors in prop::collection::vec("( +Running .{0,10} \\(.{0,8}\\)|process didn't exit successfully: `.{0,9}` \\(.{0,9}|error.{0,10}|--> [a-z:0-9]{0,9})", 0..20),
        ) {
            let _ = parse(&lines.join("\n"), &errors.join("\n"));
        }
    }
}
