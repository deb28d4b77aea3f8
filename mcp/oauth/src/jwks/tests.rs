//! The default intervals, with a simulated clock.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// An issuer with a simulated clock.
#[derive(Debug, Default)]
struct Fake {
    fetches: AtomicU64,
    /// The number of keys.
    keys: AtomicU64,
    down: AtomicU64,
    /// The duration of a fetch, in seconds.
    slow: AtomicU64,
}

impl KeySource for Arc<Fake> {
    async fn fetch(&self) -> Result<KeySet, FetchError> {
        self.fetches.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_secs(self.slow.load(Ordering::Relaxed))).await;
        if self.down.load(Ordering::Relaxed) > 0 {
            return Err(FetchError::TimedOut);
        }
        let key = json!({"kty": "RSA", "n": "AQAB", "e": "AQAB"});
        let keys = vec![key; usize::try_from(self.keys.load(Ordering::Relaxed)).unwrap()];
        Ok(KeySet::parse(json!({"keys": keys}).to_string().as_bytes(), 10).unwrap())
    }

    fn name(&self) -> &str {
        "https://issuer.example"
    }
}

/// A cache with the default limits.
fn cache() -> (Arc<Fake>, KeyCache<Arc<Fake>>) {
    let issuer = Arc::new(Fake { keys: AtomicU64::new(1), ..Fake::default() });
    (issuer.clone(), KeyCache::new(issuer, OAuthLimits::default()))
}

impl Fake {
    fn fetches(&self) -> u64 {
        self.fetches.load(Ordering::Relaxed)
    }

    fn set(&self, down: u64, slow: u64) {
        self.down.store(down, Ordering::Relaxed);
        self.slow.store(slow, Ordering::Relaxed);
    }
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

#[tokio::test(start_paused = true)]
async fn keys_are_refreshed_in_the_background_before_they_are_old() {
    let (issuer, keys) = cache();
    assert_eq!((keys.current(Instant::now()).await.unwrap().set.len(), issuer.fetches()), (1, 1));
    pass(49 * MINUTE).await;
    keys.current(Instant::now()).await.unwrap();
    assert_eq!(issuer.fetches(), 1);
    pass(2 * MINUTE).await;
    issuer.set(0, 4);
    issuer.keys.store(2, Ordering::Relaxed);
    let asked = Instant::now();
    // No request waits, and many requests cause one fetch.
    for _ in 0..10 {
        assert_eq!(keys.current(Instant::now()).await.unwrap().set.len(), 1);
    }
    assert_eq!(asked.elapsed(), Duration::ZERO);
    pass(5 * SECOND).await;
    assert_eq!((keys.current(Instant::now()).await.unwrap().set.len(), issuer.fetches()), (2, 2));
    assert_eq!(asked.elapsed(), 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn keys_older_than_an_hour_are_fetched_again_before_use() {
    let (issuer, keys) = cache();
    keys.current(Instant::now()).await.unwrap();
    issuer.keys.store(2, Ordering::Relaxed);
    pass(HOUR).await;
    assert_eq!((keys.current(Instant::now()).await.unwrap().set.len(), issuer.fetches()), (2, 2));
    // The fetched keys are the same as before.
    pass(HOUR).await;
    assert_eq!((keys.current(Instant::now()).await.unwrap().set.len(), issuer.fetches()), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn reading_cached_keys_refreshes_them_too() {
    let (issuer, keys) = cache();
    assert!(keys.cached().is_none());
    assert_eq!(issuer.fetches(), 0, "no request needs keys");
    keys.current(Instant::now()).await.unwrap();
    issuer.keys.store(2, Ordering::Relaxed);
    pass(HOUR).await;
    assert_eq!(keys.cached().unwrap().len(), 1);
    pass(SECOND).await;
    assert_eq!((keys.cached().unwrap().len(), issuer.fetches()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn the_last_known_keys_stay_valid_for_a_day() {
    let (issuer, keys) = cache();
    keys.current(Instant::now()).await.unwrap();
    // The issuer accepts connections but sends no response.
    issuer.set(1, 3600);
    pass(2 * HOUR).await;
    let asked = Instant::now();
    assert_eq!(keys.current(Instant::now()).await.unwrap().set.len(), 1);
    assert_eq!(asked.elapsed(), 5 * SECOND, "the first request waits for the timeout of the fetch");
    while asked.elapsed() < 22 * HOUR - SECOND {
        let one = Instant::now();
        keys.current(Instant::now()).await.unwrap();
        assert_eq!(one.elapsed(), Duration::ZERO, "later requests do not wait");
        pass(10 * SECOND).await;
    }
    pass(11 * SECOND).await;
    assert_eq!(keys.current(Instant::now()).await.unwrap_err(), KeysUnavailable);
    // Usually a fetch took 5 s, and the next one began a minute later.
    let fetches = issuer.fetches();
    assert!((1_000..22 * 60).contains(&fetches), "{fetches}");
    assert!(keys.cached().is_none());
    issuer.set(0, 0);
    pass(MINUTE).await;
    keys.current(Instant::now()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_known_keys_tokens_cannot_be_verified() {
    let (issuer, keys) = cache();
    issuer.set(1, 0);
    let begun = Instant::now();
    let mut tried = Vec::new();
    while begun.elapsed() < 4 * MINUTE {
        let before = issuer.fetches();
        assert_eq!(keys.current(Instant::now()).await.unwrap_err(), KeysUnavailable);
        if issuer.fetches() > before {
            tried.push(begun.elapsed().as_secs());
        }
        pass(SECOND / 4).await;
    }
    assert_eq!(tried, [0, 1, 3, 7, 15, 31, 63, 123, 183]);
    issuer.set(0, 0);
    pass(MINUTE).await;
    keys.current(Instant::now()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_unknown_key_id_causes_one_fetch_in_five_minutes() {
    let (issuer, keys) = cache();
    let mut looks = Vec::new();
    let begun = Instant::now();
    keys.current(Instant::now()).await.unwrap();
    pass(SECOND).await;
    while begun.elapsed() < 16 * MINUTE {
        let before = issuer.fetches();
        let asked = Instant::now();
        let current = keys.current(Instant::now()).await.unwrap();
        keys.refresh_for_unknown_key(current, asked).await;
        if issuer.fetches() > before {
            looks.push(begun.elapsed().as_secs());
        }
        pass(SECOND).await;
    }
    assert_eq!(looks, [1, 301, 601, 901]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_fetch_for_an_unknown_key_is_delayed_too() {
    let (issuer, keys) = cache();
    keys.current(Instant::now()).await.unwrap();
    pass(SECOND).await;
    issuer.set(1, 0);
    let begun = Instant::now();
    let look = async || {
        let asked = Instant::now();
        let current = keys.current(Instant::now()).await.unwrap();
        keys.refresh_for_unknown_key(current, asked).await.set.len()
    };
    for _ in 0..120 {
        assert_eq!(look().await, 1);
        pass(SECOND / 2).await;
    }
    assert_eq!((begun.elapsed(), issuer.fetches()), (MINUTE, 1 + 6), "at 0, 1, 3, 7, 15 and 31 s");
    // Once the issuer is up again, the key is found after the retry delay.
    issuer.set(0, 0);
    issuer.keys.store(2, Ordering::Relaxed);
    pass(5 * SECOND).await;
    assert_eq!(look().await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_does_not_cancel_the_fetch() {
    let (issuer, keys) = cache();
    issuer.set(0, 3);
    assert!(tokio::time::timeout(SECOND, keys.current(Instant::now())).await.is_err());
    keys.current(Instant::now()).await.unwrap();
    assert_eq!(issuer.fetches(), 1);
    // A cancelled request does not cause another fetch either.
    for number in 0..10 {
        pass(SECOND).await;
        let asked = Instant::now();
        let current = keys.current(Instant::now()).await.unwrap();
        let _ = tokio::time::timeout(SECOND, keys.refresh_for_unknown_key(current, asked)).await;
        assert_eq!(issuer.fetches(), 2, "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_of_waiting_requests_is_limited() {
    let issuer = Arc::new(Fake { keys: AtomicU64::new(1), ..Fake::default() });
    issuer.set(0, 3);
    let keys = Arc::new(KeyCache::new(issuer.clone(), OAuthLimits { waiting: 2, ..OAuthLimits::default() }));
    let mut asking = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let keys = keys.clone();
        asking.spawn(async move { keys.current(Instant::now()).await.is_ok() });
    }
    let answers = asking.join_all().await;
    assert_eq!(answers.iter().filter(|known| **known).count(), 2);
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_response_without_keys_is_accepted_once_it_is_repeated() {
    let (issuer, keys) = cache();
    let known = async || keys.current(Instant::now()).await.map(|keys| keys.set.len());
    assert_eq!(known().await, Ok(1));
    issuer.keys.store(0, Ordering::Relaxed);
    pass(HOUR).await;
    let begun = Instant::now();
    let mut fetches = issuer.fetches();
    while begun.elapsed() < 5 * MINUTE {
        assert_eq!(known().await, Ok(1), "{:?}", begun.elapsed());
        pass(SECOND).await;
    }
    fetches = issuer.fetches() - fetches;
    assert!((3..20).contains(&fetches), "fetches are delayed as after a failure: {fetches}");
    pass(MINUTE).await;
    let _ = known().await;
    pass(SECOND).await;
    assert_eq!(known().await, Ok(0), "the response without keys is accepted");
    // The next response with keys is accepted immediately.
    issuer.keys.store(2, Ordering::Relaxed);
    pass(HOUR).await;
    assert_eq!(known().await, Ok(2));
    // Responses without keys and failures alternate. The period begins anew after a response with keys.
    for _ in 0..3 {
        issuer.keys.store(0, Ordering::Relaxed);
        pass(HOUR).await;
        assert_eq!(known().await, Ok(2));
        issuer.set(1, 0);
        pass(2 * MINUTE).await;
        assert_eq!(known().await, Ok(2));
        issuer.set(0, 0);
        issuer.keys.store(2, Ordering::Relaxed);
        pass(2 * MINUTE).await;
        assert_eq!(known().await, Ok(2));
        pass(SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_response_without_keys_is_retried() {
    let (issuer, keys) = cache();
    issuer.keys.store(0, Ordering::Relaxed);
    let known = async || keys.current(Instant::now()).await.map(|keys| keys.set.len());
    assert_eq!(known().await, Err(KeysUnavailable), "one response without keys is not accepted");
    issuer.keys.store(1, Ordering::Relaxed);
    pass(2 * SECOND).await;
    assert_eq!(known().await, Ok(1));
}
