//! The names of all tests, as the test binaries themselves list them.

use std::collections::BTreeSet;
use std::process::Command;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::workspace;

/// Every test of the workspace as `crate/module::test`.
pub fn all() -> Result<BTreeSet<String>> {
    let messages =
        workspace::cargo_output(&["test", "--workspace", "--no-run", "--quiet", "--message-format", "json"])?;
    let mut names = BTreeSet::new();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line).context("cargo printed something else than JSON")?;
        let Some((package, executable)) = test_binary(&message) else { continue };
        let listed = workspace::output(Command::new(executable).args(["--list", "--format", "terse"]))?;
        names.extend(parse(&listed).map(|test| format!("{package}/{test}")));
    }
    Ok(names)
}

fn test_binary(message: &Value) -> Option<(String, &str)> {
    let executable = message["executable"].as_str()?;
    let is_test = message["profile"]["test"].as_bool()?;
    // `…/crates/hanzo-sse#0.1.0` or, when the directory is not called like the package, `…/docgen#hanzo-docgen@0.1.0`.
    let id = message["package_id"].as_str()?;
    let (location, version) = id.rsplit_once('#')?;
    let package = match version.split_once('@') {
        Some((name, _)) => name,
        None => location.rsplit('/').next()?,
    };
    is_test.then(|| (package.to_owned(), executable))
}

fn parse(listed: &str) -> impl Iterator<Item = &str> {
    listed.lines().filter_map(|line| line.strip_suffix(": test"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_test_binary_is_recognised_with_its_package() {
        let message = |id: &str, test: bool| json!({"package_id": id, "executable": "/x/it-1", "profile": {"test": test}});
        let plain = message("path+file:///p/crates/hanzo-sse#0.1.0", true);
        assert_eq!(test_binary(&plain), Some(("hanzo-sse".into(), "/x/it-1")));
        let named = message("path+file:///p/xtask/docgen#hanzo-docgen@0.1.0", true);
        assert_eq!(test_binary(&named).unwrap().0, "hanzo-docgen");
        assert_eq!(test_binary(&message("path+file:///p/crates/hanzo-sse#0.1.0", false)), None);
        assert_eq!(test_binary(&json!({"reason": "build-finished"})), None);
    }

    #[test]
    fn only_tests_are_listed() {
        assert_eq!(parse("a::b: test\nc: benchmark\n").collect::<Vec<_>>(), ["a::b"]);
    }
}
