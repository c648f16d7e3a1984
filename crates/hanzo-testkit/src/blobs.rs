//! A [`BlobStore`] in memory.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use hanzo_protocol::BoxFuture;
use hanzo_protocol::blob::{BlobError, BlobStore};
use hanzo_protocol::primitives::ContentHash;

/// Keeps content as long as it lives.
#[derive(Debug, Default)]
pub struct MemoryBlobs(Mutex<HashMap<ContentHash, Vec<u8>>>);

impl BlobStore for MemoryBlobs {
    fn put<'a>(&'a self, content: &'a [u8]) -> BoxFuture<'a, Result<ContentHash, BlobError>> {
        let hash = ContentHash::of(content);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(hash.clone(), content.to_vec());
        Box::pin(async move { Ok(hash) })
    }

    fn get<'a>(&'a self, hash: &'a ContentHash) -> BoxFuture<'a, Result<Option<Vec<u8>>, BlobError>> {
        let found = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned();
        Box::pin(async move { Ok(found) })
    }
}
