//! What issuers and clients can make us fetch, keep and wait for.

use std::time::Duration;

/// How often keys are fetched, how long they are kept, and how much of anything is taken.
///
/// ```
/// use std::time::Duration;
/// use bindpost_mcp_oauth::Limits;
///
/// // A key that its issuer takes back is refused after a minute.
/// let limits = Limits { refresh: Duration::from_secs(60), ..Limits::default() };
/// ```
#[derive(Clone, Debug)]
pub struct OAuthLimits {
    /// Keys older than this are fetched again before they are used; while tokens come, that happens in
    /// the background a little earlier. So long a key that its issuer took back may still count.
    pub refresh: Duration,
    /// How long the last good keys count while their issuer cannot be reached.
    pub keep: Duration,
    /// How long an issuer has to answer without a single usable key until that is believed and its known keys
    /// stop to count. One such answer is more likely a mistake of the issuer, or of a cache in front of it.
    pub confirm_no_keys: Duration,
    /// How often a key that is not there makes us look again, per issuer.
    pub unknown_key: Duration,
    /// How soon a failed fetch is tried again; each further failure doubles it.
    pub retry: Duration,
    /// The longest wait between two failed fetches.
    pub retry_max: Duration,
    /// How long a fetch may take in all, metadata included.
    pub fetch_timeout: Duration,
    /// The largest answer of an issuer, in bytes.
    pub max_answer: usize,
    /// The largest number of keys an issuer may have.
    pub max_keys: usize,
    /// How many requests wait for one fetch; further ones are answered at once.
    pub waiting: usize,
    /// The longest token, in bytes.
    pub max_token: usize,
    /// How many tokens are remembered as verified.
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
    /// From this age on, keys are fetched again in the background.
    pub(crate) fn refresh_early(&self) -> Duration {
        self.refresh - self.refresh / 6
    }

    /// How long to wait after this many failures in a row.
    pub(crate) fn back_off(&self, failures: u32) -> Duration {
        let doubled = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
        self.retry.saturating_mul(doubled).min(self.retry_max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_back_off_doubles_up_to_its_limit() {
        let limits = OAuthLimits::default();
        let seconds = [1, 2, 3, 6, 7, 31, 32, 33, 34, u32::MAX].map(|n| limits.back_off(n).as_secs());
        assert_eq!(seconds, [1, 2, 4, 32, 60, 60, 60, 60, 60, 60]);
    }
}
