//! Decides whether and when a request is retried.

use std::time::{Duration, SystemTime};

use http::{HeaderMap, HeaderName, StatusCode, header};
use tokio::time::Instant;

/// Returns whether a retry may succeed and does no harm.
///
/// A request that gets a 429 was not processed. The other statuses may come from an intermediary, after
/// the service has processed the request.
pub(crate) fn is_retryable_status(status: StatusCode, repeatable: bool) -> bool {
    match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => repeatable,
        _ => false,
    }
}

/// How often a request is repeated, and after which delays.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// The maximum number of attempts.
    pub tries: u32,
    /// The approximate delay before the second attempt, if the service requests none. Each further delay is four
    /// times as long.
    pub pause: Duration,
    /// The maximum `Retry-After` that is honoured. If the service requests more, there is no further attempt: an
    /// early one would only add load.
    pub retry_after: Duration,
    /// The time at which the last attempt must have begun.
    pub until: Instant,
}

/// The attempts of one request. The caller decides which failures are worth another attempt.
#[derive(Debug)]
pub struct RetryState {
    policy: RetryPolicy,
    made: u32,
}

impl RetryState {
    /// Begins the first attempt.
    pub fn start(policy: RetryPolicy) -> RetryState {
        RetryState { policy, made: 1 }
    }

    /// Returns the number of attempts, including the current one.
    pub fn attempts(&self) -> u32 {
        self.made
    }

    /// Waits until the next attempt may begin. Returns `false` at once if there is none. `asked` is the delay that
    /// the service requests.
    pub async fn wait(&mut self, asked: Option<Duration>) -> bool {
        let Some(pause) = self.delay(asked) else { return false };
        tracing::debug!(?pause, made = self.made, "retrying the request");
        tokio::time::sleep(pause).await;
        self.made += 1;
        true
    }

    fn delay(&self, asked: Option<Duration>) -> Option<Duration> {
        let RetryPolicy { tries, pause, retry_after, until } = self.policy;
        if self.made >= tries || asked.is_some_and(|asked| asked > retry_after) {
            return None;
        }
        // The random part spreads the retries of calls that failed together. No retry is earlier than requested.
        let share = getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX));
        let delay = match asked {
            Some(asked) => asked + pause.mul_f64(share),
            None => pause.saturating_mul(4_u32.saturating_pow(self.made - 1)).mul_f64(0.5 + share),
        };
        (Instant::now() + delay < until).then_some(delay)
    }
}

/// Returns the delay in `Retry-After`. A date is compared with the `Date` header of the response, if it
/// has one.
pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let value = text(header::RETRY_AFTER)?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number of seconds that overflows is still a delay.
        return Some(Duration::from_secs(value.parse::<u32>().unwrap_or(u32::MAX).into()));
    }
    let now = text(header::DATE).and_then(parse_date).unwrap_or_else(SystemTime::now);
    Some(parse_date(value)?.duration_since(now).unwrap_or_default())
}

/// Parses a date in one of the three HTTP formats.
fn parse_date(text: &str) -> Option<SystemTime> {
    httpdate::parse_http_date(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn seconds(value: &'static str, date: &'static str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(header::DATE, HeaderValue::from_static(date));
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static(value));
        retry_after(&headers).map(|pause| pause.as_secs())
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        for (value, expected) in [
            ("3", Some(3)),
            (" 0 ", Some(0)),
            ("99999999999999999999", Some(u64::from(u32::MAX))),
            ("Sat, 31 Jan 2026 08:00:07 GMT", Some(7)),
            ("Saturday, 31-Jan-26 08:00:07 GMT", Some(7)),
            ("Sat Jan 31 08:00:07 2026", Some(7)),
            ("Sat, 31 Jan 2026 07:00:00 GMT", Some(0)),
            ("soon", None),
            ("", None),
            ("-1", None),
            ("1.5", None),
        ] {
            assert_eq!(seconds(value, "Sat, 31 Jan 2026 08:00:00 GMT"), expected, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn a_date_is_relative_to_that_of_the_response() {
        let until = "Sat, 31 Jan 2026 08:00:07 GMT";
        assert_eq!(seconds(until, "Sat, 31 Jan 2026 08:00:04 GMT"), Some(3));
        assert_eq!(seconds(until, "Sat, 31 Jan 2026 09:00:00 GMT"), Some(0));
        // Without a valid date it is relative to the clock of this machine.
        assert_eq!(seconds("Mon, 31 Jan 2000 08:00:07 GMT", "no date"), Some(0));
    }

    #[test]
    fn delays_vary_and_grow_and_end_with_the_remaining_time() {
        let (pause, retry_after) = (Duration::from_millis(200), Duration::from_secs(30));
        let left = |seconds| Instant::now() + Duration::from_secs(seconds);
        let policy = |until| RetryPolicy { tries: 3, pause, retry_after, until };
        let mut state = RetryState::start(policy(left(3600)));
        let pauses: Vec<_> = (0..50).map(|_| state.delay(None).unwrap()).collect();
        assert!(pauses.iter().all(|it| (pause / 2..=pause * 2).contains(it)), "{pauses:?}");
        assert!(pauses.iter().any(|it| *it != pauses[0]));
        let asked = |seconds| state.delay(Some(Duration::from_secs(seconds)));
        assert!(asked(30).unwrap() >= Duration::from_secs(30), "never earlier than requested");
        assert_eq!(asked(31), None, "more than the limit");
        state.made = 2;
        assert!(state.delay(None).unwrap() >= pause * 2);
        state.made = 3;
        assert_eq!(state.delay(None), None, "no more tries");
        let near = RetryState::start(policy(left(2)));
        assert_eq!(near.delay(Some(Duration::from_secs(5))), None, "more than the remaining time");
    }

    #[test]
    fn requests_that_may_have_been_processed_are_not_repeated() {
        for (status, repeatable, expected) in [
            (429, false, true),
            (503, false, false),
            (502, false, false),
            (503, true, true),
            (502, true, true),
            (504, true, true),
            (500, true, false),
            (404, true, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(is_retryable_status(status, repeatable), expected, "{status} {repeatable}");
        }
    }
}
