//! The few styles the face itself draws with: the terminal's own sixteen colours, or none.

use ratatui::style::{Color, Modifier, Style};

/// The face's styles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// What is beside the point.
    pub dim: Style,
    /// What to look at: the chosen entry, the prompt.
    pub accent: Style,
    /// Names and titles.
    pub strong: Style,
    /// Success.
    pub good: Style,
    /// Failure.
    pub bad: Style,
    /// Care is needed.
    pub warn: Style,
    /// Whether shapes may be drawn; a screen reader is given words.
    pub shapes: bool,
}

impl Look {
    /// With the terminal's colours.
    pub fn ansi() -> Self {
        let fg = |colour| Style::new().fg(colour);
        Self {
            dim: Style::new().add_modifier(Modifier::DIM),
            accent: fg(Color::Cyan),
            strong: Style::new().add_modifier(Modifier::BOLD),
            good: fg(Color::Green),
            bad: fg(Color::Red),
            warn: fg(Color::Yellow),
            shapes: true,
        }
    }

    /// Without colour (`NO_COLOR`): weight alone tells things apart.
    pub fn plain() -> Self {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        Self {
            dim: Style::new(),
            accent: bold,
            strong: bold,
            good: bold,
            bad: bold,
            warn: bold,
            shapes: true,
        }
    }

    /// The same for a screen reader.
    #[must_use]
    pub fn in_words(self) -> Self {
        Self { shapes: false, ..self }
    }
}
