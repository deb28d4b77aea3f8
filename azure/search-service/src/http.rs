//! The HTTP layer of the service: connections, routes, query parameters, keys and response formats.
//!
//! A request passes through these files in this order: `serve` → `service` → `route` → `request` → the
//! definitions in [`crate::resources`], or the [`Backend`] → `answer`.

pub mod answer;
pub mod backend;
pub mod certificate;
mod guard;
pub mod parameters;
mod request;
pub mod route;
mod serve;
mod service;
pub mod statistics;

pub use self::answer::HttpReply;
pub use self::backend::{Answering, Backend, RequestContext, SearchCall, SearchMethod};
pub use self::serve::{connection_limits, serve};
pub use self::service::HttpService;
