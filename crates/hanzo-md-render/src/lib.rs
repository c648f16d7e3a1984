#![doc = include_str!("../README.md")]

pub mod ansi;
mod blocks;
mod chars;
mod cjk;
mod code;
mod frames;
mod heal;
mod layout;
mod markers;
pub mod plain;
mod rich;
mod sanitize;
mod stream;
mod style;
mod table;
mod theme;

pub use stream::MdRenderer;
pub use style::{Color, Line, Modifiers, Style, StyledSpan};
pub use theme::{Glyphs, Highlight, LinkDisplay, Options, SyntaxTheme, Theme};
