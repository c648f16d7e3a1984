//! The specifier of a `Bash(...)` rule, held against commands.

use super::unwrap::basename;
use super::words::{SimpleCommand, Word};
use super::{Analysis, Token};
use crate::glob::Stars;
use crate::verdict::Match;

/// How often one pattern is tried against the tokens of a text. Hitting the limit counts as "not proved".
const MAX_TRIES: usize = 24;

/// How many tokens behind a program's name are looked at; what is further away counts as unknown.
const MAX_LOOK: usize = 128;

/// A command pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CommandPattern {
    /// The texts it stands for: `X:*` is `X` and `X *`.
    alternatives: Vec<Stars>,
    shape: Option<Shape>,
}

/// A pattern that starts with a program's name, read as program, options and operands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shape {
    program: String,
    short: Vec<char>,
    long: Vec<String>,
    operands: Vec<Stars>,
    /// Whether anything may follow.
    open: bool,
}

impl CommandPattern {
    /// Any text that matches `pattern`.
    pub(crate) fn text(pattern: &Stars) -> Self {
        Self { shape: Shape::new(pattern, pattern.is_open()), alternatives: vec![pattern.clone()] }
    }

    /// `prefix`, alone or followed by a blank and anything.
    pub(crate) fn prefix(prefix: &str) -> Self {
        let exact = Stars::parse(prefix);
        let longer = Stars::parse(&format!("{prefix} *"));
        Self { shape: Shape::new(&exact, true), alternatives: vec![exact, longer] }
    }

    /// Whether an allow rule covers `command`. Only the spelling of the command itself counts: another program of
    /// the same name in another directory is another program.
    pub(crate) fn covers(&self, command: &SimpleCommand) -> bool {
        let canonical = command.canonical();
        self.alternatives.iter().any(|pattern| {
            pattern.matches(canonical)
                || command.source.as_ref().is_some_and(|source| pattern.matches(source))
        })
    }

    /// Whether a deny or ask rule catches the text: some command in it, or — as far as can be told — something that
    /// the text makes run in a way that the analysis does not know.
    pub(crate) fn catches(&self, analysis: &Analysis) -> (Match, Option<usize>) {
        if let Some(text) = &analysis.text
            && self.alternatives.iter().any(|pattern| pattern.matches(text.trim()))
        {
            return (Match::Yes, None);
        }
        let mut best = (Match::No, None);
        for (index, command) in analysis.found.iter().enumerate() {
            let verdict = self.catches_command(command);
            if verdict > best.0 {
                best = (verdict, Some(index));
            }
            if verdict == Match::Yes {
                return best;
            }
        }
        if analysis.hard.is_some()
            || (best.0 == Match::No && !analysis.is_inert() && self.mentioned(analysis.tokens()))
        {
            best.0 = best.0.max(Match::Unproven);
        }
        best
    }

    fn catches_command(&self, command: &SimpleCommand) -> Match {
        let Some(program) = command.words.first() else { return Match::No };
        let text = command.joined();
        let exact = command.is_exact();
        let mut best = self.catches_text(text, exact);
        let short = basename(&program.text);
        if program.exact && short.len() < program.text.len() {
            best = best.max(self.catches_text(&text[program.text.len() - short.len()..], exact));
        }
        if best != Match::Yes
            && let Some(source) = command.source.as_ref().filter(|_| exact)
        {
            best = best.max(self.catches_text(source, true));
        }
        match &self.shape {
            Some(shape) if best != Match::Yes && program.exact && short == shape.program => {
                // The shape knows more than the text: where it applies, its doubt replaces the text's.
                shape.catches(&command.words[1..])
            }
            _ => best,
        }
    }

    /// `exact` is false when only the beginning of the text is known.
    fn catches_text(&self, text: &str, exact: bool) -> Match {
        let one = |pattern: &Stars| {
            if pattern.matches(text) && (exact || pattern.is_open()) {
                Match::Yes
            } else if !exact && (pattern.head().starts_with(text) || text.starts_with(pattern.head())) {
                Match::Unproven
            } else {
                Match::No
            }
        };
        self.alternatives.iter().map(one).max().unwrap_or(Match::No)
    }

    /// Whether the pattern's program occurs among the words of the text, with the pattern's options behind it.
    fn mentioned(&self, tokens: &[Token]) -> bool {
        let Some(shape) = &self.shape else {
            let Some(head) = self.alternatives.first().map(Stars::head).filter(|head| !head.is_empty())
            else {
                return false;
            };
            let head = head.split(' ').next().unwrap_or_default();
            return tokens.iter().any(|token| !token.examined && token.text.starts_with(head));
        };
        let starts = tokens.iter().enumerate().filter(|(_, t)| !t.examined && t.text == shape.program);
        for (tries, (at, _)) in starts.enumerate() {
            if tries == MAX_TRIES {
                return true;
            }
            // `--` ends the options of whichever program reads it, and here that is not known.
            let behind = tokens[at + 1..].iter().filter(|token| token.text != "--").take(MAX_LOOK);
            let mut rest: Vec<Word> = behind.map(|token| Word::exact(token.text.as_str())).collect();
            if tokens.len() - at - 1 > MAX_LOOK {
                rest.push(Word::unknown());
            }
            if shape.reopened().catches(&rest) != Match::No {
                return true;
            }
        }
        false
    }
}

impl Shape {
    fn new(pattern: &Stars, open: bool) -> Option<Self> {
        let words = pattern.words();
        let (program, rest) = words.split_first()?;
        let program = basename(program.as_literal()?).to_owned();
        let mut shape = Self { program, short: Vec::new(), long: Vec::new(), operands: Vec::new(), open };
        for (index, word) in rest.iter().enumerate() {
            let last = index + 1 == rest.len();
            let flag = match word.as_literal() {
                Some(text) => Some(text),
                // `-rf*`: the star is "and anything after it", not part of the option.
                None if last && word.is_open() && word.words().len() == 1 => Some(word.head()),
                None => None,
            }
            .filter(|text| text.starts_with('-') && text.len() > 1 && *text != "--");
            match flag.map(|text| text.strip_prefix("--").ok_or(text)) {
                Some(Ok(long)) => shape.long.push(long.split('=').next().unwrap_or(long).to_owned()),
                Some(Err(short)) => shape.short.extend(short[1..].chars()),
                None => shape.operands.push(word.clone()),
            }
        }
        Some(shape)
    }

    /// The same shape, with anything allowed to follow.
    fn reopened(&self) -> Self {
        Self { open: true, ..self.clone() }
    }

    fn catches(&self, arguments: &[Word]) -> Match {
        let seen = Arguments::new(arguments);
        let options = self.options(&seen);
        if options == Match::No {
            return Match::No;
        }
        options.min(self.operands(&seen))
    }

    fn options(&self, seen: &Arguments<'_>) -> Match {
        let is_rm = self.program == "rm";
        let mut verdict = Match::Yes;
        let wanted_short = self.short.iter().map(|c| (Some(*c), long_form(*c)));
        let wanted_long = self.long.iter().map(|long| (short_form(long), Some(long.as_str())));
        for (short, long) in wanted_short.chain(wanted_long) {
            let as_written = |letter: char| seen.short.contains(&letter);
            let same_letter = short.is_some_and(|c| {
                as_written(c) || (is_rm && matches!(c, 'r' | 'R') && (as_written('r') || as_written('R')))
            });
            // GNU programs accept any unambiguous beginning of a long option.
            let same_word = long.is_some_and(|l| seen.long.iter().any(|s| !s.is_empty() && l.starts_with(s)));
            let one = if same_letter || (same_word && is_rm) {
                Match::Yes
            } else if same_word || seen.unknown {
                Match::Unproven
            } else {
                Match::No
            };
            verdict = verdict.min(one);
        }
        verdict
    }

    fn operands(&self, seen: &Arguments<'_>) -> Match {
        if self.operands.is_empty() {
            return match (self.open, seen.operands.is_empty(), seen.unknown) {
                (true, _, _) | (false, true, false) => Match::Yes,
                (false, _, true) => Match::Unproven,
                (false, false, false) => Match::No,
            };
        }
        let pattern = Stars::join(&self.operands, self.open);
        // An option before the first operand may have taken it as its value: `git -C dir push`. Later operands are
        // tried too, but prove nothing.
        let mut best = Match::No;
        for (index, operand) in seen.operands.iter().enumerate() {
            let (text, exact) = join(&seen.operands[index..]);
            let hit = if (exact && pattern.matches(&text))
                || (self.open && self.boundary_match(&seen.operands[index..]))
            {
                Match::Yes
            } else if !exact && (pattern.head().starts_with(&text) || text.starts_with(pattern.head())) {
                if pattern.is_open() && pattern.matches(&text) { Match::Yes } else { Match::Unproven }
            } else {
                Match::No
            };
            best = best.max(if index == 0 { hit } else { hit.min(Match::Unproven) });
            // Far more than any program's options take; a longer search would only cost time.
            if index == 8 {
                return best.max(Match::Unproven);
            }
            if operand.exact && !operand.after_option {
                return best;
            }
        }
        if seen.unknown { best.max(Match::Unproven) } else { best }
    }

    /// Word for word: as many operands as the pattern has, anything behind them.
    fn boundary_match(&self, operands: &[Operand<'_>]) -> bool {
        operands.len() >= self.operands.len()
            && self.operands.iter().zip(operands).all(|(p, o)| o.exact && p.matches(o.text))
    }
}

/// Arguments sorted into options and operands.
struct Arguments<'a> {
    short: Vec<char>,
    long: Vec<&'a str>,
    operands: Vec<Operand<'a>>,
    /// Whether some word is not known to its end.
    unknown: bool,
}

struct Operand<'a> {
    text: &'a str,
    exact: bool,
    after_option: bool,
}

/// The operands joined by blanks as far as they are known, and whether that is all of them.
fn join(operands: &[Operand<'_>]) -> (String, bool) {
    let mut text = String::new();
    for (index, operand) in operands.iter().enumerate() {
        if index > 0 {
            text.push(' ');
        }
        text.push_str(operand.text);
        if !operand.exact {
            return (text, false);
        }
    }
    (text, true)
}

impl<'a> Arguments<'a> {
    fn new(words: &'a [Word]) -> Self {
        let mut seen = Self { short: Vec::new(), long: Vec::new(), operands: Vec::new(), unknown: false };
        let mut options = true;
        let mut after_option = false;
        for word in words {
            let text = word.text.as_str();
            seen.unknown |= !word.exact;
            if options && text == "--" {
                options = false;
            } else if let Some(long) = text.strip_prefix("--").filter(|_| options) {
                seen.long.push(long.split('=').next().unwrap_or(long));
                after_option = true;
                continue;
            } else if let Some(short) = text.strip_prefix('-').filter(|s| options && !s.is_empty()) {
                for c in short.chars() {
                    if !seen.short.contains(&c) {
                        seen.short.push(c);
                    }
                }
                after_option = true;
                continue;
            } else {
                seen.operands.push(Operand { text, exact: word.exact, after_option });
            }
            after_option = false;
        }
        seen
    }
}

/// The long spelling of an option that means the same in nearly every program.
fn long_form(short: char) -> Option<&'static str> {
    Some(match short {
        'r' | 'R' => "recursive",
        'f' => "force",
        'i' => "interactive",
        'v' => "verbose",
        'd' => "dir",
        'a' => "all",
        _ => return None,
    })
}

fn short_form(long: &str) -> Option<char> {
    Some(match long {
        "recursive" => 'r',
        "force" => 'f',
        "verbose" => 'v',
        "all" => 'a',
        _ => return None,
    })
}
