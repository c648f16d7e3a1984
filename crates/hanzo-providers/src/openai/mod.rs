//! The kind `openai`: streaming chat completions, as OpenAI speaks them and everybody else almost does.

mod calls;
mod request;
mod stream;

use crate::client::Dialect;
use crate::quirks::Auth;
use crate::reader::Assembler;
use crate::{Client, ProviderConfig, ProviderError};

/// The name of the kind.
pub const KIND: &str = "openai";

static DIALECT: Dialect = Dialect {
    base_url: "https://api.openai.com/v1",
    path: "/chat/completions",
    auth: Auth::Bearer,
    headers: |_| Vec::new(),
    body: request::body,
    assembler,
};

/// A client of an OpenAI-compatible endpoint, whose `extra` options are [`Quirks`](crate::quirks::Quirks).
pub fn client(config: ProviderConfig) -> Result<Client, ProviderError> {
    Client::new(config, &DIALECT)
}

/// What reads an answer of this kind.
pub(crate) fn assembler() -> Box<dyn Assembler> {
    Box::new(stream::Answer::default())
}
