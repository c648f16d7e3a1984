//! Laws that hold for every input.

use hanzo_permissions::{Basis, Call, Decision, Policy, Rule, offers};
use hanzo_testkit::scale::rounds;
use proptest::prelude::*;
use serde_json::{Value, json};

const RULES: &[&str] = &[
    "Bash",
    "Bash(git status:*)",
    "Bash(rm -rf*)",
    "Bash(echo *)",
    "Bash(*)",
    "Bash(git push:*)",
    "Edit",
    "Edit(docs/**)",
    "Edit(*.md)",
    "Read(secret/**)",
    "Net(docs.rs)",
    "Mcp(a/*)",
    "mcp__*",
    "*",
    "fs",
    "fs.write",
    "bash=ls",
    "Edit(/etc/**)",
    "Bash(*a*b)",
];

fn rules() -> impl Strategy<Value = Vec<Rule>> {
    proptest::collection::vec(proptest::sample::select(RULES), 0..4)
        .prop_map(|texts| texts.into_iter().map(|text| Rule::parse(text).expect("a rule")).collect())
}

fn policies() -> impl Strategy<Value = Policy> {
    let mode = proptest::sample::select(vec![Decision::Allow, Decision::Ask, Decision::Deny]);
    (mode, rules(), rules(), rules()).prop_map(|(mode, allow, ask, deny)| Policy { mode, allow, ask, deny })
}

fn commands() -> impl Strategy<Value = String> {
    let piece = proptest::sample::select(vec![
        "git",
        "status",
        "rm",
        "-rf",
        "-r",
        "-f",
        "echo",
        "x",
        "'",
        "\"",
        " ",
        " ",
        " ",
        ";",
        "&&",
        "|",
        "&",
        "\n",
        "$(",
        ")",
        "`",
        "$x",
        ">",
        "<",
        "\\",
        "{",
        "}",
        "sudo",
        "env",
        "bash -c ",
        "xargs",
        "find . -exec ",
        "#",
        "*",
        "~",
        "=",
        "2>&1",
        "<<EOF\n",
        "EOF",
        "(",
        "[[",
        "if ",
        "é",
        "\r",
    ]);
    prop_oneof![proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat()), any::<String>(),]
}

fn calls() -> impl Strategy<Value = (String, Value)> {
    let paths = prop_oneof![any::<String>(), "(\\.\\./|[a-c]/|docs/|file:///|%2e|/)*[a-z.]{0,5}"];
    prop_oneof![
        commands().prop_map(|c| ("proc.exec".to_owned(), json!({ "command": c }))),
        proptest::collection::vec(commands(), 0..4)
            .prop_map(|c| ("bash".to_owned(), json!({ "command": c }))),
        paths.clone().prop_map(|p| ("fs.write".to_owned(), json!({ "path": p }))),
        paths.prop_map(|p| ("fs.rm".to_owned(), json!({ "uri": p }))),
        any::<String>().prop_map(|p| ("fs.apply_patch".to_owned(), json!({ "patch": p }))),
        any::<String>().prop_map(|p| ("net.request".to_owned(), json!({ "url": p }))),
        "mcp__[ab_]{0,4}__[a-c]{0,3}".prop_map(|t| (t, json!({}))),
        any::<String>().prop_map(|t| (t, json!({ "command": "ls", "path": "a" }))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(30_000), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn explaining_and_deciding_agree(policy in policies(), (tool, args) in calls()) {
        let call = Call::new(&tool, &args).in_workspace("/w");
        let explanation = policy.explain(&call);
        prop_assert_eq!(policy.decide(&call), explanation.decision);
        prop_assert_eq!(explanation.blocked.is_some(), explanation.decision == Decision::Deny);
        prop_assert!(!explanation.to_string().is_empty());
    }

    #[test]
    fn more_denies_and_asks_never_loosen(policy in policies(), extra in rules(), (tool, args) in calls()) {
        let call = Call::new(&tool, &args);
        let before = policy.decide(&call);
        let mut denied = policy.clone();
        denied.deny.extend(extra.clone());
        prop_assert!(denied.decide(&call) >= before);
        let mut asked = policy.clone();
        asked.ask.extend(extra);
        // An ask rule that matches is more specific than a mode of deny and takes its place.
        let alone = Policy { ask: asked.ask.clone(), ..Policy::default() };
        let replaces = policy.mode == Decision::Deny && alone.explain(&call).basis == Basis::Rule;
        prop_assert!(asked.decide(&call) >= before || replaces);
    }

    #[test]
    fn more_allows_never_override_a_deny_or_an_ask(policy in policies(), extra in rules(), (tool, args) in calls()) {
        let call = Call::new(&tool, &args);
        let before = policy.explain(&call);
        let mut wider = policy;
        wider.allow.extend(extra);
        if !before.fallback && before.decision != Decision::Allow {
            prop_assert_eq!(wider.decide(&call), before.decision);
        }
    }

    #[test]
    fn no_rule_text_panics_and_normalising_is_stable(text in "(Bash|Edit|fs\\.write|mcp__\\*|bash|x)?[(=]?[a-z *:\\\\()/~\\[\\]!]{0,12}\\)?") {
        if let Ok(rule) = Rule::parse(&text) {
            let once = rule.normalised();
            let again = Rule::parse(&once).expect("a saved rule loads");
            prop_assert_eq!(again.normalised(), once);
        }
    }

    #[test]
    fn normalising_changes_no_decision(command in commands(), specifier in "[a-z *:\\\\()]{1,10}") {
        if let Ok(rule) = Rule::parse(&format!("Bash({specifier})")) {
            let saved = Rule::parse(&rule.normalised()).expect("a saved rule loads");
            let args = json!({ "command": command });
            let decide = |rule: Rule| Policy { allow: vec![rule], ..Policy::default() }.decide(&Call::new("bash", &args));
            prop_assert_eq!(decide(rule), decide(saved));
        }
    }

    #[test]
    fn every_offer_covers_its_call((tool, args) in calls()) {
        let call = Call::new(&tool, &args).in_workspace("/w");
        for offer in offers(&call) {
            let allow = offer.rules.iter().map(|rule| Rule::parse(rule).expect("an offered rule loads")).collect();
            prop_assert_eq!(Policy { allow, ..Policy::default() }.decide(&call), Decision::Allow);
        }
    }

    #[test]
    fn a_plain_command_is_always_offered_word_for_word(words in proptest::collection::vec("[ -~]{0,8}", 0..5)) {
        let quoted: Vec<String> = words.iter().map(|w| format!("'{}'", w.replace('\'', ""))).collect();
        let args = json!({ "command": format!("ls {}", quoted.join(" ")) });
        let offers = offers(&Call::new("bash", &args));
        prop_assert!(!offers.is_empty(), "{}", args);
    }
}
