//! The tests that ended without having proved anything, because something they need is not there. The harness counts them as
//! passed; they say themselves that they were not run (`hanzo_testkit::not_run`), and here it is said to whoever ran them.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Result;

use crate::workspace::{cargo_with, target};

/// The variable `hanzo_testkit::not_run` looks for.
const VARIABLE: &str = "HANZO_NOT_RUN";

/// Runs cargo with `arguments` and returns what was not run beside the outcome.
pub fn gather(arguments: &[&str], environment: &[(&str, &str)]) -> (Result<()>, Vec<String>) {
    let file = target().join("not-run.txt");
    // What an earlier run left out is not what this one does.
    let _ = fs::remove_file(&file);
    let name = file.to_string_lossy().into_owned();
    let mut environment = environment.to_vec();
    environment.push((VARIABLE, &name));
    let outcome = cargo_with(arguments, &environment);
    (outcome, lines(&fs::read_to_string(&file).unwrap_or_default()))
}

/// Each line once, in order; a test may say the same thing in each of its rounds.
fn lines(text: &str) -> Vec<String> {
    let lines: BTreeSet<&str> = text.lines().filter(|line| line.starts_with("not run: ")).collect();
    lines.into_iter().map(ToOwned::to_owned).collect()
}

/// Says what was not run.
pub fn print(left_out: &[String]) {
    println!();
    match left_out {
        [] => println!("every test was run"),
        [_] => println!("1 test counts as passed and was not run, or not all of it:"),
        all => println!("{} tests count as passed and were not run, or not all of them:", all.len()),
    }
    for line in left_out {
        println!("  {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_listed_once_and_noise_is_not() {
        let text = "not run: b: needs y\nnoise\nnot run: a: needs x\nnot run: b: needs y\n";
        assert_eq!(lines(text), ["not run: a: needs x", "not run: b: needs y"]);
    }
}
