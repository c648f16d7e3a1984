//! Tables line up by the columns a terminal counts, at every width.

use hanzo_testkit::scale::rounds;
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use crate::support::{options, texts, whole};

/// The column of each bar in a line.
fn bars(line: &str) -> Vec<usize> {
    line.char_indices().filter(|(_, c)| matches!(c, '│' | '┼')).map(|(at, _)| line[..at].width()).collect()
}

fn assert_aligned(lines: &[String]) {
    let expected = bars(&lines[0]);
    for line in lines {
        assert_eq!(bars(line), expected, "{lines:#?}");
    }
}

#[test]
fn wide_characters_and_emoji_keep_the_columns() {
    let table =
        "| 名前 | b | c |\n|---|:-:|--:|\n| a | 你好 | 👍🏽 |\n| 👨‍👩‍👧‍👦 | e\u{301} | ｶﾞ |\n| long word | x | ❤️ |\n";
    for width in [30, 40, 80, 200] {
        let lines = texts(&whole(table, &options(width)));
        assert!(lines[0].contains('│'));
        assert_aligned(&lines);
    }
}

#[test]
fn cells_follow_the_alignment_of_their_column() {
    let lines = texts(&whole(
        "| l | c | r |\n|:--|:-:|--:|\n| 12345 | 12345 | 12345 |\n| a | b | c |\n",
        &options(80),
    ));
    assert_eq!(
        lines,
        ["l     │   c   │     r", "──────┼───────┼──────", "12345 │ 12345 │ 12345", "a     │   b   │     c"]
    );
}

#[test]
fn cells_wrap_when_the_table_is_too_wide() {
    let table = "| key | text |\n|---|---|\n| a | one two three four five |\n| b | x |\n";
    let lines = texts(&whole(table, &options(20)));
    assert_eq!(
        lines,
        [
            "key │ text",
            "────┼───────────────",
            "a   │ one two three",
            "    │ four five",
            "────┼───────────────",
            "b   │ x"
        ]
    );
}

#[test]
fn a_table_without_room_becomes_records() {
    let table = "| first | second | third | fourth |\n|---|---|---|---|\n| alpha beta | gamma | delta epsilon | zeta |\n| x | y | z | w |\n";
    let lines = texts(&whole(table, &options(20)));
    assert_eq!(
        lines,
        [
            "first: alpha beta",
            "second: gamma",
            "third: delta",
            "  epsilon",
            "fourth: zeta",
            "────────────────────",
            "first: x",
            "second: y",
            "third: z",
            "fourth: w"
        ]
    );
}

#[test]
fn breaks_and_escaped_pipes_in_cells() {
    let lines = texts(&whole("| a |b|\n|---|---|\n| one<br>two | x \\| y |\n", &options(40)));
    assert_eq!(lines, ["a   │ b", "────┼──────", "one │ x | y", "two │"]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(rounds(20_000)))]

    #[test]
    fn any_cells_line_up(
        cells in prop::collection::vec("[a-z你好世界👍é ]{0,12}", 6),
        width in 20_u16..80,
    ) {
        let table = format!(
            "| h1 | h2 | h3 |\n|---|:-:|--:|\n| {} | {} | {} |\n| {} | {} | {} |\n",
            cells[0], cells[1], cells[2], cells[3], cells[4], cells[5]
        );
        let lines = texts(&whole(&table, &options(width)));
        if lines[0].contains('│') {
            assert_aligned(&lines);
        }
    }
}
