//! Why a provider could not be built. What goes wrong with a request later is an
//! [`ApiError`](hanzo_protocol::message::ApiError) in its stream.

use std::path::PathBuf;

/// Why a provider could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProviderError {
    /// No factory has that kind.
    #[error("provider `{provider}` has the unknown kind `{kind}`\n\nhint: known kinds are {}", known.join(", "))]
    UnknownKind {
        /// The provider's name.
        provider: String,
        /// The kind it asks for.
        kind: String,
        /// The kinds there are.
        known: Vec<String>,
    },
    /// The address cannot be used.
    #[error(
        "provider `{provider}` has the unusable `base_url` `{url}`: {reason}\n\nhint: write it like `https://api.example.com/v1`"
    )]
    BaseUrl {
        /// The provider's name.
        provider: String,
        /// The address, without a user or password.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A header or the credential has characters HTTP does not allow.
    #[error(
        "provider `{provider}` has an unusable value for `{header}`: it holds characters no header may hold\n\nhint: look for line breaks or quotation marks pasted along with the key"
    )]
    Header {
        /// The provider's name.
        provider: String,
        /// The header, or `api_key`.
        header: String,
    },
    /// An option of the kind is missing or wrong.
    #[error("provider `{provider}` has an unusable option: {reason}\n\nhint: options stand under `extra`")]
    Option {
        /// The provider's name.
        provider: String,
        /// Which, and why.
        reason: String,
    },
    /// The HTTP client could not be made.
    #[error("cannot set up the network client of provider `{provider}`: {reason}")]
    Client {
        /// The provider's name.
        provider: String,
        /// What the library said.
        reason: String,
    },
    /// A cassette could not be read.
    #[error("cannot read the cassette `{}`: {reason}\n\nhint: a cassette is made with `hanzo-dev run --record FILE`", path.display())]
    Cassette {
        /// The file.
        path: PathBuf,
        /// Where, and why.
        reason: String,
    },
}
