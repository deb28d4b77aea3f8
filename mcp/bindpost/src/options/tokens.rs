//! Access tokens: `auth.issuers` and what belongs to it.

use bindpost_mcp_http::AnyAuthorizer;
use bindpost_mcp_oauth::{Issuer, OAuthLimits, TokenAuthorizer};

use super::auth::AuthOptions;
use super::form::{COUNT, PAUSE, SIZE, TIME};
use super::keys::{OptionDefinition, key};
use super::slot::one;

/// How often the keys of issuers are fetched, how long they are kept, and how much of anything is taken.
pub type TokenLimits = OAuthLimits;

#[rustfmt::skip]
pub(super) const KEYS: &[OptionDefinition] = &[
    key("auth.token_limits.refresh", |o| one(&mut o.auth.token_limits.refresh, PAUSE), "Keys of an issuer older than this are fetched again."),
    key("auth.token_limits.keep", |o| one(&mut o.auth.token_limits.keep, TIME), "How long the last good keys count while their issuer cannot be reached."),
    key("auth.token_limits.confirm_no_keys", |o| one(&mut o.auth.token_limits.confirm_no_keys, TIME), "How long an issuer has to answer without a usable key until its known keys stop to count."),
    key("auth.token_limits.unknown_key", |o| one(&mut o.auth.token_limits.unknown_key, TIME), "How often a key that is not there makes us look again, per issuer."),
    key("auth.token_limits.retry", |o| one(&mut o.auth.token_limits.retry, PAUSE), "How soon a failed fetch is tried again; each further failure doubles it."),
    key("auth.token_limits.retry_max", |o| one(&mut o.auth.token_limits.retry_max, PAUSE), "The longest wait between two failed fetches."),
    key("auth.token_limits.fetch_timeout", |o| one(&mut o.auth.token_limits.fetch_timeout, PAUSE), "How long a fetch may take in all."),
    key("auth.token_limits.max_answer", |o| one(&mut o.auth.token_limits.max_answer, SIZE.at_least(1)), "The largest answer of an issuer."),
    key("auth.token_limits.max_keys", |o| one(&mut o.auth.token_limits.max_keys, COUNT.at_least(1)), "The largest number of keys an issuer may have."),
    key("auth.token_limits.waiting", |o| one(&mut o.auth.token_limits.waiting, COUNT), "How many requests wait for one fetch."),
    key("auth.token_limits.max_token", |o| one(&mut o.auth.token_limits.max_token, SIZE.at_least(1)), "The longest token."),
    key("auth.token_limits.verified", |o| one(&mut o.auth.token_limits.verified, COUNT), "How many tokens are remembered as verified."),
];

/// The authorizer for the issuers; otherwise the key that is wrong, and why.
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
        let what =
            "needs `auth.audiences` or `auth.resource`: what tokens for this server say as their `aud`";
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
    fn every_algorithm_we_name_is_known() {
        for name in ALGORITHMS {
            name.parse::<Algorithm>().unwrap();
        }
    }
}
