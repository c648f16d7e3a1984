//! The composition root: the command line, and the place where the parts are put together. It decides exit codes and
//! words on screen; it holds no business rules.

pub mod cli;
mod commands;
pub mod exit;
pub mod headless;
mod output;
mod policy;
pub mod root;
pub mod sandbox;
mod secret;
#[cfg(target_os = "linux")]
pub mod spawner;

use std::ffi::OsString;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;

use crate::cli::{Cli, Command, McpCli, McpProgramCommand};
use crate::exit::{Exit, Failure};
use crate::output::Printer;
use crate::sandbox::Overrides;

/// Runs `hanzo-dev` with `arguments`, the program's own name first.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    program(Cli::try_parse_from(arguments), run)
}

/// Runs `hanzo-mcp` with `arguments`, the program's own name first.
pub fn mcp_main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    program(McpCli::try_parse_from(arguments), |cli, printer| match &cli.command {
        McpProgramCommand::Serve(args) => commands::serve::run(&cli.global, args, printer),
    })
}

fn program<T>(
    parsed: Result<T, clap::Error>,
    run: impl FnOnce(&T, &mut Printer) -> Result<ExitCode, Failure>,
) -> ExitCode {
    let mut printer = Printer::standard();
    let outcome = match parsed {
        Ok(cli) => run(&cli, &mut printer),
        // Help and version arrive here too; clap knows which stream and colour each wants.
        Err(message) => {
            let exit = if message.use_stderr() { Exit::Usage } else { Exit::Ok };
            return match message.print() {
                Ok(()) => exit.into(),
                Err(_) => Exit::Failure.into(),
            };
        }
    };
    let outcome = outcome.and_then(|code| printer.flush().map(|()| code));
    match outcome {
        Ok(code) => code,
        // Whoever reads us has had enough, as in `hanzo-dev config show | head -1`.
        Err(failure) if failure.is_broken_pipe() => Exit::Ok.into(),
        Err(failure) => {
            printer.failure(&failure);
            failure.exit().into()
        }
    }
}

fn run(cli: &Cli, printer: &mut Printer) -> Result<ExitCode, Failure> {
    let global = &cli.global;
    let Some(command) = &cli.command else { return commands::face::run(global, &cli.face) };
    if cli.face.is_given() {
        let text = "what stands before the command is for the terminal face, which is not opened with a command\n\nhint: put \
                    options behind the command, and a prompt of several words in quotes";
        return Err(Failure::message(Exit::Usage, text));
    }
    match command {
        Command::Setup { project, local, probe } => {
            let wanted = commands::setup::Wanted { project: *project, local: *local, probe };
            commands::setup::run(global, &wanted, printer)?;
        }
        Command::Config(command) => commands::config::run(global, command, printer)?,
        Command::Trust(command) => commands::trust::run(global, command, printer)?,
        Command::Permissions(command) => commands::permissions::run(global, command, printer)?,
        Command::Sandbox { explain, json, write, network, timeout, command } => {
            let timeout = timeout.map(Duration::from_secs);
            let overrides = Overrides { write: write.clone(), network: *network, timeout };
            return match explain {
                true => commands::sandbox::explain(global, &overrides, *json, printer),
                false => commands::sandbox::run(global, &overrides, command, printer),
            };
        }
        Command::Run(args) => return commands::run::run(global, args),
        Command::Demo { keep } => return commands::demo::demo(global, keep.as_deref(), printer),
        Command::Replay { file, output_format } => {
            return commands::demo::replay(global, file, *output_format);
        }
        Command::Threads(command) => commands::threads::run(global, command, printer)?,
        Command::Audit(args) => commands::audit::run(global, args, printer)?,
        Command::Tool { tool, action, json, posture } => {
            let wanted = commands::tool::Wanted {
                tool: tool.as_deref(),
                action: action.as_deref(),
                json: json.as_deref(),
                posture: posture.map(Into::into),
            };
            return commands::tool::run(global, &wanted, printer);
        }
        Command::Mcp(args) => {
            return match &args.command {
                None => commands::serve::run(global, &args.serve, printer),
                // Said here and not by the parser, which would refuse `-C` before a command as well.
                Some(_) if args.serve.says_something() => {
                    let text = "the options of serving have no meaning for the commands of `mcp`\n\nhint: leave out either the options or the command";
                    Err(Failure::message(Exit::Usage, text))
                }
                Some(command) => commands::mcp::run(global, command, printer),
            };
        }
        Command::Doctor { json } => return commands::doctor::run(global, *json, printer),
        Command::Completions { shell } => commands::completions::shell(*shell, printer)?,
        Command::Man => commands::completions::man(printer)?,
    }
    Ok(Exit::Ok.into())
}
