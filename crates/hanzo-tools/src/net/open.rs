//! `net.open`.

use std::ffi::OsString;
use std::time::Duration;

use hanzo_protocol::envelope::{ErrorCode, Intent, ToolError};
use hanzo_protocol::spawn::{Leftovers, ProcessStatus, SpawnRequest};
use hanzo_protocol::tool::{Effect, ReachConfinement, ToolCaller};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Browser, parse_url, shown};
use crate::contract::{Action, Answer, Call};

/// How long we look whether the program that opens pages fails.
const PATIENCE: Duration = Duration::from_secs(3);

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
        let (Some(outside), Browser::Users) = (&call.host.outside, call.host.options.net.browser) else {
            return Err(ToolError::new(
                ErrorCode::Unsupported,
                format!("nobody sits at this machine to look at a page; tell the user: {}", shown(&url)),
            ));
        };
        // As WHATWG writes it: it begins with its scheme, so no program takes it for an option.
        let argv = opener().into_iter().map(OsString::from).chain([OsString::from(url.as_str())]);
        let request = SpawnRequest { leftovers: Leftovers::Keep, ..SpawnRequest::new(argv) };
        let unavailable = |what: String| ToolError::new(ErrorCode::Unavailable, what);
        let mut process = outside
            .spawn(request)
            .await
            .map_err(|error| unavailable(format!("cannot start the browser: {error}")))?;
        // The opener may be the browser itself and stay: it is waited for elsewhere.
        let waiting = tokio::spawn(async move { process.wait().await });
        if let Ok(Ok(Ok(end))) = tokio::time::timeout(PATIENCE, waiting).await
            && end.status != ProcessStatus::Exited(0)
        {
            return Err(unavailable(format!(
                "`{}` could not open a browser; tell the user: {}",
                opener().join(" "),
                shown(&url)
            )));
        }
        Ok(Answer::new(OpenOutput { opened: shown(&url) }))
    }
}

/// The program of this system that shows a URL with what the user chose for it.
fn opener() -> Vec<&'static str> {
    if cfg!(target_os = "macos") {
        vec!["open"]
    } else if cfg!(windows) {
        vec!["rundll32", "url.dll,FileProtocolHandler"]
    } else {
        vec!["xdg-open"]
    }
}
