//! Which tokens are valid, and which caller they identify.

use std::time::Duration;

use bindpost_mcp_http::{Authorizer as _, Denial};
use bindpost_mcp_oauth::{Algorithm, Issuer, TokenAuthorizer};
use serde_json::{Value, json};

use crate::issuer::TestIssuer;
use crate::requests::{AUDIENCE, authorize, expired, invalid, now_and, request, tokens, trusting};

#[tokio::test]
async fn a_valid_token_identifies_its_subject() {
    let issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let claims = json!({"name": "Alice", "scope": "orders.read orders.write", "scp": "extra", "roles": ["Admin"],
        "email": "alice@example.com", "nested": {"a": [1]}});
    let caller = authorize(&tokens, &issuer.token(claims).await).await.unwrap();
    assert_eq!(caller.id(), Some(format!("{}|alice", issuer.url).as_str()));
    assert_eq!(caller.name(), Some("Alice"));
    assert_eq!(caller.scopes(), ["orders.read", "orders.write", "extra"]);
    assert_eq!(caller.roles(), ["Admin"]);
    assert_eq!(caller.claim("nested"), Some(&json!({"a": [1]})));
    assert_eq!(caller.claim("email"), Some(&json!("alice@example.com")));
    // The token of an application has roles but no scopes.
    let own = issuer.token(json!({"sub": "app", "roles": ["Orders.All"], "idtyp": "app"})).await;
    let caller = authorize(&tokens, &own).await.unwrap();
    assert_eq!((caller.scopes().len(), caller.roles()), (0, &["Orders.All".to_owned()][..]));
}

#[tokio::test]
async fn only_the_algorithms_of_the_issuer_are_accepted() {
    let issuer = TestIssuer::start().await;
    issuer.control(json!({"add": [{"kid": "ec-384", "type": "ec-384"}]})).await;
    let all = [
        ("rsa-1", Algorithm::RS256, "RS256"),
        ("rsa-1", Algorithm::RS384, "RS384"),
        ("rsa-1", Algorithm::RS512, "RS512"),
        ("rsa-1", Algorithm::PS256, "PS256"),
        ("rsa-1", Algorithm::PS384, "PS384"),
        ("rsa-1", Algorithm::PS512, "PS512"),
        ("ec-1", Algorithm::ES256, "ES256"),
        ("ec-384", Algorithm::ES384, "ES384"),
        ("ed-1", Algorithm::EdDSA, "EdDSA"),
    ];
    let default = tokens(&issuer);
    let one_each = all.map(|(_, algorithm, _)| {
        let issuer = Issuer::new(&issuer.url).algorithms([algorithm]);
        TokenAuthorizer::builder().issuer(issuer).audience(AUDIENCE).build().unwrap()
    });
    for (key, algorithm, name) in all {
        let token = issuer.mint(json!({"key": key, "header": {"alg": name}})).await;
        let by_default = matches!(name, "RS256" | "ES256" | "PS256" | "EdDSA");
        assert_eq!(authorize(&default, &token).await.is_ok(), by_default, "{name}");
        for (tokens, (_, allowed, _)) in one_each.iter().zip(all) {
            let answer = authorize(tokens, &token).await;
            assert_eq!(
                answer.is_ok(),
                allowed == algorithm,
                "{name} where {allowed:?} is allowed: {answer:?}"
            );
        }
    }
}

#[tokio::test]
async fn rejects_tokens_that_the_issuer_did_not_sign() {
    let issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    issuer.control(json!({"add": [{"kid": "weak", "type": "rsa-1024"}]})).await;
    for order in [
        json!({"trick": "none", "header": {"alg": "none"}}),
        json!({"trick": "none", "header": {"alg": "None", "kid": null}}),
        json!({"trick": "none"}),
        json!({"trick": "hmac", "header": {"alg": "HS256"}}),
        json!({"trick": "hmac", "header": {"alg": "HS256", "kid": null}}),
        json!({"trick": "hmac"}),
        json!({"trick": "stranger"}),
        json!({"trick": "stranger", "key": "ec-1"}),
        json!({"trick": "stranger", "key": "ed-1"}),
        json!({"trick": "swapped"}),
        json!({"key": "weak"}),
        // Signed by one key, with the id of another.
        json!({"key": "rsa-1", "header": {"kid": "ec-1"}}),
        json!({"key": "rsa-1", "header": {"kid": ""}}),
        json!({"key": "rsa-1", "header": {"kid": 1}}),
        // Extensions and other types of tokens.
        json!({"header": {"crit": ["exp"]}}),
        json!({"header": {"typ": "id+jwt"}}),
        json!({"header": {"typ": 7}}),
    ] {
        let token = issuer.mint(order.clone()).await;
        assert_eq!(authorize(&tokens, &token).await, Err(invalid()), "{order}");
    }
    // A key in the token itself is ignored.
    let jwk = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"});
    let headers = json!({"kid": "mine", "jwk": jwk, "jku": format!("{}/jwks", issuer.url), "x5u": "http://127.0.0.1:1/"});
    let token = issuer.mint(json!({"trick": "stranger", "header": headers})).await;
    assert_eq!(authorize(&tokens, &token).await, Err(invalid()));
    // A token changed by one letter.
    let good = issuer.token(json!({})).await;
    authorize(&tokens, &good).await.unwrap();
    for at in (0..good.len()).step_by(29) {
        let letter = if good.as_bytes()[at] == b'A' { "B" } else { "A" };
        let changed = format!("{}{letter}{}", &good[..at], &good[at + 1..]);
        assert!(authorize(&tokens, &changed).await.is_err(), "{at}");
    }
    for broken in
        ["opaque", "a.b", "a.b.c", "a.b.c.d.e", &good[1..], &good[..good.len() - 1], &format!("{good}.x")]
    {
        assert_eq!(authorize(&tokens, broken).await, Err(invalid()), "{broken}");
    }
}

#[tokio::test]
async fn rejects_tokens_for_other_audiences_or_issuers() {
    let issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let audience = Denial::invalid("the token is for another audience");
    for (claims, denial) in [
        (json!({"aud": "https://other.example"}), &audience),
        (json!({"aud": "https://api.example/mcp/"}), &audience),
        (json!({"aud": "https://api.example"}), &audience),
        (json!({"aud": ["https://other.example", 7]}), &audience),
        (json!({"aud": []}), &audience),
        (json!({"aud": null}), &audience),
        (json!({"aud": {"https://api.example/mcp": true}}), &audience),
        (json!({"iss": "https://other.example"}), &invalid()),
        (json!({"iss": format!("{}/", issuer.url)}), &invalid()),
        (json!({"iss": [issuer.url]}), &invalid()),
        (json!({"iss": null}), &invalid()),
        (json!({"sub": null}), &invalid()),
        (json!({"sub": 7}), &invalid()),
        (json!({"sub": ""}), &invalid()),
    ] {
        let token = issuer.token(claims.clone()).await;
        assert_eq!(authorize(&tokens, &token).await.as_ref(), Err(denial), "{claims}");
    }
    let token = issuer.token(json!({"aud": ["https://other.example", AUDIENCE]})).await;
    authorize(&tokens, &token).await.unwrap();
}

/// F27. The exact border is tested without a clock, in `claims.rs`.
#[tokio::test]
async fn clocks_may_differ_by_the_leeway() {
    let issuer = TestIssuer::start().await;
    let default = tokens(&issuer);
    let generous = trusting(&issuer).leeway(Duration::from_secs(300)).build().unwrap();
    let strict = trusting(&issuer).leeway(Duration::ZERO).build().unwrap();
    let early = Denial::invalid("the token is not valid yet");
    // The expected results for leeways of 60, 300 and 0 seconds.
    for (claims, answers) in [
        (json!({"exp": now_and(-30)}), [Ok(()), Ok(()), Err(expired())]),
        (json!({"exp": now_and(-61)}), [Err(expired()), Ok(()), Err(expired())]),
        (json!({"exp": now_and(-301)}), [Err(expired()), Err(expired()), Err(expired())]),
        (json!({"exp": 0}), [Err(expired()), Err(expired()), Err(expired())]),
        (json!({"exp": -1.5}), [Err(expired()), Err(expired()), Err(expired())]),
        (json!({"nbf": now_and(-30)}), [Ok(()), Ok(()), Ok(())]),
        (json!({"nbf": now_and(59)}), [Ok(()), Ok(()), Err(early.clone())]),
        (json!({"nbf": now_and(200)}), [Err(early.clone()), Ok(()), Err(early.clone())]),
        (json!({"nbf": now_and(600)}), [Err(early.clone()), Err(early.clone()), Err(early.clone())]),
        (json!({"exp": 1e15, "nbf": 0.5}), [Ok(()), Ok(()), Ok(())]),
    ] {
        let token = issuer.token(claims.clone()).await;
        for (tokens, answer) in [&default, &generous, &strict].into_iter().zip(answers) {
            assert_eq!(authorize(tokens, &token).await.map(drop), answer, "{claims}");
        }
    }
}

#[tokio::test]
async fn rejects_times_of_the_wrong_type() {
    let issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let later = now_and(600);
    for claims in [
        json!({"exp": later.to_string()}),
        json!({"exp": null}),
        json!({"exp": [later]}),
        json!({"exp": true}),
        json!({"exp": {"time": later}}),
        json!({"nbf": "0"}),
        json!({"nbf": [0]}),
    ] {
        let token = issuer.token(claims.clone()).await;
        assert_eq!(authorize(&tokens, &token).await, Err(invalid()), "{claims}");
    }
}

#[tokio::test]
async fn a_token_without_a_key_id_needs_exactly_one_suitable_key() {
    let issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let anonymous = |key: &str| json!({"key": key, "header": {"kid": null}});
    for key in ["rsa-1", "ec-1", "ed-1"] {
        authorize(&tokens, &issuer.mint(anonymous(key)).await).await.unwrap();
    }
    issuer.control(json!({"add": [{"kid": "rsa-2"}]})).await;
    let tokens = self::tokens(&issuer);
    assert_eq!(authorize(&tokens, &issuer.mint(anonymous("rsa-1")).await).await, Err(invalid()));
    authorize(&tokens, &issuer.mint(anonymous("ec-1")).await).await.unwrap();
}

#[tokio::test]
async fn keys_are_used_only_for_their_purpose() {
    let issuer = TestIssuer::start().await;
    issuer
        .control(json!({"add": [
            {"kid": "encrypts", "jwk": {"use": "enc"}},
            {"kid": "agrees", "jwk": {"key_ops": ["deriveKey"]}},
            {"kid": "pss", "jwk": {"alg": "PS256"}},
            {"kid": "plain", "jwk": {"use": null}},
            {"kid": "others", "jwk": {"issuer": "https://other.example"}},
            {"kid": "ours", "jwk": {"issuer": issuer.url}},
            {"kid": "strange", "jwk": {"kty": "LATTICE"}},
        ]}))
        .await;
    let tokens = tokens(&issuer);
    for (key, alg, counts) in [
        ("encrypts", "RS256", false),
        ("agrees", "RS256", false),
        ("pss", "RS256", false),
        ("pss", "PS256", true),
        ("plain", "RS256", true),
        ("others", "RS256", false),
        ("ours", "RS256", true),
        ("strange", "RS256", false),
    ] {
        let token = issuer.mint(json!({"key": key, "header": {"alg": alg}})).await;
        assert_eq!(authorize(&tokens, &token).await.is_ok(), counts, "{key} {alg}");
    }
}

#[tokio::test]
async fn the_type_of_a_token_can_be_required() {
    let issuer = TestIssuer::start().await;
    let strict = Issuer::new(&issuer.url).requires_type();
    let strict = TokenAuthorizer::builder().issuer(strict).audience(AUDIENCE).build().unwrap();
    let lenient = tokens(&issuer);
    for (typ, strictly) in [(json!("at+jwt"), true), (json!("JWT"), false), (Value::Null, false)] {
        let token = issuer.mint(json!({"header": {"typ": typ}})).await;
        assert!(authorize(&lenient, &token).await.is_ok(), "{typ}");
        assert_eq!(authorize(&strict, &token).await.is_ok(), strictly, "{typ}");
    }
}

#[tokio::test]
async fn the_length_of_a_token_is_limited() {
    let issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let long = issuer.token(json!({"groups": "g".repeat(11 << 10)})).await;
    assert!(long.len() > 14 << 10 && long.len() < 16 << 10, "{}", long.len());
    authorize(&tokens, &long).await.unwrap();
    let too_long = issuer.token(json!({"groups": "g".repeat(13 << 10)})).await;
    assert_eq!(authorize(&tokens, &too_long).await, Err(invalid()));
}

#[tokio::test]
async fn callers_of_different_issuers_are_different() {
    let [one, two] = [TestIssuer::start().await, TestIssuer::start().await];
    let tokens = trusting(&one).issuer(Issuer::new(&two.url)).build().unwrap();
    let [by_one, by_two] = [one.token(json!({})).await, two.token(json!({})).await];
    let first = authorize(&tokens, &by_one).await.unwrap();
    let second = authorize(&tokens, &by_two).await.unwrap();
    assert_ne!(first, second, "both issuers have a subject alice");
    // Neither issuer can issue tokens of the other.
    let forged = one.token(json!({"iss": two.url})).await;
    assert_eq!(authorize(&tokens, &forged).await, Err(invalid()));
    assert_eq!(tokens.authorization_servers(), [one.url.clone(), two.url.clone()]);
}

#[tokio::test]
async fn an_issuer_may_have_another_name_in_tokens() {
    let issuer = TestIssuer::start().await;
    issuer.control(json!({"claimed": "https://names.example/{tenantid}/"})).await;
    let named = || Issuer::new(&issuer.url).accepts_issuer("https://names.example/{tenantid}/");
    let tenants = ["aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"];
    let one = named().tenants([tenants[0]]).keyed_by(["tid", "oid"]);
    let tokens = TokenAuthorizer::builder().issuer(one).audience(AUDIENCE).build().unwrap();
    let of = |issuer: &str, tenant: &str| json!({"iss": format!("https://names.example/{issuer}/"), "tid": tenant, "oid": "o"});
    let good = issuer.token(of(tenants[0], tenants[0])).await;
    let caller = authorize(&tokens, &good).await.unwrap();
    assert_eq!(caller.id(), Some(format!("{}|o", tenants[0]).as_str()));
    for claims in [
        of(tenants[1], tenants[1]),
        of(tenants[0], tenants[1]),
        of(tenants[1], tenants[0]),
        json!({"iss": issuer.url, "tid": tenants[0], "oid": "o"}),
        json!({"iss": format!("https://names.example/{}/", tenants[0]), "tid": tenants[0]}),
    ] {
        assert_eq!(authorize(&tokens, &issuer.token(claims.clone()).await).await, Err(invalid()), "{claims}");
    }
}

#[tokio::test]
async fn credentials_are_read_only_from_the_authorization_header() {
    let issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let token = issuer.token(json!({})).await;
    for scheme in ["Bearer", "bearer", "BEARER"] {
        tokens.authorize(&request(&[("authorization", &format!("{scheme} {token}"))])).await.unwrap();
    }
    let bearer = format!("Bearer {token}");
    let two = request(&[("authorization", &bearer), ("authorization", &bearer)]);
    let denial = tokens.authorize(&two).await.unwrap_err();
    assert_eq!(denial, Denial::malformed(denial.to_string()));
    let (mut parts, ()) =
        ::http::Request::get(format!("/mcp?access_token={token}")).body(()).unwrap().into_parts();
    parts.headers.insert("cookie", format!("access_token={token}").parse().unwrap());
    parts.headers.insert("x-access-token", token.parse().unwrap());
    let elsewhere = bindpost_mcp_server::HttpRequest { parts, peer: None };
    assert_eq!(tokens.authorize(&elsewhere).await, Err(Denial::missing()));
    assert_eq!(tokens.authorize(&request(&[("authorization", "Basic YTpi")])).await, Err(Denial::missing()));
    for value in ["Bearer", "Bearer ", "Bearer a b", "Bearer a,b"] {
        let denial = tokens.authorize(&request(&[("authorization", value)])).await.unwrap_err();
        assert_eq!(denial, Denial::malformed(denial.to_string()), "{value}");
    }
}

/// Streams and other long operations need the expiry of the token.
#[tokio::test]
async fn a_caller_has_the_expiry_of_its_token() {
    let issuer = TestIssuer::start().await;
    let tokens = trusting(&issuer).leeway(Duration::from_secs(30)).build().unwrap();
    let token = issuer.token(json!({"exp": now_and(600)})).await;
    let fresh = authorize(&tokens, &token).await.unwrap();
    let left = fresh.expires_at().unwrap().duration_since(std::time::Instant::now());
    assert!((Duration::from_secs(500)..=Duration::from_secs(630)).contains(&left), "{left:?}");
    // A cached token has exactly the same expiry, and is an equal caller.
    let remembered = authorize(&tokens, &token).await.unwrap();
    assert_eq!(remembered.expires_at(), fresh.expires_at());
    let renewed = issuer.token(json!({"exp": now_and(1200)})).await;
    let renewed = authorize(&tokens, &renewed).await.unwrap();
    assert_eq!(renewed, fresh);
    assert!(renewed.expires_at() > fresh.expires_at());
}
