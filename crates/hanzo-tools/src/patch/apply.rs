//! Applying hunks to a text.

use hanzo_protocol::primitives::Position;

use super::edits::MAX_CANDIDATES;
use super::{Hunk, Line, PatchError, Tag};

/// A line of a file with its break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileLine<'a> {
    /// Up to the line feed; a carriage return is part of it.
    text: &'a str,
    ended: bool,
}

/// How the patch writes line ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Returns {
    /// Some of its lines have a carriage return: then all are meant as they are.
    Exact,
    /// None has: the file's own stay.
    FromFile,
}

/// How the patch treats the end of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// It says somewhere that there is no line break at the end: then it is exact about it.
    Exact,
    /// It does not: the file keeps what it has.
    FromFile,
}

struct Applier<'a> {
    lines: Vec<FileLine<'a>>,
    returns: Returns,
    ending: Ending,
}

/// The text with the hunks applied.
pub(crate) fn apply(text: &str, hunks: &[Hunk]) -> Result<String, PatchError> {
    let mut lines: Vec<FileLine<'_>> = text.split('\n').map(|text| FileLine { text, ended: true }).collect();
    if let Some(last) = lines.last_mut() {
        last.ended = false;
    }
    if lines.last().is_some_and(|last| last.text.is_empty()) {
        lines.pop();
    }
    let all = || hunks.iter().flat_map(|hunk| &hunk.lines);
    let returns =
        if all().any(|line| line.text.ends_with('\r')) { Returns::Exact } else { Returns::FromFile };
    let ending = if all().any(|line| line.no_newline) { Ending::Exact } else { Ending::FromFile };
    let applier = Applier { lines, returns, ending };
    let mut placed: Vec<(usize, &Hunk)> = Vec::new();
    let mut from = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let at = applier.locate(hunk, index, hunks.len(), from, &placed)?;
        from = at + old_lines(hunk).count();
        placed.push((at, hunk));
    }
    Ok(applier.write(&placed))
}

fn old_lines(hunk: &Hunk) -> impl Iterator<Item = &Line> + Clone {
    hunk.lines.iter().filter(|line| line.tag != Tag::Insert)
}

impl Applier<'_> {
    /// Where the hunk's old lines are, at or after `from`.
    fn locate(
        &self,
        hunk: &Hunk,
        index: usize,
        count: usize,
        from: usize,
        placed: &[(usize, &Hunk)],
    ) -> Result<usize, PatchError> {
        let which =
            if count == 1 { "the hunk".to_owned() } else { format!("hunk {index} of {count} (from 0)") };
        let old: Vec<&Line> = old_lines(hunk).collect();
        let from = self.go_past(hunk, &which, from)?;
        if old.is_empty() {
            return self.place_for_insertion(hunk, &which, from);
        }
        if hunk.at_end {
            let at = self.lines.len().checked_sub(old.len()).filter(|at| *at >= from && self.fits(&old, *at));
            return at.ok_or_else(|| PatchError::NotFound {
                what: format!("the lines of {which} are not at the end of the file"),
            });
        }
        if let Some(stated) = hunk.stated
            && stated >= from
            && self.is_anchored(hunk, stated, old.len())
            && self.fits(&old, stated)
        {
            return Ok(stated);
        }
        let is_free = |at: &usize| {
            placed
                .iter()
                .all(|(begin, earlier)| at + old.len() <= *begin || *at >= begin + old_lines(earlier).count())
        };
        // A unified diff that is off by some lines may mean a place on either side; the other grammar only goes forward.
        let is_possible = |at: &usize| if hunk.stated.is_some() { is_free(at) } else { *at >= from };
        let places: Vec<usize> = self.places(&old).filter(is_possible).collect();
        match places.as_slice() {
            [] => Err(self.not_found(&old, &which)),
            [only] if *only >= from => Ok(*only),
            [_] => Err(PatchError::NotFound {
                what: format!("the lines of {which} are before those of an earlier one"),
            }),
            // `@@ fn main()` says behind which line: the first place after it is meant.
            [first, ..] if !hunk.after.is_empty() => Ok(*first),
            _ => Err(ambiguous(format!("the lines of {which} are there {} times", places.len()), &places)),
        }
    }

    /// A diff that begins at the first line, or that has no context after its changes, says it touches the file's start or
    /// end; a place elsewhere is not the one it was made for.
    fn is_anchored(&self, hunk: &Hunk, stated: usize, length: usize) -> bool {
        let trailing = hunk.lines.last().is_some_and(|line| line.tag == Tag::Context);
        trailing || stated + length == self.lines.len()
    }

    fn go_past(&self, hunk: &Hunk, which: &str, from: usize) -> Result<usize, PatchError> {
        let mut from = from;
        for heading in &hunk.after {
            let same = |at: &usize| {
                let text = self.lines[*at].text.trim_end_matches('\r');
                text == heading || text.trim() == heading.trim()
            };
            let places: Vec<usize> = (from..self.lines.len()).filter(same).collect();
            match places.as_slice() {
                [] => {
                    return Err(PatchError::NotFound {
                        what: format!("the line `{heading}` before {which} is not there"),
                    });
                }
                [only] => from = only + 1,
                _ => {
                    return Err(ambiguous(
                        format!("the line `{heading}` before {which} is there {} times", places.len()),
                        &places,
                    ));
                }
            }
        }
        Ok(from)
    }

    fn place_for_insertion(&self, hunk: &Hunk, which: &str, from: usize) -> Result<usize, PatchError> {
        if self.lines.is_empty() || hunk.at_end || (hunk.stated.is_none() && hunk.after.is_empty()) {
            return Ok(self.lines.len().max(from));
        }
        Err(PatchError::NotFound {
            what: format!("{which} has no line of the file in it, so it says no place"),
        })
    }

    fn places<'b>(&'b self, old: &'b [&'b Line]) -> impl Iterator<Item = usize> + 'b {
        let last = (self.lines.len() + 1).saturating_sub(old.len());
        (0..last).filter(|at| self.fits(old, *at))
    }

    fn fits(&self, old: &[&Line], at: usize) -> bool {
        let Some(there) = self.lines.get(at..at + old.len()) else { return false };
        old.iter().zip(there).all(|(wanted, line)| self.is_same(wanted, line))
    }

    fn is_same(&self, wanted: &Line, line: &FileLine<'_>) -> bool {
        let text = match self.returns {
            Returns::Exact => line.text,
            Returns::FromFile => line.text.strip_suffix('\r').filter(|_| line.ended).unwrap_or(line.text),
        };
        let ending = match self.ending {
            Ending::Exact => wanted.no_newline != line.ended,
            Ending::FromFile => true,
        };
        text == wanted.text && ending
    }

    fn not_found(&self, old: &[&Line], which: &str) -> PatchError {
        // The longest beginning that is there tells where the caller's picture of the file goes wrong.
        let mut best = (0, 0);
        for at in 0..self.lines.len() {
            let fits =
                old.iter().zip(&self.lines[at..]).take_while(|(wanted, line)| self.is_same(wanted, line));
            let length = fits.count();
            if length > best.0 {
                best = (length, at);
            }
        }
        let what = match best {
            (0, _) => format!("the lines of {which} are not there; the first is `{}`", old[0].text),
            (length, at) => match self.lines.get(at + length) {
                Some(line) => format!(
                    "the lines of {which} are not there; nearest is line {}, where line {} is `{}` and not `{}`",
                    at,
                    at + length,
                    line.text,
                    old[length].text
                ),
                None => {
                    format!("the lines of {which} are not there; the file ends before `{}`", old[length].text)
                }
            },
        };
        PatchError::NotFound { what }
    }

    fn write(&self, placed: &[(usize, &Hunk)]) -> String {
        let crlf = self.returns == Returns::FromFile && self.has_return_near(self.lines.len());
        let mut out =
            Output { text: String::new(), open_end: false, line_break: if crlf { "\r\n" } else { "\n" } };
        let mut next = 0;
        let was_open = self.lines.last().is_some_and(|last| !last.ended);
        for (at, hunk) in placed {
            self.lines[next..*at].iter().for_each(|line| out.push(line.text, line.ended));
            next = *at;
            for line in &hunk.lines {
                match line.tag {
                    Tag::Context => {
                        let kept = self.lines[next];
                        next += 1;
                        out.push(kept.text, kept.ended);
                    }
                    Tag::Remove => next += 1,
                    Tag::Insert => {
                        let returned = self.returns == Returns::FromFile && self.has_return_near(next);
                        let text = if returned { format!("{}\r", line.text) } else { line.text.clone() };
                        // Without a word on it, text put behind an open last line takes over its open end.
                        let takes_over = self.ending == Ending::FromFile
                            && was_open
                            && next >= self.lines.len()
                            && is_last_insertion(hunk, line);
                        let text = if takes_over { line.text.clone() } else { text };
                        out.push(&text, !(line.no_newline || takes_over));
                    }
                }
            }
        }
        self.lines[next..].iter().for_each(|line| out.push(line.text, line.ended));
        out.text
    }

    /// Whether the lines around `at` end with a carriage return.
    fn has_return_near(&self, at: usize) -> bool {
        let ended = |line: &&FileLine<'_>| line.ended;
        let before = self.lines[..at.min(self.lines.len())].iter().rev().find(ended);
        let line = before.or_else(|| self.lines.iter().find(ended));
        line.is_some_and(|line| line.text.ends_with('\r'))
    }
}

fn is_last_insertion(hunk: &Hunk, line: &Line) -> bool {
    hunk.lines.iter().rfind(|line| line.tag != Tag::Remove).is_some_and(|last| std::ptr::eq(last, line))
}

struct Output {
    text: String,
    /// The last line has no break yet; one is added when another line follows.
    open_end: bool,
    line_break: &'static str,
}

impl Output {
    fn push(&mut self, text: &str, ended: bool) {
        if self.open_end {
            self.text.push_str(self.line_break);
        }
        self.text.push_str(text);
        if ended {
            self.text.push('\n');
        }
        self.open_end = !ended;
    }
}

fn ambiguous(what: String, places: &[usize]) -> PatchError {
    let candidates = places
        .iter()
        .take(MAX_CANDIDATES)
        .map(|line| Position { line: u32::try_from(*line).unwrap_or(u32::MAX), col: 0 })
        .collect();
    PatchError::Ambiguous { what, candidates }
}
