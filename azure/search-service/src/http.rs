//! The HTTP side of the service: connections, addresses, options, keys and the shape of answers.
//!
//! A request goes through these files in this order: `serve` → `service` → `route` → `request` → the
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
