//! From the bytes a terminal sends to what they mean: keys, pasted text, and the answers to what we asked it. Any split of
//! the bytes gives the same, except where only time tells a key from the start of a sequence.

use crate::edit::{Key, KeyCode, Modifiers};
use crate::theme::Background;

use super::input::Input;

/// What ends a paste.
const PASTE_END: &[u8] = b"\x1b[201~";
/// The longest sequence a terminal sends; what is longer is noise.
const LONGEST: usize = 512;

/// Bytes that are not understood yet.
#[derive(Debug, Default)]
pub struct Decoder {
    held: Vec<u8>,
    /// How much of a paste was searched for its end.
    searched: usize,
}

/// What the start of the held bytes is.
enum Found {
    /// It may go on.
    More,
    /// So many bytes, and what they mean to us, if anything.
    Whole(usize, Option<Input>),
}

impl Decoder {
    /// Takes in bytes and returns what is complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        self.held.extend_from_slice(bytes);
        self.drain()
    }

    /// Whether the start of something is held.
    pub fn is_waiting(&self) -> bool {
        !self.held.is_empty() && !self.is_pasting()
    }

    /// Nothing followed for a while: an escape was the key and not the start of a sequence.
    pub fn give_up(&mut self) -> Vec<Input> {
        let mut found = Vec::new();
        if !self.is_waiting() {
            return found;
        }
        match self.held[..] {
            [0x1b] => found.push(Input::Key(Key::new(KeyCode::Escape))),
            // Alt with what begins longer sequences.
            [0x1b, second] if second.is_ascii_graphic() => {
                found.push(Input::Key(Key::alt(char::from(second))));
            }
            _ => {}
        }
        self.held.clear();
        found
    }

    fn is_pasting(&self) -> bool {
        self.held.starts_with(b"\x1b[200~")
    }

    fn drain(&mut self) -> Vec<Input> {
        let mut inputs = Vec::new();
        let mut from = 0;
        while from < self.held.len() {
            let rest = &self.held[from..];
            let searched = if from == 0 { self.searched } else { 0 };
            let found = if rest.starts_with(b"\x1b[200~") { pasted(rest, searched) } else { sequence(rest) };
            match found {
                Found::Whole(length, input) => {
                    inputs.extend(input);
                    from += length;
                    self.searched = 0;
                }
                Found::More if rest.len() > LONGEST && !rest.starts_with(b"\x1b[200~") => {
                    from = self.held.len();
                }
                Found::More => {
                    self.searched = rest.len();
                    break;
                }
            }
        }
        self.held.drain(..from);
        inputs
    }
}

/// A paste, of which `searched` bytes do not hold the end.
fn pasted(bytes: &[u8], searched: usize) -> Found {
    const START: usize = 6;
    let from = searched.saturating_sub(PASTE_END.len()).max(START);
    let Some(at) = bytes[from..].windows(PASTE_END.len()).position(|window| window == PASTE_END) else {
        return Found::More;
    };
    let text = String::from_utf8_lossy(&bytes[START..from + at]);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    Found::Whole(from + at + PASTE_END.len(), Some(Input::Paste(text)))
}

fn sequence(bytes: &[u8]) -> Found {
    match bytes {
        [0x1b] | [0x1b, b'P' | b'_' | b'O'] => Found::More,
        [0x1b, b'[', ..] => control(bytes),
        [0x1b, b']', ..] => command(bytes),
        [0x1b, b'P' | b'_', ..] => string(bytes),
        [0x1b, b'O', last, ..] => Found::Whole(3, letter(*last).map(|code| Input::Key(Key::new(code)))),
        [0x1b, 0x1b, ..] => Found::Whole(1, Some(Input::Key(Key::new(KeyCode::Escape)))),
        [0x1b, rest @ ..] => match single(rest) {
            Found::Whole(length, Some(Input::Key(key))) => {
                Found::Whole(length + 1, Some(Input::Key(key.with(Modifiers::ALT))))
            }
            Found::Whole(length, input) => Found::Whole(length + 1, input),
            Found::More => Found::More,
        },
        _ => single(bytes),
    }
}

/// A key that is one character.
fn single(bytes: &[u8]) -> Found {
    let key = match bytes[0] {
        b'\r' => Key::new(KeyCode::Enter),
        b'\t' => Key::new(KeyCode::Tab),
        0x7f => Key::new(KeyCode::Backspace),
        0 => Key::ctrl(' '),
        byte @ 0x01..=0x1a => Key::ctrl(char::from(byte - 1 + b'a')),
        byte @ 0x1c..=0x1f => Key::ctrl(char::from(byte - 0x1c + b'4')),
        byte @ 0x20..=0x7e => Key::char(char::from(byte)),
        _ => return character(bytes),
    };
    Found::Whole(1, Some(Input::Key(key)))
}

fn character(bytes: &[u8]) -> Found {
    let length = match bytes[0] {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        // No character begins so.
        _ => return Found::Whole(1, None),
    };
    let begun = &bytes[..bytes.len().min(length)];
    match std::str::from_utf8(begun) {
        Ok(text) => Found::Whole(length, text.chars().next().map(|c| Input::Key(Key::char(c)))),
        Err(error) if error.error_len().is_none() && bytes.len() < length => Found::More,
        Err(_) => Found::Whole(1, None),
    }
}

/// `CSI`: parameters, then a final byte.
fn control(bytes: &[u8]) -> Found {
    // The old form of mouse reports has three raw bytes behind its letter.
    if bytes.get(2) == Some(&b'M') {
        return if bytes.len() < 6 { Found::More } else { Found::Whole(6, None) };
    }
    let Some(length) = bytes[2..].iter().position(|byte| (0x40..=0x7e).contains(byte)) else {
        return match bytes[2..].iter().position(|byte| !(0x20..=0x3f).contains(byte)) {
            // A control character in the middle: whatever began is over.
            Some(at) => Found::Whole(2 + at, None),
            None => Found::More,
        };
    };
    let (parameters, last) = (&bytes[2..2 + length], bytes[2 + length]);
    let input = std::str::from_utf8(parameters).ok().and_then(|parameters| meaning(parameters, last));
    Found::Whole(length + 3, input)
}

fn meaning(parameters: &str, last: u8) -> Option<Input> {
    if let Some(report) = parameters.strip_prefix('<') {
        return mouse(report, last);
    }
    // Parameters have parts behind a colon; the first is the one that counts, of the second the last says what happened.
    let mut fields = parameters.split(';');
    let mut number = |default: u32| {
        let field = fields.next().unwrap_or_default();
        let mut parts = field.split(':');
        let first = parts.next().and_then(|part| part.parse().ok()).unwrap_or(default);
        (first, parts.next().and_then(|part| part.parse::<u32>().ok()))
    };
    let (first, _) = number(1);
    let (second, event) = number(1);
    let (third, _) = number(0);
    let key = |code: KeyCode, mask: u32| Some(Input::Key(Key::new(code).with(modifiers(mask, code))));
    match last {
        b'R' if parameters.contains(';') => {
            Some(Input::Position(u16::try_from(first).ok()?, u16::try_from(second).ok()?))
        }
        b'I' if parameters.is_empty() => Some(Input::Focus(true)),
        b'O' if parameters.is_empty() => Some(Input::Focus(false)),
        // The release of a key is not a press.
        _ if event == Some(3) => None,
        b'Z' => Some(Input::Key(Key::new(KeyCode::Tab).with(Modifiers::SHIFT))),
        b'u' => coded(first, second),
        b'~' => match first {
            27 => coded(third, second),
            1 | 7 => key(KeyCode::Home, second),
            3 => key(KeyCode::Delete, second),
            4 | 8 => key(KeyCode::End, second),
            5 => key(KeyCode::PageUp, second),
            6 => key(KeyCode::PageDown, second),
            _ => None,
        },
        _ => key(letter(last)?, second),
    }
}

/// The keys that end in a letter.
fn letter(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'M' => KeyCode::Enter,
        _ => return None,
    })
}

fn modifiers(mask: u32, code: KeyCode) -> Modifiers {
    let held = mask.saturating_sub(1);
    let mut modifiers = Modifiers::NONE;
    if held & 0b100 != 0 {
        modifiers = modifiers.and(Modifiers::CONTROL);
    }
    // Alt and Meta.
    if held & 0b10_0010 != 0 {
        modifiers = modifiers.and(Modifiers::ALT);
    }
    // A character says itself whether shift was held.
    if held & 1 != 0 && !matches!(code, KeyCode::Char(_)) {
        modifiers = modifiers.and(Modifiers::SHIFT);
    }
    modifiers
}

/// A key by the number of its character.
fn coded(number: u32, mask: u32) -> Option<Input> {
    let code = match number {
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Escape,
        8 | 127 => KeyCode::Backspace,
        57399..=57408 => KeyCode::Char(char::from_digit(number - 57399, 10)?),
        57409 => KeyCode::Char('.'),
        57410 => KeyCode::Char('/'),
        57411 => KeyCode::Char('*'),
        57412 => KeyCode::Char('-'),
        57413 => KeyCode::Char('+'),
        57415 => KeyCode::Char('='),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57426 => KeyCode::Delete,
        // The rest of that range are keys we have no use for.
        57344..=63743 => return None,
        _ => {
            let c = char::from_u32(number).filter(|c| !c.is_control())?;
            let held = mask.saturating_sub(1);
            let (shift, control) = (held & 1 != 0, held & 0b100 != 0);
            KeyCode::Char(match (shift, control) {
                (_, true) => c.to_ascii_lowercase(),
                (true, false) => c.to_uppercase().next().unwrap_or(c),
                (false, false) => c,
            })
        }
    };
    Some(Input::Key(Key::new(code).with(modifiers(mask, code))))
}

fn mouse(report: &str, last: u8) -> Option<Input> {
    let mut numbers = report.split(';').map(|number| number.parse::<u16>().ok());
    let button = numbers.next()??;
    let (column, row) = (numbers.next()??, numbers.next()??);
    match (button & 0b1100_0011, last) {
        (0, b'M') => Some(Input::Click { row: row.saturating_sub(1), column: column.saturating_sub(1) }),
        (64, b'M') => Some(Input::Wheel(-1)),
        (65, b'M') => Some(Input::Wheel(1)),
        _ => None,
    }
}

/// `OSC`: the terminal's answer about itself.
fn command(bytes: &[u8]) -> Found {
    match string(bytes) {
        Found::Whole(length, _) => {
            let text = String::from_utf8_lossy(&bytes[2..length]);
            let text = text.trim_end_matches(['\x07', '\x1b', '\\']);
            let background = text.strip_prefix("11;").and_then(Background::from_report);
            Found::Whole(length, background.map(Input::Background))
        }
        Found::More => Found::More,
    }
}

/// A string that ends with `BEL` or `ST`.
fn string(bytes: &[u8]) -> Found {
    let mut at = 2;
    while at < bytes.len() {
        match bytes[at..] {
            [0x07, ..] => return Found::Whole(at + 1, None),
            [0x1b, b'\\', ..] => return Found::Whole(at + 2, None),
            [0x1b] => return Found::More,
            // Something else begins: the string was none.
            [0x1b, ..] => return Found::Whole(at, None),
            _ => at += 1,
        }
    }
    Found::More
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Vec<Input> {
        let mut decoder = Decoder::default();
        let mut inputs = decoder.feed(bytes);
        inputs.extend(decoder.give_up());
        inputs
    }

    fn keys(bytes: &[u8]) -> String {
        let keys = all(bytes).into_iter().map(|input| match input {
            Input::Key(key) => key.to_string(),
            other => format!("[{other:?}]"),
        });
        keys.collect()
    }

    #[test]
    fn keys_arrive_as_the_editor_knows_them() {
        assert_eq!(keys(b"aZ\x03\r\t\x7f\x00"), "aZ<C-c><CR><Tab><BS><C-Space>");
        assert_eq!(keys("é日👍".as_bytes()), "é日👍");
        assert_eq!(
            keys(b"\x1b[A\x1bOB\x1b[1;5C\x1b[1;3D\x1b[H\x1b[4~\x1b[3;5~"),
            "<Up><Down><C-Right><M-Left><Home><End><C-Del>"
        );
        assert_eq!(
            keys(b"\x1b[Z\x1b[9;2u\x1b[13;2u\x1b[27;2;13~\x1b[27u"),
            "<S-Tab><S-Tab><S-CR><S-CR><Esc>"
        );
        assert_eq!(keys(b"\x1bb\x1b\x7f\x1b\r\x1bB"), "<M-b><M-BS><M-CR><M-B>");
        assert_eq!(keys(b"\x1b[99;6u\x1b[97;4u\x1b[57400u"), "<C-c><M-A>1");
        assert_eq!(keys(b"\x1b[97;1:3u\x1b[97;1:1u"), "a", "a release is no press");
    }

    #[test]
    fn an_escape_is_a_key_when_nothing_follows() {
        let mut decoder = Decoder::default();
        assert!(decoder.feed(b"\x1b").is_empty() && decoder.is_waiting());
        assert_eq!(decoder.give_up(), [Input::Key(Key::new(KeyCode::Escape))]);
        assert!(!decoder.is_waiting() && decoder.give_up().is_empty());
        assert_eq!(keys(b"\x1b\x1b"), "<Esc><Esc>");
        assert_eq!(keys(b"\x1b["), "<M-[>");
        assert_eq!(keys(b"\x1b[1;"), "", "half a sequence types nothing");
    }

    #[test]
    fn pastes_are_text_whatever_is_in_them() {
        assert_eq!(
            all(b"\x1b[200~a\r\nb\rc\x1b[A\x03\x1b[201~x"),
            [Input::Paste("a\nb\nc\x1b[A\x03".into()), Input::Key(Key::char('x'))]
        );
        let mut decoder = Decoder::default();
        assert!(decoder.feed(b"\x1b[200~half").is_empty());
        assert!(decoder.give_up().is_empty(), "a slow paste is waited for");
        assert_eq!(decoder.feed(b" and half\x1b[201~"), [Input::Paste("half and half".into())]);
    }

    #[test]
    fn answers_of_the_terminal_are_not_keys() {
        assert_eq!(all(b"\x1b[12;80R"), [Input::Position(12, 80)]);
        assert_eq!(all(b"\x1b]11;rgb:ffff/ffff/f0f0\x07"), [Input::Background(Background::Light)]);
        assert_eq!(
            all(b"\x1b]11;rgb:1e/1e/2e\x1b\\a"),
            [Input::Background(Background::Dark), Input::Key(Key::char('a'))]
        );
        assert_eq!(all(b"\x1b[I\x1b[O"), [Input::Focus(true), Input::Focus(false)]);
        assert_eq!(all(b"\x1b[?62;4c\x1bP>|tmux 3.4\x1b\\\x1b[<0;5;3m"), []);
        assert_eq!(all(b"\x1b[<65;5;3M\x1b[<0;5;3M"), [Input::Wheel(1), Input::Click { row: 2, column: 4 }]);
    }
}
