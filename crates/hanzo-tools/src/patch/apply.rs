//! Applying hunks to a text.
//!
//! Places are byte offsets of line starts. The text is never taken apart into lines: a file of many megabytes with one change
//! in it is searched for that change and copied around it.

use std::cell::Cell;

use hanzo_protocol::primitives::Position;

use memchr::memmem;

use super::edits::MAX_CANDIDATES;
use super::{Hunk, Line, PatchError, Splice, Tag};

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

/// A line of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileLine<'a> {
    /// Up to the line feed; a carriage return is part of it.
    text: &'a str,
    ended: bool,
    /// Where the next line begins.
    next: usize,
}

/// Whole lines, as bytes of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    begin: usize,
    end: usize,
}

struct Applier<'a> {
    text: &'a str,
    returns: Returns,
    ending: Ending,
    /// A line's number and where it begins, to count on from.
    counted: Cell<(usize, usize)>,
}

/// What the hunks make of the text.
pub(crate) fn apply(text: &str, hunks: &[Hunk]) -> Result<Splice, PatchError> {
    let all = || hunks.iter().flat_map(|hunk| &hunk.lines);
    let returns =
        if all().any(|line| line.text.ends_with('\r')) { Returns::Exact } else { Returns::FromFile };
    let ending = if all().any(|line| line.no_newline) { Ending::Exact } else { Ending::FromFile };
    let applier = Applier { text, returns, ending, counted: Cell::new((0, 0)) };
    let mut placed: Vec<(Stretch, &Hunk)> = Vec::new();
    let mut from = 0;
    for (index, hunk) in hunks.iter().enumerate() {
        let at = applier.locate(hunk, index, hunks.len(), from, &placed)?;
        from = at.end;
        placed.push((at, hunk));
    }
    Ok(applier.write(&placed))
}

fn old_lines(hunk: &Hunk) -> impl Iterator<Item = &Line> + Clone {
    hunk.lines.iter().filter(|line| line.tag != Tag::Insert)
}

impl<'a> Applier<'a> {
    /// The line that begins at `at`; none at the end.
    fn line(&self, at: usize) -> Option<FileLine<'a>> {
        let rest = &self.text[at..];
        if rest.is_empty() {
            return None;
        }
        Some(match memchr::memchr(b'\n', rest.as_bytes()) {
            Some(length) => FileLine { text: &rest[..length], ended: true, next: at + length + 1 },
            None => FileLine { text: rest, ended: false, next: self.text.len() },
        })
    }

    /// Where each line begins, from `at` on.
    fn line_starts(&self, at: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(at), |at| self.line(*at).map(|line| line.next))
            .take_while(|at| *at < self.text.len())
    }

    /// Where the line begins that is `count` lines before the one at `at`.
    fn back(&self, at: usize, count: usize) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let mut at = at;
        for _ in 0..count {
            let before = bytes[..at].strip_suffix(b"\n").unwrap_or(&bytes[..at]);
            if at == 0 {
                return None;
            }
            at = memchr::memrchr(b'\n', before).map_or(0, |feed| feed + 1);
        }
        Some(at)
    }

    /// Where line `number` begins.
    fn start_of(&self, number: usize) -> Option<usize> {
        let (line, at) = Some(self.counted.get()).filter(|(line, _)| *line <= number).unwrap_or((0, 0));
        let at = match number - line {
            0 => at,
            more => at + memchr::memchr_iter(b'\n', &self.text.as_bytes()[at..]).nth(more - 1)? + 1,
        };
        self.counted.set((number, at));
        Some(at)
    }

    /// The number of the line that begins at `at`.
    fn number_of(&self, at: usize) -> usize {
        let (line, from) = Some(self.counted.get()).filter(|(_, from)| *from <= at).unwrap_or((0, 0));
        let number = line + memchr::memchr_iter(b'\n', &self.text.as_bytes()[from..at]).count();
        self.counted.set((number, at));
        number
    }

    /// Where the lines from `from` on begin that have `part` in them.
    fn lines_with<'b>(&'b self, part: &'b str, from: usize) -> Box<dyn Iterator<Item = usize> + 'b> {
        if part.is_empty() {
            return Box::new(self.line_starts(from));
        }
        let bytes = self.text.as_bytes();
        let finder = memmem::Finder::new(part);
        let mut next = from;
        Box::new(std::iter::from_fn(move || {
            let hit = next + finder.find(bytes.get(next..)?)?;
            let start = memchr::memrchr(b'\n', &bytes[from..hit]).map_or(from, |feed| from + feed + 1);
            next = self.line(start)?.next;
            Some(start)
        }))
    }

    /// Where the hunk's old lines are, at or after `from`.
    fn locate(
        &self,
        hunk: &Hunk,
        index: usize,
        count: usize,
        from: usize,
        placed: &[(Stretch, &Hunk)],
    ) -> Result<Stretch, PatchError> {
        let which =
            if count == 1 { "the hunk".to_owned() } else { format!("hunk {index} of {count} (from 0)") };
        let old: Vec<&Line> = old_lines(hunk).collect();
        let from = self.go_past(hunk, &which, from)?;
        if old.is_empty() {
            let at = self.place_for_insertion(hunk, &which)?;
            return Ok(Stretch { begin: at, end: at });
        }
        if hunk.at_end {
            let begin = self.back(self.text.len(), old.len()).filter(|begin| *begin >= from);
            let found = begin.and_then(|begin| self.fits(&old, begin));
            return found.ok_or_else(|| PatchError::NotFound {
                what: format!("the lines of {which} are not at the end of the file"),
            });
        }
        if let Some(stated) = hunk.stated
            && let Some(begin) = self.start_of(stated).filter(|begin| *begin >= from)
            && let Some(found) = self.fits(&old, begin)
            && self.is_anchored(hunk, found)
        {
            return Ok(found);
        }
        let is_free = |place: &Stretch| {
            placed.iter().all(|(earlier, _)| place.end <= earlier.begin || place.begin >= earlier.end)
        };
        // A unified diff that is off by some lines may mean a place on either side; the other grammar only goes forward. A place that
        // an earlier hunk has counts as well: that it is taken does not make the other one the right one.
        let places = self.places(&old, if hunk.stated.is_some() { 0 } else { from });
        match places.as_slice() {
            [] => Err(self.not_found(&old, &which)),
            [only] if !is_free(only) => Err(PatchError::NotFound {
                what: format!(
                    "the lines of {which} are only at line {}, which an earlier hunk changes",
                    self.number_of(only.begin)
                ),
            }),
            [only] if only.begin >= from => Ok(*only),
            [_] => Err(PatchError::NotFound {
                what: format!("the lines of {which} are before those of an earlier one"),
            }),
            // `@@ fn main()` says behind which line: the first place after it is meant.
            [first, ..] if !hunk.after.is_empty() => Ok(*first),
            _ => Err(self.ambiguous(
                format!("the lines of {which} are there {} times", places.len()),
                places.iter().map(|place| place.begin),
            )),
        }
    }

    /// A diff that begins at the first line, or that has no context after its changes, says it touches the file's start or
    /// end; a place elsewhere is not the one it was made for.
    fn is_anchored(&self, hunk: &Hunk, found: Stretch) -> bool {
        let trailing = hunk.lines.last().is_some_and(|line| line.tag == Tag::Context);
        trailing || found.end == self.text.len()
    }

    fn go_past(&self, hunk: &Hunk, which: &str, from: usize) -> Result<usize, PatchError> {
        let mut from = from;
        for heading in &hunk.after {
            let same = |at: &usize| {
                let text = self.line(*at).map_or("", |line| line.text.trim_end_matches('\r'));
                text == heading || text.trim() == heading.trim()
            };
            let places: Vec<usize> = self.lines_with(heading.trim(), from).filter(same).collect();
            match places.as_slice() {
                [] => {
                    return Err(PatchError::NotFound {
                        what: format!("the line `{heading}` before {which} is not there"),
                    });
                }
                [only] => from = self.line(*only).map_or(self.text.len(), |line| line.next),
                _ => {
                    return Err(self.ambiguous(
                        format!("the line `{heading}` before {which} is there {} times", places.len()),
                        places.iter().copied(),
                    ));
                }
            }
        }
        Ok(from)
    }

    fn place_for_insertion(&self, hunk: &Hunk, which: &str) -> Result<usize, PatchError> {
        if self.text.is_empty() || hunk.at_end || (hunk.stated.is_none() && hunk.after.is_empty()) {
            return Ok(self.text.len());
        }
        Err(PatchError::NotFound {
            what: format!("{which} has no line of the file in it, so it says no place"),
        })
    }

    /// Every place of the lines, from `from` on.
    fn places(&self, old: &[&Line], from: usize) -> Vec<Stretch> {
        // The longest line is in the fewest places.
        let longest = old.iter().enumerate().max_by_key(|(_, line)| line.text.len());
        let Some((above, longest)) = longest else { return Vec::new() };
        self.lines_with(&longest.text, from)
            .filter_map(|at| self.back(at, above))
            .filter(|begin| *begin >= from)
            .filter_map(|begin| self.fits(old, begin))
            .collect()
    }

    fn fits(&self, old: &[&Line], begin: usize) -> Option<Stretch> {
        let mut end = begin;
        for wanted in old {
            let line = self.line(end).filter(|line| self.is_same(wanted, line))?;
            end = line.next;
        }
        Some(Stretch { begin, end })
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
        let mut best = (0, 0, 0);
        for begin in self.line_starts(0) {
            let (mut length, mut next) = (0, begin);
            while let (Some(wanted), Some(line)) = (old.get(length), self.line(next)) {
                if !self.is_same(wanted, &line) {
                    break;
                }
                (length, next) = (length + 1, line.next);
            }
            if length > best.0 {
                best = (length, begin, next);
            }
        }
        let what = match best {
            (0, ..) => format!("the lines of {which} are not there; the first is `{}`", old[0].text),
            (length, begin, next) => match self.line(next) {
                Some(line) => {
                    let at = self.number_of(begin);
                    format!(
                        "the lines of {which} are not there; nearest is line {at}, where line {} is `{}` and not `{}`",
                        at + length,
                        line.text,
                        old[length].text
                    )
                }
                None => {
                    format!("the lines of {which} are not there; the file ends before `{}`", old[length].text)
                }
            },
        };
        PatchError::NotFound { what }
    }

    fn write(&self, placed: &[(Stretch, &Hunk)]) -> Splice {
        let all = self.text.len();
        let crlf = self.returns == Returns::FromFile && self.has_return_near(all);
        let start = placed.first().map_or(all, |(at, _)| at.begin);
        let was_open = !self.text.is_empty() && !self.text.ends_with('\n');
        let mut out = Output {
            text: String::new(),
            // Only at the very end is there no line's beginning.
            open_end: start == all && was_open,
            line_break: if crlf { "\r\n" } else { "\n" },
        };
        let mut next = start;
        for (at, hunk) in placed {
            out.push(&self.text[next..at.begin]);
            next = at.begin;
            for line in &hunk.lines {
                match line.tag {
                    Tag::Context | Tag::Remove => {
                        let end = self.line(next).map_or(all, |line| line.next);
                        if line.tag == Tag::Context {
                            out.push(&self.text[next..end]);
                        }
                        next = end;
                    }
                    Tag::Insert => {
                        let returned = self.returns == Returns::FromFile && self.has_return_near(next);
                        // Without a word on it, text put behind an open last line takes over its open end.
                        let takes_over = self.ending == Ending::FromFile
                            && was_open
                            && next == all
                            && is_last_insertion(hunk, line);
                        let line_break = match (line.no_newline || takes_over, returned) {
                            (true, _) => "",
                            (false, true) => "\r\n",
                            (false, false) => "\n",
                        };
                        out.push_line(&line.text, line_break);
                    }
                }
            }
        }
        if next < all {
            out.close();
        }
        Splice { start, end: all - next, middle: out.text }
    }

    /// Whether the lines around `at` end with a carriage return.
    fn has_return_near(&self, at: usize) -> bool {
        let bytes = self.text.as_bytes();
        let before = memchr::memrchr(b'\n', &bytes[..at]);
        let feed = before.or_else(|| memchr::memchr(b'\n', bytes));
        feed.is_some_and(|feed| bytes[..feed].ends_with(b"\r"))
    }

    fn ambiguous(&self, what: String, places: impl Iterator<Item = usize>) -> PatchError {
        let number = |at: usize| u32::try_from(self.number_of(at)).unwrap_or(u32::MAX);
        let candidates =
            places.take(MAX_CANDIDATES).map(|at| Position { line: number(at), col: 0 }).collect();
        PatchError::Ambiguous { what, candidates }
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
    /// Lines of the file, as they are.
    fn push(&mut self, lines: &str) {
        if !lines.is_empty() {
            self.close();
            self.text.push_str(lines);
            self.open_end = !lines.ends_with('\n');
        }
    }

    fn push_line(&mut self, text: &str, line_break: &str) {
        self.close();
        self.text.push_str(text);
        self.text.push_str(line_break);
        self.open_end = !line_break.ends_with('\n');
    }

    fn close(&mut self) {
        if self.open_end {
            self.text.push_str(self.line_break);
        }
    }
}
