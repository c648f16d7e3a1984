//! Threads, items, audit records and content of hanzo-dev, kept so that nothing acknowledged is lost.
//!
//! * [`Store`]: threads, items, audit records, checkpoints and the search over them; [`SqliteStore`] keeps them in one file.
//! * [`FileBlobs`]: content by its hash. [`Checkpointer`]: the files of a workspace, to be taken back.
//! * [`export`]: threads as documents, and back.
//! * [`AuditBuffer`]: audit records that are written together.

mod audit_buffer;
mod blobs;
mod checkpoint;
mod error;
pub mod export;
mod lease;
mod model;
mod process;
mod sqlite;
mod store;
mod text;

pub use audit_buffer::AuditBuffer;
pub use blobs::{FileBlobs, Swept};
pub use checkpoint::{
    ChangedSince, Checkpoint, CheckpointLimits, Checkpointer, FileChange, LeftOut, LeftOutWhy, NotRestored,
    RestoreOptions, Restored,
};
pub use error::StoreError;
pub use lease::{Holder, Lease};
pub use model::{
    AuditEntry, AuditFilter, Batch, CheckpointRecord, Durability, ItemQuery, ItemsFrom, JsonText, Moment,
    SearchHit, SearchQuery, SearchScope, StoredItem, ThreadChange, ThreadFilter, ThreadRecord,
};
pub use sqlite::{OpenOptions, OpenReport, SqliteStore};
pub use store::{Store, Stored};
