//! Several statements in one trip to the connection's thread. A trip costs more than a small statement does, so a commit is
//! one trip from `BEGIN` to `COMMIT`.

use futures_util::TryStreamExt as _;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments as _, AssertSqlSafe, Either, Error, Executor as _, Sqlite};

use uuid::Uuid;

use super::{Connection, StoreError};

/// Scripts of at most so many statements stay prepared. Longer ones are rare and each of another shape: they are sent statement
/// by statement, each of which stays prepared.
const KEPT_WHOLE: usize = 6;

/// Statements that succeed or fail together.
#[derive(Default)]
pub(super) struct Script {
    steps: Vec<Step>,
}

struct Step {
    sql: &'static str,
    parameters: Vec<Parameter>,
}

/// A parameter of a statement.
pub(super) enum Parameter {
    /// Nothing.
    Null,
    /// A number.
    Integer(i64),
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl From<i64> for Parameter {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<String> for Parameter {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Parameter {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Uuid> for Parameter {
    fn from(id: Uuid) -> Self {
        Self::Bytes(id.as_bytes().to_vec())
    }
}

impl<T: Into<Parameter>> From<Option<T>> for Parameter {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// What each statement changed, and the rows they returned.
#[derive(Default)]
pub(super) struct Ran {
    pub changed: Vec<u64>,
    pub rows: Vec<SqliteRow>,
}

impl Script {
    /// Adds a statement; its parameters follow with [`bind`](Self::bind), in order of their `?`.
    pub fn step(&mut self, sql: &'static str) -> &mut Self {
        self.steps.push(Step { sql, parameters: Vec::new() });
        self
    }

    /// The next parameter of the statement added last.
    pub fn bind(&mut self, value: impl Into<Parameter>) -> &mut Self {
        self.steps.last_mut().expect("a statement comes before its parameters").parameters.push(value.into());
        self
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Runs all statements in one transaction.
    pub async fn transact(self, connection: &mut Connection, doing: &'static str) -> Result<Ran, StoreError> {
        let mut whole = Self::default();
        whole.step("BEGIN IMMEDIATE");
        whole.steps.extend(self.steps);
        whole.step("COMMIT");
        let ran = if whole.steps.len() <= KEPT_WHOLE + 2 {
            whole.at_once(connection).await
        } else {
            whole.one_by_one(connection).await
        };
        match ran {
            // What `BEGIN` and `COMMIT` changed is of no interest.
            Ok(mut ran) => {
                ran.changed.pop();
                ran.changed.remove(0);
                Ok(ran)
            }
            Err(error) => {
                Self::rollback(connection).await;
                Err(script_error(doing, &error))
            }
        }
    }

    /// Runs the only statement, outside a transaction.
    pub async fn run(self, connection: &mut Connection, doing: &'static str) -> Result<Ran, StoreError> {
        self.at_once(connection).await.map_err(|error| script_error(doing, &error))
    }

    async fn at_once(self, connection: &mut Connection) -> Result<Ran, Error> {
        let mut sql = String::with_capacity(self.steps.iter().map(|step| step.sql.len() + 2).sum());
        let mut arguments = SqliteArguments::default();
        for step in self.steps {
            sql.push_str(step.sql);
            sql.push_str(";\n");
            for parameter in step.parameters {
                match parameter {
                    Parameter::Null => arguments.add(None::<i64>),
                    Parameter::Integer(number) => arguments.add(number),
                    Parameter::Text(text) => arguments.add(text),
                    Parameter::Bytes(bytes) => arguments.add(bytes),
                }
                .map_err(Error::Encode)?;
            }
        }
        let mut ran = Ran::default();
        let mut results = connection.fetch_many(sqlx::query_with::<Sqlite, _>(AssertSqlSafe(sql), arguments));
        while let Some(result) = results.try_next().await? {
            match result {
                Either::Left(done) => ran.changed.push(done.rows_affected()),
                Either::Right(row) => ran.rows.push(row),
            }
        }
        Ok(ran)
    }

    async fn one_by_one(self, connection: &mut Connection) -> Result<Ran, Error> {
        let mut all = Ran::default();
        for step in self.steps {
            let one = Self { steps: vec![step] }.at_once(&mut *connection).await?;
            all.changed.extend(one.changed);
            all.rows.extend(one.rows);
        }
        Ok(all)
    }

    /// Runs SQL that has no parameters and is not worth keeping prepared.
    pub async fn raw(connection: &mut Connection, sql: impl Into<String>) -> Result<(), Error> {
        connection.execute(sqlx::raw_sql(AssertSqlSafe(sql.into()))).await.map(|_| ())
    }

    /// Ends a transaction that failed. SQLite ends some by itself, so that there may be none: not an error.
    pub async fn rollback(connection: &mut Connection) {
        let _ = Self::raw(connection, "ROLLBACK").await;
    }
}

/// What SQLite calls its failures: <https://www.sqlite.org/rescode.html>.
mod code {
    pub const GENERIC: i32 = 1;
    pub const BUSY: i32 = 5;
    pub const LOCKED: i32 = 6;
    pub const IO: i32 = 10;
    pub const CORRUPT: i32 = 11;
    pub const FULL: i32 = 13;
    pub const NOT_A_DATABASE: i32 = 26;
    pub const IO_SHARED_SIZE: i32 = 4874;
}

/// The number SQLite gave to a failure.
fn code_of(error: &Error) -> Option<i32> {
    error.as_database_error()?.code()?.parse().ok()
}

/// A failure of SQLite in our words.
pub(super) fn script_error(doing: &'static str, error: &Error) -> StoreError {
    let reason =
        error.as_database_error().map_or_else(|| error.to_string(), |error| error.message().to_owned());
    let code = code_of(error);
    match code.map(|code| code & 0xff) {
        // The index of the log could not grow: the way a full disk shows there.
        Some(code::IO) if code == Some(code::IO_SHARED_SIZE) => StoreError::DiskFull { doing },
        // Our statements never change and name what the schema has: where they do not fit it, it is not what we wrote.
        Some(code::GENERIC) if reason.starts_with("no such") => StoreError::Damaged { doing, reason },
        Some(code::FULL) => StoreError::DiskFull { doing },
        Some(code::BUSY | code::LOCKED) => StoreError::Busy { doing },
        Some(code::CORRUPT | code::NOT_A_DATABASE) => StoreError::Damaged { doing, reason },
        _ if matches!(error, Error::WorkerCrashed) => StoreError::Closed,
        _ => StoreError::Database { doing, reason },
    }
}
