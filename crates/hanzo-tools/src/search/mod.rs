//! Searching text in files, with ripgrep's own libraries, in this process.
//!
//! One thread walks the tree in path order and hands files to workers; results are put back into that order as they arrive, so
//! pages are stable and a search stops as soon as its page is full. How far the walk may run ahead is bounded.

mod engine;
pub(crate) mod ignored;
mod share;
pub(crate) mod walk;

pub(crate) use engine::glob_set;
pub use engine::{CaseRule, Found, Limits, MatchLine, Page, Query, search};
