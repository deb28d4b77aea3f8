//! [`Issuer`]: an issuer whose tokens are accepted, and the requirements on its tokens.

use std::str::FromStr;

use reqwest::Url;
use serde_json::{Map, Value};

use crate::claims;
use crate::fetch::is_permitted;
use crate::tokens::ConfigError;

/// The placeholder for a token's tenant in the name of an issuer.
const TENANT: &str = "{tenantid}";

/// A signature algorithm for tokens. All are asymmetric: the key that verifies a token cannot sign one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RSA PKCS #1 v1.5 with SHA-256.
    RS256,
    /// RSA PKCS #1 v1.5 with SHA-384.
    RS384,
    /// RSA PKCS #1 v1.5 with SHA-512.
    RS512,
    /// RSA PSS with SHA-256.
    PS256,
    /// RSA PSS with SHA-384.
    PS384,
    /// RSA PSS with SHA-512.
    PS512,
    /// ECDSA on P-256 with SHA-256.
    ES256,
    /// ECDSA on P-384 with SHA-384.
    ES384,
    /// Ed25519.
    EdDSA,
}

impl FromStr for Algorithm {
    type Err = ConfigError;

    /// Parses the case-sensitive name of a JWS algorithm. `none` and the symmetric algorithms are rejected.
    fn from_str(name: &str) -> Result<Algorithm, ConfigError> {
        Ok(match name {
            "RS256" => Algorithm::RS256,
            "RS384" => Algorithm::RS384,
            "RS512" => Algorithm::RS512,
            "PS256" => Algorithm::PS256,
            "PS384" => Algorithm::PS384,
            "PS512" => Algorithm::PS512,
            "ES256" => Algorithm::ES256,
            "ES384" => Algorithm::ES384,
            // RFC 9864 names it after its curve.
            "EdDSA" | "Ed25519" => Algorithm::EdDSA,
            _ => return Err(ConfigError::Algorithm(name.to_owned())),
        })
    }
}

/// An issuer whose tokens are accepted.
///
/// The URL of its keys comes from its metadata (OpenID Connect Discovery or RFC 8414), or
/// from [`jwks_uri`](Issuer::jwks_uri).
///
/// ```
/// use bindpost_mcp_oauth::{Algorithm, Issuer};
///
/// let issuer = Issuer::new("https://issuer.example/realms/shop").algorithms([Algorithm::RS256]);
/// ```
#[derive(Clone, Debug)]
pub struct Issuer {
    pub(crate) url: String,
    pub(crate) jwks_uri: Option<String>,
    pub(crate) algorithms: Vec<Algorithm>,
    accepted: Vec<String>,
    tenants: AcceptedTenants,
    key_claims: Vec<String>,
    typed: bool,
}

#[derive(Clone, Debug)]
enum AcceptedTenants {
    /// The tenant is not checked.
    None,
    Some(Vec<String>),
    Any,
}

impl Issuer {
    /// Creates an issuer with this URL. It must be spelled exactly as in its metadata and its tokens,
    /// including a trailing slash. It must use `https`, or `http` on the loopback interface.
    pub fn new(url: impl Into<String>) -> Issuer {
        Issuer {
            url: url.into(),
            jwks_uri: None,
            algorithms: vec![Algorithm::RS256, Algorithm::ES256, Algorithm::PS256, Algorithm::EdDSA],
            accepted: Vec::new(),
            tenants: AcceptedTenants::None,
            key_claims: Vec::new(),
            typed: false,
        }
    }

    /// Sets the URL of its keys. Its metadata is not fetched then.
    pub fn jwks_uri(mut self, url: impl Into<String>) -> Issuer {
        self.jwks_uri = Some(url.into());
        self
    }

    /// Sets the allowed signature algorithms. Default: RS256, ES256, PS256 and EdDSA. The header of a
    /// token cannot extend this list.
    pub fn algorithms(mut self, algorithms: impl IntoIterator<Item = Algorithm>) -> Issuer {
        self.algorithms = algorithms.into_iter().collect();
        self
    }

    /// Adds an `iss` that its tokens may have instead of its URL. The placeholder `{tenantid}` stands
    /// for the `tid` of the token. With a placeholder, [`tenants`](Issuer::tenants) or
    /// [`any_tenant`](Issuer::any_tenant) is required.
    pub fn accepts_issuer(mut self, issuer: impl Into<String>) -> Issuer {
        self.accepted.push(issuer.into());
        self
    }

    /// Accepts only tokens of these tenants. The `tid` of a token must be one of these GUIDs.
    pub fn tenants(mut self, tenants: impl IntoIterator<Item = impl Into<String>>) -> Issuer {
        // GUIDs are written in lower case in tokens.
        let tenants = tenants.into_iter().map(|tenant| tenant.into().to_ascii_lowercase());
        self.tenants = AcceptedTenants::Some(tenants.collect());
        self
    }

    /// Accepts tokens of any tenant, that is, of every customer of the issuer. Entries then have to
    /// check the tenant themselves.
    pub fn any_tenant(mut self) -> Issuer {
        self.tenants = AcceptedTenants::Any;
        self
    }

    /// Identifies callers by these claims. Default: `iss` and `sub`. Use claims that are never
    /// reassigned. Names and email addresses can be reassigned.
    pub fn keyed_by(mut self, claims: impl IntoIterator<Item = impl Into<String>>) -> Issuer {
        self.key_claims = claims.into_iter().map(Into::into).collect();
        self
    }

    /// Accepts only tokens whose `typ` is `at+jwt` (RFC 9068). By default `JWT` and a missing `typ` are
    /// accepted too.
    pub fn requires_type(mut self) -> Issuer {
        self.typed = true;
        self
    }

    /// Returns the accepted values of `iss`.
    pub(crate) fn accepted(&self) -> &[String] {
        if self.accepted.is_empty() { std::slice::from_ref(&self.url) } else { &self.accepted }
    }

    /// Returns whether its metadata may have this `issuer`.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.url == name || self.accepted().iter().any(|accepted| accepted == name)
    }

    /// Returns whether `iss` and `tid` of a token are those of this issuer. The signature is checked later.
    pub(crate) fn accepts(&self, claims: &Map<String, Value>) -> bool {
        let Some(issuer) = claims::text(claims, "iss") else { return false };
        let tenant = tenant(claims);
        let right_tenant = match &self.tenants {
            AcceptedTenants::None => true,
            AcceptedTenants::Some(tenants) => {
                tenant.is_some_and(|tenant| tenants.iter().any(|one| one == tenant))
            }
            AcceptedTenants::Any => tenant.is_some(),
        };
        right_tenant && self.accepted().iter().any(|accepted| is_issuer(accepted, issuer, tenant))
    }

    /// Returns whether the `typ` of the header is accepted.
    pub(crate) fn accepts_type(&self, typ: Option<&str>) -> bool {
        let Some(typ) = typ else { return !self.typed };
        let is = |name: &str| typ.eq_ignore_ascii_case(name);
        is("at+jwt") || is("application/at+jwt") || !self.typed && is("jwt")
    }

    /// Returns the stable id of the caller with these claims.
    pub(crate) fn caller_id(&self, claims: &Map<String, Value>) -> Option<String> {
        if self.key_claims.is_empty() {
            // No accepted `iss` contains a bar, so two callers never have the same id.
            return Some(format!("{}|{}", claims::text(claims, "iss")?, claims::text(claims, "sub")?));
        }
        let values: Option<Vec<&str>> = self
            .key_claims
            .iter()
            .map(|claim| claims::text(claims, claim).filter(|value| !value.contains('|')))
            .collect();
        Some(values?.join("|"))
    }

    /// Validates the configuration and returns the parsed URL.
    pub(crate) fn validated_url(&self) -> Result<Url, ConfigError> {
        let wrong = |reason: &'static str| ConfigError::Issuer { issuer: self.url.clone(), reason };
        let url = Url::parse(&self.url).map_err(|_| wrong("it is not a valid URL"))?;
        if !is_permitted(&url) {
            return Err(wrong("it must use https; http is allowed only on the loopback interface"));
        }
        if url.query().is_some() || url.fragment().is_some() || !url.username().is_empty() {
            return Err(wrong("the URL of an issuer must not have a query, a fragment or a user"));
        }
        if self.algorithms.is_empty() {
            return Err(wrong("no algorithm is allowed"));
        }
        if self.accepted().iter().any(|accepted| accepted.is_empty() || accepted.contains('|')) {
            return Err(wrong("an accepted `iss` is empty or contains `|`"));
        }
        let templates = self.accepted().iter().any(|accepted| accepted.contains(TENANT));
        match &self.tenants {
            AcceptedTenants::None if templates => {
                return Err(wrong("`{tenantid}` needs `tenants([…])` or `any_tenant()`"));
            }
            AcceptedTenants::Some(tenants) if tenants.is_empty() => {
                return Err(wrong("the list of tenants is empty"));
            }
            AcceptedTenants::Some(tenants) if !tenants.iter().all(|tenant| is_guid(tenant)) => {
                return Err(wrong("a tenant must be a GUID like 01234567-89ab-cdef-0123-456789abcdef"));
            }
            _ => {}
        }
        Ok(url)
    }
}

/// Returns the `tid` claim of a token, if it is a GUID.
pub(crate) fn tenant(claims: &Map<String, Value>) -> Option<&str> {
    claims::text(claims, "tid").filter(|tenant| is_guid(tenant))
}

/// Returns whether an issuer matches a template, with the tenant in place of the placeholder.
pub(crate) fn is_issuer(template: &str, issuer: &str, tenant: Option<&str>) -> bool {
    match (template.contains(TENANT), tenant) {
        (false, _) => template == issuer,
        (true, Some(tenant)) => template.replace(TENANT, tenant) == issuer,
        (true, None) => false,
    }
}

/// Returns whether a text is a GUID in lower case, with dashes and without braces.
fn is_guid(text: &str) -> bool {
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const A: &str = "aaaaaaaa-0000-4000-8000-000000000001";
    const B: &str = "bbbbbbbb-0000-4000-8000-000000000002";

    fn claims(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn an_issuer_is_matched_exactly() {
        let issuer = Issuer::new("https://issuer.example");
        for (iss, accepted) in [
            (json!("https://issuer.example"), true),
            (json!("https://issuer.example/"), false),
            (json!("https://ISSUER.example"), false),
            (json!("https://issuer.example.evil"), false),
            (json!(["https://issuer.example"]), false),
            (json!(null), false),
            (json!(""), false),
        ] {
            assert_eq!(issuer.accepts(&claims(json!({"iss": iss}))), accepted, "{iss}");
        }
        assert!(!issuer.accepts(&Map::new()));
    }

    #[test]
    fn accepted_issuers_replace_the_url() {
        let issuer = Issuer::new("https://metadata.example").accepts_issuer("https://a").accepts_issuer("b");
        for (iss, accepted) in [("https://a", true), ("b", true), ("https://metadata.example", false)] {
            assert_eq!(issuer.accepts(&claims(json!({"iss": iss}))), accepted, "{iss}");
        }
    }

    #[test]
    fn a_tenant_replaces_the_placeholder_and_is_matched_exactly() {
        let template = "https://login.example/{tenantid}/v2.0";
        let issuer = Issuer::new("https://login.example/common").accepts_issuer(template);
        let some = issuer.clone().tenants([A.to_uppercase()]);
        let any = issuer.any_tenant();
        let of = |tenant: &str| format!("https://login.example/{tenant}/v2.0");
        for (iss, tid, by_some, by_any) in [
            (of(A), json!(A), true, true),
            (of(B), json!(B), false, true),
            // `tid` and `iss` have different tenants.
            (of(B), json!(A), false, false),
            (of(A), json!(B), false, false),
            (of(A), json!(null), false, false),
            (of("{tenantid}"), json!("{tenantid}"), false, false),
            (of(""), json!(""), false, false),
            (of("x/../y"), json!("x/../y"), false, false),
            (of(&A.to_uppercase()), json!(A.to_uppercase()), false, false),
            (of(A), json!([A]), false, false),
        ] {
            let claims = claims(json!({"iss": iss, "tid": tid}));
            assert_eq!((some.accepts(&claims), any.accepts(&claims)), (by_some, by_any), "{claims:?}");
        }
    }

    #[test]
    fn tenants_are_checked_without_a_template_too() {
        let issuer = Issuer::new("https://issuer.example").tenants([A]);
        let iss = "https://issuer.example";
        assert!(issuer.accepts(&claims(json!({"iss": iss, "tid": A}))));
        assert!(!issuer.accepts(&claims(json!({"iss": iss, "tid": B}))));
        assert!(!issuer.accepts(&claims(json!({"iss": iss}))));
    }

    #[test]
    fn only_access_tokens_and_untyped_tokens_are_accepted() {
        let issuer = Issuer::new("https://issuer.example");
        let strict = issuer.clone().requires_type();
        for (typ, lenient, strictly) in [
            (None, true, false),
            (Some("JWT"), true, false),
            (Some("jwt"), true, false),
            (Some("at+jwt"), true, true),
            (Some("AT+JWT"), true, true),
            (Some("application/at+jwt"), true, true),
            (Some("id+jwt"), false, false),
            (Some("dpop+jwt"), false, false),
            (Some("logout+jwt"), false, false),
            (Some(""), false, false),
        ] {
            assert_eq!((issuer.accepts_type(typ), strict.accepts_type(typ)), (lenient, strictly), "{typ:?}");
        }
    }

    #[test]
    fn callers_are_identified_by_issuer_and_subject_or_by_the_given_claims() {
        let issuer = Issuer::new("https://issuer.example");
        let by_object = issuer.clone().keyed_by(["tid", "oid"]);
        let all = json!({"iss": "i", "sub": "s|x", "tid": "t", "oid": "o", "name": "n", "email": "e"});
        assert_eq!(issuer.caller_id(&claims(all.clone())).as_deref(), Some("i|s|x"));
        assert_eq!(by_object.caller_id(&claims(all)).as_deref(), Some("t|o"));
        for broken in [json!({"tid": "t"}), json!({"tid": "t|u", "oid": "o"}), json!({"tid": "t", "oid": ""})]
        {
            assert_eq!(by_object.caller_id(&claims(broken)), None);
        }
        for broken in [json!({"iss": "i"}), json!({"iss": "i", "sub": ""}), json!({"iss": "i", "sub": 7})] {
            assert_eq!(issuer.caller_id(&claims(broken)), None);
        }
    }

    #[test]
    fn rejects_an_unsafe_configuration() {
        let template = || Issuer::new("https://login.example/common").accepts_issuer("https://x/{tenantid}/");
        for (issuer, part) in [
            (Issuer::new("issuer.example"), "valid URL"),
            (Issuer::new("http://issuer.example"), "https"),
            (Issuer::new("ftp://issuer.example"), "https"),
            (Issuer::new("http://127.0.0.1.evil.example"), "https"),
            (Issuer::new("https://issuer.example?x=1"), "query"),
            (Issuer::new("https://user@issuer.example"), "user"),
            (Issuer::new("https://issuer.example").algorithms([]), "algorithm"),
            (Issuer::new("https://issuer.example").accepts_issuer("a|b"), "`|`"),
            (template(), "tenants"),
            (template().tenants([""; 0]), "empty"),
            (template().tenants(["contoso"]), "GUID"),
        ] {
            let text = issuer.validated_url().unwrap_err().to_string();
            assert!(text.contains(part), "{text}");
        }
        for url in
            ["http://127.0.0.1:8080", "http://[::1]:80/x", "http://localhost:1/", "https://a.example/b"]
        {
            Issuer::new(url).validated_url().unwrap();
        }
    }

    #[test]
    fn rejects_the_names_of_weak_algorithms() {
        for name in ["none", "None", "NONE", "", "HS256", "HS384", "HS512", "rs256", "ES512", "RSA1_5"] {
            assert!(name.parse::<Algorithm>().is_err(), "{name}");
        }
        assert_eq!("Ed25519".parse::<Algorithm>().unwrap(), Algorithm::EdDSA);
    }
}
