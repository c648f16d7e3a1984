//! Connections that only read: opened when first needed, a few at most, used again.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use tokio::sync::{Semaphore, SemaphorePermit};

use super::script::script_error;
use super::{Connection, StoreError};

/// How many may read at once. Each has a thread and a page cache of its own; a face that lists while another searches is the
/// most that is usual.
const MOST: usize = 3;

pub(super) struct Readers {
    path: PathBuf,
    turns: Semaphore,
    idle: Mutex<Vec<Connection>>,
}

/// A connection on loan.
pub(super) struct Reader<'r> {
    connection: Option<Connection>,
    home: &'r Readers,
    _turn: SemaphorePermit<'r>,
}

impl Readers {
    pub fn new(path: PathBuf) -> Self {
        Self { path, turns: Semaphore::new(MOST), idle: Mutex::default() }
    }

    pub async fn get(&self) -> Result<Reader<'_>, StoreError> {
        let turn = self.turns.acquire().await.map_err(|_| StoreError::Closed)?;
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let connection = match idle {
            Some(connection) => connection,
            None => {
                self.connect().await.map_err(|error| script_error("open the database for reading", &error))?
            }
        };
        Ok(Reader { connection: Some(connection), home: self, _turn: turn })
    }

    async fn connect(&self) -> Result<Connection, sqlx::Error> {
        // Not opened read-only: a reader that comes first after a crash has to recover the log, which is a write.
        SqliteConnectOptions::new()
            .filename(&self.path)
            .foreign_keys(false)
            .pragma("query_only", "ON")
            .connect()
            .await
    }

    pub async fn close(&self) {
        self.turns.close();
        let idle = std::mem::take(&mut *self.idle.lock().unwrap_or_else(PoisonError::into_inner));
        for connection in idle {
            let _ = connection.close().await;
        }
    }
}

impl Reader<'_> {
    pub fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("a reader has its connection until it is dropped")
    }
}

impl Drop for Reader<'_> {
    fn drop(&mut self) {
        // Also when its future was dropped half way: the connection's thread stops the query when nobody takes its rows.
        if let Some(connection) = self.connection.take() {
            self.home.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}
