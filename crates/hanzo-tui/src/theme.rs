//! Themes: which style each part of the face has. The terminal's own sixteen colours, so that the user's palette decides
//! how they look; fixed colours only in highlighted code, where the background is known.

use hanzo_md_render::Theme as MarkdownTheme;
use ratatui::style::{Color, Modifier, Style};

/// How states and structure are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Marks {
    /// With signs, bars and lines.
    #[default]
    Shapes,
    /// In words, for a screen reader: no boxes, nothing that moves.
    Words,
}

/// What is known about the terminal's background.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Background {
    /// Nothing.
    #[default]
    Unknown,
    /// It is dark.
    Dark,
    /// It is light.
    Light,
}

impl Background {
    /// From the variable `COLORFGBG`, such as `15;0`, which some terminals set.
    pub fn from_colorfgbg(value: &str) -> Background {
        match value.rsplit(';').next().and_then(|background| background.trim().parse::<u8>().ok()) {
            Some(7 | 15) => Background::Light,
            Some(0..=15) => Background::Dark,
            _ => Background::Unknown,
        }
    }

    /// From a terminal's answer to the question for its background, such as `rgb:1e1e/1e1e/2e2e`.
    pub fn from_report(report: &str) -> Option<Background> {
        let (_, channels) = report.split_once(':')?;
        let mut channels = channels.split('/').map(|digits| {
            let value = u32::from_str_radix(digits, 16).ok().filter(|_| digits.len() <= 4)?;
            // One to four digits, all of them on when it is full.
            Some(value * 255 / ((1 << (4 * digits.len())) - 1))
        });
        let (red, green, blue) = (channels.next()??, channels.next()??, channels.next()??);
        // How bright it is to the eye, in thousandths of full.
        let bright = (red * 299 + green * 587 + blue * 114) / 255;
        Some(if bright > 500 { Background::Light } else { Background::Dark })
    }
}

/// The styles of the transcript and of everything around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Theme {
    /// What the user calls it by.
    pub name: &'static str,
    /// What is beside the point.
    pub dim: Style,
    /// What to look at.
    pub accent: Style,
    /// Names and titles.
    pub strong: Style,
    /// Success.
    pub good: Style,
    /// Failure.
    pub bad: Style,
    /// Care is needed.
    pub warn: Style,
    /// A line that was added.
    pub added: Style,
    /// The words in it that are new.
    pub added_word: Style,
    /// A line that was removed.
    pub removed: Style,
    /// The words in it that are gone.
    pub removed_word: Style,
    /// The agent's Markdown, with the colours of code.
    pub markdown: MarkdownTheme,
    /// Shapes or words.
    pub marks: Marks,
}

impl Theme {
    /// The names [`Theme::named`] knows, with what they are.
    pub const NAMES: [(&'static str, &'static str); 6] = [
        ("ansi", "the terminal's own colours"),
        ("dark", "the same, with code coloured for a dark background"),
        ("light", "colours that are readable on a light background"),
        ("colour-blind", "blue and yellow instead of green and red"),
        ("plain", "no colours"),
        ("words", "for a screen reader: no colours, no shapes, nothing moves"),
    ];

    /// The terminal's own colours, on any background. The default.
    pub fn ansi() -> Theme {
        let fg = |colour| Style::new().fg(colour);
        let word = Modifier::BOLD | Modifier::UNDERLINED;
        Theme {
            name: "ansi",
            dim: Style::new().add_modifier(Modifier::DIM),
            accent: fg(Color::Cyan),
            strong: Style::new().add_modifier(Modifier::BOLD),
            good: fg(Color::Green),
            bad: fg(Color::Red),
            warn: fg(Color::Yellow),
            added: fg(Color::Green),
            added_word: fg(Color::Green).add_modifier(word),
            removed: fg(Color::Red),
            removed_word: fg(Color::Red).add_modifier(word),
            markdown: MarkdownTheme::ANSI,
            marks: Marks::Shapes,
        }
    }

    /// For a dark background.
    pub fn dark() -> Theme {
        Theme { name: "dark", markdown: MarkdownTheme::DARK, ..Theme::ansi() }
    }

    /// For a light background, where cyan and yellow are hard to read.
    pub fn light() -> Theme {
        let fg = |colour| Style::new().fg(colour);
        let mut markdown = MarkdownTheme::LIGHT;
        markdown.code = hanzo_md_render::Style::PLAIN.fg(hanzo_md_render::Color::Blue);
        markdown.code_block = markdown.code;
        Theme { name: "light", accent: fg(Color::Blue), warn: fg(Color::Magenta), markdown, ..Theme::ansi() }
    }

    /// Blue and yellow for what is otherwise green and red.
    pub fn colour_blind() -> Theme {
        let fg = |colour| Style::new().fg(colour);
        let word = Modifier::BOLD | Modifier::UNDERLINED;
        Theme {
            name: "colour-blind",
            good: fg(Color::Blue),
            bad: fg(Color::Yellow).add_modifier(Modifier::BOLD),
            warn: fg(Color::Magenta),
            added: fg(Color::Blue),
            added_word: fg(Color::Blue).add_modifier(word),
            removed: fg(Color::Yellow),
            removed_word: fg(Color::Yellow).add_modifier(word),
            ..Theme::ansi()
        }
    }

    /// Without colour (`NO_COLOR`): weight alone tells things apart.
    pub fn plain() -> Theme {
        let bold = Style::new().add_modifier(Modifier::BOLD);
        let word = bold.add_modifier(Modifier::UNDERLINED);
        Theme {
            name: "plain",
            dim: Style::new(),
            accent: bold,
            strong: bold,
            good: bold,
            bad: bold,
            warn: bold,
            added: Style::new(),
            added_word: word,
            removed: Style::new(),
            removed_word: word,
            markdown: MarkdownTheme::MONOCHROME,
            marks: Marks::Shapes,
        }
    }

    /// For a screen reader.
    pub fn words() -> Theme {
        Theme { name: "words", ..Theme::plain().in_words() }
    }

    /// The theme of a name.
    pub fn named(name: &str) -> Option<Theme> {
        Some(match name {
            "ansi" => Theme::ansi(),
            "dark" => Theme::dark(),
            "light" => Theme::light(),
            "colour-blind" | "color-blind" => Theme::colour_blind(),
            "plain" => Theme::plain(),
            "words" => Theme::words(),
            _ => return None,
        })
    }

    /// The theme for a terminal whose background is known or not.
    pub fn for_background(background: Background) -> Theme {
        match background {
            Background::Unknown => Theme::ansi(),
            Background::Dark => Theme::dark(),
            Background::Light => Theme::light(),
        }
    }

    /// The same without shapes.
    #[must_use]
    pub fn in_words(self) -> Theme {
        Theme { marks: Marks::Words, ..self }
    }

    /// Whether shapes may be drawn; a screen reader is given words.
    pub fn shapes(&self) -> bool {
        self.marks == Marks::Shapes
    }
}

impl Default for Theme {
    fn default() -> Theme {
        Theme::ansi()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_theme() {
        for (name, _) in Theme::NAMES {
            assert_eq!(Theme::named(name).map(|theme| theme.name), Some(name));
        }
        assert_eq!(Theme::named("nonsense"), None);
    }

    #[test]
    fn plain_themes_have_no_colour() {
        for theme in [Theme::plain(), Theme::words()] {
            let styles = [
                theme.dim,
                theme.accent,
                theme.strong,
                theme.good,
                theme.bad,
                theme.warn,
                theme.added,
                theme.added_word,
                theme.removed,
                theme.removed_word,
            ];
            assert!(styles.iter().all(|style| style.fg.is_none() && style.bg.is_none()), "{}", theme.name);
        }
        assert!(Theme::plain().shapes() && !Theme::words().shapes());
    }

    #[test]
    fn the_background_is_the_last_number() {
        assert_eq!(Background::from_colorfgbg("15;0"), Background::Dark);
        assert_eq!(Background::from_colorfgbg("0;default;15"), Background::Light);
        assert_eq!(Background::from_colorfgbg("default"), Background::Unknown);
    }

    #[test]
    fn a_terminal_says_its_background() {
        assert_eq!(Background::from_report("rgb:1e1e/1e1e/2e2e"), Some(Background::Dark));
        assert_eq!(Background::from_report("rgb:fd/f6/e3"), Some(Background::Light));
        assert_eq!(Background::from_report("rgba:f/f/f/f"), Some(Background::Light));
        assert_eq!(Background::from_report("rgb:0000/0000"), None);
        assert_eq!(Background::from_report("rgb:00000/0/0"), None);
        assert_eq!(Background::from_report("rgb://"), None);
    }
}
