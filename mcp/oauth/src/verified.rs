//! [`VerifiedTokens`]: a cache of verified tokens, so that each is verified only once.
//!
//! The keys are digests, so that memory contains callers but no tokens. The caller of
//! [`VerifiedTokens::get`] has to check that a token is still valid.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bindpost_mcp_server::Caller;
use sha2::{Digest as _, Sha256};

use crate::callers::IssuerKeyId;
use crate::claims::ValidityPeriod;

/// A cache of verified tokens. The oldest are removed first.
#[derive(Debug)]
pub(crate) struct VerifiedTokens {
    capacity: usize,
    kept: Mutex<TokenEntries>,
}

#[derive(Debug, Default)]
struct TokenEntries {
    tokens: HashMap<TokenDigest, VerifiedToken>,
    /// The digests of `tokens`, oldest first.
    order: VecDeque<TokenDigest>,
}

/// The SHA-256 of a token.
pub(crate) type TokenDigest = [u8; 32];

/// The result of verifying a token.
#[derive(Clone, Debug)]
pub(crate) struct VerifiedToken {
    pub(crate) caller: Caller,
    pub(crate) window: ValidityPeriod,
    pub(crate) vouched: IssuerKeyId,
}

pub(crate) fn digest(token: &str) -> TokenDigest {
    Sha256::digest(token).into()
}

impl VerifiedTokens {
    pub(crate) fn new(capacity: usize) -> VerifiedTokens {
        VerifiedTokens { capacity, kept: Mutex::default() }
    }

    pub(crate) fn get(&self, token: &TokenDigest) -> Option<VerifiedToken> {
        self.kept().tokens.get(token).cloned()
    }

    pub(crate) fn put(&self, token: TokenDigest, verified: VerifiedToken) {
        let mut kept = self.kept();
        if self.capacity == 0 {
            return;
        }
        if kept.tokens.insert(token, verified).is_none() {
            kept.order.push_back(token);
        }
        while kept.order.len() > self.capacity {
            if let Some(oldest) = kept.order.pop_front() {
                kept.tokens.remove(&oldest);
            }
        }
    }

    pub(crate) fn remove(&self, token: &TokenDigest) {
        let mut kept = self.kept();
        if kept.tokens.remove(token).is_some() {
            kept.order.retain(|other| other != token);
        }
    }

    fn kept(&self) -> MutexGuard<'_, TokenEntries> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, json};

    use super::*;

    fn verified(issuer: usize) -> VerifiedToken {
        let claims = Map::from_iter([("exp".to_owned(), json!(1))]);
        let window = ValidityPeriod::from_claims(&claims).unwrap();
        VerifiedToken { caller: Caller::new("alice"), window, vouched: IssuerKeyId { issuer, key: [0; 32] } }
    }

    #[test]
    fn the_oldest_tokens_are_removed() {
        let tokens = VerifiedTokens::new(2);
        for name in ["a", "b", "a", "c", "c"] {
            tokens.put(digest(name), verified(1));
        }
        let there = ["a", "b", "c"].map(|name| tokens.get(&digest(name)).is_some());
        assert_eq!(there, [false, true, true]);
        for round in 0..1_000 {
            tokens.remove(&digest("c"));
            tokens.put(digest("c"), verified(round));
        }
        assert_eq!(tokens.get(&digest("c")).unwrap().vouched.issuer, 999);
        let kept = tokens.kept();
        assert_eq!((kept.tokens.len(), kept.order.len()), (2, 2));
    }

    #[test]
    fn a_cache_without_capacity_keeps_nothing() {
        let tokens = VerifiedTokens::new(0);
        tokens.put(digest("a"), verified(1));
        assert!(tokens.get(&digest("a")).is_none());
    }
}
