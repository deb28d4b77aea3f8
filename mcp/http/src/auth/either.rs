//! [`EitherAuthorizer`]: tries two authorizers in order.

use bindpost_mcp_server::{Caller, HttpRequest};

use crate::auth::{Authorizer, Denial, DenialKind};

/// Tries two authorizers in order. The first that identifies the caller decides. Created
/// by [`Authorizer::or`].
#[derive(Clone, Debug)]
pub struct EitherAuthorizer<A, B> {
    first: A,
    second: B,
}

impl<A, B> EitherAuthorizer<A, B> {
    pub(crate) fn new(first: A, second: B) -> EitherAuthorizer<A, B> {
        EitherAuthorizer { first, second }
    }
}

impl<A: Authorizer, B: Authorizer> Authorizer for EitherAuthorizer<A, B> {
    async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
        let first = match self.first.authorize(request).await {
            Ok(caller) if caller.is_authenticated() => return Ok(caller),
            Ok(_) => Denial::missing(),
            // Malformed credentials are rejected, even if the other authorizer reads different ones.
            Err(denial) if denial.kind == DenialKind::Malformed => return Err(denial),
            Err(denial) => denial,
        };
        match self.second.authorize(request).await {
            Ok(caller) if caller.is_authenticated() => Ok(caller),
            Ok(_) => Err(first),
            Err(second) => Err(if denial_precedence(second.kind) > denial_precedence(first.kind) {
                second
            } else {
                first
            }),
        }
    }

    fn challenge(&self) -> Option<String> {
        self.first.challenge()
    }

    fn challenges(&self) -> Vec<Option<String>> {
        let mut all = self.first.challenges();
        for challenge in self.second.challenges() {
            if !all.contains(&challenge) {
                all.push(challenge);
            }
        }
        all
    }

    fn headers(&self) -> Vec<String> {
        self.first.headers().into_iter().chain(self.second.headers()).collect()
    }

    fn authorization_servers(&self) -> Vec<String> {
        self.first.authorization_servers().into_iter().chain(self.second.authorization_servers()).collect()
    }

    fn identity_headers(&self) -> Vec<String> {
        self.first.identity_headers().into_iter().chain(self.second.identity_headers()).collect()
    }

    fn knows(&self, caller: &Caller) -> bool {
        self.first.knows(caller) && self.second.knows(caller)
    }

    fn problem(&self) -> Option<String> {
        self.first.problem().or_else(|| self.second.problem())
    }

    fn warnings(&self, needed: &[String]) -> Vec<String> {
        let mut all = self.first.warnings(needed);
        all.extend(self.second.warnings(needed));
        all
    }
}

/// Ranks denials. Of two denials the higher one is reported: one about credentials that were sent
/// before one about missing ones, and one about credentials that could not be verified before one about
/// invalid ones.
fn denial_precedence(kind: DenialKind) -> u8 {
    match kind {
        DenialKind::Missing => 0,
        DenialKind::Invalid => 1,
        DenialKind::Unavailable => 2,
        DenialKind::Failed => 3,
        DenialKind::Malformed => 4,
    }
}
