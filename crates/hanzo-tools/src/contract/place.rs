//! From what a caller wrote to a path, and from a path to where it really is.

use std::path::{Component, Path, PathBuf};

use hanzo_protocol::envelope::{ErrorCode, ToolError};
use hanzo_protocol::primitives::FileUri;
use hanzo_protocol::tool::{Place, ReachedPath};
use hanzo_sandbox::paths::{Access, PathError, Workspace};
use serde_json::json;

use super::action::{Target, Touch};

/// The path a caller means: a `file:` URI, an absolute path, or one relative to the workspace.
pub fn parse(given: &str) -> Result<PathBuf, ToolError> {
    let wrong = |what: String| Err(ToolError::new(ErrorCode::InvalidArguments, what));
    if given.is_empty() {
        return wrong("the path is empty; use `.` for the workspace".into());
    }
    if given.contains('\0') {
        return wrong("the path contains a NUL byte".into());
    }
    if given.starts_with("file:") {
        return match given.parse::<FileUri>() {
            Ok(uri) => Ok(uri.to_path()),
            Err(fault) => wrong(fault.to_string()),
        };
    }
    if let Some((scheme, _)) = given.split_once("://")
        && !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    {
        return wrong(format!("`{given}` is not a file; a path or a `file:///` URI is accepted here"));
    }
    Ok(PathBuf::from(given))
}

/// The URI of a real path.
pub fn uri(real: &Path) -> FileUri {
    FileUri::from_path(real).unwrap_or_else(|_| {
        let plain = lexical(&Path::new("/").join(real));
        FileUri::from_path(&plain).expect("a lexically plain absolute path has a URI")
    })
}

/// Where a target really is. Whatever cannot be told is outside: the gate must not be talked into more by a path that
/// confuses us.
pub(super) fn reached(workspace: &Workspace, target: &Target) -> ReachedPath {
    let given = target.given.clone();
    let Ok(path) = parse(&given) else {
        return ReachedPath { real: PathBuf::from(&given), given, place: Place::Outside };
    };
    let access = match target.touch {
        Touch::Read => Access::Read,
        Touch::Write => Access::Write,
    };
    match workspace.locate(&path, access) {
        Ok(real) => ReachedPath { given, place: place_of(workspace, &real), real },
        Err(error) => {
            let real = resolve_what_exists(workspace, &workspace.path().join(&path));
            let missing = error.io_kind() == Some(std::io::ErrorKind::NotFound);
            // A protected or unreadable path inside stays inside: policy decides there, and the layer refuses anyway.
            let decided = matches!(error, PathError::Protected { .. } | PathError::Unreadable { .. });
            let place = if missing || decided { place_of(workspace, &real) } else { Place::Outside };
            ReachedPath { given, real, place }
        }
    }
}

/// Which side of the wall a real path is on.
pub fn place_of(workspace: &Workspace, real: &Path) -> Place {
    let inside = workspace.writable_roots().into_iter().chain([workspace.path()]);
    if inside.into_iter().any(|root| real.starts_with(root)) { Place::Inside } else { Place::Outside }
}

/// Where a path is or would be: the real path of the longest part that exists, with the rest behind it.
pub fn resolve(workspace: &Workspace, path: &Path) -> PathBuf {
    resolve_what_exists(workspace, &workspace.path().join(path))
}

fn resolve_what_exists(workspace: &Workspace, path: &Path) -> PathBuf {
    for ancestor in path.ancestors() {
        let located = workspace.locate(ancestor, Access::Read).ok();
        if let Some(real) = located.or_else(|| std::fs::canonicalize(ancestor).ok()) {
            let rest = path.strip_prefix(ancestor).unwrap_or(Path::new(""));
            return lexical(&real.join(rest));
        }
    }
    lexical(path)
}

/// Without `.` and `..`, by the text alone.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

/// A path layer's error as a tool's.
pub fn failure(error: &PathError) -> ToolError {
    use std::io::ErrorKind;

    let code = match error {
        PathError::Outside { .. }
        | PathError::Unreadable { .. }
        | PathError::Protected { .. }
        | PathError::MagicLink { .. } => ErrorCode::SandboxDenied,
        PathError::Special { .. } => ErrorCode::Unsupported,
        PathError::Invalid { .. } => ErrorCode::InvalidArguments,
        PathError::Io { source, .. } => match source.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => ErrorCode::NotFound,
            ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty => ErrorCode::AlreadyExists,
            ErrorKind::IsADirectory => ErrorCode::InvalidArguments,
            ErrorKind::PermissionDenied => ErrorCode::Denied,
            _ => ErrorCode::Io,
        },
        _ => ErrorCode::Io,
    };
    let message = match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    };
    ToolError::new(code, message).with_details(json!({ "path": error.path().display().to_string() }))
}
