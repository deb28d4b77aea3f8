//! [`Caller`]: the authenticated identity behind a request. [`AccessRule`]: which callers may use an entry.
//!
//! Nothing here knows how an identity is established; a transport does that and asks
//! [`Server::required_access`] what a message needs before it hands the message on.

use std::sync::Arc;
use std::time::Instant;

use bindpost_mcp_protocol::Request;
use serde_json::{Map, Value};

use crate::dispatch::find_method;
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

/// What a caller is, and so by what it gets its rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallerKind {
    /// No caller is known.
    Anonymous,
    /// A user who lets an application act for them. It may do what they granted it: scopes.
    User,
    /// An application that acts for itself. It may do what it was assigned: roles.
    Application,
    /// A caller that is known, of neither kind: that of an API key, or of an authorizer that says no more. It
    /// gets its rights as a user does.
    #[default]
    Other,
}

impl CallerKind {
    /// Its name in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            CallerKind::Anonymous => "anonymous",
            CallerKind::User => "user",
            CallerKind::Application => "application",
            CallerKind::Other => "authenticated",
        }
    }
}

/// A caller's key, its name, and what it may do.
#[derive(Clone, Default, PartialEq)]
pub struct Identity {
    id: String,
    kind: CallerKind,
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

    /// It is a user, for whom an application acts.
    pub fn user(mut self) -> Identity {
        self.kind = CallerKind::User;
        self
    }

    /// It is an application that acts for itself: only its roles give it rights.
    pub fn application(mut self) -> Identity {
        self.kind = CallerKind::Application;
        self
    }

    /// One more right that a user has granted.
    pub fn scope(mut self, scope: impl Into<String>) -> Identity {
        self.scopes.push(scope.into());
        self
    }

    /// One more role, of the application or of the user.
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

    /// The roles that were assigned to the application, or to the user.
    pub fn roles(&self) -> &[String] {
        self.0.as_deref().map(|identity| identity.roles.as_slice()).unwrap_or_default()
    }

    /// Whether a user has granted this right.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes().iter().any(|granted| granted == scope)
    }

    /// Whether the application, or the user, has this role.
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

    /// What it is: a user, an application, neither, or not known.
    pub fn kind(&self) -> CallerKind {
        self.0.as_deref().map_or(CallerKind::Anonymous, |identity| identity.kind)
    }
}

/// Who may use an entry: any known caller, unless it says otherwise.
///
/// Each kind of caller is let in by what is demanded of it, and by nothing else: users by scopes and roles of
/// users, applications by roles of applications. Where something is demanded of one kind only, the other is
/// refused.
///
/// ```
/// use bindpost_mcp_server::{Access, Caller, Identity};
///
/// let access = Access::default().with_scopes(["orders.write"]).with_roles(["Orders.Write"]);
/// let user = Caller::from(Identity::new("alice").user().scope("orders.write"));
/// let application = Caller::from(Identity::new("till").application().role("Orders.Write"));
/// assert!(access.permits(&user) && access.permits(&application));
/// // The role of a user is no right of an application.
/// let other = Caller::from(Identity::new("bob").user().scope("other").role("Orders.Write"));
/// assert!(!access.permits(&other));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessRule {
    anonymous: bool,
    scopes: Vec<String>,
    user_roles: Vec<String>,
    roles: Vec<String>,
}

/// What a caller that may not use an entry would need.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LackingRights<'a> {
    /// Scopes: all that the entry demands if one of them is missing. A client can ask its user for them.
    pub scopes: &'a [String],
    /// Roles: all that the entry demands of this kind of caller if one of them is missing. They are assigned by
    /// an administrator.
    pub roles: &'a [String],
}

impl AccessRule {
    /// Anybody, known or not.
    pub fn anonymous() -> AccessRule {
        AccessRule { anonymous: true, ..AccessRule::default() }
    }

    /// Callers whose user has granted all of these rights.
    pub fn with_scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> AccessRule {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Users who have all of these roles, besides the scopes.
    pub fn with_user_roles(mut self, roles: impl IntoIterator<Item = impl Into<String>>) -> AccessRule {
        self.user_roles.extend(roles.into_iter().map(Into::into));
        self
    }

    /// Applications that act for themselves and have all of these roles. Nothing else lets an application in.
    pub fn with_roles(mut self, roles: impl IntoIterator<Item = impl Into<String>>) -> AccessRule {
        self.roles.extend(roles.into_iter().map(Into::into));
        self
    }

    /// Whether anybody may.
    pub fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    /// The scopes that a user needs, all of them.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// The roles that a user needs besides the scopes, all of them.
    pub fn user_roles(&self) -> &[String] {
        &self.user_roles
    }

    /// The roles that an application needs, all of them.
    pub fn roles(&self) -> &[String] {
        &self.roles
    }

    /// Whether this caller may.
    pub fn permits(&self, caller: &Caller) -> bool {
        if self.anonymous {
            return true;
        }
        let for_users = !self.scopes.is_empty() || !self.user_roles.is_empty();
        let for_applications = !self.roles.is_empty();
        match caller.kind() {
            CallerKind::Anonymous => false,
            _ if !for_users && !for_applications => true,
            CallerKind::Application => {
                for_applications && self.roles.iter().all(|role| caller.has_role(role))
            }
            CallerKind::User | CallerKind::Other => {
                for_users
                    && self.scopes.iter().all(|scope| caller.has_scope(scope))
                    && self.user_roles.iter().all(|role| caller.has_role(role))
            }
        }
    }

    /// What this caller lacks. Nothing of both kinds, although it may not, means that the entry is not for its
    /// kind of caller.
    pub fn lacking_rights(&self, caller: &Caller) -> LackingRights<'_> {
        fn unless_all(demanded: &[String], has: impl Fn(&str) -> bool) -> &[String] {
            if demanded.iter().all(|right| has(right)) { &[] } else { demanded }
        }
        match caller.kind() {
            CallerKind::Anonymous => LackingRights { scopes: &self.scopes, roles: &[] },
            CallerKind::Application => {
                LackingRights { scopes: &[], roles: unless_all(&self.roles, |role| caller.has_role(role)) }
            }
            CallerKind::User | CallerKind::Other => LackingRights {
                scopes: unless_all(&self.scopes, |scope| caller.has_scope(scope)),
                roles: unless_all(&self.user_roles, |role| caller.has_role(role)),
            },
        }
    }
}

/// What a message demands of its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequiredAccess {
    /// It opens a conversation, keeps one going, lists: open while the server is.
    Opening,
    /// A known caller, whoever it is.
    Known,
    /// What these entries demand, all of them.
    Entries(Vec<Arc<AccessRule>>),
}

impl RequiredAccess {
    pub(crate) fn from_rule(access: Option<Arc<AccessRule>>) -> RequiredAccess {
        // A name that is not there demands what most entries do: nobody learns what is there by asking.
        access.map_or(RequiredAccess::Known, |access| RequiredAccess::Entries(vec![access]))
    }
}

impl Server {
    /// What a request demands of its caller, whatever its revision.
    pub fn required_access(&self, request: &Request) -> RequiredAccess {
        match find_method(request.method()) {
            Some(line) => (line.demands)(self.shared(), request.params()),
            None => RequiredAccess::Opening,
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
        let user = Caller::from(Identity::new("u").user().scope("a").scope("b").role("Manager"));
        let key = Caller::from(Identity::new("key:k").scope("a").scope("b").role("Orders.All"));
        let app = Caller::from(Identity::new("app").application().role("a").role("Orders.All"));
        let access = AccessRule::default;
        for (access, user_may, key_may, app_may, anonymous_may) in [
            (AccessRule::anonymous(), true, true, true, true),
            (access(), true, true, true, false),
            (access().with_scopes(["a"]), true, true, false, false),
            (access().with_scopes(["a", "c"]), false, false, false, false),
            (access().with_scopes(["c"]).with_roles(["Orders.All"]), false, false, true, false),
            (access().with_scopes(["a"]).with_roles(["Orders.All"]), true, true, true, false),
            (access().with_scopes(["a"]).with_roles(["Other"]), true, true, false, false),
            (access().with_roles(["Orders.All"]), false, false, true, false),
            (access().with_roles(["Orders.All", "Other"]), false, false, false, false),
            // The roles of users are demanded besides the scopes, and of users only.
            (access().with_scopes(["a"]).with_user_roles(["Manager"]), true, false, false, false),
            (access().with_scopes(["c"]).with_user_roles(["Manager"]), false, false, false, false),
            (access().with_user_roles(["Manager"]), true, false, false, false),
            (access().with_user_roles(["Orders.All"]), false, true, false, false),
            (access().with_user_roles(["Manager"]).with_roles(["Orders.All"]), true, false, true, false),
        ] {
            let may = [&user, &key, &app, &Caller::ANONYMOUS].map(|caller| access.permits(caller));
            assert_eq!(may, [user_may, key_may, app_may, anonymous_may], "{access:?}");
        }
    }

    #[test]
    fn an_application_has_no_use_for_scopes() {
        let app = Caller::from(Identity::new("app").application().scope("a").role("Other"));
        assert!(!AccessRule::default().with_scopes(["a"]).permits(&app));
        assert!(!AccessRule::default().with_scopes(["a"]).with_roles(["Orders.All"]).permits(&app));
    }

    #[test]
    fn what_is_lacking_is_told_by_kind() {
        let access = AccessRule::default().with_scopes(["a", "b"]).with_user_roles(["M"]).with_roles(["R"]);
        let identity = || Identity::new("i");
        for (caller, scopes, roles) in [
            (Caller::ANONYMOUS, &["a", "b"][..], &[][..]),
            (identity().user().scope("a").into(), &["a", "b"], &["M"]),
            (identity().user().scope("a").scope("b").into(), &[], &["M"]),
            (identity().user().scope("a").role("M").into(), &["a", "b"], &[]),
            (identity().scope("a").scope("b").role("M").into(), &[], &[]),
            (identity().application().scope("a").role("M").into(), &[], &["R"]),
            (identity().application().role("R").into(), &[], &[]),
        ] {
            let lacking = access.lacking_rights(&caller);
            assert_eq!(
                (lacking.scopes.join(" "), lacking.roles.join(" ")),
                (scopes.join(" "), roles.join(" "))
            );
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
