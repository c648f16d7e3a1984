//! An open thread.

pub(crate) mod conversation;
pub(crate) mod hub;
