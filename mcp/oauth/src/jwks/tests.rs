//! The real intervals, on a clock that tests move.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::json;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// An issuer on a clock that tests move.
#[derive(Debug, Default)]
struct Fake {
    fetches: AtomicU64,
    /// How many it has.
    keys: AtomicU64,
    down: AtomicU64,
    /// How long it takes, in seconds.
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

/// The defaults, and what they lead to.
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
    // Nobody waits; many cause one fetch.
    for _ in 0..10 {
        assert_eq!(keys.current(Instant::now()).await.unwrap().set.len(), 1);
    }
    assert_eq!(asked.elapsed(), Duration::ZERO);
    pass(5 * SECOND).await;
    assert_eq!((keys.current(Instant::now()).await.unwrap().set.len(), issuer.fetches()), (2, 2));
    assert_eq!(asked.elapsed(), 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn keys_older_than_an_hour_are_not_used_before_the_issuer_was_asked() {
    let (issuer, keys) = cache();
    keys.current(Instant::now()).await.unwrap();
    issuer.keys.store(2, Ordering::Relaxed);
    pass(HOUR).await;
    assert_eq!((keys.current(Instant::now()).await.unwrap().set.len(), issuer.fetches()), (2, 2));
    // The same keys again are the same.
    pass(HOUR).await;
    assert_eq!((keys.current(Instant::now()).await.unwrap().set.len(), issuer.fetches()), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn a_mere_look_makes_them_new_too() {
    let (issuer, keys) = cache();
    assert!(keys.cached().is_none());
    assert_eq!(issuer.fetches(), 0, "nobody needs them");
    keys.current(Instant::now()).await.unwrap();
    issuer.keys.store(2, Ordering::Relaxed);
    pass(HOUR).await;
    assert_eq!(keys.cached().unwrap().len(), 1);
    pass(SECOND).await;
    assert_eq!((keys.cached().unwrap().len(), issuer.fetches()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn the_last_good_keys_count_for_a_day() {
    let (issuer, keys) = cache();
    keys.current(Instant::now()).await.unwrap();
    // It takes connections and says nothing.
    issuer.set(1, 3600);
    pass(2 * HOUR).await;
    let asked = Instant::now();
    assert_eq!(keys.current(Instant::now()).await.unwrap().set.len(), 1);
    assert_eq!(asked.elapsed(), 5 * SECOND, "the first one waits as long as a fetch may take");
    while asked.elapsed() < 22 * HOUR - SECOND {
        let one = Instant::now();
        keys.current(Instant::now()).await.unwrap();
        assert_eq!(one.elapsed(), Duration::ZERO, "nobody else does");
        pass(10 * SECOND).await;
    }
    pass(11 * SECOND).await;
    assert_eq!(keys.current(Instant::now()).await.unwrap_err(), KeysUnavailable);
    // A fetch took 5 s, and a minute passed before the next, most of the time.
    let fetches = issuer.fetches();
    assert!((1_000..22 * 60).contains(&fetches), "{fetches}");
    assert!(keys.cached().is_none());
    issuer.set(0, 0);
    pass(MINUTE).await;
    keys.current(Instant::now()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_any_keys_nobody_can_tell() {
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
async fn an_unknown_key_is_looked_for_once_in_five_minutes() {
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
async fn a_failed_look_backs_off_too() {
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
    // Back again, it is found as soon as the back-off ends.
    issuer.set(0, 0);
    issuer.keys.store(2, Ordering::Relaxed);
    pass(5 * SECOND).await;
    assert_eq!(look().await, 2);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_goes_away_leaves_the_fetch_to_others() {
    let (issuer, keys) = cache();
    issuer.set(0, 3);
    assert!(tokio::time::timeout(SECOND, keys.current(Instant::now())).await.is_err());
    keys.current(Instant::now()).await.unwrap();
    assert_eq!(issuer.fetches(), 1);
    // Nor does it buy another look.
    for number in 0..10 {
        pass(SECOND).await;
        let asked = Instant::now();
        let current = keys.current(Instant::now()).await.unwrap();
        let _ = tokio::time::timeout(SECOND, keys.refresh_for_unknown_key(current, asked)).await;
        assert_eq!(issuer.fetches(), 2, "{number}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_so_many_wait() {
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
async fn an_answer_without_keys_counts_once_it_is_repeated() {
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
    assert!((3..20).contains(&fetches), "it is asked as seldom as one that fails: {fetches}");
    pass(MINUTE).await;
    let _ = known().await;
    pass(SECOND).await;
    assert_eq!(known().await, Ok(0), "it is believed");
    // And so is its next answer, at once.
    issuer.keys.store(2, Ordering::Relaxed);
    pass(HOUR).await;
    assert_eq!(known().await, Ok(2));
    // A moment without keys, a failure, a moment without keys: each begins anew after a good answer.
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
async fn an_issuer_that_begins_without_keys_is_asked_again() {
    let (issuer, keys) = cache();
    issuer.keys.store(0, Ordering::Relaxed);
    let known = async || keys.current(Instant::now()).await.map(|keys| keys.set.len());
    assert_eq!(known().await, Err(KeysUnavailable), "it cannot be told yet");
    issuer.keys.store(1, Ordering::Relaxed);
    pass(2 * SECOND).await;
    assert_eq!(known().await, Ok(1));
}
