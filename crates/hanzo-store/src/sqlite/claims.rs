//! Leases in the database. A lease is a row with its holder and a token of its own: taking it over from a holder that is gone
//! compares that token, so that of two who try only one succeeds.
//!
//! A holder on this system is asked for directly: its process runs, or not. One on another machine (a home directory on a file
//! server) cannot be asked; it has to renew the lease, and loses it when it did not for [`EXPIRY`].

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use hanzo_protocol::ids::ThreadId;
use jiff::Timestamp;
use sqlx::Row as _;
use tokio::runtime::Handle;
use uuid::Uuid;

use super::script::Script;
use super::write::{integer, json};
use super::{Inner, SqliteStore, Writer};
use crate::lease::Release;
use crate::{Holder, Lease, StoreError};

/// How often leases are renewed.
const BEAT: Duration = Duration::from_secs(10);

/// How long a holder on another machine keeps a lease it does not renew.
const EXPIRY: Duration = Duration::from_mins(1);

const CLAIM: &str = "open the thread for writing";

/// The leases this process has, of all its stores: two engines in one process are told apart by them.
static LIVE: Mutex<Option<HashSet<Uuid>>> = Mutex::new(None);

fn live<T>(look: impl FnOnce(&mut HashSet<Uuid>) -> T) -> T {
    look(LIVE.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

#[derive(Default)]
pub(super) struct Claims {
    /// Whether the task that renews leases runs.
    beating: AtomicBool,
}

struct Holding {
    token: Uuid,
    by: Holder,
    beat: i64,
}

impl Holding {
    /// Whether the holder may still write.
    fn counts(&self) -> bool {
        let here = Holder::here("");
        if self.by.is_same_process(&here) {
            return live(|tokens| tokens.contains(&self.token));
        }
        if self.by.is_near(&here) {
            return self.by.is_running();
        }
        milliseconds() - self.beat < integer(EXPIRY.as_millis().try_into().unwrap_or(u64::MAX))
    }
}

fn milliseconds() -> i64 {
    Timestamp::now().as_millisecond()
}

pub(super) async fn claim(store: SqliteStore, id: ThreadId, holder: Holder) -> Result<Lease, StoreError> {
    let token = Uuid::now_v7();
    // Before the row: whoever sees the row must see that it counts.
    live(|tokens| tokens.insert(token));
    let taken = store.write(move |writer| Box::pin(take(writer, id, token, holder))).await;
    if let Err(error) = taken {
        live(|tokens| tokens.remove(&token));
        return Err(error);
    }
    beat(&store.inner);
    let release = Releaser { runtime: Handle::current(), store: Arc::downgrade(&store.inner) };
    Ok(Lease::new(id, token, Arc::new(release)))
}

async fn take(writer: &mut Writer, id: ThreadId, token: Uuid, holder: Holder) -> Result<(), StoreError> {
    writer.key(id, CLAIM).await?;
    let text = json(CLAIM, &holder)?;
    let mut script = Script::default();
    script
        .step(
            "INSERT INTO leases (thread, token, beat, holder) VALUES (?, ?, ?, ?) ON CONFLICT (thread) DO NOTHING",
        )
        .bind(id.as_uuid())
        .bind(token)
        .bind(milliseconds())
        .bind(text.as_str());
    if script.transact(&mut writer.connection, CLAIM).await?.changed == [1] {
        return Ok(());
    }
    let Some(before) = holding(&mut writer.connection, id).await? else {
        // Given back in between.
        return Box::pin(take(writer, id, token, holder)).await;
    };
    if before.counts() {
        return Err(StoreError::Held { thread: id, by: Box::new(before.by) });
    }
    let mut script = Script::default();
    script
        .step("UPDATE leases SET token = ?, beat = ?, holder = ? WHERE thread = ? AND token = ?")
        .bind(token)
        .bind(milliseconds())
        .bind(text)
        .bind(id.as_uuid())
        .bind(before.token);
    if script.transact(&mut writer.connection, CLAIM).await?.changed == [1] {
        return Ok(());
    }
    // Somebody else took it over in between.
    Box::pin(take(writer, id, token, holder)).await
}

async fn holding(connection: &mut super::Connection, id: ThreadId) -> Result<Option<Holding>, StoreError> {
    let mut script = Script::default();
    script.step("SELECT token, beat, holder FROM leases WHERE thread = ?").bind(id.as_uuid());
    let ran = script.run(connection, CLAIM).await?;
    let Some(row) = ran.rows.first() else { return Ok(None) };
    let decode = || -> Result<Holding, Box<dyn std::error::Error>> {
        Ok(Holding {
            token: Uuid::from_slice(row.try_get(0)?)?,
            beat: row.try_get(1)?,
            by: serde_json::from_str(row.try_get(2)?)?,
        })
    };
    decode().map(Some).map_err(|error| StoreError::invalid(CLAIM, error))
}

/// An error when somebody writes to the thread.
pub(super) async fn refuse_if_held(store: &SqliteStore, id: ThreadId) -> Result<(), StoreError> {
    match store.read(move |connection| Box::pin(holding(connection, id))).await? {
        Some(held) if held.counts() => Err(StoreError::Held { thread: id, by: Box::new(held.by) }),
        _ => Ok(()),
    }
}

/// Starts renewing this store's leases, once.
fn beat(inner: &Arc<Inner>) {
    if inner.path.is_none() || inner.claims.beating.swap(true, Ordering::AcqRel) {
        return;
    }
    let store = Arc::downgrade(inner);
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(BEAT).await;
            let Some(inner) = store.upgrade() else { return };
            let tokens: Vec<String> = live(|tokens| tokens.iter().map(|t| t.simple().to_string()).collect());
            if tokens.is_empty() {
                continue;
            }
            // A renewal that fails is made up for by the next one; the expiry leaves room for five.
            let _ = SqliteStore { inner }
                .write(move |writer| {
                    Box::pin(async move {
                        let mut script = Script::default();
                        script
                            .step(
                                "UPDATE leases SET beat = ? WHERE token IN (SELECT unhex(value) FROM json_each(?))",
                            )
                            .bind(milliseconds())
                            .bind(json(CLAIM, &tokens)?);
                        script.transact(&mut writer.connection, "renew leases").await.map(|_| ())
                    })
                })
                .await;
        }
    });
}

struct Releaser {
    runtime: Handle,
    store: Weak<Inner>,
}

impl Release for Releaser {
    fn release(&self, token: Uuid) {
        // From here on this process knows that the lease is free; others learn it from the row, or from our end.
        live(|tokens| tokens.remove(&token));
        let Some(inner) = self.store.upgrade() else { return };
        self.runtime.spawn(async move {
            let _ = SqliteStore { inner }
                .write(move |writer| {
                    Box::pin(async move {
                        let mut script = Script::default();
                        script.step("DELETE FROM leases WHERE token = ?").bind(token);
                        script.transact(&mut writer.connection, "give the thread back").await.map(|_| ())
                    })
                })
                .await;
        });
    }
}
