//! What a document cannot do: steer the terminal, hide where a link leads, break the layout.

use hanzo_md_render::{LinkDisplay, Options, ansi};
use hanzo_testkit::scale::rounds;
use proptest::prelude::*;

use crate::support::{options, texts, whole};

fn lines(markdown: &str, width: u16) -> Vec<String> {
    texts(&whole(markdown, &options(width)))
}

#[test]
fn escape_sequences_do_not_reach_the_screen() {
    for (dirty, clean) in [
        ("a \u{1b}[31mred\u{1b}[0m", "a red"),
        ("a &#27;[2J b", "a [2J b"),
        ("a &#x1b;]0;title&#7; b", "a ]0;title b"),
        ("`\u{1b}]52;c;eA==\u{7}code`", "code"),
        ("[x](<http://a/\u{1b}[31mb>)", "x (http://a/b)"),
        ("user\u{202e}gpj.exe", "user<U+202E>gpj.exe"),
        ("| a\u{7} |\n|---|", "a"),
    ] {
        assert_eq!(lines(dirty, 80)[0], clean, "{dirty:?}");
    }
    assert_eq!(lines("```rust\nlet x\u{1b}[5m = 1;\n```\n", 80), ["let x = 1;"]);
    assert_eq!(lines("<div>\u{1b}[5m\n</div>", 80), ["<div>", "</div>"]);
}

#[test]
fn a_link_that_claims_another_address_shows_the_true_one() {
    let options = Options { links: LinkDisplay::Hyperlink, ..options(80) };
    let shown = |markdown| texts(&whole(markdown, &options))[0].clone();
    assert_eq!(shown("[https://bank.com](https://evil.com)"), "https://bank.com (https://evil.com)");
    assert_eq!(shown("[docs](https://a.b)"), "docs");
    assert_eq!(shown("[https://a.b](https://a.b)"), "https://a.b");
}

#[test]
fn html_is_shown_as_it_was_written() {
    assert_eq!(lines("a <b onclick='x'>b</b>", 80), ["a <b onclick='x'>b</b>"]);
    assert_eq!(lines("<script>\nalert(1)\n\n</script>", 80), ["<script>", "alert(1)", "", "</script>"]);
}

#[test]
fn deep_nesting_ends_and_fits() {
    for text in [
        "> ".repeat(3000) + "x",
        "- ".repeat(3000) + "x",
        "1. ".repeat(300) + "x",
        "*a ".repeat(3000),
        "[".repeat(3000),
    ] {
        for width in [1, 20, 80] {
            let lines = whole(&text, &options(width));
            assert!(lines.iter().all(|line| line.width() <= usize::from(width).max(2)));
        }
    }
}

#[test]
fn emphasis_before_wide_punctuation_is_bold() {
    let lines = whole("**重要，**然后", &options(40));
    let spans: Vec<(&str, bool)> = lines[0]
        .spans
        .iter()
        .map(|span| (span.text.as_str(), span.style.modifiers.contains(hanzo_md_render::Modifiers::BOLD)))
        .collect();
    assert_eq!(spans, [("重要，", true), ("然后", false)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(20_000)))]

    #[test]
    fn no_control_character_comes_out_and_no_line_is_too_wide(text in "(?s).{0,200}", width in 1_u16..80) {
        let lines = whole(&text, &options(width));
        for line in &lines {
            prop_assert!(!line.text().chars().any(char::is_control), "{:?}", line);
            prop_assert!(line.width() <= usize::from(width).max(2), "{} > {width}: {:?}", line.width(), line);
        }
        let plain = ansi::render(&lines, ansi::Escapes::Plain, ansi::Hyperlinks::Osc8);
        prop_assert_eq!(plain.find('\u{1b}'), None);
    }
}
