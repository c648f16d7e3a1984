//! The terminal itself: its modes, what comes from it, and what goes to it.

mod cells;
mod decode;
mod guard;
mod input;
pub mod links;
mod pages;
mod reader;
mod screen;
mod sgr;
mod unsure;

pub use decode::Decoder;
pub use guard::{Guard, Modes, Mouse, install_panic_hook};
pub use input::Input;
pub use pages::Pages;
pub use reader::Reader;
pub use screen::{Asking, Extent, Reflow, Screen, View};
pub use unsure::Whereabouts;
