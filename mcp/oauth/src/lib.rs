//! An OAuth 2.1 resource server: it validates JWT access tokens and issues none.
//!
//! [`TokenAuthorizer`] is an [`Authorizer`](bindpost_mcp_http::Authorizer). It accepts tokens of
//! trusted [`Issuer`]s for one of its audiences, and turns their claims into a
//! [`Caller`](bindpost_mcp_server::Caller). The entries of the server decide what a caller may do.
//!
//! ```
//! use bindpost_mcp_oauth::{Issuer, TokenAuthorizer};
//!
//! # fn main() -> Result<(), bindpost_mcp_oauth::ConfigError> {
//! let tokens = TokenAuthorizer::builder()
//!     .issuer(Issuer::new("https://issuer.example"))
//!     .audience("https://api.example/mcp")
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! The keys of an issuer are fetched for the first token, so a server can start while its issuer is down.
//! [`OAuthLimits`] bound the work that an issuer or a client can cause.
//!
//! Files, in reading order: `tokens.rs` (the authorizer), `issuer.rs`, `bearer.rs` and `token.rs` (a token in a request),
//! `claims.rs`, `jwks.rs`, `fetch.rs` and `key.rs` (keys of issuers), `verified.rs` and `callers.rs` (caches), `limits.rs`.

mod bearer;
mod callers;
mod claims;
mod fetch;
mod issuer;
mod jwks;
mod key;
mod limits;
mod token;
mod tokens;
mod verified;

pub use issuer::{Algorithm, Issuer};
pub use limits::OAuthLimits;
pub use tokens::{ConfigError, TokenAuthorizer, TokenAuthorizerBuilder};
