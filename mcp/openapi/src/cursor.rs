//! Signed cursors. Clients return them to continue a list and cannot forge them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;

/// The maximum length of a cursor, in characters.
const LONGEST: usize = 16 * 1024;

/// Signs and verifies cursors. A cursor is bound to a place (a tool or an operation) and to a caller.
#[derive(Clone)]
pub struct CursorSigner {
    key: [u8; 32],
}

impl std::fmt::Debug for CursorSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorSigner")
    }
}

/// The error for a cursor that is invalid or belongs to another place or caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`cursor` is invalid: this tool did not return it to this caller since the server started; omit it to start again"
)]
pub struct CursorError;

impl CursorSigner {
    /// Creates a signer with a random key. Its cursors are valid until the program ends.
    pub fn new() -> Result<CursorSigner, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(CursorSigner { key })
    }

    /// Returns a cursor that carries `next`. The content is readable by its holder, so it must not
    /// contain secrets.
    pub fn sign(&self, place: &str, caller: Option<&str>, next: &impl Serialize) -> Option<String> {
        let next = serde_json::to_vec(next).ok()?;
        let mut sealed = self.signature(place, caller, &next)?.finalize().into_bytes().to_vec();
        sealed.extend_from_slice(&next);
        Some(URL_SAFE_NO_PAD.encode(sealed)).filter(|cursor| cursor.len() <= LONGEST)
    }

    /// Verifies a cursor and returns its content.
    pub fn verify<T: DeserializeOwned>(
        &self,
        place: &str,
        caller: Option<&str>,
        cursor: &str,
    ) -> Result<T, CursorError> {
        let sealed = if cursor.len() <= LONGEST { URL_SAFE_NO_PAD.decode(cursor).ok() } else { None };
        let sealed = sealed.ok_or(CursorError)?;
        let (signature, next) = sealed.split_at_checked(32).ok_or(CursorError)?;
        let expected = self.signature(place, caller, next).ok_or(CursorError)?;
        expected.verify_slice(signature).map_err(|_| CursorError)?;
        serde_json::from_slice(next).map_err(|_| CursorError)
    }

    fn signature(&self, place: &str, caller: Option<&str>, next: &[u8]) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.key).ok()?;
        // Lengths come first, so that no other place and caller have the same encoding.
        for part in [place, caller.unwrap_or_default()] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac.update(&[u8::from(caller.is_some())]);
        mac.update(next);
        Some(mac)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_belong_to_their_place_and_caller() {
        let cursors = CursorSigner::new().unwrap();
        let cursor = cursors.sign("list", Some("ann"), &vec![1, 2]).unwrap();
        assert_eq!(cursors.verify::<Vec<i32>>("list", Some("ann"), &cursor), Ok(vec![1, 2]));
        for (place, caller) in
            [("other", Some("ann")), ("list", Some("bob")), ("list", None), ("lis", Some("tann"))]
        {
            assert_eq!(cursors.verify::<Vec<i32>>(place, caller, &cursor), Err(CursorError));
        }
        assert_eq!(
            CursorSigner::new().unwrap().verify::<Vec<i32>>("list", Some("ann"), &cursor),
            Err(CursorError)
        );
        for broken in ["", "x", "AAAA", &cursor[1..], &format!("{cursor}AAAA")] {
            assert_eq!(cursors.verify::<Vec<i32>>("list", Some("ann"), broken), Err(CursorError));
        }
    }
}
