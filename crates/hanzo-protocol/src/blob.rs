//! Keeping content by its hash: what tools read and wrote, the whole of an output that was shortened, the files of a
//! checkpoint. A capability that needs it is given a [`BlobStore`] by the composition root.

use crate::BoxFuture;
use crate::primitives::ContentHash;

/// Keeps content under its hash.
pub trait BlobStore: Send + Sync {
    /// Keeps `content`; content that is there already costs nothing.
    fn put<'a>(&'a self, content: &'a [u8]) -> BoxFuture<'a, Result<ContentHash, BlobError>>;

    /// The content of `hash`; `None` when it was never kept or has been swept away.
    fn get<'a>(&'a self, hash: &'a ContentHash) -> BoxFuture<'a, Result<Option<Vec<u8>>, BlobError>>;
}

// Held as `dyn` everywhere; this stops compiling when it no longer can be.
const _: Option<&dyn BlobStore> = None;

/// The store could not keep or return content.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {doing} stored content: {reason}")]
pub struct BlobError {
    /// `keep` or `read`.
    pub doing: &'static str,
    /// What the system said.
    pub reason: String,
}
