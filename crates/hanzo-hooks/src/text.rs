//! Text of strangers, made fit to show.

/// `text` without what a terminal or a reader could be fooled with (control characters other than line breaks and tabs, escape
/// sequences' introducers, direction marks, invisible tags), cut to `most` characters.
///
/// ```
/// assert_eq!(hanzo_hooks::plain_text("no \u{1b}[31mway\u{202e}\r\n", 100), "no [31mway");
/// assert_eq!(hanzo_hooks::plain_text("abcdef", 3), "abc…");
/// ```
pub fn plain_text(text: &str, most: usize) -> String {
    let mut kept = text.trim_end().chars().filter(|c| !misleads(*c));
    let mut plain: String = kept.by_ref().take(most).collect();
    if kept.next().is_some() {
        plain.push('…');
    }
    plain.truncate(plain.trim_end().len());
    plain
}

/// Whether a character changes how others look instead of being seen itself.
fn misleads(c: char) -> bool {
    matches!(c,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' | '\u{61c}' | '\u{2028}' | '\u{2029}')
        || (c.is_control() && c != '\n' && c != '\t')
}
