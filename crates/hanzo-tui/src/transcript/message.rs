//! What was said and thought.

use hanzo_md_render::{Glyphs, Highlight, LinkDisplay, MdRenderer, Options, plain};
use hanzo_protocol::message::Attachment;
use ratatui::text::Line;

use super::rows::{Rows, grouped};
use super::{Detail, RenderContext, convert};

/// The most lines of a message that are shown while they are not final.
const TAIL_LINES: usize = 60;

fn options(context: &RenderContext) -> Options {
    Options {
        width: u16::try_from(context.columns()).unwrap_or(u16::MAX),
        theme: context.theme.markdown,
        highlight: Highlight::OnClose,
        links: LinkDisplay::ShowUrl,
        glyphs: if context.in_words() { Glyphs::Ascii } else { Glyphs::Unicode },
        tab_width: 4,
    }
}

/// Markdown the engine or the agent wrote.
pub fn markdown(text: &str, context: &RenderContext) -> Vec<Line<'static>> {
    let mut renderer = MdRenderer::new(options(context));
    let mut lines = renderer.render_chunk(text);
    lines.extend(renderer.flush());
    convert::lines(lines)
}

/// What the agent said.
pub(super) fn agent(text: &str, context: &RenderContext) -> Vec<Line<'static>> {
    let mut lines = markdown(text, context);
    announce(&mut lines, context);
    lines
}

/// For a screen reader it is said who speaks.
fn announce(lines: &mut Vec<Line<'static>>, context: &RenderContext) {
    if context.in_words() && !lines.is_empty() {
        lines.insert(
            0,
            Line::styled(plain::clip("Agent:", context.columns()).into_owned(), context.theme.strong),
        );
    }
}

/// What the user said.
pub(super) fn user(text: &str, attachments: &[Attachment], context: &RenderContext) -> Vec<Line<'static>> {
    let theme = &context.theme;
    let mut rows = Rows::new(context);
    let rest = context.mark("  ", "");
    rows.indent(context.mark("› ", "You: "), rest, theme.accent);
    rows.paragraph(said(text).trim_end(), theme.strong);
    for attachment in attachments {
        let name = attachment.name.as_deref().unwrap_or(&attachment.media_type);
        rows.indent(rest, rest, theme.dim);
        rows.cut(&format!("{}{name}{}", context.mark("[", "Attached: "), context.mark("]", "")), theme.dim);
    }
    rows.into_lines()
}

/// What the user said, without the blocks of what it refers to: those are for the model.
pub fn said(text: &str) -> String {
    const BLOCKS: [&str; 6] = ["file", "directory", "resource", "shell", "diff", "image"];
    let mut rest = text;
    let mut blocks = 0;
    while let Some(name) = rest.strip_prefix('<').and_then(|rest| rest.split([' ', '>']).next()) {
        let is_block =
            |tag: &str| name.strip_prefix(tag).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
        if !BLOCKS.iter().any(|tag| is_block(tag)) {
            break;
        }
        let end = format!("</{name}>");
        let Some(at) = rest.find(&end) else { break };
        rest = rest[at + end.len()..].trim_start();
        blocks += 1;
    }
    if blocks == 0 || rest.is_empty() { text.to_owned() } else { rest.to_owned() }
}

/// What the model thought.
pub fn thought(words: &str, context: &RenderContext) -> Vec<Line<'static>> {
    let words = words.trim();
    if words.is_empty() {
        return Vec::new();
    }
    let dim = context.theme.dim;
    let mut rows = Rows::new(context);
    match context.reasoning {
        Detail::Full => {
            rows.indent(context.mark("│ ", "Thought: "), context.mark("│ ", ""), dim);
            rows.paragraph(words, dim);
        }
        Detail::Folded => {
            let count = words.split_whitespace().count();
            let unit = if count == 1 { "word" } else { "words" };
            let count = grouped(u64::try_from(count).unwrap_or(u64::MAX));
            let long = format!(" ({count} {unit}, Alt+T shows)");
            let ending = if context.columns() < 60 { " (Alt+T shows)".to_owned() } else { long };
            let start: String = words.split_whitespace().take(40).collect::<Vec<_>>().join(" ");
            // Emphasis marks of a summary say nothing in one line.
            let start = format!("Thought: {}", plain::clean(&start.replace("**", "")));
            let room = context.columns().saturating_sub(plain::width(&ending));
            let line = if room < 16 {
                plain::clip(&start, context.columns()).into_owned()
            } else {
                plain::clip(&start, room).into_owned() + &ending
            };
            rows.cut(&line, dim);
        }
    }
    rows.into_lines()
}

/// The agent's words while they arrive. What [`push`](StreamingMessage::push) returns is final; the rest is in
/// [`tail`](StreamingMessage::tail) and may still look different.
#[derive(Debug, Default)]
pub struct StreamingMessage {
    renderer: Option<MdRenderer>,
    announced: bool,
}

impl StreamingMessage {
    /// Takes in more; returns the lines that are final now.
    pub fn push(&mut self, delta: &str, context: &RenderContext) -> Vec<Line<'static>> {
        let renderer = self.renderer.get_or_insert_with(|| MdRenderer::new(options(context)));
        let width = options(context).width;
        if renderer.options().width != width {
            // What is final stays as it was written; what comes has the new width.
            renderer.relayout(width);
        }
        let lines = renderer.render_chunk(delta);
        self.converted(lines, context)
    }

    /// What is not final yet, as it looks now.
    pub fn tail(&self, context: &RenderContext) -> Vec<Line<'static>> {
        let Some(renderer) = &self.renderer else { return Vec::new() };
        let mut lines = convert::lines(renderer.tail_at(options(context).width, TAIL_LINES));
        if !self.announced {
            announce(&mut lines, context);
        }
        lines
    }

    /// Nothing more comes; returns what was not final.
    pub fn finish(mut self, context: &RenderContext) -> Vec<Line<'static>> {
        let mut lines = self.push("", context);
        if let Some(renderer) = &mut self.renderer {
            let rest = renderer.flush();
            lines.extend(self.converted(rest, context));
        }
        lines
    }

    fn converted(
        &mut self,
        lines: Vec<hanzo_md_render::Line>,
        context: &RenderContext,
    ) -> Vec<Line<'static>> {
        let mut lines = convert::lines(lines);
        if !lines.is_empty() && !std::mem::replace(&mut self.announced, true) {
            announce(&mut lines, context);
        }
        lines
    }
}
