//! The terminal face.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The terminal face: what it looks like and what it asks of the terminal.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[non_exhaustive]
pub struct TerminalSettings {
    /// The colours. `auto` takes the terminal's own sixteen and looks whether its background is light or dark; `NO_COLOR` in
    /// the environment is the same as `plain`, and `words` is for a screen reader.
    pub theme: ThemeName,
    /// Where the transcript is: in the terminal's own scrollback, or on the alternate screen, which the program scrolls and
    /// leaves as it found it.
    pub screen: ScreenKind,
    /// Takes the mouse: the wheel then scrolls the alternate screen and what is open, and the terminal's own selecting needs
    /// Shift.
    pub mouse: bool,
    /// How you are called when the agent rests or asks while you look elsewhere.
    pub notifications: Notifications,
}

/// The colours of the terminal face.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ThemeName {
    /// What suits the terminal.
    #[default]
    Auto,
    /// The terminal's own sixteen colours, on any background.
    Ansi,
    /// Code coloured for a dark background.
    Dark,
    /// Colours that are readable on a light background.
    Light,
    /// Blue and yellow instead of green and red.
    ColourBlind,
    /// No colours.
    Plain,
    /// For a screen reader: no colours, no shapes, nothing moves.
    Words,
}

/// Where the transcript is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ScreenKind {
    /// In the terminal's own scrollback.
    #[default]
    Inline,
    /// On the alternate screen.
    Alternate,
}

/// How the user is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Notifications {
    /// By a message of the desktop, where the terminal shows them (OSC 9), and by the bell.
    #[default]
    Desktop,
    /// By the bell.
    Bell,
    /// Not at all.
    Off,
}
