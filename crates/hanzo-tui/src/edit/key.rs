//! Keys as the editor sees them: independent of the terminal library, with the `<Esc>` notation Vim users know, which the
//! tests and the user's key bindings are written in.

use std::fmt::Write as _;

/// Which key was pressed, without its modifiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KeyCode {
    /// A key that types this character; capitals come as capitals, not as shift.
    Char(char),
    /// Return.
    Enter,
    /// Escape.
    Escape,
    /// Delete to the left.
    Backspace,
    /// Delete to the right.
    Delete,
    /// Tab.
    Tab,
    /// Cursor left.
    Left,
    /// Cursor right.
    Right,
    /// Cursor up.
    Up,
    /// Cursor down.
    Down,
    /// Start of the line.
    Home,
    /// End of the line.
    End,
    /// One screen up.
    PageUp,
    /// One screen down.
    PageDown,
}

/// The modifier keys held down, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Modifiers(u8);

impl Modifiers {
    /// None held.
    pub const NONE: Self = Self(0);
    /// Control.
    pub const CONTROL: Self = Self(1);
    /// Alt, also called Meta.
    pub const ALT: Self = Self(2);
    /// Shift, only together with keys that are not characters.
    pub const SHIFT: Self = Self(4);

    /// Both sets together.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` are held.
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// One key press.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    /// The key.
    pub code: KeyCode,
    /// What was held with it.
    pub modifiers: Modifiers,
}

/// A key notation that names no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "no key is called `<{name}>`\n\nhint: names are Esc, CR, BS, Del, Tab, Space, Left … PageDown, lt, with C-, M- or S- in front"
)]
pub struct UnknownKey {
    /// What stood between the angle brackets.
    pub name: String,
}

impl Key {
    /// A key without modifiers.
    pub const fn new(code: KeyCode) -> Self {
        Self { code, modifiers: Modifiers::NONE }
    }

    /// The key that types `character`.
    pub const fn char(character: char) -> Self {
        Self::new(KeyCode::Char(character))
    }

    /// Control with `character`.
    pub const fn ctrl(character: char) -> Self {
        Self { code: KeyCode::Char(character), modifiers: Modifiers::CONTROL }
    }

    /// Alt with `character`.
    pub const fn alt(character: char) -> Self {
        Self { code: KeyCode::Char(character), modifiers: Modifiers::ALT }
    }

    /// This key with more modifiers held.
    #[must_use]
    pub const fn with(self, modifiers: Modifiers) -> Self {
        Self { code: self.code, modifiers: self.modifiers.and(modifiers) }
    }

    /// The character this key types when nothing but shift is held.
    pub fn typed(self) -> Option<char> {
        match self.code {
            KeyCode::Char(c)
                if !self.modifiers.contains(Modifiers::CONTROL)
                    && !self.modifiers.contains(Modifiers::ALT) =>
            {
                Some(c)
            }
            _ => None,
        }
    }

    /// Reads a run of keys: literal characters, and names such as `<Esc>`, `<C-w>`, `<lt>` for a literal `<`.
    pub fn parse_all(notation: &str) -> Result<Vec<Self>, UnknownKey> {
        let mut keys = Vec::new();
        let mut rest = notation;
        while let Some(first) = rest.chars().next() {
            let named = rest.strip_prefix('<').and_then(split_name);
            if let Some((name, after)) = named {
                keys.push(Self::named(name).ok_or_else(|| UnknownKey { name: name.to_owned() })?);
                rest = after;
            } else {
                keys.push(if first == '\n' { Self::new(KeyCode::Enter) } else { Self::char(first) });
                rest = &rest[first.len_utf8()..];
            }
        }
        Ok(keys)
    }

    fn named(name: &str) -> Option<Self> {
        let mut modifiers = Modifiers::NONE;
        let mut name = name;
        while let Some((prefix, rest)) = name.split_once('-').filter(|(_, rest)| !rest.is_empty()) {
            modifiers = modifiers.and(match prefix {
                "C" | "c" => Modifiers::CONTROL,
                "M" | "m" | "A" | "a" => Modifiers::ALT,
                "S" | "s" => Modifiers::SHIFT,
                _ => return None,
            });
            name = rest;
        }
        let code = match name.to_ascii_lowercase().as_str() {
            "esc" => KeyCode::Escape,
            "cr" | "enter" | "return" => KeyCode::Enter,
            "bs" => KeyCode::Backspace,
            "del" => KeyCode::Delete,
            "tab" => KeyCode::Tab,
            "space" => KeyCode::Char(' '),
            "lt" => KeyCode::Char('<'),
            "left" => KeyCode::Left,
            "right" => KeyCode::Right,
            "up" => KeyCode::Up,
            "down" => KeyCode::Down,
            "home" => KeyCode::Home,
            "end" => KeyCode::End,
            "pageup" => KeyCode::PageUp,
            "pagedown" => KeyCode::PageDown,
            _ => {
                let mut characters = name.chars();
                let only = characters.next().filter(|_| characters.next().is_none())?;
                // `<x>` alone is not a name; `<C-x>` is.
                if modifiers == Modifiers::NONE {
                    return None;
                }
                KeyCode::Char(only)
            }
        };
        Some(Self { code, modifiers })
    }
}

/// A name and what follows its bracket; in `<M->>` the first bracket is the key.
fn split_name(inside: &str) -> Option<(&str, &str)> {
    let mut end = inside.find('>')?;
    if inside[..end].ends_with('-') && inside[end + 1..].starts_with('>') {
        end += 1;
    }
    Some((&inside[..end], &inside[end + 1..]))
}

impl std::fmt::Display for Key {
    /// The notation [`Key::parse_all`] reads.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match self.code {
            KeyCode::Char('<') => "lt",
            KeyCode::Char(c) if self.modifiers == Modifiers::NONE => return f.write_char(c),
            KeyCode::Char(' ') => "Space",
            KeyCode::Char(c) => return write!(f, "<{}{c}>", self.prefix()),
            KeyCode::Enter => "CR",
            KeyCode::Escape => "Esc",
            KeyCode::Backspace => "BS",
            KeyCode::Delete => "Del",
            KeyCode::Tab => "Tab",
            KeyCode::Left => "Left",
            KeyCode::Right => "Right",
            KeyCode::Up => "Up",
            KeyCode::Down => "Down",
            KeyCode::Home => "Home",
            KeyCode::End => "End",
            KeyCode::PageUp => "PageUp",
            KeyCode::PageDown => "PageDown",
        };
        write!(f, "<{}{name}>", self.prefix())
    }
}

impl Key {
    fn prefix(self) -> String {
        let mut prefix = String::new();
        for (modifier, letter) in
            [(Modifiers::CONTROL, "C-"), (Modifiers::ALT, "M-"), (Modifiers::SHIFT, "S-")]
        {
            if self.modifiers.contains(modifier) {
                prefix.push_str(letter);
            }
        }
        prefix
    }
}
