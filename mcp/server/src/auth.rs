//! [`Caller`]: the authenticated identity behind a request. [`AccessRule`]: which callers may use an entry.
//!
//! Authentication is the task of the transport, not of this module. The transport authorizes a message
//! before it dispatches it, with the functions in `required.rs`.

pub(crate) mod required;

use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value};

/// The authenticated identity behind a request. The default is anonymous.
///
/// Two callers are equal if their ids are equal, because rights may change from one token to the next.
/// Sessions, request states, streams and tasks belong to the caller that created them.
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

/// The kind of a caller, which decides how it gets its rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallerKind {
    /// The request is unauthenticated.
    Anonymous,
    /// A user on whose behalf an application acts. Its rights are the scopes that the user granted.
    User,
    /// An application that acts on its own behalf. Its rights are the roles that were assigned to it.
    Application,
    /// An authenticated caller of neither kind, such as an API key. Its rights work like those of a user.
    #[default]
    Other,
}

impl CallerKind {
    /// Returns the name of the kind in logs.
    pub fn as_str(self) -> &'static str {
        match self {
            CallerKind::Anonymous => "anonymous",
            CallerKind::User => "user",
            CallerKind::Application => "application",
            CallerKind::Other => "authenticated",
        }
    }
}

/// The id, name, rights and claims of an authenticated caller.
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

/// Shows the id only: claims must not reach the logs.
impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Identity {
    /// Returns an identity with this stable id: issuer and subject, or the name of an API key. The id must
    /// not be a secret.
    pub fn new(id: impl Into<String>) -> Identity {
        Identity { id: id.into(), ..Identity::default() }
    }

    /// Sets the display name.
    pub fn name(mut self, name: impl Into<String>) -> Identity {
        self.name = Some(name.into());
        self
    }

    /// Marks the identity as a user on whose behalf an application acts.
    pub fn user(mut self) -> Identity {
        self.kind = CallerKind::User;
        self
    }

    /// Marks the identity as an application that acts on its own behalf. Only its roles give it rights.
    pub fn application(mut self) -> Identity {
        self.kind = CallerKind::Application;
        self
    }

    /// Adds a scope that the user granted.
    pub fn scope(mut self, scope: impl Into<String>) -> Identity {
        self.scopes.push(scope.into());
        self
    }

    /// Adds scopes that the user granted.
    ///
    /// ```
    /// use bindpost_mcp_server::{Caller, Identity};
    ///
    /// let ada = Caller::from(Identity::new("ada").user().scopes(["orders.read", "orders.write"]));
    /// assert_eq!(ada.scopes(), ["orders.read", "orders.write"]);
    /// ```
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Identity {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Adds a role of the application or of the user.
    pub fn role(mut self, role: impl Into<String>) -> Identity {
        self.roles.push(role.into());
        self
    }

    /// Sets the claims from the token or the platform.
    pub fn claims(mut self, claims: Map<String, Value>) -> Identity {
        self.claims = claims;
        self
    }

    /// Sets the time when the credentials expire. The authorizer checks each request on its own. The expiry
    /// is for things that outlive a request, such as a stream.
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
    /// The caller of an unauthenticated request.
    pub const ANONYMOUS: Caller = Caller(None);

    /// Returns a caller with this stable id and no rights or claims.
    pub fn new(id: impl Into<String>) -> Caller {
        Identity::new(id).into()
    }

    /// Returns the id; `None` for anonymous.
    pub fn id(&self) -> Option<&str> {
        self.0.as_deref().map(|identity| identity.id.as_str())
    }

    /// Returns the display name, if it has one.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()?.name.as_deref()
    }

    /// Returns whether the caller is authenticated.
    pub fn is_authenticated(&self) -> bool {
        self.0.is_some()
    }

    /// Returns the scopes that the user granted.
    pub fn scopes(&self) -> &[String] {
        self.0.as_deref().map(|identity| identity.scopes.as_slice()).unwrap_or_default()
    }

    /// Returns the roles that were assigned to the application or to the user.
    pub fn roles(&self) -> &[String] {
        self.0.as_deref().map(|identity| identity.roles.as_slice()).unwrap_or_default()
    }

    /// Returns whether the user granted this scope.
    pub fn has_scope(&self, scope: &str) -> bool {
        self.scopes().iter().any(|granted| granted == scope)
    }

    /// Returns whether the application or the user has this role.
    pub fn has_role(&self, role: &str) -> bool {
        self.roles().iter().any(|given| given == role)
    }

    /// Returns one claim from the token or the platform.
    pub fn claim(&self, name: &str) -> Option<&Value> {
        self.claims()?.get(name)
    }

    /// Returns all claims from the token or the platform; `None` for anonymous.
    pub fn claims(&self) -> Option<&Map<String, Value>> {
        self.0.as_deref().map(|identity| &identity.claims)
    }

    /// Returns when the credentials of this request expire, including any tolerance for clock skew. `None`
    /// means that they do not expire or that the authorizer does not provide the time. The expiry is not
    /// part of the identity: two callers with the same id are equal.
    pub fn expires_at(&self) -> Option<Instant> {
        self.0.as_deref()?.expires_at
    }

    /// Returns the kind of the caller.
    pub fn kind(&self) -> CallerKind {
        self.0.as_deref().map_or(CallerKind::Anonymous, |identity| identity.kind)
    }
}

/// The callers that may use an entry. The default is every authenticated caller.
///
/// Users are authorized by scopes and user roles, applications by application roles. If a rule has
/// requirements for one kind of caller only, callers of the other kind are rejected.
///
/// ```
/// use bindpost_mcp_server::{AccessRule, Caller, Identity};
///
/// let access = AccessRule::default().with_scopes(["orders.write"]).with_roles(["Orders.Write"]);
/// let user = Caller::from(Identity::new("alice").user().scope("orders.write"));
/// let application = Caller::from(Identity::new("till").application().role("Orders.Write"));
/// assert!(access.permits(&user) && access.permits(&application));
/// // An application role does not authorize a user.
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

/// The rights that a rejected caller would need to use an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LackingRights<'a> {
    /// All scopes that the entry requires, if at least one is missing. A client can ask its user
    /// to grant them.
    pub scopes: &'a [String],
    /// All roles that the entry requires of this kind of caller, if at least one is missing. An administrator
    /// assigns them.
    pub roles: &'a [String],
}

impl AccessRule {
    /// Returns a rule that permits every caller, authenticated or not.
    pub fn anonymous() -> AccessRule {
        AccessRule { anonymous: true, ..AccessRule::default() }
    }

    /// Requires all of these scopes of users.
    pub fn with_scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> AccessRule {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Requires all of these roles of users, in addition to the scopes.
    pub fn with_user_roles(mut self, roles: impl IntoIterator<Item = impl Into<String>>) -> AccessRule {
        self.user_roles.extend(roles.into_iter().map(Into::into));
        self
    }

    /// Permits applications that act on their own behalf and have all of these roles.
    pub fn with_roles(mut self, roles: impl IntoIterator<Item = impl Into<String>>) -> AccessRule {
        self.roles.extend(roles.into_iter().map(Into::into));
        self
    }

    /// Returns whether every caller is permitted, authenticated or not.
    pub fn is_anonymous(&self) -> bool {
        self.anonymous
    }

    /// Returns the scopes that a user needs. All of them are required.
    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// Returns the roles that a user needs in addition to the scopes. All of them are required.
    pub fn user_roles(&self) -> &[String] {
        &self.user_roles
    }

    /// Returns the roles that an application needs. All of them are required.
    pub fn roles(&self) -> &[String] {
        &self.roles
    }

    /// Returns whether this caller is permitted.
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

    /// Returns the rights that this caller lacks. If both lists are empty although the caller is not
    /// permitted, the rule excludes its kind of caller.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_permits_the_callers_it_names() {
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
            // User roles are required in addition to the scopes, and of users only.
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
    fn scopes_give_no_rights_to_an_application() {
        let app = Caller::from(Identity::new("app").application().scope("a").role("Other"));
        assert!(!AccessRule::default().with_scopes(["a"]).permits(&app));
        assert!(!AccessRule::default().with_scopes(["a"]).with_roles(["Orders.All"]).permits(&app));
    }

    #[test]
    fn lacking_rights_depend_on_the_kind_of_caller() {
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
    fn the_expiry_is_not_part_of_the_identity() {
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
