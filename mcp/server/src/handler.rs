//! What a handler takes and returns: its [`Signature`](signature::Signature), how its parameters are filled
//! ([`extract`]), how its return type becomes a result ([`returns`]), and what it may ask ([`Context`](context::Context)).

pub(crate) mod context;
pub(crate) mod extract;
pub mod nearest;
pub mod returns;
pub(crate) mod schema;
pub(crate) mod signature;
