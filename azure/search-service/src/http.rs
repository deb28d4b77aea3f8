//! The HTTP layer of the service: connections, routes, query parameters, keys and response formats.
//!
//! A request passes through these files in this order: `serve` → `service` → `route` → `request` → the
//! definitions in [`crate::resources`], or the [`Backend`] → `answer`.

pub(crate) mod answer;
pub(crate) mod backend;
pub mod certificate;
mod cors;
mod guard;
pub(crate) mod parameters;
mod request;
pub(crate) mod route;
mod serve;
mod service;
pub mod statistics;
mod version;

pub use self::answer::HttpReply;
pub use self::backend::{Answering, Backend, RequestContext, SearchCall};
pub use self::serve::{connection_limits, serve};
pub use self::service::HttpService;
