//! `fs`: files and directories, by bytes and paths.

use std::path::Path;

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::primitives::ContentHash;
use hanzo_protocol::tool::{Place, ToolCaller};

use crate::contract::{Call, ToolBuilder, UnifiedTool, place};
use crate::host::Host;

mod apply_patch;
mod content;
mod diff;
mod diff_text;
mod journal;
mod large;
mod list;
mod part;
mod plan;
mod read;
mod search_text;
mod shape;
mod text;
mod transaction;

pub use journal::recover;

/// The tool, to be given a host.
pub fn tool() -> ToolBuilder {
    UnifiedTool::builder(
        "fs",
        "Files. Paths are relative to the workspace, lines count from 0. \
         apply_patch needs the hash from read as base_hash.",
    )
    .action(read::Read)
    .action(search_text::SearchText)
    .action(list::List)
    .action(apply_patch::ApplyPatch)
    .action(shape::Write)
    .action(shape::Mkdir)
    .action(shape::Mv)
    .action(shape::Rm)
    .action(shape::Stat)
    .action(diff::Diff)
    .example_of("apply_patch")
}

/// The names a path goes by in other vocabularies.
const PATH_ALIASES: &[(&str, &str)] =
    &[("uri", "path"), ("file_path", "path"), ("file", "path"), ("filename", "path"), ("directory", "path")];

/// What content from `real` is to be marked as. Remote callers get nothing from outside.
pub(crate) fn taint(host: &Host, real: &Path, caller: ToolCaller) -> Result<Option<Taint>, ToolError> {
    match (place::place_of(&host.workspace, real), caller) {
        (Place::Inside, _) => Ok(host.ledger.taint_at(real)),
        (Place::Outside, ToolCaller::Local) => Ok(Some(Taint::Outside)),
        (Place::Outside, ToolCaller::Remote) => Err(ToolError::new(
            ErrorCode::Denied,
            format!("`{}` is outside the workspace, which a remote caller may not read", real.display()),
        )),
    }
}

/// Kept content, by its hash.
async fn content(call: &Call<'_>, hash: &ContentHash) -> Result<Vec<u8>, ToolError> {
    let kept = call.host.ledger.content(&call.host.blobs, hash).await;
    let kept = kept.map_err(|fault| ToolError::new(ErrorCode::Io, fault.to_string()))?;
    kept.ok_or_else(|| {
        ToolError::new(
            ErrorCode::NotFound,
            format!("no content with the hash `{hash}` is kept; only what was read or written here is"),
        )
    })
}

/// The name of a file in a diff: relative to the workspace when it is inside.
fn diff_name(host: &Host, real: &Path) -> String {
    let name =
        real.strip_prefix(host.workspace.path()).unwrap_or_else(|_| real.strip_prefix("/").unwrap_or(real));
    name.to_string_lossy().into_owned()
}
