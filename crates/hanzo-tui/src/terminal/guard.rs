//! The terminal's modes while the face has it, and the promise to give them back.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use crossterm::terminal;

/// Whether the mouse is ours. The terminal's own way to select and to scroll is gone while it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mouse {
    /// The terminal's.
    #[default]
    Terminals,
    /// Ours.
    Ours,
}

/// What is asked of the terminal besides raw keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Modes {
    /// Whose the mouse is.
    pub mouse: Mouse,
    /// Which part of the screen is drawn on.
    pub extent: super::Extent,
}

/// Raw mode, bracketed paste, focus reports and unambiguous keys, for as long as it lives.
#[derive(Debug)]
pub struct Guard {
    modes: Modes,
    active: bool,
}

/// Terminals that do not know a mode ignore it. Of the unambiguous keys only the flag that tells Shift+Enter from Enter and Esc
/// from the start of a sequence is asked for: with more, releases would arrive too.
const ENTER: &[u8] = b"\x1b[?2004h\x1b[?1004h\x1b[>1u";
/// Wrapping, the cursor and the end of a held-back frame come first: whatever we were in the middle of.
const LEAVE: &[u8] = b"\x1b[?2026l\x1b[?7h\x1b[?25h\x1b[m\x1b[<1u\x1b[?1004l\x1b[?2004l";
const MOUSE: &[u8] = b"\x1b[?1000h\x1b[?1006h";
const NO_MOUSE: &[u8] = b"\x1b[?1006l\x1b[?1000l";
const WHOLE: &[u8] = b"\x1b[?1049h\x1b[H";
const NOT_WHOLE: &[u8] = b"\x1b[?1049l";

/// What a panic has to give back; the guard is out of reach then.
static MOUSE_IS_OURS: AtomicBool = AtomicBool::new(false);
static ON_THE_WHOLE: AtomicBool = AtomicBool::new(false);

impl Guard {
    /// Takes the terminal.
    pub fn take(modes: Modes) -> io::Result<Self> {
        enter(modes)?;
        Ok(Self { modes, active: true })
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
            enter(self.modes)?;
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

fn enter(modes: Modes) -> io::Result<()> {
    terminal::enable_raw_mode()?;
    let mut out = io::stdout();
    // The keyboard's modes belong to the screen they are set on.
    if modes.extent == super::Extent::Whole {
        ON_THE_WHOLE.store(true, Ordering::Relaxed);
        out.write_all(WHOLE)?;
    }
    out.write_all(ENTER)?;
    if modes.mouse == Mouse::Ours {
        MOUSE_IS_OURS.store(true, Ordering::Relaxed);
        out.write_all(MOUSE)?;
    }
    out.flush()
}

fn leave() -> io::Result<()> {
    let mut out = io::stdout();
    if MOUSE_IS_OURS.swap(false, Ordering::Relaxed) {
        out.write_all(NO_MOUSE)?;
    }
    out.write_all(LEAVE)?;
    if ON_THE_WHOLE.swap(false, Ordering::Relaxed) {
        out.write_all(NOT_WHOLE)?;
    }
    out.flush()?;
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
