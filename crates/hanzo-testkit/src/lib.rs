//! What the tests of several crates share. A dev-dependency only: nothing here reaches a user.

pub mod blobs;
mod measured;
mod not_run;
mod nothing;
pub mod place;
#[cfg(unix)]
pub mod plain_spawner;
pub mod scale;
pub mod scripted;
pub mod vectors;

pub use measured::measured;
pub use not_run::{FILE_VARIABLE as NOT_RUN_VARIABLE, not_run};
pub use nothing::Nothing;
