//! Encodings: from bytes to text and back, byte for byte.

use std::borrow::Cow;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use hanzo_protocol::envelope::{ErrorCode, ToolError};

/// How a file's text is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextForm {
    pub(crate) encoding: &'static Encoding,
    pub(crate) mark: ByteOrderMark,
}

/// Whether the text begins with a byte order mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteOrderMark {
    Present,
    Absent,
}

impl TextForm {
    pub(crate) const PLAIN: Self = Self { encoding: UTF_8, mark: ByteOrderMark::Absent };

    /// The form as callers see it: `utf-8`, `utf-8-bom`, `utf-16le`.
    pub(crate) fn label(self) -> String {
        let name = self.encoding.name().to_ascii_lowercase();
        match self.mark {
            ByteOrderMark::Present if self.encoding == UTF_8 => format!("{name}-bom"),
            _ => name,
        }
    }
}

/// What the bytes of a file are.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decoded<'a> {
    Text(Cow<'a, str>, TextForm),
    /// Not text in any encoding that can be told from the bytes.
    Binary,
}

/// Reads bytes as text: by a byte order mark, as UTF-8, as UTF-16 when every other byte is zero, or in the encoding the
/// caller names. Nothing else is guessed: a wrong guess would be written back.
pub(crate) fn decode<'a>(bytes: &'a [u8], named: Option<&'static Encoding>) -> Decoded<'a> {
    if let Some((encoding, length)) = Encoding::for_bom(bytes)
        && named.is_none_or(|named| named == encoding)
    {
        let form = TextForm { encoding, mark: ByteOrderMark::Present };
        return strict(&bytes[length..], form);
    }
    if let Some(encoding) = named {
        return strict(bytes, TextForm { encoding, mark: ByteOrderMark::Absent });
    }
    if let Ok(text) = std::str::from_utf8(bytes)
        && memchr::memchr(0, bytes).is_none()
    {
        return Decoded::Text(Cow::Borrowed(text), TextForm::PLAIN);
    }
    if let Some(encoding) = looks_like_utf16(bytes) {
        return strict(bytes, TextForm { encoding, mark: ByteOrderMark::Absent });
    }
    Decoded::Binary
}

fn strict(bytes: &[u8], form: TextForm) -> Decoded<'_> {
    match form.encoding.decode_without_bom_handling_and_without_replacement(bytes) {
        // A text that does not come back as the same bytes could not be edited without changing the rest of the file.
        Some(text) => match encode_body(&text, form.encoding) {
            Some(back) if *back == *bytes => Decoded::Text(text, form),
            _ => Decoded::Binary,
        },
        None => Decoded::Binary,
    }
}

/// Mostly Latin text in UTF-16 has a zero in every other byte.
fn looks_like_utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = &bytes[..bytes.len().min(4096) & !1];
    if sample.len() < 4 || !bytes.len().is_multiple_of(2) {
        return None;
    }
    let zeros = |start: usize| sample.iter().skip(start).step_by(2).filter(|byte| **byte == 0).count();
    let pairs = sample.len() / 2;
    match (zeros(0), zeros(1)) {
        (0, odd) if odd * 10 >= pairs * 7 => Some(UTF_16LE),
        (even, 0) if even * 10 >= pairs * 7 => Some(UTF_16BE),
        _ => None,
    }
}

/// Text as the bytes of a file; an error when the encoding has no way to write it.
pub(crate) fn encode(text: &str, form: TextForm) -> Result<Vec<u8>, ToolError> {
    let mut bytes = match form.mark {
        ByteOrderMark::Absent => Vec::new(),
        ByteOrderMark::Present => match form.encoding {
            encoding if encoding == UTF_16LE => vec![0xFF, 0xFE],
            encoding if encoding == UTF_16BE => vec![0xFE, 0xFF],
            _ => vec![0xEF, 0xBB, 0xBF],
        },
    };
    let body = encode_body(text, form.encoding).ok_or_else(|| {
        ToolError::new(
            ErrorCode::InvalidArguments,
            format!("the new text has characters that `{}` cannot write", form.label()),
        )
    })?;
    bytes.extend_from_slice(&body);
    Ok(bytes)
}

fn encode_body<'a>(text: &'a str, encoding: &'static Encoding) -> Option<Cow<'a, [u8]>> {
    if encoding == UTF_16LE {
        return Some(text.encode_utf16().flat_map(u16::to_le_bytes).collect());
    }
    if encoding == UTF_16BE {
        return Some(text.encode_utf16().flat_map(u16::to_be_bytes).collect());
    }
    let (bytes, _, failed) = encoding.encode(text);
    (!failed).then_some(bytes)
}

/// The encoding a caller names.
pub(crate) fn named(label: &str) -> Result<&'static Encoding, ToolError> {
    let plain = label.to_ascii_lowercase();
    let plain = plain.trim_end_matches("-bom");
    Encoding::for_label(plain.as_bytes()).ok_or_else(|| {
        ToolError::new(
            ErrorCode::InvalidArguments,
            format!("`encoding` is a name such as `utf-8`, `utf-16le`, `windows-1252` or `shift_jis`, not `{label}`"),
        )
    })
}
