//! What a PKCE pair promises, beyond the vectors.

use std::collections::HashSet;

use hanzo_auth::pkce::{METHOD, PkceChallenge, PkceError, verify};
use proptest::prelude::*;

/// RFC 7636 appendix B.
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

#[test]
fn the_rfcs_own_example_by_the_only_method() {
    let pair = PkceChallenge::from_verifier(VERIFIER).unwrap();
    assert_eq!((pair.verifier(), pair.challenge(), METHOD), (VERIFIER, CHALLENGE, "S256"));
}

#[test]
fn generated_verifiers_are_43_base64url_characters_and_never_the_same() {
    let pairs: Vec<PkceChallenge> = (0..200).map(|_| PkceChallenge::generate().unwrap()).collect();
    let distinct: HashSet<&str> = pairs.iter().map(PkceChallenge::verifier).collect();
    assert_eq!(distinct.len(), pairs.len());
    for pair in &pairs {
        let verifier = pair.verifier();
        assert_eq!(verifier.len(), 43);
        assert!(verifier.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_'), "{verifier}");
        assert!(verify(verifier, pair.challenge()));
    }
    let all: String = distinct.into_iter().collect();
    let used: HashSet<char> = all.chars().collect();
    assert_eq!(used.len(), 64, "all of the alphabet turns up in 8,600 random characters");
}

#[test]
fn the_secret_is_not_in_the_debug_output() {
    let pair = PkceChallenge::from_verifier(VERIFIER).unwrap();
    let shown = format!("{pair:?} {pair:#?}");
    assert!(!shown.contains(VERIFIER) && shown.contains("***") && shown.contains(CHALLENGE), "{shown}");
}

#[test]
fn an_error_says_what_is_wrong_without_repeating_the_secret() {
    let secret = format!("{}=", &VERIFIER[..42]);
    let error = PkceChallenge::from_verifier(&secret).unwrap_err();
    assert_eq!(error, PkceError::Character { position: 43 });
    assert!(!error.to_string().contains(&VERIFIER[..42]), "{error}");
    let error = PkceChallenge::from_verifier(&VERIFIER[..42]).unwrap_err();
    assert_eq!(error.to_string(), "a PKCE verifier of 42 characters is too short: it has 43 to 128");
}

#[test]
fn only_the_right_verifier_fits_a_challenge() {
    assert!(verify(VERIFIER, CHALLENGE));
    let other = VERIFIER.replace('d', "e");
    assert!(!verify(&other, CHALLENGE));
    for wrong in ["", &CHALLENGE[..42], &format!("{CHALLENGE}="), &CHALLENGE.to_lowercase(), VERIFIER] {
        assert!(!verify(VERIFIER, wrong), "{wrong}");
    }
    assert!(
        !verify("short", "-bAHi131ltLqGQEMABu9AJ5lHeLFfo-341XzHrnT9zk"),
        "an invalid verifier fits nothing"
    );
}

proptest! {
    #[test]
    fn exactly_what_the_rfc_allows_is_accepted(text in prop_oneof!["[A-Za-z0-9._~-]{40,131}", "\\PC{40,60}"]) {
        let allowed = text.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c));
        let valid = allowed && (43..=128).contains(&text.len());
        prop_assert_eq!(PkceChallenge::from_verifier(&text).is_ok(), valid);
    }

    #[test]
    fn a_challenge_with_one_character_changed_does_not_fit(at in 0_usize..43, with in "[A-Za-z0-9_-]") {
        let mut changed = CHALLENGE.to_owned();
        changed.replace_range(at..=at, &with);
        prop_assert_eq!(verify(VERIFIER, &changed), changed == CHALLENGE);
    }
}
