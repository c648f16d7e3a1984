//! Gaps of the languages that use braces, in one pass: every bracket is a frame on a stack, and when a block closes it is known
//! whether anything in it defines a symbol.

use std::ops::Range;

use super::super::super::language::Language;
use super::conditionals::Conditional;
use super::lexer::{Lexer, Token};
use super::rules::{Rules, Shape, last_word};
use super::{Gap, LEAST, c, in_order, is_blank, rules};

/// Whether a block is part of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    Function,
    /// Variables in it are symbols.
    Outside,
}

/// What stands in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// The names of an enumeration.
    Names,
    Anything,
}

pub(super) struct Frame {
    /// The bracket that opened it; 0 for the file.
    mark: u8,
    /// Behind that bracket.
    open: usize,
    context: Context,
    /// Something in it defines a symbol.
    pub(super) defines: bool,
    /// Where the header of the next block begins.
    pub(super) header: usize,
    /// The header has a word that defines something.
    header_defines: bool,
    /// A function that follows would get a name.
    names: bool,
    /// How many gaps there were before it.
    gaps: usize,
    pub(super) holds: Holds,
    /// Where the names of macros are that are defined right in it.
    pub(super) macros: Vec<Range<usize>>,
}

pub(super) struct Scan<'a> {
    rules: Rules,
    pub(super) bytes: &'a [u8],
    pub(super) lexer: Lexer<'a>,
    pub(super) frames: Vec<Frame>,
    pub(super) conditionals: Vec<Conditional>,
    /// How many of those are in a branch that does not count.
    pub(super) ignored: usize,
    /// No bracket is closed with fewer open than this.
    pub(super) floor: usize,
    /// Up to here, `<` begins no arguments.
    without_arguments: usize,
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
        holds: Holds::Anything,
        macros: Vec::new(),
    };
    let mut scan = Scan {
        rules,
        bytes,
        lexer,
        frames: vec![file],
        conditionals: Vec::new(),
        ignored: 0,
        floor: 0,
        without_arguments: 0,
    };
    while let Some(token) = scan.lexer.next() {
        scan.take(token)?;
    }
    let is_whole = !scan.lexer.is_lost && scan.frames.len() == 1;
    is_whole.then(|| in_order(scan.lexer.gaps))
}

impl Scan<'_> {
    pub(super) fn top(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the frame of the file is never taken off")
    }

    /// The next block has a new header.
    pub(super) fn begin_header(&mut self) {
        let at = self.lexer.at;
        let top = self.top();
        top.header = at;
        top.header_defines = false;
        top.names = false;
    }

    fn take(&mut self, token: Token) -> Option<()> {
        match token {
            Token::Directive(directive, start) => self.direct(directive, start),
            _ if self.ignored > 0 => {}
            Token::Word(word) => self.word(word),
            Token::Angle => self.arguments(),
            Token::Open(mark) => self.open(mark),
            Token::Close(mark) => self.close(mark)?,
            Token::End => {
                self.end_declaration();
                self.begin_header();
            }
            Token::Comma if self.top().holds == Holds::Names => {
                self.end_declaration();
                self.begin_header();
            }
            Token::Comma => self.top().names = false,
            Token::Names => self.top().names = true,
            Token::Arrow => {
                let top = self.top();
                top.defines |= top.names;
            }
            Token::Comment(start) => {
                let (rules, bytes, at) = (self.rules, self.bytes, self.lexer.at);
                let top = self.top();
                // What a comment says is no part of a header, if it does not stand in one.
                if !rules.is_c() || bytes.get(top.header..start).is_none_or(is_blank) {
                    top.header = at;
                }
            }
        }
        Some(())
    }

    fn word(&mut self, word: Range<usize>) {
        let (rules, bytes) = (self.rules, self.bytes);
        let before = word.start.checked_sub(1).map_or(0, |at| bytes[at]);
        let behind = &bytes[word.end..];
        let header = self.top().header.min(word.start);
        if self.top().context == Context::Outside
            && self.top().holds == Holds::Anything
            && rules.is_decoration(&bytes[header..word.start], &bytes[word.clone()], behind)
        {
            self.lexer.gaps.push(Gap { range: word, instead: b"" });
            return;
        }
        if rules.is_cpp()
            && let Some(length) = c::access(&bytes[word.clone()], behind)
        {
            self.lexer.at = word.end + length;
            self.begin_header();
            return;
        }
        if rules.is_cpp() && &bytes[word.clone()] == b"template" && self.top().context == Context::Outside {
            self.template(word);
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

    /// What a template says about its parameters is left out, and so is the word where it is part of a name.
    fn template(&mut self, word: Range<usize>) {
        let before = word.start.checked_sub(1).map_or(0, |at| self.bytes[at]);
        let end = match before {
            b':' | b'.' | b'>' => word.end,
            _ => match c::template(&self.bytes[word.end..]) {
                Some(length) => word.end + length,
                None => return,
            },
        };
        self.lexer.gaps.push(Gap { range: word.start..end, instead: b"" });
        self.lexer.at = end;
    }

    /// The arguments of a template are left out, if they are some.
    fn arguments(&mut self) {
        let bytes = self.bytes;
        let open = self.lexer.at - 1;
        let header = &bytes[self.top().header.max(open.saturating_sub(64)).min(open)..open];
        if open < self.without_arguments
            || self.top().context == Context::Function
            || last_word(header) == b"template"
            || memchr::memmem::find(header, b"operator").is_some()
        {
            return;
        }
        match c::arguments(&bytes[open..]) {
            Ok(length) => {
                self.lexer.gaps.push(Gap { range: open..open + length, instead: b"" });
                self.lexer.at = open + length;
            }
            Err(seen) => self.without_arguments = open + seen,
        }
    }

    fn open(&mut self, mark: u8) {
        let (rules, bytes, open) = (self.rules, self.bytes, self.lexer.at);
        let top = self.top();
        let mut context = top.context;
        let mut inheritance = None;
        let mut holds = Holds::Anything;
        if mark == b'{' {
            let header = &bytes[top.header..open - 1];
            let shape = rules.shape(header);
            let is_declaration = shape != Shape::Inline && matches!(top.mark, 0 | b'{');
            if rules.is_c() && is_declaration && context == Context::Outside {
                let is_function = shape == Shape::Function;
                if top.header_defines && rules.is_enumeration(header) {
                    holds = Holds::Names;
                }
                let begin = top.header;
                inheritance =
                    c::inheritance(header, is_function).map(|range| begin + range.start..begin + range.end);
            }
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
        if let Some(range) = inheritance {
            self.lexer.gaps.push(Gap { range, instead: b" " });
        }
        let gaps = self.lexer.gaps.len();
        // `type ( A struct { … } )`
        if mark == b'(' && rules.language == Language::Go && self.top().header_defines {
            context = Context::Outside;
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
            holds,
            macros: Vec::new(),
        });
    }

    fn close(&mut self, mark: u8) -> Option<()> {
        let expected = match mark {
            b'}' => b'{',
            b')' => b'(',
            _ => b'[',
        };
        if self.frames.len() <= self.floor {
            self.leave_out_branch();
            return Some(());
        }
        if mark == b'}' && self.top().holds == Holds::Names {
            self.end_declaration();
        }
        let frame = self.frames.pop_if(|frame| frame.mark == expected)?;
        let at = self.lexer.at;
        let body = frame.open..at - 1;
        let is_left_out =
            expected == b'{' && frame.context == Context::Function && !frame.defines && body.len() >= LEAST;
        if is_left_out || self.are_parameters(&frame, body.clone()) {
            self.lexer.gaps.truncate(frame.gaps);
            self.lexer.gaps.push(Gap { range: body, instead: b"" });
        }
        if self.is_macro_call(&frame, at) {
            return Some(());
        }
        self.keep_macros_of_a_list(&frame, at);
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

    /// A grammar knows no definition of a macro among the values of a list, `= { 1,\n#define A …\n 2 }`. So the list is closed
    /// before the first, and nothing else of it is left.
    fn keep_macros_of_a_list(&mut self, frame: &Frame, at: usize) {
        let bytes = self.bytes;
        let header = &bytes[self.top().header.min(frame.open - 1)..frame.open - 1];
        if frame.mark != b'{' || frame.macros.is_empty() || !header.trim_ascii_end().ends_with(b"=") {
            return;
        }
        self.lexer.gaps.truncate(frame.gaps);
        let mut from = frame.open;
        for name in &frame.macros {
            let instead: &[u8] = if from == frame.open { b"};\n" } else { b"\n" };
            self.lexer.gaps.push(Gap { range: from..name.start, instead });
            from = name.end;
        }
        self.lexer.gaps.push(Gap { range: from..at, instead: b"\n" });
    }

    /// Whether brackets that are closed now have nothing in them but parameters, or values that define nothing.
    fn are_parameters(&mut self, frame: &Frame, body: Range<usize>) -> bool {
        let (rules, bytes, at) = (self.rules, self.bytes, self.lexer.at);
        let top = self.top();
        if frame.mark != b'(' || frame.defines || body.len() < LEAST {
            return false;
        }
        let before = &bytes[top.header.min(frame.open - 1)..frame.open - 1];
        if rules.is_script() {
            return rules::are_values(before, &bytes[body], &bytes[at..]);
        }
        rules.is_c()
            && frame.context == Context::Outside
            && matches!(top.mark, 0 | b'{')
            && c::are_parameters(before, &bytes[body])
    }

    /// Leaves out a macro that stands where a declaration or a part of one would, with the brackets that are closed now.
    fn is_macro_call(&mut self, frame: &Frame, at: usize) -> bool {
        let (rules, bytes) = (self.rules, self.bytes);
        let top = self.top();
        let is_possible = frame.mark == b'('
            && rules.is_c()
            && frame.context == Context::Outside
            && !frame.defines
            && matches!(top.mark, 0 | b'{')
            && top.holds == Holds::Anything;
        if !is_possible {
            return false;
        }
        let (inside, behind) = (&bytes[frame.open..at - 1], &bytes[at..]);
        let Some(start) = c::macro_call(&bytes[top.header..frame.open - 1], inside, behind) else {
            return false;
        };
        let header = top.header;
        self.lexer.gaps.truncate(frame.gaps);
        self.lexer.gaps.push(Gap { range: header + start..at, instead: b"" });
        if is_blank(&bytes[header..header + start]) {
            self.begin_header();
        }
        true
    }

    /// A declaration, or a name of an enumeration, ends before the last byte: what it is set to is left out.
    fn end_declaration(&mut self) {
        let (rules, bytes) = (self.rules, self.bytes);
        let end = self.lexer.at - 1;
        let top = self.top();
        if !rules.is_c() || top.context == Context::Function || !matches!(top.mark, 0 | b'{') {
            return;
        }
        let (begin, is_list) = (top.header, top.holds == Holds::Names);
        let Some(text) = bytes.get(begin..end) else { return };
        if let Some((range, instead)) = c::value(text, is_list) {
            self.lexer.gaps.push(Gap { range: begin + range.start..begin + range.end, instead });
        }
    }
}
