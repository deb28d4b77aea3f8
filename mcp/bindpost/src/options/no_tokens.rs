//! The substitute for `tokens.rs` in a program built without the feature `oauth`.

use bindpost_mcp_http::AnyAuthorizer;

use super::auth::AuthOptions;
use super::keys::OptionDefinition;

/// An empty struct, because this program was built without the feature `oauth`.
#[derive(Clone, Debug, Default)]
pub struct TokenLimits {}

pub(super) const KEYS: &[OptionDefinition] = &[];

pub(super) fn authorizer(_: &AuthOptions) -> Result<AnyAuthorizer, (&'static str, String)> {
    let what = "cannot be used: this program was built without the feature `oauth` of bindpost";
    Err(("auth.issuers", what.to_owned()))
}
