//! The one place that writes to the terminal: data to stdout, everything else to stderr. What came from files, models
//! or tools is stripped of control characters first, so that it can move no cursor and fake no prompt.

use std::borrow::Cow;
use std::io::{self, BufWriter, Stderr, Stdout, Write};

use crate::exit::Failure;

/// Writes to the standard streams.
pub struct Printer {
    data: BufWriter<Stdout>,
    messages: Stderr,
}

impl Printer {
    /// The process's own streams.
    pub fn standard() -> Self {
        Self { data: BufWriter::new(io::stdout()), messages: io::stderr() }
    }

    /// A line of data.
    pub fn line(&mut self, text: &str) -> Result<(), Failure> {
        Ok(writeln!(self.data, "{}", printable(text))?)
    }

    /// Data as it is: for formats that have their own rules, such as roff and shell scripts of ours.
    pub fn raw(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.data.write_all(bytes)?)
    }

    /// A value as readable JSON.
    pub fn json(&mut self, value: &impl serde::Serialize) -> Result<(), Failure> {
        serde_json::to_writer_pretty(&mut self.data, value).map_err(io::Error::from)?;
        Ok(writeln!(self.data)?)
    }

    /// Something to say that is not the data and needs no attention.
    pub fn note(&mut self, text: &str) {
        // What was printed before should stand before it.
        let _ = self.data.flush();
        let _ = writeln!(self.messages, "{}", printable(text));
    }

    /// Something to know that is not the data.
    pub fn warning(&mut self, text: &str) {
        self.message("warning", text);
    }

    /// Why the program ends.
    pub fn failure(&mut self, failure: &Failure) {
        // What was already said should come before why it ends.
        let _ = self.data.flush();
        self.message("error", &failure.to_string());
    }

    /// Writes out what is buffered.
    pub fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.data.flush()?)
    }

    fn message(&mut self, label: &str, text: &str) {
        // There is nobody left to tell when stderr is closed.
        let _ = writeln!(self.messages, "{label}: {}", printable(text));
    }
}

/// `text` without what a terminal would obey instead of show: control characters but newline and tab, and the
/// invisible characters that reorder or hide text.
pub fn printable(text: &str) -> Cow<'_, str> {
    let harmless = |c: char| match c {
        '\n' | '\t' => true,
        // Zero-width space, bidirectional controls, separators, tags. The joiners stay: emoji are made of them.
        '\u{200b}'
        | '\u{200e}'
        | '\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}' => false,
        c => !c.is_control(),
    };
    if text.chars().all(harmless) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(text.chars().map(|c| if harmless(c) { c } else { '\u{fffd}' }).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_is_never_made_to_obey_text() {
        assert_eq!(printable("a\tb\nc ü 漢 🦀"), "a\tb\nc ü 漢 🦀");
        assert_eq!(printable("\u{1b}[2Jx\u{7}\r\u{9b}1m"), "\u{fffd}[2Jx\u{fffd}\u{fffd}\u{fffd}1m");
        assert_eq!(printable("\u{202e}exe.txt\u{e0041}\u{2066}"), "\u{fffd}exe.txt\u{fffd}\u{fffd}");
    }
}
