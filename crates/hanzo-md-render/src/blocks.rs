//! Follows the block structure of a document line by line, to say where one top-level block ends and the next begins.
//!
//! This is what makes the output independent of how the input was cut: the decision looks at complete lines only, one after
//! the other, so it cannot depend on the chunks they came in. Each piece between two boundaries is parsed once, alone; a
//! boundary that is missed costs only a later commit.

use crate::markers::{
    Cursor, Fence, HtmlEnd, ListKind, footnote_marker, html_start, is_heading, is_rule, item_marker,
    setext_underline,
};

/// Whether a piece continues what was committed before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// A block of its own.
    Block,
    /// The next item of the list whose earlier items are committed.
    NextItem {
        /// Whether a blank line stands before it.
        spaced: bool,
    },
}

/// What a line did to the piece in hand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// The line begins a new piece: the one in hand is final without it.
    pub(crate) begins: Option<Start>,
    /// The piece in hand is final with this line.
    pub(crate) complete: bool,
    /// The line is blank and outside every block: it belongs to no piece.
    pub(crate) between: bool,
}

/// Containers deeper than this are read as text, so that a line costs no more than its length whatever was opened before.
const MAX_DEPTH: usize = 100;

#[derive(Debug, Clone, Copy)]
enum Container {
    Quote,
    Item { kind: ListKind, content: usize, empty: bool },
    Footnote,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Leaf {
    #[default]
    None,
    Paragraph {
        bracket: bool,
    },
    Fence(Fence),
    Html(HtmlEnd),
    Indented,
}

/// What is open after the lines read so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Open {
    /// Nothing, or nothing that changes how a tail is shown.
    Text,
    /// A fence at the top level.
    Fence,
    /// A fence in a list or a quote, or HTML.
    Verbatim,
}

/// The block structure at the end of the lines read so far.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    containers: Vec<Container>,
    leaf: Leaf,
    after_blank: bool,
    /// The list at the top level that the next item may belong to. It outlives its last item: after an empty item and a
    /// blank line nothing is open, and still the list goes on until another block begins.
    list: Option<ListKind>,
}

impl Blocks {
    /// Reads one complete line (without its line break).
    pub(crate) fn line(&mut self, line: &str) -> Step {
        let was_open = !self.containers.is_empty() || self.leaf != Leaf::None;
        let spaced = self.after_blank;
        let blank = line.bytes().all(|byte| byte == b' ' || byte == b'\t');
        let began = self.read(line);
        self.after_blank = blank;
        let open = !self.containers.is_empty() || self.leaf != Leaf::None;
        let begins = match began {
            Began::Nothing => None,
            Began::TopLevel => {
                let list = match self.containers.first() {
                    Some(Container::Item { kind, .. }) => Some(*kind),
                    _ => None,
                };
                let goes_on = list.is_some() && list == self.list;
                self.list = list;
                Some(if goes_on { Start::NextItem { spaced } } else { Start::Block })
            }
        };
        let between = blank && !was_open;
        Step { begins, complete: !open && !between, between }
    }

    /// What is open, for the tail.
    pub(crate) fn open(&self) -> Open {
        match self.leaf {
            Leaf::Fence(_) if self.containers.is_empty() => Open::Fence,
            Leaf::Fence(_) | Leaf::Html(_) => Open::Verbatim,
            _ => Open::Text,
        }
    }

    fn read(&mut self, line: &str) -> Began {
        let mut cursor = Cursor::new(line);
        let mut matched = self.match_containers(&mut cursor);
        let all_matched = matched == self.containers.len();
        if all_matched {
            match self.leaf {
                Leaf::Fence(fence) => {
                    if cursor.indent() < 4 && fence.closed_by(cursor.text()) {
                        self.leaf = Leaf::None;
                    }
                    return Began::Nothing;
                }
                Leaf::Html(end) => {
                    if end.ends_on(cursor.text()) || (end == HtmlEnd::Blank && cursor.is_blank()) {
                        self.leaf = Leaf::None;
                    }
                    return Began::Nothing;
                }
                Leaf::Indented if cursor.is_blank() || cursor.indent() >= 4 => return Began::Nothing,
                Leaf::Indented => self.leaf = Leaf::None,
                Leaf::None | Leaf::Paragraph { .. } => {}
            }
        }
        let depth = matched;
        let mut nested = false;
        loop {
            if cursor.is_blank() {
                // A new container may be empty; otherwise the blank line ends the paragraph and what it does not reach.
                if !nested {
                    self.close_to(matched);
                    return Began::Nothing;
                }
                return Began::at(depth);
            }
            let deep = self.containers.len() >= MAX_DEPTH;
            let paragraph = !nested && matches!(self.leaf, Leaf::Paragraph { .. });
            let text = cursor.text();
            if cursor.indent() >= 4 {
                if paragraph {
                    return Began::Nothing;
                }
                self.close_to(matched);
                self.leaf = Leaf::Indented;
                break;
            }
            if text.starts_with('>') && !deep {
                self.close_to(matched);
                self.fill();
                cursor.skip_marker(1);
                if cursor.indent() > 0 {
                    cursor.skip_columns(1);
                }
                self.containers.push(Container::Quote);
            } else if is_heading(text) {
                self.close_to(matched);
                self.fill();
                return Began::at(depth);
            } else if let Some(fence) = Fence::open(text) {
                self.close_to(matched);
                self.leaf = Leaf::Fence(fence);
                break;
            } else if let Some(end) = html_start(text, paragraph) {
                self.close_to(matched);
                self.leaf = if end.ends_on(text) { Leaf::None } else { Leaf::Html(end) };
                break;
            } else if paragraph && all_matched && setext_underline(text).is_some() {
                // Under link definitions alone a row of `=` is text.
                if !(self.leaf == Leaf::Paragraph { bracket: true } && text.starts_with('=')) {
                    self.leaf = Leaf::None;
                }
                return Began::Nothing;
            } else if is_rule(text) {
                self.close_to(matched);
                self.fill();
                return Began::at(depth);
            } else if let Some(marker) = item_marker(text)
                && !deep
                && !(paragraph && all_matched && !interrupts(marker.kind, marker.number, &text[marker.len..]))
            {
                self.close_to(matched);
                self.fill();
                let indent = cursor.indent();
                cursor.skip_marker(marker.len);
                let empty = cursor.is_blank();
                let spaces = if empty || cursor.indent() > 4 { 1 } else { cursor.indent() };
                cursor.skip_columns(spaces);
                let content = indent + marker.len + spaces;
                self.containers.push(Container::Item { kind: marker.kind, content, empty });
            } else if let Some(len) = footnote_marker(text).filter(|_| !deep) {
                self.close_to(matched);
                self.fill();
                cursor = Cursor::new(&text[len..]);
                self.containers.push(Container::Footnote);
            } else {
                if paragraph {
                    // A continuation, lazy or not.
                    return Began::Nothing;
                }
                self.close_to(matched);
                self.leaf = Leaf::Paragraph { bracket: text.starts_with('[') };
                break;
            }
            matched = self.containers.len();
            nested = true;
        }
        self.fill();
        Began::at(depth)
    }

    /// How many of the open containers the line goes on with; the cursor moves past their markers.
    fn match_containers(&mut self, cursor: &mut Cursor<'_>) -> usize {
        for (at, container) in self.containers.iter().enumerate() {
            match container {
                Container::Quote => {
                    if cursor.indent() >= 4 || !cursor.text().starts_with('>') {
                        return at;
                    }
                    cursor.skip_marker(1);
                    if cursor.indent() > 0 {
                        cursor.skip_columns(1);
                    }
                }
                Container::Item { content, empty, .. } => {
                    if cursor.is_blank() {
                        // An item may begin with one blank line, not with two.
                        if *empty && at + 1 == self.containers.len() && self.leaf == Leaf::None {
                            return at;
                        }
                    } else if cursor.indent() >= *content {
                        cursor.skip_columns(*content);
                    } else {
                        return at;
                    }
                }
                Container::Footnote => {
                    if !cursor.is_blank() && cursor.indent() < 4 {
                        return at;
                    }
                    cursor.skip_columns(4);
                }
            }
        }
        self.containers.len()
    }

    fn close_to(&mut self, depth: usize) {
        self.containers.truncate(depth);
        self.leaf = Leaf::None;
    }

    /// Notes that the innermost item has content now (those around it have it: the item).
    fn fill(&mut self) {
        if let Some(Container::Item { empty, .. }) = self.containers.last_mut() {
            *empty = false;
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Began {
    Nothing,
    TopLevel,
}

impl Began {
    fn at(depth: usize) -> Began {
        if depth == 0 { Began::TopLevel } else { Began::Nothing }
    }
}

/// Whether a list item may end a paragraph it follows directly.
fn interrupts(kind: ListKind, number: u64, rest: &str) -> bool {
    let starts = matches!(kind, ListKind::Bullet(_)) || number == 1;
    starts && !rest.bytes().all(|byte| byte == b' ' || byte == b'\t')
}
