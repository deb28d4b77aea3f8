//! Requests as an authorizer sees them, and authorizers with short limits.

use std::time::Duration;

use bindpost_mcp_http::{Authorizer as _, Denial};
use bindpost_mcp_oauth::{Issuer, OAuthLimits, TokenAuthorizer, TokenAuthorizerBuilder};
use bindpost_mcp_server::{Caller, HttpRequest};

use crate::issuer::{TestIssuer, within};

pub(crate) const AUDIENCE: &str = "https://api.example/mcp";

/// Builds a request with these headers.
pub(crate) fn request(headers: &[(&str, &str)]) -> HttpRequest {
    let mut builder = ::http::Request::post("/mcp?access_token=ignored");
    for (name, value) in headers {
        builder = builder.header(*name, *value);
    }
    let (parts, ()) = builder.body(()).unwrap().into_parts();
    HttpRequest { parts, peer: None }
}

/// Authorizes a request with this token.
pub(crate) async fn authorize(tokens: &TokenAuthorizer, token: &str) -> Result<Caller, Denial> {
    within(tokens.authorize(&request(&[("authorization", &format!("Bearer {token}"))]))).await
}

pub(crate) fn trusting(issuer: &TestIssuer) -> TokenAuthorizerBuilder {
    TokenAuthorizer::builder().issuer(Issuer::new(&issuer.url)).audience(AUDIENCE)
}

/// Accepts the tokens of the issuer.
pub(crate) fn tokens(issuer: &TestIssuer) -> TokenAuthorizer {
    trusting(issuer).build().unwrap()
}

/// The same, with other limits.
pub(crate) fn limited(issuer: &TestIssuer, limits: OAuthLimits) -> TokenAuthorizer {
    trusting(issuer).limits(limits).build().unwrap()
}

/// Waits well beyond this time.
pub(crate) async fn well_after(time: Duration) {
    tokio::time::sleep(time * 2).await;
}

pub(crate) fn invalid() -> Denial {
    Denial::invalid("the token is not valid")
}

pub(crate) fn expired() -> Denial {
    Denial::invalid("the token has expired")
}

pub(crate) fn unavailable() -> Denial {
    Denial::unavailable("the token cannot be verified now; try again later")
}

/// Returns the current time plus these seconds, in seconds since 1970.
pub(crate) fn now_and(seconds: i64) -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(now.as_secs()).unwrap() + seconds
}
