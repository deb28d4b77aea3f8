//! An OAuth 2.1 resource server: it checks JWT access tokens and issues none.
//!
//! [`TokenAuthorizer`] is an [`Authorizer`](bindpost_mcp_http::Authorizer). It takes tokens of the [`Issuer`]s it
//! trusts, made for an audience it stands for, and turns their claims into a
//! [`Caller`](bindpost_mcp_server::Caller). What a caller may do is for the entries to say.
//!
//! ```
//! use bindpost_mcp_oauth::{Issuer, Tokens};
//!
//! # fn main() -> Result<(), bindpost_mcp_oauth::ConfigError> {
//! let tokens = Tokens::builder()
//!     .issuer(Issuer::new("https://issuer.example"))
//!     .audience("https://api.example/mcp")
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! An issuer's keys are fetched when the first token comes, so a server starts without its issuer.
//! What an issuer or a client can make us do is bounded by [`OAuthLimits`].

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
