//! `docs/cli.md` and `docs/man/*.1`, from the command line's own definition.

use std::fmt::Write as _;

use anyhow::Result;
use clap::{Arg, Command, CommandFactory as _};
use hanzo_dev::cli::Cli;
use hanzo_dev::exit::Exit;

use crate::Documents;

pub fn add(documents: &mut Documents) -> Result<()> {
    // The version git knows changes with every commit; the pages carry the package's.
    let mut root = Cli::command().version(env!("CARGO_PKG_VERSION"));
    root.build();

    let mut page = String::from(
        "# Command line\n\nGenerated from the code by `cargo xtask docs`.\n\n## Exit codes\n\n| code | meaning |\n| --- | --- |\n",
    );
    for (exit, meaning) in Exit::ALL {
        writeln!(page, "| {} | {meaning} |", exit.code())?;
    }
    section(&mut page, &root)?;
    documents.insert("cli.md".into(), page);
    manual(documents, &root)
}

fn section(page: &mut String, command: &Command) -> Result<()> {
    let name = command.get_bin_name().unwrap_or(command.get_name());
    writeln!(page, "\n## {name}\n")?;
    if let Some(about) = command.get_long_about().or(command.get_about()) {
        writeln!(page, "{about}\n")?;
    }
    let usage = command.clone().render_usage().to_string();
    writeln!(page, "```text\n{}\n```", usage.trim().trim_start_matches("Usage: "))?;

    // Global options are described once, with the program itself.
    let is_root = !name.contains(' ');
    let shown = |argument: &&Arg| {
        let own = is_root || !argument.is_global_set();
        own && !argument.is_hide_set() && argument.get_id() != "help" && argument.get_id() != "version"
    };
    let arguments: Vec<&Arg> = command.get_arguments().filter(shown).collect();
    if !arguments.is_empty() {
        writeln!(page, "\n| option | meaning |\n| --- | --- |")?;
    }
    for argument in arguments {
        let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
        writeln!(page, "| `{}` | {help}{} |", spelling(argument), notes(argument))?;
    }
    for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
        section(page, subcommand)?;
    }
    Ok(())
}

fn spelling(argument: &Arg) -> String {
    let takes_value = argument.get_action().takes_values();
    let value = argument.get_value_names().and_then(|names| names.first()).map(ToString::to_string);
    let value = value.unwrap_or_else(|| argument.get_id().to_string().to_uppercase());
    let mut names: Vec<String> = argument.get_short().map(|short| format!("-{short}")).into_iter().collect();
    names.extend(argument.get_long().map(|long| format!("--{long}")));
    match (names.is_empty(), takes_value) {
        (true, _) => format!("<{value}>"),
        (false, true) => format!("{} {value}", names.join(", ")),
        (false, false) => names.join(", "),
    }
}

fn notes(argument: &Arg) -> String {
    let mut notes = String::new();
    let values: Vec<String> =
        argument.get_possible_values().iter().map(|value| format!("`{}`", value.get_name())).collect();
    if argument.get_action().takes_values() && !values.is_empty() {
        let _ = write!(notes, " ({})", values.join(", "));
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| format!("`{}`", value.to_string_lossy())).collect();
    if argument.get_action().takes_values() && !defaults.is_empty() {
        let _ = write!(notes, "; default {}", defaults.join(", "));
    }
    notes
}

fn manual(documents: &mut Documents, command: &Command) -> Result<()> {
    let name = command.get_bin_name().unwrap_or(command.get_name()).replace(' ', "-");
    // The root is built already; its names and versions reach the subcommands, which mangen renders alone.
    let page = clap_mangen::Man::new(command.clone().version(env!("CARGO_PKG_VERSION"))).title(&name);
    let mut roff = Vec::new();
    page.render(&mut roff)?;
    documents.insert(format!("man/{name}.1").into(), String::from_utf8(roff)?);
    for subcommand in command.get_subcommands().filter(|command| command.get_name() != "help") {
        manual(documents, subcommand)?;
    }
    Ok(())
}
