//! `[auth]`: the authentication options.

use std::path::PathBuf;
use std::time::Duration;

use bindpost_mcp_http::{AnonymousAccess, AnyAuthorizer, ApiKeys, Auth, Authorizer as _};
use bindpost_mcp_server::ListVisibility;

use super::mistake::{OptionMistake, OptionSource};
use super::tokens::{self, TokenLimits};
use super::{Options, keys};

/// The authentication options. Callers authenticate with an API key or with a token of one of the
/// issuers. Without keys, issuers and [`Options::authorizer`], authentication is disabled.
#[derive(Clone)]
#[non_exhaustive]
pub struct AuthOptions {
    /// API keys, each a line `name = secret` or `name = secret scope1 scope2`.
    pub api_keys: Vec<String>,
    /// A file with such lines. Changes are applied while the server runs.
    pub api_keys_file: Option<PathBuf>,
    /// The interval at which the file is checked for changes. Default: 5 s.
    pub api_keys_look_every: Duration,
    /// The header that carries the API key. Default: `x-api-key`.
    pub api_key_header: String,
    /// Also accepts API keys in `Authorization: Bearer …`.
    pub api_key_bearer: bool,
    /// Also accepts API keys in this query parameter.
    pub api_key_query: Option<String>,
    /// OAuth issuers whose access tokens are accepted.
    pub issuers: Vec<String>,
    /// The accepted values of `aud` in a token. Default: [`resource`](AuthOptions::resource).
    pub audiences: Vec<String>,
    /// The authorization servers from which clients get tokens. Default: the issuers.
    pub authorization_servers: Vec<String>,
    /// The accepted signature algorithms. Default: RS256, ES256, PS256 and EdDSA.
    pub algorithms: Vec<String>,
    /// Accepts only tokens whose `typ` is `at+jwt`.
    pub require_token_type: bool,
    /// The tolerated clock difference. Default: 60 s, maximum: 300 s.
    pub leeway: Duration,
    /// Limits on the keys of issuers and on tokens.
    pub token_limits: TokenLimits,
    /// The public URL of the MCP endpoint, like `https://api.example.com/mcp`.
    pub resource: Option<String>,
    /// The scopes listed in the protected resource metadata. Default: the scopes of all entries.
    pub scopes_supported: Vec<String>,
    /// Whether unauthenticated callers may connect.
    pub opening: AnonymousAccess,
    /// Which entries lists show.
    pub listing: ListVisibility,
    /// The realm of an authentication challenge. Default: `mcp`.
    pub realm: String,
    /// The timeout of the authorizer. Default: 10 s.
    pub timeout: Duration,
}

impl Default for AuthOptions {
    fn default() -> AuthOptions {
        AuthOptions {
            api_keys: Vec::new(),
            api_keys_file: None,
            api_keys_look_every: Duration::from_secs(5),
            api_key_header: "x-api-key".to_owned(),
            api_key_bearer: false,
            api_key_query: None,
            issuers: Vec::new(),
            audiences: Vec::new(),
            authorization_servers: Vec::new(),
            algorithms: Vec::new(),
            require_token_type: false,
            leeway: Duration::from_secs(60),
            token_limits: TokenLimits::default(),
            resource: None,
            scopes_supported: Vec::new(),
            opening: AnonymousAccess::default(),
            listing: ListVisibility::default(),
            realm: "mcp".to_owned(),
            timeout: Duration::from_secs(10),
        }
    }
}

/// Omits most fields, because some hold secrets.
impl std::fmt::Debug for AuthOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthOptions").field("issuers", &self.issuers).finish_non_exhaustive()
    }
}

/// The options that enable authentication.
const CREDENTIAL_OPTIONS: &[&str] = &["auth.api_keys", "auth.api_keys_file", "auth.issuers"];
/// The options that apply to API keys only, and to tokens only.
const FOR_KEYS: &[&str] =
    &["auth.api_keys_look_every", "auth.api_key_header", "auth.api_key_bearer", "auth.api_key_query"];
const FOR_TOKENS: &[&str] = &[
    "auth.audiences",
    "auth.authorization_servers",
    "auth.algorithms",
    "auth.require_token_type",
    "auth.leeway",
];

impl Options {
    /// Returns the configured authentication, or `None` if none is configured.
    pub(super) fn authentication(&self, mistakes: &mut Vec<OptionMistake>) -> Option<Auth> {
        let auth = &self.auth;
        let has_keys = !auth.api_keys.is_empty() || auth.api_keys_file.is_some();
        let has_tokens = !auth.issuers.is_empty();
        let has_anything = has_keys || has_tokens || self.authorizer.is_some();
        for (key, place) in self.externally_set("auth.") {
            let needs = if !has_anything {
                "`auth.api_keys`, `auth.api_keys_file` or `auth.issuers`. Without one of them, authentication is disabled"
            } else if !has_keys && FOR_KEYS.contains(&key) {
                "`auth.api_keys` or `auth.api_keys_file`"
            } else if !has_tokens && (FOR_TOKENS.contains(&key) || key.starts_with("auth.token_limits.")) {
                "`auth.issuers`"
            } else {
                continue;
            };
            mistakes.push(OptionMistake::about(key, place, format_args!("has no effect without {needs}")));
        }
        // An empty variable, such as an unset secret of a deployment, must not disable authentication.
        let is_empty = |key: &&str| match *key {
            "auth.api_keys" => auth.api_keys.is_empty(),
            "auth.api_keys_file" => auth.api_keys_file.is_none(),
            _ => auth.issuers.is_empty(),
        };
        for key in CREDENTIAL_OPTIONS.iter().copied().filter(is_empty) {
            if let place @ OptionSource::Variable(_) = self.source_of(key) {
                mistakes.push(OptionMistake::about(
                    key,
                    place,
                    "is empty; set a value, or remove the variable",
                ));
            }
        }
        let mut authorizers: Vec<AnyAuthorizer> = self.authorizer.iter().cloned().collect();
        let keys = if has_keys { Some(self.api_keys()) } else { None };
        let tokens = if has_tokens { Some(tokens::authorizer(auth)) } else { None };
        for made in keys.into_iter().chain(tokens) {
            match made {
                Ok(authorizer) => authorizers.push(authorizer),
                Err((key, what)) => mistakes.push(OptionMistake::about(key, self.source_of(key), what)),
            }
        }
        let authorizer = authorizers.into_iter().reduce(|one, other| AnyAuthorizer::new(one.or(other)))?;
        let mut settings = Auth::new(authorizer)
            .opening(auth.opening)
            .listing(auth.listing)
            .realm(&auth.realm)
            .timeout(auth.timeout);
        if let Some(resource) = &auth.resource {
            settings = settings.resource(resource);
        }
        if !auth.scopes_supported.is_empty() {
            settings = settings.scopes_supported(&auth.scopes_supported);
        }
        Some(settings)
    }

    fn api_keys(&self) -> Result<AnyAuthorizer, (&'static str, String)> {
        let auth = &self.auth;
        let mut keys = match &auth.api_keys_file {
            None => ApiKeys::new(),
            Some(path) => ApiKeys::from_file(path)
                .map_err(|error| ("auth.api_keys_file", format!("cannot be used: {error}")))?
                .look_every(auth.api_keys_look_every),
        };
        for line in &auth.api_keys {
            keys = keys.key_line(line);
        }
        keys = keys.header(&auth.api_key_header);
        if auth.api_key_bearer {
            keys = keys.bearer();
        }
        if let Some(parameter) = &auth.api_key_query {
            keys = keys.in_query(parameter);
        }
        match keys.problem() {
            Some(problem) => Err(("auth.api_keys", format!("cannot be used: {problem}"))),
            None => Ok(AnyAuthorizer::new(keys)),
        }
    }

    /// Returns the options whose names begin with this text that a file or a variable changed, with their sources.
    pub(super) fn externally_set(&self, table: &str) -> Vec<(&'static str, OptionSource)> {
        let (mut now, mut default) = (self.clone(), Options::default());
        let mut changed = |key: &&keys::OptionDefinition| {
            (key.slot)(&mut now).to_toml() != (key.slot)(&mut default).to_toml()
        };
        let set = |key: &keys::OptionDefinition| Some((key.name, self.places.get(key.name)?.clone()));
        keys::all()
            .filter(|key| key.name.starts_with(table))
            .filter(|key| changed(key))
            .filter_map(set)
            .collect()
    }
}
