//! The words of a command line, read strictly.
//!
//! [`plain_commands`] accepts one small language and nothing else: words of ordinary characters and simple quotes,
//! joined by `&&`, `||`, `;`, `|`, `&` and newlines. Whatever it accepts, bash runs as exactly these commands with
//! exactly these words. It is deliberately independent of the tree-sitter grammar: an allow needs both to agree,
//! because a grammar that is right about every odd corner of bash does not exist.

use std::borrow::Cow;
use std::cell::OnceCell;

use super::Opaque;

/// One word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word {
    /// The word after quote removal; only its beginning when it is not `exact`.
    pub(crate) text: String,
    /// Whether `text` is all of it. Expansions, globs and substitutions make a word inexact.
    pub(crate) exact: bool,
}

impl Word {
    pub(crate) fn exact(text: impl Into<String>) -> Self {
        Self { text: text.into(), exact: true }
    }

    pub(crate) fn unknown() -> Self {
        Self { text: String::new(), exact: false }
    }
}

/// One command: a program and its arguments.
#[derive(Debug, Clone)]
pub(crate) struct SimpleCommand {
    /// The program first.
    pub(crate) words: Vec<Word>,
    /// The text it came from, where there is one.
    pub(crate) source: Option<String>,
    /// Each rule of a policy wants these; they are made once.
    joined: OnceCell<String>,
    canonical: OnceCell<String>,
}

impl SimpleCommand {
    pub(crate) fn new(words: Vec<Word>) -> Self {
        Self { words, source: None, joined: OnceCell::new(), canonical: OnceCell::new() }
    }

    pub(crate) fn from_source(words: Vec<Word>, source: &str) -> Self {
        Self { source: Some(source.to_owned()), ..Self::new(words) }
    }

    /// The words joined by blanks, quotes gone. Stops at the first word that is not known to its end.
    pub(crate) fn joined(&self) -> &str {
        self.joined.get_or_init(|| self.join())
    }

    fn join(&self) -> String {
        let mut text = String::new();
        for (index, word) in self.words.iter().enumerate() {
            if index > 0 {
                text.push(' ');
            }
            text.push_str(&word.text);
            if !word.exact {
                break;
            }
        }
        text
    }

    /// The words joined by blanks, with quotes where a word would otherwise read as several. Two commands with the
    /// same text have the same words, which is what makes this safe to hold against an allow rule.
    pub(crate) fn canonical(&self) -> &str {
        self.canonical
            .get_or_init(|| self.words.iter().map(|word| quote(&word.text)).collect::<Vec<_>>().join(" "))
    }

    pub(crate) fn is_exact(&self) -> bool {
        self.words.iter().all(|word| word.exact)
    }

    /// What to show people.
    pub(crate) fn shown(&self) -> String {
        match &self.source {
            Some(source) => source.clone(),
            None => self
                .words
                .iter()
                .map(|w| if w.exact { quote(&w.text) } else { format!("{}…", w.text) })
                .collect::<Vec<_>>()
                .join(" "),
        }
    }
}

/// `word` in single quotes when it holds anything a reader would take for more than a plain word.
fn quote(word: &str) -> String {
    let plain = |c: char| !(c.is_whitespace() || c.is_control() || "'\"`$\\;&|<>()#".contains(c));
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Words that are grammar when they stand where a program would.
const RESERVED: &[&str] = &[
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "select",
    "function", "in", "time", "coproc", "{", "}", "!", "[[", "]]",
];

/// The commands of `text`, or why they cannot be told.
pub(crate) fn plain_commands(text: &str) -> Result<Vec<SimpleCommand>, Opaque> {
    if let Some(reason) = text.chars().find_map(suspicious) {
        return Err(reason);
    }
    let mut lexer = Lexer { text, at: 0, commands: Vec::new(), words: Vec::new(), start: 0, joined: false };
    lexer.run()?;
    Ok(lexer.commands)
}

/// Characters that have no business in a command line: they hide text from the reader, or separate words for some
/// programs and not for others.
pub(crate) fn suspicious(c: char) -> Option<Opaque> {
    let bad = match c {
        '\n' | '\t' => false,
        c if c.is_ascii() => c.is_ascii_control(),
        c => {
            c.is_whitespace()
                || c.is_control()
                || matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
        }
    };
    bad.then_some(Opaque::ControlCharacter)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    commands: Vec<SimpleCommand>,
    words: Vec<Word>,
    /// Where the current command starts.
    start: usize,
    /// Whether an operator that needs a command after it (`&&`, `||`, `|`) has just been read.
    joined: bool,
}

impl Lexer<'_> {
    fn peek(&self, offset: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + offset).copied()
    }

    fn run(&mut self) -> Result<(), Opaque> {
        loop {
            while matches!(self.peek(0), Some(b' ' | b'\t')) {
                self.at += 1;
            }
            // A line continued between words is a blank. Inside a word it is refused: see `word`.
            if self.peek(0) == Some(b'\\') && self.peek(1) == Some(b'\n') {
                self.at += 2;
                continue;
            }
            match self.peek(0) {
                None => return self.finish(),
                Some(b'\n') if self.words.is_empty() => self.at += 1,
                Some(b'\n') => self.separator(1, false)?,
                Some(b';') => match self.peek(1) {
                    Some(b';' | b'&') => return Err(Opaque::Syntax),
                    _ => self.separator(1, false)?,
                },
                Some(b'&') => match self.peek(1) {
                    Some(b'&') => self.separator(2, true)?,
                    Some(b'>') => return Err(Opaque::Redirection),
                    _ => self.separator(1, false)?,
                },
                Some(b'|') => match self.peek(1) {
                    Some(b'|') => self.separator(2, true)?,
                    Some(b'&') => return Err(Opaque::Redirection),
                    _ => self.separator(1, true)?,
                },
                Some(b'#') => return Err(Opaque::Comment),
                Some(b'(' | b')') => return Err(Opaque::Subshell),
                Some(_) => self.word_or_duplication()?,
            }
        }
    }

    fn separator(&mut self, length: usize, joins: bool) -> Result<(), Opaque> {
        if self.words.is_empty() {
            return Err(Opaque::Syntax);
        }
        self.end_command();
        self.at += length;
        self.joined = joins;
        Ok(())
    }

    fn end_command(&mut self) {
        let words = std::mem::take(&mut self.words);
        self.commands.push(SimpleCommand::from_source(words, self.text[self.start..self.at].trim()));
    }

    fn finish(&mut self) -> Result<(), Opaque> {
        if !self.words.is_empty() {
            self.end_command();
        } else if self.joined {
            return Err(Opaque::Syntax);
        }
        if self.commands.is_empty() { Err(Opaque::Empty) } else { Ok(()) }
    }

    /// `2>&1` joins two streams the command already has; it reaches no file. Every other redirection is refused,
    /// `>/dev/null` too: telling harmless files from others is not for a lexer.
    fn word_or_duplication(&mut self) -> Result<(), Opaque> {
        let digits = self.text[self.at..].bytes().take_while(u8::is_ascii_digit).count();
        let rest = &self.text.as_bytes()[self.at + digits..];
        if rest.starts_with(b">&") {
            let target = rest[2..].iter().take_while(|b| b.is_ascii_digit()).count();
            let ends = rest.get(2 + target).is_none_or(|b| b" \t\n;&|".contains(b));
            if digits <= 1 && target == 1 && ends && !self.words.is_empty() {
                self.at += digits + 2 + target;
                return Ok(());
            }
        }
        if matches!(rest.first(), Some(b'<' | b'>')) {
            return Err(Opaque::Redirection);
        }
        if self.words.is_empty() {
            self.start = self.at;
            self.joined = false;
        }
        self.word()
    }

    fn word(&mut self) -> Result<(), Opaque> {
        let program = self.words.is_empty();
        let begin = self.at;
        let mut text = String::new();
        let mut quoted = false;
        while let Some(c) = self.text[self.at..].chars().next() {
            match c {
                ' ' | '\t' | '\n' | ';' | '&' | '|' => break,
                '(' | ')' => return Err(Opaque::Subshell),
                '<' | '>' => return Err(Opaque::Redirection),
                '$' => return Err(Opaque::Expansion),
                '`' => return Err(Opaque::Substitution),
                '\'' => {
                    quoted = true;
                    self.at += 1;
                    let end = self.text[self.at..].find('\'').ok_or(Opaque::Syntax)?;
                    text.push_str(&self.text[self.at..self.at + end]);
                    self.at += end + 1;
                    continue;
                }
                '"' => {
                    quoted = true;
                    self.at += 1;
                    self.double_quoted(&mut text)?;
                    continue;
                }
                '\\' => {
                    if program {
                        return Err(Opaque::EscapedProgram);
                    }
                    self.at += 1;
                    let literal = self.text[self.at..].chars().next().ok_or(Opaque::Syntax)?;
                    // bash joins the two halves; other readers see two words.
                    if literal == '\n' {
                        return Err(Opaque::Syntax);
                    }
                    text.push(literal);
                    self.at += literal.len_utf8();
                    continue;
                }
                '!' if !self.history_safe() => return Err(Opaque::History),
                '{' if self.text[self.at..].starts_with("{}") => {
                    text.push_str("{}");
                    self.at += 2;
                    continue;
                }
                '{' | '}' => return Err(Opaque::Braces),
                '*' | '?' | '[' | '~' | '=' | '^' | '%' if program && (c != '[' || self.at > begin) => {
                    return Err(if c == '=' { Opaque::Assignment } else { Opaque::ProgramUnknown });
                }
                c => text.push(c),
            }
            self.at += c.len_utf8();
        }
        if program {
            if !quoted && RESERVED.contains(&text.as_str()) {
                return Err(Opaque::Control);
            }
            let ordinary = |c: char| c.is_ascii_alphanumeric() || "_-./+:[,@".contains(c);
            if text.is_empty() || !text.chars().all(ordinary) {
                return Err(Opaque::ProgramUnknown);
            }
        }
        self.words.push(Word::exact(text));
        Ok(())
    }

    fn double_quoted(&mut self, text: &mut String) -> Result<(), Opaque> {
        while let Some(c) = self.text[self.at..].chars().next() {
            self.at += c.len_utf8();
            match c {
                '"' => return Ok(()),
                '$' => return Err(Opaque::Expansion),
                '`' => return Err(Opaque::Substitution),
                '!' => {
                    self.at -= 1;
                    if !self.history_safe() {
                        return Err(Opaque::History);
                    }
                    self.at += 1;
                    text.push('!');
                }
                '\\' => match self.peek(0) {
                    Some(escaped @ (b'$' | b'`' | b'"' | b'\\')) => {
                        text.push(char::from(escaped));
                        self.at += 1;
                    }
                    Some(b'\n') => self.at += 1,
                    _ => text.push('\\'),
                },
                c => text.push(c),
            }
        }
        Err(Opaque::Syntax)
    }

    /// Only an interactive shell replaces `!`, and never before a blank or at the end.
    fn history_safe(&self) -> bool {
        matches!(self.peek(1), None | Some(b' ' | b'\t' | b'\n' | b'"'))
    }
}

/// The text as bash reads it when lines are continued: a backslash before a newline takes the newline with it, also
/// in the middle of a word, which the grammar does not know.
pub(crate) fn without_continuations(text: &str) -> Cow<'_, str> {
    if !text.contains("\\\n") {
        return Cow::Borrowed(text);
    }
    let mut joined = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            joined.push(c);
            continue;
        }
        match chars.next() {
            Some('\n') => {}
            Some(escaped) => joined.extend(['\\', escaped]),
            None => joined.push('\\'),
        }
    }
    Cow::Owned(joined)
}

/// Removes the quotes of one word that need not be plain, and says how far it is known.
pub(crate) fn dequote(source: &str) -> Word {
    let mut text = String::new();
    let mut chars = source.char_indices().peekable();
    let mut double = false;
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => double = !double,
            '\'' if !double => {
                let mut closed = false;
                for (_, inner) in chars.by_ref() {
                    if inner == '\'' {
                        closed = true;
                        break;
                    }
                    text.push(inner);
                }
                if !closed {
                    return Word { text, exact: false };
                }
            }
            '\\' => match chars.next() {
                Some((_, '\n')) => {}
                Some((_, escaped)) if !double || "$`\"\\".contains(escaped) => text.push(escaped),
                Some((_, other)) => {
                    text.push('\\');
                    text.push(other);
                }
                None => text.push('\\'),
            },
            '$' | '`' => return Word { text, exact: false },
            '{' if !double && chars.peek().is_some_and(|(_, next)| *next == '}') => {
                chars.next();
                text.push_str("{}");
            }
            '*' | '?' | '[' | '{' | '<' | '>' | '(' | ')' if !double => {
                // `[` alone is a program, not a pattern.
                if c == '[' && source == "[" {
                    text.push(c);
                } else {
                    return Word { text, exact: false };
                }
            }
            '~' if !double && at == 0 => return Word { text, exact: false },
            c => text.push(c),
        }
    }
    Word { text, exact: true }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Result<Vec<String>, Opaque> {
        plain_commands(line).map(|commands| commands.iter().map(|c| c.canonical().to_owned()).collect())
    }

    #[test]
    fn plain_lists_are_read_word_for_word() {
        assert_eq!(texts("ls  -la").as_deref(), Ok(["ls -la".to_owned()].as_slice()));
        assert_eq!(texts("a && b||c;d | e\nf &").map(|c| c.len()), Ok(6));
        assert_eq!(
            texts("git commit -m \"a; b\"").as_deref(),
            Ok(["git commit -m 'a; b'".to_owned()].as_slice())
        );
        assert_eq!(texts("go test ./... 2>&1").as_deref(), Ok(["go test ./...".to_owned()].as_slice()));
        assert_eq!(
            texts("cargo test \\\n  --all").as_deref(),
            Ok(["cargo test --all".to_owned()].as_slice())
        );
        assert_eq!(
            texts("echo a\\ b 'c'\\''d'").as_deref(),
            Ok([r"echo 'a b' 'c'\''d'".to_owned()].as_slice())
        );
        assert_eq!(texts("ls *.rs ~/x").as_deref(), Ok(["ls *.rs ~/x".to_owned()].as_slice()));
    }

    #[test]
    fn everything_else_is_opaque_for_a_reason() {
        let cases = [
            ("echo $HOME", Opaque::Expansion),
            ("echo `id`", Opaque::Substitution),
            ("A=b ls", Opaque::Assignment),
            ("ls > f", Opaque::Redirection),
            ("ls >/dev/null", Opaque::Redirection),
            ("ls < f", Opaque::Redirection),
            ("ls &> f", Opaque::Redirection),
            ("ls 2>&1f", Opaque::Redirection),
            ("ls |& cat", Opaque::Redirection),
            ("(ls)", Opaque::Subshell),
            ("cat <(ls)", Opaque::Redirection),
            ("l? x", Opaque::ProgramUnknown),
            ("~/x", Opaque::ProgramUnknown),
            ("echo {a,b}", Opaque::Braces),
            ("if true", Opaque::Control),
            ("! ls", Opaque::Control),
            ("echo !!", Opaque::History),
            ("\\rm x", Opaque::EscapedProgram),
            ("ls\r", Opaque::ControlCharacter),
            ("ls\u{a0}x", Opaque::ControlCharacter),
            ("ls\u{b}x", Opaque::ControlCharacter),
            ("ls # x", Opaque::Comment),
            ("ls &&", Opaque::Syntax),
            ("ls 'x", Opaque::Syntax),
            ("l\\\ns", Opaque::EscapedProgram),
            ("", Opaque::Empty),
        ];
        for (line, reason) in cases {
            assert_eq!(texts(line), Err(reason), "{line:?}");
        }
    }
}
