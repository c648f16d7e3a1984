//! PKCE (RFC 7636): the client keeps a secret, shows its hash when it asks for an authorization code, and the secret
//! itself when it exchanges the code, so that whoever intercepts the code cannot use it.
//!
//! Only the `S256` method exists here. With `plain` the request shows the secret itself, and OAuth 2.1 forbids it.

use std::fmt;
use std::hint::black_box;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The value of `code_challenge_method`.
pub const METHOD: &str = "S256";

/// The shortest verifier RFC 7636 §4.1 allows.
pub const MIN_VERIFIER_LENGTH: usize = 43;
/// The longest.
pub const MAX_VERIFIER_LENGTH: usize = 128;

/// As much as RFC 7636 §7.1 asks for; base64url makes 43 characters of it.
const RANDOM_BYTES: usize = 32;

/// Why there is no PKCE pair. The text never repeats the verifier.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PkceError {
    /// The verifier has fewer than 43 characters.
    #[error("a PKCE verifier of {length} characters is too short: it has 43 to 128")]
    TooShort {
        /// How many it has.
        length: usize,
    },
    /// The verifier has more than 128 characters.
    #[error("a PKCE verifier of {length} characters is too long: it has 43 to 128")]
    TooLong {
        /// How many it has.
        length: usize,
    },
    /// The verifier holds a character that a URI would have to escape.
    #[error("character {position} of the PKCE verifier is not a letter, a digit or one of `-._~`")]
    Character {
        /// The first such character's place, counted from 1.
        position: usize,
    },
    /// The operating system gave no random bytes.
    #[error("cannot make a PKCE verifier: the operating system gave no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}

/// A verifier and the challenge that belongs to it. Not comparable with `==`, which would take its time by the
/// secret; see [`verify`].
#[derive(Clone)]
pub struct PkceChallenge {
    verifier: String,
    challenge: String,
}

impl PkceChallenge {
    /// A new pair, from 32 bytes of the operating system's randomness.
    pub fn generate() -> Result<Self, PkceError> {
        let mut bytes = [0; RANDOM_BYTES];
        getrandom::fill(&mut bytes)?;
        Self::from_verifier(&URL_SAFE_NO_PAD.encode(bytes))
    }

    /// The pair of a verifier that exists already: 43 to 128 characters of `[A-Za-z0-9-._~]`. Characters are checked
    /// before the length, so that the length is the same in every encoding.
    pub fn from_verifier(verifier: &str) -> Result<Self, PkceError> {
        check(verifier)?;
        Ok(Self { verifier: verifier.to_owned(), challenge: challenge_of(verifier) })
    }

    /// The secret, for the token exchange (`code_verifier`) and nothing else.
    pub fn verifier(&self) -> &str {
        &self.verifier
    }

    /// What the authorization request shows (`code_challenge`).
    pub fn challenge(&self) -> &str {
        &self.challenge
    }
}

impl fmt::Debug for PkceChallenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PkceChallenge")
            .field("verifier", &format_args!("***"))
            .field("challenge", &self.challenge)
            .finish()
    }
}

/// Whether `verifier` is valid and `challenge` is its challenge. How long the comparison takes does not depend on
/// where the two differ.
pub fn verify(verifier: &str, challenge: &str) -> bool {
    check(verifier).is_ok() && same(challenge_of(verifier).as_bytes(), challenge.as_bytes())
}

fn check(verifier: &str) -> Result<(), PkceError> {
    let is_unreserved = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_' | '~');
    if let Some(index) = verifier.chars().position(|c| !is_unreserved(c)) {
        return Err(PkceError::Character { position: index + 1 });
    }
    match verifier.len() {
        length @ ..MIN_VERIFIER_LENGTH => Err(PkceError::TooShort { length }),
        MIN_VERIFIER_LENGTH..=MAX_VERIFIER_LENGTH => Ok(()),
        length => Err(PkceError::TooLong { length }),
    }
}

fn challenge_of(verifier: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(verifier))
}

fn same(a: &[u8], b: &[u8]) -> bool {
    let difference = a.iter().zip(b).fold(0, |seen, (a, b)| black_box(seen | (a ^ b)));
    a.len() == b.len() && difference == 0
}

#[cfg(test)]
mod tests {
    use super::same;

    #[test]
    fn comparison_looks_at_every_byte_and_at_the_length() {
        assert!(same(b"abc", b"abc") && same(b"", b""));
        for other in [&b"xbc"[..], b"axc", b"abx", b"ab", b"abcd", b""] {
            assert!(!same(b"abc", other), "{other:?}");
        }
    }
}
