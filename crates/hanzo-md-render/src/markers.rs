//! Recognises what a line of Markdown begins: a fence, a list item, a block of HTML. Works on what is left of a line after
//! the markers of its containers.

/// The part of a line that is still to be read, with the column it starts at (tabs reach to multiples of four).
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a str,
    column: usize,
    /// Columns of a partly read tab that are still to be counted as indent.
    spare: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(line: &'a str) -> Cursor<'a> {
        Cursor { rest: line, column: 0, spare: 0 }
    }

    /// Columns of white space before the first character.
    pub(crate) fn indent(&self) -> usize {
        let mut column = self.column + self.spare;
        for byte in self.rest.bytes() {
            match byte {
                b' ' => column += 1,
                b'\t' => column += 4 - column % 4,
                _ => break,
            }
        }
        column - self.column
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.rest.bytes().all(|byte| byte == b' ' || byte == b'\t')
    }

    /// What is left, without its indent.
    pub(crate) fn text(&self) -> &'a str {
        self.rest.trim_start_matches([' ', '\t'])
    }

    /// Reads up to `columns` of white space; a tab may be read in part.
    pub(crate) fn skip_columns(&mut self, mut columns: usize) {
        let used = columns.min(self.spare);
        self.spare -= used;
        self.column += used;
        columns -= used;
        while columns > 0 {
            match self.rest.as_bytes().first() {
                Some(b' ') => {
                    self.rest = &self.rest[1..];
                    self.column += 1;
                    columns -= 1;
                }
                Some(b'\t') => {
                    let width = 4 - self.column % 4;
                    self.rest = &self.rest[1..];
                    let used = width.min(columns);
                    self.column += used;
                    columns -= used;
                    self.spare = width - used;
                }
                _ => break,
            }
        }
    }

    /// Reads the indent and `bytes` of the (ASCII) marker after it.
    pub(crate) fn skip_marker(&mut self, bytes: usize) {
        self.skip_columns(self.indent());
        self.rest = &self.rest[bytes..];
        self.column += bytes;
    }
}

/// Which list an item belongs to: two items side by side are of one list when these are equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListKind {
    Bullet(u8),
    Ordered(u8),
}

/// The marker of a list item.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemMarker {
    pub(crate) kind: ListKind,
    pub(crate) number: u64,
    /// Bytes of the marker itself.
    pub(crate) len: usize,
}

pub(crate) fn item_marker(text: &str) -> Option<ItemMarker> {
    let bytes = text.as_bytes();
    let (kind, number, len) = match bytes.first()? {
        bullet @ (b'-' | b'+' | b'*') => (ListKind::Bullet(*bullet), 0, 1),
        b'0'..=b'9' => {
            let digits = bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let delimiter = *bytes.get(digits)?;
            if digits > 9 || !matches!(delimiter, b'.' | b')') {
                return None;
            }
            (ListKind::Ordered(delimiter), text[..digits].parse().ok()?, digits + 1)
        }
        _ => return None,
    };
    matches!(bytes.get(len), None | Some(b' ' | b'\t')).then_some(ItemMarker { kind, number, len })
}

pub(crate) fn is_rule(text: &str) -> bool {
    let mut marks = 0;
    let Some(&mark @ (b'-' | b'_' | b'*')) = text.as_bytes().first() else { return false };
    for byte in text.bytes() {
        match byte {
            b' ' | b'\t' => {}
            byte if byte == mark => marks += 1,
            _ => return false,
        }
    }
    marks >= 3
}

pub(crate) fn is_heading(text: &str) -> bool {
    let hashes = text.bytes().take_while(|byte| *byte == b'#').count();
    (1..=6).contains(&hashes) && matches!(text.as_bytes().get(hashes), None | Some(b' ' | b'\t'))
}

pub(crate) fn setext_underline(text: &str) -> Option<u8> {
    let mark = *text.as_bytes().first()?;
    let line = text.trim_end_matches([' ', '\t']);
    (matches!(mark, b'=' | b'-') && line.bytes().all(|byte| byte == mark)).then_some(mark)
}

/// An open code fence: what closes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fence {
    mark: u8,
    len: usize,
}

impl Fence {
    pub(crate) fn open(text: &str) -> Option<Fence> {
        let mark = *text.as_bytes().first()?;
        if !matches!(mark, b'`' | b'~') {
            return None;
        }
        let len = text.bytes().take_while(|byte| *byte == mark).count();
        let plain_info = mark == b'~' || !text[len..].contains('`');
        (len >= 3 && plain_info).then_some(Fence { mark, len })
    }

    pub(crate) fn closed_by(self, text: &str) -> bool {
        let len = text.bytes().take_while(|byte| *byte == self.mark).count();
        len >= self.len && text[len..].bytes().all(|byte| byte == b' ' || byte == b'\t')
    }
}

/// What ends a block of HTML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HtmlEnd {
    Blank,
    RawTag,
    Text(&'static str),
}

impl HtmlEnd {
    pub(crate) fn ends_on(self, line: &str) -> bool {
        match self {
            HtmlEnd::Blank => false,
            HtmlEnd::Text(end) => line.contains(end),
            HtmlEnd::RawTag => {
                let lower = line.to_ascii_lowercase();
                RAW_TAGS.iter().any(|tag| {
                    lower.match_indices("</").any(|(at, _)| {
                        lower[at + 2..].strip_prefix(tag).is_some_and(|after| after.starts_with('>'))
                    })
                })
            }
        }
    }
}

const RAW_TAGS: [&str; 4] = ["pre", "script", "style", "textarea"];

/// Whether `text` begins a block of HTML; a lone tag of any name does so only where no paragraph is open.
pub(crate) fn html_start(text: &str, in_paragraph: bool) -> Option<HtmlEnd> {
    let after = text.strip_prefix('<')?;
    if after.starts_with("!--") {
        return Some(HtmlEnd::Text("-->"));
    }
    if after.starts_with('?') {
        return Some(HtmlEnd::Text("?>"));
    }
    if after.starts_with("![CDATA[") {
        return Some(HtmlEnd::Text("]]>"));
    }
    if let Some(declared) = after.strip_prefix('!') {
        return declared.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(HtmlEnd::Text(">"));
    }
    let closing = after.starts_with('/');
    let named = after.strip_prefix('/').unwrap_or(after);
    let name_len = named.bytes().take_while(u8::is_ascii_alphanumeric).count();
    let name = named[..name_len].to_ascii_lowercase();
    let next = named.as_bytes().get(name_len).copied();
    if !closing && RAW_TAGS.contains(&name.as_str()) && matches!(next, None | Some(b' ' | b'\t' | b'>')) {
        return Some(HtmlEnd::RawTag);
    }
    let block_end = matches!(next, None | Some(b' ' | b'\t' | b'>')) || named[name_len..].starts_with("/>");
    if block_end && BLOCK_TAGS.binary_search(&name.as_str()).is_ok() {
        return Some(HtmlEnd::Blank);
    }
    if in_paragraph || !named.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    // The rules for a lone tag (attributes, quotes) are the parser's: ask it.
    let mut events = pulldown_cmark::Parser::new(text);
    matches!(events.next(), Some(pulldown_cmark::Event::Start(pulldown_cmark::Tag::HtmlBlock)))
        .then_some(HtmlEnd::Blank)
}

const BLOCK_TAGS: [&str; 62] = [
    "address",
    "article",
    "aside",
    "base",
    "basefont",
    "blockquote",
    "body",
    "caption",
    "center",
    "col",
    "colgroup",
    "dd",
    "details",
    "dialog",
    "dir",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figcaption",
    "figure",
    "footer",
    "form",
    "frame",
    "frameset",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "iframe",
    "legend",
    "li",
    "link",
    "main",
    "menu",
    "menuitem",
    "nav",
    "noframes",
    "ol",
    "optgroup",
    "option",
    "p",
    "param",
    "search",
    "section",
    "summary",
    "table",
    "tbody",
    "td",
    "tfoot",
    "th",
    "thead",
    "title",
    "tr",
    "track",
    "ul",
];

/// `[^label]:` at the start of a footnote: how many bytes it takes.
pub(crate) fn footnote_marker(text: &str) -> Option<usize> {
    let label = text.strip_prefix("[^")?;
    let end = label.find(']')?;
    let named = end > 0 && !label[..end].contains('[') && !label[..end].trim().is_empty();
    (named && label[end + 1..].starts_with(':')).then_some(end + 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_list_is_sorted_for_its_search() {
        assert!(BLOCK_TAGS.is_sorted());
    }

    #[test]
    fn tabs_reach_the_next_stop_and_can_be_read_in_part() {
        let mut cursor = Cursor::new("\t\tfoo");
        assert_eq!(cursor.indent(), 8);
        cursor.skip_columns(2);
        assert_eq!(cursor.indent(), 6);
        cursor.skip_columns(6);
        assert_eq!((cursor.indent(), cursor.text()), (0, "foo"));
    }

    #[test]
    fn markers_need_a_space_or_the_end_after_them() {
        assert!(
            item_marker("-x").is_none()
                && item_marker("12x").is_none()
                && item_marker("1234567890.").is_none()
        );
        assert_eq!(item_marker("12) x").unwrap().number, 12);
        assert_eq!(item_marker("-").unwrap().len, 1);
        assert!(is_rule("* * *") && !is_rule("**") && !is_rule("--x-"));
    }

    #[test]
    fn a_lone_tag_is_html_only_outside_a_paragraph() {
        assert_eq!(html_start("<custom a='b'>", false), Some(HtmlEnd::Blank));
        assert_eq!(html_start("<custom a='b'>", true), None);
        assert_eq!(html_start("<custom a='b'> text", false), None);
        assert_eq!(html_start("<div", true), Some(HtmlEnd::Blank));
        assert!(HtmlEnd::RawTag.ends_on("x </SCRIPT> y"));
    }
}
