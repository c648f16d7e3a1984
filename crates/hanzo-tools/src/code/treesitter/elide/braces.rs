//! Gaps of the languages that use braces, in one pass: every bracket is a frame on a stack, and when a block closes it is known
//! whether anything in it defines a symbol.

use std::ops::Range;

use super::lexer::{Directive, Lexer, Token};
use super::rules::{Rules, Shape};
use super::{Gap, LEAST, in_order};

/// Whether a block is part of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Context {
    Function,
    /// Variables in it are symbols.
    Outside,
}

struct Frame {
    /// The bracket that opened it; 0 for the file.
    mark: u8,
    /// Behind that bracket.
    open: usize,
    context: Context,
    /// Something in it defines a symbol.
    defines: bool,
    /// Where the header of the next block begins.
    header: usize,
    /// The header has a word that defines something.
    header_defines: bool,
    /// A function that follows would get a name.
    names: bool,
    /// How many gaps there were before it.
    gaps: usize,
    /// Which branch of the preprocessor it began in.
    branch: usize,
}

/// A conditional of the preprocessor. The first branch that can be taken is what counts: others may open the same bracket again.
struct Conditional {
    was_taken: bool,
    is_ignored: bool,
    /// Counts the branches of the file.
    branch: usize,
}

struct Scan<'a> {
    rules: Rules,
    bytes: &'a [u8],
    lexer: Lexer<'a>,
    frames: Vec<Frame>,
    conditionals: Vec<Conditional>,
    /// How many of those are in a branch that does not count.
    ignored: usize,
    branches: usize,
}

/// The gaps of a file, in order; `None` when its brackets do not match, so that nothing can be said.
pub(super) fn gaps(rules: Rules, bytes: &[u8]) -> Option<Vec<Gap>> {
    let lexer = Lexer::new(rules.language, bytes);
    let file = Frame {
        mark: 0,
        open: 0,
        context: Context::Outside,
        defines: false,
        header: 0,
        header_defines: false,
        names: false,
        gaps: 0,
        branch: 0,
    };
    let mut scan =
        Scan { rules, bytes, lexer, frames: vec![file], conditionals: Vec::new(), ignored: 0, branches: 0 };
    while let Some(token) = scan.lexer.next() {
        scan.take(token)?;
    }
    let is_whole = !scan.lexer.is_lost && scan.frames.len() == 1;
    is_whole.then(|| in_order(scan.lexer.gaps))
}

impl Scan<'_> {
    fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the frame of the file is never taken off")
    }

    /// The next block has a new header.
    fn begin_header(&mut self) {
        let at = self.lexer.at;
        let top = self.top();
        top.header = at;
        top.header_defines = false;
        top.names = false;
    }

    fn take(&mut self, token: Token) -> Option<()> {
        if let Token::Directive(directive) = token {
            self.direct(directive);
            return Some(());
        }
        match token {
            Token::Word(word) => self.word(word),
            _ if self.ignored > 0 => {}
            Token::Open(mark) => self.open(mark),
            Token::Close(mark) => self.close(mark)?,
            Token::End => self.begin_header(),
            Token::Comma => self.top().names = false,
            Token::Names => self.top().names = true,
            Token::Arrow => {
                let top = self.top();
                top.defines |= top.names;
            }
            // What a comment says is no part of a header.
            Token::Comment => {
                let at = self.lexer.at;
                self.top().header = at;
            }
            Token::Directive(_) => {}
        }
        Some(())
    }

    fn word(&mut self, word: Range<usize>) {
        let (rules, bytes) = (self.rules, self.bytes);
        let before = word.start.checked_sub(1).map_or(0, |at| bytes[at]);
        let behind = &bytes[word.end..];
        if self.top().context == Context::Outside
            && rules.is_decoration(&bytes[..word.start], &bytes[word.clone()], behind)
        {
            self.lexer.gaps.push(Gap { range: word, instead: b"" });
            return;
        }
        let word = &bytes[word];
        let top = self.top();
        if rules.defines(word, before, behind) {
            top.defines = true;
            top.header_defines = true;
        } else if rules.is_script() {
            match word {
                b"function" => top.defines |= top.names,
                // A statement begins, whether or not the one before it was ended by a mark.
                b"return" | b"const" | b"let" | b"var" | b"if" | b"for" | b"throw" => top.names = false,
                _ => {}
            }
        }
    }

    fn branch(&self) -> usize {
        self.conditionals.last().map_or(0, |conditional| conditional.branch)
    }

    fn open(&mut self, mark: u8) {
        let (rules, bytes, open) = (self.rules, self.bytes, self.lexer.at);
        let (gaps, branch) = (self.lexer.gaps.len(), self.branch());
        let top = self.top();
        let mut context = top.context;
        if mark == b'{' {
            let shape = rules.shape(&bytes[top.header..open - 1]);
            match shape {
                Shape::Function => context = Context::Function,
                Shape::Method => {
                    context = Context::Function;
                    top.defines = true;
                }
                Shape::Type => {
                    context = Context::Outside;
                    top.defines = true;
                }
                Shape::Plain | Shape::Inline if top.header_defines => context = Context::Outside,
                Shape::Plain | Shape::Inline => {}
            }
        }
        self.frames.push(Frame {
            mark,
            open,
            context,
            defines: false,
            header: open,
            header_defines: false,
            names: false,
            gaps,
            branch,
        });
    }

    fn close(&mut self, mark: u8) -> Option<()> {
        let expected = match mark {
            b'}' => b'{',
            b')' => b'(',
            _ => b'[',
        };
        let frame = self.frames.pop_if(|frame| frame.mark == expected)?;
        let at = self.lexer.at;
        let body = frame.open..at - 1;
        let is_left_out = expected == b'{'
            && frame.context == Context::Function
            && !frame.defines
            // Half of a conditional cannot be left out.
            && frame.branch == self.branch()
            && body.len() >= LEAST;
        if is_left_out {
            self.lexer.gaps.truncate(frame.gaps);
            self.lexer.gaps.push(Gap { range: body, instead: b"" });
        }
        let (rules, bytes) = (self.rules, self.bytes);
        let top = self.top();
        top.defines |= frame.defines;
        match expected {
            b'{' if top.mark == b'(' || top.mark == b'[' => {}
            b'{' => {
                let goes_on = rules.shape(&bytes[top.header..frame.open - 1]) == Shape::Inline;
                if !goes_on {
                    self.begin_header();
                }
            }
            // What an attribute says does not belong to the header.
            b'[' if rules.is_attribute(&bytes[top.header..at]) => self.begin_header(),
            _ => {}
        }
        Some(())
    }

    fn direct(&mut self, directive: Directive) {
        self.branches += 1;
        let branch = self.branches;
        match directive {
            Directive::If | Directive::IfNever => {
                let is_ignored = directive == Directive::IfNever;
                self.ignored += usize::from(is_ignored);
                self.conditionals.push(Conditional { was_taken: !is_ignored, is_ignored, branch });
            }
            Directive::Else => {
                if let Some(conditional) = self.conditionals.last_mut() {
                    self.ignored -= usize::from(conditional.is_ignored);
                    conditional.is_ignored = conditional.was_taken;
                    self.ignored += usize::from(conditional.is_ignored);
                    conditional.was_taken = true;
                    conditional.branch = branch;
                }
            }
            Directive::EndIf => {
                let ended = self.conditionals.pop();
                self.ignored -= usize::from(ended.is_some_and(|conditional| conditional.is_ignored));
            }
            Directive::Define => self.top().defines = true,
            Directive::Other => {}
        }
        self.begin_header();
    }
}
