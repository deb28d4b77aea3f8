//! The system clock is changed while tokens are cached and sessions are open.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use bindpost_mcp_http::Denial;
use bindpost_mcp_oauth::{OAuthLimits, TokenAuthorizer};
use serde_json::json;

use crate::issuer::TestIssuer;
use crate::requests::{authorize, expired, now_and, trusting};
use crate::talk::{Talk, TestServer, WAYS, Way, mixed};

const HOURS: i64 = 3600;

/// The system clock with an offset in seconds.
#[derive(Clone, Default)]
struct WrongClock(Arc<AtomicI64>);

impl WrongClock {
    fn set(&self, seconds: i64) {
        self.0.store(seconds, Ordering::Relaxed);
    }

    fn now(&self) -> SystemTime {
        let wrong = self.0.load(Ordering::Relaxed);
        let by = Duration::from_secs(wrong.unsigned_abs());
        if wrong < 0 { SystemTime::now() - by } else { SystemTime::now() + by }
    }
}

fn tokens(issuer: &TestIssuer, limits: OAuthLimits) -> (TokenAuthorizer, WrongClock) {
    let clock = WrongClock::default();
    let moved = clock.clone();
    let builder = trusting(issuer).limits(limits).leeway(Duration::from_secs(5)).clock(move || moved.now());
    (builder.build().unwrap(), clock)
}

#[tokio::test]
async fn a_clock_that_was_temporarily_ahead_invalidates_no_token() {
    let issuer = TestIssuer::start().await;
    for verified in [0, 1_024] {
        let (tokens, clock) = tokens(&issuer, OAuthLimits { verified, ..OAuthLimits::default() });
        let [known, fresh] = [issuer.token(json!({})).await, issuer.token(json!({"sub": "bob"})).await];
        authorize(&tokens, &known).await.unwrap();
        let fetches = issuer.fetches().await;
        for hours in [1, 3, 30, 24 * 365 * 10] {
            clock.set(hours * HOURS);
            assert_eq!(authorize(&tokens, &known).await, Err(expired()), "{hours}");
            assert_eq!(authorize(&tokens, &fresh).await, Err(expired()), "{hours}");
            clock.set(0);
            authorize(&tokens, &known).await.unwrap();
        }
        authorize(&tokens, &fresh).await.unwrap();
        assert_eq!(issuer.fetches().await, fetches, "the age of keys does not depend on the system clock");
    }
}

#[tokio::test]
async fn setting_the_clock_back_does_not_extend_a_token() {
    let issuer = TestIssuer::start().await;
    let (tokens, clock) = tokens(&issuer, OAuthLimits::default());
    let long = issuer.token(json!({"sub": "bob"})).await;
    authorize(&tokens, &long).await.unwrap();
    // The token is valid for at most six more seconds, including the leeway.
    let short = issuer.token(json!({"exp": now_and(1)})).await;
    authorize(&tokens, &short).await.unwrap();
    clock.set(-3 * HOURS);
    tokio::time::sleep(Duration::from_millis(6_500)).await;
    for _ in 0..3 {
        assert_eq!(authorize(&tokens, &short).await, Err(expired()));
        authorize(&tokens, &long).await.unwrap();
    }
    // A token whose `nbf` is later by that clock is not valid yet, as before.
    let begins = issuer.token(json!({"nbf": now_and(0)})).await;
    assert_eq!(authorize(&tokens, &begins).await, Err(Denial::invalid("the token is not valid yet")));
    clock.set(0);
    authorize(&tokens, &begins).await.unwrap();
    assert_eq!(authorize(&tokens, &short).await, Err(expired()));
}

/// The clock is before 1970, or beyond the range of time values.
#[tokio::test]
async fn an_out_of_range_clock_rejects_all_tokens() {
    let issuer = TestIssuer::start().await;
    let at = Arc::new(std::sync::Mutex::new(SystemTime::UNIX_EPOCH - Duration::from_secs(9)));
    let told = at.clone();
    let tokens = trusting(&issuer).clock(move || *told.lock().unwrap()).build().unwrap();
    let begins = issuer.token(json!({"nbf": now_and(-60)})).await;
    assert_eq!(authorize(&tokens, &begins).await, Err(Denial::invalid("the token is not valid yet")));
    *at.lock().unwrap() = SystemTime::UNIX_EPOCH + Duration::from_secs(1 << 40);
    assert_eq!(authorize(&tokens, &begins).await, Err(expired()));
}

/// F27: the lifetime of sessions does not depend on the system clock.
#[tokio::test]
async fn a_session_outlives_a_clock_that_jumps() {
    let issuer = TestIssuer::start().await;
    let (tokens, clock) = tokens(&issuer, OAuthLimits::default());
    let server = TestServer::start(mixed(), &tokens).await;
    let alice = issuer.token(json!({})).await;
    for way in WAYS.into_iter().filter(|way| *way != Way::Alone) {
        let mut talk = Talk::open(&server, way, Some(&alice)).await;
        clock.set(30 * HOURS);
        talk.call("whoami", Some(&alice)).await.refused(401);
        tokio::time::sleep(Duration::from_millis(250)).await;
        clock.set(-30 * HOURS);
        assert_eq!(talk.call("whoami", Some(&alice)).await.text(), "alice", "{way:?}");
        clock.set(0);
        assert_eq!(talk.call("whoami", Some(&alice)).await.text(), "alice", "{way:?}");
    }
}
