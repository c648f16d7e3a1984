//! The renderer: takes the document in chunks, hands out the lines that will not change any more.

use std::borrow::Cow;
use std::collections::HashMap;

use pulldown_cmark::{BrokenLink, CowStr, Options as Extensions, Parser};

use crate::blocks::{Blocks, Open, Start};
use crate::cjk::mark_emphasis;
use crate::code::CodeCache;
use crate::frames::Room;
use crate::heal;
use crate::layout::{Context, Layout};
use crate::sanitize::clean_line;
use crate::style::Line;
use crate::theme::{Highlight, Options};

const EXTENSIONS: Extensions = Extensions::ENABLE_TABLES
    .union(Extensions::ENABLE_FOOTNOTES)
    .union(Extensions::ENABLE_STRIKETHROUGH)
    .union(Extensions::ENABLE_TASKLISTS);

/// The most of a pending block that is laid out again for one [`MdRenderer::tail`].
const MAX_TAIL_BYTES: usize = 32 * 1024;

/// The definitions of link references met so far, by label.
type Definitions = HashMap<String, Definition>;

/// An address and a title.
type Definition = (String, String);

/// Renders a Markdown document that arrives in pieces.
///
/// The lines returned by [`render_chunk`](MdRenderer::render_chunk) and [`flush`](MdRenderer::flush) are final and depend
/// only on the document, not on how it was cut. What is not final yet can be shown with [`tail`](MdRenderer::tail).
#[derive(Debug)]
pub struct MdRenderer {
    options: Options,
    /// The document so far: complete lines, cleaned.
    source: String,
    /// Where in the source the caller flushed.
    flushes: Vec<usize>,
    /// The line that has no end yet, as it came.
    partial: String,
    /// The start of a character whose other bytes have not come.
    split_char: Vec<u8>,
    blocks: Blocks,
    piece_start: usize,
    piece: Start,
    emitted: bool,
    next_number: Option<u64>,
    definitions: Definitions,
    cache: CodeCache,
    room: Room,
}

impl MdRenderer {
    /// A renderer for one document.
    pub fn new(mut options: Options) -> MdRenderer {
        options.width = options.width.max(1);
        MdRenderer {
            options,
            source: String::new(),
            flushes: Vec::new(),
            partial: String::new(),
            split_char: Vec::new(),
            blocks: Blocks::default(),
            piece_start: 0,
            piece: Start::Block,
            emitted: false,
            next_number: None,
            definitions: Definitions::new(),
            cache: CodeCache::default(),
            room: Room::default(),
        }
    }

    /// The options in use.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The complete lines of the document so far, without control characters.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// How often code was highlighted: once for each closed block, whatever was asked for in between.
    pub fn highlight_passes(&self) -> usize {
        self.cache.passes()
    }

    /// Takes the next part of the document and returns the lines that became final.
    pub fn render_chunk(&mut self, chunk: &str) -> Vec<Line> {
        let mut lines = Vec::new();
        self.end_split_char();
        self.feed(chunk, &mut lines);
        lines
    }

    /// As [`render_chunk`](MdRenderer::render_chunk), for bytes: a character may be split between two chunks. Bytes that
    /// are not UTF-8 become `U+FFFD`.
    pub fn render_bytes(&mut self, chunk: &[u8]) -> Vec<Line> {
        let mut lines = Vec::new();
        let joined;
        let bytes = if self.split_char.is_empty() {
            chunk
        } else {
            joined = [std::mem::take(&mut self.split_char).as_slice(), chunk].concat();
            &joined
        };
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(part) = chunks.next() {
            self.feed(part.valid(), &mut lines);
            let invalid = part.invalid();
            if chunks.peek().is_none() && is_char_start(invalid) {
                self.split_char = invalid.to_vec();
            } else if !invalid.is_empty() {
                self.feed("\u{fffd}", &mut lines);
            }
        }
        lines
    }

    /// Ends the document and returns the lines that were still held back. What is rendered afterwards begins a new block.
    pub fn flush(&mut self) -> Vec<Line> {
        let mut lines = Vec::new();
        self.end_split_char();
        let partial = std::mem::take(&mut self.partial);
        if !partial.is_empty() {
            self.complete_line(&partial, &mut lines);
        }
        self.commit(&mut lines);
        self.blocks = Blocks::default();
        self.piece = Start::Block;
        self.piece_start = self.source.len();
        self.flushes.push(self.source.len());
        lines
    }

    /// Lays the whole document out anew for another width and returns all lines that are final, from the first one on.
    /// Code that was highlighted is not highlighted again.
    pub fn relayout(&mut self, width: u16) -> Vec<Line> {
        let mut fresh = MdRenderer::new(Options { width, ..self.options.clone() });
        fresh.cache = std::mem::take(&mut self.cache);
        let mut lines = Vec::new();
        let mut start = 0;
        for end in &self.flushes {
            fresh.feed(&self.source[start..*end], &mut lines);
            lines.extend(fresh.flush());
            start = *end;
        }
        fresh.feed(&self.source[start..], &mut lines);
        fresh.partial = std::mem::take(&mut self.partial);
        fresh.split_char = std::mem::take(&mut self.split_char);
        *self = fresh;
        lines
    }

    /// The last `max_lines` lines of what is not final yet, as they look now: emphasis that is still open is closed, a link
    /// that is half there is its text, code is not highlighted. They replace the tail shown before.
    pub fn tail(&self, max_lines: usize) -> Vec<Line> {
        self.tail_at(self.options.width, max_lines)
    }

    /// As [`tail`](MdRenderer::tail), at another width than the lines that are final.
    pub fn tail_at(&self, width: u16, max_lines: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let pending = self.pending(max_lines);
        if pending.trim().is_empty() {
            return lines;
        }
        let text = match self.blocks.open() {
            Open::Text => heal::heal(&pending),
            Open::Fence | Open::Verbatim => Cow::Borrowed(pending.as_str()),
        };
        let options = Options { width: width.max(1), highlight: Highlight::Off, ..self.options.clone() };
        lay_out(
            &text,
            &options,
            self.context(),
            &self.definitions,
            &mut CodeCache::default(),
            &mut Room::default(),
            &mut lines,
        );
        let surplus = lines.len().saturating_sub(max_lines);
        lines.drain(..surplus);
        lines
    }

    /// The text of the tail: no more of it than `max_lines` lines can need.
    fn pending(&self, max_lines: usize) -> String {
        let piece = &self.source[self.piece_start..];
        let open = self.blocks.open();
        let limit = max_lines.saturating_mul(usize::from(self.options.width)).saturating_mul(4);
        let limit = limit.clamp(1024, MAX_TAIL_BYTES);
        let mut text = String::new();
        if piece.len() > limit {
            // What a fence is or which columns a table has stands in its first lines.
            let heads = match open {
                Open::Fence => 1,
                _ if piece.trim_start().starts_with('|') => 2,
                _ => 0,
            };
            let head: usize = piece.split_inclusive('\n').take(heads).map(str::len).sum();
            let mut cut = piece.len() - limit;
            while !piece.is_char_boundary(cut) {
                cut += 1;
            }
            let cut = piece[cut..].find('\n').map_or(cut, |newline| cut + newline + 1).max(head);
            text.push_str(&piece[..head]);
            text.push_str(&piece[cut..]);
        } else {
            text.push_str(piece);
        }
        let mut cut = self.partial.len().saturating_sub(MAX_TAIL_BYTES);
        while !self.partial.is_char_boundary(cut) {
            cut += 1;
        }
        let partial = &self.partial[cut..];
        // A line of marks alone may become a heading's underline, a rule, an item or a fence: it is shown when that is known.
        let undecided =
            partial.trim().bytes().all(|byte| b"-=*+_#>`~|:.)".contains(&byte) || byte.is_ascii_digit());
        if !undecided {
            for line in partial.split('\r').filter(|line| !line.is_empty()) {
                text.push_str(&clean_line(line));
                text.push('\n');
            }
        }
        text
    }

    fn feed(&mut self, chunk: &str, lines: &mut Vec<Line>) {
        let mut rest = chunk;
        while let Some(newline) = memchr::memchr(b'\n', rest.as_bytes()) {
            let (line, after) = rest.split_at(newline);
            rest = &after[1..];
            if self.partial.is_empty() {
                self.complete_line(line, lines);
            } else {
                let mut whole = std::mem::take(&mut self.partial);
                whole.push_str(line);
                self.complete_line(&whole, lines);
                // The room is for the next line.
                whole.clear();
                self.partial = whole;
            }
        }
        self.partial.push_str(rest);
    }

    /// Reads a line whose end is known. A carriage return inside it is a line end of its own.
    fn complete_line(&mut self, line: &str, lines: &mut Vec<Line>) {
        let line = line.strip_suffix('\r').unwrap_or(line);
        if memchr::memchr(b'\r', line.as_bytes()).is_some() {
            for part in line.split('\r') {
                self.read_line(part, lines);
            }
        } else {
            self.read_line(line, lines);
        }
    }

    fn read_line(&mut self, line: &str, lines: &mut Vec<Line>) {
        let mut line = clean_line(line);
        // A line of blanks is an empty one to Markdown; the parser misreads a few (four spaces, then a quote).
        if line.trim_matches([' ', '\t']).is_empty() {
            line = Cow::Borrowed("");
        }
        let step = self.blocks.line(&line);
        if let Some(start) = step.begins {
            self.commit(lines);
            self.piece = start;
        }
        self.source.push_str(&line);
        self.source.push('\n');
        if step.between {
            self.piece_start = self.source.len();
        } else if step.complete {
            self.commit(lines);
        }
    }

    /// Lays out the piece in hand for good.
    fn commit(&mut self, lines: &mut Vec<Line>) {
        let text = &self.source[self.piece_start..];
        if text.is_empty() {
            return;
        }
        let before = lines.len();
        let context = self.context();
        let (next_number, defined) =
            lay_out(text, &self.options, context, &self.definitions, &mut self.cache, &mut self.room, lines);
        self.next_number = next_number;
        for (label, definition) in defined {
            // The first definition of a label counts.
            self.definitions.entry(label).or_insert(definition);
        }
        self.emitted |= lines.len() > before;
        self.piece_start = self.source.len();
    }

    fn context(&self) -> Context {
        match self.piece {
            Start::Block => Context { gap: self.emitted, number: None },
            Start::NextItem { spaced } => Context { gap: spaced && self.emitted, number: self.next_number },
        }
    }

    fn end_split_char(&mut self) {
        if !std::mem::take(&mut self.split_char).is_empty() {
            self.partial.push('\u{fffd}');
        }
    }
}

/// Whether the bytes are the start of a character rather than no character at all.
fn is_char_start(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// Parses and lays out one piece. Returns the number the next item of its list has, and the definitions in it.
fn lay_out(
    text: &str,
    options: &Options,
    context: Context,
    definitions: &Definitions,
    cache: &mut CodeCache,
    room: &mut Room,
    lines: &mut Vec<Line>,
) -> (Option<u64>, Vec<(String, Definition)>) {
    let marked = mark_emphasis(text);
    let lookup = |link: BrokenLink<'_>| {
        let (target, title) = definitions.get(&label_key(&link.reference))?;
        Some((CowStr::from(target.clone()), CowStr::from(title.clone())))
    };
    let lookup = (!definitions.is_empty()).then_some(lookup);
    let parser = Parser::new_with_broken_link_callback(&marked, EXTENSIONS, lookup);
    let mut defined = Vec::new();
    let bytes = marked.as_bytes();
    if memchr::memchr_iter(b']', bytes).any(|at| bytes.get(at + 1) == Some(&b':')) {
        for (label, definition) in parser.reference_definitions().iter() {
            let title = definition.title.as_deref().unwrap_or_default().to_owned();
            defined.push((label_key(label), (definition.dest.to_string(), title)));
        }
    }
    let next_number =
        Layout::new(options, &marked, context, cache, room, lines).run(parser.into_offset_iter());
    (next_number, defined)
}

/// Labels that differ in case and white space are the same.
fn label_key(label: &str) -> String {
    label.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}
