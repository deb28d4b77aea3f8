//! ETags, made from a strictly increasing clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Ticks of 100 ns since the year 1, as in Azure's ETags.
pub(super) struct EtagClock(u64);

/// Ticks at the start of 1970.
const EPOCH: u64 = 621_355_968_000_000_000;

impl EtagClock {
    /// Creates a clock that is later than all these ETags, even if the system clock was set back.
    pub(super) fn after<'a>(etags: impl Iterator<Item = &'a str>) -> Self {
        let ticks = |etag: &str| u64::from_str_radix(etag.trim_matches('"').strip_prefix("0x")?, 16).ok();
        Self(etags.filter_map(ticks).max().unwrap_or(0))
    }

    /// Returns a new ETag with its quotes.
    pub(super) fn next(&mut self) -> String {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = EPOCH.saturating_add(u64::try_from(since.as_nanos() / 100).unwrap_or(0));
        self.0 = now.max(self.0.saturating_add(1));
        format!("\"0x{:X}\"", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_etag_is_new() {
        let mut clock = EtagClock::after(std::iter::empty());
        let first = clock.next();
        assert!(first.starts_with("\"0x8D") || first.starts_with("\"0x8E"), "{first}");
        let etags: std::collections::HashSet<_> = (0..1000).map(|_| clock.next()).collect();
        assert_eq!(etags.len(), 1000);
        assert!(!etags.contains(&first));
    }

    #[test]
    fn continues_after_the_last_etag_when_the_system_clock_was_set_back() {
        let mut clock = EtagClock::after(["\"0xFFFFFFFFFFFFF00\"", "nonsense"].into_iter());
        assert_eq!(clock.next(), "\"0xFFFFFFFFFFFFF01\"");
    }
}
