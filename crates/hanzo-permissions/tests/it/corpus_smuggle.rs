//! Ways to smuggle a command behind an approved prefix, each of which bash really runs.
//!
//! With `git status` and `echo` approved as prefixes none may be allowed. The control runs each and sees the marker
//! file appear.

use std::time::{Duration, Instant};

use hanzo_permissions::Decision;

use crate::run::Playground;
use crate::{bash, policy};

const SMUGGLED: &[(&str, &str)] = &[
    ("semicolon", "git status; touch marker"),
    ("semicolon_tight", "git status;touch marker"),
    ("and", "git status && touch marker"),
    ("or", "git status --no-such-option || touch marker"),
    ("pipe", "git status | touch marker"),
    ("pipe_stderr", "git status |& touch marker"),
    ("background", "git status & touch marker"),
    ("newline", "git status\ntouch marker"),
    ("newlines", "git status\n\n\ntouch marker"),
    ("newline_quoted_before", "echo 'a\nb'\ntouch marker"),
    ("substitution", "git status $(touch marker)"),
    ("substitution_quoted", r#"echo "$(touch marker)""#),
    ("backticks", "git status `touch marker`"),
    ("backticks_quoted", r#"echo "`touch marker`""#),
    ("process_in", "git status <(touch marker)"),
    ("process_out", "git status > >(touch marker)"),
    ("redirect", "git status > marker"),
    ("redirect_append", "git status >> marker"),
    ("redirect_tight", "echo x>marker"),
    ("redirect_fd", "git status 2> marker"),
    ("redirect_both", "git status &> marker"),
    ("redirect_both_old", "git status >& marker"),
    ("redirect_clobber", "git status >| marker"),
    ("redirect_first", "> marker git status"),
    ("redirect_read_write", "echo <> marker"),
    ("heredoc", "echo <<EOF\n$(touch marker)\nEOF"),
    ("herestring", "echo <<< $(touch marker)"),
    ("brace_substitution", "echo {a,$(touch marker)}"),
    ("parameter_default", "echo ${x:-$(touch marker)}"),
    ("parameter_assign", "echo ${x:=`touch marker`}"),
    ("arithmetic", "echo $((a[$(touch marker)]))"),
    ("arithmetic_old", "echo $[a[$(touch marker)]]"),
    ("arithmetic_hidden", r"echo ${x:=a[\$(touch marker)]} $((x))"),
    ("prompt", r#"echo ${x:='$(touch marker)'}; echo "${x@P}""#),
    ("array", "echo ${a[$(touch marker)]}"),
    ("assignment", "x=$(touch marker) git status"),
    ("path", "PATH=.:$PATH git status"),
    ("preload", "BASH_ENV=./env.sh bash -c 'git status'"),
    (
        "git_pager",
        "GIT_EXTERNAL_DIFF='touch marker;:' git -c diff.external='touch marker;:' diff --no-index /dev/null env.sh",
    ),
    ("git_alias", "git -c alias.status='!touch marker' -c alias.s='!touch marker' s"),
    ("function", "git() { touch marker; }; git status"),
    ("function_echo", "function echo { touch marker; }; echo"),
    ("alias", "shopt -s expand_aliases\nalias git='touch marker;'\ngit status"),
    ("trap", "trap 'touch marker' EXIT; git status"),
    ("trap_debug", "trap 'touch marker' DEBUG; echo x"),
    ("coproc", "coproc touch marker; git status"),
    ("subshell", "(git status; touch marker)"),
    ("group", "{ git status; touch marker; }"),
    ("if", "if git status; then touch marker; else touch marker; fi"),
    ("while", "while echo x; do touch marker; break; done"),
    ("case", "case x in *) touch marker;; esac; echo x"),
    ("negation", "! git status; touch marker"),
    ("continuation", "git status; tou\\\nch marker"),
    ("comment", "git status # harmless\ntouch marker"),
    ("comment_fake", "echo a#b; touch marker"),
    ("carriage_return", "git status\r\ntouch marker"),
    ("test_v", "echo x; test -v 'a[$(touch marker)]'"),
    ("bracket_v", "echo x && [ -v 'a[$(touch marker)]' ]"),
    ("double_bracket", "echo x && [[ -v 'a[$(touch marker)]' ]]"),
    ("printf_v", "echo x; printf -v 'a[$(touch marker)]' x"),
    ("ansi", "echo $'x' $(touch marker)"),
    ("eval", "echo x; eval 'touch marker'"),
    ("exec", "echo x; exec touch marker"),
    ("xargs", "echo marker | xargs touch"),
    ("tee", "echo x | tee marker"),
    ("shell_stdin", "echo 'touch marker' | sh"),
    ("command", "echo x; command touch marker"),
    ("other_git", "./git status"),
    ("other_git_absolute", "$PWD/git status"),
    ("time", "time touch marker"),
    ("nested_quote", r#"echo "x'"; touch marker; echo "'x""#),
    ("backslash_end", r"echo \\; touch marker"),
    ("double_semicolon", "case a in a) git status;; esac; touch marker"),
];

/// Characters that separate or hide words for some readers. They run nothing by themselves; they must not pass for
/// the approved command either.
const DISGUISED: &[&str] = &[
    "git\u{a0}status",
    "git status\u{b}touch marker",
    "git status\u{c}touch marker",
    "git status\u{2028}touch marker",
    "git status\u{202e}rekram hcuot",
    "git status\u{0}; touch marker",
    "git status\u{1b}[2K",
    "echo !!",
    "echo !touch",
    "\u{feff}git status",
];

#[test]
fn nothing_is_smuggled_behind_an_approved_prefix() {
    assert!(SMUGGLED.len() >= 48, "{}", SMUGGLED.len());
    let policy =
        policy(&["Bash(git status:*)", "Bash(echo:*)", "Bash(git status *)", "bash(echo *)"], &[], &[]);
    let allowed: Vec<_> =
        SMUGGLED.iter().filter(|(_, line)| bash(&policy, line) == Decision::Allow).collect();
    assert!(allowed.is_empty(), "allowed: {allowed:#?}");
}

#[test]
fn disguised_characters_are_not_the_approved_command() {
    let policy = policy(&["Bash(git status:*)", "Bash(echo:*)"], &[], &[]);
    for line in DISGUISED {
        assert_eq!(bash(&policy, line), Decision::Ask, "{line:?}");
    }
}

#[test]
fn every_smuggled_command_really_runs() {
    let playground = Playground::new();
    let mut harmless = Vec::new();
    for (name, line) in SMUGGLED {
        let directory = playground.directory(name);
        // What an attacker may have put into the workspace.
        for (file, text) in [("git", "#!/bin/sh\ntouch marker\n"), ("env.sh", "touch marker\n")] {
            let path = directory.join(file);
            std::fs::write(&path, text).expect("a file");
            std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755))
                .expect("executable");
        }
        playground.run(&directory, "/usr/bin/git init -q .");
        assert!(playground.run(&directory, line), "{name}: bash did not start");
        // `touch marker\r` makes a file of that name: the command ran all the same. A process substitution may
        // outlive the command line, so the marker is waited for.
        let has_marker = || {
            std::fs::read_dir(&directory)
                .expect("the directory")
                .any(|entry| entry.expect("an entry").file_name().to_string_lossy().starts_with("marker"))
        };
        let deadline = Instant::now() + Duration::from_secs(5);
        while !has_marker() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        let ran = has_marker();
        if !ran {
            harmless.push((*name, *line));
        }
    }
    assert!(harmless.is_empty(), "these run nothing and prove nothing: {harmless:#?}");
}

#[test]
fn the_approved_commands_themselves_are_allowed() {
    let policy = policy(&["Bash(git status:*)", "Bash(echo:*)", "Bash(go test:*)"], &[], &[]);
    for line in [
        "git status",
        "git status --short",
        "  git   status  ",
        "git status && echo done",
        "git status; echo a | echo b",
        "git status\necho x\n",
        "echo 'a; rm -rf b && c | d > e $(f)'",
        "echo \"a; b\"",
        "go test ./... 2>&1",
        "echo x >&2",
        "\"git\" 'status'",
        "echo a \\\n  b",
        "echo 'two\nlines'",
    ] {
        assert_eq!(bash(&policy, line), Decision::Allow, "{line:?}");
    }
    for line in ["git statusx", "git stat", "git", "gits tatus", "echoes", "/tmp/echo x", "go testing"] {
        assert_eq!(bash(&policy, line), Decision::Ask, "{line:?}");
    }
}
