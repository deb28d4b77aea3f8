//! Cursors that clients hand back: what comes next, signed, so that nobody makes one up.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::Sha256;

/// As long as a cursor may be, in characters.
const LONGEST: usize = 16 * 1024;

/// Makes cursors and reads them again. They belong to a place (a tool, an operation) and to a caller.
#[derive(Clone)]
pub struct CursorSigner {
    key: [u8; 32],
}

impl std::fmt::Debug for CursorSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorSigner")
    }
}

/// A cursor that is not one of ours, or belongs elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`cursor` is not one that this tool gave to this caller since the server started; leave it out to begin again"
)]
pub struct CursorError;

impl CursorSigner {
    /// Cursors that are good until the program ends.
    pub fn new() -> Result<CursorSigner, getrandom::Error> {
        let mut key = [0; 32];
        getrandom::fill(&mut key)?;
        Ok(CursorSigner { key })
    }

    /// A cursor that carries `next`. What it carries can be read by whoever has it: put no secret in it.
    pub fn sign(&self, place: &str, caller: Option<&str>, next: &impl Serialize) -> Option<String> {
        let next = serde_json::to_vec(next).ok()?;
        let mut sealed = self.signature(place, caller, &next)?.finalize().into_bytes().to_vec();
        sealed.extend_from_slice(&next);
        Some(URL_SAFE_NO_PAD.encode(sealed)).filter(|cursor| cursor.len() <= LONGEST)
    }

    /// What a cursor carries.
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
        // Lengths first: no place and caller can be read as another pair.
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
