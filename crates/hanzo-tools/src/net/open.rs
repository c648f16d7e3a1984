//! `net.open`.

use hanzo_net::Url;
use hanzo_protocol::BoxFuture;
use hanzo_protocol::envelope::{ErrorCode, Intent, ToolError};
use hanzo_protocol::tool::{Effect, ReachConfinement, ToolCaller};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{parse_url, shown};
use crate::contract::{Action, Answer, Call};

/// Shows pages to the user who sits at this machine. Not a [`Spawner`](hanzo_protocol::spawn::Spawner): what it starts is the
/// user's own browser, which is not ours to confine, to listen to or to end.
pub trait Browser: Send + Sync {
    /// Shows the page; the reason when it could not be.
    fn open<'a>(&'a self, url: &'a Url) -> BoxFuture<'a, Result<(), String>>;
}

/// Shows the user a page.
pub(super) struct Open;

/// The arguments of `net.open`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OpenInput {
    /// http or https.
    url: String,
}

/// The answer of `net.open`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct OpenOutput {
    /// What was opened.
    opened: String,
}

impl Action for Open {
    const NAME: &'static str = "open";
    const SUMMARY: &'static str = "show the user a page in their browser";
    const EXAMPLE: &'static str = r#"{"url":"http://localhost:8080/"}"#;
    const WORST: Effect = Effect::Network;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] = &[("uri", "url")];
    const QUIET: &'static [&'static str] = &["url"];
    const INTENTS: Option<&'static [Intent]> = Some(&[Intent::Inspect, Intent::Verify, Intent::Ship]);
    type Input = OpenInput;
    type Output = OpenOutput;

    fn effect(&self, _: &OpenInput) -> Effect {
        Effect::Network
    }

    fn confinement(&self, _: &OpenInput) -> ReachConfinement {
        // The user's browser is theirs: no jail of ours holds it.
        ReachConfinement::Outside
    }

    async fn run(&self, call: &Call<'_>, input: OpenInput) -> Result<Answer<OpenOutput>, ToolError> {
        let url = parse_url(&input.url, &["http", "https"])?;
        if call.context.caller == ToolCaller::Remote {
            return Err(ToolError::new(
                ErrorCode::Denied,
                "a remote caller may not open pages on this machine",
            ));
        }
        let Some(browser) = &call.host.browser else {
            return Err(ToolError::new(
                ErrorCode::Unsupported,
                format!("nobody sits at this machine to look at a page; tell the user: {}", shown(&url)),
            ));
        };
        browser.open(&url).await.map_err(|reason| {
            ToolError::new(
                ErrorCode::Unavailable,
                format!("no browser could be opened: {reason}; tell the user: {}", shown(&url)),
            )
        })?;
        Ok(Answer::new(OpenOutput { opened: shown(&url) }))
    }
}
