//! Sealed states: the `requestState` that a client carries between two rounds of one request.
//!
//! A state is encrypted and authenticated. It expires, can be used once, and is bound to the caller, the
//! method and the parameters.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

const NONCE: usize = 24;
/// The maximum number of used states to remember until they expire. Beyond it, the oldest are forgotten.
const MAX_REMEMBERED: usize = 100_000;

/// Encrypts and decrypts states.
pub(crate) struct StateSealer {
    cipher: XChaCha20Poly1305,
    lifetime: Duration,
    used: Mutex<HashMap<[u8; NONCE], u64>>,
}

#[derive(Serialize, Deserialize)]
struct SealedState {
    /// The expiry, in seconds since 1970.
    until: u64,
    /// The answers of the client in earlier rounds.
    answers: Map<String, Value>,
    /// The keys of the requests in the last round.
    asked: Vec<String>,
    /// The value that the handler gets back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    memory: Option<Value>,
}

/// The content of a state.
#[derive(Debug, PartialEq)]
pub(crate) struct RequestState {
    /// The answers of the client in earlier rounds.
    pub(crate) answers: Map<String, Value>,
    /// The keys of the requests in the last round.
    pub(crate) asked: Vec<String>,
    /// The value that the handler gets back.
    pub(crate) memory: Option<Value>,
}

impl StateSealer {
    pub(crate) fn new(key: &[u8; 32], lifetime: Duration) -> StateSealer {
        StateSealer { cipher: XChaCha20Poly1305::new(key.into()), lifetime, used: Mutex::default() }
    }

    /// Seals a state for the next round. It opens only with the same `bound`.
    pub(crate) fn seal(&self, carried: RequestState, bound: &[u8]) -> Option<String> {
        let RequestState { answers, asked, memory } = carried;
        let mut nonce = [0; NONCE];
        getrandom::fill(&mut nonce).ok()?;
        let state = SealedState { until: now() + self.lifetime.as_secs(), answers, asked, memory };
        let state = serde_json::to_vec(&state).ok()?;
        let payload = Payload { msg: &state, aad: bound };
        let mut sealed = nonce.to_vec();
        sealed.extend(self.cipher.encrypt(&XNonce::from(nonce), payload).ok()?);
        Some(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Opens a state. Returns `None` if it was altered, has expired, was used before, or belongs to another
    /// request or caller.
    pub(crate) fn open(&self, sealed: &str, bound: &[u8]) -> Option<RequestState> {
        let sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let (nonce, sealed) = sealed.split_at_checked(NONCE)?;
        let nonce: [u8; NONCE] = nonce.try_into().ok()?;
        let payload = Payload { msg: sealed, aad: bound };
        let state = self.cipher.decrypt(&XNonce::from(nonce), payload).ok()?;
        let state: SealedState = serde_json::from_slice(&state).ok()?;
        if state.until < now() || !self.first_use(nonce, state.until) {
            return None;
        }
        Some(RequestState { answers: state.answers, asked: state.asked, memory: state.memory })
    }

    fn first_use(&self, nonce: [u8; NONCE], until: u64) -> bool {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        if used.len() >= MAX_REMEMBERED {
            let now = now();
            used.retain(|_, until| *until >= now);
            if used.len() >= MAX_REMEMBERED
                && let Some(oldest) = used.iter().min_by_key(|(_, until)| **until).map(|(nonce, _)| *nonce)
            {
                used.remove(&oldest);
            }
        }
        used.insert(nonce, until).is_none()
    }
}

impl std::fmt::Debug for StateSealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateSealer")
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn carried() -> RequestState {
        RequestState {
            answers: json!({"name": {"action": "accept"}}).as_object().unwrap().clone(),
            asked: vec!["age".to_owned()],
            memory: Some(json!({"step": 2})),
        }
    }

    #[test]
    fn opens_once_and_only_with_the_same_binding() {
        let sealer = StateSealer::new(&[7; 32], Duration::from_secs(60));
        let sealed = sealer.seal(carried(), b"alice call").unwrap();
        assert_eq!(sealer.open(&sealed, b"bob call"), None);
        assert_eq!(sealer.open(&sealed, b"alice call"), Some(carried()));
        assert_eq!(sealer.open(&sealed, b"alice call"), None);
    }

    #[test]
    fn rejects_an_altered_or_foreign_state() {
        let sealer = StateSealer::new(&[7; 32], Duration::from_secs(60));
        let sealed = sealer.seal(carried(), b"").unwrap();
        for at in [0, 10, sealed.len() - 1] {
            let mut altered: Vec<char> = sealed.chars().collect();
            altered[at] = if altered[at] == 'A' { 'B' } else { 'A' };
            assert_eq!(sealer.open(&altered.into_iter().collect::<String>(), b""), None);
        }
        assert_eq!(sealer.open("", b""), None);
        assert_eq!(StateSealer::new(&[8; 32], Duration::from_secs(60)).open(&sealed, b""), None);
    }
}
