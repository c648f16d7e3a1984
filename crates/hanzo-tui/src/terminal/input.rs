//! What comes from the terminal, in our own words.

use crossterm::event::{Event, KeyCode as Code, KeyEvent, KeyEventKind, KeyModifiers, MouseEventKind};

use crate::edit::{Key, KeyCode, Modifiers};

/// Something the terminal said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A key was pressed.
    Key(Key),
    /// Text was pasted.
    Paste(String),
    /// The terminal has another size: columns, rows.
    Resize(u16, u16),
    /// The window got the focus, or lost it.
    Focus(bool),
}

/// What an event of the terminal library means to us, if anything.
pub fn translate(event: Event) -> Option<Input> {
    match event {
        Event::Key(key) => self::key(key).map(Input::Key),
        Event::Paste(text) => Some(Input::Paste(text.replace("\r\n", "\n").replace('\r', "\n"))),
        Event::Resize(width, height) => Some(Input::Resize(width, height)),
        Event::FocusGained => Some(Input::Focus(true)),
        Event::FocusLost => Some(Input::Focus(false)),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => Some(Input::Key(Key::new(KeyCode::PageUp))),
            MouseEventKind::ScrollDown => Some(Input::Key(Key::new(KeyCode::PageDown))),
            _ => None,
        },
    }
}

fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    let mut modifiers = Modifiers::NONE;
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        modifiers = modifiers.and(Modifiers::CONTROL);
    }
    if event.modifiers.intersects(KeyModifiers::ALT | KeyModifiers::META) {
        modifiers = modifiers.and(Modifiers::ALT);
    }
    let shift = event.modifiers.contains(KeyModifiers::SHIFT);
    let code = match event.code {
        Code::Char(c) => {
            // Control with a letter is the same key in capitals; a character says itself whether shift was held.
            let control = modifiers.contains(Modifiers::CONTROL);
            return Some(Key {
                code: KeyCode::Char(if control { c.to_ascii_lowercase() } else { c }),
                modifiers,
            });
        }
        Code::Enter => KeyCode::Enter,
        Code::Esc => KeyCode::Escape,
        Code::Backspace => KeyCode::Backspace,
        Code::Delete => KeyCode::Delete,
        Code::Tab => KeyCode::Tab,
        Code::BackTab => return Some(Key { code: KeyCode::Tab, modifiers: modifiers.and(Modifiers::SHIFT) }),
        Code::Left => KeyCode::Left,
        Code::Right => KeyCode::Right,
        Code::Up => KeyCode::Up,
        Code::Down => KeyCode::Down,
        Code::Home => KeyCode::Home,
        Code::End => KeyCode::End,
        Code::PageUp => KeyCode::PageUp,
        Code::PageDown => KeyCode::PageDown,
        _ => return None,
    };
    let modifiers = if shift { modifiers.and(Modifiers::SHIFT) } else { modifiers };
    Some(Key { code, modifiers })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(code: Code, modifiers: KeyModifiers) -> Option<Input> {
        translate(Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn keys_arrive_as_the_editor_knows_them() {
        let shift_tab = Key::new(KeyCode::Tab).with(Modifiers::SHIFT);
        assert_eq!(pressed(Code::BackTab, KeyModifiers::SHIFT), Some(Input::Key(shift_tab)));
        assert_eq!(pressed(Code::Tab, KeyModifiers::SHIFT), Some(Input::Key(shift_tab)));
        assert_eq!(pressed(Code::Char('A'), KeyModifiers::SHIFT), Some(Input::Key(Key::char('A'))));
        assert_eq!(pressed(Code::Char('C'), KeyModifiers::CONTROL), Some(Input::Key(Key::ctrl('c'))));
        let mut released = KeyEvent::new(Code::Enter, KeyModifiers::NONE);
        released.kind = KeyEventKind::Release;
        assert_eq!(translate(Event::Key(released)), None);
    }

    #[test]
    fn pasted_line_breaks_are_line_breaks() {
        assert_eq!(translate(Event::Paste("a\r\nb\rc".into())), Some(Input::Paste("a\nb\nc".into())));
    }
}
