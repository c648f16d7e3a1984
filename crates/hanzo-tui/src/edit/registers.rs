//! Where deleted and copied text goes: Vim's registers, and the kill ring of the emacs keys.

use std::collections::{BTreeMap, VecDeque};

/// Whether text is a run of characters or whole lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextKind {
    /// Characters; put beside the cursor.
    Characters,
    /// Whole lines, each ended by `\n`; put above or below the cursor's line.
    Lines,
}

/// What a register holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisterText {
    /// The text.
    pub text: String,
    /// How it is put back.
    pub kind: TextKind,
}

/// Whether text got into a register by deleting or by copying: Vim keeps them apart in `"1`–`"9`, `"-` and `"0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Deleted; numbered when it has a line break or the motion always numbers.
    Deleted {
        numbered: bool,
    },
    Yanked,
}

/// The registers of one input widget.
#[derive(Debug, Clone, Default)]
pub(crate) struct Registers {
    unnamed: Option<RegisterText>,
    named: BTreeMap<char, RegisterText>,
}

impl Registers {
    pub fn get(&self, name: Option<char>) -> Option<&RegisterText> {
        match name {
            None | Some('"') => self.unnamed.as_ref(),
            Some(name) => self.named.get(&name.to_ascii_lowercase()).or_else(|| {
                // `*` is the same clipboard to us.
                (name == '*').then(|| self.named.get(&'+')).flatten()
            }),
        }
    }

    pub fn set_unnamed(&mut self, text: RegisterText) {
        self.unnamed = Some(text);
    }

    pub fn set_clipboard(&mut self, text: RegisterText) {
        self.named.insert('+', text);
    }

    /// Whether text can be kept under this name.
    pub fn is_name(name: char) -> bool {
        name.is_ascii_alphanumeric() || matches!(name, '"' | '-' | '_' | '+' | '*')
    }

    /// Keeps `text`, as Vim does, and returns it when it should go to the system's clipboard too.
    pub fn write(&mut self, name: Option<char>, text: RegisterText, origin: Origin) -> Option<String> {
        let mut clipboard = None;
        let mut kept = text;
        match name {
            Some('_') => return None,
            Some('+' | '*') => {
                clipboard = Some(kept.text.clone());
                self.named.insert('+', kept.clone());
            }
            Some(letter) if letter.is_ascii_uppercase() => {
                kept = self.append(letter.to_ascii_lowercase(), kept);
            }
            Some(name) if name != '"' => {
                self.named.insert(name, kept.clone());
            }
            _ if origin == Origin::Yanked => {
                self.named.insert('0', kept.clone());
            }
            _ => {}
        }
        if let Origin::Deleted { numbered } = origin {
            if numbered {
                for number in ('2'..='9').rev() {
                    let before = char::from_u32(u32::from(number) - 1).unwrap_or('1');
                    if let Some(older) = self.named.get(&before).cloned() {
                        self.named.insert(number, older);
                    }
                }
                self.named.insert('1', kept.clone());
            } else if name.is_none() {
                self.named.insert('-', kept.clone());
            }
        }
        self.unnamed = Some(kept);
        clipboard
    }

    fn append(&mut self, name: char, more: RegisterText) -> RegisterText {
        let joined = match self.named.remove(&name) {
            None => more,
            Some(mut before) => {
                if more.kind == TextKind::Lines && before.kind == TextKind::Characters {
                    before.text.push('\n');
                    before.kind = TextKind::Lines;
                }
                before.text.push_str(&more.text);
                if before.kind == TextKind::Lines && !before.text.ends_with('\n') {
                    before.text.push('\n');
                }
                before
            }
        };
        self.named.insert(name, joined.clone());
        joined
    }
}

/// How many kills the ring keeps; bash and emacs keep about as many.
const MOST_KILLS: usize = 60;

/// Whether a kill goes on from the one before it, and on which side its text is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kill {
    /// A kill of its own.
    New,
    /// The key before was a kill too: text after it.
    After,
    /// The key before was a kill too: text before it.
    Before,
}

/// The kill ring of the emacs and default keys.
#[derive(Debug, Clone, Default)]
pub(crate) struct KillRing {
    kills: VecDeque<String>,
    turned: usize,
}

impl KillRing {
    pub fn kill(&mut self, text: &str, how: Kill) {
        self.turned = 0;
        match (how, self.kills.front_mut()) {
            (Kill::After, Some(last)) => last.push_str(text),
            (Kill::Before, Some(last)) => last.insert_str(0, text),
            _ => {
                self.kills.push_front(text.to_owned());
                self.kills.truncate(MOST_KILLS);
            }
        }
    }

    /// The newest kill.
    pub fn newest(&mut self) -> Option<&str> {
        self.turned = 0;
        self.kills.front().map(String::as_str)
    }

    /// The kill before the one last given.
    pub fn turn(&mut self) -> Option<&str> {
        if self.kills.is_empty() {
            return None;
        }
        self.turned = (self.turned + 1) % self.kills.len();
        self.kills.get(self.turned).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn characters(text: &str) -> RegisterText {
        RegisterText { text: text.to_owned(), kind: TextKind::Characters }
    }

    #[test]
    fn deletes_are_numbered_and_copies_are_kept_apart() {
        let mut registers = Registers::default();
        registers.write(None, characters("copied"), Origin::Yanked);
        for text in ["a\n", "b\n"] {
            registers.write(None, characters(text), Origin::Deleted { numbered: true });
        }
        registers.write(None, characters("small"), Origin::Deleted { numbered: false });
        let get = |name| registers.get(Some(name)).map(|text| text.text.as_str());
        assert_eq!(
            [get('0'), get('1'), get('2'), get('-'), get('"')],
            [Some("copied"), Some("b\n"), Some("a\n"), Some("small"), Some("small")]
        );
    }

    #[test]
    fn a_capital_adds_and_the_black_hole_keeps_nothing() {
        let mut registers = Registers::default();
        registers.write(Some('a'), characters("x"), Origin::Yanked);
        let lines = RegisterText { text: "y\n".to_owned(), kind: TextKind::Lines };
        registers.write(Some('A'), lines, Origin::Yanked);
        registers.write(Some('_'), characters("gone"), Origin::Deleted { numbered: true });
        assert_eq!(registers.get(Some('a')).map(|text| text.text.as_str()), Some("x\ny\n"));
        assert_eq!(registers.get(None).map(|text| text.text.as_str()), Some("x\ny\n"));
    }

    #[test]
    fn the_ring_turns_through_older_kills() {
        let mut ring = KillRing::default();
        ring.kill("one", Kill::New);
        ring.kill("two", Kill::New);
        ring.kill("!", Kill::After);
        assert_eq!(ring.newest(), Some("two!"));
        assert_eq!(ring.turn(), Some("one"));
        assert_eq!(ring.turn(), Some("two!"));
    }
}
