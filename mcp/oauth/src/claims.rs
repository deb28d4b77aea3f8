//! Reads claims. They may be any JSON: a value of the wrong type is ignored or rejected.

use std::time::{Duration, Instant};

use bindpost_mcp_server::Identity;
use serde_json::{Map, Value};

use crate::issuer::Issuer;
use crate::token::TokenRefusal;

/// Returns a claim that is a non-empty string.
pub(crate) fn text<'a>(claims: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    claims.get(name)?.as_str().filter(|text| !text.is_empty())
}

/// The period in which a token is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ValidityPeriod {
    not_before: Option<f64>,
    expires: f64,
}

impl ValidityPeriod {
    /// Reads `nbf`, which is optional, and `exp`, which is required. Both must be numbers.
    pub(crate) fn from_claims(claims: &Map<String, Value>) -> Result<ValidityPeriod, TokenRefusal> {
        let expires =
            claims.get("exp").and_then(number).ok_or(TokenRefusal::Invalid("exp is not a number"))?;
        let not_before = match claims.get("nbf") {
            Some(value) => Some(number(value).ok_or(TokenRefusal::Invalid("nbf is not a number"))?),
            None => None,
        };
        Ok(ValidityPeriod { not_before, expires })
    }

    /// Checks whether it is valid now, if clocks may differ by `leeway` seconds.
    pub(crate) fn check(&self, now: f64, leeway: f64) -> Result<(), TokenRefusal> {
        // RFC 7519: not on or after `exp`, not before `nbf`.
        if now >= self.expires + leeway {
            return Err(TokenRefusal::Expired);
        }
        match self.not_before {
            Some(not_before) if now < not_before - leeway => Err(TokenRefusal::Early),
            _ => Ok(()),
        }
    }

    /// Returns when it ends by the monotonic clock, where `instant` and `now` are the same moment.
    /// Returns `None` if that is beyond the range of the clock.
    pub(crate) fn deadline(&self, now: f64, instant: Instant, leeway: f64) -> Option<Instant> {
        let left = (self.expires + leeway - now).max(0.0);
        instant.checked_add(Duration::try_from_secs_f64(left).ok()?)
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().filter(|number| number.is_finite())
}

/// Returns whether `aud`, a string or a list of strings, has one of these values.
pub(crate) fn has_audience(claims: &Map<String, Value>, audiences: &[String]) -> bool {
    let is_one = |value: &Value| value.as_str().is_some_and(|name| audiences.iter().any(|one| one == name));
    match claims.get("aud") {
        Some(Value::Array(names)) => names.iter().any(is_one),
        Some(name) => is_one(name),
        None => false,
    }
}

/// Builds the identity with its scopes and roles. It keeps all claims.
pub(crate) fn identity(issuer: &Issuer, claims: Map<String, Value>) -> Option<Identity> {
    let mut identity = Identity::new(issuer.caller_id(&claims)?);
    if let Some(name) = text(&claims, "name") {
        identity = identity.name(name);
    }
    identity = if is_application(&claims) { identity.application() } else { identity.user() };
    for scope in scopes(&claims) {
        identity = identity.scope(scope);
    }
    for role in roles(&claims) {
        identity = identity.role(role);
    }
    Some(identity.claims(claims))
}

/// Returns whether an application got this token for itself. Its roles are then those of the
/// application, and it has no scopes.
///
/// Missing scopes are not enough evidence: a client that requests no scopes gets none (RFC 6749, 3.3),
/// and the roles in such a token are those of its user (RFC 9068, 2.2.3.1).
fn is_application(claims: &Map<String, Value>) -> bool {
    match claims.get("idtyp") {
        // An optional claim of Entra ID.
        Some(kind) => kind == "app",
        None if claims.contains_key("scope") || claims.contains_key("scp") => false,
        // Without a user, the subject is the client itself (RFC 9068, 2.2). Its claim is `client_id` in
        // RFC 8693, `azp` in OpenID Connect and `appid` in older tokens of Entra ID. Entra ID may also
        // use the object id of the application.
        None => text(claims, "sub").is_some_and(|subject| {
            ["client_id", "azp", "appid", "oid"].iter().any(|name| text(claims, name) == Some(subject))
        }),
    }
}

/// Returns the scopes in `scope` and `scp`. Each is a space-separated string or a list.
fn scopes(claims: &Map<String, Value>) -> Vec<&str> {
    let mut scopes: Vec<&str> = Vec::new();
    for value in ["scope", "scp"].iter().filter_map(|name| claims.get(*name)) {
        let texts = match value {
            Value::Array(values) => values.iter().filter_map(Value::as_str).collect(),
            value => Vec::from_iter(value.as_str()),
        };
        for scope in texts.iter().flat_map(|text| text.split_ascii_whitespace()) {
            if !scopes.contains(&scope) {
                scopes.push(scope);
            }
        }
    }
    scopes
}

/// Returns the roles in `roles`, a list of strings.
fn roles(claims: &Map<String, Value>) -> Vec<&str> {
    let values = claims.get("roles").and_then(Value::as_array).into_iter().flatten();
    values.filter_map(Value::as_str).filter(|role| !role.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn claims(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn scopes_are_a_string_or_a_list() {
        for (value, expected) in [
            (json!({"scope": "a b  c"}), vec!["a", "b", "c"]),
            (json!({"scp": "a b"}), vec!["a", "b"]),
            (json!({"scope": ["a", "b c"]}), vec!["a", "b", "c"]),
            (json!({"scp": ["a", 7, null, "b", ["c"]]}), vec!["a", "b"]),
            (json!({"scope": "a b", "scp": ["b", "c"]}), vec!["a", "b", "c"]),
            (json!({"scope": {"a": true}, "scp": 7}), vec![]),
            // The token of an application.
            (json!({"roles": ["a"]}), vec![]),
        ] {
            assert_eq!(scopes(&claims(value.clone())), expected, "{value}");
        }
    }

    #[test]
    fn roles_are_a_list() {
        for (value, expected) in [
            (json!({"roles": ["a", "b c", "", 7]}), vec!["a", "b c"]),
            (json!({"roles": "a"}), vec![]),
            (json!({"role": ["a"], "scp": "b"}), vec![]),
        ] {
            assert_eq!(roles(&claims(value.clone())), expected, "{value}");
        }
    }

    #[test]
    fn an_application_is_recognized_by_idtyp_or_its_subject() {
        for (value, is_app) in [
            (json!({"idtyp": "app"}), true),
            (json!({"idtyp": "app", "scp": "a"}), true),
            (json!({"idtyp": "user", "sub": "x", "client_id": "x"}), false),
            (json!({"idtyp": ["app"], "sub": "x", "client_id": "x"}), false),
            (json!({"idtyp": null, "sub": "x", "client_id": "x"}), false),
            (json!({"sub": "x", "client_id": "x"}), true),
            (json!({"sub": "x", "azp": "x"}), true),
            (json!({"sub": "x", "appid": "x"}), true),
            (json!({"sub": "x", "oid": "x", "appid": "y"}), true),
            (json!({"sub": "x", "oid": "y", "appid": "z", "roles": ["r"]}), false),
            (json!({"sub": "x", "client_id": "x", "scope": ""}), false),
            (json!({"sub": "x", "client_id": "x", "scp": null}), false),
            (json!({"sub": "", "client_id": ""}), false),
            (json!({"sub": 7, "client_id": 7}), false),
            (json!({"sub": "x", "roles": ["r"]}), false),
            (json!({"roles": ["r"]}), false),
        ] {
            assert_eq!(is_application(&claims(value.clone())), is_app, "{value}");
        }
    }

    #[test]
    fn an_audience_is_matched_exactly() {
        let ours = ["https://api.example/mcp".to_owned(), "client".to_owned()];
        for (aud, is_ours) in [
            (json!("https://api.example/mcp"), true),
            (json!(["other", "client"]), true),
            (json!("https://api.example/mcp/"), false),
            (json!("https://api.example"), false),
            (json!("CLIENT"), false),
            (json!([]), false),
            (json!([["client"]]), false),
            (json!({"client": true}), false),
            (json!(null), false),
        ] {
            assert_eq!(has_audience(&claims(json!({"aud": aud})), &ours), is_ours, "{aud}");
        }
        assert!(!has_audience(&Map::new(), &ours));
    }

    #[test]
    fn clocks_may_differ_by_the_leeway_and_no_more() {
        let now = 1_800_000_000.0;
        let window = |exp: f64, nbf: Option<f64>| ValidityPeriod { not_before: nbf, expires: exp };
        for (expired_for, counts) in [(-600, true), (59, true), (60, false), (61, false), (600, false)] {
            let check = window(now - f64::from(expired_for), None).check(now, 60.0);
            assert_eq!(check, if counts { Ok(()) } else { Err(TokenRefusal::Expired) }, "{expired_for}");
        }
        for (begins_in, counts) in [(-600, true), (59, true), (60, true), (61, false), (600, false)] {
            let check = window(now + 3600.0, Some(now + f64::from(begins_in))).check(now, 60.0);
            assert_eq!(check, if counts { Ok(()) } else { Err(TokenRefusal::Early) }, "{begins_in}");
        }
        assert_eq!(window(now - 299.0, None).check(now, 300.0), Ok(()));
        assert_eq!(window(now, None).check(now, 0.0), Err(TokenRefusal::Expired));
    }

    #[test]
    fn the_deadline_is_the_expiry_plus_the_leeway() {
        let (now, instant) = (1_800_000_000.0, Instant::now());
        let left = |exp: f64, leeway: f64| {
            let window = ValidityPeriod { not_before: None, expires: exp };
            window.deadline(now, instant, leeway).map(|deadline| deadline.duration_since(instant))
        };
        assert_eq!(left(now + 600.0, 60.0), Some(Duration::from_secs(660)));
        assert_eq!(left(now - 30.5, 60.0), Some(Duration::from_millis(29_500)));
        assert_eq!(left(now - 600.0, 60.0), Some(Duration::ZERO));
        assert_eq!(left(-1e300, 60.0), Some(Duration::ZERO));
        assert_eq!(left(1e300, 60.0), None);
    }

    #[test]
    fn times_must_be_numbers() {
        for good in [json!({"exp": 1}), json!({"exp": 1.5, "nbf": 0}), json!({"exp": -1, "nbf": -2.5})] {
            ValidityPeriod::from_claims(&claims(good)).unwrap();
        }
        for bad in [
            json!({}),
            json!({"nbf": 1}),
            json!({"exp": "1"}),
            json!({"exp": null}),
            json!({"exp": [1]}),
            json!({"exp": true}),
            json!({"exp": 1, "nbf": "0"}),
            json!({"exp": 1, "nbf": null}),
        ] {
            assert!(ValidityPeriod::from_claims(&claims(bad.clone())).is_err(), "{bad}");
        }
    }

    /// Generates any JSON of limited depth.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[ a-z\\t\u{0}\u{1f980}|]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{0,4}", inner, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn claims_of_any_type_are_parsed_or_ignored(values in prop::collection::vec(any_json(), 10)) {
            let names = ["scope", "scp", "roles", "aud", "exp", "nbf", "iss", "sub", "tid", "name"];
            let claims: Map<String, Value> = names.iter().map(|name| (*name).to_owned()).zip(values).collect();
            for scope in scopes(&claims) {
                prop_assert!(!scope.is_empty() && !scope.contains([' ', '\t', '\n']));
            }
            prop_assert!(roles(&claims).iter().all(|role| !role.is_empty()));
            prop_assert!(!has_audience(&claims, &["https://api.example/mcp".to_owned()]));
            if let Ok(window) = ValidityPeriod::from_claims(&claims) {
                let _ = window.check(1_800_000_000.0, 60.0);
                prop_assert!(claims["exp"].is_number() && claims["nbf"].is_number());
            }
            let issuer = Issuer::new("https://issuer.example");
            prop_assert!(!issuer.accepts(&claims));
            if let Some(identity) = identity(&issuer, claims.clone()) {
                let caller = bindpost_mcp_server::Caller::from(identity);
                prop_assert_eq!(caller.claims(), Some(&claims));
                prop_assert!(claims["iss"].is_string() && claims["sub"].is_string());
            }
        }

        #[test]
        fn an_expired_token_stays_expired(exp in 0u32.., leeway in 0u16..300, later in 0u32..) {
            let window = ValidityPeriod { not_before: None, expires: f64::from(exp) };
            let end = f64::from(exp) + f64::from(leeway);
            let after = window.check(end + f64::from(later), f64::from(leeway));
            prop_assert_eq!(after, Err(TokenRefusal::Expired));
            prop_assert_eq!(window.check(end - 1.0, f64::from(leeway)), Ok(()));
        }
    }
}
