//! The rule grammar: `Tool` or `Tool(specifier)`.
//!
//! The tool part is a family (`Bash`, `Edit`, `Read`, `Net`, `Mcp`), an action (`fs.write`), a tool (`fs`, any
//! action), a glob (`mcp__*`, `fs.*`) or an older name (`write_file`). The specifier is read by what the tool acts
//! on: a command, a path, a URL, an MCP `server/tool`. In it `\*`, `\(`, `\)` and `\\` stand for the character.

use thiserror::Error;

use crate::call::Facts;
use crate::glob::{Case, Glob, Stars, escape};
use crate::net::UrlPattern;
use crate::path::PathPattern;
use crate::shell::CommandPattern;
use crate::tools::{self, Family};

/// Longer than any rule a person writes; longer patterns only cost time.
const MAX_RULE: usize = 4 * 1024;

/// Why a rule could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RuleError {
    /// There is nothing there.
    #[error("the rule is empty\n\nhint: write a tool, such as `Bash(git status:*)`")]
    Empty,
    /// The rule is longer than 4 kB.
    #[error(
        "the rule is {length} bytes long, more than the {MAX_RULE} allowed\n\nhint: use `*` for the part that varies"
    )]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// A parenthesis is not closed, or something follows the closing one.
    #[error(
        "`{rule}` does not end the specifier opened at position {position}\n\nhint: end the rule with `)`; a literal parenthesis is `\\)`"
    )]
    Unclosed {
        /// The rule.
        rule: String,
        /// Where the `(` is, in bytes.
        position: usize,
    },
    /// `Tool()`.
    #[error(
        "`{rule}` has an empty specifier at position {position}\n\nhint: leave out the parentheses to match every call"
    )]
    EmptySpecifier {
        /// The rule.
        rule: String,
        /// Where the `(` is, in bytes.
        position: usize,
    },
    /// The tool part holds something no tool name has.
    #[error(
        "`{rule}` has an unexpected `{found}` at position {position}\n\nhint: a rule is `Tool` or `Tool(specifier)`"
    )]
    BadTool {
        /// The rule.
        rule: String,
        /// The character.
        found: char,
        /// Where it is, in bytes.
        position: usize,
    },
    /// A capitalised name that is no family.
    #[error("`{name}` is not a tool family\n\nhint: {hint}")]
    UnknownFamily {
        /// The name.
        name: String,
        /// What to write instead.
        hint: String,
    },
    /// An example under `match` that the rule does not match, or one under `not_match` that it does.
    #[error("`{rule}` {} its example `{example}`\n\nhint: correct the rule or the example", if *.expected { "does not match" } else { "matches" })]
    Example {
        /// The rule.
        rule: String,
        /// The example.
        example: String,
        /// Whether it should have matched.
        expected: bool,
    },
    /// The error, and where the rule was written.
    #[error("{origin}: {error}")]
    At {
        /// Such as `settings.toml:12:3`.
        origin: String,
        /// What is wrong.
        error: Box<RuleError>,
    },
}

/// Which tools a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ToolPattern {
    Family(Family),
    /// One action or tool, with the canonical id when it is known.
    Name {
        name: String,
        canonical: Option<&'static str>,
    },
    /// Every action of a tool.
    Axis(String),
    Glob(Glob),
}

/// Which way a rule is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// For an allow: everything must certainly match.
    Covers,
    /// For a deny or ask: anything may match.
    Catches,
}

impl ToolPattern {
    fn parse(text: &str, rule: &str) -> Result<Self, RuleError> {
        if let Some((position, found)) =
            text.char_indices().find(|(_, c)| c.is_whitespace() || c.is_control() || "()".contains(*c))
        {
            return Err(RuleError::BadTool { rule: rule.to_owned(), found, position });
        }
        if text.is_empty() {
            let found = rule.chars().next().unwrap_or('(');
            return Err(RuleError::BadTool { rule: rule.to_owned(), found, position: 0 });
        }
        if text.contains(['*', '?', '[']) {
            return Ok(Self::Glob(Glob::name(text)));
        }
        if let Some(family) = Family::from_name(text) {
            return Ok(Self::Family(family));
        }
        if tools::is_axis(text) {
            return Ok(Self::Axis(text.to_owned()));
        }
        let canonical = tools::find(text).map(|action| action.id);
        if canonical.is_none() && text.starts_with(char::is_uppercase) {
            return Err(RuleError::UnknownFamily { name: text.to_owned(), hint: suggestion(text) });
        }
        // The older name for "any command" means the family.
        if canonical == Some("proc.exec") {
            return Ok(Self::Family(Family::Bash));
        }
        Ok(Self::Name { name: text.to_owned(), canonical })
    }

    fn matches_one(&self, name: &str, action: Option<&tools::Action>) -> bool {
        match self {
            Self::Family(family) => action.and_then(|a| a.family) == Some(*family),
            Self::Name { name: own, canonical } => {
                own == name || (canonical.is_some() && *canonical == action.map(|a| a.id))
            }
            Self::Axis(axis) => {
                let under =
                    |id: &str| id.strip_prefix(axis.as_str()).is_some_and(|rest| rest.starts_with('.'));
                name == axis || under(name) || action.is_some_and(|a| under(a.id))
            }
            Self::Glob(glob) => {
                glob.matches(name, Case::Sensitive)
                    || action.is_some_and(|a| glob.matches(a.id, Case::Sensitive))
            }
        }
    }

    pub(crate) fn matches(&self, facts: &Facts<'_>, side: Side) -> bool {
        if let Self::Family(family) = self
            && facts.families().contains(family)
        {
            return side == Side::Catches || facts.is_all(*family);
        }
        match side {
            Side::Covers => facts.actions().all(|(name, action)| self.matches_one(name, action)),
            Side::Catches => {
                self.matches_one(facts.given(), None)
                    || facts.actions().any(|(name, action)| self.matches_one(name, action))
            }
        }
    }
}

fn suggestion(name: &str) -> String {
    let near = tools::known_names()
        .map(|known| (strsim::jaro_winkler(&name.to_lowercase(), &known.to_lowercase()), known))
        // The first of equals: families come first.
        .reduce(|best, next| if next.0 > best.0 { next } else { best })
        .filter(|(score, _)| *score >= 0.8);
    let families = Family::ALL.map(Family::name).join("`, `");
    match near {
        Some((_, known)) => format!("did you mean `{known}`? The families are `{families}`"),
        None => format!("the families are `{families}`"),
    }
}

/// A specifier, compiled for each kind of subject it may meet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Specifier {
    pub(crate) command: CommandPattern,
    pub(crate) path: PathPattern,
    pub(crate) url: UrlPattern,
    /// For search patterns.
    pub(crate) text: Stars,
    /// For MCP: server and tool.
    pub(crate) mcp: (Glob, Glob),
}

impl Specifier {
    fn new(text: &str) -> Self {
        let command = match command_prefix(text) {
            Some(prefix) => CommandPattern::prefix(prefix),
            None => CommandPattern::text(&Stars::parse(text)),
        };
        let (server, tool) = text.split_once('/').unwrap_or((text, "*"));
        Self {
            command,
            path: PathPattern::new(text),
            url: UrlPattern::new(text),
            text: Stars::parse(text),
            mcp: (Glob::name(server), Glob::name(tool)),
        }
    }

    pub(crate) fn matches_mcp(&self, name: &str, side: Side) -> bool {
        let splits = tools::mcp_splits(name);
        let hit = |(server, tool): &(&str, &str)| {
            self.mcp.0.matches(server, Case::Sensitive) && self.mcp.1.matches(tool, Case::Sensitive)
        };
        match side {
            Side::Covers => !splits.is_empty() && splits.iter().all(hit),
            Side::Catches => splits.iter().any(hit),
        }
    }
}

/// `X` of `X:*`, or of the older `X *` when that star is the only one.
fn command_prefix(specifier: &str) -> Option<&str> {
    let prefix = specifier.strip_suffix(":*").or_else(|| specifier.strip_suffix(" *"))?;
    let ends_in_escape =
        specifier[..specifier.len() - 1].bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1;
    let legacy = specifier.ends_with(" *");
    let only_star = Stars::parse(prefix).as_literal().is_some();
    (!prefix.trim().is_empty() && !ends_in_escape && (!legacy || only_star)).then(|| prefix.trim())
}

/// A rule of a policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    text: String,
    pub(crate) tool: ToolPattern,
    pub(crate) specifier: Option<Specifier>,
    origin: Option<String>,
    tier: Option<String>,
    reason: Option<String>,
}

impl std::str::FromStr for Rule {
    type Err = RuleError;

    fn from_str(text: &str) -> Result<Self, RuleError> {
        Self::parse(text)
    }
}

impl Rule {
    /// Reads a rule.
    ///
    /// ```
    /// use hanzo_permissions::Rule;
    /// assert_eq!(Rule::parse("Bash(go test *)")?.normalised(), "Bash(go test:*)");
    /// # Ok::<(), hanzo_permissions::RuleError>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(RuleError::Empty);
        }
        if text.len() > MAX_RULE {
            return Err(RuleError::TooLong { length: text.len() });
        }
        let (tool, specifier) = split(text)?;
        let tool = ToolPattern::parse(tool, text)?;
        let specifier = specifier.map(|s| match s {
            Written::Pattern(pattern) => Specifier::new(pattern),
            Written::Literal(literal) => Specifier::new(&escape(literal)),
        });
        Ok(Self { text: text.to_owned(), tool, specifier, origin: None, tier: None, reason: None })
    }

    /// A rule about tool names only, as HIP policies write them: a glob without a specifier.
    pub(crate) fn from_tool_pattern(pattern: &str) -> Result<Self, RuleError> {
        let text = pattern.trim();
        if text.is_empty() {
            return Err(RuleError::Empty);
        }
        if text.len() > MAX_RULE {
            return Err(RuleError::TooLong { length: text.len() });
        }
        let tool = ToolPattern::parse(text, text)?;
        Ok(Self { text: text.to_owned(), tool, specifier: None, origin: None, tier: None, reason: None })
    }

    /// Says where the rule was written, such as `settings.toml:12:3`.
    #[must_use]
    pub fn with_origin(mut self, origin: impl Into<String>) -> Self {
        self.origin = Some(origin.into());
        self
    }

    /// Says which tier of the configuration it belongs to, such as `user`.
    #[must_use]
    pub fn with_tier(mut self, tier: impl Into<String>) -> Self {
        self.tier = Some(tier.into());
        self
    }

    /// Says why the rule exists; shown when it decides.
    #[must_use]
    pub fn with_reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }

    /// The rule as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where it was written.
    pub fn origin(&self) -> Option<&str> {
        self.origin.as_deref()
    }

    /// The tier it belongs to.
    pub fn tier(&self) -> Option<&str> {
        self.tier.as_deref()
    }

    /// Why it exists.
    pub fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Whether it looks at more than the tool.
    pub fn has_specifier(&self) -> bool {
        self.specifier.is_some()
    }

    /// The spelling in which the rule is saved today; the same rule, and stable under repetition.
    pub fn normalised(&self) -> String {
        let Ok((tool, specifier)) = split(&self.text) else { return self.text.clone() };
        let tool = match &self.tool {
            ToolPattern::Family(family) => family.name(),
            _ => tool,
        };
        match specifier {
            None => tool.to_owned(),
            Some(Written::Literal(literal)) => format!("{tool}({})", escape(literal)),
            Some(Written::Pattern(pattern)) => match command_prefix(pattern) {
                Some(prefix) if self.tool == ToolPattern::Family(Family::Bash) => {
                    format!("{tool}({prefix}:*)")
                }
                _ => format!("{tool}({pattern})"),
            },
        }
    }
}

enum Written<'a> {
    Pattern(&'a str),
    /// The older `tool=literal`.
    Literal(&'a str),
}

fn split(text: &str) -> Result<(&str, Option<Written<'_>>), RuleError> {
    let parenthesis = text.find('(');
    if let Some(at) = text.find('=').filter(|at| parenthesis.is_none_or(|p| *at < p)) {
        let literal = text[at + 1..].trim();
        if literal.is_empty() {
            return Err(RuleError::EmptySpecifier { rule: text.to_owned(), position: at });
        }
        return Ok((&text[..at], Some(Written::Literal(literal))));
    }
    let Some(position) = parenthesis else { return Ok((text, None)) };
    let inner = text[position + 1..].strip_suffix(')');
    let escaped = |inner: &str| inner.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 1;
    match inner.map(str::trim) {
        Some(inner) if !escaped(inner) => {
            if inner.is_empty() {
                return Err(RuleError::EmptySpecifier { rule: text.to_owned(), position });
            }
            Ok((&text[..position], Some(Written::Pattern(inner))))
        }
        _ => Err(RuleError::Unclosed { rule: text.to_owned(), position }),
    }
}
