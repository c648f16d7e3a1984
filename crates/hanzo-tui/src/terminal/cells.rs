//! Lines as cells: what a row holds, how wide it is, how many rows a terminal of another width makes of it, and its bytes.

use ratatui::style::Style;
use ratatui::text::Line;
use unicode_segmentation::UnicodeSegmentation as _;
use unicode_width::UnicodeWidthStr as _;

use super::sgr::Pen;

/// One grapheme on the screen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    text: String,
    pub width: usize,
    pen: Pen,
}

/// The cells of a row, from the left.
pub(super) type Row = Vec<Cell>;

/// How many columns a row takes.
pub(super) fn width(row: &[Cell]) -> usize {
    row.iter().map(|cell| cell.width).sum()
}

/// How many rows a terminal with `columns` columns makes of graphemes of these widths. One that does not fit goes to the next
/// row whole.
pub(super) fn broken(widths: impl Iterator<Item = usize>, columns: usize) -> usize {
    let (mut rows, mut used) = (1, 0);
    for width in widths {
        if used + width > columns && used > 0 {
            rows += 1;
            used = 0;
        }
        used += width;
    }
    rows
}

/// The same of a line.
pub(super) fn broken_line(line: &Line<'_>, columns: usize) -> usize {
    let widths = line.spans.iter().flat_map(|span| span.content.graphemes(true));
    broken(
        widths.map(|grapheme| if grapheme.contains(char::is_control) { 0 } else { grapheme.width() }),
        columns,
    )
}

pub(super) fn write_cells(cells: &[Cell], out: &mut Vec<u8>) {
    let mut pen = Pen::default();
    for cell in cells {
        pen.change(cell.pen, out);
        out.extend_from_slice(cell.text.as_bytes());
    }
    pen.change(Pen::default(), out);
}

/// Writes a line as it is, without control characters.
pub(super) fn write_line(line: &Line<'_>, out: &mut Vec<u8>) {
    let mut pen = Pen::default();
    for span in &line.spans {
        pen.change(Pen::of(line.style.patch(span.style)), out);
        let content = span.content.as_ref();
        if content.contains(char::is_control) {
            let kept: String = content.chars().filter(|c| !c.is_control()).collect();
            out.extend_from_slice(kept.as_bytes());
        } else {
            out.extend_from_slice(content.as_bytes());
        }
    }
    pen.change(Pen::default(), out);
}

/// The cells of a line up to `most` columns, without control characters, whoever sent them, and without blanks at its end.
pub(super) fn cells(line: &Line<'_>, most: usize) -> Row {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wide_character_is_never_broken() {
        assert_eq!(broken([1, 1, 1, 1].into_iter(), 4), 1);
        assert_eq!(broken([1, 1, 1, 1, 1].into_iter(), 4), 2);
        assert_eq!(broken([2, 2, 2].into_iter(), 3), 3);
        assert_eq!(broken([].into_iter(), 3), 1);
        assert_eq!(broken_line(&Line::raw("日本語"), 5), 2);
    }
}
