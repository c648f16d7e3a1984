//! The inline viewport: a few rows at the bottom that are ours, and above them the terminal's own scrollback, into which
//! finished lines go once and for ever.
//!
//! No scroll regions, no absolute rows, no clearing of the screen. The cursor always rests inside the viewport at a row we
//! know, so that everything is said relative to it. To add lines above, the viewport's first row is overwritten by them and
//! the viewport is written again below, which scrolls the terminal the way ordinary output does; this is the one technique
//! that keeps every line on every terminal we could try. A row that did not change is not written, and of one that did only
//! the part behind its first difference.
//!
//! The same drawing serves a viewport that is the whole of the alternate screen; above that there is nothing.

use std::collections::VecDeque;
use std::io::{self, Write};

use ratatui::text::Line;

use super::cells::broken_line;
use super::cells::{Row, cells, width, write_cells, write_line};
use super::unsure::{Astray, Place, Unsure, Whereabouts, owned};

/// What the viewport shows: its rows, and where the caret is in them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct View {
    /// The rows; each is cut to the width.
    pub rows: Vec<Line<'static>>,
    /// Row and column of the caret; `None` hides it.
    pub caret: Option<(usize, usize)>,
}

/// How a terminal treats lines that no longer fit when it becomes narrower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reflow {
    /// It breaks them anew, as nearly all do.
    #[default]
    Wraps,
    /// It cuts them off.
    Cuts,
}

/// Whether each frame asks the terminal how wide it was when it came to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Asking {
    /// No: nobody would hear the answer.
    #[default]
    Never,
    /// Yes.
    EachFrame,
}

/// Which part of the screen is ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Extent {
    /// The rows at the bottom.
    #[default]
    Inline,
    /// All of it: the alternate screen.
    Whole,
}

/// Writes the viewport and the lines above it.
#[derive(Debug)]
pub struct Screen<W> {
    out: W,
    width: usize,
    height: usize,
    reflow: Reflow,
    asking: Asking,
    extent: Extent,
    shown: Vec<Row>,
    /// The row of the viewport the terminal's cursor is in.
    at: usize,
    caret: Option<(usize, usize)>,
    unsure: Unsure,
    /// The last lines that were written above the viewport, should they have to be written again.
    recent: VecDeque<Line<'static>>,
    /// What was erased for a width of which it is not known yet whether it was the right one.
    erased: Option<Erased>,
    /// What an erasure for the wrong width left to be put right.
    wrong: Option<Wrong>,
    bytes: u64,
}

/// How many lines are remembered: more than a screen has.
const RECENT: usize = 200;

/// The old viewport, and how many rows above the cursor were erased with it.
#[derive(Debug)]
struct Erased {
    /// The width before.
    width: usize,
    now: Place,
    astray: Option<Astray>,
    rows: usize,
}

impl Erased {
    /// How many rows above the cursor a screen of so many columns had to erase, and whether lines were among them.
    fn above(&self, columns: usize, cursor: Option<(usize, usize)>, reach: usize) -> (usize, bool) {
        let Some(astray) = &self.astray else {
            let broken = columns < self.width;
            let above =
                if broken { self.now.above(columns) + self.now.lower(columns, cursor) } else { self.now.at };
            return (above, false);
        };
        // Rows that were drawn on the resized screen were cut to it.
        let above = if astray.width <= columns { self.now.at } else { self.now.above(columns) };
        let Some(lines) = &astray.lines else { return (above, false) };
        let first = self.now.rows.first().map_or(0, |row| width(row));
        let more = astray.rows(lines, first, columns);
        // A line that fills the row or reaches into the next met what we did not know to be there.
        let spoilt = astray.stale() > 0 || lines.iter().any(|line| line.width() >= astray.width);
        if spoilt && above + more <= reach { (above + more, true) } else { (above, false) }
    }
}

/// What is left of an erasure that was made for the wrong width.
#[derive(Debug)]
enum Wrong {
    /// So many rows of the old viewport.
    Left(usize),
    /// Nothing, and of the lines above it some are gone: these, of the first of which so many columns are still there.
    Gone { lines: Vec<Line<'static>>, columns: usize },
}

impl<W: Write> Screen<W> {
    /// A screen of this size, with nothing of ours on it; the cursor is at the start of a line.
    pub fn new(out: W, width: u16, height: u16, reflow: Reflow) -> Self {
        Self {
            out,
            width: usize::from(width.max(1)),
            height: usize::from(height.max(1)),
            reflow,
            asking: Asking::Never,
            extent: Extent::Inline,
            shown: Vec::new(),
            at: 0,
            caret: None,
            unsure: Unsure::default(),
            recent: VecDeque::new(),
            erased: None,
            wrong: None,
            bytes: 0,
        }
    }

    /// Has each frame ask the terminal for its width, or not.
    pub fn ask(&mut self, asking: Asking) {
        self.asking = asking;
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

    /// Puts `lines` into the scrollback and shows `view` below them. There is no scrollback above the whole screen: its
    /// lines are for the caller to show.
    pub fn draw(&mut self, lines: &[Line<'_>], view: &View) -> io::Result<()> {
        let most = match self.extent {
            // A viewport as tall as the screen would scroll its own first row away.
            Extent::Inline => self.height.saturating_sub(1).max(1),
            Extent::Whole => self.height,
        };
        let skipped = view.rows.len().saturating_sub(most);
        let mut rows: Vec<Row> = view.rows[skipped..].iter().map(|line| cells(line, self.width)).collect();
        if rows.is_empty() {
            rows.push(Row::new());
        }
        let last = rows.len() - 1;
        let caret = view.caret.and_then(|(row, column)| {
            Some((row.checked_sub(skipped)?.min(last), column.min(self.width - 1)))
        });
        let before = (self.at, self.caret.map_or(0, |(_, column)| column));
        let mut out = Vec::new();
        if lines.is_empty() && rows.len() == self.shown.len() {
            self.change(&rows, &mut out);
        } else {
            self.rewrite(lines, &rows, &mut out);
        }
        let at = self.at;
        let asks = self.asking == Asking::EachFrame && !out.is_empty();
        if asks {
            out.extend_from_slice(ASK_WIDTH);
            out.push(b'\r');
        }
        self.place_caret(caret, &mut out);
        self.recent.extend(lines.iter().skip(lines.len().saturating_sub(RECENT)).map(owned));
        let more = self.recent.len().saturating_sub(RECENT);
        self.recent.drain(..more);
        let rows = std::mem::replace(&mut self.shown, rows);
        if asks {
            let before = Place { rows, at: before.0, column: before.1 };
            self.unsure.sent(self.width, at, before, lines, self.height);
        }
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
            // A row is erased from its start or not at all: of one whose end was erased some terminals remember how long it
            // was, and break it by that when they become narrower.
            let shorter = width(new) < width(old);
            let same =
                if shorter { 0 } else { old.iter().zip(new).take_while(|(old, new)| old == new).count() };
            column_at(width(&new[..same]), out);
            if shorter {
                out.extend_from_slice(b"\x1b[K");
            }
            write_cells(&new[same..], out);
        }
        if !out.is_empty() {
            out.extend_from_slice(WRAP);
        }
    }

    /// Writes `lines` where the viewport began, and the viewport below them.
    fn rewrite(&mut self, lines: &[Line<'_>], rows: &[Row], out: &mut Vec<u8>) {
        go(&mut self.at, 0, out);
        out.push(b'\r');
        if !self.shown.is_empty() {
            erase(self.shown.len(), out);
        }
        for line in lines {
            // Wider lines are for the terminal to break, so that it can join them again when it is resized.
            write_line(line, out);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(NO_WRAP);
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(b"\r\n");
            }
            write_cells(row, out);
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

    /// The terminal answered a question: row and column, from one.
    pub fn answered(&mut self, row: u16, column: u16) {
        self.unsure.answered(row, column);
        let (Some(columns), Some(erased)) = (self.unsure.erased_at(), &self.erased) else { return };
        let (rows, _) = erased.above(columns, None, erased.rows.max(self.height));
        let right = columns == self.width;
        self.wrong = match rows.checked_sub(erased.rows) {
            _ if right => None,
            Some(left) => Some(Wrong::Left(left)),
            None => Some(self.gone(erased.rows - rows, columns)),
        };
        self.erased = None;
    }

    /// The lines of which the last `rows` rows are gone.
    fn gone(&self, rows: usize, columns: usize) -> Wrong {
        let (mut lines, mut found) = (Vec::new(), 0);
        for line in self.recent.iter().rev() {
            if found >= rows {
                break;
            }
            found += broken_line(line, columns);
            lines.insert(0, line.clone());
        }
        Wrong::Gone { lines, columns: found.saturating_sub(rows) * columns }
    }

    /// The row of the viewport that is in a row of the screen; `None` above it, or where the terminal does not say.
    pub fn row_at(&self, row: u16) -> Option<u16> {
        let top = match self.extent {
            Extent::Inline => self.unsure.top()?,
            Extent::Whole => 0,
        };
        row.checked_sub(u16::try_from(top).ok()?)
    }

    /// Whether an answer is still to come.
    pub fn is_waiting(&self) -> bool {
        self.unsure.is_waiting()
    }

    /// Whether something met a terminal that was resized already, and has to be put right.
    pub fn is_astray(&self) -> bool {
        self.unsure.is_astray() || self.wrong.is_some()
    }

    /// Asks the terminal where the cursor is and how wide it is, before [`Screen::resize`].
    pub fn ask_where(&mut self) -> io::Result<()> {
        self.unsure.asked();
        self.put(&[ASK_WHERE, ASK_WIDTH].concat())
    }

    /// What it answered.
    pub fn whereabouts(&self) -> Whereabouts {
        self.unsure.whereabouts()
    }

    /// The terminal has another size. The rows of the viewport are taken to be where such a terminal puts them, and are
    /// erased. Returns lines that have to be written again, because they were erased with them.
    pub fn resize(&mut self, width: u16, height: u16) -> io::Result<Vec<Line<'static>>> {
        let (width, height) = (usize::from(width.max(1)), usize::from(height.max(1)));
        let (astray, place) = self.unsure.settle();
        // As many rows as there are above the cursor can be reached; what scrolled off is no longer ours to erase.
        let reach = place.cursor.map_or(height - 1, |(row, _)| row.min(height - 1));
        let wrong = self.wrong.take();
        let (was, now) = (
            self.width,
            Place {
                rows: std::mem::take(&mut self.shown),
                at: self.at,
                column: self.caret.map_or(0, |(_, column)| column),
            },
        );
        self.width = width;
        self.height = height;
        let mut again = Vec::new();
        let mut out = Vec::new();
        if self.extent == Extent::Whole {
            out.extend_from_slice(b"\x1b[H\x1b[J");
            self.forget();
            self.put(&out)?;
            return Ok(again);
        }
        let above = match wrong {
            Some(Wrong::Left(rows)) => rows,
            Some(Wrong::Gone { lines, columns }) => {
                self.recent.truncate(self.recent.len() - lines.len());
                again = lines;
                columns.div_ceil(width)
            }
            None if self.reflow == Reflow::Cuts => self.at,
            None => {
                let mut erased = Erased { width: was, now, astray, rows: 0 };
                let (above, with_lines) = erased.above(width, place.cursor, reach);
                if with_lines
                    && let Some(lines) = erased.astray.as_ref().and_then(|astray| astray.lines.clone())
                {
                    self.recent.truncate(self.recent.len().saturating_sub(lines.len()));
                    again = lines;
                }
                erased.rows = above.min(reach);
                self.erased = Some(erased);
                above
            }
        };
        self.at = above.min(reach);
        let rows = self.at + 1;
        go(&mut self.at, 0, &mut out);
        out.push(b'\r');
        erase(rows, &mut out);
        if self.asking == Asking::EachFrame && self.erased.is_some() {
            out.extend_from_slice(ASK_WIDTH);
            out.push(b'\r');
            self.unsure.erased();
        }
        self.forget();
        self.put(&out)?;
        Ok(again)
    }

    /// Takes the viewport away; the cursor is where it began.
    pub fn leave(&mut self) -> io::Result<()> {
        let mut out = Vec::new();
        go(&mut self.at, 0, &mut out);
        out.push(b'\r');
        erase(self.shown.len(), &mut out);
        out.extend_from_slice(b"\x1b[?25h");
        self.forget();
        self.put(&out)
    }

    /// Something else was on the terminal and has left the cursor at the start of a line of its own.
    pub fn forget(&mut self) {
        self.shown.clear();
        self.at = 0;
        self.caret = None;
    }

    /// Writes to the rows at the bottom or to the whole of the alternate screen, from now on; nothing of ours is there yet.
    pub fn extend(&mut self, extent: Extent) {
        self.extent = extent;
        self.forget();
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.out.write_all(bytes)?;
        self.out.flush()
    }
}

/// Lines of the viewport are never broken by the terminal, whatever it thinks of the width of a character.
const NO_WRAP: &[u8] = b"\x1b[?7l";
const WRAP: &[u8] = b"\x1b[?7h";
/// To the last column there is, and where is that?
const ASK_WIDTH: &[u8] = b"\x1b[999G\x1b[6n";
const ASK_WHERE: &[u8] = b"\x1b[6n";

fn go(at: &mut usize, row: usize, out: &mut Vec<u8>) {
    let (count, direction) = if row < *at { (*at - row, 'A') } else { (row - *at, 'B') };
    match count {
        0 => {}
        1 => out.extend_from_slice(format!("\x1b[{direction}").as_bytes()),
        _ => out.extend_from_slice(format!("\x1b[{count}{direction}").as_bytes()),
    }
    *at = row;
}

/// Erases `rows` rows and all below them, the cursor being at the start of the first one. Not all at once: tmux takes the
/// erasure of a whole screen for the wish to keep what is on it, and puts it into the scrollback.
fn erase(rows: usize, out: &mut Vec<u8>) {
    let sequence: &[u8] = if rows > 1 { b"\x1b[K\x1b[B\x1b[J\x1b[A" } else { b"\x1b[J" };
    out.extend_from_slice(sequence);
}

fn column_at(column: usize, out: &mut Vec<u8>) {
    match column {
        0 => out.push(b'\r'),
        _ => out.extend_from_slice(format!("\x1b[{}G", column + 1).as_bytes()),
    }
}
