//! Any split of the input into chunks gives the same final output.

use hanzo_md_render::{MdRenderer, Options};
use hanzo_testkit::scale::rounds;
use proptest::prelude::*;

use crate::support::{Dice, FEATURES, in_chunks, options, spec, texts, whole};

#[test]
fn the_spec_examples_come_out_the_same_byte_by_byte_and_in_random_chunks() {
    for example in spec() {
        let text = example.markdown.as_bytes();
        let options = options(40);
        let expected = whole(&example.markdown, &options);
        let every: Vec<usize> = (0..text.len()).collect();
        assert_eq!(in_chunks(text, &every, &options), expected, "example {} byte by byte", example.number);
        let mut dice = Dice::new(u64::from(example.number));
        for _ in 0..rounds(200) {
            let cuts = dice.cuts(text.len());
            assert_eq!(
                in_chunks(text, &cuts, &options),
                expected,
                "example {} cut at {cuts:?}",
                example.number
            );
        }
    }
}

#[test]
fn the_spec_examples_in_one_document_come_out_the_same() {
    let document: String =
        spec().iter().flat_map(|example| [example.markdown.clone(), "\n\n".to_owned()]).collect();
    let options = options(60);
    let expected = whole(&document, &options);
    assert!(expected.len() > 2000);
    let mut dice = Dice::new(7);
    for size in [1, 2, 3, 7, 16, 64, 1000] {
        let cuts: Vec<usize> = (0..document.len()).step_by(size).collect();
        assert_eq!(in_chunks(document.as_bytes(), &cuts, &options), expected, "chunks of {size}");
        let cuts = dice.cuts(document.len());
        assert_eq!(in_chunks(document.as_bytes(), &cuts, &options), expected, "cut at {cuts:?}");
    }
}

/// With highlighting, and with each kind of line end.
#[test]
fn every_single_cut_of_the_feature_document_gives_the_same_lines() {
    let options = Options { width: 50, ..Options::default() };
    for line_end in ["\n", "\r\n", "\r"] {
        let mut document = FEATURES.replace('\n', line_end);
        document.push('\n');
        let expected = whole(&document, &options);
        assert_eq!(texts(&expected), texts(&whole(FEATURES, &options)), "{line_end:?}");
        let every: Vec<usize> = (0..document.len()).collect();
        assert_eq!(in_chunks(document.as_bytes(), &every, &options), expected);
        let mut dice = Dice::new(3);
        for _ in 0..rounds(200) {
            let cuts = dice.cuts(document.len());
            assert_eq!(in_chunks(document.as_bytes(), &cuts, &options), expected, "cut at {cuts:?}");
        }
    }
}

#[test]
fn showing_tails_changes_nothing() {
    let options = options(50);
    let mut renderer = MdRenderer::new(options.clone());
    let mut lines = Vec::new();
    for chunk in FEATURES.as_bytes().chunks(5) {
        lines.extend(renderer.render_bytes(chunk));
        assert!(renderer.tail(8).len() <= 8);
    }
    lines.extend(renderer.flush());
    assert_eq!(lines, whole(FEATURES, &options));
}

#[test]
fn a_new_width_gives_what_that_width_would_have_given() {
    let mut renderer = MdRenderer::new(Options { width: 80, ..Options::default() });
    let (first, second) = FEATURES.split_at(FEATURES.find("lazily").unwrap());
    renderer.render_chunk(first);
    let passes = renderer.highlight_passes();
    let mut lines = renderer.relayout(33);
    assert_eq!(renderer.highlight_passes(), passes, "code was highlighted again for a new width");
    lines.extend(renderer.render_chunk(second));
    lines.extend(renderer.flush());
    let expected = whole(FEATURES, &Options { width: 33, ..Options::default() });
    assert_eq!(lines, expected);
    assert_eq!(renderer.relayout(33), expected, "after the end, too");
}

#[test]
fn text_after_a_flush_is_a_new_block() {
    let mut renderer = MdRenderer::new(options(40));
    let mut lines = renderer.render_chunk("```\nopen fence");
    lines.extend(renderer.flush());
    lines.extend(renderer.render_chunk("after\n"));
    lines.extend(renderer.flush());
    assert_eq!(texts(&lines), ["open fence", "", "after"]);
    assert_eq!(renderer.relayout(40), lines);
}

/// Pieces that are likely to matter, put together at random.
fn markdown() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "\n",
            "\n\n",
            "\r\n",
            "\r",
            " ",
            "  ",
            "    ",
            "\t",
            "- ",
            "* ",
            "+ ",
            "1. ",
            "2) ",
            "> ",
            ">",
            "# ",
            "## ",
            "```",
            "```rust\n",
            "~~~",
            "**",
            "*",
            "_",
            "~~",
            "`",
            "``",
            "| a | b |\n",
            "|---|:-:|\n",
            "|",
            "---",
            "===",
            "***",
            "[a](b)",
            "[a]: /u\n",
            "[a]",
            "![i](j)",
            "[^1]",
            "[^1]: ",
            "<div>",
            "<x>",
            "<!--",
            "-->",
            "<pre>",
            "</pre>",
            "\\",
            "&amp;",
            "&#27;",
            "foo",
            "bar baz",
            "重要，",
            "然后",
            "👨‍👩‍👧‍👦",
            "e\u{301}",
            "https://a.b/c",
            "[ ] ",
            "[x] ",
            "\u{1b}[31m",
            "\u{202e}",
            "\0",
            "  \n",
            "\\\n",
        ])
        .prop_map(str::to_owned),
        "[ -~]{0,6}",
        ".{0,3}",
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(20_000)))]

    #[test]
    fn any_text_in_any_chunks_and_width(text in markdown(), width in 1_u16..120, seed in any::<u64>()) {
        let options = options(width);
        let expected = whole(&text, &options);
        let mut dice = Dice::new(seed);
        let cuts = dice.cuts(text.len());
        prop_assert_eq!(in_chunks(text.as_bytes(), &cuts, &options), expected, "cut at {:?}", cuts);
    }

    #[test]
    fn any_bytes_in_any_chunks(bytes in prop::collection::vec(any::<u8>(), 0..200), seed in any::<u64>()) {
        let options = options(30);
        let expected = in_chunks(&bytes, &[], &options);
        let mut dice = Dice::new(seed);
        let cuts = dice.cuts(bytes.len());
        prop_assert_eq!(in_chunks(&bytes, &cuts, &options), expected.clone());
        prop_assert_eq!(whole(&String::from_utf8_lossy(&bytes), &options), expected);
    }

    #[test]
    fn no_tail_panics(text in markdown(), width in 1_u16..100, lines in 0_usize..12) {
        let mut renderer = MdRenderer::new(options(width));
        for c in text.chars() {
            renderer.render_chunk(c.encode_utf8(&mut [0; 4]));
            prop_assert!(renderer.tail(lines).len() <= lines);
        }
        renderer.relayout(width / 2 + 1);
        renderer.flush();
        prop_assert!(renderer.tail(lines).is_empty());
    }
}
