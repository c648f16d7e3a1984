//! The `hanzo-dev` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    hanzo_dev::main(std::env::args_os())
}
