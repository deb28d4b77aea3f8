//! [`ClientPrincipal`]: authentication by the identity that App Service authentication sends.
//!
//! The platform in front checks credentials and sends the identity in a header. Without that platform any
//! client can send the header. So it is accepted only from trusted peers, and the HTTP transport removes it
//! unless `Settings::trust_platform_identity` is set.

use std::net::IpAddr;
use std::str::FromStr;
use std::sync::Once;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bindpost_mcp_http::{Authorizer, Denial};
use bindpost_mcp_server::{Caller, HttpRequest, Identity};
use serde::Deserialize;
use serde_json::{Map, Value};

const HEADER: &str = "x-ms-client-principal";

/// The beginnings of the names of the headers in which App Service names the user, for
/// [`Settings::identity_headers`](bindpost_mcp_http::Settings::identity_headers).
pub const IDENTITY_HEADERS: [&str; 2] = [HEADER, "x-ms-token-"];

static WARNED: Once = Once::new();

// Each claim has a short name and a long XML name.
const TENANT: [&str; 2] = ["tid", "http://schemas.microsoft.com/identity/claims/tenantid"];
const OBJECT: [&str; 2] = ["oid", "http://schemas.microsoft.com/identity/claims/objectidentifier"];
const SUBJECT: [&str; 2] = ["http://schemas.xmlsoap.org/ws/2005/05/identity/claims/nameidentifier", "sub"];
const SCOPES: [&str; 2] = ["scp", "http://schemas.microsoft.com/identity/claims/scope"];

/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Accepts `X-MS-CLIENT-PRINCIPAL` from the loopback and from trusted peers.
///
/// ```
/// use bindpost_azure_hosting::ClientPrincipal;
/// use bindpost_mcp_http::{Auth, Settings};
///
/// let settings = Settings {
///     auth: Some(Auth::new(ClientPrincipal::new())),
///     // Only behind the platform, which removes headers that clients forge.
///     trust_platform_identity: true,
///     ..Settings::default()
/// };
/// # let _ = settings;
/// ```
#[derive(Clone, Debug, Default)]
pub struct ClientPrincipal {
    trusted: Vec<IpNetwork>,
}

impl ClientPrincipal {
    /// Accepts the header from the loopback, such as from the host of Azure Functions on the same machine.
    pub fn new() -> ClientPrincipal {
        ClientPrincipal::default()
    }

    /// Accepts the header also from these peers, such as the proxy that the platform puts in front of a
    /// container.
    ///
    /// ```
    /// use bindpost_azure_hosting::ClientPrincipal;
    ///
    /// # fn main() -> Result<(), bindpost_azure_hosting::principal::IpNetworkError> {
    /// let principal = ClientPrincipal::new().trusting("169.254.0.0/16".parse()?);
    /// # let _ = principal;
    /// # Ok(())
    /// # }
    /// ```
    pub fn trusting(mut self, peers: IpNetwork) -> ClientPrincipal {
        self.trusted.push(peers);
        self
    }

    fn trusts(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        peer.is_loopback() || self.trusted.iter().any(|network| network.contains(peer))
    }
}

impl Authorizer for ClientPrincipal {
    async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
        let mut values = request.headers().get_all(HEADER).iter();
        let Some(value) = values.next() else { return Err(Denial::missing()) };
        if !request.peer.is_some_and(|peer| self.trusts(peer.ip())) {
            // Logged only once, so that a client cannot fill the log. The peer may be the platform itself.
            WARNED.call_once(|| {
                let peer = request.peer;
                tracing::warn!(?peer, "X-MS-CLIENT-PRINCIPAL came from a peer that is not trusted");
            });
            return Err(Denial::missing());
        }
        if values.next().is_some() {
            return Err(Denial::malformed("the request has more than one X-MS-CLIENT-PRINCIPAL header"));
        }
        let identity = decode(value.as_bytes()).and_then(|principal| principal.identity());
        let malformed = || Denial::malformed("X-MS-CLIENT-PRINCIPAL does not contain a valid identity");
        Ok(identity.ok_or_else(malformed)?.into())
    }

    fn identity_headers(&self) -> Vec<String> {
        IDENTITY_HEADERS.map(str::to_owned).into()
    }
}

/// The content of the header.
#[derive(Debug, Deserialize)]
struct PrincipalPayload {
    /// The identity provider: `aad`, `google`, `github`.
    auth_typ: String,
    #[serde(default)]
    name_typ: Option<String>,
    #[serde(default)]
    role_typ: Option<String>,
    claims: Vec<PrincipalClaim>,
}

#[derive(Debug, Deserialize)]
struct PrincipalClaim {
    typ: String,
    val: Value,
}

fn decode(header: &[u8]) -> Option<PrincipalPayload> {
    serde_json::from_slice(&BASE64.decode(header.trim_ascii()).ok()?).ok()
}

impl PrincipalPayload {
    fn identity(self) -> Option<Identity> {
        let mut identity = Identity::new(self.id()?);
        if let Some(name) = self.name_typ.as_deref().and_then(|typ| self.texts(&[typ]).next()) {
            identity = identity.name(name);
        }
        identity = if self.is_application() { identity.application() } else { identity.user() };
        for scope in self.texts(&SCOPES).flat_map(str::split_ascii_whitespace) {
            identity = identity.scope(scope);
        }
        // The claim `roles` of Entra ID is passed on unchanged, even if `role_typ` names another claim.
        let mut roles: Vec<&str> = Vec::from_iter(self.role_typ.as_deref());
        if self.is_entra() && !roles.contains(&"roles") {
            roles.push("roles");
        }
        for role in self.texts(&roles) {
            identity = identity.role(role);
        }
        if let Some(deadline) = self.deadline(SystemTime::now(), Instant::now()) {
            identity = identity.expires_at(deadline);
        }
        Some(identity.claims(self.claims()))
    }

    /// Returns the expiry of the token that the platform has checked. A time in the past is ignored, because
    /// logins at the platform outlast their tokens.
    fn deadline(&self, now: SystemTime, instant: Instant) -> Option<Instant> {
        let claim = self.claims.iter().find(|claim| claim.typ == "exp")?;
        let text = claim.val.as_str().and_then(|text| text.parse::<u64>().ok());
        let expires = UNIX_EPOCH.checked_add(Duration::from_secs(text.or(claim.val.as_u64())?))?;
        instant.checked_add(expires.duration_since(now).ok().filter(|left| !left.is_zero())?)
    }

    /// Returns the id of the caller. For Entra ID it is the same id as for a token of the same caller. For
    /// other providers it is the provider and its subject.
    fn id(&self) -> Option<String> {
        // Only for Entra ID: claims of these names have another meaning at other providers.
        let object =
            if self.is_entra() { self.single_text(&TENANT)?.zip(self.single_text(&OBJECT)?) } else { None };
        let (first, second) = match object {
            Some((tenant, object)) if object.contains('|') || tenant.contains('|') => return None,
            Some(both) => both,
            None => (self.auth_typ.as_str(), self.single_text(&SUBJECT)??),
        };
        (!first.is_empty() && !first.contains('|')).then(|| format!("{first}|{second}"))
    }

    /// Returns whether the caller is an application that acts for itself, according to Entra ID. Missing
    /// scopes are not enough, because users that log in at the platform have none.
    fn is_application(&self) -> bool {
        let has_scopes = || self.claims.iter().any(|claim| SCOPES.contains(&claim.typ.as_str()));
        match self.claims.iter().find(|claim| claim.typ == "idtyp") {
            _ if !self.is_entra() => false,
            Some(claim) => claim.val == "app",
            None if has_scopes() => false,
            // A user has a different subject in each application. The subject of an application is its object
            // id.
            None => match (self.single_text(&OBJECT), self.single_text(&SUBJECT)) {
                (Some(Some(object)), Some(Some(subject))) => object == subject,
                _ => false,
            },
        }
    }

    fn is_entra(&self) -> bool {
        self.auth_typ == "aad"
    }

    /// Returns the texts of all claims of these types.
    fn texts(&self, types: &[&str]) -> impl Iterator<Item = &str> {
        let claims = self.claims.iter().filter(|claim| types.contains(&claim.typ.as_str()));
        claims.filter_map(|claim| claim.val.as_str()).filter(|text| !text.is_empty())
    }

    /// Returns the text that all claims of these types have, if there are any. Returns `None` if they
    /// contradict each other.
    fn single_text(&self, types: &[&str]) -> Option<Option<&str>> {
        let mut texts = self.texts(types);
        let first = texts.next();
        texts.all(|text| Some(text) == first).then_some(first)
    }

    /// Returns all claims. Repeated claims become lists.
    fn claims(self) -> Map<String, Value> {
        let mut claims = Map::new();
        for PrincipalClaim { typ, val } in self.claims {
            match claims.get_mut(&typ) {
                None => drop(claims.insert(typ, val)),
                Some(Value::Array(values)) => values.push(val),
                Some(value) => *value = Value::Array(vec![value.take(), val]),
            }
        }
        claims
    }
}

/// A range of IP addresses such as `10.0.0.0/8`, or a single address such as `10.1.2.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpNetwork {
    address: IpAddr,
    bits: u32,
}

/// The text is not an IP network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an IP network: write an address such as 10.1.2.3 or a range such as 10.0.0.0/8")]
pub struct IpNetworkError(String);

impl IpNetwork {
    /// Returns whether the network contains this address.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => {
                let differs = u32::from(ours) ^ u32::from(theirs);
                differs.checked_shr(32 - self.bits).unwrap_or_default() == 0
            }
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => {
                let differs = u128::from(ours) ^ u128::from(theirs);
                differs.checked_shr(128 - self.bits).unwrap_or_default() == 0
            }
            _ => false,
        }
    }
}

impl FromStr for IpNetwork {
    type Err = IpNetworkError;

    fn from_str(text: &str) -> Result<IpNetwork, IpNetworkError> {
        let parse = || {
            let (address, bits) =
                text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
            let address: IpAddr = address.parse().ok()?;
            let all = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Some(all), |bits| bits.parse().ok().filter(|bits| *bits <= all))?;
            Some(IpNetwork { address, bits })
        };
        parse().ok_or_else(|| IpNetworkError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn identity(principal: Value) -> Option<Caller> {
        let header = BASE64.encode(principal.to_string());
        Some(decode(header.as_bytes())?.identity()?.into())
    }

    fn id(provider: &str, claims: &[(&str, &str)]) -> Option<String> {
        let claims: Vec<Value> = claims.iter().map(|(typ, val)| json!({"typ": typ, "val": val})).collect();
        let caller = identity(json!({"auth_typ": provider, "claims": claims}))?;
        caller.id().map(str::to_owned)
    }

    #[test]
    fn a_caller_is_identified_by_ids_that_are_never_reused() {
        let [tid, long_tid] = TENANT;
        let [oid, long_oid] = OBJECT;
        let [name_id, sub] = SUBJECT;
        for (provider, claims, expected) in [
            ("aad", &[(tid, "t"), (oid, "o"), (name_id, "s")][..], Some("t|o")),
            ("aad", &[(long_tid, "t"), (long_oid, "o")], Some("t|o")),
            ("aad", &[(tid, "t"), (long_tid, "t"), (oid, "o")], Some("t|o")),
            ("aad", &[(oid, "o"), (name_id, "s")], Some("aad|s")),
            ("google", &[(name_id, "s")], Some("google|s")),
            ("google", &[(sub, "s")], Some("google|s")),
            // Claims of the same names from another provider.
            ("oidc", &[(tid, "t"), (oid, "o"), (name_id, "s")], Some("oidc|s")),
            ("oidc", &[(tid, "t"), (oid, "o")], None),
            // Contradictory, ambiguous or missing ids.
            ("aad", &[(tid, "t"), (long_tid, "u"), (oid, "o")], None),
            ("aad", &[(tid, "t"), (oid, "o"), (oid, "p")], None),
            ("aad", &[(tid, "t|u"), (oid, "o")], None),
            ("aad|t", &[(name_id, "o")], None),
            ("", &[(name_id, "s")], None),
            ("aad", &[("name", "Alice"), ("preferred_username", "alice@example.com")], None),
            ("aad", &[], None),
        ] {
            assert_eq!(id(provider, claims).as_deref(), expected, "{provider} {claims:?}");
        }
    }

    #[test]
    fn scopes_and_roles_have_several_names() {
        let role = "http://schemas.microsoft.com/ws/2008/06/identity/claims/role";
        let claims = json!([
            {"typ": "tid", "val": "t"}, {"typ": "oid", "val": "o"}, {"typ": "name", "val": "Alice"},
            {"typ": "scp", "val": "a b"}, {"typ": SCOPES[1], "val": "c"},
            {"typ": role, "val": "One"}, {"typ": "roles", "val": "Two"}, {"typ": "roles", "val": "Three"},
            {"typ": "level", "val": 7},
        ]);
        let of = |provider: &str| {
            let mut claims = claims.clone();
            claims.as_array_mut().unwrap().push(json!({"typ": "sub", "val": "s"}));
            let principal =
                json!({"auth_typ": provider, "name_typ": "name", "role_typ": role, "claims": claims});
            identity(principal).unwrap()
        };
        let caller = of("aad");
        assert_eq!((caller.id(), caller.name()), (Some("t|o"), Some("Alice")));
        assert_eq!(
            (caller.scopes().join(" "), caller.roles().join(" ")),
            ("a b c".into(), "One Two Three".into())
        );
        assert_eq!(caller.claim("roles"), Some(&json!(["Two", "Three"])));
        assert_eq!(caller.claim("level"), Some(&json!(7)));
        // Only Entra ID uses `roles`. Other providers name the claim in `role_typ`.
        assert_eq!(of("google").roles(), ["One"]);
    }

    #[test]
    fn a_principal_expires_with_its_token() {
        let (now, instant) = (UNIX_EPOCH + Duration::from_secs(1_000), Instant::now());
        let left = |exp: Value| {
            let claims = json!([{"typ": "sub", "val": "s"}, {"typ": "exp", "val": exp}]);
            let principal =
                decode(BASE64.encode(json!({"auth_typ": "x", "claims": claims}).to_string()).as_bytes());
            let deadline = principal.unwrap().deadline(now, instant)?;
            Some(deadline.duration_since(instant).as_secs())
        };
        assert_eq!(left(json!("1600")), Some(600));
        assert_eq!(left(json!(1600)), Some(600));
        for silent in [json!("999"), json!(1000), json!("soon"), json!(null), json!(-5), json!(u64::MAX)] {
            assert_eq!(left(silent.clone()), None, "{silent}");
        }
        assert_eq!(
            identity(json!({"auth_typ": "x", "claims": [{"typ": "sub", "val": "s"}]})).unwrap().expires_at(),
            None
        );
    }

    #[test]
    fn networks_are_read_and_matched() {
        for (network, inside, outside) in [
            ("10.1.2.3", "10.1.2.3", "10.1.2.4"),
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.0.0.9", "::10.0.0.9"),
            ("0.0.0.0/0", "200.1.2.3", "2001:db8::1"),
            ("fd00::/8", "fd12::1", "fe80::1"),
            ("::/0", "2001:db8::1", "1.2.3.4"),
            ("169.254.128.0/17", "169.254.129.1", "169.254.127.1"),
        ] {
            let network: IpNetwork = network.parse().unwrap();
            let [inside, outside]: [IpAddr; 2] = [inside, outside].map(|address| address.parse().unwrap());
            assert!(network.contains(inside) && !network.contains(outside), "{network:?}");
        }
        for text in ["", "10.0.0.0/33", "::/129", "10.0.0/8", "10.0.0.0/", "10.0.0.0/-1", "localhost", "a/8"]
        {
            assert_eq!(text.parse::<IpNetwork>(), Err(IpNetworkError(text.to_owned())), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_or_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200), text in ".{0,60}") {
            let _ = decode(&bytes);
            if let Some(principal) = decode(BASE64.encode(&text).as_bytes()) {
                let _ = principal.identity();
            }
        }

        #[test]
        fn any_claims_make_a_caller_or_none(
            provider in "(aad|google|[a|]{0,3})",
            claims in prop::collection::vec(("(tid|oid|sub|scp|roles|[a-z]{0,3})", "[a-z |]{0,5}"), 0..8),
        ) {
            let claims: Vec<(&str, &str)> =
                claims.iter().map(|(typ, val)| (typ.as_str(), val.as_str())).collect();
            if let Some(id) = id(&provider, &claims) {
                let (first, second) = id.split_once('|').unwrap();
                prop_assert!(!first.is_empty() && !second.is_empty());
            }
        }
    }
}
