//! The transcript on the alternate screen, which has no scrollback of its own: the lines are kept here and can be paged
//! through, and are written to the ordinary screen at the end.

use std::collections::VecDeque;

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::screen::View;

/// How many lines are kept. The engine has all of them.
const KEPT: usize = 50_000;

/// The lines, and how far up one has gone in them.
#[derive(Debug, Default)]
pub struct Pages {
    lines: VecDeque<Line<'static>>,
    /// How many rows are hidden below the last one in sight.
    up: usize,
}

impl Pages {
    /// More lines, for a screen of `width` columns. Who looks at earlier ones goes on looking at them.
    pub fn push(&mut self, lines: Vec<Line<'static>>, width: usize) {
        if self.up > 0 {
            self.up += lines.iter().map(|line| rows(line, width).len()).sum::<usize>();
        }
        self.lines.extend(lines);
        let more = self.lines.len().saturating_sub(KEPT);
        self.lines.drain(..more);
    }

    /// Goes down by so many rows, or up when that is negative, on a screen with `room` rows for the lines.
    pub fn scroll(&mut self, by: isize, width: usize, room: usize) {
        self.up = self.up.saturating_add_signed(-by);
        if by < 0 {
            let total: usize = self.lines.iter().map(|line| rows(line, width).len()).sum();
            self.up = self.up.min(total.saturating_sub(room));
        }
    }

    /// Back to the newest line.
    pub fn to_end(&mut self) {
        self.up = 0;
    }

    /// Everything that is kept.
    pub fn into_lines(self) -> Vec<Line<'static>> {
        self.lines.into()
    }

    /// The whole screen: the lines, and `below` at its bottom.
    pub fn view(&self, below: View, width: usize, height: usize) -> View {
        let room = height.saturating_sub(below.rows.len());
        // A row is for saying that there is more.
        let (room, notice) = if self.up > 0 && room > 1 { (room - 1, true) } else { (room, false) };
        let mut shown: VecDeque<Line<'static>> = VecDeque::new();
        let mut skip = self.up;
        'lines: for line in self.lines.iter().rev() {
            for row in rows(line, width).into_iter().rev() {
                if skip > 0 {
                    skip -= 1;
                    continue;
                }
                if shown.len() == room {
                    break 'lines;
                }
                shown.push_front(row);
            }
        }
        // The newest line stands right above what is below it.
        let mut all: Vec<Line<'static>> = vec![Line::default(); room - shown.len()];
        all.extend(shown);
        if notice {
            let words = format!("── {} more rows below, PageDown and Ctrl+End go there ", self.up);
            all.push(Line::styled(words, Style::new().add_modifier(Modifier::DIM)));
        }
        let caret = below.caret.map(|(row, column)| (row + all.len(), column));
        all.extend(below.rows);
        View { rows: all, caret }
    }
}

/// A line as the rows of a screen with `width` columns.
fn rows(line: &Line<'static>, width: usize) -> Vec<Line<'static>> {
    if line.width() <= width {
        return vec![line.clone()];
    }
    let mut rows = Vec::new();
    let mut row: Vec<Span<'static>> = Vec::new();
    let mut used = 0;
    for span in &line.spans {
        let style = line.style.patch(span.style);
        let mut text = String::new();
        for grapheme in span.content.graphemes(true) {
            let wide = grapheme.width();
            if used + wide > width && used > 0 {
                row.push(Span::styled(std::mem::take(&mut text), style));
                rows.push(Line::from(std::mem::take(&mut row)));
                used = 0;
            }
            used += wide;
            text.push_str(grapheme);
        }
        row.push(Span::styled(text, style));
    }
    rows.push(Line::from(row));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pages: &Pages, height: usize) -> Vec<String> {
        let below = View { rows: vec![Line::raw("below")], caret: Some((0, 2)) };
        let view = pages.view(below, 5, height);
        assert_eq!(view.rows.len(), height);
        assert_eq!(view.caret, Some((height - 1, 2)));
        view.rows.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn one_pages_through_the_lines_and_stays_where_one_is() {
        let mut pages = Pages::default();
        pages.push(vec![Line::raw("one"), Line::raw("two and a half")], 5);
        assert_eq!(shown(&pages, 6), ["", "one", "two a", "nd a ", "half", "below"]);
        assert_eq!(shown(&pages, 3), ["nd a ", "half", "below"]);
        pages.scroll(-2, 5, 2);
        assert_eq!(shown(&pages, 3)[0], "two a");
        pages.push(vec![Line::raw("new")], 5);
        assert_eq!(shown(&pages, 3)[0], "two a", "new lines do not move what is read");
        assert!(shown(&pages, 3)[1].contains("3 more rows"));
        pages.scroll(-100, 5, 2);
        assert_eq!(shown(&pages, 4)[0], "one");
        pages.scroll(100, 5, 2);
        assert_eq!(shown(&pages, 2), ["new", "below"]);
        assert_eq!(pages.into_lines().len(), 3);
    }
}
