//! The one way hanzo-dev reaches the network.
//!
//! * [`client`]: HTTP clients that can be made on every machine, with TLS that needs no C library.
//! * [`address`]: which addresses are public and what the others are.
//! * [`guard`]: who may be reached for whom. A name is checked while it is resolved, and the connection goes to the addresses
//!   that were checked: a second answer of a name server is never asked for.
//! * [`stream`]: a connection without HTTP, under the same rules.

pub mod address;
pub mod client;
pub mod guard;
pub mod stream;

pub use url::Url;
