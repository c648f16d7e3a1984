//! Rows of a given width: the one place where text becomes lines, so that what goes on the screen is clean and fits.

use hanzo_md_render::plain;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::RenderContext;

/// Columns between tab stops in what programs write.
const TAB: usize = 4;

/// The share of the width an indent may take: `1 / INDENT_SHARE`.
const INDENT_SHARE: usize = 3;

/// Lines that are being put together.
pub(super) struct Rows<'a> {
    context: &'a RenderContext,
    /// What stands before the next line, and before those after it.
    first: (String, Style),
    rest: (String, Style),
    /// What begins the next line as a part of its text.
    lead: Option<(String, Style)>,
    lines: Vec<Line<'static>>,
}

impl<'a> Rows<'a> {
    pub(super) fn new(context: &'a RenderContext) -> Rows<'a> {
        let none = (String::new(), Style::new());
        Rows { context, first: none.clone(), rest: none, lead: None, lines: Vec::new() }
    }

    /// Puts `first` before the next line and `rest` before those after it. On a screen too narrow for them the text begins with
    /// `first` and nothing is indented.
    pub(super) fn indent(&mut self, first: &str, rest: &str, style: Style) {
        let fits = plain::width(first).max(plain::width(rest)) <= self.context.columns() / INDENT_SHARE;
        let aligned = fits && (first.is_empty() || !rest.is_empty());
        let (first_shown, rest_shown) = if aligned { (first, rest) } else { ("", "") };
        self.first = (first_shown.to_owned(), style);
        self.rest = (rest_shown.to_owned(), style);
        let lead = if aligned { "" } else { first.trim_start() };
        self.lead = (!lead.is_empty()).then(|| (lead.to_owned(), style));
    }

    /// A text broken at words. Line breaks in it are kept.
    pub(super) fn paragraph(&mut self, text: &str, style: Style) {
        for line in text.split('\n') {
            self.spans(&[(plain::clean(line.trim_end()).into_owned(), style)], Breaking::AtWords);
        }
    }

    /// Lines of code or output, broken where they are full.
    pub(super) fn block(&mut self, text: &str, style: Style) {
        for line in text.lines() {
            self.output(line, style);
        }
    }

    /// One line of a program's output, broken where it is full.
    pub(super) fn output(&mut self, line: &str, style: Style) {
        self.spans(&[(output_line(line), style)], Breaking::WhenFull);
    }

    /// One line of a program's output, cut to the width.
    pub(super) fn cut(&mut self, line: &str, style: Style) {
        let lead = self.lead.take().map(|(lead, _)| lead).unwrap_or_default();
        let (before, before_style) = self.before();
        let room = self.context.columns().saturating_sub(plain::width(&before)).max(1);
        let line = lead + &output_line(line);
        let line = plain::clip(&line, room).into_owned();
        let spans = if line.is_empty() { Vec::new() } else { vec![Span::styled(line, style)] };
        self.push(before, before_style, spans);
    }

    /// Spans one after the other (clean, without line breaks), broken into lines together.
    pub(super) fn spans(&mut self, spans: &[(String, Style)], breaking: Breaking) {
        let lead = self.lead.take();
        let spans: Vec<&(String, Style)> = lead.iter().chain(spans).collect();
        let text: String = spans.iter().map(|(text, _)| text.as_str()).collect();
        let columns = self.context.columns();
        let widest = plain::width(&self.first.0).max(plain::width(&self.rest.0));
        let room = columns.saturating_sub(widest).max(1);
        let parts = match breaking {
            Breaking::AtWords => plain::wrap(&text, room),
            Breaking::WhenFull => plain::wrap_anywhere(&text, room),
        };
        for part in parts {
            // The parts are slices of the text: where one is says which spans it is made of.
            let from = part.as_ptr() as usize - text.as_ptr() as usize;
            let to = from + part.len();
            let mut styled = Vec::new();
            let mut start = 0;
            for (span, style) in &spans {
                let end = start + span.len();
                let (low, high) = (from.max(start), to.min(end));
                if low < high {
                    styled.push(Span::styled(text[low..high].to_owned(), *style));
                }
                start = end;
            }
            let (before, before_style) = self.before();
            self.push(before, before_style, styled);
        }
    }

    /// A line as it is.
    pub(super) fn line(&mut self, line: Line<'static>) {
        self.lines.push(line);
    }

    pub(super) fn into_lines(self) -> Vec<Line<'static>> {
        self.lines
    }

    fn before(&mut self) -> (String, Style) {
        std::mem::replace(&mut self.first, self.rest.clone())
    }

    fn push(&mut self, before: String, style: Style, mut spans: Vec<Span<'static>>) {
        if !before.is_empty() {
            // No blanks at the end of a line that has nothing on it.
            let before = if spans.is_empty() { before.trim_end().to_owned() } else { before };
            spans.insert(0, Span::styled(before, style));
        }
        self.lines.push(Line::from(spans));
    }
}

/// Where a line may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Breaking {
    AtWords,
    WhenFull,
}

/// A line as a terminal would have shown it in the end: what a carriage return wrote over is gone.
fn output_line(line: &str) -> String {
    let last = line.rsplit('\r').find(|part| !part.is_empty()).unwrap_or_default();
    plain::expand_tabs(last, TAB).into_owned()
}

/// A number with its thousands apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_stand_apart() {
        assert_eq!(
            (grouped(0), grouped(999), grouped(1_234_567)),
            ("0".into(), "999".into(), "1,234,567".into())
        );
    }

    #[test]
    fn a_progress_bar_is_its_last_state() {
        assert_eq!(output_line("10%\r50%\r100%\r"), "100%");
        assert_eq!(output_line("a\tb\u{1b}[K"), "a   b");
    }
}
