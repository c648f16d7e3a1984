//! Marks and words of the languages that use braces; strings, comments and the like are passed over, and the long ones are gaps.

use std::ops::Range;

use super::super::super::language::Language;
use super::{Gap, LEAST_COMMENT, LEAST_TEXT, is_word};

/// What matters to where bodies begin and end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    Open(u8),
    Close(u8),
    /// `;`
    End,
    /// `,`
    Comma,
    /// `=` or `:`, behind which a function of a script would get a name.
    Names,
    /// `=>` of a script.
    Arrow,
    /// Where it begins; it has ended.
    Comment(usize),
    Word(Range<usize>),
    /// `<` right behind a word of C++ or TypeScript.
    Angle,
    /// What a line says and where it begins.
    Directive(Directive, usize),
}

/// A line for the preprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directive {
    If,
    /// `#if 0`
    IfNever,
    Else,
    EndIf,
    Define,
    Other,
}

/// How a language writes what is no code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Rust,
    Go,
    Java,
    C,
    Script,
}

pub(super) struct Lexer<'a> {
    language: Language,
    dialect: Dialect,
    bytes: &'a [u8],
    pub(super) at: usize,
    /// What was last seen that is neither blank nor comment.
    pub(super) last: u8,
    last_word: Range<usize>,
    pub(super) gaps: Vec<Gap>,
    /// Elements and templates in one another.
    nesting: usize,
    /// The text is not what it seemed; nothing can be said.
    pub(super) is_lost: bool,
}

/// Templates and elements nest, but not deeper than this in anything a person wrote.
const MAX_NESTING: usize = 64;

impl<'a> Lexer<'a> {
    pub(super) fn new(language: Language, bytes: &'a [u8]) -> Self {
        let dialect = match language {
            Language::Rust => Dialect::Rust,
            Language::Go => Dialect::Go,
            Language::Java => Dialect::Java,
            Language::C | Language::Cpp => Dialect::C,
            _ => Dialect::Script,
        };
        Self {
            language,
            dialect,
            bytes,
            at: 0,
            last: 0,
            last_word: 0..0,
            gaps: Vec::new(),
            nesting: 0,
            is_lost: false,
        }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    fn gap(&mut self, range: Range<usize>, instead: &'static [u8]) {
        if range.len() >= LEAST_TEXT {
            self.gaps.push(Gap { range, instead });
        }
    }

    pub(super) fn next(&mut self) -> Option<Token> {
        loop {
            let byte = *self.bytes.get(self.at)?;
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => {
                    self.at += 1;
                    continue;
                }
                b'/' if matches!(self.peek(1), b'/' | b'*') => {
                    let start = self.at;
                    self.comment();
                    return Some(Token::Comment(start));
                }
                b'/' if self.dialect == Dialect::Script && self.expects_value() && self.regex() => {}
                b'"' => self.string(),
                b'\'' => self.character(),
                b'`' if self.dialect == Dialect::Go => self.raw(1, b"`"),
                b'`' if self.dialect == Dialect::Script => self.template()?,
                b'<' if self.begins_element() => self.element()?,
                b'#' if self.dialect == Dialect::C && self.begins_line() => {
                    let start = self.at;
                    return Some(Token::Directive(self.directive(), start));
                }
                _ if is_word(byte) => {
                    let start = self.at;
                    self.at +=
                        self.rest().iter().position(|byte| !is_word(*byte)).unwrap_or(self.rest().len());
                    if self.is_raw_string(start) {
                        self.last = b'"';
                        continue;
                    }
                    self.last = b'a';
                    self.last_word = start..self.at;
                    return Some(Token::Word(start..self.at));
                }
                _ => {
                    if let Some(token) = self.mark(byte) {
                        return Some(token);
                    }
                    continue;
                }
            }
            // A value of some sort was passed over.
            self.last = b'"';
        }
    }

    fn mark(&mut self, byte: u8) -> Option<Token> {
        let before = std::mem::replace(&mut self.last, byte);
        self.at += 1;
        match byte {
            b'{' | b'(' | b'[' => Some(Token::Open(byte)),
            b'}' | b')' | b']' => Some(Token::Close(byte)),
            b';' => Some(Token::End),
            b',' => Some(Token::Comma),
            b'<' if matches!(self.language, Language::Cpp | Language::TypeScript) => {
                (before == b'a' && is_word(self.bytes[self.at - 2])).then_some(Token::Angle)
            }
            _ if self.dialect != Dialect::Script => None,
            b'=' if self.peek(0) == b'>' => {
                self.at += 1;
                self.last = b'>';
                Some(Token::Arrow)
            }
            b'=' if self.peek(0) == b'=' => {
                self.at += 1;
                None
            }
            b'=' if b"!<>+-*/%&|^?".contains(&before) && self.bytes[self.at - 2] == before => None,
            b'=' | b':' => Some(Token::Names),
            _ => None,
        }
    }

    /// Whether a value may begin here, so that `/` begins a pattern and `<` an element.
    fn expects_value(&self) -> bool {
        match self.last {
            b'a' => {
                let word = &self.bytes[self.last_word.clone()];
                [
                    b"return".as_slice(),
                    b"typeof",
                    b"case",
                    b"in",
                    b"of",
                    b"delete",
                    b"void",
                    b"throw",
                    b"else",
                    b"do",
                    b"yield",
                    b"await",
                    b"default",
                ]
                .contains(&word)
            }
            last => {
                matches!(
                    last,
                    0 | b'(' | b',' | b'=' | b':' | b'[' | b'!' | b'&' | b'|' | b'?' | b'{' | b'}' | b';'
                ) || b"+-*%<>~^".contains(&last)
            }
        }
    }

    fn comment(&mut self) {
        let start = self.at;
        if self.peek(1) == b'/' {
            self.at += memchr::memchr(b'\n', self.rest()).unwrap_or(self.rest().len());
        } else {
            self.at += 2;
            let mut depth = 1;
            while depth > 0 {
                let Some(found) = memchr::memchr2(b'*', b'/', self.rest()) else {
                    self.at = self.bytes.len();
                    break;
                };
                self.at += found;
                match (self.peek(0), self.peek(1)) {
                    (b'*', b'/') => {
                        self.at += 2;
                        depth -= 1;
                    }
                    (b'/', b'*') if self.dialect == Dialect::Rust => {
                        self.at += 2;
                        depth += 1;
                    }
                    _ => self.at += 1,
                }
            }
        }
        if self.at - start >= LEAST_COMMENT {
            self.gaps.push(Gap { range: start..self.at, instead: b" " });
        }
    }

    /// Behind a string; `open` bytes begin it and `end` ends it, and nothing in it is special.
    fn raw(&mut self, open: usize, end: &[u8]) {
        let start = self.at + open;
        self.at = start;
        match memchr::memmem::find(self.rest(), end) {
            Some(length) => {
                self.at += length + end.len();
                self.gap(start..start + length, b"");
            }
            None => self.at = self.bytes.len(),
        }
    }

    fn string(&mut self) {
        if self.dialect == Dialect::Java && self.rest().starts_with(b"\"\"\"") {
            // The line break behind the quotes belongs to them.
            self.raw(4, b"\"\"\"");
            return;
        }
        self.at += 1;
        self.until(b'"');
    }

    fn until(&mut self, end: u8) {
        let start = self.at;
        while let Some(found) = memchr::memchr3(end, b'\\', b'\n', self.rest()) {
            self.at += found;
            let byte = self.peek(0);
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                // Only Rust's strings go over lines; elsewhere the quote was none.
                b'\n' if self.dialect != Dialect::Rust => return,
                b'\n' => {}
                _ => {
                    self.gap(start..self.at - 1, b"");
                    return;
                }
            }
        }
        self.at = self.bytes.len();
    }

    fn character(&mut self) {
        if self.dialect == Dialect::Rust && self.peek(1) != b'\\' {
            // `'a'` is a character, `'a` a lifetime; a character may be several bytes.
            let rest = &self.bytes[self.at + 1..];
            let width = rest[..rest.len().min(4)]
                .utf8_chunks()
                .next()
                .and_then(|chunk| chunk.valid().chars().next())
                .map_or(1, char::len_utf8);
            if rest.get(width) == Some(&b'\'') {
                self.at += width + 2;
            } else {
                self.at += 1 + rest.iter().position(|byte| !is_word(*byte)).unwrap_or(rest.len());
            }
            return;
        }
        self.at += 1;
        // A digit separator of C++ ends at the next character that is none.
        let is_separator = self.language == Language::Cpp
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
        match self.dialect {
            Dialect::Rust if matches!(word, b"r" | b"br" | b"cr") && matches!(self.peek(0), b'"' | b'#') => {
                let hashes = self.rest().iter().take_while(|byte| **byte == b'#').count();
                if self.peek(hashes) != b'"' {
                    return false;
                }
                let end = [b"\"".as_slice(), &b"#".repeat(hashes)].concat();
                self.raw(hashes + 1, &end);
                true
            }
            Dialect::C if word.ends_with(b"R") && word.len() <= 3 && self.peek(0) == b'"' => {
                let rest = &self.bytes[self.at + 1..];
                let Some(open) = rest.iter().take(18).position(|byte| *byte == b'(') else { return false };
                let end = [b")", &rest[..open], b"\""].concat();
                self.raw(open + 2, &end);
                true
            }
            _ => false,
        }
    }

    fn begins_line(&self) -> bool {
        let before = self.bytes[..self.at].iter().rev();
        before.take_while(|byte| **byte != b'\n').all(u8::is_ascii_whitespace)
    }

    fn directive(&mut self) -> Directive {
        self.at += 1;
        self.at += self.rest().iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let length = self.rest().iter().position(|byte| !is_word(*byte)).unwrap_or(self.rest().len());
        let word = &self.rest()[..length];
        self.at += length;
        let found = match word {
            b"if" => {
                let line = self.rest().split(|byte| *byte == b'\n').next().unwrap_or_default().trim_ascii();
                if matches!(line, b"0" | b"false") { Directive::IfNever } else { Directive::If }
            }
            b"ifdef" | b"ifndef" => Directive::If,
            b"else" | b"elif" | b"elifdef" | b"elifndef" => Directive::Else,
            b"endif" => Directive::EndIf,
            b"define" => Directive::Define,
            _ => Directive::Other,
        };
        // To the end of the line, or of those it goes on in: by a backslash, or a comment.
        while let Some(found) = memchr::memchr3(b'\n', b'/', b'\\', self.rest()) {
            self.at += found;
            match (self.peek(0), self.peek(1), self.peek(2)) {
                (b'\n', ..) => break,
                (b'\\', b'\r', b'\n') => self.at += 3,
                (b'\\', ..) => self.at += 2,
                (b'/', b'*', _) => self.comment_in_directive(),
                (b'/', b'/', _) => {
                    self.at += memchr::memchr(b'\n', self.rest()).unwrap_or(self.rest().len());
                }
                _ => self.at += 1,
            }
        }
        if memchr::memchr(b'\n', self.rest()).is_none() {
            self.at = self.bytes.len();
        }
        found
    }

    fn comment_in_directive(&mut self) {
        let rest = &self.rest()[2..];
        self.at += 2 + memchr::memmem::find(rest, b"*/").map_or(rest.len(), |end| end + 2);
    }

    /// Goes behind a pattern such as `/[/]+/`, if one is there.
    fn regex(&mut self) -> bool {
        /// A longer one is none, and looking for its end again and again would take long.
        const MAX: usize = 2000;
        let mut in_class = false;
        let mut at = 1;
        loop {
            match self.peek(at) {
                b'\n' | 0 => return false,
                _ if at > MAX => return false,
                b'\\' => at += 1,
                b'[' => in_class = true,
                b']' => in_class = false,
                b'/' if !in_class => break,
                _ => {}
            }
            at += 1;
        }
        self.at += at + 1;
        true
    }

    /// Goes behind a template; `None` when it does not end.
    fn template(&mut self) -> Option<()> {
        self.at += 1;
        let start = self.at;
        let mut is_plain = true;
        loop {
            let found = memchr::memchr3(b'`', b'\\', b'$', self.rest()).or_else(|| self.lose())?;
            self.at += found;
            match (self.peek(0), self.peek(1)) {
                (b'`', _) => break,
                (b'$', b'{') => {
                    is_plain = false;
                    self.at += 1;
                    self.hole()?;
                }
                (b'\\', _) => self.at += 2,
                _ => self.at += 1,
            }
        }
        if is_plain {
            self.gap(start..self.at, b"");
        }
        self.at += 1;
        Some(())
    }

    fn lose<T>(&mut self) -> Option<T> {
        self.is_lost = true;
        None
    }

    /// Goes behind the code in braces that we are at.
    fn hole(&mut self) -> Option<()> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return self.lose();
        }
        let mut depth = 0;
        loop {
            match self.next().or_else(|| self.lose())? {
                Token::Open(b'{') => depth += 1,
                Token::Close(b'}') => {
                    depth -= 1;
                    if depth == 0 {
                        break;
                    }
                }
                _ => {}
            }
        }
        self.nesting -= 1;
        Some(())
    }

    /// Whether `<` begins an element, as in `return <p>…</p>`.
    fn begins_element(&self) -> bool {
        if !matches!(self.language, Language::JavaScript | Language::Tsx) || !self.expects_value() {
            return false;
        }
        if !(self.peek(1) == b'>' || self.peek(1).is_ascii_alphabetic()) {
            return false;
        }
        // `<T,>(x: T) => …` and `<T extends U>(…)` are functions.
        let tag = &self.bytes[self.at + 1..];
        let name = tag.iter().position(|byte| !is_word(*byte) && !b".-:".contains(byte)).unwrap_or(tag.len());
        let behind = tag[name..].trim_ascii_start();
        !(behind.starts_with(b",") || behind.starts_with(b"extends "))
    }

    /// Goes behind an element with all that is in it; `None` when it does not end.
    fn element(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            self.at += 1;
            let is_end = self.peek(0) == b'/';
            let is_whole = self.tag()?;
            match (is_end, is_whole) {
                (true, _) => open = open.saturating_sub(1),
                (false, true) => {}
                (false, false) => open += 1,
            }
            if open == 0 {
                return Some(());
            }
            loop {
                let found = memchr::memchr2(b'{', b'<', self.rest()).or_else(|| self.lose())?;
                self.at += found;
                if self.peek(0) == b'<' {
                    break;
                }
                self.last = 0;
                self.hole()?;
            }
        }
    }

    /// Goes behind a tag. Whether it has no end tag.
    fn tag(&mut self) -> Option<bool> {
        let mut angles = 0_u32;
        loop {
            match self.peek(0) {
                0 => return self.lose(),
                quote @ (b'"' | b'\'') => {
                    self.at += 1;
                    let end = memchr::memchr(quote, self.rest()).or_else(|| self.lose())?;
                    self.at += end + 1;
                }
                b'{' => {
                    self.last = 0;
                    self.hole()?;
                }
                b'/' if self.peek(1) == b'>' => {
                    self.at += 2;
                    return Some(true);
                }
                b'<' => {
                    angles += 1;
                    self.at += 1;
                }
                b'>' => {
                    self.at += 1;
                    if angles == 0 {
                        return Some(false);
                    }
                    angles -= 1;
                }
                _ => self.at += 1,
            }
        }
    }
}
