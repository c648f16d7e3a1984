//! Identifiers. Each is its own type, so that a turn can never be passed where a thread is meant; those we make
//! ourselves are UUIDv7, which sort by the moment they were made.

use std::cell::RefCell;
use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::{ClockSequence as _, ContextV7, Uuid};

macro_rules! uuid_ids {
    ($($(#[doc = $doc:literal])+ $name:ident),+ $(,)?) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A new id, later than every id of this process before it.
            #[expect(clippy::new_without_default, reason = "a default that differs each time would surprise")]
            pub fn new() -> Self {
                Self(fresh())
            }

            /// The id as a UUID, for stores that have a column type for it.
            pub fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            fn from_str(text: &str) -> Result<Self, IdError> {
                Uuid::parse_str(text).map(Self).map_err(|_| IdError { kind: stringify!($name), text: text.to_owned() })
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    )+};
}

uuid_ids! {
    /// A conversation in a workspace.
    ThreadId,
    /// One user input until the agent rests.
    TurnId,
    /// One entry of a thread.
    ItemId,
    /// A request for the user's consent that is waiting for its answer.
    ApprovalId,
    /// A question the agent put to the user.
    QuestionId,
    /// A state of the files the agent touched, kept so that a turn can be undone.
    CheckpointId,
    /// Ties everything that one tool call caused together, in results, logs and audit records.
    TraceId,
}

/// How many random bytes are asked for at a time: every call of a tool makes four ids, and asking the system takes longer than
/// everything else about them.
const POOL: usize = 512;
/// The random bytes of one id.
const OF_ONE: usize = 4;

thread_local! {
    static RANDOM: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL], used: POOL }) };
}

/// Random bytes, each given out once.
struct Pool {
    bytes: [u8; POOL],
    used: usize,
}

impl Pool {
    fn take(&mut self) -> Option<[u8; OF_ONE]> {
        if self.used + OF_ONE > POOL {
            getrandom::fill(&mut self.bytes).ok()?;
            self.used = 0;
        }
        let taken = &mut self.bytes[self.used..self.used + OF_ONE];
        self.used += OF_ONE;
        let mut given = [0; OF_ONE];
        given.swap_with_slice(taken);
        Some(given)
    }
}

/// A new UUIDv7. The counter that orders those of one millisecond is the library's.
fn fresh() -> Uuid {
    static CLOCK: Mutex<ContextV7> = Mutex::new(ContextV7::new());
    let Some(random) = RANDOM.with_borrow_mut(Pool::take) else { return Uuid::now_v7() };
    let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let clock = CLOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let (counter, seconds, nanos) = clock.generate_timestamp_sequence(at.as_secs(), at.subsec_nanos());
    drop(clock);
    let millis = seconds * 1000 + u64::from(nanos) / 1_000_000;
    // The layout of `Uuid::now_v7`: 12 bits of the counter, the two of the variant, 30 of the counter, 32 random ones.
    let tail = u128::from(counter >> 30) << 64
        | u128::from(counter & 0x3fff_ffff) << 32
        | u128::from(u32::from_ne_bytes(random));
    let mut bytes = [0; 10];
    bytes.copy_from_slice(&tail.to_be_bytes()[6..]);
    uuid::Builder::from_unix_timestamp_millis(millis, &bytes).into_uuid()
}

/// A text that should have been one of our ids.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid {kind}\n\nhint: ids are UUIDs, as printed by the commands that list them")]
pub struct IdError {
    kind: &'static str,
    text: String,
}

/// A tool call's id as the model's vendor made it: opaque to us, and sent back unchanged.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ToolCallId(String);

impl ToolCallId {
    /// The id the vendor gave.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ToolCallId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_7_and_ordered_by_creation() {
        let ids: Vec<ThreadId> = (0..1000).map(|_| ThreadId::new()).collect();
        assert!(ids.iter().all(|id| id.as_uuid().get_version_num() == 7));
        assert!(ids.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(ids.iter().all(|id| id.as_uuid().get_variant() == uuid::Variant::RFC4122));
        let ends: std::collections::HashSet<[u8; 4]> =
            ids.iter().map(|id| id.as_uuid().as_bytes()[12..].try_into().unwrap()).collect();
        assert!(ends.len() > 990, "the last 32 bits are random");
        let (seconds, _) = ids[0].as_uuid().get_timestamp().unwrap().to_unix();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        assert!(now.abs_diff(seconds) <= 2, "{seconds} {now}");
    }

    #[test]
    fn ids_of_several_threads_are_all_different() {
        let make = || (0..5_000).map(|_| ItemId::new()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..4).map(|_| std::thread::spawn(make)).collect();
        let all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        let different: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(different.len(), all.len());
    }

    #[test]
    fn an_id_is_its_uuid_on_the_wire_and_in_text() {
        let id = TurnId::new();
        let wire = serde_json::to_value(id).unwrap();
        assert_eq!(wire, serde_json::Value::String(id.to_string()));
        assert_eq!(id.to_string().parse::<TurnId>(), Ok(id));
        assert_eq!(serde_json::from_value::<TurnId>(wire).unwrap(), id);
    }

    #[test]
    fn a_text_that_is_no_id_is_refused_by_name() {
        let error = "yesterday".parse::<ItemId>().unwrap_err();
        assert!(error.to_string().starts_with("`yesterday` is not a valid ItemId"), "{error}");
    }
}
