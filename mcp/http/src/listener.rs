//! stub
/// Limits
#[derive(Clone, Debug, Default)]
pub struct Limits {}
