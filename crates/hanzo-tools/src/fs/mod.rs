//! `fs`: files and directories, by bytes and paths.

use crate::contract::{ToolBuilder, UnifiedTool};

mod read;
mod text;

/// The tool, to be given a host.
pub fn tool() -> ToolBuilder {
    UnifiedTool::builder(
        "fs",
        "Files. Paths are relative to the workspace; lines and columns count from 0. \
         Edit with apply_patch, giving the hash that read returned as base_hash.",
    )
    .action(read::Read)
}

/// The names a path goes by in other vocabularies.
const PATH_ALIASES: &[(&str, &str)] =
    &[("uri", "path"), ("file_path", "path"), ("file", "path"), ("filename", "path")];
