//! Opening: fast when all is well, and never without a database when it is not.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use hanzo_protocol::item::NoticeLevel;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

use super::script::{Script, script_error};
use super::{Connection, SqliteStore, StoreError, index, rescue, schema, wal};

/// The name of the database in its directory.
pub(super) const FILE: &str = "hanzo.db";

/// How long opening waits for another process that opens at the same moment.
const PATIENCE: Duration = Duration::from_secs(5);

/// How to open a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenOptions {
    /// The most pages of 4 KiB the database may grow to; no limit when absent. Beyond it, writing fails as on a full disk.
    pub max_pages: Option<u32>,
}

/// What the user should know about how the store was opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OpenReport {
    /// Sentences to show, in order.
    pub notices: Vec<(NoticeLevel, String)>,
}

impl OpenReport {
    pub(super) fn inform(&mut self, text: impl Into<String>) {
        self.notices.push((NoticeLevel::Info, text.into()));
    }

    pub(super) fn warn(&mut self, text: impl Into<String>) {
        self.notices.push((NoticeLevel::Warning, text.into()));
    }
}

const OPEN: &str = "open the database";

pub(super) async fn open(
    directory: &Path,
    options: OpenOptions,
) -> Result<(SqliteStore, OpenReport), StoreError> {
    make_directory(directory)?;
    let path = directory.join(FILE);
    let mut report = OpenReport::default();
    let opened = if rescue::is_suspect(&path) {
        check_then_connect(&path, &mut report).await
    } else {
        connect(&path, &mut report).await
    };
    let mut opened = match opened {
        Err(StoreError::Damaged { reason, .. }) => rescue::replace(&path, &reason, &mut report).await?,
        opened => opened?,
    };
    if let Some(pages) = options.max_pages {
        let limited = Script::raw(&mut opened.connection, format!("PRAGMA max_page_count = {pages}")).await;
        limited.map_err(|error| script_error(OPEN, &error))?;
    }
    Ok((SqliteStore::start(opened.connection, Some(path), opened.fresh), report))
}

pub(super) async fn in_memory() -> Result<SqliteStore, StoreError> {
    let options = SqliteConnectOptions::new().filename(":memory:").in_memory(true).foreign_keys(false);
    let mut connection = options.connect().await.map_err(|error| script_error(OPEN, &error))?;
    schema::migrate(&mut connection, 0).await?;
    Ok(SqliteStore::start(connection, None, false))
}

/// A database that can be used.
pub(super) struct Opened {
    pub connection: Connection,
    /// Whether it was made just now.
    pub fresh: bool,
}

/// Opens the database, or makes it. [`StoreError::Damaged`] when it cannot be read.
pub(super) async fn connect(path: &Path, report: &mut OpenReport) -> Result<Opened, StoreError> {
    let fresh = make_file(path)?;
    // A database this process has open already is not recovered now.
    let claimed = if index::is_in_use(path) { None } else { wal::claimed(path) };
    let began = std::time::Instant::now();
    let mut connection = loop {
        match try_connect(path, fresh).await {
            // Switching to the log mode cannot wait for a lock by itself.
            Err(StoreError::Busy { .. }) if began.elapsed() < PATIENCE => {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            result => break result?,
        }
    };
    if let Some(claimed) = claimed {
        match wal::torn(&mut connection, path, claimed).await? {
            wal::Torn::Nothing => {}
            wal::Torn::LastWrite => report.inform(
                "the process before ended while it was writing: that last write is missing, everything before it is there",
            ),
            wal::Torn::More => report.warn(
                "the log of the database was torn, as after a power failure: what was written last is missing, everything before it is there",
            ),
        }
    }
    Ok(Opened { connection, fresh })
}

async fn try_connect(path: &Path, fresh: bool) -> Result<Connection, StoreError> {
    let mut connection = SqliteConnectOptions::new()
        .filename(path)
        .foreign_keys(false)
        .connect()
        .await
        .map_err(|error| script_error(OPEN, &error))?;
    // Nothing is lost when a new and empty file is torn, so it is made without waiting for the disk. The first
    // `Durability::Disk` makes up for it.
    // What is written is seldom looked at again by this connection, so a megabyte of it is enough to remember.
    let setup = if fresh {
        "PRAGMA cache_size = -1024; PRAGMA synchronous = OFF; PRAGMA journal_mode = WAL"
    } else {
        "PRAGMA cache_size = -1024; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL"
    };
    Script::raw(&mut connection, setup).await.map_err(|error| script_error(OPEN, &error))?;
    // Counting the tables makes SQLite read and understand all of the schema.
    let mut script = Script::default();
    script.step(
        "SELECT user_version, (SELECT count(*) FROM sqlite_schema), \
         (SELECT count(*) FROM sqlite_schema WHERE name IN ('threads', 'items', 'items_cursor', 'items_active', \
         'audit', 'audit_at', 'audit_thread', 'checkpoints', 'checkpoints_thread', 'checkpoints_workspace', \
         'leases', 'texts')) FROM pragma_user_version",
    );
    let ran = script.run(&mut connection, OPEN).await?;
    let column = |index: usize| -> Result<i64, StoreError> {
        let row = ran.rows.first().ok_or_else(|| StoreError::invalid(OPEN, "it has no version"))?;
        row.try_get(index).map_err(|error| StoreError::invalid(OPEN, error))
    };
    let (found, tables) = (column(0)?, column(1)?);
    if found > schema::VERSION {
        let _ = connection.close().await;
        return Err(StoreError::TooNew { path: path.to_owned(), found, known: schema::VERSION });
    }
    if found == 0 && tables > 0 && !fresh {
        // Somebody else's database under our name, or ours with its head cut off: not to be written into.
        let known = schema_is_ours(&mut connection).await?;
        if !known {
            let _ = connection.close().await;
            return Err(StoreError::Damaged {
                doing: OPEN,
                reason: "it is not a database of this program".into(),
            });
        }
    }
    if found == schema::VERSION && column(2)? < schema::NAMES {
        let _ = connection.close().await;
        return Err(StoreError::Damaged { doing: OPEN, reason: "tables are missing".into() });
    }
    if found < schema::VERSION {
        schema::migrate(&mut connection, found.max(0)).await?;
    }
    if fresh {
        let synced = Script::raw(&mut connection, "PRAGMA synchronous = NORMAL").await;
        synced.map_err(|error| script_error(OPEN, &error))?;
    }
    Ok(connection)
}

/// Whether tables without a version are ours, being made by another process at this moment.
async fn schema_is_ours(connection: &mut Connection) -> Result<bool, StoreError> {
    let mut script = Script::default();
    script.step("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'threads'");
    Ok(!script.run(connection, OPEN).await?.rows.is_empty())
}

/// Opens a database that failed before: every page is looked at first.
async fn check_then_connect(path: &Path, report: &mut OpenReport) -> Result<Opened, StoreError> {
    let mut opened = connect(path, report).await?;
    let mut script = Script::default();
    script.step("PRAGMA integrity_check(1)");
    let ran = script.run(&mut opened.connection, "check the database").await?;
    let verdict: String = ran.rows.first().and_then(|row| row.try_get(0).ok()).unwrap_or_default();
    if verdict == "ok" {
        rescue::clear_suspicion(path);
        return Ok(opened);
    }
    let _ = opened.connection.close().await;
    Err(StoreError::Damaged { doing: OPEN, reason: verdict })
}

/// Makes the directory, for its owner alone.
fn make_directory(directory: &Path) -> Result<(), StoreError> {
    if directory.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(|error| StoreError::file("make the directory", directory, &error))
}

/// Makes an empty file for its owner alone (the log gets the same mode); whether it was made. A file that is there is not
/// opened: closing it again would cost this process the locks it has on it.
fn make_file(path: &Path) -> Result<bool, StoreError> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(StoreError::file("make the database", path, &error)),
    }
}
