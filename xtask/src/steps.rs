//! Runs the steps of a check one after the other, goes on after a failure so that one run shows all of them, and says
//! where the time went.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The steps so far.
#[derive(Default)]
pub struct Steps {
    done: Vec<Step>,
}

struct Step {
    name: &'static str,
    took: Duration,
    failed: bool,
}

impl Steps {
    /// Runs one step and keeps its outcome.
    pub fn run(&mut self, name: &'static str, work: impl FnOnce() -> Result<()>) {
        println!("\n==> {name}");
        let start = Instant::now();
        let outcome = work();
        if let Err(error) = &outcome {
            eprintln!("{name} failed: {error:#}");
        }
        self.done.push(Step { name, took: start.elapsed(), failed: outcome.is_err() });
    }

    /// Prints the table and fails when a step did.
    pub fn finish(self) -> Result<()> {
        let total: Duration = self.done.iter().map(|step| step.took).sum();
        println!("\n{:<28} {:>9}", "step", "seconds");
        for step in &self.done {
            let mark = if step.failed { "  FAILED" } else { "" };
            println!("{:<28} {:>9.1}{mark}", step.name, step.took.as_secs_f64());
        }
        println!("{:<28} {:>9.1}", "total", total.as_secs_f64());
        let failed: Vec<&str> = self.done.iter().filter(|step| step.failed).map(|step| step.name).collect();
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_fails_the_whole_but_does_not_stop_it() {
        let mut steps = Steps::default();
        let mut reached = false;
        steps.run("first", || bail!("broken"));
        steps.run("second", || {
            reached = true;
            Ok(())
        });
        assert!(reached);
        assert_eq!(steps.finish().unwrap_err().to_string(), "failed: first");
    }
}
