//! Lines as text with escape sequences, for programs that write to a terminal directly.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::style::{Color, Line, Modifiers, Style};

/// Which escape sequences are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Escapes {
    /// None: plain text for a file or a pipe.
    Plain,
    /// Bold, underline and so on, but no colour.
    NoColor,
    /// The sixteen colours; RGB colours become the nearest of them.
    #[default]
    Ansi16,
    /// RGB colours as they are.
    Rgb,
}

impl Escapes {
    /// What the environment asks for: `NO_COLOR` (not empty) turns colours off, `TERM=dumb` everything, and `COLORTERM` of
    /// `truecolor` or `24bit` turns RGB on.
    pub fn from_env() -> Escapes {
        Escapes::from_variables(|name| std::env::var(name).ok())
    }

    /// As [`Escapes::from_env`], for an environment of the caller's.
    pub fn from_variables(variable: impl Fn(&str) -> Option<String>) -> Escapes {
        if variable("TERM").is_some_and(|term| term == "dumb") {
            return Escapes::Plain;
        }
        if variable("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            return Escapes::NoColor;
        }
        match variable("COLORTERM").as_deref() {
            Some("truecolor" | "24bit") => Escapes::Rgb,
            _ => Escapes::Ansi16,
        }
    }
}

/// Whether links are written as OSC 8 hyperlinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Hyperlinks {
    /// No.
    #[default]
    Off,
    /// Yes, for addresses of web, mail and file schemes.
    Osc8,
}

/// The lines as text, each ended by a line feed.
pub fn render(lines: &[Line], escapes: Escapes, hyperlinks: Hyperlinks) -> String {
    let mut out = String::with_capacity(lines.len() * 80);
    for line in lines {
        for span in &line.spans {
            let target = match hyperlinks {
                Hyperlinks::Osc8 if escapes != Escapes::Plain => {
                    span.link.as_deref().and_then(hyperlink_target)
                }
                _ => None,
            };
            if let Some(target) = &target {
                // One id per address: the terminal underlines all parts of a wrapped link together.
                let mut hasher = DefaultHasher::new();
                target.hash(&mut hasher);
                let _ = write!(out, "\x1b]8;id={:08x};{target}\x1b\\", hasher.finish() & 0xffff_ffff);
            }
            let codes = codes(span.style, escapes);
            if codes.is_empty() {
                out.push_str(&span.text);
            } else {
                let _ = write!(out, "\x1b[{codes}m{}\x1b[0m", span.text);
            }
            if target.is_some() {
                out.push_str("\x1b]8;;\x1b\\");
            }
        }
        out.push('\n');
    }
    out
}

/// The address as OSC 8 takes it: printable ASCII only, of a scheme that is safe to open by a click.
pub fn hyperlink_target(link: &str) -> Option<String> {
    let (scheme, _) = link.split_once(':')?;
    if !["http", "https", "mailto", "file", "ftp"].iter().any(|safe| scheme.eq_ignore_ascii_case(safe)) {
        return None;
    }
    let mut target = String::with_capacity(link.len());
    for byte in link.bytes() {
        if byte.is_ascii_graphic() {
            target.push(char::from(byte));
        } else {
            let _ = write!(target, "%{byte:02X}");
        }
    }
    Some(target)
}

fn codes(style: Style, escapes: Escapes) -> String {
    let mut codes = String::new();
    if escapes == Escapes::Plain {
        return codes;
    }
    let mut add = |code: std::fmt::Arguments<'_>| {
        if !codes.is_empty() {
            codes.push(';');
        }
        let _ = codes.write_fmt(code);
    };
    for (modifier, code) in [
        (Modifiers::BOLD, 1),
        (Modifiers::DIM, 2),
        (Modifiers::ITALIC, 3),
        (Modifiers::UNDERLINE, 4),
        (Modifiers::STRIKETHROUGH, 9),
    ] {
        if style.modifiers.contains(modifier) {
            add(format_args!("{code}"));
        }
    }
    if escapes == Escapes::NoColor {
        return codes;
    }
    for (color, base) in [(style.fg, 30), (style.bg, 40)] {
        match color {
            None => {}
            Some(Color::Rgb(red, green, blue)) if escapes == Escapes::Rgb => {
                add(format_args!("{};2;{red};{green};{blue}", base + 8));
            }
            Some(color) => {
                let index = index(color);
                let code = if index < 8 { base + index } else { base + 52 + index };
                add(format_args!("{code}"));
            }
        }
    }
    codes
}

/// The place of a colour among the sixteen; an RGB colour gets the nearest.
fn index(color: Color) -> usize {
    let Color::Rgb(red, green, blue) = color else {
        return Color::ANSI.iter().position(|ansi| *ansi == color).unwrap_or(7);
    };
    let distance = |palette: &(u8, u8, u8)| {
        let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
        square(palette.0, red) + square(palette.1, green) + square(palette.2, blue)
    };
    (0..PALETTE.len()).min_by_key(|at| distance(&PALETTE[*at])).unwrap_or(7)
}

/// The sixteen colours as most terminals draw them.
const PALETTE: [(u8, u8, u8); 16] = [
    (0, 0, 0),
    (205, 0, 0),
    (0, 205, 0),
    (205, 205, 0),
    (0, 0, 238),
    (205, 0, 205),
    (0, 205, 205),
    (229, 229, 229),
    (127, 127, 127),
    (255, 0, 0),
    (0, 255, 0),
    (255, 255, 0),
    (92, 92, 255),
    (255, 0, 255),
    (0, 255, 255),
    (255, 255, 255),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn span(style: Style, link: Option<&str>) -> Line {
        let mut line = Line::default();
        line.push("x", style, link.map(std::sync::Arc::from).as_ref());
        line
    }

    #[test]
    fn looks_become_codes_and_plain_has_none() {
        let style = Style::PLAIN.fg(Color::BrightRed).modified(Modifiers::BOLD);
        let line = [span(style, None)];
        assert_eq!(render(&line, Escapes::Ansi16, Hyperlinks::Off), "\x1b[1;91mx\x1b[0m\n");
        assert_eq!(render(&line, Escapes::NoColor, Hyperlinks::Off), "\x1b[1mx\x1b[0m\n");
        assert_eq!(render(&line, Escapes::Plain, Hyperlinks::Osc8), "x\n");
        let rgb = [span(Style::PLAIN.fg(Color::Rgb(250, 3, 9)), None)];
        assert_eq!(render(&rgb, Escapes::Rgb, Hyperlinks::Off), "\x1b[38;2;250;3;9mx\x1b[0m\n");
        assert_eq!(render(&rgb, Escapes::Ansi16, Hyperlinks::Off), "\x1b[91mx\x1b[0m\n");
    }

    #[test]
    fn only_safe_addresses_become_hyperlinks() {
        let link = |target| render(&[span(Style::PLAIN, Some(target))], Escapes::Ansi16, Hyperlinks::Osc8);
        let web = link("https://a.b/ü c");
        assert!(
            web.starts_with("\x1b]8;id=") && web.contains(";https://a.b/%C3%BC%20c\x1b\\x\x1b]8;;\x1b\\")
        );
        assert_eq!(link("javascript:alert(1)"), "x\n");
        assert_eq!(link("src/main.rs"), "x\n");
    }

    #[test]
    fn the_environment_decides() {
        let of = |pairs: &[(&str, &str)]| {
            Escapes::from_variables(|name| {
                pairs.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(of(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]), Escapes::NoColor);
        assert_eq!(of(&[("NO_COLOR", ""), ("COLORTERM", "truecolor")]), Escapes::Rgb);
        assert_eq!(of(&[("TERM", "dumb")]), Escapes::Plain);
        assert_eq!(of(&[]), Escapes::Ansi16);
    }
}
