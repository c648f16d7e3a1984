//! A secret from whoever runs the program: typed without being shown, or the first line of standard input.

use std::io::{BufRead as _, IsTerminal as _, Read as _, Write as _};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

use crate::exit::{Exit, Failure};

/// The most bytes of a secret.
const LONGEST: u64 = 64 * 1024;

/// Puts the terminal back as it was.
struct Restore(Termios);

impl Drop for Restore {
    fn drop(&mut self) {
        let _ = tcsetattr(std::io::stdin(), OptionalActions::Flush, &self.0);
    }
}

/// Asks for a secret.
pub fn read(prompt: &str) -> Result<String, Failure> {
    let stdin = std::io::stdin();
    let mut line = String::new();
    if stdin.is_terminal() {
        let mut stderr = std::io::stderr();
        write!(stderr, "{prompt} (not shown): ")?;
        stderr.flush()?;
        let before = tcgetattr(&stdin).map_err(std::io::Error::from)?;
        let mut silent = before.clone();
        // Signals stay: Ctrl-C ends this like everything else, and the shell puts its terminal in order itself.
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&stdin, OptionalActions::Flush, &silent).map_err(std::io::Error::from)?;
        let restore = Restore(before);
        let read = stdin.lock().take(LONGEST).read_line(&mut line);
        drop(restore);
        writeln!(stderr)?;
        read?;
    } else {
        stdin.lock().take(LONGEST).read_line(&mut line)?;
    }
    let secret = line.trim();
    if secret.is_empty() {
        return Err(Failure::message(Exit::BadInput, "no token was given\n\nhint: type it, or pipe it in"));
    }
    if !secret.chars().all(|c| c.is_ascii_graphic()) {
        return Err(Failure::message(Exit::BadInput, "this is no token: it has characters that none has"));
    }
    Ok(secret.to_owned())
}
