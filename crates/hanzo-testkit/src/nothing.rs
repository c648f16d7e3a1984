//! What stands where a test or a benchmark needs neither blobs nor processes.

use hanzo_protocol::BoxFuture;
use hanzo_protocol::blob::{BlobError, BlobStore};
use hanzo_protocol::primitives::ContentHash;
use hanzo_protocol::spawn::{Confinement, Process, SpawnError, SpawnRequest, Spawner};

/// Keeps nothing, hashes nothing and starts nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

impl BlobStore for Nothing {
    fn put<'a>(&'a self, _: &'a [u8]) -> BoxFuture<'a, Result<ContentHash, BlobError>> {
        Box::pin(async { Ok(ContentHash::of(b"")) })
    }

    fn get<'a>(&'a self, _: &'a ContentHash) -> BoxFuture<'a, Result<Option<Vec<u8>>, BlobError>> {
        Box::pin(async { Ok(None) })
    }
}

impl Spawner for Nothing {
    fn confinement(&self) -> Confinement {
        Confinement { level: "path-check".into(), writable: Vec::new(), network: false, tmp: None }
    }

    fn spawn(&self, _: SpawnRequest) -> BoxFuture<'_, Result<Box<dyn Process>, SpawnError>> {
        Box::pin(async { Err(SpawnError::Confinement("nothing is started here".into())) })
    }
}
