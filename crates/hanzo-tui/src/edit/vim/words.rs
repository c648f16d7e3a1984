//! Word motions: `w b e ge` and their capitals, with Vim's rules for ends of lines and empty lines.

use super::super::buffer::{Buffer, Pos, Stepped};
use super::super::cell::{Class, Words, class};

/// Whether a motion got as far as it was asked to. The position is moved either way, as Vim does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moved {
    Fully,
    Short,
}

/// What `w` does at the end of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtLineEnd {
    /// Goes on to the next line.
    Cross,
    /// The last of the counted words ends with its line, as an operator wants it.
    Stop,
}

/// Whether a cursor on a word's end counts as being at the end already (`cw`), or goes to the next (`e`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HereCounts {
    Yes,
    No,
}

/// Whether an empty line is a word to stop at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmptyLines {
    Stop,
    Skip,
}

impl Buffer {
    pub(super) fn class(&self, at: Pos, words: Words) -> Class {
        class(self.cell(at), words)
    }

    fn on_empty_line(&self, at: Pos) -> bool {
        self.len(at.line) == 0
    }

    /// `w`.
    pub(super) fn next_word(&self, at: &mut Pos, count: u32, words: Words, end: AtLineEnd) -> Moved {
        for left in (0..count).rev() {
            let stop = end == AtLineEnd::Stop && left == 0;
            let class = self.class(*at, words);
            let last_line = at.line == self.last_line();
            match self.forward(at) {
                Stepped::Stuck => return Moved::Short,
                Stepped::LineEnd | Stepped::Line if last_line => return Moved::Short,
                Stepped::LineEnd | Stepped::Line if stop => return Moved::Fully,
                _ => {}
            }
            if class != Class::Blank {
                while self.class(*at, words) == class {
                    match self.forward(at) {
                        Stepped::Stuck => return Moved::Fully,
                        Stepped::LineEnd | Stepped::Line if stop => return Moved::Fully,
                        _ => {}
                    }
                }
            }
            while self.class(*at, words) == Class::Blank && !self.on_empty_line(*at) {
                match self.forward(at) {
                    Stepped::Stuck => return Moved::Fully,
                    Stepped::LineEnd | Stepped::Line if last_line || stop => return Moved::Fully,
                    _ => {}
                }
            }
        }
        Moved::Fully
    }

    /// `b`; `here` is whether being in a word counts as one.
    pub(super) fn previous_word(&self, at: &mut Pos, count: u32, words: Words, here: HereCounts) -> Moved {
        let mut here = here;
        for _ in 0..count {
            let class = self.class(*at, words);
            if self.backward(at) == Stepped::Stuck {
                return Moved::Short;
            }
            let mut on_empty = false;
            if here == HereCounts::No || class == self.class(*at, words) || class == Class::Blank {
                while self.class(*at, words) == Class::Blank {
                    if self.on_empty_line(*at) {
                        on_empty = true;
                        break;
                    }
                    if self.backward(at) == Stepped::Stuck {
                        return Moved::Fully;
                    }
                }
                if !on_empty && self.skip(at, words, Self::backward) == Stepped::Stuck {
                    return Moved::Fully;
                }
            }
            if !on_empty {
                self.forward(at);
            }
            here = HereCounts::No;
        }
        Moved::Fully
    }

    /// `e`.
    pub(super) fn word_end(
        &self,
        at: &mut Pos,
        count: u32,
        words: Words,
        here: HereCounts,
        empty: EmptyLines,
    ) -> Moved {
        let mut here = here;
        for _ in 0..count {
            let class = self.class(*at, words);
            if self.forward(at) == Stepped::Stuck {
                return Moved::Short;
            }
            let mut on_empty = false;
            if self.class(*at, words) == class && class != Class::Blank {
                if self.skip(at, words, Self::forward) == Stepped::Stuck {
                    return Moved::Short;
                }
            } else if here == HereCounts::No || class == Class::Blank {
                while self.class(*at, words) == Class::Blank {
                    if empty == EmptyLines::Stop && self.on_empty_line(*at) {
                        on_empty = true;
                        break;
                    }
                    if self.forward(at) == Stepped::Stuck {
                        return Moved::Short;
                    }
                }
                if !on_empty && self.skip(at, words, Self::forward) == Stepped::Stuck {
                    return Moved::Short;
                }
            }
            if !on_empty {
                self.backward(at);
            }
            here = HereCounts::No;
        }
        Moved::Fully
    }

    /// `ge`.
    pub(super) fn previous_word_end(&self, at: &mut Pos, count: u32, words: Words, end: AtLineEnd) -> Moved {
        let over =
            |stepped| stepped == Stepped::Stuck || (end == AtLineEnd::Stop && stepped == Stepped::Line);
        for _ in 0..count {
            let class = self.class(*at, words);
            match self.backward(at) {
                Stepped::Stuck => return Moved::Short,
                Stepped::Line if end == AtLineEnd::Stop => return Moved::Fully,
                _ => {}
            }
            if class != Class::Blank {
                while self.class(*at, words) == class {
                    if over(self.backward(at)) {
                        return Moved::Fully;
                    }
                }
            }
            while self.class(*at, words) == Class::Blank && !self.on_empty_line(*at) {
                if over(self.backward(at)) {
                    return Moved::Fully;
                }
            }
        }
        Moved::Fully
    }

    /// Passes over the cells of the class under `at`.
    fn skip(&self, at: &mut Pos, words: Words, step: fn(&Self, &mut Pos) -> Stepped) -> Stepped {
        let class = self.class(*at, words);
        while self.class(*at, words) == class {
            if step(self, at) == Stepped::Stuck {
                return Stepped::Stuck;
            }
        }
        Stepped::Within
    }

    /// The start of the run of one class in the line, at or before `at`.
    pub(super) fn run_start(&self, at: Pos, words: Words) -> Pos {
        let class = self.class(at, words);
        let mut start = at;
        while start.col > 0 && self.class(Pos::new(start.line, start.col - 1), words) == class {
            start.col -= 1;
        }
        start
    }
}
