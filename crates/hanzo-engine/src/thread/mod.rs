//! An open thread: an actor that owns the conversation, and what it shares with calls and readers.

pub(crate) mod actor;
pub(crate) mod calls;
pub(crate) mod checkpoints;
pub(crate) mod conversation;
pub(crate) mod desk;
pub(crate) mod draft;
mod folding;
pub(crate) mod hub;
pub(crate) mod journal;
pub(crate) mod open;
mod planning;
mod prefix;
pub(crate) mod reader;
mod retries;
mod rewind;
pub(crate) mod run;
pub(crate) mod state;
mod step;
