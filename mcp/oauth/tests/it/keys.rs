//! Key rotation, an issuer that is down, slow or faulty, and clients with made-up key ids.

use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bindpost_mcp_oauth::{Issuer, OAuthLimits, TokenAuthorizer};
use serde_json::{Value, json};

use crate::issuer::{PATIENCE, TestIssuer, within};
use crate::requests::{
    AUDIENCE, authorize, expired, invalid, limited, now_and, tokens, trusting, unavailable, well_after,
};

/// A short interval that is still longer than delays of a slow machine.
const SHORT: Duration = Duration::from_millis(300);

/// The default limits, but keys are always old.
fn always_refresh() -> OAuthLimits {
    OAuthLimits { refresh: Duration::ZERO, ..OAuthLimits::default() }
}

/// Returns a token with the claims of this one and another key id.
fn naming(token: &str, kid: &str) -> String {
    let (_, rest) = token.split_once('.').unwrap();
    let header = json!({"alg": "RS256", "typ": "at+jwt", "kid": kid}).to_string();
    format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header))
}

#[tokio::test]
async fn the_issuer_is_not_needed_before_the_first_token() {
    let mut issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    assert_eq!((issuer.fetches().await, issuer.count("discovery").await), (0, 0));
    let good = issuer.token(json!({})).await;
    issuer.stop().await;
    // The issuer was never up, so the token cannot be verified.
    let begun = Instant::now();
    assert_eq!(authorize(&tokens, &good).await, Err(unavailable()));
    assert_eq!(authorize(&tokens, &good).await, Err(unavailable()));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    // A text that is not a token of this issuer is rejected nevertheless.
    assert_eq!(authorize(&tokens, "opaque").await, Err(invalid()));
}

#[tokio::test]
async fn many_first_tokens_cause_one_fetch() {
    let issuer = TestIssuer::start().await;
    issuer.control(json!({"delay": 200})).await;
    let tokens = tokens(&issuer);
    let good = issuer.token(json!({})).await;
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (tokens, token) =
            (tokens.clone(), if number % 2 == 0 { good.clone() } else { naming(&good, "other") });
        asking.spawn(async move { (number, authorize(&tokens, &token).await) });
    }
    while let Some(answer) = asking.join_next().await {
        let (number, answer) = answer.unwrap();
        assert_eq!(answer.is_ok(), number % 2 == 0, "{answer:?}");
    }
    assert_eq!((issuer.fetches().await, issuer.count("discovery").await), (1, 1));
}

/// Fault F28: key rotation.
#[tokio::test]
async fn a_new_key_is_accepted_after_one_fetch() {
    let issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let old = issuer.token(json!({})).await;
    authorize(&tokens, &old).await.unwrap();
    assert_eq!(issuer.fetches().await, 1);

    issuer.control(json!({"add": [{"kid": "rsa-2"}]})).await;
    let new = issuer.mint(json!({"key": "rsa-2"})).await;
    for token in [&new, &old, &new] {
        authorize(&tokens, token).await.unwrap();
    }
    assert_eq!(issuer.fetches().await, 2);

    // The next unknown key has to wait, because only one fetch in five minutes is allowed.
    issuer.control(json!({"add": [{"kid": "rsa-3"}]})).await;
    let newer = issuer.mint(json!({"key": "rsa-3"})).await;
    for _ in 0..10 {
        assert_eq!(authorize(&tokens, &newer).await, Err(invalid()));
    }
    assert_eq!(issuer.fetches().await, 2);
}

#[tokio::test]
async fn an_unknown_key_causes_another_fetch_after_the_interval() {
    let issuer = TestIssuer::start().await;
    let tokens = limited(&issuer, OAuthLimits { unknown_key: SHORT, ..OAuthLimits::default() });
    authorize(&tokens, &issuer.token(json!({})).await).await.unwrap();
    for (kid, fetches) in [("rsa-2", 2), ("rsa-3", 3)] {
        issuer.control(json!({"add": [{"kid": kid}]})).await;
        let token = issuer.mint(json!({"key": kid})).await;
        authorize(&tokens, &token).await.unwrap();
        assert_eq!(issuer.fetches().await, fetches);
        well_after(SHORT).await;
    }
}

/// F28, second part: this also applies to a token that was verified before.
#[tokio::test]
async fn a_revoked_key_is_rejected_after_the_next_refresh() {
    let issuer = TestIssuer::start().await;
    let tokens = limited(&issuer, OAuthLimits { refresh: SHORT, ..OAuthLimits::default() });
    let [one, two] = [issuer.token(json!({})).await, issuer.mint(json!({"key": "ec-1"})).await];
    for token in [&one, &two] {
        authorize(&tokens, token).await.unwrap();
    }
    issuer.control(json!({"remove": ["rsa-1"]})).await;
    well_after(SHORT).await;
    // There was no request in between, so the first one waits for the fetch.
    assert_eq!(authorize(&tokens, &one).await, Err(invalid()));
    authorize(&tokens, &two).await.unwrap();
    let fresh = issuer.token(json!({"sub": "bob"})).await;
    assert_eq!(authorize(&tokens, &fresh).await, Err(invalid()));
}

/// The response of an issuer briefly has no keys, for example during a deployment or because of a
/// faulty cache.
#[tokio::test]
async fn one_response_without_keys_drops_no_known_key() {
    let issuer = TestIssuer::start().await;
    let retry = Duration::from_millis(20);
    let tokens = limited(&issuer, OAuthLimits { retry, retry_max: retry, ..always_refresh() });
    let good = issuer.token(json!({})).await;
    authorize(&tokens, &good).await.unwrap();
    for fault in ["empty", "useless"] {
        issuer.control(json!({"fault": fault})).await;
        let fetches = issuer.fetches().await;
        within(async {
            // A token that was verified before, and a new one.
            while issuer.fetches().await < fetches + 5 {
                authorize(&tokens, &good).await.unwrap();
                authorize(&tokens, &issuer.token(json!({"sub": "bob"})).await).await.unwrap();
            }
        })
        .await;
        issuer.control(json!({"fault": null})).await;
        authorize(&tokens, &good).await.unwrap();
    }
    // Another set, even a smaller one, takes effect with the next response.
    issuer.control(json!({"remove": ["rsa-1", "ed-1"]})).await;
    within(async {
        while authorize(&tokens, &good).await.is_ok() {
            tokio::time::sleep(retry).await;
        }
    })
    .await;
    assert_eq!(authorize(&tokens, &good).await, Err(invalid()));
}

#[tokio::test]
async fn all_keys_can_be_revoked() {
    let issuer = TestIssuer::start().await;
    let retry = Duration::from_millis(50);
    let limits = OAuthLimits { confirm_no_keys: SHORT, retry, retry_max: retry, ..always_refresh() };
    let tokens = limited(&issuer, limits);
    let good = issuer.token(json!({})).await;
    authorize(&tokens, &good).await.unwrap();
    issuer.control(json!({"fault": "empty"})).await;
    authorize(&tokens, &good).await.unwrap();
    within(async {
        while authorize(&tokens, &good).await.is_ok() {
            tokio::time::sleep(retry).await;
        }
    })
    .await;
    assert_eq!(authorize(&tokens, &good).await, Err(invalid()));
}

/// Fault F29: the issuer is down.
#[tokio::test]
async fn known_keys_stay_valid_while_the_issuer_is_down() {
    let mut issuer = TestIssuer::start().await;
    let tokens = limited(&issuer, OAuthLimits { unknown_key: Duration::ZERO, ..always_refresh() });
    let tokens_at_rest = self::tokens(&issuer);
    let good = issuer.token(json!({})).await;
    let later = issuer.token(json!({"sub": "bob"})).await;
    issuer.control(json!({"add": [{"kid": "rsa-2"}]})).await;
    let renewed = issuer.mint(json!({"key": "rsa-2"})).await;
    issuer.control(json!({"remove": ["rsa-2"]})).await;
    for tokens in [&tokens, &tokens_at_rest] {
        authorize(tokens, &good).await.unwrap();
    }
    issuer.stop().await;
    let begun = Instant::now();
    for tokens in [&tokens, &tokens_at_rest] {
        for _ in 0..20 {
            authorize(tokens, &good).await.unwrap();
            // The token is verified for the first time, with known keys.
            authorize(tokens, &later).await.unwrap();
            assert_eq!(authorize(tokens, &renewed).await, Err(invalid()));
        }
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

/// F29: an issuer that accepts connections but sends no response.
#[tokio::test]
async fn requests_do_not_pile_up_at_a_silent_issuer() {
    let issuer = TestIssuer::start().await;
    let fetch_timeout = Duration::from_secs(2);
    let limits = OAuthLimits {
        waiting: 10,
        fetch_timeout,
        retry: PATIENCE,
        retry_max: PATIENCE,
        ..OAuthLimits::default()
    };
    let tokens = limited(&issuer, limits);
    let good = issuer.token(json!({})).await;
    authorize(&tokens, &good).await.unwrap();
    issuer.control(json!({"fault": "hang"})).await;
    let begun = Instant::now();
    let mut asking = tokio::task::JoinSet::new();
    for number in 0..500 {
        let (tokens, token) = (tokens.clone(), naming(&good, &format!("made up {number}")));
        asking.spawn(async move { authorize(&tokens, &token).await });
    }
    // A token with a known key does not wait for a fetch because of an unknown one.
    authorize(&tokens, &good).await.unwrap();
    assert!(begun.elapsed() < fetch_timeout, "{:?}", begun.elapsed());
    while let Some(answer) = asking.join_next().await {
        assert_eq!(answer.unwrap(), Err(invalid()));
    }
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(issuer.fetches().await, 2);
}

/// Fault F30: a flood of random key ids.
#[tokio::test]
async fn made_up_key_ids_cause_one_fetch() {
    let issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let good = issuer.token(json!({})).await;
    authorize(&tokens, &good).await.unwrap();
    for number in 0..10_000u32 {
        let token = naming(&good, &format!("{number:08x}"));
        assert_eq!(authorize(&tokens, &token).await, Err(invalid()));
        if number % 100 == 0 {
            authorize(&tokens, &good).await.unwrap();
        }
    }
    assert_eq!(issuer.fetches().await, 2, "the first fetch, and one for all unknown keys");
}

#[tokio::test]
async fn made_up_key_ids_at_the_start_cause_one_fetch() {
    let issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let good = issuer.token(json!({})).await;
    for number in 0..1_000u32 {
        assert_eq!(authorize(&tokens, &naming(&good, &format!("{number}"))).await, Err(invalid()));
    }
    authorize(&tokens, &good).await.unwrap();
    assert_eq!(issuer.fetches().await, 1);
}

#[tokio::test]
async fn clients_that_disconnect_cause_no_further_fetches() {
    let issuer = TestIssuer::start().await;
    let tokens = tokens(&issuer);
    let good = issuer.token(json!({})).await;
    authorize(&tokens, &good).await.unwrap();
    let go_away = async || {
        for number in 0..50 {
            let token = naming(&good, &format!("{number}"));
            let _ = tokio::time::timeout(Duration::from_millis(2), authorize(&tokens, &token)).await;
        }
    };
    go_away().await;
    within(async { while issuer.fetches().await < 2 {} }).await;
    go_away().await;
    assert_eq!(authorize(&tokens, &naming(&good, "last")).await, Err(invalid()));
    assert_eq!(issuer.fetches().await, 2);
}

/// Known keys stay valid after every faulty response. Without known keys, tokens cannot be verified.
#[tokio::test]
async fn faulty_responses_are_rejected() {
    let issuer = TestIssuer::start().await;
    let good = issuer.token(json!({})).await;
    let elsewhere = TestIssuer::start().await;
    let away = format!("redirect {}/jwks", elsewhere.url);
    let limits =
        || OAuthLimits { fetch_timeout: Duration::from_secs(2), retry: Duration::ZERO, ..always_refresh() };
    for fault in ["500", "garbage", "huge", "many", "endless", "drip", "cut", "hang", &away, "redirect /jwks"]
    {
        issuer.control(json!({"fault": null})).await;
        let warm = limited(&issuer, limits());
        authorize(&warm, &good).await.unwrap();
        issuer.control(json!({"fault": fault})).await;
        let begun = Instant::now();
        assert_eq!(authorize(&limited(&issuer, limits()), &good).await, Err(unavailable()), "{fault}");
        authorize(&warm, &good).await.unwrap_or_else(|denial| panic!("{fault}: {denial}"));
        assert_eq!(authorize(&warm, &naming(&good, "other")).await, Err(invalid()), "{fault}");
        assert!(begun.elapsed() < Duration::from_secs(15), "{fault}: {:?}", begun.elapsed());
    }
    assert_eq!(elsewhere.fetches().await, 0, "no redirect to another host was followed");
    // Reading stopped at the limit. The remaining bytes are in the buffers of the sockets.
    let taken = issuer.count("bytes").await;
    assert!(taken < 64 << 20, "{taken} bytes of three endless responses were sent");
}

#[tokio::test]
async fn a_redirect_within_the_issuer_is_followed() {
    let issuer = TestIssuer::start().await;
    issuer.control(json!({"fault": "redirect /moved"})).await;
    authorize(&tokens(&issuer), &issuer.token(json!({})).await).await.unwrap();
}

#[tokio::test]
async fn a_failed_fetch_is_retried_after_a_delay() {
    let issuer = TestIssuer::start().await;
    let patient =
        limited(&issuer, OAuthLimits { retry: PATIENCE, retry_max: PATIENCE, ..OAuthLimits::default() });
    let eager = limited(&issuer, OAuthLimits { retry: Duration::ZERO, ..OAuthLimits::default() });
    let good = issuer.token(json!({})).await;
    issuer.control(json!({"fault": "500"})).await;
    for _ in 0..20 {
        assert_eq!(authorize(&patient, &good).await, Err(unavailable()));
    }
    assert_eq!(issuer.fetches().await, 1);
    assert_eq!(authorize(&eager, &good).await, Err(unavailable()));
    issuer.control(json!({"fault": null})).await;
    authorize(&eager, &good).await.unwrap();
}

#[tokio::test]
async fn old_keys_expire() {
    let mut issuer = TestIssuer::start().await;
    let limits =
        OAuthLimits { refresh: SHORT, keep: SHORT * 4, retry: Duration::ZERO, ..OAuthLimits::default() };
    let tokens = limited(&issuer, limits);
    let good = issuer.token(json!({})).await;
    let begun = Instant::now();
    authorize(&tokens, &good).await.unwrap();
    issuer.stop().await;
    let until = loop {
        let answer = authorize(&tokens, &good).await;
        match answer {
            Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            // This also applies to a token that was verified before.
            Err(denial) => {
                assert_eq!(denial, unavailable());
                break begun.elapsed();
            }
        }
    };
    assert!(until >= SHORT * 4, "{until:?}");
}

#[tokio::test]
async fn a_cached_token_expires() {
    let issuer = TestIssuer::start().await;
    let tokens = trusting(&issuer).leeway(Duration::ZERO).build().unwrap();
    authorize(&tokens, &issuer.token(json!({})).await).await.unwrap();
    let short = issuer.token(json!({"exp": now_and(5)})).await;
    authorize(&tokens, &short).await.unwrap();
    within(async {
        while authorize(&tokens, &short).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    assert_eq!(authorize(&tokens, &short).await, Err(expired()));
}

#[tokio::test]
async fn metadata_is_found_by_both_standards_and_must_name_the_issuer() {
    let issuer = TestIssuer::start().await;
    let good = issuer.token(json!({})).await;
    for discovery in [json!(["openid-configuration"]), json!(["oauth-authorization-server"])] {
        issuer.control(json!({"discovery": discovery})).await;
        authorize(&tokens(&issuer), &good).await.unwrap();
    }
    issuer.control(json!({"discovery": []})).await;
    assert_eq!(authorize(&tokens(&issuer), &good).await, Err(unavailable()));
    // A configured address of the keys needs no metadata.
    let fixed = Issuer::new(&issuer.url).jwks_uri(format!("{}/jwks", issuer.url));
    let fixed = TokenAuthorizer::builder().issuer(fixed).audience(AUDIENCE).build().unwrap();
    authorize(&fixed, &good).await.unwrap();

    issuer.control(json!({"discovery": ["openid-configuration"], "claimed": "https://other.example"})).await;
    assert_eq!(authorize(&tokens(&issuer), &good).await, Err(unavailable()));
    let document = |json: Value| json!({"documents": {"/.well-known/openid-configuration": {"json": json}}});
    for broken in [
        json!({"issuer": issuer.url}),
        json!({"issuer": issuer.url, "jwks_uri": "http://keys.example/jwks"}),
        json!({"issuer": issuer.url, "jwks_uri": "file:///etc/hostname"}),
        json!({"issuer": issuer.url, "jwks_uri": 7}),
        json!({"jwks_uri": format!("{}/jwks", issuer.url)}),
        json!([]),
    ] {
        issuer.control(document(broken.clone())).await;
        assert_eq!(authorize(&tokens(&issuer), &good).await, Err(unavailable()), "{broken}");
    }
}

#[tokio::test]
async fn metadata_of_an_issuer_with_a_path() {
    let issuer = TestIssuer::start().await;
    let shop = format!("{}/realms/shop", issuer.url);
    let json = json!({"issuer": shop, "jwks_uri": format!("{}/jwks", issuer.url)});
    let good = issuer.token(json!({"iss": shop})).await;
    let tokens = || TokenAuthorizer::builder().issuer(Issuer::new(&shop)).audience(AUDIENCE).build().unwrap();
    for path in [
        "/.well-known/oauth-authorization-server/realms/shop",
        "/realms/shop/.well-known/openid-configuration",
    ] {
        issuer.control(json!({"discovery": [], "documents": {path: {"json": json}}})).await;
        authorize(&tokens(), &good).await.unwrap();
    }
}

/// Trusts the issuer with these keys, which it serves as a document.
async fn with_keys(issuer: &TestIssuer, keys: Vec<Value>) -> TokenAuthorizer {
    issuer.control(json!({"documents": {"/own/keys": {"json": {"keys": keys}}}})).await;
    let trusted = Issuer::new(&issuer.url).jwks_uri(format!("{}/own/keys", issuer.url));
    TokenAuthorizer::builder().issuer(trusted).audience(AUDIENCE).build().unwrap()
}

#[tokio::test]
async fn a_thousand_keys_are_accepted_and_no_more() {
    let issuer = TestIssuer::start().await;
    let own = issuer.public_keys().await;
    let rsa = own.iter().find(|key| key["kid"] == "rsa-1").unwrap();
    let other = |number: usize| {
        let mut key = rsa.clone();
        key["kid"] = json!(format!("other-{number}"));
        // Each key has another modulus of realistic length.
        key["n"] = json!(URL_SAFE_NO_PAD.encode(format!("{number:0>256}")));
        key
    };
    let good = issuer.token(json!({})).await;
    for (others, counts) in [(999, true), (1_000, false)] {
        let mut keys: Vec<Value> = (0..others).map(other).collect();
        keys.push(rsa.clone());
        let tokens = with_keys(&issuer, keys).await;
        let answer = authorize(&tokens, &good).await;
        assert_eq!(answer.is_ok(), counts, "{others}: {answer:?}");
        if counts {
            for number in [0, 500, 998] {
                let refused = authorize(&tokens, &naming(&good, &format!("other-{number}"))).await;
                assert_eq!(refused, Err(invalid()), "signed by another key");
            }
            // A token without a key id would have to be tried with all keys.
            let anonymous = issuer.mint(json!({"header": {"kid": null}})).await;
            assert_eq!(authorize(&tokens, &anonymous).await, Err(invalid()));
        }
    }
}

#[tokio::test]
async fn keys_with_the_same_id_are_distinguished_by_their_kind() {
    let issuer = TestIssuer::start().await;
    let named = |key: &Value, more: Value| {
        let mut key = key.clone();
        key["kid"] = json!("shared");
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key
    };
    let own = issuer.public_keys().await;
    let [rsa, ec, ed] =
        ["rsa-1", "ec-1", "ed-1"].map(|kid| own.iter().find(|key| key["kid"] == kid).unwrap());
    let keys = vec![
        json!({"kty": "oct", "kid": "shared", "k": "c2VjcmV0", "alg": "HS256"}),
        named(rsa, json!({"use": "enc"})),
        named(rsa, json!({"alg": "PS512"})),
        named(ec, json!({})),
        named(ed, json!({})),
        named(rsa, json!({"alg": "RS256"})),
    ];
    let tokens = with_keys(&issuer, keys).await;
    for (key, alg, counts) in [
        ("rsa-1", "RS256", true),
        ("ec-1", "ES256", true),
        ("ed-1", "EdDSA", true),
        // No key with this id is for this algorithm.
        ("rsa-1", "PS256", false),
        // The algorithm is not allowed, although there is a key for it.
        ("rsa-1", "PS512", false),
    ] {
        let token = issuer.mint(json!({"key": key, "header": {"alg": alg, "kid": "shared"}})).await;
        assert_eq!(authorize(&tokens, &token).await.is_ok(), counts, "{key} {alg}");
    }
    // A public key is not accepted as a shared secret, and a signature of one kind not as one of another.
    for order in [
        json!({"trick": "hmac", "header": {"alg": "HS256", "kid": "shared"}}),
        json!({"trick": "hmac", "header": {"alg": "RS256", "kid": "shared"}}),
        json!({"trick": "none", "header": {"alg": "none", "kid": "shared"}}),
        json!({"trick": "none", "header": {"alg": "ES256", "kid": "shared"}}),
        json!({"trick": "stranger", "key": "ec-1", "header": {"kid": "shared"}}),
        json!({"trick": "stranger", "key": "rsa-1", "header": {"kid": "shared"}}),
    ] {
        assert_eq!(authorize(&tokens, &issuer.mint(order.clone()).await).await, Err(invalid()), "{order}");
    }
    // Valid signatures under the name of another algorithm.
    let signed = issuer.mint(json!({"key": "rsa-1", "header": {"kid": "shared"}})).await;
    for alg in ["ES256", "EdDSA", "PS256", "HS256", "none", "rs256"] {
        let (_, rest) = signed.split_once('.').unwrap();
        let header = json!({"alg": alg, "typ": "at+jwt", "kid": "shared"}).to_string();
        let confused = format!("{}.{rest}", URL_SAFE_NO_PAD.encode(header));
        assert_eq!(authorize(&tokens, &confused).await, Err(invalid()), "{alg}");
    }
}
