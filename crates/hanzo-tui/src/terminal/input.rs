//! What comes from the terminal, in our own words.

use crate::edit::Key;
use crate::theme::Background;

/// Something the terminal said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted.
    Paste(String),
    /// The terminal has another size: columns, rows.
    Resize(u16, u16),
    /// The window got the focus, or lost it.
    Focus(bool),
    /// Where the cursor was when the terminal came to our question: row and column, from one.
    Position(u16, u16),
    /// What colour the background has.
    Background(Background),
    /// The wheel of the mouse was turned, downwards or (negative) upwards.
    Wheel(i8),
    /// A place was clicked; rows and columns from zero. From the terminal it is one of the screen, for the face one of the viewport.
    Click {
        /// The row on the screen.
        row: u16,
        /// The column.
        column: u16,
    },
}
