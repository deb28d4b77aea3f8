//! [`Caller`]: the authenticated identity behind a request. [`Access`]: who may use an entry.
//!
//! Nothing here knows how an identity is established; a transport does that and asks
//! [`Server::demand`] what a message needs before it hands the message on.

use std::sync::Arc;
use std::time::Instant;

use bindpost_mcp_protocol::Request;
use serde_json::{Map, Value};

use crate::dispatch::find_line;
use crate::server::Server;

/// The authenticated identity behind a request; anonymous unless a transport says otherwise.
///
/// Two callers are the same if their ids are: rights may change from one token to the next, and sessions,
/// sealed states, streams and tasks belong to the caller that made them.
///
/// ```
/// use bindpost_mcp_server::{Caller, Identity};
///
/// let caller = Caller::from(Identity::new("https://issuer.example|alice").scope("orders.read"));
/// assert!(caller.has_scope("orders.read"));
/// assert_eq!(caller, Caller::new("https://issuer.example|alice"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Caller(Option<Arc<Identity>>);

/// Who somebody is, and what they may do.
#[derive(Clone, Default, PartialEq)]
pub struct Identity {
    id: String,
    name: Option<String>,
    scopes: Vec<String>,
    roles: Vec<String>,
    claims: Map<String, Value>,
    expires_at: Option<Instant>,
}

/// Claims are for handlers, not for logs.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Identity {
    /// The identity with this stable key: issuer and subject, or the name of an API key; never a secret.
    pub fn new(id: impl Into<String>) -> Identity {
        Identity { id: id.into(), ..Identity::default() }
    }

    /// Its name for people.
    pub fn name(mut self, name: impl Into<String>) -> Identity {
        self.name = Some(name.into());
        self
    }

    /// One more right that a user has granted.
    pub fn scope(mut self, scope: impl Into<String>) -> Identity {
        self.scopes.push(scope.into());
        self
    }

    /// One more right that an application has by itself.
    pub fn role(mut self, role: impl Into<String>) -> Identity {
        self.roles.push(role.into());
        self
    }

    /// What the token or the platform says of it.
    pub fn claims(mut self, claims: Map<String, Value>) -> Identity {
        self.claims = claims;
        self
    }

    /// When the credentials it was established by expire. Requests are checked by the authorizer, each on its
    /// own; this is for what outlives a request, such as a stream.
    pub fn expires_at(mut self, deadline: Instant) -> Identity {
        self.expires_at = Some(deadline);
        self
    }
}

impl From<Identity> for Caller {
    fn from(identity: Identity) -> Caller {
        Caller(Some(Arc::new(identity)))
    }
}

impl PartialEq for Caller {
    fn eq(&self, other: &Caller) -> bool {
        self.id() == other.id()
    }
}

impl Eq for Caller {}

impl std::hash::Hash for Caller {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.id().hash(state);
    }
}

impl Caller {
    /// Nobody in particular.
    pub const ANONYMOUS: Caller = Caller(None);

    /// The identity with this stable key and nothing else.
    pub fn new(id: impl Into<String>) -> Caller {
        Identity::new(id).into()
    }

    /// The identity's key; `None` for anonymous.
    pub fn id(&self) -> Option<&str> {
        self.0.as_deref().map(|identity| identity.id.as_str())
    }

    /// Its name for people, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()?.name.as_deref()
    }

    /// Whether somebody is known.
    pub fn is_authenticated(&self) -> bool {
        self.0.is_some()
    }

    /// The rights a user has granted.
    pub fn scopes(&self) -> &[String] {
        self.0.as_deref().map(|identity| identity.scopes.as_slice()).unwrap_or_default()
    }

    /// The rights an application has by itself.
    pub fn roles(&self) -> &[String] {
        self.0.as_deref().map(|identity| identity.roles.as_slice()).unwrap_or_default()
    }

    /// Whether a user has granted this right.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes().iter().any(|granted| granted == scope)
    }

    /// Whether the application has this right by itself.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles().iter().any(|given| given == role)
    }

    /// One thing the token or the platform says of it.
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.claims()?.get(name)
    }

    /// Everything the token or the platform says of it; `None` for anonymous.
    pub fn claims(&self) -> Option<&Map<String, Value>> {
        self.0.as_deref().map(|identity| &identity.claims)
    }

    /// When the credentials of this request expire, any tolerance for differing clocks included; `None` if they
    /// do not expire, or if the authorizer does not know. It is no part of who the caller is: two callers with
    /// the same id are the same, whenever their credentials expire.
    pub fn expires_at(&self) -> Option<Instant> {
        self.0.as_deref()?.expires_at
    }

    /// For logs: what kind of caller, never who.
    pub fn kind(&self) -> &'static str {
        if self.0.is_some() { "authenticated" } else { "anonymous" }
    }
}

/// Who may use an entry: any known caller, unless it says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    anonymous: bool,
    scopes: Vec<String>,
    roles: Vec<String>,
}

impl Access {
    /// Anybody, known or not.
    pub fn anonymous() -> Access {
        Access { anonymous: true, ..Access::default() }
    }

    /// Callers whose user has granted all of these rights.
    pub fn with_scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Access {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Applications that have all of these rights by themselves; instead of the scopes, not besides them.
    pub fn with_roles(mut self, roles: impl IntoIterator<Item = impl Into<String>>) -> Access {
        self.roles.extend(roles.into_iter().map(Into::into));
        self
    }

    /// Whether anybody may.
    pub fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    /// The scopes that are needed, all of them.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// The roles that are needed where there are no scopes.
    pub fn roles(&self) -> &[String] {
        &self.roles
    }

    /// Whether this caller may.
    pub fn permits(&self, caller: &Caller) -> bool {
        if self.anonymous {
            return true;
        }
        let by_scopes = || !self.scopes.is_empty() && self.scopes.iter().all(|scope| caller.has_scope(scope));
        let by_roles = || !self.roles.is_empty() && self.roles.iter().all(|role| caller.has_role(role));
        caller.is_authenticated()
            && (self.scopes.is_empty() && self.roles.is_empty() || by_scopes() || by_roles())
    }
}

/// What a message demands of its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// It opens a conversation, keeps one going, lists: open while the server is.
    Opening,
    /// A known caller, whoever it is.
    Known,
    /// What these entries demand, all of them.
    Entries(Vec<Arc<Access>>),
}

impl Demand {
    pub(crate) fn of(access: Option<Arc<Access>>) -> Demand {
        // A name that is not there demands what most entries do: nobody learns what is there by asking.
        access.map_or(Demand::Known, |access| Demand::Entries(vec![access]))
    }
}

impl Server {
    /// What a request demands of its caller, whatever its revision.
    pub fn demand(&self, request: &Request) -> Demand {
        match find_line(request.method()) {
            Some(line) => (line.demands)(self.shared(), request.params()),
            None => Demand::Opening,
        }
    }

    /// Whether at least one entry is for anybody.
    pub fn has_anonymous_entries(&self) -> bool {
        self.shared().catalog.snapshot().has_anonymous()
    }

    /// Every scope that some entry needs, sorted.
    pub fn scopes(&self) -> Vec<String> {
        self.shared().catalog.snapshot().scopes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_opens_to_whom_it_says() {
        let user = Caller::from(Identity::new("u").scope("a").scope("b"));
        let app = Caller::from(Identity::new("app").role("a").role("Orders.All"));
        let nobody = Caller::ANONYMOUS;
        for (access, user_may, app_may, nobody_may) in [
            (Access::anonymous(), true, true, true),
            (Access::default(), true, true, false),
            (Access::default().with_scopes(["a"]), true, false, false),
            (Access::default().with_scopes(["a", "c"]), false, false, false),
            (Access::default().with_scopes(["c"]).with_roles(["Orders.All"]), false, true, false),
            (Access::default().with_roles(["Orders.All"]), false, true, false),
        ] {
            let may = [&user, &app, &nobody].map(|caller| access.permits(caller));
            assert_eq!(may, [user_may, app_may, nobody_may], "{access:?}");
        }
    }

    #[test]
    fn an_expiry_is_no_part_of_who_the_caller_is() {
        let now = Instant::now();
        let [soon, late] = [1, 3600].map(|seconds| {
            Caller::from(Identity::new("u").expires_at(now + std::time::Duration::from_secs(seconds)))
        });
        assert_eq!(soon, late);
        assert_eq!(soon, Caller::new("u"));
        assert_eq!(std::collections::HashSet::from([soon.clone(), late.clone(), Caller::new("u")]).len(), 1);
        assert!(soon.expires_at() < late.expires_at());
        assert_eq!((Caller::new("u").expires_at(), Caller::ANONYMOUS.expires_at()), (None, None));
    }

    #[test]
    fn claims_stay_out_of_logs() {
        let claims = Map::from_iter([("email".to_owned(), Value::from("alice@example.com"))]);
        let caller = Caller::from(Identity::new("u").claims(claims));
        assert!(!format!("{caller:?}").contains("alice@"));
    }
}
