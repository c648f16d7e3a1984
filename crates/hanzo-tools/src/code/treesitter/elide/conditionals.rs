//! The preprocessor's conditionals. A grammar takes what is between `#if` and `#else` for whole declarations and loses its way
//! where it is not, so the lines themselves are left out: branches that hold whole declarations stand one behind the other
//! then, and of those that do not, only the first is left.

use super::braces::{Holds, Scan};
use super::lexer::Directive;
use super::{Gap, LEAST, c};

/// What becomes of a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Branch {
    /// It is parsed, whatever is in it: no other was before it.
    First,
    /// It is parsed if it holds whole declarations.
    Further,
    /// It is not parsed.
    LeftOut,
}

/// From an `#if` to its `#endif`.
#[derive(Debug)]
pub(super) struct Conditional {
    branch: Branch,
    /// Where the line begins that begins the branch.
    begin: usize,
    /// It is itself in a branch that is left out.
    is_within_left_out: bool,
    /// A branch is parsed already.
    has_first: bool,
    /// It began between declarations, and so did and ended each branch.
    are_whole: bool,
    /// How many brackets were open.
    depth: usize,
    /// What stood last before the branch.
    last: u8,
    /// The depth that the branch around it must not go below.
    outer_floor: usize,
}

impl Scan<'_> {
    /// A line for the preprocessor, from `start` to where the lexer is.
    pub(super) fn direct(&mut self, directive: Directive, start: usize) {
        match directive {
            Directive::If | Directive::IfNever => self.begin_conditional(directive, start),
            Directive::Else => self.next_branch(start),
            Directive::EndIf => {
                self.end_branch(start);
                if let Some(ended) = self.conditionals.pop() {
                    self.floor = ended.outer_floor;
                    self.ignored -= usize::from(ended.ignores());
                }
            }
            Directive::Define if self.ignored == 0 => {
                let end = self.lexer.at;
                let head = start + c::macro_head(&self.bytes[start..end]);
                let top = self.top();
                top.defines = true;
                top.macros.push(start..head);
                if end - head >= LEAST {
                    self.lexer.gaps.push(Gap { range: head..end, instead: b"" });
                }
            }
            Directive::Define | Directive::Other => {}
        }
        if directive != Directive::Define {
            self.lexer.gaps.push(Gap { range: start..self.lexer.at, instead: b"" });
        }
        if self.ignored == 0 && self.is_between_declarations(start) {
            self.begin_header();
        }
    }

    fn begin_conditional(&mut self, directive: Directive, start: usize) {
        let is_within_left_out = self.ignored > 0;
        let branch = if is_within_left_out || directive == Directive::IfNever {
            Branch::LeftOut
        } else {
            Branch::First
        };
        let conditional = Conditional {
            branch,
            begin: start,
            is_within_left_out,
            has_first: false,
            are_whole: self.is_between_declarations(start),
            depth: self.frames.len(),
            last: self.lexer.last,
            outer_floor: self.floor,
        };
        self.ignored += usize::from(conditional.ignores());
        self.conditionals.push(conditional);
    }

    /// The branch ends where the line at `start` begins.
    fn end_branch(&mut self, start: usize) {
        let is_whole = self.is_between_declarations(start);
        let depth = self.frames.len();
        let Some(conditional) = self.conditionals.last_mut() else { return };
        if conditional.is_within_left_out {
            return;
        }
        let is_whole = is_whole && depth == conditional.depth;
        match conditional.branch {
            Branch::First => {
                conditional.has_first = true;
                conditional.are_whole &= is_whole;
            }
            Branch::Further if is_whole => {}
            Branch::Further | Branch::LeftOut => {
                self.lexer.gaps.push(Gap { range: conditional.begin..start, instead: b"" });
                self.lexer.last = conditional.last;
                if conditional.has_first && conditional.are_whole {
                    self.frames.truncate(conditional.depth);
                }
            }
        }
    }

    fn next_branch(&mut self, start: usize) {
        self.end_branch(start);
        let last = self.lexer.last;
        let Some(conditional) = self.conditionals.last_mut() else { return };
        if conditional.is_within_left_out {
            return;
        }
        self.ignored -= usize::from(conditional.ignores());
        conditional.branch = match (conditional.has_first, conditional.are_whole) {
            (false, _) => Branch::First,
            (true, true) => Branch::Further,
            (true, false) => Branch::LeftOut,
        };
        conditional.begin = start;
        conditional.last = last;
        self.ignored += usize::from(conditional.ignores());
        self.floor = match conditional.branch {
            Branch::Further => conditional.depth,
            _ => conditional.outer_floor,
        };
    }

    /// The branch around closes a bracket that it did not open: it is left out after all.
    pub(super) fn leave_out_branch(&mut self) {
        let further = self.conditionals.iter_mut().rev().find(|found| found.branch == Branch::Further);
        if let Some(conditional) = further {
            conditional.branch = Branch::LeftOut;
            self.ignored += 1;
        }
    }

    /// Whether a declaration may begin at `at`, as far as what stands before tells.
    fn is_between_declarations(&mut self, at: usize) -> bool {
        let (bytes, last) = (self.bytes, self.lexer.last);
        let top = self.top();
        match last {
            0 | b';' | b'{' | b'}' | b',' | b':' | b')' => true,
            _ if top.holds == Holds::Names => true,
            // As long as a name is.
            _ => top.header + 128 > at && c::is_macro(bytes.get(top.header..at).unwrap_or_default()),
        }
    }
}

impl Conditional {
    /// Whether what is in the branch does not count because of this conditional.
    fn ignores(&self) -> bool {
        self.branch == Branch::LeftOut && !self.is_within_left_out
    }
}
