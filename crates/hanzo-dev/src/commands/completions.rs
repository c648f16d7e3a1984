//! `hanzo-dev completions` and `hanzo-dev man`: what a package installs beside the program.

use clap::CommandFactory as _;
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Failure;
use crate::output::Printer;

/// Prints the completion script of `shell`.
pub fn shell(shell: Shell, printer: &mut Printer) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "hanzo-dev", &mut script);
    printer.raw(&script)
}

/// Prints the manual page.
pub fn man(printer: &mut Printer) -> Result<(), Failure> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    printer.raw(&page)
}
