//! Sequences for what is beside the screen: the clipboard, and calling the user.

use base64::Engine as _;

use crate::app::Notify;

/// What puts text on the clipboard of the terminal the user sits at, also through SSH.
pub(super) fn clipboard(text: &str) -> String {
    format!("\x1b]52;c;{}\x07", base64::engine::general_purpose::STANDARD.encode(text))
}

/// tmux passes such a sequence on only when wrapped, or takes it itself, as it is configured; so it gets both.
pub(super) fn through_tmux(sequence: &str, in_tmux: bool) -> Vec<u8> {
    if !in_tmux {
        return sequence.as_bytes().to_vec();
    }
    let wrapped = sequence.replace('\x1b', "\x1b\x1b");
    format!("{sequence}\x1bPtmux;{wrapped}\x1b\\").into_bytes()
}

/// What calls the user, who looks elsewhere.
pub(super) fn notification(text: &str, notify: Notify, in_tmux: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if notify == Notify::Desktop {
        let text: String = text.chars().filter(|c| !c.is_control()).collect();
        bytes.extend(through_tmux(&format!("\x1b]9;{text}\x07"), in_tmux));
    }
    if notify != Notify::Never {
        bytes.push(0x07);
    }
    bytes
}

pub(super) fn in_tmux() -> bool {
    std::env::var_os("TMUX").is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tmux_gets_the_clipboard_twice_and_others_once() {
        let sequence = clipboard("hi");
        assert_eq!(through_tmux(&sequence, false), b"\x1b]52;c;aGk=\x07");
        assert_eq!(
            through_tmux(&sequence, true),
            b"\x1b]52;c;aGk=\x07\x1bPtmux;\x1b\x1b]52;c;aGk=\x07\x1b\\"
        );
    }

    #[test]
    fn the_user_is_called_as_they_wish() {
        assert_eq!(notification("a\x1b\x07b", Notify::Desktop, false), b"\x1b]9;ab\x07\x07");
        assert_eq!(notification("ab", Notify::Bell, false), b"\x07");
        assert_eq!(notification("ab", Notify::Never, false), b"");
    }
}
