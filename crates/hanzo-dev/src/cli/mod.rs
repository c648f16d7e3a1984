//! The command line as data. What stands here is the help text, the manual page and `docs/cli.md`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

mod mcp;
mod run;
mod serve;

pub use mcp::{McpAddArgs, McpCommand, McpScope, McpTransport};
pub use run::{InputFormat, ModeArg, OutputFormat, PostureArg, RunArgs};
pub use serve::{McpCli, McpProgramCommand, ServeArgs};

/// A coding agent and tool server for any model, under a policy you understand
///
/// `hanzo-dev` opens the terminal face in this directory; `hanzo-dev run "fix the failing test"` gives the agent a task and
/// prints its answer; `hanzo-dev demo` shows one without a model.
/// Settings come from three tiers (user, project, local), the environment and the command line; `hanzo-dev config
/// explain KEY` says where a value came from. Exit codes: 0 success, 1 failure, 2 usage, 41 credentials, 42 bad input, 44
/// sandbox, 52 broken settings, 53 to 58 and 124 limits of `run`.
#[derive(Debug, Parser)]
#[command(name = "hanzo-dev", version = env!("HANZO_DEV_VERSION"))]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// The terminal face.
    #[command(flatten)]
    pub face: FaceArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// How the terminal face begins.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct FaceArgs {
    /// What to say first
    #[arg(value_name = "PROMPT")]
    pub prompt: Option<String>,

    /// Go on with the newest thread of this directory
    #[arg(short, long = "continue", conflicts_with = "resume")]
    pub continue_newest: bool,

    /// Go on with this thread; the start of its id is enough, without one it is chosen from a list
    #[arg(short, long, value_name = "ID", num_args = 0..=1, default_missing_value = "")]
    pub resume: Option<String>,

    /// No shapes, no colours, nothing that moves: for a screen reader
    #[arg(long)]
    pub screen_reader: bool,

    /// Draw on the alternate screen, as the setting `terminal.screen` says otherwise
    #[arg(long)]
    pub alternate_screen: bool,

    /// Take the mouse, as the setting `terminal.mouse` says otherwise
    #[arg(long)]
    pub mouse: bool,
}

impl FaceArgs {
    /// Whether anything was said about the face.
    pub fn is_given(&self) -> bool {
        let looks = self.screen_reader || self.alternate_screen || self.mouse;
        self.prompt.is_some() || self.continue_newest || self.resume.is_some() || looks
    }
}

/// What holds for every command.
#[derive(Debug, Clone, Args)]
pub struct Global {
    /// Work in DIR instead of the current directory
    #[arg(short = 'C', long = "directory", visible_alias = "cd", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,

    /// Use this model: a provider's name, a model's name, or `provider/model`
    #[arg(short, long, value_name = "MODEL", global = true)]
    pub model: Option<String>,

    /// Override a setting, as in `--config agent.max_steps=20`; the value is TOML, or else text
    #[arg(long = "config", value_name = "KEY=VALUE", global = true)]
    pub config: Vec<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Give the agent a task, and print its answer
    ///
    /// Nobody is asked anything: what needs consent runs inside the sandbox and is refused at its edge. For example
    /// `git diff | hanzo-dev run "review this" --mode plan`. Standard output is the answer alone; progress goes to standard
    /// error when that is a terminal. With `--output-format stream-json` the first line is `init`, then come the engine's
    /// notifications, and the last line is `result`, whatever happens.
    Run(Box<RunArgs>),

    /// See the agent work on a small repository, without a model and without a network
    ///
    /// The model's part is a recording. Everything else is real: the tools, the sandbox, the files, the test that fails
    /// first and passes then.
    Demo {
        /// Work in DIR, which must not exist or be empty, and keep it; a temporary directory when absent
        #[arg(long, value_name = "DIR")]
        keep: Option<PathBuf>,
    },

    /// Play a recording of `run --record` again, offline, with real tools
    Replay {
        /// The recording
        file: PathBuf,
        /// What to write to standard output
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        output_format: OutputFormat,
    },

    /// List, show, export, import and delete threads
    #[command(subcommand)]
    Threads(ThreadsCommand),

    /// Show what tools were called, what was decided about each call, and why
    Audit(AuditArgs),

    /// Call a tool, as an agent would: through the policy, in the sandbox
    ///
    /// For example `hanzo-dev tool fs read --json '{"uri": "Cargo.toml"}'`. Without an action it explains the tool, without
    /// a tool it lists them. Prints the result's envelope; the exit code is 1 when its `ok` is false and 56 when the call
    /// was refused.
    Tool {
        /// The tool, such as `fs`
        tool: Option<String>,
        /// Its action, such as `read`
        action: Option<String>,
        /// The arguments as a JSON object; `-` reads them from standard input
        #[arg(long, value_name = "JSON")]
        json: Option<String>,
        /// What to do about calls no rule speaks of; the setting `approval` when absent
        #[arg(long, value_enum, value_name = "POSTURE")]
        posture: Option<PostureArg>,
    },

    /// Find models and write a settings file to begin with
    ///
    /// Looks for keys of known vendors in the environment and for model servers on this machine (Ollama, LM Studio, llama.cpp,
    /// vLLM), and writes what it found, every other setting explained and commented out. A key itself is never written,
    /// only the name of its variable. In a file that is there already, providers it does not name yet are added and nothing
    /// else is changed. Without an option it is the user's file; `--project` and `--local` only write the explained defaults.
    Setup {
        /// Write the project's settings, to be committed
        #[arg(long, conflicts_with = "local")]
        project: bool,
        /// Write your own settings for this project, which git is told to ignore
        #[arg(long)]
        local: bool,
        /// Look for a model server at URL too, such as `http://192.168.1.7:8080/v1`
        #[arg(long, value_name = "URL", conflicts_with_all = ["project", "local"])]
        probe: Vec<String>,
    },

    /// Show the settings in force and where they come from
    #[command(subcommand)]
    Config(ConfigCommand),

    /// Say which workspaces you trust, and with what
    ///
    /// What a repository brings along that would run something, send something somewhere or loosen a rule is ignored until its
    /// workspace is trusted, and again when it changes.
    #[command(subcommand)]
    Trust(TrustCommand),

    /// Ask what the policy says about a tool call
    #[command(subcommand)]
    Permissions(PermissionsCommand),

    /// Run a command in the jail the agent's commands run in, or explain that jail
    ///
    /// Everything is read-only but the workspace and a private `/tmp`; the network is off and credentials cannot be read.
    /// For example `hanzo-dev sandbox -- cargo test`. The exit code is the command's own; 124 when it timed out, 44 when it
    /// could not be confined.
    Sandbox {
        /// Print the level in force, what may be written, what is missing and how to get it
        #[arg(long, conflicts_with = "command")]
        explain: bool,
        /// Print JSON, with `--explain`
        #[arg(long, requires = "explain")]
        json: bool,
        /// Let the command write to DIR too
        #[arg(long, value_name = "DIR")]
        write: Vec<PathBuf>,
        /// Let the command reach the network
        #[arg(long)]
        network: bool,
        /// Kill the command and all it started after SECONDS
        #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
        timeout: Option<u64>,
        /// The command and its arguments
        #[arg(last = true, value_name = "CMD", required_unless_present = "explain")]
        command: Vec<OsString>,
    },

    /// Serve our tools and agents to other programs over MCP, or manage the servers whose tools the agent can call
    ///
    /// Without a command it serves: at standard input and output, or with `--http` at an address. Every call goes through the
    /// policy as one of somebody from elsewhere: the workspace alone can be read, and the agent's capabilities bound it. Consent
    /// is asked of the person at the client where the client can ask them; otherwise what stays in the sandbox runs and the rest
    /// is refused.
    Mcp(Box<McpArgs>),

    /// Check that everything is in order: settings, sandbox, git
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },

    /// Print a completion script for a shell
    ///
    /// For example `hanzo-dev completions bash > ~/.local/share/bash-completion/completions/hanzo-dev`.
    Completions {
        /// The shell to complete for
        shell: Shell,
    },

    /// Print the manual page
    ///
    /// To read it: `hanzo-dev man | man -l -`.
    Man,
}

/// What `mcp` does.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// What to do about other people's servers; absent, this program is the server.
    #[command(subcommand)]
    pub command: Option<McpCommand>,
    /// How to serve.
    #[command(flatten)]
    pub serve: ServeArgs,
}

/// The commands about threads.
#[derive(Debug, Subcommand)]
pub enum ThreadsCommand {
    /// List the threads of this workspace, newest first
    List {
        /// Those of every workspace
        #[arg(long)]
        all: bool,
        /// Only threads in which TEXT occurs
        #[arg(long, value_name = "TEXT")]
        search: Option<String>,
        /// The most to list
        #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },

    /// Print a thread to read
    Show {
        /// The thread; the start of its id is enough
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },

    /// Write a thread out
    Export {
        /// The thread; the start of its id is enough
        id: String,
        /// `jsonl` can be imported again, `markdown` is to read
        #[arg(long, value_enum, value_name = "FORMAT", default_value_t)]
        format: ExportArg,
        /// Where to; standard output when absent
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },

    /// Take in a thread that was exported as `jsonl`
    Import {
        /// The file; `-` is standard input
        file: PathBuf,
    },

    /// Delete a thread for good
    Delete {
        /// The thread; the start of its id is enough
        id: String,
    },
}

/// As what a thread is written out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportArg {
    /// One item a line
    #[default]
    Jsonl,
    /// To read
    Markdown,
}

/// The options of `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// Only calls of this thread; the start of its id is enough
    #[arg(long, value_name = "ID")]
    pub thread: Option<String>,
    /// Only calls of this tool or action, such as `proc` or `fs.write`
    #[arg(long, value_name = "TOOL")]
    pub tool: Option<String>,
    /// Only calls with this decision: `allow`, `ask` or `deny`
    #[arg(long, value_name = "DECISION")]
    pub decision: Option<String>,
    /// Only calls since then: `2026-05-01`, `2026-05-01T10:00:00Z`, or an age such as `90m`, `24h`, `7d`
    #[arg(long, value_name = "WHEN")]
    pub since: Option<String>,
    /// The most to list
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Print JSON, one record a line
    #[arg(long)]
    pub json: bool,
}

/// The commands about settings.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print the settings in force, secrets masked
    Show {
        /// Say behind each value where it came from
        #[arg(long)]
        origins: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Take the workspace's settings as if it were trusted
        #[arg(long)]
        trusted: bool,
    },

    /// Say where one setting's value came from, what it overrode, and what was disabled
    Explain {
        /// The setting, such as `agent.max_steps` or `mcp_servers.github`
        key: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// Take the workspace's settings as if it were trusted
        #[arg(long)]
        trusted: bool,
    },

    /// Print the files settings are read from, and whether they exist
    Path {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The commands about trust.
#[derive(Debug, Subcommand)]
pub enum TrustCommand {
    /// List the workspaces you trust, and whether they are still as they were
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },

    /// Trust this workspace with the settings it has now, which are printed
    Add {
        /// Another workspace
        workspace: Option<PathBuf>,
    },

    /// Trust this workspace no longer
    Remove {
        /// Another workspace
        workspace: Option<PathBuf>,
    },
}

/// The commands about permissions.
#[derive(Debug, Subcommand)]
pub enum PermissionsCommand {
    /// Say what would happen to a tool call: allow, ask or deny, by which rule, from which file
    ///
    /// For example `hanzo-dev permissions explain --tool proc.exec --args '{"command": "git push"}'`.
    Explain {
        /// The tool, such as `fs.write`, `proc.exec` or `mcp__github__create_issue`
        #[arg(long, value_name = "TOOL")]
        tool: String,

        /// The arguments of the call as JSON; `-` reads them from standard input
        #[arg(long, value_name = "JSON", default_value = "{}")]
        args: String,

        /// Decide by the rules in FILE (TOML or JSON) instead of those of the settings
        #[arg(long, value_name = "FILE")]
        rules: Option<PathBuf>,

        /// Print JSON
        #[arg(long)]
        json: bool,

        /// Take the workspace's settings as if it were trusted
        #[arg(long)]
        trusted: bool,
    },
}
