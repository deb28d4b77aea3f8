//! Any OpenAPI or Swagger document as MCP tools and resources.
//!
//! A [`Document`] is what was read: Swagger 2.0, OpenAPI 3.0 or 3.1, with references resolved and schemas turned into
//! JSON Schema 2020-12. An [`Upstream`] is the service it describes: where it is, who we are there, how long we wait.

mod budget;
mod confirm;
mod cursor;
mod document;
mod operation;
mod request;
mod schema;
mod upstream;

pub use budget::fitting;
pub use confirm::confirm;
pub use cursor::{CursorError, Cursors};
pub use document::{Document, DocumentError, LoadOptions};
pub use operation::{Body, Media, Operation, Parameter, Place, Response, Status, Style};
pub use request::{RequestError, body_argument, outgoing};
pub use schema::{Purpose, Subtype};
pub use upstream::{
    Credential, CredentialSource, Incoming, Outgoing, Secret, Upstream, UpstreamBuilder, UpstreamError,
    UpstreamLimits,
};
