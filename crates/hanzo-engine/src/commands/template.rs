//! Puts arguments into a command's text: `$ARGUMENTS`, `$1`…`$N`, `$$`.

/// The text of a command with its arguments. `$ARGUMENTS` is all of them, joined by spaces; `$1`…`$N` is one, and nothing
/// where there is none; `$$` is a `$`. Every other `$` stays. What is put in is not looked at again. Arguments for which the
/// text has no place are added at its end, because the user typed them for a reason.
pub fn render(body: &str, arguments: &str) -> String {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    let mut text = String::with_capacity(body.len() + arguments.len());
    let mut used = false;
    let mut rest = body;
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        if let Some(behind) = after.strip_prefix('$') {
            text.push('$');
            rest = behind;
        } else if let Some(behind) = after.strip_prefix("ARGUMENTS").filter(|behind| ends_word(behind)) {
            used = true;
            text.push_str(&words.join(" "));
            rest = behind;
        } else if digits > 0 && !after.starts_with('0') {
            used = true;
            let place = after[..digits].parse::<usize>().unwrap_or(usize::MAX);
            text.push_str(words.get(place - 1).copied().unwrap_or(""));
            rest = &after[digits..];
        } else {
            text.push('$');
            rest = after;
        }
    }
    text.push_str(rest);
    let mut text = text.trim().to_owned();
    if !used && !words.is_empty() {
        text.push_str("\n\n");
        text.push_str(arguments.trim());
    }
    text
}

fn ends_word(behind: &str) -> bool {
    !behind.starts_with(|c: char| c.is_alphanumeric() || c == '_')
}
