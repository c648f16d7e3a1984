//! The `hanzo-dev` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    // First: the jail's supervisor is this same program under another name.
    hanzo_sandbox::run_personality();
    hanzo_dev::main(std::env::args_os())
}
