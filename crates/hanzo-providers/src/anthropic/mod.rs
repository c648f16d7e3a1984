//! The kind `anthropic`: the streaming messages API, with the vendor's own prompt cache.

mod request;
mod stream;

use crate::client::Dialect;
use crate::quirks::{Auth, Quirks};
use crate::reader::Assembler;
use crate::{Client, ProviderConfig, ProviderError};

/// The name of the kind.
pub const KIND: &str = "anthropic";
/// The version of the API the code was written for.
const VERSION: &str = "2023-06-01";

static DIALECT: Dialect = Dialect {
    base_url: "https://api.anthropic.com",
    path: "/v1/messages",
    auth: Auth::XApiKey,
    headers,
    body: request::body,
    assembler,
};

/// A client of an endpoint that speaks Anthropic's messages API, whose `extra` options are
/// [`Quirks`].
pub fn client(config: ProviderConfig) -> Result<Client, ProviderError> {
    Client::new(config, &DIALECT)
}

fn headers(quirks: &Quirks) -> Vec<(&'static str, String)> {
    let mut headers = vec![("anthropic-version", VERSION.to_owned())];
    if !quirks.betas.is_empty() {
        headers.push(("anthropic-beta", quirks.betas.join(",")));
    }
    headers
}

/// What reads an answer of this kind.
pub(crate) fn assembler() -> Box<dyn Assembler> {
    Box::new(stream::Answer::default())
}
