//! What the renderer hands out: lines of styled spans, in types of its own so that no terminal library is forced on the
//! caller.

use std::sync::Arc;

use crate::rich::text_width;

/// A colour. The first sixteen are the terminal's own, so that the user's palette decides how they look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Color {
    /// ANSI 0.
    Black,
    /// ANSI 1.
    Red,
    /// ANSI 2.
    Green,
    /// ANSI 3.
    Yellow,
    /// ANSI 4.
    Blue,
    /// ANSI 5.
    Magenta,
    /// ANSI 6.
    Cyan,
    /// ANSI 7.
    White,
    /// ANSI 8.
    BrightBlack,
    /// ANSI 9.
    BrightRed,
    /// ANSI 10.
    BrightGreen,
    /// ANSI 11.
    BrightYellow,
    /// ANSI 12.
    BrightBlue,
    /// ANSI 13.
    BrightMagenta,
    /// ANSI 14.
    BrightCyan,
    /// ANSI 15.
    BrightWhite,
    /// A fixed colour; only syntax themes use it.
    Rgb(u8, u8, u8),
}

impl Color {
    pub(crate) const ANSI: [Color; 16] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::White,
        Color::BrightBlack,
        Color::BrightRed,
        Color::BrightGreen,
        Color::BrightYellow,
        Color::BrightBlue,
        Color::BrightMagenta,
        Color::BrightCyan,
        Color::BrightWhite,
    ];
}

/// A set of text attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Modifiers(u8);

impl Modifiers {
    /// No attribute.
    pub const NONE: Modifiers = Modifiers(0);
    /// Heavier strokes.
    pub const BOLD: Modifiers = Modifiers(1);
    /// Secondary text.
    pub const DIM: Modifiers = Modifiers(2);
    /// Slanted.
    pub const ITALIC: Modifiers = Modifiers(4);
    /// A line below.
    pub const UNDERLINE: Modifiers = Modifiers(8);
    /// A line through.
    pub const STRIKETHROUGH: Modifiers = Modifiers(16);

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Modifiers) -> Modifiers {
        Modifiers(self.0 | other.0)
    }

    /// Whether every attribute of `other` is set.
    pub const fn contains(self, other: Modifiers) -> bool {
        self.0 & other.0 == other.0
    }
}

/// How a span looks. `None` for a colour is the terminal's default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Style {
    /// The colour of the text.
    pub fg: Option<Color>,
    /// The colour behind the text.
    pub bg: Option<Color>,
    /// Bold, dim and so on.
    pub modifiers: Modifiers,
}

impl Style {
    /// The terminal's default.
    pub const PLAIN: Style = Style { fg: None, bg: None, modifiers: Modifiers::NONE };

    /// This style with another text colour.
    #[must_use]
    pub const fn fg(mut self, color: Color) -> Style {
        self.fg = Some(color);
        self
    }

    /// This style with more attributes.
    #[must_use]
    pub const fn modified(mut self, modifiers: Modifiers) -> Style {
        self.modifiers = self.modifiers.with(modifiers);
        self
    }

    /// `inner` laid over this style: its colours win where it has one, the attributes add up.
    #[must_use]
    pub fn patched(self, inner: Style) -> Style {
        Style {
            fg: inner.fg.or(self.fg),
            bg: inner.bg.or(self.bg),
            modifiers: self.modifiers.with(inner.modifiers),
        }
    }
}

/// A piece of a line with one look. The text holds no control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct StyledSpan {
    /// The characters to show.
    pub text: String,
    /// How they look.
    pub style: Style,
    /// Where they lead, when they are part of a link.
    pub link: Option<Arc<str>>,
}

/// One line of the terminal, without its line break.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Line {
    /// The pieces from left to right; empty for a blank line.
    pub spans: Vec<StyledSpan>,
}

impl Line {
    /// The characters without their looks.
    pub fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// How many columns the line takes: those of its graphemes, one by one, as terminals place them.
    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| text_width(&span.text)).sum()
    }

    /// Takes the spaces at the end away.
    pub(crate) fn trim_end(&mut self) {
        while let Some(last) = self.spans.last_mut() {
            last.text.truncate(last.text.trim_end_matches(' ').len());
            if !last.text.is_empty() {
                break;
            }
            self.spans.pop();
        }
    }

    pub(crate) fn push(&mut self, text: &str, style: Style, link: Option<&Arc<str>>) {
        if text.is_empty() {
            return;
        }
        if let Some(last) = self.spans.last_mut()
            && last.style == style
            && last.link.as_ref() == link
        {
            last.text.push_str(text);
            return;
        }
        self.spans.push(StyledSpan { text: text.to_owned(), style, link: link.cloned() });
    }
}
