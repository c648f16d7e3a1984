//! The types and traits every part of hanzo-dev speaks, and nothing else: no I/O, no vendor.
//!
//! * [`message`]: what is said to a model and what it answers.
//! * [`tool`], [`envelope`], [`primitives`]: the tool contract. [`render`]: what a model reads of it. [`narrowing`]: what a
//!   thread can be confined to.
//! * [`item`], [`event`], [`engine`]: the engine API, thread → turn → item.
//! * [`roles`]: what a turn needs filled. [`spawn`]: how processes are started. [`blob`]: where content is kept.
//! * [`ids`], [`usage`]: identifiers, tokens and money.
//! * [`schema`]: the JSON Schemas of all of it.

use std::pin::Pin;

pub mod blob;
pub mod engine;
pub mod envelope;
pub mod event;
pub mod ids;
pub mod item;
pub mod message;
pub mod narrowing;
pub mod primitives;
pub mod render;
pub mod roles;
pub mod schema;
pub mod spawn;
pub mod tool;
pub mod usage;

/// A boxed future, where a trait must be usable as `dyn`.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A boxed stream, where a trait must be usable as `dyn`.
pub type BoxStream<'a, T> = Pin<Box<dyn futures_core::Stream<Item = T> + Send + 'a>>;
