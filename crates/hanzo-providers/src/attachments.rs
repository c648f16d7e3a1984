//! Images and documents that go along with a message.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hanzo_protocol::message::{Attachment, AttachmentSource};

use crate::quirks::Support;

/// What an attachment is to a vendor.
pub(crate) enum Kind<'a> {
    /// A picture, in base64.
    Image { media_type: &'a str, base64: &'a str },
    /// A document, in base64.
    Document { media_type: &'a str, name: &'a str, base64: &'a str },
    /// Text that stands for the attachment: a text file's own, or a note that something could not be sent.
    Text(String),
}

/// How `attachment` is sent. Only inline bytes can be: the engine puts them in place of references before it asks us.
pub(crate) fn kind(attachment: &Attachment, support: Support) -> Kind<'_> {
    let media_type = attachment.media_type.as_str();
    let name = attachment.name.as_deref().unwrap_or("attachment");
    let AttachmentSource::Inline { base64 } = &attachment.source else {
        return Kind::Text(format!("[{name} ({media_type}) is not at hand]"));
    };
    let is_text = media_type.starts_with("text/") || media_type == "application/json";
    if is_text
        && let Some(text) = STANDARD.decode(base64).ok().and_then(|bytes| String::from_utf8(bytes).ok())
    {
        return Kind::Text(format!("{name}:\n{text}"));
    }
    if !support.is_there() {
        return Kind::Text(format!("[{name} ({media_type}) was left out: this model takes text only]"));
    }
    if media_type.starts_with("image/") {
        Kind::Image { media_type, base64 }
    } else {
        Kind::Document { media_type, name, base64 }
    }
}
