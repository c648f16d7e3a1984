//! The scopes offered with "always allow".
//!
//! Every offer is a set of rules that parse and that cover the call they were made for. A prefix is offered only
//! when it hands out neither an interpreter nor a program that runs other programs.

use serde::Serialize;

use crate::call::{Call, Facts, Subject};
use crate::glob::escape;
use crate::rule::Rule;
use crate::shell::{SimpleCommand, is_interpreter, is_wrapper};
use crate::tools::{self, Family};

/// How long a grant lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Lifetime {
    /// Until the session ends.
    Session,
    /// Written to the settings; may be given for the session too.
    Saved,
}

/// How much an offer covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ScopeKind {
    /// This command, word for word.
    Command,
    /// Commands that start alike.
    Prefix,
    /// All editing.
    AllEdits,
    /// These files.
    Files,
    /// This tool.
    Tool,
    /// Every tool of this server.
    Server,
    /// This host.
    Host,
}

/// One thing the user may choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// How much it covers.
    pub kind: ScopeKind,
    /// How long it may live.
    pub lifetime: Lifetime,
    /// The allow rules that make it so.
    pub rules: Vec<String>,
}

/// Programs of which the first argument says what they do.
const SUBCOMMANDS: &[&str] = &[
    "git",
    "cargo",
    "go",
    "npm",
    "pnpm",
    "yarn",
    "docker",
    "podman",
    "kubectl",
    "gh",
    "pip",
    "pip3",
    "uv",
    "poetry",
    "brew",
    "apt",
    "systemctl",
    "terraform",
    "dotnet",
    "gradle",
    "mvn",
    "bundle",
    "rustup",
    "helm",
    "nix",
    "mix",
    "composer",
];

/// Programs of these families that run what they are given in some subcommand, and those subcommands.
const RUNNERS: &[(&str, &[&str])] = &[
    ("npm", &["exec", "x", "explore", "init", "create"]),
    ("pnpm", &["exec", "dlx", "x", "create", "init"]),
    ("yarn", &["exec", "dlx", "create", "node"]),
    ("docker", &["run", "exec", "compose", "container", "build", "buildx"]),
    ("podman", &["run", "exec", "compose", "container", "build"]),
    ("kubectl", &["exec", "run", "debug", "plugin"]),
    ("cargo", &["run", "install", "xtask"]),
    ("go", &["run", "generate", "install", "tool"]),
    ("uv", &["run", "tool", "x"]),
    ("poetry", &["run", "shell"]),
    ("pip", &["install"]),
    ("pip3", &["install"]),
    ("bundle", &["exec"]),
    ("rustup", &["run"]),
    ("nix", &["run", "shell", "develop", "eval"]),
    ("mix", &["run", "eval"]),
    ("composer", &["exec", "run-script"]),
    ("gh", &["alias", "extension", "api"]),
    ("dotnet", &["run", "exec", "script"]),
    (
        "git",
        &[
            "config",
            "bisect",
            "submodule",
            "filter-branch",
            "rebase",
            "difftool",
            "mergetool",
            "grep",
            "push",
        ],
    ),
    ("systemctl", &["edit", "link"]),
];

/// Programs that run others, or hand out so much that a prefix of them is no limit.
const NEVER_A_PREFIX: &[&str] = &[
    "make",
    "gmake",
    "just",
    "ninja",
    "npx",
    "bunx",
    "pnpx",
    "uvx",
    "ssh",
    "scp",
    "sftp",
    "rsync",
    "curl",
    "wget",
    "tar",
    "zip",
    "rm",
    "mv",
    "cp",
    "dd",
    "ln",
    "install",
    "tee",
    "chmod",
    "chown",
    "sed",
    "sort",
    "less",
    "more",
    "man",
    "vim",
    "nano",
    "screen",
    "tmux",
    "at",
    "batch",
    "crontab",
    "docker-compose",
    "mount",
    "kill",
    "pkill",
    "test",
    "[",
    "cd",
    "pushd",
    "popd",
    "wait",
    "rg",
    "ag",
    "ack",
    "git-shell",
    "ld.so",
    "socat",
    "nc",
    "ncat",
    "telnet",
    "openssl",
    "bwrap",
    "firejail",
    "qemu",
    "chpasswd",
    "java",
    "jq",
    "yq",
    "doas",
    "run-parts",
    "logrotate",
    "pip",
    "gcc",
    "cc",
    "clang",
    "rustc",
    "ansible",
    "ansible-playbook",
    "tox",
    "nox",
    "rake",
    "ant",
    "sbt",
    "gradle",
    "mvn",
    "cmake",
    "ctest",
    "meson",
    "bazel",
    "hyperfine",
    "direnv",
    "asdf",
    "mise",
];

/// What may be offered for `call`, the narrowest first. Nothing for commands that cannot be read.
pub fn offers(call: &Call<'_>) -> Vec<Offer> {
    let facts = call.facts();
    if facts.ids().any(|id| tools::needs_fresh_approval(id) || tools::is_user_decision(id)) {
        return Vec::new();
    }
    let offers = match facts.families() {
        [Family::Bash] => commands(&facts),
        [Family::Edit] => edits(&facts),
        [Family::Mcp] => mcp(facts.given()),
        [Family::Net] => hosts(&facts),
        [] | [Family::Read] => {
            vec![offer(ScopeKind::Tool, Lifetime::Saved, vec![facts.tool_id().to_owned()])]
        }
        _ => Vec::new(),
    };
    // The promise of this module, kept even where an odd name breaks the general rule.
    offers.into_iter().filter(|offer| covers(offer, call)).collect()
}

fn offer(kind: ScopeKind, lifetime: Lifetime, mut rules: Vec<String>) -> Offer {
    rules.dedup();
    Offer { kind, lifetime, rules }
}

fn covers(offer: &Offer, call: &Call<'_>) -> bool {
    let rules: Result<Vec<Rule>, _> = offer.rules.iter().map(|rule| Rule::parse(rule)).collect();
    let Ok(allow) = rules else { return false };
    let policy = crate::Policy { allow, ..crate::Policy::default() };
    policy.decide(call) == crate::Decision::Allow
}

fn commands(facts: &Facts<'_>) -> Vec<Offer> {
    let [Subject::Command(command)] = facts.subjects.as_slice() else { return Vec::new() };
    let Ok(commands) = &command.analysis().plain else { return Vec::new() };
    let exact = commands.iter().map(|c| format!("Bash({})", escape(c.canonical()))).collect();
    let mut offers = vec![offer(ScopeKind::Command, Lifetime::Saved, exact)];
    let prefixes: Option<Vec<String>> = commands.iter().map(prefix).collect();
    if let Some(prefixes) = prefixes {
        let rules = prefixes.iter().map(|p| format!("Bash({}:*)", escape(p))).collect();
        offers.push(offer(ScopeKind::Prefix, Lifetime::Saved, rules));
    }
    offers
}

/// A prefix that limits what the command can do to what it is for; `None` where there is none.
fn prefix(command: &SimpleCommand) -> Option<String> {
    let words: Vec<&str> = command.words.iter().map(|w| w.text.as_str()).collect();
    let program = *words.first()?;
    let plain = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_-.:".contains(c))
    };
    // A path names one file, which the agent may be able to rewrite.
    if !plain(program) || is_interpreter(program) || is_wrapper(program) || NEVER_A_PREFIX.contains(&program)
    {
        return None;
    }
    if !SUBCOMMANDS.contains(&program) {
        return Some(program.to_owned());
    }
    // `git -c … status`: an option before the subcommand can change everything that follows.
    let subcommand = words.get(1).filter(|word| plain(word) && !word.starts_with('-'))?;
    let runs = RUNNERS.iter().any(|(name, subcommands)| *name == program && subcommands.contains(subcommand));
    if runs {
        return None;
    }
    if *subcommand == "run" || *subcommand == "run-script" {
        // The script's name is what is approved.
        let script = words.get(2).filter(|word| plain(word) && !word.starts_with('-'))?;
        return Some(format!("{program} {subcommand} {script}"));
    }
    Some(format!("{program} {subcommand}"))
}

fn edits(facts: &Facts<'_>) -> Vec<Offer> {
    let mut rules = Vec::new();
    for subject in &facts.subjects {
        let Subject::Path { forms, .. } = subject else { return Vec::new() };
        for path in forms {
            // `?` and `[` have no escape in path patterns: such a file is not offered by name.
            if path.text.is_empty() || path.text.contains(['?', '[', '~']) {
                return vec![offer(ScopeKind::AllEdits, Lifetime::Session, vec!["Edit".to_owned()])];
            }
            rules.push(format!("Edit({})", escape(&path.text)));
        }
    }
    let mut offers = vec![offer(ScopeKind::AllEdits, Lifetime::Session, vec!["Edit".to_owned()])];
    if !rules.is_empty() {
        offers.insert(0, offer(ScopeKind::Files, Lifetime::Saved, rules));
    }
    offers
}

fn mcp(name: &str) -> Vec<Offer> {
    let splits = tools::mcp_splits(name);
    let plain = |text: &str| {
        !text.contains(['*', '?', '[', '(', ')', '/', '\\', '=']) && !text.contains(char::is_whitespace)
    };
    // A name that can be cut in several ways does not say which server it is of.
    let [(server, tool)] = splits.as_slice() else { return Vec::new() };
    // Methods are the only names with a `/` in them: `resources/read`.
    if !plain(server) || !tool.split('/').all(plain) {
        return Vec::new();
    }
    vec![
        offer(ScopeKind::Tool, Lifetime::Saved, vec![format!("Mcp({server}/{tool})")]),
        offer(ScopeKind::Server, Lifetime::Saved, vec![format!("Mcp({server}/*)")]),
    ]
}

fn hosts(facts: &Facts<'_>) -> Vec<Offer> {
    let rules: Option<Vec<String>> = facts
        .subjects
        .iter()
        .map(|subject| match subject {
            Subject::Url { url, .. } => url.as_rule(),
            _ => None,
        })
        .collect();
    rules
        .filter(|r| !r.is_empty())
        .map(|rules| offer(ScopeKind::Host, Lifetime::Saved, rules))
        .into_iter()
        .collect()
}
