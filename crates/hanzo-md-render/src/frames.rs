//! What is open while a piece is laid out.

use std::borrow::Cow;
use std::ops::Range;

use crate::rich::Rich;
use crate::style::Style;

/// What stands before every line of a container: on its first line, and on the others.
#[derive(Debug)]
pub(crate) struct Prefix {
    pub(crate) first: Option<Cow<'static, str>>,
    pub(crate) rest: Cow<'static, str>,
    pub(crate) width: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    Root,
    Quote,
    List { next: Option<u64>, depth: usize },
    Item,
    Footnote,
}

#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) has_child: bool,
}

/// What a piece needs while it is laid out, kept from one piece to the next so that small ones cost no allocations.
#[derive(Debug, Default)]
pub(crate) struct Room {
    pub(crate) prefixes: Vec<Prefix>,
    pub(crate) frames: Vec<Frame>,
    pub(crate) styles: Vec<Style>,
    pub(crate) rich: Rich,
    pub(crate) ranges: Vec<Range<usize>>,
}

impl Room {
    pub(crate) fn clear(&mut self) {
        self.prefixes.clear();
        self.frames.clear();
        self.styles.clear();
        self.rich.clear();
        self.ranges.clear();
    }
}
