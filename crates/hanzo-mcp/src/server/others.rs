//! Resources of other people's servers, served along with our own where the owner offers those servers. Only what they list can be
//! read: a client does not get to send them addresses of its own.

use std::fmt;

use hanzo_protocol::BoxFuture;
use hanzo_protocol::message::AttachmentSource;
use rmcp::ErrorData;
use rmcp::model::{Resource, ResourceContents};
use url::form_urlencoded::byte_serialize;

use crate::client::ResourceContent;

/// How the URIs begin under which they are served.
pub(super) const SCHEME: &str = "mcp://";

/// A resource of another server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherResource {
    /// Whose it is.
    pub server: String,
    /// What the server calls it.
    pub uri: String,
    /// Its name.
    pub name: Option<String>,
    /// What it is.
    pub description: Option<String>,
    /// What is in it.
    pub mime_type: Option<String>,
}

impl OtherResource {
    /// What we call it: servers do not know of each other.
    fn served_as(&self) -> String {
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        format!("{SCHEME}{}/{}", encoded(&self.server), encoded(&self.uri))
    }
}

/// What other servers have, as the composition root knows it.
pub trait Others: fmt::Debug + Send + Sync {
    /// The resources they list now.
    fn resources(&self) -> Vec<OtherResource>;

    /// Reads one of them.
    fn read<'a>(&'a self, server: &'a str, uri: &'a str) -> BoxFuture<'a, Result<ResourceContent, String>>;
}

/// All of them.
pub(super) fn list(others: &dyn Others) -> Vec<Resource> {
    let resource = |other: OtherResource| {
        let name = other.name.as_deref().unwrap_or(&other.uri);
        let mut resource = Resource::new(other.served_as(), format!("{name} ({})", other.server));
        resource.description = other.description;
        resource.mime_type = other.mime_type;
        resource
    };
    others.resources().into_iter().map(resource).collect()
}

/// Reads the one that is served as `uri`; `None` when there is none.
pub(super) async fn read(others: &dyn Others, uri: &str) -> Option<Result<ResourceContents, ErrorData>> {
    let found = others.resources().into_iter().find(|other| other.served_as() == uri)?;
    let content = match others.read(&found.server, &found.uri).await {
        Ok(ResourceContent::Text(text)) => ResourceContents::text(text, uri),
        Ok(ResourceContent::Attachment(attachment)) => match attachment.source {
            AttachmentSource::Inline { base64 } => {
                ResourceContents::blob(base64, uri).with_mime_type(attachment.media_type)
            }
            AttachmentSource::Stored { .. } => {
                let message = format!("`{uri}` is too large to be sent");
                return Some(Err(ErrorData::invalid_params(message, None)));
            }
        },
        Err(reason) => {
            let message = format!("the server `{}` does not give `{}`: {reason}", found.server, found.uri);
            return Some(Err(ErrorData::internal_error(message, None)));
        }
    };
    Some(Ok(match (content, found.mime_type) {
        (text @ ResourceContents::TextResourceContents { .. }, Some(kind)) => text.with_mime_type(kind),
        (content, _) => content,
    }))
}
