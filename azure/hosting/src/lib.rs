//! What an MCP server needs to live on Azure, and no more.
//!
//! - [`entra`]: access tokens of Entra ID, of both versions and of several tenants.
//! - [`principal`]: the identity that App Service authentication has established.
//! - [`identity`]: who we are at Azure's services: access tokens, kept and renewed.
//! - [`functions`]: where a custom handler of Azure Functions listens, and under which name.
//!
//! Nothing here reads the environment by itself: what needs it takes a function that does, and
//! [`environment::variable`] is the real one.

pub mod entra;
pub mod environment;
pub mod functions;
pub mod identity;
pub mod principal;

pub use entra::{AzureCloud, Entra};
pub use principal::{ClientPrincipal, IpNetwork};
