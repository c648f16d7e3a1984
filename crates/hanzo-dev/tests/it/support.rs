//! A home, a workspace and the program.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

/// An empty home with an empty workspace in it.
pub struct World {
    home: TempDir,
}

/// What the program did.
#[derive(Debug)]
pub struct Ran {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl World {
    pub fn new() -> Self {
        let world = Self { home: TempDir::new().expect("a temporary directory") };
        std::fs::create_dir_all(world.workspace().join(".git")).expect("a workspace");
        world
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    pub fn workspace(&self) -> PathBuf {
        self.home().join("project")
    }

    /// Writes a file, named from the home directory.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> &Self {
        let path = self.home().join(name);
        std::fs::create_dir_all(path.parent().expect("a file has a directory")).expect("a directory");
        std::fs::write(path, content).expect("a file");
        self
    }

    pub fn user(&self, toml: &str) -> &Self {
        self.write(".config/hanzo/settings.toml", toml)
    }

    pub fn project(&self, toml: &str) -> &Self {
        self.write("project/.hanzo/settings.toml", toml)
    }

    /// Every file below the home, to see that nothing was written.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut open = vec![self.home().to_owned()];
        while let Some(directory) = open.pop() {
            for entry in std::fs::read_dir(directory).expect("a directory") {
                let entry = entry.expect("an entry");
                if entry.file_type().expect("a type").is_dir() {
                    open.push(entry.path());
                } else {
                    found.push(entry.path());
                }
            }
        }
        found.sort();
        found
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hanzo-dev"));
        // Commands of the agent are looked up there; nothing else of the environment gets in.
        let path = std::env::var_os("PATH").unwrap_or_default();
        command
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home())
            .current_dir(self.workspace())
            .args(arguments);
        command
    }

    pub fn run(&self, arguments: &[&str]) -> Ran {
        finish(&mut self.command(arguments), "")
    }

    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Ran {
        finish(&mut self.command(arguments), input)
    }

    pub fn run_with_env(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
        finish(self.command(arguments).envs(environment.iter().copied()), "")
    }
}

pub fn finish(command: &mut Command, input: &str) -> Ran {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The program may end without reading; that is its business.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    finish_child(child)
}

/// Waits for a program that was started.
pub fn finish_child(child: Child) -> Ran {
    let done = child.wait_with_output().expect("the program ends");
    Ran {
        code: done.status.code().unwrap_or(-1),
        stdout: String::from_utf8(done.stdout).expect("UTF-8"),
        stderr: String::from_utf8(done.stderr).expect("UTF-8"),
    }
}

impl Ran {
    /// The data, after making sure that all went well.
    pub fn ok(self) -> String {
        assert_eq!(self.code, 0, "{self:#?}");
        self.stdout
    }

    pub fn json(self) -> serde_json::Value {
        let text = self.ok();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
    }
}
