//! `net.dns`.

use std::time::Duration;

use hanzo_net::address;
use hanzo_protocol::envelope::{ErrorCode, Intent, ToolError};
use hanzo_protocol::item::Taint;
use hanzo_protocol::tool::Effect;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Deadline, Seconds, refused};
use crate::contract::{Action, Answer, Call};

const USUAL: Duration = Duration::from_secs(10);

/// Looks a name up.
pub(super) struct Dns;

/// The arguments of `net.dns`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DnsInput {
    /// A name.
    host: String,
    /// Seconds.
    timeout: Option<Seconds>,
}

/// The answer of `net.dns`.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct DnsOutput {
    /// The name.
    host: String,
    /// Its addresses, in the order in which the system would try them.
    addresses: Vec<Found>,
}

/// An address of a name.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Found {
    /// The address.
    address: String,
    /// `public`, `private`, `loopback` and so on.
    reach: String,
}

impl Action for Dns {
    const NAME: &'static str = "dns";
    const SUMMARY: &'static str = "addresses of a host";
    const EXAMPLE: &'static str = r#"{"host":"example.com"}"#;
    const WORST: Effect = Effect::Network;
    const FIELD_ALIASES: &'static [(&'static str, &'static str)] =
        &[("hostname", "host"), ("name", "host"), ("domain", "host")];
    const HIDDEN: &'static [&'static str] = &["timeout"];
    const QUIET: &'static [&'static str] = &["host"];
    const INTENTS: Option<&'static [Intent]> =
        Some(&[Intent::Inspect, Intent::Apply, Intent::Verify, Intent::Ship]);
    type Input = DnsInput;
    type Output = DnsOutput;

    fn effect(&self, _: &DnsInput) -> Effect {
        Effect::Network
    }

    async fn run(&self, call: &Call<'_>, input: DnsInput) -> Result<Answer<DnsOutput>, ToolError> {
        let deadline = Deadline::after(input.timeout, USUAL)?;
        let host = input.host.trim();
        let plain = |c: char| c.is_alphanumeric() || "-_.:[]".contains(c);
        if host.is_empty() || host.len() > 253 || !host.chars().all(plain) {
            return Err(ToolError::new(
                ErrorCode::InvalidArguments,
                "`host` is no host name; leave scheme, port and path out",
            ));
        }
        let guard = call.host.net.guard(call.context.caller);
        let found = deadline.limit(&format!("looking `{host}` up"), guard.addresses(host)).await?;
        let found = found.map_err(|error| refused(&error))?;
        let addresses = found
            .into_iter()
            .map(|found| Found { address: found.to_string(), reach: address::kind(found).name().to_owned() })
            .collect();
        let output = DnsOutput { host: host.to_owned(), addresses };
        Ok(Answer::new(output).tainted(Some(Taint::Network)))
    }
}
