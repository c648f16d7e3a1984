//! The terminal face: a client of the engine API and of nothing else of ours.
//!
//! * [`edit`]: the composer's editing core: text, keys in, effects out, no drawing and no clock.
//! * [`app`]: the face's state. What happened goes in, what is to be done comes out; what it looks like is a function of it.
//! * [`composer`], [`dialog`], [`keymap`]: what the state is made of. [`transcript`], [`theme`], [`text`]: how it is shown.
//! * [`terminal`]: the inline viewport above which the terminal keeps its own scrollback.
//! * [`mod@run`]: the loop that joins them on a real terminal. [`host`]: what it needs of the machine.
#![forbid(unsafe_code)]

pub mod app;
pub mod composer;
pub mod dialog;
pub mod edit;
pub mod host;
pub mod keymap;
pub mod run;
mod status;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod transcript;

pub use app::{Begin, Follow, Notify, Setup, TerminalSetup};
pub use run::{Left, run};
