//! The terminal itself: its modes, what comes from it, and what goes to it.

mod guard;
mod input;
mod screen;
mod sgr;

pub use guard::{Guard, install_panic_hook};
pub use input::{Input, translate};
pub use screen::{Reflow, Screen, View};
