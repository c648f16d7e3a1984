//! Commands that run other commands.
//!
//! Knowing a wrapper's options turns an *ask* into a *deny*; not knowing them loses nothing, because whatever the
//! unwrapping does not find, the search over all tokens of the text still does
//! (see [`super::matching::CommandPattern::catches`]).

use super::tree::{self, Found};
use super::words::{self, SimpleCommand, Word};
use super::{Budget, MAX_DEPTH, MAX_ODD_COMMAND, Opaque};

/// What stands after a wrapper's own options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payload {
    /// The words of a command.
    Words,
    /// The words of a command, to which others are added that are not known here.
    WordsAndMore,
    /// Shell text, made by joining the words.
    Text,
    /// Shell text after `-c`; nothing without it.
    TextOption,
}

/// How to find the command inside a wrapper.
struct Wrapper {
    names: &'static [&'static str],
    /// Short options that take a value.
    short: &'static str,
    /// Long options that take a value in the next word.
    long: &'static [&'static str],
    /// Words before the command that are neither options nor part of it.
    operands: usize,
    payload: Payload,
}

const fn wrapper(
    names: &'static [&'static str],
    short: &'static str,
    long: &'static [&'static str],
    operands: usize,
    payload: Payload,
) -> Wrapper {
    Wrapper { names, short, long, operands, payload }
}

static WRAPPERS: &[Wrapper] = &[
    wrapper(&["env"], "uC", &["--unset", "--chdir"], 0, Payload::Words),
    wrapper(
        &["sudo", "sudoedit"],
        "ugpCchDRrtTU",
        &[
            "--user",
            "--group",
            "--prompt",
            "--close-from",
            "--host",
            "--chdir",
            "--chroot",
            "--role",
            "--type",
            "--command-timeout",
            "--other-user",
        ],
        0,
        Payload::Words,
    ),
    wrapper(&["doas"], "uCa", &[], 0, Payload::Words),
    wrapper(&["pkexec"], "u", &["--user"], 0, Payload::Words),
    wrapper(&["timeout", "gtimeout"], "ks", &["--kill-after", "--signal"], 1, Payload::Words),
    wrapper(&["nice"], "n", &["--adjustment"], 0, Payload::Words),
    wrapper(&["ionice"], "cn", &["--class", "--classdata"], 0, Payload::Words),
    wrapper(&["stdbuf"], "ioe", &["--input", "--output", "--error"], 0, Payload::Words),
    wrapper(&["time", "gtime"], "fo", &["--format", "--output"], 0, Payload::Words),
    wrapper(&["exec"], "a", &[], 0, Payload::Words),
    wrapper(
        &[
            "nohup",
            "setsid",
            "command",
            "builtin",
            "busybox",
            "toybox",
            "caffeinate",
            "fakeroot",
            "eatmydata",
            "unbuffer",
            "catchsegv",
            "dbus-run-session",
            "torsocks",
            "proxychains",
            "proxychains4",
            "winpty",
            "chronic",
            "setarch",
            "linux64",
            "unshare",
        ],
        "",
        &[],
        0,
        Payload::Words,
    ),
    wrapper(
        &["xargs", "gxargs"],
        "IELnPsda",
        &["--arg-file", "--delimiter", "--eof", "--max-args", "--max-procs", "--max-chars", "--max-lines"],
        0,
        Payload::WordsAndMore,
    ),
    wrapper(
        &["parallel"],
        "jaSNLnIPd",
        &["--jobs", "--arg-file", "--sshlogin", "--joblog", "--delay"],
        0,
        Payload::Text,
    ),
    wrapper(&["watch", "entr"], "n", &["--interval"], 0, Payload::Text),
    wrapper(&["chroot"], "", &["--userspec", "--groups"], 1, Payload::Words),
    wrapper(&["nsenter"], "tSGr", &["--target", "--setuid", "--setgid"], 0, Payload::Words),
    wrapper(&["taskset", "chrt"], "", &[], 1, Payload::Words),
    wrapper(&["flock"], "wE", &["--wait", "--timeout"], 1, Payload::Words),
    wrapper(&["strace", "ltrace"], "oesSaEuPOIbX", &["--output", "--trace"], 0, Payload::Words),
    wrapper(
        &["systemd-run"],
        "pMuEHt",
        &["--property", "--unit", "--setenv", "--description"],
        0,
        Payload::Words,
    ),
    wrapper(&["ssh"], "bcDEeFIiJLlmOopQRSWw", &[], 1, Payload::Text),
    wrapper(
        &["su", "runuser", "script"],
        "gGswuo",
        &["--group", "--shell", "--user"],
        usize::MAX,
        Payload::TextOption,
    ),
];

const SHELLS: &[&str] =
    &["bash", "sh", "zsh", "dash", "ksh", "ksh93", "mksh", "ash", "rbash", "fish", "csh", "tcsh"];

/// Interpreters that take a program on the command line or from standard input.
const INTERPRETERS: &[&str] = &[
    "python",
    "pypy",
    "perl",
    "ruby",
    "node",
    "nodejs",
    "deno",
    "bun",
    "php",
    "lua",
    "luajit",
    "Rscript",
    "tclsh",
    "expect",
    "osascript",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "ed",
    "ex",
    "vi",
    "vim",
    "nvim",
    "emacs",
    "gdb",
    "lldb",
    "pwsh",
    "powershell",
    "ipython",
    "irb",
    "groovy",
    "scala",
    "jshell",
    "ghci",
    "guile",
    "sqlite3",
    "psql",
    "mysql",
    "bc",
    "dc",
    "m4",
];

/// Builtins that evaluate text or change what names mean.
const EVALUATING: &[&str] = &[
    "eval",
    "trap",
    "alias",
    "unalias",
    "enable",
    "hash",
    "compgen",
    "complete",
    "bind",
    "mapfile",
    "readarray",
    "let",
    "declare",
    "typeset",
    "local",
    "export",
    "readonly",
    "read",
    "unset",
    "getopts",
    "fc",
    "coproc",
    "set",
    "shopt",
    "history",
];

/// Builtins and programs that run a file as shell text in the shell itself.
const SOURCING: &[&str] = &[".", "source"];

/// Programs that print or look for their words and do nothing else with them.
const INERT: &[&str] = &[
    "echo", "printf", "true", "false", ":", "pwd", "cat", "head", "tail", "wc", "ls", "grep", "egrep",
    "fgrep", "basename", "dirname",
];

/// The program's name without its directory.
pub(super) fn basename(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// The name without a version: `python3.12` is `python`.
fn family(program: &str) -> &str {
    basename(program).trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

/// Whether `program` runs a command that it is given.
pub(crate) fn is_wrapper(program: &str) -> bool {
    let name = basename(program);
    WRAPPERS.iter().any(|w| w.names.contains(&name))
        || EVALUATING.contains(&name)
        || SOURCING.contains(&name)
        || matches!(name, "find" | "fd" | "fdfind")
}

/// Whether `program` runs a program that it is given as text or file.
pub(crate) fn is_interpreter(program: &str) -> bool {
    SHELLS.contains(&basename(program)) || INTERPRETERS.contains(&family(program))
}

pub(super) fn is_inert(command: &SimpleCommand) -> bool {
    command.words.first().is_some_and(|p| p.exact && INERT.contains(&basename(&p.text)))
        && !evaluates(command)
}

/// Whether the command evaluates its words as shell text although it looks like an ordinary one.
pub(super) fn evaluates(command: &SimpleCommand) -> bool {
    let Some((program, arguments)) = command.words.split_first() else { return false };
    match program.text.as_str() {
        name if EVALUATING.contains(&name) => true,
        // `test -v 'a[$(id)]'` and `printf -v 'a[$(id)]'` run `id`.
        "test" | "[" => arguments.iter().any(|w| w.text.contains('[') || !w.exact),
        "printf" => {
            arguments.first().is_some_and(|w| w.text.starts_with("-v") || (!w.exact && w.text.is_empty()))
        }
        "wait" => !arguments.is_empty(),
        _ => false,
    }
}

/// Gathers commands and what hides inside them.
pub(super) struct Collector {
    found: Vec<SimpleCommand>,
    hard: Option<Opaque>,
    budget: Budget,
}

impl Collector {
    pub(super) fn new(budget: Budget) -> Self {
        Self { found: Vec::new(), hard: None, budget }
    }

    /// Notes that the list of commands proves nothing.
    pub(super) fn mark(&mut self, reason: Opaque) {
        self.hard.get_or_insert(reason);
    }

    pub(super) fn finish(self) -> (Vec<SimpleCommand>, Option<Opaque>) {
        (self.found, self.hard)
    }

    /// Takes over what the grammar found in some text.
    pub(super) fn add(&mut self, found: Found, depth: usize) {
        if let Some(reason) = found.hard {
            self.mark(reason);
        }
        for command in found.commands {
            self.add_command(command, &found.documents, depth);
        }
    }

    fn add_text(&mut self, text: &str, depth: usize) {
        if depth >= MAX_DEPTH {
            return self.mark(Opaque::Nesting);
        }
        if text.chars().find_map(words::suspicious).is_some() {
            self.mark(Opaque::ControlCharacter);
        }
        let found = tree::find(&words::without_continuations(text), MAX_ODD_COMMAND, &mut self.budget);
        self.add(found, depth + 1);
    }

    /// Adds `command` and what it runs. `documents` are the heredocs around it.
    pub(super) fn add_command(&mut self, command: SimpleCommand, documents: &[String], depth: usize) {
        if depth >= MAX_DEPTH {
            return self.mark(Opaque::Nesting);
        }
        if let Some((program, arguments)) = command.words.split_first() {
            if program.exact {
                self.look_inside(&program.text, arguments, documents, depth);
            } else {
                self.mark(Opaque::ProgramUnknown);
            }
            if evaluates(&command) {
                self.mark(Opaque::EvaluatingBuiltin);
            }
        }
        self.found.push(command);
    }

    fn look_inside(&mut self, program: &str, arguments: &[Word], documents: &[String], depth: usize) {
        let name = basename(program);
        if SHELLS.contains(&name) {
            return self.shell(arguments, documents, depth);
        }
        if INTERPRETERS.contains(&family(name)) {
            return self.interpreter(family(name), arguments);
        }
        if SOURCING.contains(&name) {
            return self.mark(Opaque::Interpreter);
        }
        match name {
            "eval" => self.joined_text(arguments, depth),
            "trap" => {
                if let Some(text) = arguments.iter().find(|w| !w.text.starts_with('-')) {
                    self.joined_text(std::slice::from_ref(text), depth);
                }
            }
            "find" | "gfind" | "fd" | "fdfind" => self.find(arguments, depth),
            // Other ways to delete whole trees: as far as a rule about `rm -rf` is concerned, nothing proves
            // that they are not meant.
            "rsync" if arguments.iter().any(|w| w.text.starts_with("--del")) => self.like_removal(),
            "git" if arguments.iter().any(|w| w.text == "clean") => self.like_removal(),
            _ => {
                if let Some(wrapper) = WRAPPERS.iter().find(|w| w.names.contains(&name)) {
                    self.wrapped(name, wrapper, arguments, depth);
                }
            }
        }
    }

    /// Records a removal of a tree, of which neither the options nor the victims are known.
    fn like_removal(&mut self) {
        self.found.push(SimpleCommand::new(vec![Word::exact("rm"), Word::unknown()]));
    }

    fn joined_text(&mut self, words: &[Word], depth: usize) {
        if words.iter().any(|w| !w.exact) {
            self.mark(Opaque::Expansion);
        }
        let text = words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>().join(" ");
        self.add_text(&text, depth);
    }

    fn wrapped(&mut self, name: &str, wrapper: &Wrapper, arguments: &[Word], depth: usize) {
        let mut rest = arguments;
        let mut operands = wrapper.operands;
        let mut options = true;
        while let Some((word, tail)) = rest.split_first() {
            if !word.exact && (word.text.is_empty() || word.text.starts_with('-')) {
                // It may be an option, a value, or the program: nothing behind it has a certain place.
                self.mark(Opaque::Expansion);
                rest = tail;
                continue;
            }
            let text = word.text.as_str();
            if options && text == "--" {
                options = false;
                rest = tail;
            } else if options && text.len() > 1 && text.starts_with('-') {
                if name == "env" && (text.starts_with("-S") || text.starts_with("--split-string")) {
                    return self.split_string(text, tail, depth);
                }
                let takes_text = !text.starts_with("--") && text.ends_with('c') || text == "--command";
                let has_text = wrapper.payload == Payload::TextOption || name == "flock";
                if has_text && takes_text {
                    return self.joined_text(&tail[..tail.len().min(1)], depth);
                }
                if let Some(text) = text.strip_prefix("--command=").filter(|_| has_text) {
                    return self.add_text(text, depth);
                }
                let value_follows = if text.starts_with("--") {
                    wrapper.long.contains(&text)
                } else {
                    // In `-k5` the value is attached, in `-k 5` it follows.
                    text[1..].find(|c| wrapper.short.contains(c)).is_some_and(|at| at + 2 == text.len())
                };
                rest = if value_follows { tail.get(1..).unwrap_or_default() } else { tail };
            } else if matches!(name, "env" | "sudo" | "doas") && text.contains('=') {
                rest = tail;
            } else if operands > 0 {
                operands -= 1;
                rest = tail;
            } else {
                break;
            }
        }
        // `flock file -c 'text'`
        if name == "flock" && rest.first().is_some_and(|w| matches!(w.text.as_str(), "-c" | "--command")) {
            return self.joined_text(rest.get(1..2).unwrap_or_default(), depth);
        }
        if rest.is_empty() {
            return;
        }
        match wrapper.payload {
            Payload::Text => self.joined_text(rest, depth),
            Payload::TextOption => {}
            Payload::Words | Payload::WordsAndMore => {
                let mut words = rest.to_vec();
                if wrapper.payload == Payload::WordsAndMore {
                    words.push(Word::unknown());
                }
                self.add_command(SimpleCommand::new(words), &[], depth + 1);
            }
        }
    }

    /// `env -S 'rm -rf x' y`: the string is cut into words, the rest is appended.
    fn split_string(&mut self, option: &str, tail: &[Word], depth: usize) {
        let attached =
            option.strip_prefix("--split-string").or_else(|| option.strip_prefix("-S")).unwrap_or_default();
        let attached = attached.strip_prefix('=').unwrap_or(attached);
        let mut words = vec![Word::exact("env")];
        let (text, more) = match (attached.is_empty(), tail.split_first()) {
            (false, _) => (attached.to_owned(), tail),
            (true, Some((first, more))) => (first.text.clone(), more),
            (true, None) => return,
        };
        match words::plain_commands(&text) {
            Ok(commands) if commands.len() == 1 => words.extend(commands.into_iter().flat_map(|c| c.words)),
            _ => self.mark(Opaque::Expansion),
        }
        words.extend_from_slice(more);
        self.add_command(SimpleCommand::new(words), &[], depth + 1);
    }

    fn shell(&mut self, arguments: &[Word], documents: &[String], depth: usize) {
        let mut has_text = false;
        let mut rest = arguments;
        while let Some((word, tail)) = rest.split_first() {
            let text = word.text.as_str();
            if !word.exact && !has_text {
                return self.mark(Opaque::Interpreter);
            }
            match text {
                "--rcfile" | "--init-file" | "-o" | "+o" | "-O" | "+O" => {
                    rest = tail.get(1..).unwrap_or_default();
                }
                "-" | "--" => {
                    rest = tail;
                    break;
                }
                long if long.starts_with("--") => rest = tail,
                short if short.starts_with(['-', '+']) && short.len() > 1 => {
                    has_text |= short.starts_with('-') && short.contains('c');
                    if short.contains('s') && !has_text {
                        self.mark(Opaque::Interpreter);
                    }
                    // `-eo pipefail`
                    rest = if short.ends_with('o') { tail.get(1..).unwrap_or_default() } else { tail };
                }
                _ => break,
            }
        }
        match rest.first() {
            Some(word) if has_text => {
                if !word.exact {
                    self.mark(Opaque::Expansion);
                }
                self.add_text(&word.text, depth);
            }
            // A script file: what is in it is no part of the command. Streams and devices are not files.
            Some(word)
                if word.exact && !word.text.starts_with("/dev/") && !word.text.starts_with("/proc/") => {}
            _ => {
                self.mark(Opaque::Interpreter);
                for document in documents {
                    self.add_text(document, depth);
                }
            }
        }
    }

    fn interpreter(&mut self, name: &str, arguments: &[Word]) {
        let hidden = match arguments.first() {
            None => true,
            Some(first) if matches!(name, "awk" | "gawk" | "mawk" | "nawk") => {
                let runs = |w: &Word| {
                    !w.exact || ["system", "|", "getline", "@load"].iter().any(|s| w.text.contains(s))
                };
                first.text.starts_with("-f") || arguments.iter().any(runs)
            }
            Some(first) if !first.exact => true,
            Some(first) if first.text.starts_with('-') => !matches!(
                first.text.as_str(),
                "-m" | "-V" | "-v" | "--version" | "--help" | "-h" | "--test" | "--check"
            ),
            Some(first) => {
                first.text == "eval" || first.text.starts_with("/dev/") || first.text.starts_with("/proc/")
            }
        };
        if hidden {
            self.mark(Opaque::Interpreter);
        }
    }

    fn find(&mut self, arguments: &[Word], depth: usize) {
        let starts = |text: &str| {
            matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch")
        };
        for (index, word) in arguments.iter().enumerate() {
            if !word.exact && (word.text.is_empty() || word.text.starts_with('-')) {
                self.mark(Opaque::Expansion);
            }
            if word.text == "-delete" {
                self.like_removal();
            }
            if starts(&word.text) {
                let words: Vec<Word> = arguments[index + 1..]
                    .iter()
                    .take_while(|w| !matches!(w.text.as_str(), ";" | "+"))
                    // The place holder stands for names that are not known here.
                    .map(|w| if w.text.contains("{}") { Word::unknown() } else { w.clone() })
                    .collect();
                if !words.is_empty() {
                    self.add_command(SimpleCommand::new(words), &[], depth + 1);
                }
            }
        }
    }
}
