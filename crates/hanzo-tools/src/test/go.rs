//! `go test -json`: a line of JSON for everything that happens.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::outcome::{Failure, Outcome};

/// How much a test's output is kept of.
const MAX_OUTPUT: usize = 16 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Happened<'a> {
    #[serde(borrow)]
    action: std::borrow::Cow<'a, str>,
    #[serde(default)]
    package: String,
    #[serde(default)]
    test: String,
    #[serde(default)]
    output: String,
    elapsed: Option<f64>,
}

#[derive(Default)]
struct Test {
    verdict: Option<Verdict>,
    output: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Fail,
    Skip,
}

/// What go said so far. `module` is the path of the module, which packages are below.
pub(super) fn parse(stdout: &str, stderr: &str, module: Option<&str>) -> Outcome {
    let mut tests: BTreeMap<(String, String), Test> = BTreeMap::new();
    let mut outcome = Outcome::default();
    let mut seconds = 0.0;
    let mut other = String::new();
    let mut unbuilt = Vec::new();
    for line in stdout.lines() {
        let Ok(happened) = serde_json::from_str::<Happened<'_>>(line) else {
            // Before 1.24 go says this outside its events.
            if let Some((package, why)) = line.strip_prefix("FAIL\t").and_then(|rest| rest.split_once(" ["))
                && matches!(why, "build failed]" | "setup failed]")
            {
                unbuilt.push(package.to_owned());
                continue;
            }
            if !line.is_empty() && other.len() < MAX_OUTPUT {
                other.push_str(line);
                other.push('\n');
            }
            continue;
        };
        let is_package = happened.test.is_empty();
        let test = tests.entry((happened.package, happened.test)).or_default();
        match happened.action.as_ref() {
            "pass" => test.verdict = Some(Verdict::Pass),
            "fail" | "build-fail" => test.verdict = Some(Verdict::Fail),
            "skip" => test.verdict = Some(Verdict::Skip),
            "output" | "build-output" if test.output.len() < MAX_OUTPUT => {
                test.output.push_str(&happened.output);
            }
            _ => {}
        }
        if is_package {
            seconds += happened.elapsed.unwrap_or(0.0);
        }
    }
    other.push_str(stderr);
    for package in unbuilt {
        tests.entry((package, String::new())).or_default().verdict = Some(Verdict::Fail);
    }
    let names: Vec<(String, String)> = tests.keys().cloned().collect();
    let has_failed_below = |package: &str, prefix: &str| {
        tests.iter().any(|((of, name), test)| {
            of == package
                && test.verdict == Some(Verdict::Fail)
                && name.starts_with(prefix)
                && !name.is_empty()
        })
    };
    for ((package, name), test) in &tests {
        let below = format!("{name}/");
        let directory = module.and_then(|module| package.strip_prefix(module));
        let directory = directory.map(|rest| rest.trim_start_matches('/').to_owned());
        if name.is_empty() {
            // A package fails without a test of it when it does not build or its program dies.
            if test.verdict == Some(Verdict::Fail) && !has_failed_below(package, "") {
                let died = names.iter().any(|(of, name)| of == package && !name.is_empty());
                let text = if died {
                    test.output.clone()
                } else {
                    format!("{}{}", test.output, about(&other, package))
                };
                outcome.is_build_failure |= !died;
                outcome.failed(Failure { directory, ..Failure::new(package, text.trim()) });
            }
            continue;
        }
        if names.iter().any(|(of, other)| of == package && other.starts_with(&below)) {
            continue; // Its parts are counted.
        }
        match test.verdict {
            Some(Verdict::Pass) => outcome.pass += 1,
            Some(Verdict::Skip) => outcome.skip += 1,
            Some(Verdict::Fail) => {
                let text = said(&test.output);
                outcome.failed(Failure { directory, ..Failure::new(format!("{package}.{name}"), &text) });
            }
            None => {}
        }
    }
    if tests.is_empty() && !other.trim().is_empty() {
        outcome.is_build_failure = true;
        outcome.keep(Failure::new("build", other.trim()));
    }
    outcome.seconds = (seconds > 0.0).then_some(seconds);
    outcome
}

/// What the compiler says about `package`: it heads that with `# package`.
fn about(said: &str, package: &str) -> String {
    let heading = |line: &str| {
        let named = line.strip_prefix("# ")?;
        Some(
            named == package
                || named.strip_prefix(package).is_some_and(|rest| rest.starts_with([' ', '_', '.'])),
        )
    };
    let mut is_ours = true;
    let mut text = String::new();
    for line in said.lines() {
        is_ours = heading(line).unwrap_or(is_ours);
        if is_ours {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

/// What the test wrote, without go's own marks.
fn said(output: &str) -> String {
    let marks = ["=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- FAIL"];
    let own = |line: &&str| !marks.iter().any(|mark| line.trim_start().starts_with(mark));
    output.lines().filter(own).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn leaves_are_counted_and_a_package_that_does_not_build_is_a_failure() {
        let stdout = r#"{"Action":"run","Package":"x/calc","Test":"TestA"}
{"Action":"run","Package":"x/calc","Test":"TestA/one"}
{"Action":"output","Package":"x/calc","Test":"TestA/one","Output":"    calc_test.go:9: off by one\n"}
{"Action":"output","Package":"x/calc","Test":"TestA/one","Output":"    --- FAIL: TestA/one (0.00s)\n"}
{"Action":"fail","Package":"x/calc","Test":"TestA/one","Elapsed":0}
{"Action":"pass","Package":"x/calc","Test":"TestA/two"}
{"Action":"fail","Package":"x/calc","Test":"TestA"}
{"Action":"skip","Package":"x/calc","Test":"TestB"}
{"Action":"fail","Package":"x/calc","Elapsed":0.5}
FAIL	x/broken [build failed]
{"Action":"output","Package":"x/broken","Output":"FAIL\tx/broken [build failed]\n"}
{"Action":"fail","Package":"x/broken","Elapsed":0}
"#;
        let outcome = parse(stdout, "# x/broken\nbroken/b_test.go:3:2: undefined: y\n", Some("x"));
        assert_eq!((outcome.pass, outcome.fail, outcome.skip), (1, 2, 1));
        assert_eq!(outcome.failures[1].name, "x/calc.TestA/one");
        assert_eq!(outcome.failures[1].text, "    calc_test.go:9: off by one");
        assert_eq!(outcome.failures[1].directory.as_deref(), Some("calc"));
        assert!(outcome.failures[0].text.contains("undefined: y"), "{:?}", outcome.failures);
        assert_eq!(outcome.seconds, Some(0.5));
        let older = parse(
            "FAIL\tx/b [build failed]\n",
            "# x/a\na/a.go:1:1: no\n# x/b [x/b.test]\nb/b.go:2:1: never\n",
            Some("x"),
        );
        assert_eq!((older.fail, older.is_build_failure), (1, true));
        assert_eq!(older.failures[0].text, "# x/b [x/b.test]\nb/b.go:2:1: never");
    }

    proptest! {
        #[test]
        fn no_line_is_a_panic(lines in prop::collection::vec("(\\{\"Action\":\"(fail|pass|output)\",\"Package\":\"[a/]{0,3}\",\"Test\":\"[A/]{0,4}\"\\}|.{0,30})", 0..30)) {
            let _ = parse(&lines.join("\n"), "", Some("a"));
        }
    }
}
