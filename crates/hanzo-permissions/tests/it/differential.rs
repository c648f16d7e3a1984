//! Random command lines, decided and then run in real bash: what is allowed must do what the rules say it does.
//!
//! The pieces hold no `/`, `*`, `~` or `.`, so that nothing outside the scratch directory can be named.

use hanzo_permissions::{Decision, Policy};

use crate::run::Playground;
use crate::{bash, policy};

/// A small generator with a fixed seed: the same lines every time.
struct Lines {
    state: u64,
}

impl Lines {
    fn pick(&mut self, below: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state % below as u64).expect("below a usize")
    }

    fn line(&mut self, starts: &[&str], pieces: &[&str]) -> String {
        let mut line = starts[self.pick(starts.len())].to_owned();
        for _ in 0..=self.pick(7) {
            line.push_str(pieces[self.pick(pieces.len())]);
        }
        line
    }
}

/// Lines that the policy allows, up to `wanted`, out of at most `tried`.
fn allowed(policy: &Policy, starts: &[&str], pieces: &[&str], wanted: usize, tried: usize) -> Vec<String> {
    let mut lines = Lines { state: 0x2545_F491_4F6C_DD1D };
    let mut allowed = Vec::new();
    for _ in 0..tried {
        let line = lines.line(starts, pieces);
        if bash(policy, &line) == Decision::Allow && !allowed.contains(&line) {
            allowed.push(line);
        }
        if allowed.len() == wanted {
            break;
        }
    }
    allowed
}

#[test]
fn what_an_approved_prefix_allows_runs_nothing_else() {
    let policy = policy(&["Bash(echo:*)"], &[], &[]);
    let pieces = [
        " ",
        " x",
        " 'a",
        "'",
        "\"",
        "\\",
        "\\\n",
        "\n",
        ";",
        "&&",
        "&",
        "|",
        " touch marker",
        "touch marker",
        "$(touch marker)",
        "`touch marker`",
        ">marker",
        " >&2",
        " 2>&1",
        "#",
        " #",
        "(",
        ")",
        "{",
        "}",
        "<<E\n",
        "\nE\n",
        "$",
        "!",
        "echo ",
        " echo",
        "\\\\",
        "\\'",
        "\\\"",
        "<(touch marker)",
        "\t",
    ];
    let lines = allowed(
        &policy,
        &["echo", "echo ", "echo '", "echo \"", "echo a;", "echo a && echo"],
        &pieces,
        200,
        60_000,
    );
    assert!(lines.len() >= 150, "only {} lines to run", lines.len());
    let playground = Playground::new();
    let directory = playground.directory("all");
    for line in &lines {
        assert!(playground.run(&directory, line));
        assert!(!directory.join("marker").exists(), "allowed, but ran something else: {line:?}");
    }
}

#[test]
fn what_is_allowed_beside_a_deny_deletes_nothing() {
    let policy = policy(&["Bash"], &[], &["Bash(rm -rf*)"]);
    let pieces = [
        " ",
        " ",
        " ",
        "rm",
        "rm -rf victim",
        " -rf",
        " -fr",
        " victim",
        "victim",
        "echo ",
        "'",
        "\"",
        "\\",
        "\\\n",
        "\n",
        ";",
        " && ",
        " | ",
        " & ",
        "$(",
        ")",
        "`",
        "x=",
        "$x",
        "${x:-",
        "}",
        "env ",
        "command ",
        "xargs ",
        "sh -c ",
        "eval ",
        "bash",
        "printf ",
        "<<E\n",
        "\nE\n",
        "(",
        "{ ",
        "; }",
        "#",
        "true",
        "2>&1",
        "A=b ",
        "exec ",
        "time ",
        "! ",
        "if true; then ",
        "; fi",
        "<<<",
        "cat ",
    ];
    let starts = ["", "rm ", "echo ", "x=rm; ", "env ", "sh -c '", "true; "];
    let lines = allowed(&policy, &starts, &pieces, 200, 60_000);
    assert!(lines.len() >= 150, "only {} lines to run", lines.len());
    let playground = Playground::new();
    let directory = playground.directory("all");
    for line in &lines {
        let victim = playground.victim(&directory);
        assert!(playground.run(&directory, line));
        assert!(victim.exists(), "allowed, but deleted: {line:?}");
    }
}
