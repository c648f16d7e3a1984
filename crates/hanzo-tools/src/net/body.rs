//! The body of an answer: read up to a bound, and told apart into text and the rest.

use encoding_rs::{Encoding, UTF_8};
use hanzo_net::Url;
use hanzo_protocol::envelope::ToolError;
use reqwest::Response;

use super::{Deadline, exchange};

/// What was read.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) bytes: Vec<u8>,
    pub(super) end: End,
}

/// Whether that is everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// It is.
    Whole,
    /// There was more than may be read.
    Cut,
}

/// Reads at most `most` bytes. Compressed content counts as what it expands to, so a small answer that becomes a large one
/// ends at the same bound, and memory with it.
pub(super) async fn read(
    mut response: Response,
    url: &Url,
    most: usize,
    deadline: Deadline,
    idle: std::time::Duration,
) -> Result<Body, ToolError> {
    let mut bytes = Vec::new();
    let doing = format!("reading the answer of `{}`", exchange::host(url));
    loop {
        let piece = deadline.limit_idle(idle, &doing, response.chunk()).await?;
        let Some(piece) = piece.map_err(|error| exchange::failure(&error, url))? else {
            return Ok(Body { bytes, end: End::Whole });
        };
        let room = most - bytes.len();
        if piece.len() > room {
            bytes.extend_from_slice(&piece[..room]);
            return Ok(Body { bytes, end: End::Cut });
        }
        bytes.extend_from_slice(&piece);
    }
}

/// A media type and the charset behind it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MediaType {
    /// Such as `text/html`, lower case.
    pub(super) essence: String,
    charset: Option<String>,
}

impl MediaType {
    pub(super) fn parse(text: &str) -> Self {
        let mut parts = text.split(';');
        let essence = parts.next().unwrap_or_default().trim().to_ascii_lowercase();
        let charset = parts.find_map(|parameter| {
            let (name, value) = parameter.split_once('=')?;
            let value = value.trim().trim_matches('"');
            name.trim().eq_ignore_ascii_case("charset").then(|| value.to_owned())
        });
        Self { essence, charset }
    }

    pub(super) fn is_html(&self) -> bool {
        matches!(self.essence.as_str(), "text/html" | "application/xhtml+xml")
    }

    pub(super) fn is_image(&self) -> bool {
        matches!(self.essence.as_str(), "image/png" | "image/jpeg" | "image/gif" | "image/webp")
    }

    fn says_text(&self) -> bool {
        let essence = self.essence.as_str();
        essence.starts_with("text/")
            || ["+json", "+xml", "+yaml", "/json", "/xml", "/javascript", "/yaml", "/toml", "/graphql"]
                .iter()
                .any(|end| essence.ends_with(end))
            || matches!(
                essence,
                "application/x-ndjson"
                    | "application/x-www-form-urlencoded"
                    | "application/x-sh"
                    | "application/sql"
            )
    }
}

/// A text, or what is none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Content {
    Text {
        text: String,
        /// The charset whose rules some bytes broke; they were replaced.
        broken: Option<&'static str>,
    },
    Binary,
}

/// Reads `bytes` as text, if they are one.
pub(super) fn decode(bytes: &[u8], media: &MediaType, end: End) -> Content {
    let bom = Encoding::for_bom(bytes).map(|(encoding, _)| encoding);
    let named = media.charset.as_deref().and_then(|label| Encoding::for_label(label.as_bytes()));
    let in_page = || media.is_html().then(|| declared(bytes)).flatten();
    let known = bom.or(named).or_else(in_page);
    let wide = known.is_some_and(|encoding| !encoding.is_ascii_compatible());
    if !wide && bytes.iter().take(8192).any(|byte| *byte == 0) {
        return Content::Binary;
    }
    if known.is_none() && !media.says_text() && !is_utf8(bytes, end) {
        return Content::Binary;
    }
    let bytes = if end == End::Cut { whole_characters(bytes) } else { bytes };
    let (text, used, replaced) = known.unwrap_or(UTF_8).decode(bytes);
    // Bytes that only begin like text.
    if replaced && named.is_none() && !media.says_text() {
        return Content::Binary;
    }
    Content::Text { text: text.into_owned(), broken: replaced.then(|| used.name()) }
}

/// Without the beginning of a character whose end was cut off.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

fn is_utf8(bytes: &[u8], end: End) -> bool {
    match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => end == End::Cut && error.error_len().is_none(),
    }
}

/// The charset a page says it has, in its first kilobyte as HTML has it.
fn declared(bytes: &[u8]) -> Option<&'static Encoding> {
    let start = &bytes[..bytes.len().min(1024)];
    let text: String = start.iter().map(|byte| char::from(*byte).to_ascii_lowercase()).collect();
    let (_, rest) = text.split_once("charset=")?;
    let label: String = rest
        .trim_start_matches(['"', '\'', ' '])
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || "-_:.".contains(*c))
        .collect();
    // A page whose declaration could be read as ASCII is not UTF-16, whatever it says.
    Encoding::for_label(label.as_bytes()).filter(|encoding| encoding.is_ascii_compatible())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8], media: &str) -> (String, Option<&'static str>) {
        match decode(bytes, &MediaType::parse(media), End::Whole) {
            Content::Text { text, broken } => (text, broken),
            Content::Binary => panic!("{media}: {bytes:?} is text"),
        }
    }

    #[test]
    fn text_is_read_by_what_is_said_of_it() {
        assert_eq!(text("häh".as_bytes(), "text/plain"), ("häh".into(), None));
        assert_eq!(text(b"h\xe4h", "text/plain; charset=\"ISO-8859-1\""), ("häh".into(), None));
        assert_eq!(text(b"h\xe4h", "text/plain"), ("h\u{fffd}h".into(), Some("UTF-8")));
        assert_eq!(text(b"\xff\xfeh\0i\0", "text/plain"), ("hi".into(), None));
        assert_eq!(text(b"<meta charset=windows-1252>\x80", "text/html").0, "<meta charset=windows-1252>€");
        assert_eq!(text(b"{}", "").0, "{}");
        assert_eq!(text(b"", "application/octet-stream").0, "");
        assert_eq!(text(b"a", "TEXT/Plain;charset=nonsense").0, "a");
    }

    #[test]
    fn what_is_no_text_is_told() {
        for (bytes, media) in [
            (&b"\x89PNG\r\n\x1a\n\0\0"[..], "image/png"),
            (b"\xff\xfe\xfd", "application/octet-stream"),
            (b"a\0b", "text/plain"),
        ] {
            assert_eq!(decode(bytes, &MediaType::parse(media), End::Whole), Content::Binary, "{media}");
        }
    }

    #[test]
    fn a_cut_in_the_middle_of_a_character_is_no_fault_of_the_text() {
        let cut = decode("aä".as_bytes()[..2].as_ref(), &MediaType::parse(""), End::Cut);
        assert_eq!(cut, Content::Text { text: "a".into(), broken: None });
    }
}
