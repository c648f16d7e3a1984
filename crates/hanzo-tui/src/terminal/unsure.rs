//! What was sent and not confirmed. A terminal that is resized has its new size before we hear of it: what we write meanwhile
//! lands on rows that were broken anew, in places we did not mean. So every frame ends with the question how wide the screen
//! is, the answers come in the order of the frames, and the first answer that differs says which frame went astray. From the
//! rows before that frame, what is where can be computed, and be put right.

use std::collections::VecDeque;

use ratatui::text::Line;

use super::cells::{self, Row};

/// The viewport at a moment: its rows, which of them the cursor is in, and the column it is in.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    pub rows: Vec<Row>,
    pub at: usize,
    pub column: usize,
}

impl Place {
    /// How many rows are above the cursor's once a terminal has broken them anew for `columns`.
    pub fn above(&self, columns: usize) -> usize {
        let rows = self.rows.iter().take(self.at);
        rows.map(|row| cells::broken(row.iter().map(|cell| cell.width), columns)).sum()
    }

    /// How many rows the cursor is below the start of its own row, once that was broken. Some terminals leave the row with
    /// the cursor as it is and put the cursor into the last column.
    pub fn lower(&self, columns: usize, cursor: Option<(usize, usize)>) -> usize {
        match cursor {
            Some((_, column)) if column == self.column % columns => self.column / columns,
            _ => 0,
        }
    }
}

/// A question the terminal has not answered.
#[derive(Debug)]
enum Question {
    /// How wide the screen was when it came to this frame.
    Frame { width: usize, at: usize, before: Place, lines: Option<Vec<Line<'static>>> },
    /// Where the cursor is.
    Where,
    /// How wide the screen is now.
    Width,
    /// How wide it was when the old viewport was erased.
    Erased,
}

/// What became of frames that were drawn for another width than the terminal had.
#[derive(Debug)]
pub(super) struct Astray {
    /// The viewport before the first of them.
    pub before: Place,
    /// The width it really had.
    pub width: usize,
    /// What they wrote above the viewport, unless it was too much to be reached again.
    pub lines: Option<Vec<Line<'static>>>,
}

impl Astray {
    /// How many rows of the old viewport were left above what the first of the frames wrote.
    pub fn stale(&self) -> usize {
        self.before.above(self.width) - self.before.at
    }

    /// How many rows those and the `lines` are on a screen with `columns` columns, above a viewport whose first row is `first`
    /// columns wide. The last of the old rows may be half of one, to which the terminal takes what follows to belong.
    pub fn rows(&self, lines: &[Line<'_>], first: usize, columns: usize) -> usize {
        let (mut left, mut rows, mut half) = (self.stale(), 0, 0);
        for row in &self.before.rows {
            let widths = || row.iter().map(|cell| cell.width);
            let parts = cells::broken(widths(), self.width);
            if parts > left {
                half = left * self.width;
                break;
            }
            left -= parts;
            rows += cells::broken(widths(), columns);
        }
        let joined = |more: usize| (half + more).max(1).div_ceil(columns);
        match lines {
            [] => rows + joined(first.min(self.width)) - 1,
            [one, rest @ ..] => {
                let one = if half > 0 { joined(one.width()) } else { cells::broken_line(one, columns) };
                rows + one + rest.iter().map(|line| cells::broken_line(line, columns)).sum::<usize>()
            }
        }
    }
}

/// Where the cursor really is and how wide the screen really is, as far as the terminal said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Whereabouts {
    /// Row and column, from zero.
    pub cursor: Option<(usize, usize)>,
    /// Columns.
    pub width: Option<usize>,
}

/// The questions that are open, and what the answers said.
#[derive(Debug, Default)]
pub(super) struct Unsure {
    questions: VecDeque<Question>,
    astray: Option<Astray>,
    whereabouts: Whereabouts,
    /// The width at which the old viewport was really erased.
    erased: Option<usize>,
    /// The row of the screen the viewport began in when the terminal last said.
    top: Option<usize>,
    /// Answers that were no longer waited for and may still come.
    late: usize,
}

impl Unsure {
    /// A frame was sent, and the cursor is in row `at` of the viewport. Lines that would not fit on the screen could not be reached again and are not kept.
    pub fn sent(&mut self, width: usize, at: usize, before: Place, lines: &[Line<'_>], most: usize) {
        let lines = (lines.len() <= most).then(|| lines.iter().map(owned).collect());
        self.questions.push_back(Question::Frame { width, at, before, lines });
    }

    /// The cursor's place and the width were asked for.
    pub fn asked(&mut self) {
        self.whereabouts = Whereabouts::default();
        self.questions.extend([Question::Where, Question::Width]);
    }

    /// The old viewport was erased, as for some width.
    pub fn erased(&mut self) {
        self.questions.push_back(Question::Erased);
    }

    /// The width at which it really was, once that is known.
    pub fn erased_at(&mut self) -> Option<usize> {
        self.erased.take()
    }

    pub fn is_waiting(&self) -> bool {
        !self.questions.is_empty()
    }

    pub fn is_astray(&self) -> bool {
        self.astray.is_some()
    }

    /// The terminal answered: row and column, from one.
    pub fn answered(&mut self, row: u16, column: u16) {
        if self.late > 0 {
            self.late -= 1;
            return;
        }
        let (row, column) = (usize::from(row.max(1)), usize::from(column.max(1)));
        match self.questions.pop_front() {
            Some(Question::Frame { width, at, before, lines }) => match &mut self.astray {
                Some(astray) => {
                    astray.lines = astray.lines.take().zip(lines).map(|(mut all, more)| {
                        all.extend(more);
                        all
                    });
                }
                None if column != width => self.astray = Some(Astray { before, width: column, lines }),
                None => self.top = (row - 1).checked_sub(at),
            },
            Some(Question::Where) => self.whereabouts.cursor = Some((row - 1, column - 1)),
            Some(Question::Width) => self.whereabouts.width = Some(column),
            Some(Question::Erased) => self.erased = Some(column),
            None => {}
        }
    }

    pub fn top(&self) -> Option<usize> {
        self.top
    }

    /// Nobody waits for answers any more; what was not answered is taken to have gone well.
    pub fn settle(&mut self) -> (Option<Astray>, Whereabouts) {
        self.late += self.questions.len();
        self.questions.clear();
        (self.astray.take(), std::mem::take(&mut self.whereabouts))
    }

    pub fn whereabouts(&self) -> Whereabouts {
        self.whereabouts
    }
}

pub(super) fn owned(line: &Line<'_>) -> Line<'static> {
    let spans = line.spans.iter().map(|span| {
        ratatui::text::Span::styled(span.content.clone().into_owned(), line.style.patch(span.style))
    });
    Line::from(spans.collect::<Vec<_>>())
}
