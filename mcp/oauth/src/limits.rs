//! [`OAuthLimits`]: limits on the work that issuers and clients can cause.

use std::time::Duration;

/// Limits on fetching and caching keys, and on sizes.
///
/// ```
/// use std::time::Duration;
/// use bindpost_mcp_oauth::OAuthLimits;
///
/// // A revoked key is rejected after a minute.
/// let limits = OAuthLimits { refresh: Duration::from_secs(60), ..OAuthLimits::default() };
/// ```
#[derive(Clone, Debug)]
pub struct OAuthLimits {
    /// Keys older than this are fetched again before they are used. While requests arrive, a fetch in the
    /// background happens a little earlier. A revoked key may stay valid for this long.
    pub refresh: Duration,
    /// How long the last known keys stay valid while the issuer cannot be reached.
    pub keep: Duration,
    /// If an issuer responds without any usable key, its known keys stay valid until all responses for
    /// this long had none. A single such response is more likely a mistake of the issuer or of a cache
    /// in front of it.
    pub confirm_no_keys: Duration,
    /// The minimum interval between fetches because of an unknown key id, per issuer.
    pub unknown_key: Duration,
    /// The delay before a failed fetch is retried. Each further failure doubles it.
    pub retry: Duration,
    /// The maximum delay between two failed fetches.
    pub retry_max: Duration,
    /// The timeout of a fetch, including the metadata.
    pub fetch_timeout: Duration,
    /// The maximum size of a response of an issuer, in bytes.
    pub max_answer: usize,
    /// The maximum number of keys of an issuer.
    pub max_keys: usize,
    /// The maximum number of requests that wait for one fetch. Further requests do not wait: they use
    /// the known keys or are rejected.
    pub waiting: usize,
    /// The maximum length of a token, in bytes.
    pub max_token: usize,
    /// The maximum number of verified tokens in the cache.
    pub verified: usize,
}

impl Default for OAuthLimits {
    fn default() -> OAuthLimits {
        OAuthLimits {
            refresh: Duration::from_secs(60 * 60),
            keep: Duration::from_secs(24 * 60 * 60),
            confirm_no_keys: Duration::from_secs(5 * 60),
            unknown_key: Duration::from_secs(5 * 60),
            retry: Duration::from_secs(1),
            retry_max: Duration::from_secs(60),
            fetch_timeout: Duration::from_secs(5),
            max_answer: 1 << 20,
            max_keys: 1_000,
            waiting: 1_000,
            max_token: 16 << 10,
            verified: 1_024,
        }
    }
}

impl OAuthLimits {
    /// Returns the age from which keys are fetched again in the background.
    pub(crate) fn refresh_early(&self) -> Duration {
        self.refresh - self.refresh / 6
    }

    /// Returns the delay after this many consecutive failures.
    pub(crate) fn back_off(&self, failures: u32) -> Duration {
        let doubled = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.retry.saturating_mul(doubled).min(self.retry_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delay_doubles_up_to_its_maximum() {
        let limits = OAuthLimits::default();
        let seconds = [1, 2, 3, 6, 7, 31, 32, 33, 34, u32::MAX].map(|n| limits.back_off(n).as_secs());
        assert_eq!(seconds, [1, 2, 4, 32, 60, 60, 60, 60, 60, 60]);
    }
}
