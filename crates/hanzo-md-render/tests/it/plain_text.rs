//! The words of the output are the words of the document, compared with what pulldown-cmark makes of the whole of it: this
//! checks that parsing block by block loses and misreads nothing.

use std::fmt::Write;

use hanzo_md_render::{Glyphs, LinkDisplay, Options};
use hanzo_testkit::scale::rounds;
use proptest::prelude::*;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::support::{options, spec, texts, whole};

/// What the renderer adds, and all white space: not part of the comparison.
fn words(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !"•◦▪│─┼#>-*+|:".contains(*c)).collect()
}

/// The text of the document by pulldown-cmark alone, with numbers, addresses and images written as the renderer writes them.
fn expected(markdown: &str) -> String {
    // Blanks on a blank line mean nothing, but pulldown-cmark 0.13.6 reads `    \n\n> \n\t> x` as one quote for them.
    let blank = |line: &&str| line.trim_matches([' ', '\t', '\n']).is_empty();
    let lines = markdown.split_inclusive('\n');
    let markdown: String =
        lines.map(|line| if blank(&line) { line.trim_start_matches([' ', '\t']) } else { line }).collect();
    let extensions = pulldown_cmark::Options::ENABLE_TABLES
        | pulldown_cmark::Options::ENABLE_STRIKETHROUGH
        | pulldown_cmark::Options::ENABLE_TASKLISTS;
    let mut out = String::new();
    let mut numbers: Vec<Option<u64>> = Vec::new();
    let mut images: Vec<String> = Vec::new();
    for event in Parser::new_ext(&markdown, extensions) {
        match event {
            Event::Text(text) | Event::Code(text) | Event::Html(text) | Event::InlineHtml(text) => {
                out.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak => out.push('\n'),
            Event::TaskListMarker(done) => out.push_str(if done { "[x]" } else { "[ ]" }),
            Event::Start(Tag::List(start)) => numbers.push(start),
            Event::End(TagEnd::List(_)) => {
                numbers.pop();
            }
            Event::Start(Tag::Item) => {
                if let Some(Some(number)) = numbers.last_mut() {
                    let _ = write!(out, "{number}. ");
                    *number += 1;
                }
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                out.push_str("[image: ");
                images.push(dest_url.to_string());
            }
            Event::End(TagEnd::Image) => {
                let _ = write!(out, "]({})", images.pop().unwrap());
            }
            _ => {}
        }
    }
    words(&out)
}

fn rendered(markdown: &str) -> String {
    let options = Options { links: LinkDisplay::Hyperlink, glyphs: Glyphs::Unicode, ..options(u16::MAX) };
    words(&texts(&whole(markdown, &options)).join("\n"))
}

#[test]
fn the_spec_examples_have_the_words_pulldown_cmark_finds() {
    let mut compared = 0;
    for example in spec() {
        // A reference before its definition is text here, by design; links without text show their address.
        let by_design = example.markdown.contains("]:") || example.markdown.contains("[](");
        if by_design || example.section == "Raw HTML" {
            continue;
        }
        compared += 1;
        assert_eq!(rendered(&example.markdown), expected(&example.markdown), "example {}", example.number);
    }
    assert!(compared > 530, "{compared} compared");
}

#[test]
fn the_spec_examples_in_one_document_do_too() {
    let document: String = spec()
        .iter()
        .filter(|example| !example.markdown.contains("]:") && !example.markdown.contains("[]("))
        .filter(|example| {
            !["Raw HTML", "HTML blocks", "Fenced code blocks"].contains(&example.section.as_str())
        })
        .flat_map(|example| [example.markdown.clone(), "\n\nend\n\n".to_owned()])
        .collect();
    assert_eq!(rendered(&document), expected(&document));
}

fn blocks() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "\n",
        "\n\n",
        "\n",
        "  ",
        "    ",
        "- ",
        "* ",
        "1. ",
        "2. ",
        "7) ",
        "> ",
        "# ",
        "```",
        "~~~",
        "foo",
        "bar",
        "---",
        "===",
        "<div>",
        "<x>",
        "<!-- c -->",
        "<pre>",
        "</pre>",
        "-",
        "\t",
        "aaa\n",
        "- b\n",
        "  c\n",
    ]);
    prop::collection::vec(piece, 0..25).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(20_000)))]

    #[test]
    fn random_blocks_have_the_words_pulldown_cmark_finds(text in blocks()) {
        prop_assert_eq!(rendered(&text), expected(&text));
    }
}
