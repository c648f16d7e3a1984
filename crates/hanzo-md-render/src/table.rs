//! Tables: columns as wide as they need, narrower when the screen is, records when it is too narrow for columns.

use std::ops::Range;

use pulldown_cmark::Alignment;

use crate::rich::{Rich, spaces, text_width};
use crate::style::{Line, Style};
use crate::theme::Glyphs;

/// A column narrower than this is unreadable: the table is shown as records instead.
const LEAST_COLUMN: usize = 6;

#[derive(Debug)]
pub(crate) struct Table {
    alignments: Vec<Alignment>,
    rows: Vec<Vec<Rich>>,
    row: Vec<Rich>,
}

impl Table {
    pub(crate) fn new(alignments: Vec<Alignment>) -> Table {
        Table { alignments, rows: Vec::new(), row: Vec::new() }
    }

    pub(crate) fn push(&mut self, cell: Rich) {
        self.row.push(cell);
    }

    pub(crate) fn end_row(&mut self) {
        let mut row = std::mem::take(&mut self.row);
        row.resize_with(self.alignments.len(), Rich::default);
        self.rows.push(row);
    }

    /// The table in `width` columns. The first row is the header.
    pub(crate) fn lines(&self, width: usize, glyphs: Glyphs, lines: Style, header: Style) -> Vec<Line> {
        match self.widths(width, text_width(glyphs.column())) {
            Some(widths) => self.grid(&widths, glyphs, lines),
            None => self.records(width, glyphs, lines, header),
        }
    }

    /// The width of each column, or nothing when one would be too narrow.
    fn widths(&self, width: usize, separator: usize) -> Option<Vec<usize>> {
        let natural: Vec<usize> = (0..self.alignments.len())
            .map(|column| self.rows.iter().map(|row| row[column].natural_width()).max().unwrap_or(0).max(1))
            .collect();
        let room = width.checked_sub(separator * natural.len().saturating_sub(1))?;
        if natural.iter().sum::<usize>() <= room {
            return Some(natural);
        }
        // The widest columns give way together: the greatest cap under which all fit.
        let (mut low, mut high) = (0, room);
        while low < high {
            let cap = (low + high).div_ceil(2);
            if natural.iter().map(|wide| (*wide).min(cap)).sum::<usize>() <= room {
                low = cap;
            } else {
                high = cap - 1;
            }
        }
        if low < LEAST_COLUMN {
            return None;
        }
        let mut widths: Vec<usize> = natural.iter().map(|wide| (*wide).min(low)).collect();
        let mut spare = room - widths.iter().sum::<usize>();
        for (width, natural) in widths.iter_mut().zip(&natural) {
            if spare > 0 && *width < *natural {
                *width += 1;
                spare -= 1;
            }
        }
        Some(widths)
    }

    fn grid(&self, widths: &[usize], glyphs: Glyphs, marker: Style) -> Vec<Line> {
        let rule: String = widths
            .iter()
            .map(|width| glyphs.rule().repeat(*width))
            .collect::<Vec<_>>()
            .join(glyphs.crossing());
        let mut rule_line = Line::default();
        rule_line.push(&rule, marker, None);
        let wrapped: Vec<Vec<Vec<Range<usize>>>> = self
            .rows
            .iter()
            .map(|row| row.iter().zip(widths).map(|(cell, width)| cell.wrapped(*width)).collect())
            .collect();
        // Rows of several lines run together without a line between them.
        let ruled = wrapped.iter().skip(1).any(|row| row.iter().any(|cell| cell.len() > 1));
        let mut lines = Vec::new();
        for (index, (row, parts)) in self.rows.iter().zip(&wrapped).enumerate() {
            if index == 1 || (index > 1 && ruled) {
                lines.push(rule_line.clone());
            }
            let height = parts.iter().map(Vec::len).max().unwrap_or(1);
            let mut runs = vec![0; row.len()];
            for at in 0..height {
                let mut line = Line::default();
                for (column, cell) in row.iter().enumerate() {
                    if column > 0 {
                        line.push(glyphs.column(), marker, None);
                    }
                    let part = parts[column].get(at);
                    self.place(cell, part, widths[column], column, &mut runs[column], &mut line);
                }
                // No spaces for a copy to pick up.
                line.trim_end();
                lines.push(line);
            }
        }
        if self.rows.len() == 1 {
            lines.push(rule_line);
        }
        lines
    }

    fn place(
        &self,
        cell: &Rich,
        part: Option<&Range<usize>>,
        width: usize,
        column: usize,
        run: &mut usize,
        line: &mut Line,
    ) {
        let used = part.map_or(0, |range| text_width(&cell.text()[range.clone()]));
        let spare = width.saturating_sub(used);
        let left = match self.alignments[column] {
            Alignment::Right => spare,
            Alignment::Center => spare / 2,
            Alignment::Left | Alignment::None => 0,
        };
        line.push(&spaces(left), Style::PLAIN, None);
        if let Some(range) = part {
            cell.copy_to(range, run, line);
        }
        line.push(&spaces(spare - left), Style::PLAIN, None);
    }

    /// Each row as lines of `header: value`.
    fn records(&self, width: usize, glyphs: Glyphs, marker: Style, header: Style) -> Vec<Line> {
        let mut rule = Line::default();
        rule.push(&glyphs.rule().repeat(width), marker, None);
        let Some((names, rows)) = self.rows.split_first() else { return Vec::new() };
        let mut lines = Vec::new();
        if rows.is_empty() {
            for name in names {
                name.wrap_into(width, 0, &mut lines);
            }
            return lines;
        }
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(rule.clone());
            }
            for (name, value) in names.iter().zip(row) {
                let mut field = name.clone();
                field.add_label_end(header);
                field.append_rich(value);
                field.wrap_into(width, 2, &mut lines);
            }
        }
        lines
    }
}
