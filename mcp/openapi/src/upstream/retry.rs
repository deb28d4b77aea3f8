//! Decides whether and when a request is retried.

use std::time::Duration;

use chrono::{DateTime, NaiveDateTime, Utc};
use http::{HeaderMap, HeaderName, StatusCode, header};
use tokio::time::Instant;

use super::UpstreamLimits;

/// Returns whether a retry may succeed and does no harm.
///
/// A request that gets a 429 was not processed. The other statuses may come from an intermediary, after
/// the service has processed the request.
pub(super) fn is_retryable_status(status: StatusCode, repeatable: bool) -> bool {
    match status {
        StatusCode::TOO_MANY_REQUESTS => true,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => repeatable,
        _ => false,
    }
}

/// Returns the delay before the next attempt, or `None` if the request should not be retried.
///
/// If the service requests a longer delay than the limits allow, the request is not retried. An early
/// retry would only add load.
pub(super) fn retry_delay(
    limits: &UpstreamLimits,
    made: u32,
    asked: Option<Duration>,
    until: Instant,
) -> Option<Duration> {
    if asked.is_some_and(|asked| asked > limits.retry_after) {
        return None;
    }
    let own = limits.pause.saturating_mul(4u32.saturating_pow(made.saturating_sub(1)));
    let share = getrandom::u32().map_or(0.5, |random| f64::from(random) / f64::from(u32::MAX));
    // The random part spreads the retries of calls that failed together. No retry
    // is earlier than requested.
    let pause = match asked {
        Some(asked) => asked + limits.pause.mul_f64(share),
        None => own.mul_f64(0.5 + share),
    };
    (Instant::now() + pause < until).then_some(pause)
}

/// Returns the delay in `Retry-After`. A date is compared with the `Date` header of the response, if it
/// has one.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    let value = text(header::RETRY_AFTER)?.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number of seconds that overflows is still a delay.
        return Some(Duration::from_secs(value.parse::<u32>().unwrap_or(u32::MAX).into()));
    }
    let now = text(header::DATE).and_then(parse_date).unwrap_or_else(Utc::now);
    Some((parse_date(value)? - now).to_std().unwrap_or_default())
}

/// Parses a date in one of the three HTTP formats.
fn parse_date(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if text.len() > 64 {
        return None;
    }
    if let Ok(date) = DateTime::parse_from_rfc2822(text) {
        return Some(date.to_utc());
    }
    ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"]
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
        .map(|date| date.and_utc())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn seconds(value: &'static str) -> Option<u64> {
        let mut headers = HeaderMap::new();
        headers.insert(header::DATE, HeaderValue::from_static("Sat, 31 Jan 2026 08:00:00 GMT"));
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
            assert_eq!(seconds(value), expected, "{value}");
        }
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn delays_vary_and_grow_and_end_with_the_remaining_time() {
        let limits = UpstreamLimits::default();
        let far = Instant::now() + Duration::from_secs(3600);
        let pauses: Vec<_> = (0..50).map(|_| retry_delay(&limits, 1, None, far).unwrap()).collect();
        assert!(pauses.iter().all(|it| (limits.pause / 2..=limits.pause * 2).contains(it)), "{pauses:?}");
        assert!(pauses.iter().any(|it| *it != pauses[0]));
        assert!(retry_delay(&limits, 2, None, far).unwrap() >= limits.pause * 2);
        let asked = |seconds| retry_delay(&limits, 1, Some(Duration::from_secs(seconds)), far);
        assert!(asked(30).unwrap() >= Duration::from_secs(30), "never earlier than requested");
        assert_eq!(asked(31), None, "more than the limit");
        let near = Instant::now() + Duration::from_secs(2);
        assert_eq!(
            retry_delay(&limits, 1, Some(Duration::from_secs(5)), near),
            None,
            "more than the remaining time"
        );
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
