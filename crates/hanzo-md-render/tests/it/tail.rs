//! The live region: what is not final yet.

use std::fmt::Write;

use hanzo_md_render::{MdRenderer, Modifiers, Options};

use crate::support::{options, texts};

fn tail_of(markdown: &str, lines: usize) -> Vec<String> {
    let mut renderer = MdRenderer::new(options(40));
    renderer.render_chunk(markdown);
    texts(&renderer.tail(lines))
}

#[test]
fn blocks_are_committed_when_the_next_one_cannot_change_them() {
    let mut renderer = MdRenderer::new(options(40));
    let mut step = |chunk: &str| texts(&renderer.render_chunk(chunk));
    assert!(step("a paragraph\n").is_empty(), "it may become a heading");
    assert_eq!(step("\n"), ["a paragraph"]);
    assert_eq!(step("# heading\n"), ["", "# heading"]);
    assert!(step("- one\n").is_empty());
    assert_eq!(step("- two\n"), ["", "• one"]);
    assert_eq!(step("\n- three\n"), ["• two"]);
    assert_eq!(step("after\n\n"), Vec::<String>::new(), "a lazy line and a blank one: the list is open");
    assert_eq!(step("para\n"), ["", "• three after"]);
    assert_eq!(step("| a |\n|---|\n| b |\n"), Vec::<String>::new(), "a table may get more rows");
    assert!(step("```\ncode\n").len() >= 3);
    assert_eq!(step("```\n"), ["", "code"]);
}

#[test]
fn numbers_go_on_over_commits() {
    let mut renderer = MdRenderer::new(options(40));
    let mut lines = texts(&renderer.render_chunk("3. a\n3. b\n"));
    lines.extend(texts(&renderer.render_chunk("9. c\n")));
    lines.extend(texts(&renderer.render_chunk("1) other\n")));
    lines.extend(texts(&renderer.flush()));
    assert_eq!(lines, ["3. a", "4. b", "5. c", "", "1. other"]);
}

#[test]
fn open_emphasis_is_closed_in_the_tail_only() {
    let mut renderer = MdRenderer::new(options(40));
    renderer.render_chunk("Hello **wor");
    let tail = renderer.tail(5);
    assert_eq!(tail[0].text(), "Hello wor");
    assert!(tail[0].spans[1].style.modifiers.contains(Modifiers::BOLD));
    assert_eq!(texts(&renderer.flush()), ["Hello **wor"]);
}

#[test]
fn half_constructs_are_not_shown() {
    for (half, shown) in [
        ("text **", vec!["text"]),
        ("see [docs](https://exa", vec!["see docs"]),
        ("text\n--", vec!["text"]),
        ("text\n```", vec!["text"]),
        ("done `co", vec!["done co"]),
        ("\u{1b}[31mred", vec!["red"]),
    ] {
        assert_eq!(tail_of(half, 5), shown, "{half:?}");
    }
}

#[test]
fn an_open_fence_is_shown_plain_and_highlighted_once_on_close() {
    let mut renderer = MdRenderer::new(Options { width: 40, ..Options::default() });
    let mut committed = Vec::new();
    for chunk in ["```rust\n", "fn main() {}\n", "let x"] {
        committed.extend(renderer.render_chunk(chunk));
        renderer.tail(5);
    }
    assert!(committed.is_empty());
    assert_eq!(texts(&renderer.tail(5)), ["fn main() {}", "let x"]);
    assert_eq!(renderer.highlight_passes(), 0);
    let lines = renderer.render_chunk(" = 1;\n```\n");
    assert_eq!(texts(&lines), ["fn main() {}", "let x = 1;"]);
    assert_eq!(renderer.highlight_passes(), usize::from(cfg!(feature = "highlight")));
    assert_eq!(lines[0].spans.len() > 1, cfg!(feature = "highlight"));
    assert!(renderer.tail(5).is_empty());
}

#[test]
fn the_tail_of_a_long_fence_is_its_end() {
    let mut markdown = "```\n".to_owned();
    for line in 0..50_000 {
        let _ = writeln!(markdown, "line {line}");
    }
    assert_eq!(tail_of(&markdown, 3), ["line 49997", "line 49998", "line 49999"]);
}

#[test]
fn the_tail_continues_what_is_committed() {
    let mut renderer = MdRenderer::new(options(40));
    renderer.render_chunk("para\n\n1. a\n2. b\n3. c **d");
    assert_eq!(texts(&renderer.tail(9)), ["2. b", "3. c d"]);
}

#[test]
fn a_list_goes_on_after_an_empty_item_and_a_blank_line() {
    let mut renderer = MdRenderer::new(options(40));
    let mut lines = renderer.render_chunk("2. \n\n1. a\n\npause\n\n1. b\n");
    lines.extend(renderer.flush());
    assert_eq!(texts(&lines), ["2. ", "", "3. a", "", "pause", "", "1. b"]);
}
