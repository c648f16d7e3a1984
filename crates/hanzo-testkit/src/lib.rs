//! What the tests of several crates share. A dev-dependency only: nothing here reaches a user.

pub mod blobs;
pub mod place;
#[cfg(unix)]
pub mod plain_spawner;
pub mod scale;
pub mod scripted;
pub mod vectors;
