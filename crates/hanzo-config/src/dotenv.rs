//! `.env`: `NAME=value` lines. A lowest-priority source of variables; it never sets a setting.

use crate::node::{Data, Member, Node, SourceId, Table};

/// What a `.env` says: the variables, which of them name no others, and the places of lines that make no sense.
#[derive(Default)]
pub(crate) struct DotEnv {
    pub variables: Table,
    pub literal: Vec<String>,
    pub bad_lines: Vec<usize>,
}

/// Reads the text of a `.env`. A later line wins over an earlier one.
pub(crate) fn parse(text: &str, source: SourceId) -> DotEnv {
    let mut result = DotEnv::default();
    let mut offset = 0;
    while offset < text.len() {
        let rest = &text[offset..];
        let line_end = rest.find('\n').map_or(rest.len(), |end| end + 1);
        let line = &rest[..line_end];
        let trimmed = line.trim();
        let start = offset + (line.len() - line.trim_start().len());
        offset += line_end;
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let assignment = trimmed.strip_prefix("export ").map_or(trimmed, str::trim_start);
        let Some((name, value)) = assignment.split_once('=').filter(|(name, _)| is_name(name.trim_end()))
        else {
            result.bad_lines.push(start);
            continue;
        };
        let name = name.trim_end().to_owned();
        let value = value.trim_start();
        let value_start = start + trimmed.len() - value.len();
        result.literal.retain(|literal| *literal != name);
        let value = match value.chars().next() {
            Some(quote @ ('"' | '\'')) => {
                let Some((value, length)) = quoted(&text[value_start + 1..], quote) else {
                    result.bad_lines.push(start);
                    continue;
                };
                // The closing quote may stand on a later line; the rest of its line is a comment.
                let after = value_start + 1 + length;
                offset = text[after..].find('\n').map_or(text.len(), |end| after + end + 1);
                if quote == '\'' {
                    result.literal.push(name.clone());
                }
                value
            }
            _ => value.split(" #").next().unwrap_or_default().trim_end().to_owned(),
        };
        if value.contains('\0') {
            result.bad_lines.push(start);
            continue;
        }
        let at = source.at(start);
        result.variables.insert(name, Member { key_at: at, node: Node { at, data: Data::Text(value) } });
    }
    result
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The text up to the closing quote, and its length with that quote.
fn quoted(text: &str, quote: char) -> Option<(String, usize)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            c if c == quote => return Some((value, index + c.len_utf8())),
            '\\' if quote == '"' => match chars.next()?.1 {
                'n' => value.push('\n'),
                't' => value.push('\t'),
                'r' => value.push('\r'),
                other => value.push(other),
            },
            c => value.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Source, Sources, Tier};

    #[test]
    fn the_usual_forms_are_read() {
        let source = Sources::default().add(Source::Given(Tier::DotEnv));
        let text = "# c\n\nA=1\nexport B = two words # note\nC=\"x\\ny # z\" # c\nD='${A}'\nE=\"a\nb\"\nF=\nno line\n1X=2\nA=3\nG=\"open\n";
        let parsed = parse(text, source);
        let value = |name: &str| parsed.variables[name].node.as_text().unwrap();
        assert_eq!(value("A"), "3");
        assert_eq!(value("B"), "two words");
        assert_eq!(value("C"), "x\ny # z");
        assert_eq!(value("D"), "${A}");
        assert_eq!(value("E"), "a\nb");
        assert_eq!(value("F"), "");
        assert_eq!(parsed.literal, ["D"]);
        assert_eq!(parsed.bad_lines.len(), 3);
    }
}
