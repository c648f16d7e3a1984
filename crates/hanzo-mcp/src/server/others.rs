//! Resources and prompts of other people's servers, served along with our own where the owner offers those servers. Only what they list
//! can be read, and only through the gate: a client does not get to send them addresses of its own.

use std::fmt;

use hanzo_protocol::engine::ListKind;
use rmcp::ErrorData;
use rmcp::model::Resource;
use serde_json::Value;
use url::form_urlencoded::byte_serialize;

use super::calls::failed;
use super::connection::Connection;
use crate::client::MethodCall;

/// How the URIs begin under which they are served.
const SCHEME: &str = "mcp://";
/// How the commands of prompts begin.
const COMMAND: &str = "mcp__";

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

/// What other servers have, as the composition root knows it. What is wanted of them is a call in a thread of the client's, through the
/// gate.
pub trait Others: fmt::Debug + Send + Sync {
    /// The resources they list now.
    fn resources(&self) -> Vec<OtherResource>;

    /// Which there are and which are connected: `{configured, connected}`.
    fn report(&self) -> Value;

    /// The call that reads one of them.
    fn resource_call(&self, resource: &OtherResource) -> Option<MethodCall>;

    /// The call that gets the prompt whose command is `command`; `None` when it is not one of theirs. The error says what is wrong with
    /// the arguments that were `typed`.
    fn prompt_call(&self, command: &str, typed: &str) -> Option<Result<MethodCall, String>>;
}

/// All resources.
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

/// The resource that is served as `uri`, and the call that reads it; `None` when there is none.
pub(super) async fn find(
    connection: &Connection,
    uri: &str,
) -> Result<Option<(OtherResource, MethodCall)>, ErrorData> {
    if !uri.starts_with(SCHEME) {
        return Ok(None);
    }
    let look = |others: &dyn Others| {
        let found = others.resources().into_iter().find(|other| other.served_as() == uri)?;
        let call = others.resource_call(&found)?;
        Some((found, call))
    };
    look_twice(connection, look).await
}

/// The call that gets the prompt whose command is `command`; `None` when it is not one of theirs. What is called like one of theirs and
/// is not known is an error: the engine might know it, and would give it past the gate.
pub(super) async fn prompt(
    connection: &Connection,
    command: &str,
    typed: &str,
) -> Result<Option<MethodCall>, ErrorData> {
    if connection.others().is_none() || !command.starts_with(COMMAND) {
        return Ok(None);
    }
    let wrong = |reason: String| ErrorData::invalid_params(reason, None);
    match look_twice(connection, |others| others.prompt_call(command, typed)).await? {
        Some(call) => call.map(Some).map_err(wrong),
        None => Err(wrong(format!("there is no prompt `{command}`"))),
    }
}

/// Looks for something among what others have, and once more when they have been asked what that is: a client may know it from an
/// earlier connection and not ask for the list.
async fn look_twice<T>(
    connection: &Connection,
    look: impl Fn(&dyn Others) -> Option<T>,
) -> Result<Option<T>, ErrorData> {
    let Some(others) = connection.others() else { return Ok(None) };
    if let Some(found) = look(others) {
        return Ok(Some(found));
    }
    connection.list(ListKind::Tools).await.map_err(|error| failed(&error))?;
    Ok(look(others))
}
