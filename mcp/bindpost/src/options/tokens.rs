//! Access tokens: `auth.issuers` and related options.

use bindpost_mcp_http::AnyAuthorizer;
use bindpost_mcp_oauth::{Issuer, OAuthLimits, TokenAuthorizer};

use super::auth::AuthOptions;
use super::form::{COUNT, PAUSE, SOME, SOME_BYTES, TIME, count, size, time};
use super::keys::{OptionDefinition, key};
use super::slot::slot;

/// Limits on the keys of issuers and on tokens.
pub type TokenLimits = OAuthLimits;

#[rustfmt::skip]
pub(super) const KEYS: &[OptionDefinition] = &[
    key("auth.token_limits.refresh", |o| slot(&mut o.auth.token_limits.refresh, time(PAUSE)), "The age after which the keys of an issuer are fetched again."),
    key("auth.token_limits.keep", |o| slot(&mut o.auth.token_limits.keep, time(TIME)), "How long the last fetched keys stay valid while their issuer is unreachable."),
    key("auth.token_limits.confirm_no_keys", |o| slot(&mut o.auth.token_limits.confirm_no_keys, time(TIME)), "How long an issuer must return no usable key before its previous keys become invalid."),
    key("auth.token_limits.unknown_key", |o| slot(&mut o.auth.token_limits.unknown_key, time(TIME)), "The minimum interval between two fetches caused by an unknown key id, per issuer."),
    key("auth.token_limits.retry", |o| slot(&mut o.auth.token_limits.retry, time(PAUSE)), "The delay before a failed fetch is retried. It doubles with each further failure."),
    key("auth.token_limits.retry_max", |o| slot(&mut o.auth.token_limits.retry_max, time(PAUSE)), "The maximum delay between two retries."),
    key("auth.token_limits.fetch_timeout", |o| slot(&mut o.auth.token_limits.fetch_timeout, time(PAUSE)), "The timeout of a fetch."),
    key("auth.token_limits.max_answer", |o| slot(&mut o.auth.token_limits.max_answer, size(SOME_BYTES)), "The maximum size of an issuer's response."),
    key("auth.token_limits.max_keys", |o| slot(&mut o.auth.token_limits.max_keys, count(SOME)), "The maximum number of keys of one issuer."),
    key("auth.token_limits.waiting", |o| slot(&mut o.auth.token_limits.waiting, count(COUNT)), "The maximum number of requests that wait for one fetch."),
    key("auth.token_limits.max_token", |o| slot(&mut o.auth.token_limits.max_token, size(SOME_BYTES)), "The maximum size of a token."),
    key("auth.token_limits.verified", |o| slot(&mut o.auth.token_limits.verified, count(COUNT)), "The maximum number of verified tokens in the cache."),
];

/// Returns the authorizer for the issuers, or the invalid key and the reason.
pub(super) fn authorizer(auth: &AuthOptions) -> Result<AnyAuthorizer, (&'static str, String)> {
    let algorithms: Result<Vec<_>, _> = auth.algorithms.iter().map(|name| name.parse()).collect();
    let algorithms = algorithms.map_err(|error| ("auth.algorithms", format!("cannot be used: {error}")))?;
    let mut builder = TokenAuthorizer::builder().leeway(auth.leeway).limits(auth.token_limits.clone());
    for url in &auth.issuers {
        let mut issuer = Issuer::new(url);
        if !algorithms.is_empty() {
            issuer = issuer.algorithms(algorithms.iter().copied());
        }
        if auth.require_token_type {
            issuer = issuer.requires_type();
        }
        builder = builder.issuer(issuer);
    }
    let audiences =
        if auth.audiences.is_empty() { auth.resource.as_slice() } else { auth.audiences.as_slice() };
    if audiences.is_empty() {
        let what = "needs `auth.audiences` or `auth.resource`: the `aud` of tokens for this server";
        return Err(("auth.issuers", what.to_owned()));
    }
    for audience in audiences {
        builder = builder.audience(audience);
    }
    if !auth.authorization_servers.is_empty() {
        builder = builder.authorization_servers(&auth.authorization_servers);
    }
    let tokens = builder.build().map_err(|error| ("auth.issuers", format!("cannot be used: {error}")))?;
    Ok(AnyAuthorizer::new(tokens))
}

#[cfg(test)]
mod tests {
    use bindpost_mcp_oauth::Algorithm;

    use super::super::keys::ALGORITHMS;

    #[test]
    fn every_algorithm_name_can_be_parsed() {
        for name in ALGORITHMS {
            name.parse::<Algorithm>().unwrap();
        }
    }
}
