//! The `hanzo-mcp` program: `hanzo-mcp serve` is `hanzo-dev mcp` under the name that client configurations know.

use std::process::ExitCode;

fn main() -> ExitCode {
    // First: the jail's supervisor is this same program under another name.
    hanzo_sandbox::run_personality();
    hanzo_dev::mcp_main(std::env::args_os())
}
