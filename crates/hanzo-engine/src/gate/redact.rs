//! Takes secrets out of text that is kept: the audit records what a call acted on, and a command line may hold a token.

/// What stands in the place of a secret.
const MASK: &str = "***";

/// Beginnings of well-known tokens.
const TOKEN_STARTS: &[&str] = &[
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xapp-",
    "AKIA",
    "ASIA",
    "AIza",
    "eyJ",
    "hf_",
    "npm_",
    "pypi-",
    "dop_v1_",
    "shpat_",
    "SG.",
    "ya29.",
];

/// Parts of names whose values are secret.
const SECRET_NAMES: &[&str] = &[
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "api_key",
    "api-key",
    "accesskey",
    "access_key",
    "access-key",
    "private_key",
    "private-key",
    "credential",
    "authorization",
    "bearer",
    "cookie",
    "x-key",
    "pwd",
];

/// `text` with what looks like a secret masked. It errs on the side of masking: what is kept is for finding a call again.
pub(super) fn redact(text: String) -> String {
    if cannot_hold_a_secret(&text) { text } else { masked(&text) }
}

/// Whether no rule below could find anything: no word is long enough for a token, and none names or announces a value. This is what
/// nearly every text is.
fn cannot_hold_a_secret(text: &str) -> bool {
    const SHORTEST_TOKEN: usize = 16;
    let mut length = 0;
    for byte in text.bytes() {
        match byte {
            b'=' | b':' | b'-' | b'?' => return false,
            b' ' => length = 0,
            _ => length += 1,
        }
        if length >= SHORTEST_TOKEN {
            return false;
        }
    }
    !text.split(' ').any(|word| word.len() >= "bearer".len() && holds_bearer(word))
}

fn holds_bearer(word: &str) -> bool {
    word.as_bytes().windows("bearer".len()).any(|part| part.eq_ignore_ascii_case(b"bearer"))
}

fn masked(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut next_is_secret = false;
    let mut rest = text;
    while !rest.is_empty() {
        let separator = |c: char| c.is_whitespace() || "\"'`,;|&<>(){}".contains(c);
        let word_end = rest.find(separator).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(word_end);
        if !word.is_empty() {
            let scheme = matches!(word.to_ascii_lowercase().as_str(), "bearer" | "basic" | "token");
            if next_is_secret && !scheme && !is_name(word) {
                kept.push_str(MASK);
            } else {
                kept.push_str(&redact_word(word));
            }
            next_is_secret = announces(word) || (next_is_secret && scheme);
        }
        let gap_end = behind.find(|c| !separator(c)).unwrap_or(behind.len());
        kept.push_str(&behind[..gap_end]);
        rest = &behind[gap_end..];
    }
    kept
}

/// Whether the word is a flag of its own rather than the value of the one before.
fn is_name(word: &str) -> bool {
    word.starts_with("--")
}

/// Whether the word says that the next one is a secret: `--password`, `Authorization:`, `-u` is too common for that.
fn announces(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    let named = |text: &str| SECRET_NAMES.iter().any(|name| text.contains(name));
    lower == "bearer"
        || (lower.starts_with('-') && !lower.contains('=') && named(&lower))
        || (lower.ends_with(':') && named(&lower))
}

fn redact_word(word: &str) -> String {
    let word = without_password(word);
    if let Some((address, query)) = word.split_once('?').filter(|_| word.contains("://")) {
        return format!("{}?{}", redact_word(address), redact_word(query));
    }
    // `KEY=value`, `--key=value`, `?key=value`: each part by itself, since a query has several.
    if let Some((name, value)) = word.split_once(['=', ':']).filter(|(_, value)| !value.starts_with("//")) {
        let separator = &word[name.len()..=name.len()];
        let lower = name.to_ascii_lowercase();
        let secret = !value.is_empty()
            && (SECRET_NAMES.iter().any(|secret| lower.contains(secret)) || lower.ends_with("key"));
        let value = if secret { MASK.to_owned() } else { redact_word(value) };
        return format!("{name}{separator}{value}");
    }
    if is_token(&word) { MASK.to_owned() } else { word }
}

fn is_token(word: &str) -> bool {
    let known = TOKEN_STARTS.iter().any(|start| word.starts_with(start)) && word.len() >= 16;
    let has = |test: fn(&char) -> bool| word.chars().any(|c| test(&c));
    let random = word.len() >= 32
        && word.chars().all(|c| c.is_ascii_alphanumeric() || "+/=_-".contains(c))
        && !word.contains('/')
        && has(char::is_ascii_digit)
        && has(char::is_ascii_uppercase)
        && has(char::is_ascii_lowercase);
    known || random
}

/// `https://user:secret@host` without the secret.
fn without_password(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    let Some((user, _)) = authority.rsplit_once('@') else { return word.to_owned() };
    let behind = &rest[user.len()..];
    let user = user.split_once(':').map_or_else(|| redact_word(user), |(name, _)| format!("{name}:{MASK}"));
    format!("{scheme}://{user}{behind}")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const CANARY: &str = "c4naryS3cretValueThatMustNotAppear0000";

    #[test]
    fn secrets_in_their_usual_places_are_masked() {
        for text in [
            format!("curl -H 'Authorization: Bearer {CANARY}' https://x"),
            format!("curl -H \"X-Api-Key: {CANARY}\" https://x"),
            format!("API_TOKEN={CANARY} ./deploy"),
            format!("deploy --password {CANARY} now"),
            format!("deploy --api-key={CANARY} now"),
            format!("git clone https://me:{CANARY}@host/repo"),
            format!("git clone https://{CANARY}@host/repo"),
            format!("https://host/path?user=me&token={CANARY}&x=1"),
            format!("https://host/path?token={CANARY}"),
            format!("echo {CANARY}"),
            format!("echo sk-{CANARY}"),
            format!("{{\"password\": \"{CANARY}\"}}"),
        ] {
            let kept = redact(text.clone());
            assert!(!kept.contains(CANARY) && kept.contains(MASK), "{text} -> {kept}");
        }
        assert_eq!(redact("login --password hunter2 --verbose".into()), "login --password *** --verbose");
    }

    #[test]
    fn ordinary_text_stays_as_it_is() {
        for text in [
            "cargo test --workspace -- --nocapture",
            "git show 3cea7df0a1b2c3d4e5f60718293a4b5c6d7e8f90",
            "src/main.rs",
            "/home/me/Documents/Projects/VeryLongDirectoryName1234567890/file.rs",
            "https://example.com/a/b?page=2",
            "a\n\tb  c",
            "",
        ] {
            assert_eq!(redact(text.into()), text);
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_kept(text in ".{0,200}") {
            let _ = redact(text);
        }

        #[test]
        fn what_is_kept_without_a_look_would_have_been_kept_with_one(
            words in prop::collection::vec("[a-zA-Z0-9_.,/]{0,17}|[Bb]earer|token|ghp_[a-z0-9]{3,14}|.{0,4}", 0..8),
        ) {
            let text = words.join(" ");
            if cannot_hold_a_secret(&text) {
                prop_assert_eq!(masked(&text), text);
            }
        }
    }
}
