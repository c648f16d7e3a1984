//! Styles as escape sequences: only what changed is written.

use ratatui::style::{Color, Modifier, Style};

use super::links;

/// What is in force on the terminal while a line is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pen {
    fg: Option<Color>,
    bg: Option<Color>,
    modifiers: Modifier,
    /// Where the text leads.
    link: Option<Color>,
}

const FLAGS: [(Modifier, u8); 7] = [
    (Modifier::BOLD, 1),
    (Modifier::DIM, 2),
    (Modifier::ITALIC, 3),
    (Modifier::UNDERLINED, 4),
    (Modifier::SLOW_BLINK, 5),
    (Modifier::REVERSED, 7),
    (Modifier::CROSSED_OUT, 9),
];

impl Pen {
    /// The pen a style asks for.
    pub fn of(style: Style) -> Self {
        let colour = |colour: Option<Color>| colour.filter(|colour| *colour != Color::Reset);
        Self {
            fg: colour(style.fg),
            bg: colour(style.bg),
            modifiers: style.add_modifier.difference(style.sub_modifier),
            link: style.underline_color,
        }
    }

    /// Writes what leads from this pen to `next`.
    pub fn change(&mut self, next: Self, out: &mut Vec<u8>) {
        if *self == next {
            return;
        }
        if self.link != next.link {
            links::write(next.link, out);
            self.link = next.link;
            if *self == next {
                return;
            }
        }
        let mut codes: Vec<String> = Vec::new();
        let lost = !next.modifiers.contains(self.modifiers)
            || (self.fg.is_some() && next.fg.is_none())
            || (self.bg.is_some() && next.bg.is_none());
        let from = if lost { Self::default() } else { *self };
        if lost {
            codes.push("0".to_owned());
        }
        for (flag, code) in FLAGS {
            if next.modifiers.contains(flag) && !from.modifiers.contains(flag) {
                codes.push(code.to_string());
            }
        }
        if let Some(fg) = next.fg.filter(|_| next.fg != from.fg) {
            codes.push(colour(fg, 30));
        }
        if let Some(bg) = next.bg.filter(|_| next.bg != from.bg) {
            codes.push(colour(bg, 40));
        }
        let codes = codes.join(";");
        out.extend_from_slice(b"\x1b[");
        if codes != "0" {
            out.extend_from_slice(codes.as_bytes());
        }
        out.push(b'm');
        *self = next;
    }
}

fn colour(colour: Color, base: u8) -> String {
    let plain = |n: u8| (base + n).to_string();
    let bright = |n: u8| (base + 60 + n).to_string();
    match colour {
        Color::Reset => (base + 9).to_string(),
        Color::Black => plain(0),
        Color::Red => plain(1),
        Color::Green => plain(2),
        Color::Yellow => plain(3),
        Color::Blue => plain(4),
        Color::Magenta => plain(5),
        Color::Cyan => plain(6),
        Color::Gray => plain(7),
        Color::DarkGray => bright(0),
        Color::LightRed => bright(1),
        Color::LightGreen => bright(2),
        Color::LightYellow => bright(3),
        Color::LightBlue => bright(4),
        Color::LightMagenta => bright(5),
        Color::LightCyan => bright(6),
        Color::White => bright(7),
        Color::Indexed(n) => format!("{};5;{n}", base + 8),
        Color::Rgb(r, g, b) => format!("{};2;{r};{g};{b}", base + 8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(styles: &[Style]) -> String {
        let (mut pen, mut out) = (Pen::default(), Vec::new());
        for style in styles {
            pen.change(Pen::of(*style), &mut out);
        }
        String::from_utf8(out).unwrap().replace('\x1b', "^")
    }

    #[test]
    fn only_what_changes_is_written() {
        let red = Style::new().fg(Color::Red);
        assert_eq!(written(&[red, red]), "^[31m");
        assert_eq!(written(&[red, red.add_modifier(Modifier::BOLD)]), "^[31m^[1m");
        assert_eq!(written(&[red, Style::new()]), "^[31m^[m");
        assert_eq!(written(&[red.add_modifier(Modifier::DIM), red]), "^[2;31m^[0;31m");
        assert_eq!(written(&[Style::new()]), "");
        assert_eq!(written(&[Style::new().bg(Color::Rgb(1, 2, 3)).fg(Color::DarkGray)]), "^[90;48;2;1;2;3m");
    }
}
