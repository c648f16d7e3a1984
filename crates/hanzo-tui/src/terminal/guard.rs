//! The terminal's modes while the face has it, and the promise to give them back.

use std::io::{self, Write};

use crossterm::event::{
    DisableBracketedPaste, DisableFocusChange, EnableBracketedPaste, EnableFocusChange,
    KeyboardEnhancementFlags, PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::{execute, queue, terminal};

/// Raw mode, bracketed paste, focus reports and unambiguous keys, for as long as it lives.
#[derive(Debug)]
pub struct Guard {
    active: bool,
}

impl Guard {
    /// Takes the terminal.
    pub fn take() -> io::Result<Self> {
        enter()?;
        Ok(Self { active: true })
    }

    /// Gives the terminal back for a while: an editor, or the shell.
    pub fn release(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.active, false) {
            leave()?;
        }
        Ok(())
    }

    /// Takes it again.
    pub fn retake(&mut self) -> io::Result<()> {
        if !self.active {
            enter()?;
            self.active = true;
        }
        Ok(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if self.active {
            // Nobody is left to be told that it failed.
            let _ = leave();
        }
    }
}

fn enter() -> io::Result<()> {
    terminal::enable_raw_mode()?;
    let mut out = io::stdout();
    // Terminals that do not know a mode ignore it. Only the flag that tells Shift+Enter from Enter and Esc from the start of
    // a sequence is asked for: with more, releases would arrive too.
    queue!(
        out,
        EnableBracketedPaste,
        EnableFocusChange,
        PushKeyboardEnhancementFlags(KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES)
    )?;
    out.flush()
}

fn leave() -> io::Result<()> {
    let mut out = io::stdout();
    // Wrapping, the cursor and the end of a held-back frame: whatever we were in the middle of.
    out.write_all(b"\x1b[?2026l\x1b[?7h\x1b[?25h\x1b[m")?;
    execute!(out, PopKeyboardEnhancementFlags, DisableFocusChange, DisableBracketedPaste)?;
    terminal::disable_raw_mode()
}

/// Gives the terminal back before a panic is told, so that the message can be read.
pub fn install_panic_hook() {
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        let _ = leave();
        let _ = io::stdout().write_all(b"\r\n");
        before(info);
    }));
}
