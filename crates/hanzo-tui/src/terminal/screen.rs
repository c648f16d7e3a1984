//! The inline viewport: a few rows at the bottom that are ours, and above them the terminal's own scrollback, into which
//! finished lines go once and for ever.
//!
//! No scroll regions, no absolute rows, no clearing of the screen. The cursor always rests inside the viewport at a row we
//! know, so that everything is said relative to it. To add lines above, the viewport's first row is overwritten by them and
//! the viewport is written again below, which scrolls the terminal the way ordinary output does; this is the one technique
//! that keeps every line on every terminal we could try. A row that did not change is not written, and of one that did only
//! the part behind its first difference.

use std::io::{self, Write};

use ratatui::style::Style;
use ratatui::text::Line;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::sgr::Pen;

/// What the viewport shows: its rows, and where the caret is in them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The rows; each is cut to the width.
    pub rows: Vec<Line<'static>>,
    /// Row and column of the caret; `None` hides it.
    pub caret: Option<(usize, usize)>,
}

/// One grapheme on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Cell {
    text: String,
    width: usize,
    pen: Pen,
}

type Row = Vec<Cell>;

/// How a terminal treats lines that no longer fit when it becomes narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reflow {
    /// It breaks them anew, as nearly all do.
    #[default]
    Wraps,
    /// It cuts them off.
    Cuts,
}

/// Writes the viewport and the lines above it.
#[derive(Debug)]
pub struct Screen<W> {
    out: W,
    width: usize,
    height: usize,
    reflow: Reflow,
    shown: Vec<Row>,
    /// The row of the viewport the terminal's cursor is in.
    at: usize,
    caret: Option<(usize, usize)>,
    bytes: u64,
}

impl<W: Write> Screen<W> {
    /// A screen of this size, with nothing of ours on it; the cursor is at the start of a line.
    pub fn new(out: W, width: u16, height: u16, reflow: Reflow) -> Self {
        Self {
            out,
            width: usize::from(width.max(1)),
            height: usize::from(height.max(1)),
            reflow,
            shown: Vec::new(),
            at: 0,
            caret: None,
            bytes: 0,
        }
    }

    /// How many bytes were written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The size.
    pub fn size(&self) -> (usize, usize) {
        (self.width, self.height)
    }

    /// Where the bytes go.
    pub fn output(&mut self) -> &mut W {
        &mut self.out
    }

    /// Puts `lines` into the scrollback and shows `view` below them.
    pub fn draw(&mut self, lines: &[Line<'_>], view: &View) -> io::Result<()> {
        // A viewport as tall as the screen would scroll its own first row away.
        let most = self.height.saturating_sub(1).max(1);
        let skipped = view.rows.len().saturating_sub(most);
        let mut rows: Vec<Row> = view.rows[skipped..].iter().map(|line| cells(line, self.width)).collect();
        if rows.is_empty() {
            rows.push(Row::new());
        }
        let last = rows.len() - 1;
        let caret = view.caret.and_then(|(row, column)| {
            Some((row.checked_sub(skipped)?.min(last), column.min(self.width - 1)))
        });
        let mut out = Vec::new();
        if lines.is_empty() && rows.len() == self.shown.len() {
            self.change(&rows, &mut out);
        } else {
            self.rewrite(lines, &rows, &mut out);
        }
        self.place_caret(caret, &mut out);
        self.shown = rows;
        self.send(&out)
    }

    /// Writes the rows that differ, each from its first difference on.
    fn change(&mut self, rows: &[Row], out: &mut Vec<u8>) {
        for (index, (old, new)) in self.shown.iter().zip(rows).enumerate() {
            if old == new {
                continue;
            }
            if out.is_empty() {
                out.extend_from_slice(NO_WRAP);
            }
            go(&mut self.at, index, out);
            let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
            let column: usize = new[..same].iter().map(|cell| cell.width).sum();
            column_at(column, out);
            write_cells(&new[same..], out);
            let width = |row: &Row| row.iter().map(|cell| cell.width).sum::<usize>();
            if width(new) < width(old) {
                out.extend_from_slice(b"\x1b[K");
            }
        }
        if !out.is_empty() {
            out.extend_from_slice(WRAP);
        }
    }

    /// Writes `lines` where the viewport began, and the viewport below them.
    fn rewrite(&mut self, lines: &[Line<'_>], rows: &[Row], out: &mut Vec<u8>) {
        go(&mut self.at, 0, out);
        out.push(b'\r');
        for line in lines {
            // Such a line may reach into the next row, whose rest nothing would erase.
            if is_disputed(line) {
                out.extend_from_slice(b"\x1b[J");
            }
            // Wider lines are for the terminal to break, so that it can join them again when it is resized.
            let width = write_line(line, out);
            // A row that is exactly full has the cursor on its last cell, which an erase would take.
            if width == 0 || !width.is_multiple_of(self.width) {
                out.extend_from_slice(b"\x1b[K");
            }
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(NO_WRAP);
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b"\r\n");
            }
            write_cells(row, out);
            if row.iter().map(|cell| cell.width).sum::<usize>() < self.width {
                out.extend_from_slice(b"\x1b[K");
            }
        }
        // What a taller viewport left below.
        if self.shown.len() > rows.len() + lines.len() {
            out.extend_from_slice(b"\r\n\x1b[J\x1b[A");
        }
        out.extend_from_slice(WRAP);
        self.at = rows.len() - 1;
        // Where the cursor is in its row is not known, so the caret is placed anew.
        self.caret = None;
    }

    fn place_caret(&mut self, caret: Option<(usize, usize)>, out: &mut Vec<u8>) {
        if caret == self.caret && out.is_empty() {
            return;
        }
        if let Some((row, column)) = caret {
            go(&mut self.at, row, out);
            column_at(column, out);
        }
        self.caret = caret;
    }

    fn send(&mut self, out: &[u8]) -> io::Result<()> {
        if out.is_empty() {
            return Ok(());
        }
        // One write, held back by terminals that know how until it is complete; the cursor does not dance about meanwhile.
        let show: &[u8] = if self.caret.is_some() { b"\x1b[?25h" } else { b"" };
        let whole = [b"\x1b[?2026h\x1b[?25l", out, show, b"\x1b[?2026l"].concat();
        self.bytes += whole.len() as u64;
        self.out.write_all(&whole)?;
        self.out.flush()
    }

    /// The terminal has another size. The rows of the viewport are taken to be where such a terminal puts them.
    pub fn resize(&mut self, width: u16, height: u16) -> io::Result<()> {
        let (width, height) = (usize::from(width.max(1)), usize::from(height.max(1)));
        let mut above = self.at;
        if self.reflow == Reflow::Wraps && width < self.width {
            let taken = |row: &Row| row.iter().map(|cell| cell.width).sum::<usize>().max(1).div_ceil(width);
            above = self.shown.iter().take(self.at).map(taken).sum();
            above += self.caret.map_or(0, |(_, column)| column / width);
        }
        self.width = width;
        self.height = height;
        let mut out = Vec::new();
        // What scrolled off the top is beyond reach, and no longer ours to erase.
        self.at = above.min(height - 1);
        go(&mut self.at, 0, &mut out);
        out.extend_from_slice(b"\r\x1b[J");
        self.shown.clear();
        self.caret = None;
        self.bytes += out.len() as u64;
        self.out.write_all(&out)?;
        self.out.flush()
    }

    /// Takes the viewport away; the cursor is where it began.
    pub fn leave(&mut self) -> io::Result<()> {
        let mut out = Vec::new();
        go(&mut self.at, 0, &mut out);
        out.extend_from_slice(b"\r\x1b[J\x1b[?25h");
        self.shown.clear();
        self.caret = None;
        self.bytes += out.len() as u64;
        self.out.write_all(&out)?;
        self.out.flush()
    }

    /// Something else was on the terminal and has left the cursor at the start of a line of its own.
    pub fn forget(&mut self) {
        self.shown.clear();
        self.at = 0;
        self.caret = None;
    }
}

/// Lines of the viewport are never broken by the terminal, whatever it thinks of the width of a character.
const NO_WRAP: &[u8] = b"\x1b[?7l";
const WRAP: &[u8] = b"\x1b[?7h";

fn go(at: &mut usize, row: usize, out: &mut Vec<u8>) {
    let (count, direction) = if row < *at { (*at - row, 'A') } else { (row - *at, 'B') };
    match count {
        0 => {}
        1 => out.extend_from_slice(format!("\x1b[{direction}").as_bytes()),
        _ => out.extend_from_slice(format!("\x1b[{count}{direction}").as_bytes()),
    }
    *at = row;
}

fn column_at(column: usize, out: &mut Vec<u8>) {
    match column {
        0 => out.push(b'\r'),
        _ => out.extend_from_slice(format!("\x1b[{}G", column + 1).as_bytes()),
    }
}

fn write_cells(cells: &[Cell], out: &mut Vec<u8>) {
    let mut pen = Pen::default();
    for cell in cells {
        pen.change(cell.pen, out);
        out.extend_from_slice(cell.text.as_bytes());
    }
    pen.change(Pen::default(), out);
}

/// Whether terminals disagree about the width of a line: some give each character of a joined emoji cells of its own.
fn is_disputed(line: &Line<'_>) -> bool {
    let apart = |text: &str| text.chars().map(|c| c.width().unwrap_or(0)).sum::<usize>();
    line.spans.iter().any(|span| !span.content.is_ascii() && apart(&span.content) != span.content.width())
}

/// Writes a line as it is, without control characters, and returns its width.
fn write_line(line: &Line<'_>, out: &mut Vec<u8>) -> usize {
    let mut pen = Pen::default();
    let mut width = 0;
    for span in &line.spans {
        pen.change(Pen::of(line.style.patch(span.style)), out);
        let content = span.content.as_ref();
        if content.contains(char::is_control) {
            let kept: String = content.chars().filter(|c| !c.is_control()).collect();
            out.extend_from_slice(kept.as_bytes());
            width += kept.width();
        } else {
            out.extend_from_slice(content.as_bytes());
            width += content.width();
        }
    }
    pen.change(Pen::default(), out);
    width
}

/// The cells of a line up to `most` columns, without control characters, whoever sent them, and without blanks at its end.
fn cells(line: &Line<'_>, most: usize) -> Row {
    let mut row = Row::new();
    let mut used = 0;
    'line: for span in &line.spans {
        let style: Style = line.style.patch(span.style);
        let pen = Pen::of(style);
        for grapheme in span.content.graphemes(true) {
            let text: String = grapheme.chars().filter(|c| !c.is_control()).collect();
            let width = text.width();
            if text.is_empty() || (width == 0 && row.is_empty()) {
                continue;
            }
            if used + width > most {
                break 'line;
            }
            used += width;
            row.push(Cell { text, width, pen });
        }
    }
    while row.last().is_some_and(|cell| cell.text == " " && cell.pen == Pen::default()) {
        row.pop();
    }
    row
}
