//! Which style each part of a document gets, and the options of a renderer.

use crate::style::{Color, Modifiers, Style};

/// The styles of the parts of a document. The presets use the terminal's own sixteen colours only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// Ordinary text.
    pub text: Style,
    /// Headings of levels 1 to 6.
    pub headings: [Style; 6],
    /// `*emphasis*`.
    pub emphasis: Style,
    /// `**strong**`.
    pub strong: Style,
    /// `~~struck~~`.
    pub strikethrough: Style,
    /// `` `code` `` in a line of text.
    pub code: Style,
    /// A code block that has no highlighting.
    pub code_block: Style,
    /// The text of a quote.
    pub quote: Style,
    /// Text that is a link.
    pub link: Style,
    /// An address shown after the text of its link.
    pub url: Style,
    /// Bullets, numbers, the bar of a quote, rules, the lines of a table.
    pub marker: Style,
    /// The header cells of a table.
    pub table_header: Style,
    /// HTML, which is shown as it was written.
    pub html: Style,
    /// The colours of highlighted code.
    pub syntax: SyntaxTheme,
}

/// The colours of highlighted code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum SyntaxTheme {
    /// The terminal's own sixteen colours: fits every background.
    #[default]
    Ansi,
    /// RGB colours for a dark background.
    Dark,
    /// RGB colours for a light background.
    Light,
    /// Code is not highlighted.
    None,
}

impl Theme {
    /// Sixteen colours, on any background. The default.
    pub const ANSI: Theme = Theme {
        text: Style::PLAIN,
        headings: [
            Style::PLAIN.modified(Modifiers::BOLD.with(Modifiers::UNDERLINE)),
            Style::PLAIN.modified(Modifiers::BOLD),
            Style::PLAIN.modified(Modifiers::BOLD.with(Modifiers::ITALIC)),
            Style::PLAIN.modified(Modifiers::ITALIC),
            Style::PLAIN.modified(Modifiers::ITALIC),
            Style::PLAIN.modified(Modifiers::ITALIC.with(Modifiers::DIM)),
        ],
        emphasis: Style::PLAIN.modified(Modifiers::ITALIC),
        strong: Style::PLAIN.modified(Modifiers::BOLD),
        strikethrough: Style::PLAIN.modified(Modifiers::STRIKETHROUGH),
        code: Style::PLAIN.fg(Color::Cyan),
        code_block: Style::PLAIN.fg(Color::Cyan),
        quote: Style::PLAIN.fg(Color::Green),
        link: Style::PLAIN.fg(Color::Blue).modified(Modifiers::UNDERLINE),
        url: Style::PLAIN.fg(Color::Blue).modified(Modifiers::DIM),
        marker: Style::PLAIN.modified(Modifiers::DIM),
        table_header: Style::PLAIN.modified(Modifiers::BOLD),
        html: Style::PLAIN.modified(Modifiers::DIM),
        syntax: SyntaxTheme::Ansi,
    };
    /// As [`Theme::ANSI`], with RGB colours for code on a dark background.
    pub const DARK: Theme = Theme { syntax: SyntaxTheme::Dark, ..Theme::ANSI };
    /// As [`Theme::ANSI`], with RGB colours for code on a light background.
    pub const LIGHT: Theme = Theme { syntax: SyntaxTheme::Light, ..Theme::ANSI };
    /// No colour at all; bold, italic and underline stay.
    pub const MONOCHROME: Theme = Theme {
        code: Style::PLAIN.modified(Modifiers::BOLD),
        code_block: Style::PLAIN,
        quote: Style::PLAIN.modified(Modifiers::ITALIC),
        link: Style::PLAIN.modified(Modifiers::UNDERLINE),
        url: Style::PLAIN.modified(Modifiers::DIM),
        syntax: SyntaxTheme::None,
        ..Theme::ANSI
    };
}

impl Default for Theme {
    fn default() -> Theme {
        Theme::ANSI
    }
}

/// Whether fenced code is coloured by its language.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Highlight {
    /// Once, when the fence closes. Needs the cargo feature `highlight`; without it this is [`Highlight::Off`].
    #[default]
    OnClose,
    /// Never.
    Off,
}

/// How a link shows where it leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum LinkDisplay {
    /// The address follows the text in parentheses, unless it is the text.
    #[default]
    ShowUrl,
    /// Only the text, for terminals with hyperlinks. A text that looks like another address than the one it leads to is
    /// still followed by the true one.
    Hyperlink,
}

/// Which characters draw bullets, bars and lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Glyphs {
    /// `•`, `│`, `─`.
    #[default]
    Unicode,
    /// `-`, `>`, `|`: for old fonts and for terminals that draw ambiguous characters two columns wide.
    Ascii,
}

impl Glyphs {
    pub(crate) fn bullet(self, depth: usize) -> &'static str {
        match (self, depth % 3) {
            (Glyphs::Unicode, 0) => "• ",
            (Glyphs::Unicode, 1) => "◦ ",
            (Glyphs::Unicode, _) => "▪ ",
            (Glyphs::Ascii, 0) => "- ",
            (Glyphs::Ascii, 1) => "* ",
            (Glyphs::Ascii, _) => "+ ",
        }
    }

    pub(crate) fn quote(self) -> &'static str {
        match self {
            Glyphs::Unicode => "│ ",
            Glyphs::Ascii => "> ",
        }
    }

    pub(crate) fn rule(self) -> &'static str {
        match self {
            Glyphs::Unicode => "─",
            Glyphs::Ascii => "-",
        }
    }

    pub(crate) fn column(self) -> &'static str {
        match self {
            Glyphs::Unicode => " │ ",
            Glyphs::Ascii => " | ",
        }
    }

    pub(crate) fn crossing(self) -> &'static str {
        match self {
            Glyphs::Unicode => "─┼─",
            Glyphs::Ascii => "-+-",
        }
    }
}

/// How a document is laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal. From 20 on no line is wider, except by one column for a wide character that has no room.
    pub width: u16,
    /// The styles.
    pub theme: Theme,
    /// Whether fenced code is coloured.
    pub highlight: Highlight,
    /// How links show where they lead.
    pub links: LinkDisplay,
    /// Which characters draw bullets and lines.
    pub glyphs: Glyphs,
    /// Columns between tab stops in code.
    pub tab_width: u8,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            width: 80,
            theme: Theme::default(),
            highlight: Highlight::default(),
            links: LinkDisplay::default(),
            glyphs: Glyphs::default(),
            tab_width: 4,
        }
    }
}
