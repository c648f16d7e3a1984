//! The feature document at four widths, as a reader sees it.

use std::fmt::Write;

use hanzo_md_render::{Line, Modifiers, Options};
use insta::assert_snapshot;

use crate::support::{FEATURES, whole};

/// The lines with their looks: what is not plain text is named at the right.
fn with_looks(lines: &[Line]) -> String {
    let mut out = String::new();
    for line in lines {
        let mut looks: Vec<String> = Vec::new();
        for span in &line.spans {
            let mut look = String::new();
            for (modifier, letter) in [
                (Modifiers::BOLD, 'b'),
                (Modifiers::DIM, 'd'),
                (Modifiers::ITALIC, 'i'),
                (Modifiers::UNDERLINE, 'u'),
                (Modifiers::STRIKETHROUGH, 's'),
            ] {
                if span.style.modifiers.contains(modifier) {
                    look.push(letter);
                }
            }
            if let Some(color) = span.style.fg {
                let _ = write!(look, "{color:?}");
            }
            if let Some(link) = &span.link {
                let _ = write!(look, "→{link}");
            }
            if !look.is_empty() {
                looks.push(format!("{}={look}", span.text.trim()));
            }
        }
        let looks = if looks.is_empty() { String::new() } else { format!("   ⟨{}⟩", looks.join(" ")) };
        let _ = writeln!(out, "{}{looks}", line.text());
    }
    out
}

fn plain(lines: &[Line]) -> String {
    lines.iter().fold(String::new(), |out, line| out + &line.text() + "\n")
}

fn at(width: u16) -> Vec<Line> {
    let lines = whole(FEATURES, &Options { width, ..Options::default() });
    for line in &lines {
        assert!(line.width() <= usize::from(width), "{} columns: {}", line.width(), line.text());
    }
    lines
}

#[test]
fn the_feature_document_at_20_columns() {
    assert_snapshot!(plain(&at(20)));
}

#[test]
fn the_feature_document_at_40_columns() {
    assert_snapshot!(plain(&at(40)));
}

#[test]
fn the_feature_document_at_80_columns_with_looks() {
    assert_snapshot!(with_looks(&at(80)));
}

#[test]
fn the_feature_document_at_200_columns() {
    assert_snapshot!(plain(&at(200)));
}
