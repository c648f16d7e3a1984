//! Decisions of `hanzo-permissions` against their limits: 50 µs for an ordinary call, 5 ms for any call at all.
//!
//! `cargo bench -p hanzo-benches --bench permissions`; exits with an error when a limit is missed.

use std::process::ExitCode;
use std::time::Duration;

use hanzo_benches::{Candidate, compare};
use hanzo_permissions::{Call, Decision, Policy, Rule};
use serde_json::{Value, json};

const ORDINARY: Duration = Duration::from_micros(50);
const ANY: Duration = Duration::from_millis(5);

fn rules(texts: impl IntoIterator<Item = String>) -> Vec<Rule> {
    texts.into_iter().map(|text| Rule::parse(&text).expect("a rule")).collect()
}

/// A policy of `count` rules, spread over the lists as settings files are.
fn policy(count: usize) -> Policy {
    let programs = ["go", "npm run", "cargo", "docker", "kubectl", "terraform", "pip", "make", "gh", "helm"];
    let allow = (0..count / 2).map(|i| format!("Bash({} task{i}:*)", programs[i % programs.len()]));
    let deny = (0..count / 4).map(|i| format!("Bash({} -rf /srv/{i}*)", ["rm", "git push", "curl"][i % 3]));
    let ask = (0..count / 4).map(|i| format!("Edit(config/{i}/**)"));
    let own = ["Bash(ls:*)", "Bash(cargo:*)", "Bash(git:*)"].map(str::to_owned);
    Policy { mode: Decision::Ask, allow: rules(allow.chain(own)), ask: rules(ask), deny: rules(deny) }
}

fn command(text: impl Into<String>) -> Value {
    json!({ "command": text.into() })
}

fn repeat_to(unit: &str, size: usize) -> String {
    unit.repeat(size / unit.len() + 1)[..size].to_owned()
}

fn patch(files: usize) -> String {
    let file = |i| format!("--- a/f{i}\n+++ b/f{i}\n{}", "+x\n".repeat(150));
    (0..files).map(file).collect::<Vec<_>>().concat()
}

#[expect(clippy::print_stdout, reason = "a benchmark's product is what it prints")]
fn table(title: &str, limit: Duration, rounds: usize, cases: &[(String, Policy, &str, Value)]) -> bool {
    let mut candidates: Vec<Candidate<'_>> = cases
        .iter()
        .map(|(label, policy, tool, args)| {
            Candidate::new(label.clone(), move || policy.decide(&Call::new(tool, args)) as u64)
        })
        .collect();
    println!(
        "\n### {title} (limit {limit:?})\n\n| call | median | share of the limit |\n| --- | --- | --- |"
    );
    let mut met = true;
    for row in compare(rounds, &mut candidates) {
        let share = row.median.as_secs_f64() / limit.as_secs_f64();
        met &= share < 1.0;
        println!("| {} | {:?} | {share:.3} |", row.label, row.median);
    }
    met
}

fn main() -> ExitCode {
    const KB16: usize = 16 * 1024;
    const PARSED: usize = 3 * 1024;
    let deny = || policy(0).with_deny("Bash(rm -rf*)");
    let ordinary: Vec<(String, Policy, &str, Value)> = vec![
        ("`ls -la`, 3 rules".into(), policy(0), "proc.exec", command("ls -la")),
        ("`ls -la`, 50 rules".into(), policy(50), "proc.exec", command("ls -la")),
        (
            "3 commands with `&&`, 50 rules".into(),
            policy(50),
            "proc.exec",
            command("cargo fmt --check && cargo clippy --all-targets && git status --short"),
        ),
        (
            "quoted commit message, 50 rules".into(),
            policy(50),
            "proc.exec",
            command("git commit -m 'Explain the decision; keep the text short'"),
        ),
        ("`fs.write` of one path, 50 rules".into(), policy(50), "fs.write", json!({ "path": "src/main.rs" })),
        ("MCP tool, 50 rules".into(), policy(50), "mcp__github__create_issue", json!({ "title": "x" })),
    ];
    let below = KB16 - 100;
    let hostile = [
        ("nested `$(`", "$("),
        ("nested `(`", "("),
        ("nested `{`", "{ "),
        ("quotes", "'\""),
        ("`\"$(`", "\"$("),
        ("backticks", "`a "),
        ("`<<A`", "<<A "),
        ("`a=(`", "a=("),
        ("`[[`", "[[ "),
        ("`$((`", "$(("),
        ("`${x:-`", "${x:-"),
        ("`case x in`", "case x in "),
        ("`if`", "if "),
        ("plain words", "ab "),
        ("`a;`", "a;"),
        ("`a|`", "a|"),
        ("`rm `", "rm "),
        ("`env `", "env "),
        ("`sh -c '`", "sh -c 'a' ; "),
        ("`<(`", "<("),
        ("`a&&`", "a&&"),
        ("`function f {`", "function f { "),
        ("backslashes", "\\ "),
        ("newlines", "a\n"),
        ("`)`", ")"),
        ("bars", "|"),
        ("`git -a b`", "git -a b "),
        ("`watch`, each parsed again", "watch "),
        ("`eval`, each parsed again", "eval a; "),
    ];
    // Odd text is parsed up to 3 kB, plain words up to 16 kB: both sizes are the worst of their kind.
    let mut adversarial: Vec<(String, Policy, &str, Value)> = Vec::new();
    for (label, unit) in hostile {
        for size in [PARSED, below] {
            let policy = policy(50).with_deny("Bash(rm -rf*)");
            adversarial.push((
                format!("{size} bytes of {label}"),
                policy,
                "proc.exec",
                command(repeat_to(unit, size)),
            ));
        }
    }
    // Found by searching for slow texts: just below the size at which odd text is no longer parsed, and as words.
    for (prefix, unit, size) in [
        ("", "&&]] ", PARSED),
        ("", "=~ ", PARSED),
        ("", "a|", PARSED),
        ("&&", "#", PARSED),
        ("echo ", "=~ ", below),
        ("echo ", "]] ", below),
    ] {
        let label = format!("{size} bytes of `{prefix}` and `{unit}`");
        let text = format!("{prefix}{}", repeat_to(unit, size - prefix.len()));
        adversarial.push((label, policy(50).with_deny("Bash(rm -rf*)"), "proc.exec", command(text)));
    }
    // Just under the numbers of openings at which the text is not parsed, with a long tail to look ahead into.
    for count in [2_usize, 7, 190] {
        for unit in ["a=(", "$(", "\"$(", "${x:-", "{ ", "`", "((", "$((", "<("] {
            let openings = unit.repeat(count.div_ceil(unit.matches(['(', '{', '`']).count()));
            let text = format!("{openings}{}", repeat_to("a b;", PARSED - openings.len()));
            let label = format!("{count} openings with `{unit}`, then words");
            adversarial.push((label, policy(50).with_deny("Bash(rm -rf*)"), "proc.exec", command(text)));
        }
    }
    for (label, size) in [("16 kB + 1", KB16 + 1), ("1 MB", 1 << 20), ("100 MB", 100 << 20)] {
        adversarial.push((format!("{label} of `$(`"), deny(), "proc.exec", command(repeat_to("$(", size))));
    }
    adversarial.push((
        "argv of 100 MB".into(),
        deny(),
        "proc.exec",
        json!({ "command": ["echo", "a".repeat(100 << 20)] }),
    ));
    adversarial.push((
        "`Bash(*a*a*a*a*a*b)` on 16 kB of `a`".into(),
        policy(0).with_deny("Bash(*a*a*a*a*a*a*a*a*a*b)"),
        "proc.exec",
        command("a".repeat(below)),
    ));
    adversarial.push((
        "`Edit(**/*a*a*a*a*b)` on a 4 kB path".into(),
        policy(0).with_deny("Edit(**/*a*a*a*a*a*b)"),
        "fs.write",
        json!({ "path": "a".repeat(4096) }),
    ));
    adversarial.push((
        "patch of 250 kB, 500 files".into(),
        policy(0).with_deny("Edit(secret/**)"),
        "fs.apply_patch",
        json!({ "patch": patch(500) }),
    ));
    let met = table("Ordinary decisions", ORDINARY, 2_000, &ordinary)
        & table("Hostile calls", ANY, 15, &adversarial);
    if met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

trait WithDeny {
    fn with_deny(self, rule: &str) -> Self;
}

impl WithDeny for Policy {
    fn with_deny(mut self, rule: &str) -> Self {
        self.deny.push(Rule::parse(rule).expect("a rule"));
        self
    }
}
