//! The inline viewport on an emulated terminal: every line once, whatever happens below it.

use hanzo_tui::terminal::{Reflow, Screen, View};
use proptest::prelude::*;
use ratatui::text::Line;
use std::num::NonZeroU16;

struct Desk {
    screen: Screen<Vec<u8>>,
    terminal: vt100::Parser,
    written: Vec<u8>,
}

impl Desk {
    fn new(width: u16, height: u16) -> Self {
        let cells = |n| NonZeroU16::new(n).unwrap();
        Self {
            screen: Screen::new(Vec::new(), width, height, Reflow::Cuts),
            terminal: vt100::Parser::new(cells(height), cells(width), 100_000),
            written: Vec::new(),
        }
    }

    fn draw(&mut self, lines: &[String], rows: &[String]) {
        let lines: Vec<Line<'_>> = lines.iter().map(|line| Line::raw(line.clone())).collect();
        let view = View {
            rows: rows.iter().map(|row| Line::raw(row.clone())).collect(),
            caret: Some((rows.len().saturating_sub(1), 1)),
        };
        self.screen.draw(&lines, &view).unwrap();
        let bytes = std::mem::take(self.screen.output());
        self.terminal.process(&bytes);
        self.written.extend(bytes);
    }

    fn everything(&mut self) -> Vec<String> {
        let screen = self.terminal.screen_mut();
        let height = usize::from(screen.size().0.get());
        let mut lines: Vec<String> = Vec::new();
        let mut above = screen.scrollback_len();
        while above > 0 {
            screen.set_scrollback(above);
            let take = above.min(height);
            lines.extend(screen.rows(0, u16::MAX).take(take));
            above -= take;
        }
        screen.set_scrollback(0);
        lines.extend(screen.rows(0, u16::MAX));
        lines.iter().map(|line| line.trim_end().to_owned()).collect()
    }
}

fn rows(count: usize, tag: &str) -> Vec<String> {
    (0..count).map(|row| format!("{tag} {row}")).collect()
}

#[test]
fn lines_go_into_the_scrollback_once_and_the_viewport_stays_below() {
    let mut desk = Desk::new(40, 12);
    for number in 0..30 {
        desk.draw(&[format!("line {number}.")], &rows(4, "view"));
    }
    let all = desk.everything();
    for number in 0..30 {
        let wanted = format!("line {number}.");
        assert_eq!(all.iter().filter(|line| **line == wanted).count(), 1, "{wanted}\n{}", all.join("\n"));
    }
    assert_eq!(all[all.len() - 4..], ["view 0", "view 1", "view 2", "view 3"]);
    let text = String::from_utf8(desk.written.clone()).unwrap();
    assert!(!text.contains("\x1b[2J") && !text.contains("\x1b[3J") && !text.contains("\x1bc"));
}

#[test]
fn of_a_row_only_what_changed_is_written() {
    let mut desk = Desk::new(80, 24);
    let long = "x".repeat(60);
    desk.draw(&[], &[long.clone(), "› hello".into(), "status".into()]);
    desk.written.clear();
    desk.draw(&[], &[long.clone(), "› hellow".into(), "status".into()]);
    assert!(desk.written.len() < 64, "{} bytes for one letter", desk.written.len());
    desk.written.clear();
    desk.draw(&[], &[long, "› hellow".into(), "status".into()]);
    assert!(desk.written.is_empty(), "nothing changed");
}

#[test]
fn a_line_that_fills_the_width_keeps_its_last_character() {
    let mut desk = Desk::new(10, 6);
    desk.draw(&["0123456789".into()], &["0123456789".into()]);
    desk.draw(&["abcdefghij".into()], &["ABCDEFGHIJ".into()]);
    let all = desk.everything();
    assert_eq!(all[..3], ["0123456789", "abcdefghij", "ABCDEFGHIJ"]);
}

#[test]
fn wide_characters_and_control_characters_do_no_harm() {
    let mut desk = Desk::new(10, 6);
    desk.draw(&["日本\x1b[2J語\x07".into()], &["日本語日本語".into(), "b".into()]);
    let all = desk.everything();
    assert_eq!(all[0], "日本[2J語");
    assert_eq!(all[1], "日本語日本", "cut where the row is full");
    assert_eq!(all[2], "b");
}

#[test]
fn a_viewport_taller_than_the_terminal_shows_its_end() {
    let mut desk = Desk::new(20, 5);
    desk.draw(&["first".into()], &rows(20, "row"));
    desk.draw(&["second".into()], &rows(20, "row"));
    let all = desk.everything();
    assert_eq!(all[all.len() - 4..], ["row 16", "row 17", "row 18", "row 19"]);
    assert_eq!(all.iter().filter(|line| *line == "first").count(), 1);
    assert_eq!(all.iter().filter(|line| *line == "second").count(), 1);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Whatever heights the viewport has and however many lines come at once, each is there once, in order, and nothing of an
    /// old viewport is left.
    #[test]
    fn whatever_happens_every_line_is_there_once_and_in_order(
        steps in prop::collection::vec((0_usize..5, 1_usize..9), 1..40), width in 12_u16..40, height in 5_u16..20,
    ) {
        let mut desk = Desk::new(width, height);
        let mut number = 0;
        let mut shown = 0;
        for (lines, viewport) in steps {
            let new: Vec<String> = (0..lines).map(|_| { number += 1; format!("line {number}.") }).collect();
            desk.draw(&new, &rows(viewport, "view"));
            shown = viewport.min(usize::from(height) - 1);
        }
        let all = desk.everything();
        let lines: Vec<&String> = all.iter().filter(|line| line.starts_with("line")).collect();
        let wanted: Vec<String> = (1..=number).map(|number| format!("line {number}.")).collect();
        prop_assert_eq!(lines, wanted.iter().collect::<Vec<_>>());
        prop_assert_eq!(all.iter().filter(|line| line.starts_with("view")).count(), shown);
    }
}
