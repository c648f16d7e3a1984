//! Which shell runs a command that is a line of text (R038): non-interactive, no login, no profile.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The shell the user prefers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShellChoice {
    /// Which shell.
    pub kind: ShellKind,
    /// The executable, when it is not the one on `PATH`.
    pub path: Option<PathBuf>,
}

/// Which shell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ShellKind {
    /// What the platform usually has: bash where there is one, otherwise `sh`; PowerShell on Windows.
    #[default]
    Auto,
    /// bash.
    Bash,
    /// Windows PowerShell.
    Powershell,
    /// PowerShell 7 and later.
    Pwsh,
}

/// How a shell is told what to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Posix,
    Powershell,
}

/// A shell that was decided on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shell {
    program: OsString,
    dialect: Dialect,
}

impl Shell {
    /// Decides by `choice`; `exists` tells whether a program is on the path.
    pub(crate) fn choose(choice: &ShellChoice, exists: impl Fn(&str) -> bool) -> Self {
        let (program, dialect) = match choice.kind {
            ShellKind::Auto if cfg!(windows) && exists("pwsh.exe") => ("pwsh.exe", Dialect::Powershell),
            ShellKind::Auto if cfg!(windows) => ("powershell.exe", Dialect::Powershell),
            ShellKind::Auto if exists("bash") => ("bash", Dialect::Posix),
            ShellKind::Auto => ("sh", Dialect::Posix),
            ShellKind::Bash => ("bash", Dialect::Posix),
            ShellKind::Powershell => ("powershell", Dialect::Powershell),
            ShellKind::Pwsh => ("pwsh", Dialect::Powershell),
        };
        let Some(path) = &choice.path else { return Self { program: program.into(), dialect } };
        // With `auto` only the name of the file says what it is.
        let dialect = match choice.kind {
            ShellKind::Auto => dialect_of(path),
            _ => dialect,
        };
        Self { program: path.into(), dialect }
    }

    /// Whether nobody can tell that a plain line was run without it: bash as it comes, started without a profile.
    pub(crate) fn is_usual(&self) -> bool {
        self.dialect == Dialect::Posix && (self.program == "bash" || self.program == "sh")
    }

    /// The command line that runs `line`.
    pub(crate) fn argv(&self, line: &str) -> Vec<OsString> {
        let options: &[&str] = match self.dialect {
            Dialect::Posix => &["-c"],
            Dialect::Powershell => &["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"],
        };
        let mut argv = vec![self.program.clone()];
        argv.extend(options.iter().map(OsString::from));
        argv.push(line.into());
        argv
    }
}

/// What bash would not look for on the path. Not all of it, but all that is also a program or that could be mistaken for one.
const OWN_WORDS: [&str; 80] = [
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "case",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "coproc",
    "declare",
    "dirs",
    "disown",
    "do",
    "done",
    "echo",
    "elif",
    "else",
    "enable",
    "esac",
    "eval",
    "exec",
    "exit",
    "export",
    "false",
    "fc",
    "fg",
    "fi",
    "for",
    "function",
    "getopts",
    "hash",
    "help",
    "history",
    "if",
    "in",
    "jobs",
    "kill",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "printf",
    "pushd",
    "pwd",
    "read",
    "readarray",
    "readonly",
    "return",
    "select",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "test",
    "then",
    "time",
    "times",
    "trap",
    "true",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "until",
    "wait",
    "while",
    ".",
    ":",
    "..",
    "env",
    "sh",
];

/// The words of a line in which nothing is left for a shell to do: a program and plain arguments. Starting bash takes longer
/// than most such programs run.
pub(crate) fn plain_words(line: &str) -> Option<Vec<&str>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,@%+=".contains(c);
    let words: Vec<&str> = line.split([' ', '\t']).filter(|word| !word.is_empty()).collect();
    let first = words.first()?;
    let is_program = !first.contains('=') && !OWN_WORDS.contains(first);
    (is_program && words.iter().all(|word| word.chars().all(plain))).then_some(words)
}

fn dialect_of(path: &Path) -> Dialect {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    if ["pwsh", "powershell"].contains(&name.as_str()) { Dialect::Powershell } else { Dialect::Posix }
}

/// Whether a program of this name is on the path.
pub(crate) fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(kind: ShellKind, path: Option<&str>, bash: bool) -> String {
        let choice = ShellChoice { kind, path: path.map(PathBuf::from) };
        let argv = Shell::choose(&choice, |name| name == "bash" && bash).argv("x y");
        argv.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn only_a_line_without_anything_for_a_shell_is_run_without_one() {
        assert_eq!(plain_words("cat  src/main.rs -n"), Some(vec!["cat", "src/main.rs", "-n"]));
        assert_eq!(plain_words("cargo test --lib a=b"), Some(vec!["cargo", "test", "--lib", "a=b"]));
        for line in [
            "",
            " ",
            "A=1 cat x",
            "cat $HOME",
            "cat 'x'",
            "cat \"x\"",
            "cat x | wc",
            "cat x; ls",
            "cat *",
            "cat ~/x",
            "cat x &",
            "cat {a,b}",
            "cat x > y",
            "cat #x",
            "cat a\\ b",
            "echo hi",
            "cd src",
            "time ls",
            "! true",
            "ls\nls",
            "cat [a]",
            "exit 3",
        ] {
            assert_eq!(plain_words(line), None, "{line:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_platforms_shell_is_taken_unless_another_is_preferred() {
        assert_eq!(argv(ShellKind::Auto, None, true), "bash|-c|x y");
        assert_eq!(argv(ShellKind::Auto, None, false), "sh|-c|x y");
        assert_eq!(argv(ShellKind::Bash, None, false), "bash|-c|x y");
        assert_eq!(argv(ShellKind::Pwsh, None, true), "pwsh|-NoLogo|-NoProfile|-NonInteractive|-Command|x y");
        assert!(argv(ShellKind::Powershell, None, true).starts_with("powershell|"));
        assert_eq!(argv(ShellKind::Bash, Some("/opt/bin/bash5"), true), "/opt/bin/bash5|-c|x y");
        assert_eq!(argv(ShellKind::Auto, Some("/bin/dash"), true), "/bin/dash|-c|x y");
        assert!(argv(ShellKind::Auto, Some("/opt/pwsh"), true).starts_with("/opt/pwsh|-NoLogo"));
    }
}
