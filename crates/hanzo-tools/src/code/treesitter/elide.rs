//! Which parts of a file need not be parsed to know what it defines: the bodies of functions, mostly, which are most of a file.
//!
//! A body is passed over when nothing in it can define a symbol. To know that, it is gone through by a scanner that tells
//! strings and comments from code, at a hundred times the speed of a parser. Whatever looks unusual is left to the parser.

use std::ops::Range;

use super::super::language::Language;

/// A shorter body is parsed as quickly as it is passed over.
const LEAST: usize = 24;
/// As that, for a comment.
const LEAST_COMMENT: usize = 48;

/// The parts to parse, in order; `None` when that is all.
pub(super) fn kept(language: Language, bytes: &[u8]) -> Option<Vec<Range<usize>>> {
    let rules = Rules::of(language)?;
    let mut scan = Scan { rules, bytes, at: 0, header: 0, gaps: Vec::new(), looks_ahead: false };
    let mut parentheses = 0_i32;
    while let Some(token) = scan.next() {
        match token {
            Token::Mark(b';') if parentheses <= 0 => scan.header = scan.at,
            Token::Mark(b'(' | b'[') => parentheses += 1,
            Token::Mark(byte @ (b')' | b']')) => {
                parentheses -= 1;
                // What an attribute says does not belong to the header.
                if byte == b']'
                    && parentheses == 0
                    && bytes[scan.header..].trim_ascii_start().starts_with(b"#")
                {
                    scan.header = scan.at;
                }
            }
            Token::Mark(b'}') => {
                scan.header = scan.at;
                parentheses = 0;
            }
            Token::Mark(b'{') => {
                let open = scan.at;
                let before = rules.header(&bytes[scan.header..open - 1]);
                if parentheses > 0 || rules.is_type_literal(before) {
                    // A type or a value within the header: the header goes on behind it.
                    scan.block();
                    continue;
                }
                if rules.is_body(before) {
                    match scan.block() {
                        Block::Plain => {
                            let close = scan.at - 1;
                            if close - open >= LEAST {
                                scan.gap(open..close);
                            }
                            scan.header = scan.at;
                            parentheses = 0;
                            continue;
                        }
                        Block::Defines => {}
                        // The end of the file came first: brackets do not match, and nothing can be said.
                        Block::Open => return None,
                    }
                    scan.at = open;
                }
                scan.header = open;
                parentheses = 0;
            }
            Token::Directive => scan.header = scan.at,
            Token::Mark(_) | Token::Word(_) => {}
        }
    }
    if scan.gaps.is_empty() {
        return None;
    }
    let mut from = 0;
    let mut parts = Vec::with_capacity(scan.gaps.len() + 1);
    for gap in scan.gaps {
        parts.push(from..gap.start);
        from = gap.end;
    }
    parts.push(from..bytes.len());
    Some(parts)
}

/// What a block turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Block {
    /// Nothing in it can define a symbol.
    Plain,
    /// Something may.
    Defines,
    /// It does not end.
    Open,
}

enum Token {
    Mark(u8),
    Word(Range<usize>),
    /// A line for the preprocessor.
    Directive,
}

#[derive(Clone, Copy)]
struct Rules {
    language: Language,
    /// `'` begins a character that is not a lifetime.
    has_lifetimes: bool,
    nested_comments: bool,
    preprocessor: bool,
}

impl Rules {
    fn of(language: Language) -> Option<Self> {
        let rust = language == Language::Rust;
        let c = matches!(language, Language::C | Language::Cpp);
        (rust || c || matches!(language, Language::Go | Language::Java)).then_some(Self {
            language,
            has_lifetimes: rust,
            nested_comments: rust,
            preprocessor: c,
        })
    }

    /// Go ends a statement with its line: a header begins with the last line that begins a function.
    fn header(self, text: &[u8]) -> &[u8] {
        match memchr::memmem::rfind(text, b"\nfunc") {
            Some(at) if self.language == Language::Go => &text[at + 1..],
            _ => text,
        }
    }

    /// Whether what stands before `{` belongs to a type that is written out in a header.
    fn is_type_literal(self, header: &[u8]) -> bool {
        let end = header.trim_ascii_end();
        self.language == Language::Go
            && header.trim_ascii_start().starts_with(b"func")
            && (end.ends_with(b"interface") || end.ends_with(b"struct"))
    }

    /// Whether `header {` begins the body of a function.
    fn is_body(self, header: &[u8]) -> bool {
        let header = header.trim_ascii();
        match self.language {
            Language::Rust => has_word_before_name(header, b"fn"),
            Language::Go => header.starts_with(b"func ") || header.starts_with(b"func("),
            Language::Java => {
                let head = match find_word(header, b"throws") {
                    Some(at) => header[..at].trim_ascii_end(),
                    None => header,
                };
                head.ends_with(b")") && find_word(header, b"new").is_none()
            }
            _ => {
                let mut head = header;
                if head.ends_with(b"=") {
                    return !head.ends_with(b"==");
                }
                while let Some(shorter) =
                    [b"const".as_slice(), b"noexcept", b"override", b"final", b"&&", b"&"]
                        .iter()
                        .find_map(|word| head.strip_suffix(*word))
                {
                    head = shorter.trim_ascii_end();
                }
                head.ends_with(b")") && !is_attribute(head)
            }
        }
    }

    /// Whether a word in a body may begin a definition; `behind` is the text that follows it.
    fn defines(self, word: &[u8], behind: &[u8]) -> bool {
        match self.language {
            Language::Rust => matches!(
                word,
                b"fn"
                    | b"struct"
                    | b"enum"
                    | b"union"
                    | b"trait"
                    | b"impl"
                    | b"mod"
                    | b"type"
                    | b"const"
                    | b"static"
                    | b"macro_rules"
            ),
            Language::Go => word == b"type" && behind.first() == Some(&b' '),
            Language::Java => matches!(
                word,
                b"class"
                    | b"interface"
                    | b"enum"
                    | b"record"
                    | b"public"
                    | b"protected"
                    | b"private"
                    | b"void"
                    | b"Override"
            ),
            _ => match word {
                b"typedef" | b"using" | b"namespace" | b"template" => true,
                b"struct" | b"union" | b"enum" | b"class" => {
                    let limit = &behind[..behind.len().min(200)];
                    let stop = limit.iter().position(|byte| b";{)=,*&".contains(byte));
                    stop.is_some_and(|at| limit[at] == b'{')
                }
                _ => false,
            },
        }
    }
}

/// `__attribute__((…))` and the like end with a bracket and begin no body.
fn is_attribute(head: &[u8]) -> bool {
    let mut depth = 0_i32;
    let open = head.iter().rposition(|byte| {
        match byte {
            b')' => depth += 1,
            b'(' => depth -= 1,
            _ => {}
        }
        depth == 0
    });
    let Some(open) = open else { return true };
    let name = head[..open].trim_ascii_end();
    let start = name.iter().rposition(|byte| !is_word(*byte)).map_or(0, |at| at + 1);
    let name = &name[start..];
    name.is_empty() && !head[..open].trim_ascii_end().ends_with(b"]") && !ends_like_operator(&head[..open])
        || name.starts_with(b"__")
        || matches!(name, b"alignas" | b"_Alignas" | b"decltype" | b"requires")
}

/// `operator==(…)` has no name before its bracket, and is a function.
fn ends_like_operator(text: &[u8]) -> bool {
    let text = text.trim_ascii_end();
    memchr::memmem::rfind(text, b"operator").is_some_and(|at| text.len() - at <= 16)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn find_word(text: &[u8], word: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(text, word).find(|at| {
        let before = at.checked_sub(1).is_none_or(|before| !is_word(text[before]));
        before && text.get(at + word.len()).is_none_or(|byte| !is_word(*byte))
    })
}

fn has_word_before_name(text: &[u8], word: &[u8]) -> bool {
    find_word(text, word).is_some_and(|at| {
        let rest = text[at + word.len()..].trim_ascii_start();
        rest.first().is_some_and(|byte| is_word(*byte))
    })
}

struct Scan<'a> {
    rules: Rules,
    bytes: &'a [u8],
    at: usize,
    /// Where the header of the next block begins.
    header: usize,
    /// What need not be parsed, in order.
    gaps: Vec<Range<usize>>,
    /// We are in a block of which it is not yet known whether it is passed over.
    looks_ahead: bool,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// The next mark or word; strings and comments are passed over.
    fn next(&mut self) -> Option<Token> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            match byte {
                b'/' if matches!(self.peek(1), b'/' | b'*') => {
                    let start = self.at;
                    if self.peek(1) == b'/' {
                        self.line();
                    } else {
                        self.comment();
                    }
                    if self.at - start >= LEAST_COMMENT && !self.looks_ahead {
                        self.gap(start..self.at);
                    }
                    // Examples in the comment above a definition are no part of its header.
                    if self.bytes.get(self.header..start).is_some_and(|text| text.trim_ascii().is_empty()) {
                        self.header = self.at;
                    }
                }
                b'"' => self.string(),
                b'`' if self.rules.language == Language::Go => self.raw(b"`"),
                b'\'' => self.character(),
                b'#' if self.rules.preprocessor && self.begins_line() => {
                    self.directive();
                    return Some(Token::Directive);
                }
                _ if is_word(byte) => {
                    let start = self.at;
                    while self.bytes.get(self.at).copied().is_some_and(is_word) {
                        self.at += 1;
                    }
                    if self.is_raw_string(start) {
                        continue;
                    }
                    return Some(Token::Word(start..self.at));
                }
                _ => {
                    self.at += 1;
                    if b"{}()[];".contains(&byte) {
                        return Some(Token::Mark(byte));
                    }
                }
            }
        }
    }

    fn gap(&mut self, gap: Range<usize>) {
        if self.gaps.last().is_none_or(|last| last.end <= gap.start) {
            self.gaps.push(gap);
        }
    }

    /// Goes behind the `}` that ends the block we are in.
    fn block(&mut self) -> Block {
        self.looks_ahead = true;
        let found = self.block_end();
        self.looks_ahead = false;
        found
    }

    fn block_end(&mut self) -> Block {
        let mut depth = 1_usize;
        let mut found = Block::Plain;
        while let Some(token) = self.next() {
            match token {
                Token::Mark(b'{') => depth += 1,
                Token::Mark(b'}') => {
                    depth -= 1;
                    if depth == 0 {
                        return found;
                    }
                }
                // Branches for the preprocessor may each open the same bracket.
                Token::Directive => found = Block::Defines,
                Token::Word(word) => {
                    if self.rules.defines(&self.bytes[word], &self.bytes[self.at..]) {
                        found = Block::Defines;
                    }
                }
                Token::Mark(_) => {}
            }
        }
        Block::Open
    }

    fn line(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    }

    fn comment(&mut self) {
        self.at += 2;
        let mut depth = 1;
        while let Some(found) = memchr::memchr2(b'*', b'/', &self.bytes[self.at..]) {
            self.at += found;
            match (self.peek(0), self.peek(1)) {
                (b'*', b'/') => {
                    self.at += 2;
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                (b'/', b'*') if self.rules.nested_comments => {
                    self.at += 2;
                    depth += 1;
                }
                _ => self.at += 1,
            }
        }
        self.at = self.bytes.len();
    }

    fn string(&mut self) {
        if self.rules.language == Language::Java && self.bytes[self.at..].starts_with(b"\"\"\"") {
            self.at += 2;
            self.raw(b"\"\"\"");
            return;
        }
        self.at += 1;
        self.until(b'"');
    }

    fn until(&mut self, end: u8) {
        while let Some(found) =
            self.bytes.get(self.at..).and_then(|rest| memchr::memchr3(end, b'\\', b'\n', rest))
        {
            self.at += found;
            let byte = self.peek(0);
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                // Only Rust's strings go over lines; elsewhere the quote was none.
                b'\n' if !self.rules.has_lifetimes => return,
                b'\n' => {}
                _ => return,
            }
        }
        self.at = self.bytes.len();
    }

    /// Behind the next `end`, after the one we are at.
    fn raw(&mut self, end: &[u8]) {
        self.at += 1;
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        self.at += memchr::memmem::find(rest, end).map_or(rest.len(), |found| found + end.len());
    }

    fn character(&mut self) {
        if self.rules.has_lifetimes && self.peek(1) != b'\\' {
            // `'a'` is a character, `'a` a lifetime; a character may be several bytes.
            let rest = &self.bytes[self.at + 1..];
            let length = std::str::from_utf8(&rest[..rest.len().min(4)])
                .map_or_else(|fault| fault.valid_up_to(), str::len)
                .min(rest.len());
            let first = std::str::from_utf8(&rest[..length]).ok().and_then(|text| text.chars().next());
            let width = first.map_or(1, char::len_utf8);
            if rest.get(width) == Some(&b'\'') {
                self.at += width + 2;
            } else {
                self.at += 1;
                while self.bytes.get(self.at).copied().is_some_and(is_word) {
                    self.at += 1;
                }
            }
            return;
        }
        self.at += 1;
        // A digit separator of C++ ends at the next character that is none.
        let is_separator = self.rules.language == Language::Cpp
            && self.at >= 2
            && self.bytes[self.at - 2].is_ascii_hexdigit()
            && self.peek(0).is_ascii_hexdigit()
            && self.peek(1) != b'\'';
        if !is_separator {
            self.until(b'\'');
        }
    }

    /// Whether the word from `start` on begins a raw string, which is then passed over.
    fn is_raw_string(&mut self, start: usize) -> bool {
        let word = &self.bytes[start..self.at];
        match self.rules.language {
            Language::Rust if matches!(word, b"r" | b"br" | b"cr") && matches!(self.peek(0), b'"' | b'#') => {
                let hashes = self.bytes[self.at..].iter().take_while(|byte| **byte == b'#').count();
                if self.peek(hashes) != b'"' {
                    return false;
                }
                let end = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
                self.at += hashes;
                self.raw(&end);
                true
            }
            Language::Cpp if word.ends_with(b"R") && word.len() <= 3 && self.peek(0) == b'"' => {
                let rest = &self.bytes[self.at + 1..];
                let Some(open) = rest.iter().take(18).position(|byte| *byte == b'(') else { return false };
                let end = [b")", &rest[..open], b"\""].concat();
                self.raw(&end);
                true
            }
            _ => false,
        }
    }

    fn begins_line(&self) -> bool {
        let before = &self.bytes[..self.at];
        let line = &before[memchr::memrchr(b'\n', before).map_or(0, |at| at + 1)..];
        line.iter().all(u8::is_ascii_whitespace)
    }

    fn directive(&mut self) {
        loop {
            self.line();
            let continued =
                self.bytes[..self.at].trim_ascii_end().ends_with(b"\\") && self.at < self.bytes.len();
            if !continued {
                return;
            }
            self.at += 1;
        }
    }
}

#[cfg(test)]
mod tests;
