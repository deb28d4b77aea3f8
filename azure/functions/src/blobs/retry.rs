//! Decides when a request to a storage service is retried.

use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::{Instant, sleep};

use super::error::BlobFailure;

const MAX_TRIES: u32 = 3;
/// The maximum time between the start of the first attempt and of the last.
const WINDOW: Duration = Duration::from_secs(10);
/// The pause before the second attempt. The pause before the third is four times as long.
const PAUSE: Duration = Duration::from_millis(200);

/// The attempts of one operation.
#[derive(Debug)]
pub(crate) struct RetryState {
    started: Instant,
    made: u32,
}

impl RetryState {
    pub(crate) fn start() -> RetryState {
        RetryState { started: Instant::now(), made: 1 }
    }

    /// Returns the number of attempts, including the current one.
    pub(crate) fn attempts(&self) -> u32 {
        self.made
    }

    /// Waits until the next attempt may start, or returns the failure if there is no further attempt.
    ///
    /// If the service requests a longer pause than the operation allows, there is no retry: the service does
    /// not want early requests.
    pub(crate) async fn pause_after(&mut self, failure: BlobFailure) -> Result<(), BlobFailure> {
        if !failure.is_transient() || self.made >= MAX_TRIES {
            return Err(failure);
        }
        let pause = match failure.retry_after() {
            Some(asked) => asked.max(PAUSE),
            None => jittered(PAUSE * 4u32.pow(self.made - 1)),
        };
        if self.started.elapsed().saturating_add(pause) > WINDOW {
            return Err(failure);
        }
        tracing::debug!(%failure, ?pause, "retrying the request to the storage service");
        sleep(pause).await;
        self.made += 1;
        Ok(())
    }
}

/// Returns half to one and a half of a pause, so that calls that failed together do not retry together.
fn jittered(pause: Duration) -> Duration {
    let share = getrandom::u32().map_or(1.0, |random| 0.5 + f64::from(random) / f64::from(u32::MAX));
    pause.mul_f64(share)
}

/// Parses a `Retry-After` header: seconds, or a date. A date is relative to `date`, the date of the response,
/// because this machine's clock may be wrong. Without `date` it is relative to `now`.
pub(crate) fn parse_retry_after(value: &str, date: Option<&str>, now: DateTime<Utc>) -> Option<Duration> {
    if let Ok(seconds) = value.trim().parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let parse = |date: &str| Some(DateTime::parse_from_rfc2822(date.trim()).ok()?.to_utc());
    let (until, from) = (parse(value)?, date.and_then(parse).unwrap_or(now));
    Some((until - from).to_std().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let now = DateTime::parse_from_rfc3339("2026-01-31T08:00:00Z").unwrap().to_utc();
        let seconds = |value| parse_retry_after(value, None, now).map(|pause| pause.as_secs());
        assert_eq!(seconds("3"), Some(3));
        assert_eq!(seconds(" 0 "), Some(0));
        assert_eq!(seconds("Sat, 31 Jan 2026 08:00:07 GMT"), Some(7));
        assert_eq!(seconds("Sat, 31 Jan 2026 07:00:00 GMT"), Some(0));
        assert_eq!(seconds("soon"), None);
        assert_eq!(seconds("-1"), None);
        let by_service = |date| {
            let pause = parse_retry_after("Sat, 31 Jan 2026 08:00:07 GMT", Some(date), now);
            pause.map(|pause| pause.as_secs())
        };
        assert_eq!(by_service("Sat, 31 Jan 2026 08:00:04 GMT"), Some(3));
        assert_eq!(by_service("Sat, 31 Jan 2026 09:00:00 GMT"), Some(0));
        assert_eq!(by_service("no date"), Some(7));
    }

    #[test]
    fn pauses_differ_but_stay_near() {
        let pauses: Vec<_> = (0..50).map(|_| jittered(PAUSE)).collect();
        assert!(pauses.iter().all(|pause| (PAUSE / 2..=PAUSE * 2).contains(pause)), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause != pauses[0]));
    }
}
