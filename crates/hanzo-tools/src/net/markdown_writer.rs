//! Writes Markdown: blanks are folded, blocks are set apart by one empty line, and marks round nothing are not written.

use std::fmt::Write as _;

/// A mark round text in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    Strong,
    Emphasis,
    Code,
    Deleted,
    Link,
}

impl Mark {
    fn text(self) -> &'static str {
        match self {
            Self::Strong => "**",
            Self::Emphasis => "*",
            Self::Code => "`",
            Self::Deleted => "~~",
            Self::Link => "[",
        }
    }
}

/// What lines stand in.
#[derive(Debug, Clone, Copy)]
enum Inside {
    Quote,
    /// The number of the next item, of a list that has numbers.
    List(Option<u64>),
    /// How far its lines are set in.
    Item(usize),
}

/// Deeper nesting is not shown: every line would begin with it.
const MAX_DEPTH: usize = 12;
/// More marks at once are not kept track of.
const MAX_MARKS: usize = 8;

/// Writes Markdown.
#[derive(Debug, Default)]
pub(super) struct Writer {
    out: String,
    /// Line breaks that are due before the next text: one, or two for an empty line.
    breaks: usize,
    /// Whether a blank is due before the next text.
    blank: bool,
    inside: Vec<Inside>,
    /// How deep the next text and the last one are together: an empty line between them belongs to both.
    shared: usize,
    /// What was opened beyond the depth that is shown.
    beyond: usize,
    /// What begins the next line of text: the mark of an item or a heading.
    lead: String,
    /// Open marks, and whether they have been written.
    marks: Vec<(Mark, bool)>,
}

impl Writer {
    /// Text, with its blanks folded.
    pub(super) fn text(&mut self, text: &str) {
        for (index, word) in text.split(|c: char| c.is_ascii_whitespace() || c == '\u{a0}').enumerate() {
            self.blank |= index > 0;
            if !word.is_empty() {
                self.begin();
                self.out.push_str(word);
            }
        }
    }

    /// Writes what is due before text.
    fn begin(&mut self) {
        if self.breaks > 0 || self.out.is_empty() {
            self.start_line();
        } else if self.blank && !self.out.ends_with([' ', '\n']) {
            self.out.push(' ');
        }
        self.blank = false;
        if !self.lead.is_empty() {
            let lead = std::mem::take(&mut self.lead);
            self.out.push_str(&lead);
        }
        for (mark, written) in &mut self.marks {
            if !*written {
                self.out.push_str(mark.text());
                *written = true;
            }
        }
    }

    fn start_line(&mut self) {
        let breaks = std::mem::take(&mut self.breaks);
        if !self.out.is_empty() {
            let shared = prefix(&self.inside[..self.shared.min(self.inside.len())]);
            for _ in 1..breaks {
                self.out.push('\n');
                self.out.push_str(shared.trim_end());
            }
            self.out.push('\n');
        }
        self.shared = self.inside.len();
        let prefix = prefix(&self.inside);
        // The mark of an item stands where its later lines are set in.
        let set_in =
            if self.lead.is_empty() { prefix.len() } else { prefix.len() - self.hanging().min(prefix.len()) };
        self.out.push_str(&prefix[..set_in]);
    }

    /// How much of the prefix belongs to an item whose mark is still to be written.
    fn hanging(&self) -> usize {
        match self.inside.last() {
            Some(Inside::Item(width)) if self.lead.ends_with(' ') && !self.lead.starts_with('#') => *width,
            _ => 0,
        }
    }

    /// The next text begins a line.
    pub(super) fn line(&mut self) {
        self.breaks = self.breaks.max(1);
        self.blank = false;
        self.close_code();
    }

    /// The next text begins a block.
    pub(super) fn block(&mut self) {
        self.line();
        self.breaks = 2;
        // An item's first block stands beside its mark.
        if !self.lead.is_empty() {
            self.breaks = 1;
        }
    }

    /// A line ends here whatever follows.
    pub(super) fn hard_break(&mut self) {
        self.line();
    }

    /// Code that goes on in the next line would take the rest of the page with it.
    fn close_code(&mut self) {
        for (mark, written) in &mut self.marks {
            if *mark == Mark::Code && *written {
                self.out.push('`');
                *written = false;
            }
        }
    }

    pub(super) fn heading(&mut self, level: usize) {
        self.lead.push_str(&"#".repeat(level.clamp(1, 6)));
        self.lead.push(' ');
    }

    pub(super) fn rule(&mut self) {
        self.block();
        self.begin();
        self.out.push_str("---");
        self.block();
    }

    pub(super) fn open_quote(&mut self) {
        self.block();
        self.enter(Inside::Quote);
    }

    pub(super) fn close_quote(&mut self) {
        self.leave(|inside| matches!(inside, Inside::Quote));
        self.block();
    }

    pub(super) fn open_list(&mut self, first: Option<u64>) {
        let nested = self.inside.iter().any(|inside| matches!(inside, Inside::List(_)));
        if nested {
            self.line();
        } else {
            self.block();
        }
        self.enter(Inside::List(first));
    }

    pub(super) fn close_list(&mut self) {
        self.leave(|inside| matches!(inside, Inside::List(_)));
        let nested = self.inside.iter().any(|inside| matches!(inside, Inside::List(_)));
        if nested {
            self.line();
        } else {
            self.block();
        }
    }

    /// Begins an item; one that is open in the same list ends.
    pub(super) fn item(&mut self) {
        self.end_item();
        self.lead.clear();
        let mark = match self.inside.last_mut() {
            Some(Inside::List(Some(number))) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            _ => "- ".to_owned(),
        };
        if self.beyond > 0 || self.inside.len() >= MAX_DEPTH {
            return;
        }
        self.inside.push(Inside::Item(mark.len().min(6)));
        self.lead = mark;
    }

    pub(super) fn end_item(&mut self) {
        if matches!(self.inside.last(), Some(Inside::Item(_))) {
            self.inside.pop();
            self.shared = self.shared.min(self.inside.len());
            self.lead.clear();
            self.breaks = 1;
        }
        self.line();
    }

    fn enter(&mut self, inside: Inside) {
        if self.inside.len() >= MAX_DEPTH {
            self.beyond += 1;
        } else {
            self.inside.push(inside);
        }
    }

    /// Leaves the innermost of a sort, with what was not closed in it.
    fn leave(&mut self, is: impl Fn(&Inside) -> bool) {
        if self.beyond > 0 {
            self.beyond -= 1;
        } else if let Some(at) = self.inside.iter().rposition(is) {
            self.inside.truncate(at);
            self.shared = self.shared.min(at);
            self.lead.clear();
        }
    }

    pub(super) fn open(&mut self, mark: Mark) {
        // Marks in code are code, and a mark in itself ends it.
        let open = |wanted: Mark| self.marks.iter().any(|(mark, _)| *mark == wanted);
        if self.marks.len() < MAX_MARKS && !open(mark) && !open(Mark::Code) {
            self.marks.push((mark, false));
        }
    }

    pub(super) fn close(&mut self, mark: Mark) {
        if let Some(at) = self.marks.iter().rposition(|(open, _)| *open == mark) {
            let (mark, written) = self.marks.remove(at);
            if written {
                self.out.push_str(mark.text());
            }
        }
    }

    pub(super) fn close_link(&mut self, target: &str) {
        if let Some(at) = self.marks.iter().rposition(|(open, _)| *open == Mark::Link) {
            let (_, written) = self.marks.remove(at);
            if written {
                write!(self.out, "]({target})").expect("writing to a string does not fail");
            }
        }
    }

    /// Preformatted text, fenced by more backticks than it has.
    pub(super) fn code_block(&mut self, language: &str, text: &str) {
        let text = text.strip_prefix('\n').unwrap_or(text).trim_end();
        if text.trim().is_empty() {
            return;
        }
        let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
        let fence = "`".repeat(longest.max(2) + 1);
        self.block();
        let marks = std::mem::take(&mut self.marks);
        self.begin();
        write!(self.out, "{fence}{language}").expect("writing to a string does not fail");
        let prefix = prefix(&self.inside);
        for line in text.lines().chain([fence.as_str()]) {
            self.out.push('\n');
            self.out.push_str(if line.is_empty() { prefix.trim_end() } else { &prefix });
            self.out.push_str(line);
        }
        self.marks = marks;
        self.block();
    }

    pub(super) fn table(&mut self, rows: &[Vec<String>], columns: usize) {
        for (index, row) in rows.iter().enumerate() {
            let cells = (0..columns).map(|column| row.get(column).map_or("", String::as_str));
            let cells: Vec<String> =
                cells.map(|cell| cell.trim().replace('\n', " ").replace('|', "\\|")).collect();
            self.line();
            self.begin();
            write!(self.out, "| {} |", cells.join(" | ")).expect("writing to a string does not fail");
            if index == 0 {
                self.line();
                self.begin();
                write!(self.out, "|{}", " --- |".repeat(columns)).expect("writing to a string does not fail");
            }
        }
    }

    /// Text that is Markdown already.
    pub(super) fn lines(&mut self, text: &str) {
        self.block();
        for line in text.trim_end().lines() {
            if line.is_empty() {
                self.breaks = 2;
            } else {
                self.line();
                self.begin();
                self.out.push_str(line);
            }
        }
    }

    pub(super) fn finish(mut self) -> String {
        for at in (0..self.marks.len()).rev() {
            let (mark, written) = self.marks[at];
            if written && mark != Mark::Link {
                self.out.push_str(mark.text());
            }
        }
        let length = self.out.trim_end().len();
        self.out.truncate(length);
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }
}

/// What lines begin with.
fn prefix(inside: &[Inside]) -> String {
    let mut prefix = String::new();
    for inside in inside {
        match inside {
            Inside::Quote => prefix.push_str("> "),
            Inside::Item(width) => prefix.extend(std::iter::repeat_n(' ', *width)),
            Inside::List(_) => {}
        }
    }
    prefix
}
