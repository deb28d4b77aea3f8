//! The interface of a handler: its [`Signature`](signature::Signature), how its parameters are
//! filled ([`extract`]), how its return type becomes a result ([`returns`]), and its access to
//! the call ([`Context`](context::Context)).

pub(crate) mod blocking;
pub(crate) mod context;
pub(crate) mod extract;
pub(crate) mod form;
pub mod nearest;
pub(crate) mod progress;
pub mod returns;
pub(crate) mod schema;
pub(crate) mod signature;
