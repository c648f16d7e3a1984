//! Lists source files that have grown too long to have one reason to change. A warning, not a failure: a table may be
//! long.

use anyhow::Result;

use crate::workspace;

/// Past this a file is listed.
const TOO_LONG: usize = 800;
/// What a file should stay under.
const TARGET: usize = 600;

/// Prints the files that are too long.
pub fn warn() -> Result<()> {
    let listed = workspace::output(
        std::process::Command::new("git").current_dir(workspace::root()).args(["ls-files", "-z", "*.rs"]),
    )?;
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        // A file git knows of may have been deleted in the working tree.
        let Ok(text) = std::fs::read_to_string(workspace::root().join(name)) else { continue };
        let lines = text.lines().count();
        if lines > TOO_LONG && !text.contains("@generated") {
            println!(
                "warning: {name} has {lines} lines; the target is {TARGET}, and past that it is two files"
            );
        }
    }
    Ok(())
}
