//! `docs/requirements.md`: every requirement with its status and, for those done, the tests that prove it. A row may
//! not claim a test that does not exist.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context as _, Result, bail};

use crate::{tests_list, workspace};

const COUNT: u32 = 359;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Status {
    Done,
    Partial,
    Open,
}

#[derive(Debug)]
struct Row {
    id: String,
    section: String,
    status: Status,
    tests: Vec<String>,
}

/// Prints the score; fails when the table is malformed or names a test that does not exist.
pub fn check() -> Result<()> {
    let path = workspace::root().join("docs/requirements.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let rows = parse(&text)?;
    let faults = faults(&rows, &tests_list::all()?);
    print_score(&rows);
    if !faults.is_empty() {
        bail!("docs/requirements.md is not true:\n  {}", faults.join("\n  "));
    }
    Ok(())
}

fn parse(text: &str) -> Result<Vec<Row>> {
    let mut section = String::new();
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            title.clone_into(&mut section);
        }
        let is_row =
            line.strip_prefix("| R").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if !is_row {
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let [id, status, _, proof] = cells.as_slice() else {
            bail!("line {}: a row is `| id | status | requirement | proof |`", number + 1);
        };
        let status = match *status {
            "done" => Status::Done,
            "partial" => Status::Partial,
            "open" => Status::Open,
            other => bail!("line {}: `{other}` is not a status (done, partial, open)", number + 1),
        };
        rows.push(Row { id: (*id).to_owned(), section: section.clone(), status, tests: tests_in(proof) });
    }
    Ok(rows)
}

/// The tests a proof names: what stands in backticks and begins with one of our crates and a slash.
fn tests_in(proof: &str) -> Vec<String> {
    let is_test = |text: &&str| {
        let ours = |name: &str| name.starts_with("hanzo-") || name == "xtask";
        text.split_once('/').is_some_and(|(name, _)| ours(name))
    };
    proof.split('`').skip(1).step_by(2).filter(is_test).map(str::to_owned).collect()
}

fn faults(rows: &[Row], tests: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen = BTreeMap::new();
    for row in rows {
        *seen.entry(row.id.as_str()).or_insert(0) += 1;
        if row.status == Status::Done && row.tests.is_empty() {
            faults.push(format!("{} is done but names no test", row.id));
        }
        for test in row.tests.iter().filter(|test| !tests.contains(*test)) {
            faults.push(format!("{} names `{test}`, which does not exist", row.id));
        }
    }
    for number in 1..=COUNT {
        let id = format!("R{number:03}");
        match seen.get(id.as_str()) {
            Some(1) => {}
            Some(times) => faults.push(format!("{id} stands {times} times")),
            None => faults.push(format!("{id} is missing")),
        }
    }
    faults
}

fn print_score(rows: &[Row]) {
    let mut sections: Vec<&str> = Vec::new();
    for row in rows {
        if !sections.contains(&row.section.as_str()) {
            sections.push(&row.section);
        }
    }
    let count = |section: Option<&str>, status| {
        let here = rows.iter().filter(|row| section.is_none_or(|section| row.section == section));
        here.filter(|row| row.status == status).count()
    };
    println!("{:<46} {:>5} {:>8} {:>5}", "section", "done", "partial", "open");
    let lines = sections.iter().map(|section| (*section, Some(*section))).chain([("total", None)]);
    for (title, section) in lines {
        let [done, partial, open] =
            [Status::Done, Status::Partial, Status::Open].map(|status| count(section, status));
        println!("{title:<46} {done:>5} {partial:>8} {open:>5}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
## 1. Providers
| # | status | requirement | proof |
|---|---|---|---|
| R001 | done | a `thing` | `hanzo-sse/vectors::all` and `hanzo-sse/other::one` |
| R002 | open | another |  |
## 2. Tools
| R003 | partial | third | no `kill/now` yet: `hanzo-sse/gone::test` |
";

    #[test]
    fn rows_are_read_with_section_status_and_tests() {
        let rows = parse(TABLE).unwrap();
        assert_eq!(rows.len(), 3);
        assert_eq!((rows[0].id.as_str(), rows[0].section.as_str()), ("R001", "1. Providers"));
        assert_eq!(rows[0].tests, ["hanzo-sse/vectors::all", "hanzo-sse/other::one"]);
        assert_eq!(
            rows.iter().map(|row| row.status).collect::<Vec<_>>(),
            [Status::Done, Status::Open, Status::Partial]
        );
    }

    #[test]
    fn a_named_test_must_exist_and_done_needs_one() {
        let known = BTreeSet::from(["hanzo-sse/vectors::all".to_owned()]);
        let found = faults(&parse(TABLE).unwrap(), &known);
        assert!(found.contains(&"R001 names `hanzo-sse/other::one`, which does not exist".to_owned()));
        assert!(found.contains(&"R003 names `hanzo-sse/gone::test`, which does not exist".to_owned()));
        let unproven = faults(&parse("| R001 | done | x | trust me |").unwrap(), &known);
        assert!(unproven.contains(&"R001 is done but names no test".to_owned()));
    }

    #[test]
    fn every_requirement_stands_exactly_once() {
        let found =
            faults(&parse("| R001 | open | x |  |\n| R001 | open | y |  |").unwrap(), &BTreeSet::new());
        assert!(found.contains(&"R001 stands 2 times".to_owned()));
        assert!(found.contains(&"R359 is missing".to_owned()));
    }

    #[test]
    fn an_unknown_status_is_an_error_with_its_line() {
        let error = parse("\n| R001 | finished | x | y |").unwrap_err().to_string();
        assert!(error.starts_with("line 2: `finished`"), "{error}");
    }
}
