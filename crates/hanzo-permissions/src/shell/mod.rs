//! Shell text, analysed for two questions that need opposite kinds of caution.
//!
//! - *What does it run?*, for an allow: [`Analysis::plain`] is the list of commands when the text is provably nothing
//!   but plain commands, otherwise the reason why it is opaque.
//! - *Could it run that?*, for a deny: [`Analysis::found`] is every command found anywhere in the text and inside
//!   wrappers (`sudo`, `xargs`, `bash -c`, …), and [`Analysis::hard`] says why that list may be incomplete.

mod matching;
mod tree;
mod unwrap;
mod words;

use std::cell::OnceCell;
use std::time::{Duration, Instant};

use serde::Serialize;

pub(crate) use matching::CommandPattern;
pub(crate) use unwrap::{is_interpreter, is_wrapper};
pub(crate) use words::{SimpleCommand, Word};

/// Text above this size is opaque without a look at it.
pub(crate) const MAX_COMMAND: usize = 16 * 1024;

/// Text that is more than plain words is parsed up to this size. On hostile text the parser's time grows with the
/// square of the length, in steps too small to report progress; at this size it still keeps within the limit.
const MAX_ODD_COMMAND: usize = 3 * 1024;

/// How many times the parser may report progress (every hundred of its operations) over one analysis.
const PARSE_BUDGET: u32 = 48;
/// How many nodes may be looked at over one analysis.
const NODE_BUDGET: u32 = 4_000;
/// How deep commands inside commands are followed.
const MAX_DEPTH: usize = 12;

/// Why a command line cannot be covered by an allow rule with a specifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Opaque {
    /// Larger than 16 kB: not examined.
    TooLong,
    /// Analysing it took more steps than one decision may.
    TooComplex,
    /// There is no command in it.
    Empty,
    /// Not valid shell text, or not certainly.
    Syntax,
    /// The strict reader and the grammar do not agree on the commands.
    Disagreement,
    /// A variable or another expansion.
    Expansion,
    /// A command substitution.
    Substitution,
    /// A variable assignment.
    Assignment,
    /// A redirection to or from a file.
    Redirection,
    /// A heredoc.
    Heredoc,
    /// A subshell or a process substitution.
    Subshell,
    /// Brace expansion or a brace group.
    Braces,
    /// History expansion.
    History,
    /// A comment.
    Comment,
    /// A control structure or another reserved word.
    Control,
    /// `[[ … ]]` or `[ … ]`, which can evaluate their operands.
    Test,
    /// Arithmetic, which can run substitutions hidden in values.
    Arithmetic,
    /// A function definition: names no longer mean what they say.
    Function,
    /// The program is not spelled out: a pattern, a tilde, an expansion, unusual characters.
    ProgramUnknown,
    /// The program's name is written with a backslash.
    EscapedProgram,
    /// Control characters, or blanks and marks that do not look like what they are.
    ControlCharacter,
    /// A builtin that evaluates its arguments (`eval`, `trap`, `printf -v`, …).
    EvaluatingBuiltin,
    /// A shell or interpreter that gets its program from elsewhere: standard input, `-e`, a generated file.
    Interpreter,
    /// Commands nested in commands, too deep to follow.
    Nesting,
    /// Grammar that the analysis does not know.
    Unsupported,
}

impl Opaque {
    /// The reason as the end of a sentence that starts with "because".
    pub fn reason(self) -> &'static str {
        match self {
            Self::TooLong => "it is longer than 16 kB",
            Self::TooComplex => "it is too complex to analyse",
            Self::Empty => "it holds no command",
            Self::Syntax => "it is not certainly valid shell text",
            Self::Disagreement => "two readings of it disagree",
            Self::Expansion => "it expands a variable",
            Self::Substitution => "it substitutes the output of a command",
            Self::Assignment => "it assigns a variable",
            Self::Redirection => "it redirects to or from a file",
            Self::Heredoc => "it feeds a heredoc",
            Self::Subshell => "it starts a subshell",
            Self::Braces => "it uses braces",
            Self::History => "it uses history expansion",
            Self::Comment => "it holds a comment",
            Self::Control => "it uses a control structure",
            Self::Test => "it evaluates a test",
            Self::Arithmetic => "it evaluates arithmetic",
            Self::Function => "it defines a function",
            Self::ProgramUnknown => "the program is not spelled out",
            Self::EscapedProgram => "the program's name is escaped",
            Self::ControlCharacter => "it holds control characters or unusual blanks",
            Self::EvaluatingBuiltin => "it uses a builtin that evaluates its arguments",
            Self::Interpreter => "it hands an interpreter a program that rules cannot see",
            Self::Nesting => "its commands are nested too deeply",
            Self::Unsupported => "it uses shell grammar that is not analysed",
        }
    }
}

/// What one analysis may cost: steps, so that the same text gets the same answer, and as a last resort time, for
/// texts on which single steps are slow. Running out can only make a decision stricter.
#[derive(Debug)]
pub(crate) struct Budget {
    parse: u32,
    nodes: u32,
    started: Option<Instant>,
}

/// Checked only after the first hundred parser operations: ordinary commands never read the clock.
const TIME_BUDGET: Duration = Duration::from_millis(2);

impl Budget {
    fn new() -> Self {
        Self { parse: PARSE_BUDGET, nodes: NODE_BUDGET, started: None }
    }

    fn spend_parse(&mut self) -> bool {
        self.parse = self.parse.saturating_sub(1);
        self.parse > 0 && self.started.get_or_insert_with(Instant::now).elapsed() < TIME_BUDGET
    }

    fn is_spent(&self) -> bool {
        self.parse <= 1
            || self.nodes <= 1
            || self.started.is_some_and(|started| started.elapsed() >= TIME_BUDGET)
    }

    fn spend_node(&mut self) -> bool {
        self.nodes = self.nodes.saturating_sub(1);
        self.nodes > 0
    }
}

/// A word of the text as it looks when all quoting is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    text: String,
    /// Whether it stands where a program stands in a command that was examined as such.
    examined: bool,
}

/// What is known about a command line.
#[derive(Debug)]
pub(crate) struct Analysis {
    /// The commands, when the text is provably nothing else.
    pub(crate) plain: Result<Vec<SimpleCommand>, Opaque>,
    /// Every command found, wrappers removed layer by layer.
    pub(crate) found: Vec<SimpleCommand>,
    /// Why `found` may be incomplete.
    pub(crate) hard: Option<Opaque>,
    /// The text, where it was short enough to look at.
    pub(crate) text: Option<String>,
    tokens: OnceCell<Vec<Token>>,
}

impl Analysis {
    /// Analyses shell text.
    pub(crate) fn of_text(text: &str) -> Self {
        if text.len() > MAX_COMMAND {
            return Self::unseen(Opaque::TooLong);
        }
        let mut budget = Budget::new();
        let lexed = words::plain_commands(text);
        let text = &*words::without_continuations(text);
        let limit = if lexed.is_ok() { MAX_COMMAND } else { MAX_ODD_COMMAND };
        let tree = tree::find(text, limit, &mut budget);
        let mut plain = match lexed {
            Ok(commands) if tree.hard.is_some() || !agree(&commands, &tree.commands) => {
                Err(tree.hard.unwrap_or(Opaque::Disagreement))
            }
            other => other,
        };
        if let Ok(commands) = &plain
            && commands.iter().any(unwrap::evaluates)
        {
            plain = Err(Opaque::EvaluatingBuiltin);
        }
        let mut collector = unwrap::Collector::new(budget);
        // A disagreement or a hidden character means that the tree is no evidence of what runs.
        if let Err(reason @ (Opaque::Disagreement | Opaque::ControlCharacter)) = &plain {
            collector.mark(*reason);
        }
        collector.add(tree, 0);
        let (found, hard) = collector.finish();
        Self { plain, found, hard, text: Some(text.to_owned()), tokens: OnceCell::new() }
    }

    /// Analyses an argv array, which no shell reads: its words are what they are.
    pub(crate) fn of_argv(argv: &[&str]) -> Self {
        if argv.len() > MAX_COMMAND || argv.iter().map(|word| word.len()).sum::<usize>() > MAX_COMMAND {
            return Self::unseen(Opaque::TooLong);
        }
        let command = SimpleCommand::new(argv.iter().map(|word| Word::exact(*word)).collect());
        let plain = match argv.first() {
            None => Err(Opaque::Empty),
            Some(program) if program.is_empty() || program.contains(char::is_whitespace) => {
                Err(Opaque::ProgramUnknown)
            }
            Some(_) if argv.iter().flat_map(|w| w.chars()).find_map(words::suspicious).is_some() => {
                Err(Opaque::ControlCharacter)
            }
            Some(_) => Ok(vec![command.clone()]),
        };
        let mut collector = unwrap::Collector::new(Budget::new());
        if let Err(reason) = &plain {
            collector.mark(*reason);
        }
        let text = command.joined().to_owned();
        collector.add_command(command, &[], 0);
        let (found, hard) = collector.finish();
        Self { plain, found, hard, text: Some(text), tokens: OnceCell::new() }
    }

    /// A command of which nothing can be said.
    pub(crate) fn unseen(reason: Opaque) -> Self {
        Self {
            plain: Err(reason),
            found: Vec::new(),
            hard: Some(reason),
            text: None,
            tokens: OnceCell::new(),
        }
    }

    /// Whether every command found does nothing with its words but print or look for them.
    pub(crate) fn is_inert(&self) -> bool {
        let substitutes = |text: &String| ["`", "$(", "<(", ">("].iter().any(|mark| text.contains(mark));
        let alone = self.plain.is_ok() || !self.text.as_ref().is_some_and(substitutes);
        alone && self.hard.is_none() && self.found.iter().all(unwrap::is_inert)
    }

    /// All words of the text with quoting ignored, for the search for commands that no unwrapping finds.
    pub(crate) fn tokens(&self) -> &[Token] {
        self.tokens.get_or_init(|| match (&self.plain, &self.text) {
            (Ok(commands), _) => commands
                .iter()
                .flat_map(|command| command.words.iter().enumerate())
                .flat_map(|(index, word)| {
                    tokenise(&word.text).into_iter().map(move |text| Token { text, examined: index == 0 })
                })
                .collect(),
            (Err(_), Some(text)) => {
                tokenise(text).into_iter().map(|text| Token { text, examined: false }).collect()
            }
            (Err(_), None) => Vec::new(),
        })
    }
}

/// Cuts at everything that separates words in some language; quotes and backslashes simply vanish, so that
/// `system("r\m -rf x")` gives `system`, `rm`, `-rf`, `x`. Where `\n` and `\t` occur, they are read as blanks too.
fn tokenise(text: &str) -> Vec<String> {
    let mut tokens = split_tokens(text);
    if ["\\n", "\\t", "\\r"].iter().any(|escape| text.contains(escape)) {
        tokens.extend(split_tokens(&text.replace("\\n", " ").replace("\\t", " ").replace("\\r", " ")));
    }
    tokens
}

fn split_tokens(text: &str) -> Vec<String> {
    let kept: String = text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect();
    let separates = |c: char| c.is_whitespace() || c.is_control() || ";|&(){}<>,:!$`[]*?#=^%@".contains(c);
    kept.split(separates)
        .map(|token| token.rsplit('/').next().unwrap_or_default())
        .filter(|token| !token.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Whether both readers found the same commands. A glob is a plain argument to one and an unknown one to the other.
fn agree(lexed: &[SimpleCommand], parsed: &[SimpleCommand]) -> bool {
    lexed.len() == parsed.len()
        && lexed.iter().zip(parsed).all(|(a, b)| {
            a.words.len() == b.words.len()
                && a.words
                    .iter()
                    .zip(&b.words)
                    .all(|(a, b)| if b.exact { a.text == b.text } else { a.text.starts_with(&b.text) })
        })
}
