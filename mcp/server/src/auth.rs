//! [`Caller`]: the authenticated identity behind a request.

use std::sync::Arc;

/// The authenticated identity behind a request; anonymous unless a transport says otherwise.
///
/// Sessions, sealed states and tasks belong to the caller that made them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Caller(Option<Arc<str>>);

impl Caller {
    /// Nobody in particular.
    pub const ANONYMOUS: Caller = Caller(None);

    /// The identity with this stable key: issuer and subject, or the name of an API key; never a secret.
    pub fn new(id: impl Into<Arc<str>>) -> Caller {
        Caller(Some(id.into()))
    }

    /// The identity's key; `None` for anonymous.
    pub fn id(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// For logs: what kind of caller, never who.
    pub fn kind(&self) -> &'static str {
        if self.0.is_some() { "authenticated" } else { "anonymous" }
    }
}
