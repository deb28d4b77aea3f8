//! [`Token`]: a decoded token. Its content must not be trusted before its signature is verified.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bindpost_mcp_http::Denial;
use serde_json::{Map, Value};

use crate::claims::text;
use crate::issuer::Algorithm;
use crate::key::VerificationKey;

/// A decoded JWT.
#[derive(Debug)]
pub(crate) struct Token<'a> {
    pub(crate) algorithm: Algorithm,
    header: Map<String, Value>,
    pub(crate) claims: Map<String, Value>,
    message: &'a [u8],
    signature: Vec<u8>,
}

/// Why a token is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenRefusal {
    Expired,
    Early,
    Audience,
    /// The reason is for the log only.
    Invalid(&'static str),
}

impl TokenRefusal {
    /// Returns the reason for the log.
    pub(crate) fn reason(self) -> &'static str {
        match self {
            TokenRefusal::Expired => "expired",
            TokenRefusal::Early => "not valid yet",
            TokenRefusal::Audience => "for another audience",
            TokenRefusal::Invalid(reason) => reason,
        }
    }
}

impl From<TokenRefusal> for Denial {
    /// Returns the denial for the client. It does not reveal how close the token was to a valid one.
    fn from(refusal: TokenRefusal) -> Denial {
        Denial::invalid(match refusal {
            TokenRefusal::Expired => "the token has expired",
            TokenRefusal::Early => "the token is not valid yet",
            TokenRefusal::Audience => "the token is for another audience",
            TokenRefusal::Invalid(_) => "the token is not valid",
        })
    }
}

impl<'a> Token<'a> {
    pub(crate) fn decode(token: &'a str) -> Result<Token<'a>, TokenRefusal> {
        let (message, signature) = token.rsplit_once('.').ok_or(TokenRefusal::Invalid("not a JWT"))?;
        let (header, claims) = message.split_once('.').ok_or(TokenRefusal::Invalid("not a JWT"))?;
        let header = decode_object(header).ok_or(TokenRefusal::Invalid("the header is malformed"))?;
        let algorithm = text(&header, "alg").and_then(|name| name.parse().ok());
        let algorithm = algorithm.ok_or(TokenRefusal::Invalid("the algorithm is not supported"))?;
        // RFC 7515, 4.1.11: no extension is supported.
        if header.contains_key("crit") {
            return Err(TokenRefusal::Invalid("it requires extensions"));
        }
        for name in ["kid", "typ"] {
            if header.get(name).is_some_and(|value| !value.is_string()) {
                return Err(TokenRefusal::Invalid("the header is malformed"));
            }
        }
        let claims = decode_object(claims).ok_or(TokenRefusal::Invalid("the claims are malformed"))?;
        let signature = URL_SAFE_NO_PAD.decode(signature);
        let signature = signature.map_err(|_| TokenRefusal::Invalid("the signature is malformed"))?;
        Ok(Token { algorithm, header, claims, message: message.as_bytes(), signature })
    }

    /// Returns the key id.
    pub(crate) fn key_id(&self) -> Option<&str> {
        self.header.get("kid").and_then(Value::as_str)
    }

    /// Returns the type of the token.
    pub(crate) fn typ(&self) -> Option<&str> {
        self.header.get("typ").and_then(Value::as_str)
    }

    pub(crate) fn is_signed_by(&self, key: &VerificationKey) -> bool {
        key.verifies(self.algorithm, self.message, &self.signature)
    }
}

fn decode_object(part: &str) -> Option<Map<String, Value>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn encode(header: Value, claims: Value) -> String {
        let [header, claims] = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        format!("{header}.{claims}.AAAA")
    }

    #[test]
    fn the_header_cannot_choose_a_weak_algorithm() {
        for alg in
            [json!("none"), json!("None"), json!("HS256"), json!("HS512"), json!(""), json!(null), json!(7)]
        {
            let token = encode(json!({"alg": alg}), json!({}));
            assert!(Token::decode(&token).is_err(), "{alg}");
        }
        assert!(Token::decode(&encode(json!({}), json!({}))).is_err());
        let token = encode(json!({"alg": "RS256", "kid": "k", "typ": "JWT"}), json!({"sub": "s"}));
        let token = Token::decode(&token).unwrap();
        assert_eq!((token.key_id(), token.typ(), token.claims.len()), (Some("k"), Some("JWT"), 1));
    }

    #[test]
    fn rejects_extensions_and_malformed_headers() {
        for header in [
            json!({"alg": "RS256", "crit": ["b64"], "b64": false}),
            json!({"alg": "RS256", "crit": []}),
            json!({"alg": "RS256", "kid": 7}),
            json!({"alg": "RS256", "typ": ["JWT"]}),
            json!(["RS256"]),
        ] {
            assert!(Token::decode(&encode(header.clone(), json!({}))).is_err(), "{header}");
        }
    }

    #[test]
    fn a_token_has_exactly_three_parts() {
        let good = encode(json!({"alg": "RS256"}), json!({}));
        assert!(Token::decode(&good).is_ok());
        let bare = good.trim_end_matches(".AAAA");
        for token in
            ["", ".", "..", "...", "a", bare, &format!("{good}.AAAA"), &format!("{good}="), &good[1..]]
        {
            assert!(Token::decode(token).is_err(), "{token}");
        }
        for claims in [json!([]), json!("x"), json!(null)] {
            assert!(Token::decode(&encode(json!({"alg": "RS256"}), claims)).is_err());
        }
    }

    proptest! {
        #[test]
        fn any_text_is_decoded_or_rejected(text in "[-A-Za-z0-9._~+/=]{0,80}", json in "[\\[\\]{}\",:a-z0-9]{0,40}") {
            let _ = Token::decode(&text);
            let part = URL_SAFE_NO_PAD.encode(&json);
            let _ = Token::decode(&format!("{part}.{part}.{text}"));
        }
    }
}
