//! Colours code by its language, once per block. What was coloured is remembered, so that a new width costs no second pass.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::style::Style;
use crate::theme::SyntaxTheme;

/// Code in lines, each in pieces of one look.
pub(crate) type CodeLines = Vec<Vec<(Style, String)>>;

/// Longer code is shown plain: colouring it would stop the screen.
const MAX_BYTES: usize = 512 * 1024;
/// As [`MAX_BYTES`], in lines.
const MAX_LINES: usize = 10_000;
/// The regular expressions of a grammar are slow on very long lines.
const MAX_LINE_BYTES: usize = 4 * 1024;
/// How much coloured code is remembered.
const MAX_REMEMBERED: usize = 8 * 1024 * 1024;

/// The coloured blocks of one document.
#[derive(Debug, Default)]
pub(crate) struct CodeCache {
    blocks: HashMap<u64, Arc<CodeLines>>,
    bytes: usize,
    /// How many blocks were coloured; a test of "once" reads it.
    passes: usize,
}

impl CodeCache {
    /// How often a highlighter ran.
    pub(crate) fn passes(&self) -> usize {
        self.passes
    }

    /// The lines of `text` in colour, or nothing when it stays plain.
    pub(crate) fn highlight(
        &mut self,
        language: &str,
        text: &str,
        theme: SyntaxTheme,
    ) -> Option<Arc<CodeLines>> {
        if language.is_empty() || theme == SyntaxTheme::None || !within_limits(text) {
            return None;
        }
        let mut hasher = DefaultHasher::new();
        (language, text, theme).hash(&mut hasher);
        let key = hasher.finish();
        if let Some(lines) = self.blocks.get(&key) {
            return Some(Arc::clone(lines));
        }
        let lines = Arc::new(engine::highlight(language, text, theme)?);
        self.passes += 1;
        self.bytes += text.len();
        if self.bytes > MAX_REMEMBERED {
            self.blocks.clear();
            self.bytes = text.len();
        }
        self.blocks.insert(key, Arc::clone(&lines));
        Some(lines)
    }
}

fn within_limits(text: &str) -> bool {
    text.len() <= MAX_BYTES
        && text.lines().count() <= MAX_LINES
        && text.lines().all(|line| line.len() <= MAX_LINE_BYTES)
}

/// The name of the language in the info string of a fence: `rust` of `rust,ignore title="x"`.
pub(crate) fn language(info: &str) -> &str {
    let name = info.trim_start().trim_start_matches(['{', '.']);
    name.split([' ', '\t', ',', '{', '}', ':']).next().unwrap_or("")
}

#[cfg(not(feature = "highlight"))]
mod engine {
    use super::CodeLines;
    use crate::theme::SyntaxTheme;

    pub(super) fn highlight(_language: &str, _text: &str, _theme: SyntaxTheme) -> Option<CodeLines> {
        None
    }
}

#[cfg(feature = "highlight")]
mod engine {
    use std::sync::OnceLock;

    use syntect::easy::HighlightLines;
    use syntect::highlighting::{Color as SyntectColor, FontStyle, Style as SyntectStyle, Theme};
    use syntect::parsing::SyntaxSet;
    use syntect::util::LinesWithEndings;
    use two_face::theme::{EmbeddedLazyThemeSet, EmbeddedThemeName};

    use super::CodeLines;
    use crate::style::{Color, Modifiers, Style};
    use crate::theme::SyntaxTheme;

    /// Grammars take tens of milliseconds to load: only a document with code pays for them.
    fn grammars() -> &'static SyntaxSet {
        static GRAMMARS: OnceLock<SyntaxSet> = OnceLock::new();
        GRAMMARS.get_or_init(two_face::syntax::extra_newlines)
    }

    fn colours(theme: SyntaxTheme) -> Option<&'static Theme> {
        static THEMES: OnceLock<EmbeddedLazyThemeSet> = OnceLock::new();
        let name = match theme {
            SyntaxTheme::Ansi => EmbeddedThemeName::Ansi,
            SyntaxTheme::Dark => EmbeddedThemeName::OneHalfDark,
            SyntaxTheme::Light => EmbeddedThemeName::OneHalfLight,
            SyntaxTheme::None => return None,
        };
        Some(THEMES.get_or_init(two_face::theme::extra).get(name))
    }

    pub(super) fn highlight(language: &str, text: &str, theme: SyntaxTheme) -> Option<CodeLines> {
        let grammars = grammars();
        let name = match language.to_ascii_lowercase().as_str() {
            "shell" | "console" | "sh-session" | "zsh" => "bash".to_owned(),
            "jsonc" | "json5" => "json".to_owned(),
            "golang" => "go".to_owned(),
            "c++" => "cpp".to_owned(),
            other => other.to_owned(),
        };
        let grammar = grammars.find_syntax_by_token(&name)?;
        if grammar.name == "Plain Text" {
            return None;
        }
        let mut highlighter = HighlightLines::new(grammar, colours(theme)?);
        let mut lines = Vec::new();
        for line in LinesWithEndings::from(text) {
            let spans = highlighter.highlight_line(line, grammars).ok()?;
            lines.push(
                spans
                    .into_iter()
                    .map(|(look, text)| (style(look), text.trim_end_matches('\n').to_owned()))
                    .filter(|(_, text)| !text.is_empty())
                    .collect(),
            );
        }
        if lines.is_empty() {
            lines.push(Vec::new());
        }
        Some(lines)
    }

    fn style(look: SyntectStyle) -> Style {
        let mut modifiers = Modifiers::NONE;
        for (font, modifier) in [
            (FontStyle::BOLD, Modifiers::BOLD),
            (FontStyle::ITALIC, Modifiers::ITALIC),
            (FontStyle::UNDERLINE, Modifiers::UNDERLINE),
        ] {
            if look.font_style.contains(font) {
                modifiers = modifiers.with(modifier);
            }
        }
        // No background: the terminal's own shows through, whatever it is.
        Style { fg: color(look.foreground), bg: None, modifiers }
    }

    /// The `ansi` theme writes palette numbers into the red channel and says so with an alpha of 0 (1: the default colour).
    fn color(color: SyntectColor) -> Option<Color> {
        match color.a {
            0 => Color::ANSI.get(usize::from(color.r)).copied(),
            1 => None,
            _ => Some(Color::Rgb(color.r, color.g, color.b)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_the_first_word_of_the_info() {
        for (info, name) in [("rust", "rust"), ("rust,ignore", "rust"), (" {.python x}", "python"), ("", "")]
        {
            assert_eq!(language(info), name);
        }
    }

    #[test]
    fn code_over_a_limit_stays_plain() {
        let mut cache = CodeCache::default();
        for text in
            ["x\n".repeat(MAX_LINES + 1), "x".repeat(MAX_LINE_BYTES + 1), "ab cd\n".repeat(MAX_BYTES / 4)]
        {
            assert!(cache.highlight("rust", &text, SyntaxTheme::Ansi).is_none());
        }
        assert_eq!(cache.passes(), 0);
    }

    #[cfg(feature = "highlight")]
    #[test]
    fn a_block_is_coloured_once_and_keeps_its_text() {
        let mut cache = CodeCache::default();
        let code = "fn main() {\n    let x = \"é\"; // hi\n}\n";
        for theme in [SyntaxTheme::Ansi, SyntaxTheme::Dark, SyntaxTheme::Light] {
            let lines = cache.highlight("rust", code, theme).unwrap();
            let text: Vec<String> =
                lines.iter().map(|spans| spans.iter().map(|(_, text)| text.as_str()).collect()).collect();
            assert_eq!(text, code.lines().collect::<Vec<_>>());
            let looks: std::collections::HashSet<_> =
                lines.iter().flatten().map(|(style, _)| *style).collect();
            assert!(looks.len() >= 3, "{theme:?} uses {looks:?}");
        }
        assert_eq!(cache.passes(), 3);
        cache.highlight("rust", code, SyntaxTheme::Ansi).unwrap();
        assert_eq!(cache.passes(), 3);
        assert!(cache.highlight("no-such-language", code, SyntaxTheme::Ansi).is_none());
    }
}
