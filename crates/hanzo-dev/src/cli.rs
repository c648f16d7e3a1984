//! The command line as data. What stands here is the help text, the manual page and `docs/cli.md`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;

/// A coding agent and tool server for any model, under a policy you understand
///
/// Settings come from three tiers (user, project, local), the environment and the command line; `hanzo-dev config
/// explain KEY` says where a value came from. Exit codes: 0 success, 1 failure, 2 usage, 42 bad input, 44
/// sandbox, 52 broken settings.
#[derive(Debug, Parser)]
#[command(name = "hanzo-dev", version = env!("HANZO_DEV_VERSION"), arg_required_else_help = true)]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What holds for every command.
#[derive(Debug, Args)]
pub struct Global {
    /// Work in DIR instead of the current directory
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    pub directory: Option<PathBuf>,

    /// Use this model: a provider's name, a model's name, or `provider/model`
    #[arg(short, long, value_name = "MODEL", global = true)]
    pub model: Option<String>,

    /// Override a setting, as in `-c agent.max_steps=20`; the value is TOML, or else text
    #[arg(short, long = "config", value_name = "KEY=VALUE", global = true)]
    pub config: Vec<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Write a settings file to begin with, every setting explained and commented out
    ///
    /// Without an option it is the user's. A file that is there already is never touched.
    Setup {
        /// Write the project's settings, to be committed
        #[arg(long, conflicts_with = "local")]
        project: bool,
        /// Write your own settings for this project, which git is told to ignore
        #[arg(long)]
        local: bool,
    },

    /// Show the settings in force and where they come from
    #[command(subcommand)]
    Config(ConfigCommand),

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
