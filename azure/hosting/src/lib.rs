//! Runs MCP servers on Azure.
//!
//! - [`entra`]: authentication by access tokens of Entra ID, of both versions and of several tenants.
//! - [`principal`]: authentication by the identity that App Service authentication has established.
//! - [`identity`]: access tokens for Azure's services, cached and renewed.
//! - [`functions`]: the address and the host names of a custom handler of Azure Functions.
//!
//! No module reads the environment by itself. Functions that need it take a lookup function.
//! [`environment::variable`] looks up the real environment.

pub mod entra;
pub mod environment;
pub mod functions;
pub mod identity;
pub mod principal;

pub use entra::{AzureCloud, Entra};
pub use principal::{ClientPrincipal, IDENTITY_HEADERS, IpNetwork};
