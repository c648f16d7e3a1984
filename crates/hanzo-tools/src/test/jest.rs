//! The JSON of jest, which vitest writes too.

use serde::Deserialize;

use super::outcome::{Failure, Outcome};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    #[serde(default)]
    test_results: Vec<File>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    assertion_results: Vec<Test>,
    #[serde(default)]
    start_time: f64,
    #[serde(default)]
    end_time: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Test {
    #[serde(default)]
    full_name: String,
    #[serde(default)]
    status: String,
    #[serde(default)]
    failure_messages: Vec<String>,
    location: Option<Location>,
}

#[derive(Deserialize)]
struct Location {
    line: u32,
    #[serde(default)]
    column: u32,
}

/// Reads a report.
pub(super) fn parse(bytes: &[u8]) -> Outcome {
    let mut outcome = Outcome::default();
    let report: Report = match serde_json::from_slice(bytes) {
        Ok(report) => report,
        Err(fault) => {
            outcome.notes.push(format!("the report is not what was expected: {fault}"));
            return outcome;
        }
    };
    let mut seconds = 0.0;
    for file in report.test_results {
        seconds += (file.end_time - file.start_time).max(0.0) / 1000.0;
        let mut failed = false;
        for test in file.assertion_results {
            match test.status.as_str() {
                "passed" => outcome.pass += 1,
                "failed" => {
                    failed = true;
                    let text = plain(&test.failure_messages.join("\n\n"));
                    let mut failure = Failure::new(test.full_name, without_inner_frames(&text).as_str());
                    let place = test
                        .location
                        .map_or((0, 0), |at| (at.line.saturating_sub(1), at.column.saturating_sub(1)));
                    failure.at = Some((file.name.clone(), place.0, place.1));
                    outcome.failed(failure);
                }
                _ => outcome.skip += 1,
            }
        }
        if file.status == "failed" && !failed {
            // The file itself failed: it does not load.
            let mut failure = Failure::new(&file.name, &plain(&file.message));
            failure.at = Some((file.name, 0, 0));
            outcome.failed(failure);
        }
    }
    outcome.seconds = (seconds > 0.0).then_some(seconds);
    outcome
}

fn plain(text: &str) -> String {
    crate::proc::clean(text.as_bytes())
}

/// Frames of the runner say nothing about the test.
fn without_inner_frames(text: &str) -> String {
    let inner = |line: &&str| {
        let line = line.trim_start();
        line.starts_with("at ")
            && (line.contains("node_modules")
                || line.contains("node:internal")
                || line == "at new Promise (<anonymous>)")
    };
    text.lines().filter(|line| !inner(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_and_files_that_do_not_load_are_read() {
        let report = r#"{"testResults":[
            {"name":"/w/a.test.ts","status":"failed","message":"","startTime":1000,"endTime":1500.5,"assertionResults":[
                {"fullName":"adds","status":"passed","failureMessages":[]},
                {"fullName":"g breaks","status":"failed","failureMessages":["Error: \u001b[31mno\u001b[39m\n    at /w/a.test.ts:3:64\n    at f (/w/node_modules/x.js:1:1)"]},
                {"fullName":"later","status":"pending"},{"fullName":"t","status":"todo"}]},
            {"name":"/w/b.test.ts","status":"failed","message":"Cannot find module","assertionResults":[]}]}"#;
        let outcome = parse(report.as_bytes());
        assert_eq!((outcome.pass, outcome.fail, outcome.skip), (1, 2, 2));
        assert_eq!(outcome.failures[0].text, "Error: no\n    at /w/a.test.ts:3:64");
        assert_eq!(outcome.failures[1].at, Some(("/w/b.test.ts".into(), 0, 0)));
        assert_eq!(outcome.seconds, Some(0.5005));
        assert_eq!(parse(b"{\"testResults\":").notes.len(), 1);
    }
}
