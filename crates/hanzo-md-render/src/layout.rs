//! Turns the events of one parsed piece into lines.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, LinkType, Tag, TagEnd};

use crate::code::{self, CodeCache};
use crate::frames::{Frame, FrameKind, Prefix, Room};
use crate::rich::{Breaks, Rich, RunKind, char_width, spaces, text_width};
use crate::style::{Line, Style};
use crate::table::Table;
use crate::theme::{Highlight, LinkDisplay, Options};

/// A link or an image that is open.
#[derive(Debug)]
struct OpenLink {
    target: Arc<str>,
    text_start: usize,
    image: bool,
}

/// What the text of the next event belongs to.
#[derive(Debug)]
enum Verbatim {
    Code { language: String, text: String },
    Html { text: String },
}

/// How the first block of a piece follows what was committed before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Context {
    /// Whether a blank line is put before the first line.
    pub(crate) gap: bool,
    /// The number of the first item, when the piece goes on with a numbered list.
    pub(crate) number: Option<u64>,
}

/// Lays out one piece of a document.
pub(crate) struct Layout<'a> {
    options: &'a Options,
    source: &'a str,
    context: Context,
    cache: &'a mut CodeCache,
    lines: &'a mut Vec<Line>,
    first_line: usize,
    room: &'a mut Room,
    prefix_width: usize,
    in_text: bool,
    heading: Option<HeadingLevel>,
    links: Vec<OpenLink>,
    verbatim: Option<Verbatim>,
    table: Option<Table>,
    list_depth: usize,
    next_number: Option<u64>,
    inline_marker: Option<Cow<'static, str>>,
}

impl<'a> Layout<'a> {
    pub(crate) fn new(
        options: &'a Options,
        source: &'a str,
        context: Context,
        cache: &'a mut CodeCache,
        room: &'a mut Room,
        lines: &'a mut Vec<Line>,
    ) -> Layout<'a> {
        room.clear();
        room.frames.push(Frame { kind: FrameKind::Root, has_child: false });
        room.styles.push(options.theme.text);
        Layout {
            options,
            source,
            context,
            cache,
            first_line: lines.len(),
            lines,
            room,
            prefix_width: 0,
            in_text: false,
            heading: None,
            links: Vec::new(),
            verbatim: None,
            table: None,
            list_depth: 0,
            next_number: None,
            inline_marker: None,
        }
    }

    /// Lays out every event; returns the number after the last item of the last numbered list at the top level.
    pub(crate) fn run<'e>(mut self, events: impl Iterator<Item = (Event<'e>, Range<usize>)>) -> Option<u64> {
        for (event, range) in events {
            self.event(event, range.start);
        }
        self.end_text();
        self.next_number
    }

    fn event(&mut self, event: Event<'_>, at: usize) {
        match event {
            Event::Start(tag) => self.start(tag, at),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, at),
            Event::Code(code) => {
                let style = self.style().patched(self.options.theme.code);
                self.push(&code, style, RunKind::Verbatim, at);
            }
            Event::Html(html) => match &mut self.verbatim {
                Some(Verbatim::Html { text } | Verbatim::Code { text, .. }) => text.push_str(&html),
                None => self.inline_html(&html, at),
            },
            Event::InlineHtml(html) => self.inline_html(&html, at),
            Event::SoftBreak => self.room.rich.soft_break(),
            Event::HardBreak => {
                let style = self.style();
                self.room.rich.hard_break(style);
            }
            Event::Rule => {
                self.begin_block(at);
                let width = self.available();
                let rule = self.options.glyphs.rule().repeat(width);
                let mut line = self.prefixed();
                line.push(&rule, self.options.theme.marker, None);
                self.lines.push(line);
            }
            Event::FootnoteReference(label) => {
                let marker = self.options.theme.marker;
                self.push(&format!("[^{label}]"), marker, RunKind::Verbatim, at);
            }
            Event::TaskListMarker(done) => {
                let marker = self.options.theme.marker;
                self.push(if done { "[x] " } else { "[ ] " }, marker, RunKind::Verbatim, at);
            }
        }
    }

    fn start(&mut self, tag: Tag<'_>, at: usize) {
        let theme = &self.options.theme;
        match tag {
            Tag::Paragraph => {
                self.end_text();
                self.begin_text(at);
            }
            Tag::Heading { level, .. } => {
                self.end_text();
                self.begin_text(at);
                let index = (level as usize).saturating_sub(1).min(5);
                let style = self.style().patched(theme.headings[index]);
                self.room.styles.push(style);
                self.heading = Some(level);
                self.room.rich.push(&"#".repeat(index + 1), style, None, RunKind::Verbatim);
                self.room.rich.push(" ", style, None, RunKind::Verbatim);
            }
            Tag::BlockQuote(_) => {
                self.end_text();
                self.begin_block(at);
                let bar = Cow::Borrowed(self.options.glyphs.quote());
                self.room.styles.push(self.style().patched(theme.quote));
                self.open(FrameKind::Quote, Some(bar.clone()), bar);
            }
            Tag::CodeBlock(kind) => {
                self.end_text();
                self.begin_block(at);
                let language = match kind {
                    CodeBlockKind::Fenced(info) => code::language(&info).to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.verbatim = Some(Verbatim::Code { language, text: String::new() });
            }
            Tag::HtmlBlock => {
                self.end_text();
                self.begin_block(at);
                self.verbatim = Some(Verbatim::Html { text: String::new() });
            }
            Tag::List(start) => {
                self.end_text();
                let continued = self.room.frames.len() == 1 && !self.room.frames[0].has_child;
                let next = match self.context.number {
                    Some(number) if continued && start.is_some() => Some(number),
                    _ => start,
                };
                self.begin_block(at);
                let depth = self.list_depth;
                self.list_depth += 1;
                self.room.frames.push(Frame { kind: FrameKind::List { next, depth }, has_child: false });
            }
            Tag::Item => {
                self.end_text();
                self.begin_block(at);
                let marker = self.next_marker();
                let indent = spaces(text_width(&marker));
                self.open(FrameKind::Item, Some(marker), indent);
            }
            Tag::FootnoteDefinition(label) => {
                self.end_text();
                self.begin_block(at);
                let marker = format!("[^{}]: ", crate::sanitize::clean_text(&label));
                let indent = spaces(text_width(&marker));
                self.open(FrameKind::Footnote, Some(marker.into()), indent);
            }
            Tag::Table(alignments) => {
                self.end_text();
                self.begin_block(at);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead => self.room.styles.push(self.style().patched(theme.table_header)),
            Tag::Emphasis => self.room.styles.push(self.style().patched(theme.emphasis)),
            Tag::Strong => self.room.styles.push(self.style().patched(theme.strong)),
            Tag::Strikethrough => self.room.styles.push(self.style().patched(theme.strikethrough)),
            Tag::Link { link_type: LinkType::Email, dest_url, .. } => {
                self.open_link(&format!("mailto:{dest_url}"), false, at);
            }
            Tag::Link { dest_url, .. } => self.open_link(&dest_url, false, at),
            Tag::Image { dest_url, .. } => self.open_link(&dest_url, true, at),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph => self.end_text(),
            TagEnd::Heading(_) => {
                self.end_text();
                self.heading = None;
                self.room.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.close();
                self.room.styles.pop();
            }
            TagEnd::CodeBlock | TagEnd::HtmlBlock => match self.verbatim.take() {
                Some(Verbatim::Code { language, text }) => self.code(&language, &text),
                Some(Verbatim::Html { text }) => self.html(&text),
                None => {}
            },
            TagEnd::List(_) => {
                if let Some(Frame { kind: FrameKind::List { next, depth: 0 }, .. }) = self.room.frames.pop() {
                    self.next_number = next;
                }
                self.list_depth = self.list_depth.saturating_sub(1);
            }
            TagEnd::Item | TagEnd::FootnoteDefinition => self.close(),
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.table(&table);
                }
            }
            TagEnd::TableHead => {
                self.room.styles.pop();
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::TableCell => {
                let mut cell = std::mem::take(&mut self.room.rich);
                cell.link_addresses(self.options.theme.link);
                if let Some(table) = &mut self.table {
                    table.push(cell);
                }
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.room.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.close_link(),
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.room.styles.last().copied().unwrap_or_default()
    }

    fn text(&mut self, text: &str, at: usize) {
        match &mut self.verbatim {
            Some(Verbatim::Code { text: all, .. } | Verbatim::Html { text: all }) => all.push_str(text),
            None => {
                let style = self.style();
                self.push(text, style, RunKind::Prose, at);
            }
        }
    }

    fn push(&mut self, text: &str, style: Style, kind: RunKind, at: usize) {
        if self.table.is_none() && !self.in_text {
            self.begin_text(at);
        }
        let link = self.links.last().map(|link| &link.target);
        self.room.rich.push(text, style, link, kind);
    }

    fn inline_html(&mut self, html: &str, at: usize) {
        let tag = html.trim_start_matches('<').trim_end_matches(['>', '/', ' ']);
        if self.table.is_some() && tag.eq_ignore_ascii_case("br") {
            let style = self.style();
            self.room.rich.hard_break(style);
            return;
        }
        let style = self.style().patched(self.options.theme.html);
        self.push(html, style, RunKind::Verbatim, at);
    }

    fn open_link(&mut self, target: &str, image: bool, at: usize) {
        if self.table.is_none() && !self.in_text {
            self.begin_text(at);
        }
        let target: Arc<str> = Arc::from(&*crate::sanitize::clean_text(target));
        let style = self.style().patched(self.options.theme.link);
        self.room.styles.push(style);
        if image {
            // The parts of an image's alternative text that are links of their own stay text.
            let shown = self.links.last().map_or(&target, |link| &link.target).clone();
            self.room.rich.push("[image: ", style, Some(&shown), RunKind::Verbatim);
        }
        // A soft break before the link must be in the text before its start is noted.
        self.room.rich.push("", style, None, RunKind::Prose);
        self.links.push(OpenLink { target, text_start: self.room.rich.len(), image });
    }

    fn close_link(&mut self) {
        let Some(link) = self.links.pop() else { return };
        let style = self.style();
        self.room.styles.pop();
        let url_style = self.style().patched(self.options.theme.url);
        if link.image {
            let shown = self.links.last().map_or(&link.target, |outer| &outer.target).clone();
            self.room.rich.push(&format!("]({})", link.target), style, Some(&shown), RunKind::Verbatim);
            return;
        }
        if !self.links.is_empty() {
            return;
        }
        let text = &self.room.rich.text()[link.text_start.min(self.room.rich.len())..];
        let bare = link.target.strip_prefix("mailto:").unwrap_or(&link.target);
        let same = text == &*link.target || text == bare;
        let claims_another = text.contains("://") || text.trim_start().starts_with("www.");
        let show = match self.options.links {
            LinkDisplay::ShowUrl => !same && !link.target.starts_with('#'),
            LinkDisplay::Hyperlink => !same && (claims_another || text.trim().is_empty()),
        };
        if show && !link.target.is_empty() {
            let (open, close) = if text.is_empty() { ("", "") } else { (" (", ")") };
            self.room.rich.push(open, url_style, None, RunKind::Verbatim);
            self.room.rich.push(&link.target, url_style, Some(&link.target), RunKind::Verbatim);
            self.room.rich.push(close, url_style, None, RunKind::Verbatim);
        }
    }

    fn begin_text(&mut self, at: usize) {
        self.begin_block(at);
        self.in_text = true;
        if let Some(marker) = self.inline_marker.take() {
            self.room.rich.push(&marker, self.options.theme.marker, None, RunKind::Verbatim);
        }
    }

    fn end_text(&mut self) {
        if !std::mem::take(&mut self.in_text) {
            return;
        }
        let mut rich = std::mem::take(&mut self.room.rich);
        if self.heading.is_none() {
            rich.link_addresses(self.options.theme.link);
        }
        let mut ranges = std::mem::take(&mut self.room.ranges);
        ranges.clear();
        rich.wrap(self.available(), &mut ranges);
        self.copy(&rich, &ranges);
        self.reuse(rich, ranges);
    }

    fn copy(&mut self, rich: &Rich, ranges: &[Range<usize>]) {
        let mut run = 0;
        for range in ranges {
            let mut line = self.prefixed();
            rich.copy_to(range, &mut run, &mut line);
            self.lines.push(line);
        }
    }

    /// Keeps the room of a paragraph for the next one.
    fn reuse(&mut self, mut rich: Rich, ranges: Vec<Range<usize>>) {
        rich.clear();
        self.room.rich = rich;
        self.room.ranges = ranges;
    }

    /// Lays out one line of code or HTML.
    fn verbatim_line(&mut self, line: &str, style: Style, breaks: Breaks) {
        let mut rich = std::mem::take(&mut self.room.rich);
        let mut ranges = std::mem::take(&mut self.room.ranges);
        ranges.clear();
        rich.push(&self.expanded(line, &mut 0), style, None, RunKind::Verbatim);
        rich.break_lines(self.available(), breaks, &mut ranges);
        self.copy(&rich, &ranges);
        self.reuse(rich, ranges);
    }

    /// Puts a blank line between two blocks where one belongs.
    fn begin_block(&mut self, at: usize) {
        let Some(parent) = self.room.frames.last_mut() else { return };
        let first = !std::mem::replace(&mut parent.has_child, true);
        let gap = match parent.kind {
            FrameKind::Root if first => self.context.gap,
            _ if first => false,
            FrameKind::Root | FrameKind::Quote | FrameKind::Footnote => true,
            FrameKind::List { .. } | FrameKind::Item => blank_line_before(self.source, at),
        };
        if gap && (self.lines.len() > self.first_line || self.context.gap) {
            let mut line = self.prefixed();
            line.trim_end();
            self.lines.push(line);
        }
    }

    fn next_marker(&mut self) -> Cow<'static, str> {
        match self.room.frames.last_mut() {
            Some(Frame { kind: FrameKind::List { next: Some(number), .. }, .. }) => {
                let marker = format!("{number}. ");
                *number = number.saturating_add(1);
                marker.into()
            }
            Some(Frame { kind: FrameKind::List { depth, .. }, .. }) => {
                self.options.glyphs.bullet(*depth).into()
            }
            _ => "".into(),
        }
    }

    fn open(&mut self, kind: FrameKind, first: Option<Cow<'static, str>>, rest: Cow<'static, str>) {
        self.room.frames.push(Frame { kind, has_child: false });
        let width = text_width(&rest);
        // Half of a narrow screen stays for the text: what is nested deeper than that is not indented further.
        let limit = usize::from(self.options.width) - self.least_text_width();
        let prefix = if self.prefix_width + width <= limit {
            Prefix { first, rest, width }
        } else {
            // The marker of an item still shows, as part of its text.
            self.inline_marker = first.filter(|_| kind == FrameKind::Item);
            Prefix { first: None, rest: "".into(), width: 0 }
        };
        self.prefix_width += prefix.width;
        self.room.prefixes.push(prefix);
    }

    fn close(&mut self) {
        self.end_text();
        // An item without content still shows its marker.
        if self.room.prefixes.last().is_some_and(|prefix| prefix.first.is_some())
            && self.room.frames.last().is_some_and(|frame| !frame.has_child)
        {
            let line = self.prefixed();
            self.lines.push(line);
        }
        self.inline_marker = None;
        self.room.frames.pop();
        if let Some(prefix) = self.room.prefixes.pop() {
            self.prefix_width -= prefix.width;
        }
    }

    fn least_text_width(&self) -> usize {
        let width = usize::from(self.options.width);
        // A wide character takes two columns.
        (width / 2).clamp(2, 20).min(width)
    }

    /// Columns left for text.
    fn available(&self) -> usize {
        usize::from(self.options.width).saturating_sub(self.prefix_width).max(1)
    }

    /// A line with the markers of the open containers.
    fn prefixed(&mut self) -> Line {
        // Most lines are one span after one marker: no room for four is set aside for each.
        let mut line = Line { spans: Vec::with_capacity(1 + usize::from(!self.room.prefixes.is_empty())) };
        let style = self.options.theme.marker;
        for prefix in &mut self.room.prefixes {
            match prefix.first.take() {
                Some(first) => line.push(&first, style, None),
                None => line.push(&prefix.rest, style, None),
            }
        }
        line
    }

    fn code(&mut self, language: &str, text: &str) {
        let style = self.style().patched(self.options.theme.code_block);
        let highlighted = match self.options.highlight {
            Highlight::OnClose => self.cache.highlight(language, text, self.options.theme.syntax),
            Highlight::Off => None,
        };
        if let Some(lines) = highlighted {
            for spans in &*lines {
                let mut rich = Rich::default();
                let mut column = 0;
                for (look, text) in spans {
                    let text = self.expanded(text, &mut column);
                    rich.push(&text, self.style().patched(*look), None, RunKind::Verbatim);
                }
                let mut ranges = Vec::new();
                rich.break_lines(self.available(), Breaks::WhenFull, &mut ranges);
                self.copy(&rich, &ranges);
            }
            return;
        }
        let text = text.strip_suffix('\n').unwrap_or(text);
        for line in text.split('\n') {
            self.verbatim_line(line, style, Breaks::WhenFull);
        }
    }

    fn html(&mut self, text: &str) {
        let style = self.style().patched(self.options.theme.html);
        for line in text.trim_end_matches('\n').split('\n') {
            self.verbatim_line(line, style, Breaks::AtWords);
        }
    }

    /// A line of code with its tabs as spaces.
    fn expanded<'t>(&self, line: &'t str, column: &mut usize) -> Cow<'t, str> {
        let stop = usize::from(self.options.tab_width.max(1));
        if !line.contains('\t') {
            *column += text_width(line);
            return Cow::Borrowed(line);
        }
        let mut out = String::with_capacity(line.len() + stop);
        for c in line.chars() {
            if c == '\t' {
                let spaces = stop - *column % stop;
                out.extend(std::iter::repeat_n(' ', spaces));
                *column += spaces;
            } else {
                out.push(c);
                *column += char_width(c);
            }
        }
        Cow::Owned(out)
    }

    fn table(&mut self, table: &Table) {
        let width = self.available();
        let style = self.options.theme.marker;
        for content in table.lines(width, self.options.glyphs, style, self.options.theme.table_header) {
            if self.room.prefixes.is_empty() {
                self.lines.push(content);
                continue;
            }
            let mut line = self.prefixed();
            for span in content.spans {
                line.push(&span.text, span.style, span.link.as_ref());
            }
            self.lines.push(line);
        }
    }
}

/// Whether the line before the one with `at` is blank (but for the marks of quotes).
fn blank_line_before(source: &str, at: usize) -> bool {
    let Some(line_start) = source[..at.min(source.len())].rfind('\n') else { return false };
    let previous = source[..line_start].rfind('\n').map_or(0, |newline| newline + 1);
    source[previous..line_start].bytes().all(|byte| matches!(byte, b' ' | b'\t' | b'>'))
}
