//! Checks a token with `TokenAuthorizer`. The input has its header, claims and signature, one on each
//! line. The token is accepted exactly if the issuer's key signed it, the audience is correct and it
//! is valid now.
//!
//! A fuzzer cannot guess a signature: without a third line the token is signed with the issuer's key. The
//! whole input is also used as the value of an `Authorization` header.

#![cfg_attr(fuzzing, no_main)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bindpost_mcp_http::Authorizer as _;
use bindpost_mcp_oauth::{Issuer, TokenAuthorizer};
use bindpost_mcp_server::{Caller, HttpRequest};
use http::HeaderValue;
use http::header::AUTHORIZATION;
use ring::signature::Ed25519KeyPair;
use serde_json::{Map, Value};
use tokio::runtime::{Builder, Runtime};

const ISSUER: &str = "https://issuer.example";
const AUDIENCE: &str = "https://api.example/mcp";
const NOW: u32 = 1_800_000_000;
const LEEWAY: f64 = 60.0;
/// The maximum duration of a fuzzing run in seconds. A cached token expires by the real clock, while `NOW`
/// is fixed.
const LONGEST_RUN: f64 = 86_400.0;

/// The default of `OAuthLimits`.
const MAX_TOKEN: usize = 16 << 10;

/// An Ed25519 key whose 32 secret bytes are all 7, and its public key.
const SECRET_KEY: &[u8] = b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20\
    \x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\
    \x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07\x07";
const KEY_SET: &str =
    r#"{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"6kpsY-KcUgq-9VB7Ey7F-ZVHdq6-vnuSQh7qaRRG0iw"}]}"#;

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_all().build().expect("a runtime"));

static TOKENS: LazyLock<TokenAuthorizer> = LazyLock::new(|| {
    let issuer = Issuer::new(ISSUER).jwks_uri(serve_keys());
    let now = UNIX_EPOCH + Duration::from_secs(NOW.into());
    let tokens = TokenAuthorizer::builder().issuer(issuer).audience(AUDIENCE).clock(move || now);
    tokens.leeway(Duration::from_secs_f64(LEEWAY)).build().expect("good settings")
});

bindpost_fuzz::target!(run);

fn run(data: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(data) {
        let caller = authorize(value);
        let token = bindpost_fuzz::text(data).split_ascii_whitespace().next_back();
        assert!(caller.is_none() || token.is_some());
        // A rejected value may have no scheme, or another one.
        if let (Some(caller), Some(token)) = (caller, token) {
            check(token, Some(&caller));
        }
    }
    let mut lines = bindpost_fuzz::text(data).splitn(3, '\n');
    let (header, claims) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let (message, genuine) = sign(header, claims);
    let token = format!("{message}.{}", lines.next().filter(|line| !line.is_empty()).unwrap_or(&genuine));
    // A value that is not a valid header does not reach the parser.
    let Ok(value) = HeaderValue::from_str(&format!("Bearer {token}")) else { return };
    check(&token, authorize(value.clone()).as_ref());
    // The second check uses the cache of verified tokens.
    check(&token, authorize(value).as_ref());
}

fn authorize(value: HeaderValue) -> Option<Caller> {
    let (parts, ()) =
        http::Request::builder().header(AUTHORIZATION, value).body(()).expect("a request").into_parts();
    RUNTIME.block_on(TOKENS.authorize(&HttpRequest { parts, peer: None })).ok()
}

/// Returns the signed part of a token, and the signature.
fn sign(header: &str, claims: &str) -> (String, String) {
    let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
    let key = Ed25519KeyPair::from_pkcs8_maybe_unchecked(SECRET_KEY).expect("a key");
    let signature = URL_SAFE_NO_PAD.encode(key.sign(message.as_bytes()));
    (message, signature)
}

fn check(token: &str, caller: Option<&Caller>) {
    let Some((left, claims)) = read(token) else {
        assert!(caller.is_none(), "accepted: {token}");
        return;
    };
    let Some(caller) = caller else {
        assert!(left < LONGEST_RUN || token.len() > MAX_TOKEN, "a valid token is rejected: {claims:?}");
        return;
    };
    let text = |name: &str| claims.get(name).and_then(Value::as_str).unwrap_or_default();
    assert_eq!(caller.id(), Some(&*format!("{}|{}", text("iss"), text("sub"))));
    assert_eq!(caller.claims(), Some(&claims));
}

/// Returns the remaining lifetime of a token in seconds, and its claims. Returns `None` if the
/// token is invalid.
fn read(token: &str) -> Option<(f64, Map<String, Value>)> {
    let [header, claims, signature] = *token.split('.').collect::<Vec<_>>() else { return None };
    let decode = |part| String::from_utf8(URL_SAFE_NO_PAD.decode(part).ok()?).ok();
    let (header, claims) = (decode(header)?, decode(claims)?);
    let genuine = sign(&header, &claims).1 == signature;
    let claims: Map<String, Value> = serde_json::from_str(&claims).ok()?;
    let left = claims.get("exp")?.as_f64()? + LEEWAY - f64::from(NOW);
    (genuine && left > 0.0 && is_header(&header) && are_claims(&claims)).then_some((left, claims))
}

fn is_header(header: &str) -> bool {
    let Ok(header) = serde_json::from_str::<Map<String, Value>>(header) else { return false };
    let types = ["jwt", "at+jwt", "application/at+jwt"];
    let is_type =
        |value: &Value| value.as_str().is_some_and(|typ| types.contains(&&*typ.to_ascii_lowercase()));
    header.get("alg").is_some_and(|alg| alg == "EdDSA")
        && !header.contains_key("crit")
        && header.get("kid").is_none_or(|kid| kid == "k")
        && header.get("typ").is_none_or(is_type)
}

fn are_claims(claims: &Map<String, Value>) -> bool {
    let audience = match claims.get("aud") {
        Some(Value::Array(names)) => names.iter().any(|name| name == AUDIENCE),
        Some(name) => name == AUDIENCE,
        None => false,
    };
    let begun = claims
        .get("nbf")
        .is_none_or(|value| value.as_f64().is_some_and(|begin| f64::from(NOW) >= begin - LEEWAY));
    let subject = claims.get("sub").and_then(Value::as_str).is_some_and(|subject| !subject.is_empty());
    audience && begun && subject && claims.get("iss").is_some_and(|issuer| issuer == ISSUER)
}

/// Starts the issuer, which sends its keys on each connection. Returns the URL of the keys.
fn serve_keys() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/keys", listener.local_addr().expect("its address"));
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut lines = BufReader::new(&stream).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let length = KEY_SET.len();
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n");
            let _ = stream.write_all(format!("{head}{KEY_SET}").as_bytes());
        }
    });
    url
}
