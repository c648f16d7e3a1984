//! From the Markdown renderer's lines to ratatui's.

use hanzo_md_render as md;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use crate::terminal::links;

pub(super) fn lines(lines: Vec<md::Line>) -> Vec<Line<'static>> {
    lines.into_iter().map(line).collect()
}

fn line(line: md::Line) -> Line<'static> {
    Line::from(
        line.spans
            .into_iter()
            .map(|span| {
                let style = style(span.style);
                let style = span.link.map_or(style, |link| links::leading_to(style, &link));
                Span::styled(span.text, style)
            })
            .collect::<Vec<_>>(),
    )
}

fn style(style: md::Style) -> Style {
    let mut out = Style::new();
    out.fg = style.fg.and_then(color);
    out.bg = style.bg.and_then(color);
    let modifiers = [
        (md::Modifiers::BOLD, Modifier::BOLD),
        (md::Modifiers::DIM, Modifier::DIM),
        (md::Modifiers::ITALIC, Modifier::ITALIC),
        (md::Modifiers::UNDERLINE, Modifier::UNDERLINED),
        (md::Modifiers::STRIKETHROUGH, Modifier::CROSSED_OUT),
    ];
    for (from, to) in modifiers {
        if style.modifiers.contains(from) {
            out = out.add_modifier(to);
        }
    }
    out
}

fn color(color: md::Color) -> Option<Color> {
    Some(match color {
        md::Color::Black => Color::Black,
        md::Color::Red => Color::Red,
        md::Color::Green => Color::Green,
        md::Color::Yellow => Color::Yellow,
        md::Color::Blue => Color::Blue,
        md::Color::Magenta => Color::Magenta,
        md::Color::Cyan => Color::Cyan,
        md::Color::White => Color::Gray,
        md::Color::BrightBlack => Color::DarkGray,
        md::Color::BrightRed => Color::LightRed,
        md::Color::BrightGreen => Color::LightGreen,
        md::Color::BrightYellow => Color::LightYellow,
        md::Color::BrightBlue => Color::LightBlue,
        md::Color::BrightMagenta => Color::LightMagenta,
        md::Color::BrightCyan => Color::LightCyan,
        md::Color::BrightWhite => Color::White,
        md::Color::Rgb(r, g, b) => Color::Rgb(r, g, b),
        // A colour added to the renderer later is the terminal's own until it is known here.
        _ => return None,
    })
}
