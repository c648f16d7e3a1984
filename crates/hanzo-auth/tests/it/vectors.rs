//! The parity vectors: every platform makes the same challenge of a verifier, and refuses the same verifiers.

use hanzo_auth::pkce::{PkceChallenge, PkceError, verify};
use hanzo_testkit::vectors;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(rename = "note")]
    _note: Option<String>,
    verifier: String,
    challenge: Option<String>,
    error: Option<String>,
}

#[test]
fn challenges_and_refusals_are_those_of_the_vectors() {
    for Case { name, verifier, challenge, error, .. } in &vectors::cases("oauth-pkce.json", 15) {
        let pair = PkceChallenge::from_verifier(verifier);
        let fault = pair.as_ref().err().map(|fault| match fault {
            PkceError::Character { .. } => "character",
            PkceError::TooShort { .. } => "tooShort",
            PkceError::TooLong { .. } => "tooLong",
            other => panic!("{name}: {other}"),
        });
        assert_eq!(fault, error.as_deref(), "{name}");
        assert_eq!(pair.ok().map(|pair| pair.challenge().to_owned()), *challenge, "{name}");
        if let Some(challenge) = challenge {
            assert!(verify(verifier, challenge), "{name}");
        }
    }
}
