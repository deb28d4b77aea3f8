//! [`KeySet`]: the keys of an issuer, parsed from a JWK set (RFC 7517).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::claims::text;
use crate::issuer::{Algorithm, is_issuer};

/// The digest of a key. It identifies the key independently of its id.
pub(crate) type Fingerprint = [u8; 32];

/// All keys of an issuer that can verify tokens.
#[derive(Debug)]
pub(crate) struct KeySet {
    keys: Vec<VerificationKey>,
}

/// A key that can verify tokens.
#[derive(Debug)]
pub(crate) struct VerificationKey {
    id: Option<String>,
    /// The issuer whose tokens it verifies, if the set has keys of several issuers.
    issuer: Option<String>,
    algorithm: Option<Algorithm>,
    material: KeyMaterial,
    pub(crate) fingerprint: Fingerprint,
}

#[derive(Debug)]
enum KeyMaterial {
    Rsa(RsaPublicKeyComponents<Vec<u8>>),
    P256(Vec<u8>),
    P384(Vec<u8>),
    Ed25519(Vec<u8>),
}

/// How an algorithm verifies a signature.
enum SignatureParameters {
    Rsa(&'static RsaParameters),
    P256,
    P384,
    EdwardsCurve,
}

/// The properties of the key that a token requires.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyQuery<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) algorithm: Algorithm,
    pub(crate) issuer: &'a str,
    pub(crate) tenant: Option<&'a str>,
}

/// The result of a search for a key.
#[derive(Debug)]
pub(crate) enum KeyMatch<'a> {
    Key(&'a VerificationKey),
    /// No key has this id. A newer set may have one.
    Unknown,
    /// The key exists but is not suitable for this token.
    Unfit,
}

impl KeySet {
    /// Parses a set. Unsupported keys are skipped. A set with too many keys is rejected.
    pub(crate) fn parse(document: &[u8], max_keys: usize) -> Result<KeySet, &'static str> {
        let value: Value = serde_json::from_slice(document).map_err(|_| "it is not JSON")?;
        let keys = value.get("keys").and_then(Value::as_array).ok_or("it has no list of keys")?;
        if keys.len() > max_keys {
            return Err("it has too many keys");
        }
        Ok(KeySet { keys: keys.iter().filter_map(|key| VerificationKey::parse(key.as_object()?)).collect() })
    }

    pub(crate) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether the set has this key, unchanged.
    pub(crate) fn contains(&self, key: &Fingerprint) -> bool {
        self.keys.iter().any(|other| other.fingerprint == *key)
    }

    /// Finds the key that signed a token.
    pub(crate) fn find(&self, wanted: &KeyQuery<'_>) -> KeyMatch<'_> {
        let named = |key: &&VerificationKey| wanted.id.is_none() || key.id.as_deref() == wanted.id;
        let mut fitting = self.keys.iter().filter(named).filter(|key| key.matches(wanted));
        match (fitting.next(), wanted.id) {
            // A token without a key id is verified only if exactly one key is suitable. Trying many
            // keys would let any client cause expensive work.
            (Some(key), None) if fitting.next().is_none() => KeyMatch::Key(key),
            (Some(_), None) => KeyMatch::Unfit,
            (Some(key), Some(_)) => KeyMatch::Key(key),
            (None, _) if self.keys.iter().any(|key| named(&key)) => KeyMatch::Unfit,
            (None, _) => KeyMatch::Unknown,
        }
    }
}

impl VerificationKey {
    fn parse(jwk: &Map<String, Value>) -> Option<VerificationKey> {
        let optional = |name: &str| match jwk.get(name) {
            None => Some(None),
            Some(value) => value.as_str().map(Some),
        };
        if optional("use")?.is_some_and(|purpose| purpose != "sig") {
            return None;
        }
        if let Some(operations) = jwk.get("key_ops")
            && !operations.as_array()?.iter().any(|operation| operation == "verify")
        {
            return None;
        }
        let material = match (text(jwk, "kty")?, optional("crv")?) {
            ("RSA", _) => rsa(jwk)?,
            ("EC", Some("P-256")) => KeyMaterial::P256(ec_point(jwk)?),
            ("EC", Some("P-384")) => KeyMaterial::P384(ec_point(jwk)?),
            ("OKP", Some("Ed25519")) => KeyMaterial::Ed25519(decoded(jwk, "x")?),
            _ => return None,
        };
        let algorithm = match optional("alg")? {
            // A key for an unsupported algorithm is skipped.
            Some(name) => Some(name.parse().ok()?),
            None => None,
        };
        let [id, issuer] = [optional("kid")?, optional("issuer")?].map(|text| text.map(str::to_owned));
        // The members are sorted, so equal keys have equal fingerprints.
        let fingerprint = Sha256::digest(serde_json::to_vec(jwk).ok()?).into();
        Some(VerificationKey { id, issuer, algorithm, material, fingerprint })
    }

    fn matches(&self, wanted: &KeyQuery<'_>) -> bool {
        self.material.fits(wanted.algorithm)
            && self.algorithm.is_none_or(|algorithm| algorithm == wanted.algorithm)
            && self.issuer.as_deref().is_none_or(|issuer| is_issuer(issuer, wanted.issuer, wanted.tenant))
    }

    /// Returns whether this is a valid signature of the message.
    pub(crate) fn verifies(&self, algorithm: Algorithm, message: &[u8], signed: &[u8]) -> bool {
        use signature::{ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519};
        let verified = match (&self.material, parameters(algorithm)) {
            (KeyMaterial::Rsa(key), SignatureParameters::Rsa(rsa)) => key.verify(rsa, message, signed),
            (KeyMaterial::P256(point), SignatureParameters::P256) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signed)
            }
            (KeyMaterial::P384(point), SignatureParameters::P384) => {
                UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point).verify(message, signed)
            }
            (KeyMaterial::Ed25519(key), SignatureParameters::EdwardsCurve) => {
                UnparsedPublicKey::new(&ED25519, key).verify(message, signed)
            }
            _ => return false,
        };
        verified.is_ok()
    }
}

impl KeyMaterial {
    fn fits(&self, algorithm: Algorithm) -> bool {
        matches!(
            (self, parameters(algorithm)),
            (KeyMaterial::Rsa(_), SignatureParameters::Rsa(_))
                | (KeyMaterial::P256(_), SignatureParameters::P256)
                | (KeyMaterial::P384(_), SignatureParameters::P384)
                | (KeyMaterial::Ed25519(_), SignatureParameters::EdwardsCurve)
        )
    }
}

/// Returns the parameters of an algorithm, which determine the kind of key that it needs.
fn parameters(algorithm: Algorithm) -> SignatureParameters {
    use SignatureParameters::{EdwardsCurve, P256, P384, Rsa};
    match algorithm {
        Algorithm::RS256 => Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
        Algorithm::RS384 => Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
        Algorithm::RS512 => Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
        Algorithm::PS256 => Rsa(&signature::RSA_PSS_2048_8192_SHA256),
        Algorithm::PS384 => Rsa(&signature::RSA_PSS_2048_8192_SHA384),
        Algorithm::PS512 => Rsa(&signature::RSA_PSS_2048_8192_SHA512),
        Algorithm::ES256 => P256,
        Algorithm::ES384 => P384,
        Algorithm::EdDSA => EdwardsCurve,
    }
}

fn decoded(jwk: &Map<String, Value>, member: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(text(jwk, member)?).ok()
}

fn rsa(jwk: &Map<String, Value>) -> Option<KeyMaterial> {
    let (mut n, e) = (decoded(jwk, "n")?, decoded(jwk, "e")?);
    // Some issuers add leading zeros.
    let zeros = n.iter().take_while(|byte| **byte == 0).count();
    n.drain(..zeros);
    Some(KeyMaterial::Rsa(RsaPublicKeyComponents { n, e }))
}

/// Returns a point of a curve in its uncompressed form.
fn ec_point(jwk: &Map<String, Value>) -> Option<Vec<u8>> {
    Some([vec![4], decoded(jwk, "x")?, decoded(jwk, "y")?].concat())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parse(keys: Value) -> KeySet {
        KeySet::parse(json!({"keys": keys}).to_string().as_bytes(), 1_000).unwrap()
    }

    fn wanted(id: Option<&str>, algorithm: Algorithm) -> KeyQuery<'_> {
        KeyQuery { id, algorithm, issuer: "https://issuer.example", tenant: None }
    }

    fn rsa_key(more: Value) -> Value {
        let mut key = json!({"kty": "RSA", "n": "AMCw", "e": "AQAB"});
        key.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        key
    }

    #[test]
    fn unsupported_keys_are_skipped() {
        for key in [
            json!({"kty": "oct", "k": "c2VjcmV0", "kid": "1"}),
            json!({"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA", "kid": "1"}),
            json!({"kty": "EC", "crv": "P-521", "x": "AA", "y": "AA"}),
            json!({"kty": "OKP", "crv": "X25519", "x": "AA"}),
            json!({"kty": "RSA", "n": "!", "e": "AQAB"}),
            json!({"kty": "RSA", "e": "AQAB"}),
            json!({"kty": 7}),
            json!({}),
            json!("key"),
            json!(null),
            rsa_key(json!({"use": "enc"})),
            rsa_key(json!({"use": 7})),
            rsa_key(json!({"alg": "RSA-OAEP"})),
            rsa_key(json!({"alg": "HS256"})),
            rsa_key(json!({"alg": "none"})),
            rsa_key(json!({"key_ops": ["encrypt"]})),
            rsa_key(json!({"key_ops": "verify"})),
            rsa_key(json!({"kid": 7})),
            rsa_key(json!({"issuer": []})),
        ] {
            assert_eq!(parse(json!([key])).len(), 0, "{key}");
        }
        let good =
            [json!({}), json!({"use": "sig"}), json!({"alg": "PS512"}), json!({"key_ops": ["verify"]})];
        assert_eq!(parse(good.map(rsa_key).to_vec().into()).len(), 4);
    }

    #[test]
    fn rejects_an_invalid_key_set() {
        for document in
            ["", "garbage", "[]", "{}", "null", r#"{"keys":{}}"#, r#"{"keys":null}"#, r#"{"keys":["#]
        {
            assert!(KeySet::parse(document.as_bytes(), 10).is_err(), "{document}");
        }
        let keys: Vec<Value> = (0..11).map(|n| rsa_key(json!({"kid": n.to_string()}))).collect();
        let document = json!({"keys": keys}).to_string();
        assert!(KeySet::parse(document.as_bytes(), 10).is_err());
        assert_eq!(KeySet::parse(document.as_bytes(), 11).unwrap().len(), 11);
    }

    #[test]
    fn a_key_is_found_by_its_id_and_its_algorithm() {
        let set = parse(json!([
            rsa_key(json!({"kid": "any"})),
            rsa_key(json!({"kid": "rs256", "alg": "RS256"})),
            json!({"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA", "kid": "ec"}),
        ]));
        let is = |id, algorithm, pattern: fn(&KeyMatch<'_>) -> bool| {
            pattern(&set.find(&wanted(Some(id), algorithm)))
        };
        assert!(is("any", Algorithm::PS512, |found| matches!(found, KeyMatch::Key(_))));
        assert!(is("rs256", Algorithm::RS256, |found| matches!(found, KeyMatch::Key(_))));
        assert!(is("rs256", Algorithm::PS256, |found| matches!(found, KeyMatch::Unfit)));
        assert!(is("ec", Algorithm::RS256, |found| matches!(found, KeyMatch::Unfit)));
        assert!(is("ec", Algorithm::ES384, |found| matches!(found, KeyMatch::Unfit)));
        assert!(is("other", Algorithm::RS256, |found| matches!(found, KeyMatch::Unknown)));
        // Without an id exactly one key must be suitable.
        assert!(matches!(set.find(&wanted(None, Algorithm::ES256)), KeyMatch::Key(_)));
        assert!(matches!(set.find(&wanted(None, Algorithm::PS256)), KeyMatch::Key(_)));
        assert!(matches!(set.find(&wanted(None, Algorithm::RS256)), KeyMatch::Unfit));
        assert!(matches!(parse(json!([])).find(&wanted(None, Algorithm::RS256)), KeyMatch::Unknown));
    }

    #[test]
    fn a_key_verifies_for_its_own_issuer_only() {
        let tenant = "aaaaaaaa-0000-4000-8000-000000000001";
        let set = parse(json!([
            rsa_key(json!({"kid": "all", "issuer": "https://login.example/{tenantid}/"})),
            rsa_key(json!({"kid": "one", "issuer": "https://login.example/other/"})),
        ]));
        let issuer = format!("https://login.example/{tenant}/");
        let wanted =
            |id, tenant| KeyQuery { id: Some(id), algorithm: Algorithm::RS256, issuer: &issuer, tenant };
        assert!(matches!(set.find(&wanted("all", Some(tenant))), KeyMatch::Key(_)));
        assert!(matches!(set.find(&wanted("all", None)), KeyMatch::Unfit));
        assert!(matches!(set.find(&wanted("one", Some(tenant))), KeyMatch::Unfit));
    }

    proptest! {
        #[test]
        fn any_document_is_parsed_or_rejected(document in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = KeySet::parse(&document, 10);
        }

        #[test]
        fn keys_of_any_size_verify_nothing(
            n in prop::collection::vec(any::<u8>(), 0..600),
            e in prop::collection::vec(any::<u8>(), 0..9),
            signature in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let [n, e] = [n, e].map(|number| URL_SAFE_NO_PAD.encode(number));
            let set = parse(json!([{"kty": "RSA", "n": n, "e": e}, {"kty": "EC", "crv": "P-256", "x": n, "y": e}]));
            for key in &set.keys {
                prop_assert!(!key.verifies(Algorithm::RS256, b"message", &signature));
                prop_assert!(!key.verifies(Algorithm::ES256, b"message", &signature));
            }
        }
    }
}
