//! One stop of the cursor, and what kind of character it is. A cell is a grapheme cluster, or, when the editor is told to
//! step as Vim does, a character with its combining marks.

use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// What one step of the cursor passes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Stepping {
    /// What a reader calls one character: a grapheme cluster, so a flag or a family emoji is one stop.
    #[default]
    Grapheme,
    /// What Vim 9 calls one character: a code point with its combining marks, so a family emoji is several stops.
    Character,
}

/// One stop of the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    One(char),
    Many(Box<str>),
}

/// A line's cells.
pub(crate) type Line = Vec<Cell>;

impl Cell {
    fn of(text: &str) -> Self {
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(only), None) => Self::One(only),
            _ => Self::Many(text.into()),
        }
    }

    /// The first character, which decides what kind of cell it is.
    pub fn first(&self) -> char {
        match self {
            Self::One(c) => *c,
            Self::Many(text) => text.chars().next().unwrap_or(' '),
        }
    }

    pub fn push_to(&self, text: &mut String) {
        match self {
            Self::One(c) => text.push(*c),
            Self::Many(many) => text.push_str(many),
        }
    }

    /// How many Unicode scalar values it holds.
    pub fn scalars(&self) -> usize {
        match self {
            Self::One(_) => 1,
            Self::Many(text) => text.chars().count(),
        }
    }

    pub fn bytes(&self) -> usize {
        match self {
            Self::One(c) => c.len_utf8(),
            Self::Many(text) => text.len(),
        }
    }

    /// How many terminal columns it takes when it starts in column `at`. Control characters are shown as `^X`.
    pub fn width(&self, at: usize, tab: usize) -> usize {
        match self {
            Self::One('\t') => tab - at % tab,
            Self::One(c) if c.is_ascii() && !c.is_ascii_control() => 1,
            Self::One(c) => c.width().unwrap_or(2),
            Self::Many(text) => text.width(),
        }
    }

    pub fn is_blank(&self) -> bool {
        matches!(self.first(), ' ' | '\t')
    }

    fn is_plain(&self) -> bool {
        matches!(self, Self::One(c) if c.is_ascii())
    }
}

/// Cuts a line of text into cells.
pub(crate) fn cells(text: &str, stepping: Stepping) -> Line {
    if text.is_ascii() {
        return text.chars().map(Cell::One).collect();
    }
    match stepping {
        Stepping::Grapheme => text.graphemes(true).map(Cell::of).collect(),
        Stepping::Character => {
            let mut line = Line::new();
            let mut start = 0;
            for (at, c) in text.char_indices().skip(1) {
                if !is_combining(c) {
                    line.push(Cell::of(&text[start..at]));
                    start = at;
                }
            }
            line.push(Cell::of(&text[start..]));
            line
        }
    }
}

/// Whether text could form another cell across the border between `left` and `right`.
pub(crate) fn may_merge(left: &Cell, right: &Cell) -> bool {
    !(left.is_plain() && right.is_plain())
}

pub(crate) fn text_of(cells: &[Cell]) -> String {
    let mut text = String::with_capacity(cells.len());
    for cell in cells {
        cell.push_to(&mut text);
    }
    text
}

/// Vim's composing characters: no width and attached to what stands before. Joiners and format characters are not.
fn is_combining(c: char) -> bool {
    c.width() == Some(0)
        && !matches!(u32::from(c), 0xad | 0x1160..=0x11ff | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe00ff)
        && !c.is_control()
}

/// Vim's word classes: blank, punctuation, word, or a script of its own. Only equality of values means anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    Blank,
    Punctuation,
    Word,
    Emoji,
    Superscript,
    Subscript,
    Braille,
    Hiragana,
    Katakana,
    Ideograph,
    Hangul,
}

/// What `w` counts as a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Words {
    /// Letters, digits and `_`; punctuation is its own word (`w`).
    Small,
    /// Anything but blanks (`W`).
    Big,
}

pub(crate) fn class(cell: Option<&Cell>, words: Words) -> Class {
    let Some(cell) = cell else { return Class::Blank };
    match (class_of(cell.first()), words) {
        (Class::Blank, _) => Class::Blank,
        (_, Words::Big) => Class::Punctuation,
        (class, Words::Small) => class,
    }
}

/// Vim's punctuation beyond Latin-1, as first and last code points.
const PUNCTUATION: &[(u32, u32)] = &[
    (0x37e, 0x37e),
    (0x387, 0x387),
    (0x55a, 0x55f),
    (0x589, 0x589),
    (0x5be, 0x5be),
    (0x5c0, 0x5c0),
    (0x5c3, 0x5c3),
    (0x5f3, 0x5f4),
    (0x60c, 0x60c),
    (0x61b, 0x61b),
    (0x61f, 0x61f),
    (0x66a, 0x66d),
    (0x6d4, 0x6d4),
    (0x700, 0x70d),
    (0x964, 0x965),
    (0x970, 0x970),
    (0xdf4, 0xdf4),
    (0xe4f, 0xe4f),
    (0xe5a, 0xe5b),
    (0x200c, 0x2027),
    (0x202a, 0x202e),
    (0x2030, 0x205e),
    (0x2060, 0x206f),
    (0x20a0, 0x27ff),
    (0x2900, 0x2998),
    (0x29d8, 0x29db),
    (0x29fc, 0x29fd),
    (0x2e00, 0x2e7f),
    (0x3001, 0x3020),
    (0x3030, 0x3030),
    (0x303d, 0x303d),
    (0xfd3e, 0xfd3f),
    (0xfe30, 0xfe6b),
    (0xff00, 0xff0f),
    (0xff1a, 0xff20),
    (0xff3b, 0xff40),
    (0xff5b, 0xff65),
    (0x1d000, 0x1d24f),
    (0x1d400, 0x1d7ff),
    (0x1f000, 0x1f2ff),
];

fn class_of(c: char) -> Class {
    let code = u32::from(c);
    match code {
        0x20 | 0x09 | 0x00 | 0xa0 | 0x2000..=0x200b | 0x2028..=0x2029 | 0x202f | 0x205f | 0x3000 => {
            Class::Blank
        }
        0x00..=0xff if c.is_ascii_alphanumeric() || c == '_' || c == 'µ' || code >= 192 => Class::Word,
        0x00..=0xff => Class::Punctuation,
        0x2070..=0x207f => Class::Superscript,
        0x2080..=0x2094 => Class::Subscript,
        0x2800..=0x28ff => Class::Braille,
        0x1f1e6..=0x1f1ff | 0x1f300..=0x1f64f | 0x1f680..=0x1f6ff | 0x1f900..=0x1f9ff => Class::Emoji,
        0x3040..=0x309f => Class::Hiragana,
        0x30a0..=0x30ff => Class::Katakana,
        0x3021..=0x3029 | 0x3300..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x2fa1f => Class::Ideograph,
        0xac00..=0xd7a3 => Class::Hangul,
        _ if PUNCTUATION.iter().any(|(first, last)| (*first..=*last).contains(&code)) => Class::Punctuation,
        _ => Class::Word,
    }
}
