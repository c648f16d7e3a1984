//! Signing in to the services hanzo-dev works with.
//!
//! * [`pkce`]: the secret that ties an authorization request to its token exchange.

pub mod pkce;
