//! Taking secrets and terminal tricks out of text that others wrote: vendors' error messages, and what cassettes keep.

use std::borrow::Cow;

/// What stands in for a secret.
pub(crate) const MASK: &str = "***";

/// How credentials of well-known vendors begin.
const PREFIXES: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "xai-",
    "gsk_",
    "AIza",
    "ya29.",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "hf_",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "ASIA",
    "eyJ",
    "nvapi-",
    "r8_",
    "fw_",
    "csk-",
    "tgp_",
];
/// Shorter than this is a word, not a credential.
const SHORTEST_CREDENTIAL: usize = 16;
/// A literal secret shorter than this would be found in ordinary text.
const SHORTEST_LITERAL: usize = 4;
/// How much of a vendor's message a person is shown.
const LONGEST_MESSAGE: usize = 600;

/// Takes secrets out of text: those it was given, and what looks like one.
#[derive(Clone, Default)]
pub(crate) struct Redactor {
    literals: Vec<String>,
}

impl Redactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        let mut literals: Vec<String> = Vec::new();
        for secret in secrets {
            let secret = secret.as_ref().trim();
            let bare = secret.strip_prefix("Bearer ").unwrap_or(secret);
            for form in [bare.to_owned(), json_form(bare)] {
                if form.len() >= SHORTEST_LITERAL && !literals.contains(&form) {
                    literals.push(form);
                }
            }
        }
        // A secret that is part of another must not spoil the search for the longer one.
        literals.sort_by_key(|literal| std::cmp::Reverse(literal.len()));
        Self { literals }
    }

    /// `text` without secrets.
    pub(crate) fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut cleaned = Cow::Borrowed(text);
        for literal in &self.literals {
            if cleaned.contains(literal.as_str()) {
                cleaned = Cow::Owned(cleaned.replace(literal.as_str(), MASK));
            }
        }
        match without_credentials(&cleaned) {
            Some(changed) => Cow::Owned(changed),
            None => cleaned,
        }
    }

    /// `text` as a person may be shown it: one line, no control characters, no secrets, not too long.
    pub(crate) fn message(&self, text: &str) -> String {
        let mut shown = String::new();
        let mut gap = false;
        for (count, character) in self.clean(text).trim().chars().enumerate() {
            if count >= LONGEST_MESSAGE {
                shown.push('…');
                break;
            }
            if character.is_whitespace() {
                gap = true;
            } else if !is_control(character) {
                if std::mem::take(&mut gap) && !shown.is_empty() {
                    shown.push(' ');
                }
                shown.push(character);
            }
        }
        shown
    }
}

impl Redactor {
    /// Like [`message`](Self::message), for text of ours that may end in a hint on a line of its own.
    pub(crate) fn message_with_hint(&self, text: &str) -> String {
        match text.split_once("\n\nhint: ") {
            Some((message, hint)) => format!("{}\n\nhint: {}", self.message(message), self.message(hint)),
            None => self.message(text),
        }
    }
}

/// A secret as it looks inside JSON text.
fn json_form(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Control characters, and those that reorder what follows on a screen.
fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

fn is_credential_character(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.' | '+' | '/' | '=' | '~')
}

/// The text with everything replaced that looks like a credential, or `None` when nothing does.
fn without_credentials(text: &str) -> Option<String> {
    let mut cleaned: Option<String> = None;
    let mut copied = 0;
    let mut after_scheme = false;
    let mut rest = 0;
    while let Some(start) = text[rest..].find(is_credential_character).map(|at| rest + at) {
        let end = text[start..].find(|c| !is_credential_character(c)).map_or(text.len(), |at| start + at);
        let word = &text[start..end];
        // A path or a URL ends in what may be a credential; the part after the last `=` or `/` is looked at too.
        let tail_start = word.rfind(['/', '=']).map_or(start, |at| start + at + 1);
        let secret_start = if (after_scheme && word.len() >= 8) || is_credential(word) {
            Some(start)
        } else if is_credential(&text[tail_start..end]) {
            Some(tail_start)
        } else {
            None
        };
        if let Some(secret_start) = secret_start {
            let into = cleaned.get_or_insert_default();
            into.push_str(&text[copied..secret_start]);
            into.push_str(MASK);
            copied = end;
        }
        after_scheme = ["bearer", "authorization", "x-api-key", "api-key", "api_key"]
            .iter()
            .any(|scheme| word.eq_ignore_ascii_case(scheme));
        rest = end;
    }
    let mut cleaned = cleaned?;
    cleaned.push_str(&text[copied..]);
    Some(cleaned)
}

fn is_credential(word: &str) -> bool {
    word.len() >= SHORTEST_CREDENTIAL
        && PREFIXES.iter().any(|prefix| word.starts_with(prefix))
        // `sk-` also begins ordinary hyphenated words; a credential has a digit or a capital in it.
        && word.bytes().skip(3).any(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// A URL without user, password and query, for messages.
pub(crate) fn without_userinfo(url: &str) -> String {
    let bare = url.split(['?', '#']).next().unwrap_or_default();
    match bare.split_once("://") {
        Some((scheme, rest)) => {
            let authority = rest.find('/').unwrap_or(rest.len());
            let host = rest[..authority].rfind('@').map_or(0, |at| at + 1);
            format!("{scheme}://{}", &rest[host..])
        }
        None => bare.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn given_secrets_and_what_looks_like_one_are_taken_out() {
        let redactor = Redactor::new(["hunter2-long\"quote", "Bearer abcdef"]);
        for (text, expected) in [
            (r#"x hunter2-long"quote y"#, "x *** y"),
            (r#"{"k":"hunter2-long\"quote"}"#, r#"{"k":"***"}"#),
            ("the abcdef", "the ***"),
            (
                "Incorrect API key provided: sk-proj-AbCd1234efgh5678. Find",
                "Incorrect API key provided: *** Find",
            ),
            ("Authorization: Bearer something-long", "Authorization: Bearer ***"),
            ("x-api-key: 0123456789", "x-api-key: ***"),
            ("https://h/?key=AIzaSyD4567890qrstuv", "https://h/?key=***"),
            ("a sk-learn-based-pipeline", "a sk-learn-based-pipeline"),
            ("nothing here", "nothing here"),
            ("ünïcode sk-ant-api03-0123456789ABCDEF ✓", "ünïcode *** ✓"),
        ] {
            assert_eq!(redactor.clean(text), expected, "{text}");
        }
    }

    #[test]
    fn a_message_is_one_short_line_that_cannot_move_the_cursor() {
        let redactor = Redactor::default();
        assert_eq!(redactor.message("  a\n\n\tb\u{1b}[2J\u{202e}c\u{0}  "), "a b[2Jc");
        let long = redactor.message(&"x".repeat(100_000));
        assert!(long.chars().count() <= LONGEST_MESSAGE + 1 && long.ends_with('…'));
    }

    #[test]
    fn a_url_is_shown_without_its_secrets() {
        assert_eq!(without_userinfo("https://me:pw@host/v1?key=x#y"), "https://host/v1");
        assert_eq!(without_userinfo("nonsense"), "nonsense");
    }
}
