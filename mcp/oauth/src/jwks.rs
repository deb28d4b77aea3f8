//! [`KeyCache`]: the keys of one issuer. They are fetched when needed, by one fetch at a time, and
//! never more often than the [`OAuthLimits`] allow. Tokens cannot cause more fetches.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;
use tracing::{debug, warn};

use crate::fetch::{FetchError, HttpKeySource};
use crate::key::KeySet;
use crate::limits::OAuthLimits;

/// A source of keys.
pub(crate) trait KeySource: Send + Sync + 'static {
    /// Fetches the keys. The timeout is up to the calling code.
    fn fetch(&self) -> impl Future<Output = Result<KeySet, FetchError>> + Send;

    /// Returns the name of the issuer, for logs.
    fn name(&self) -> &str;
}

/// A cache of the keys of one issuer.
#[derive(Debug)]
pub(crate) struct KeyCache<F = HttpKeySource> {
    shared: Arc<SharedKeyCache<F>>,
    /// Limits the number of requests that wait for a fetch.
    places: Semaphore,
}

#[derive(Debug)]
struct SharedKeyCache<F> {
    source: F,
    limits: OAuthLimits,
    state: Mutex<KeyCacheState>,
}

#[derive(Debug, Default)]
struct KeyCacheState {
    good: Option<FetchedKeys>,
    /// The running fetch. The channel is closed when it ends.
    fetch: Option<watch::Receiver<()>>,
    /// The number of consecutive failed fetches.
    failures: u32,
    /// When a failed fetch may be retried.
    retry_at: Option<Instant>,
    /// Since when all responses of the issuer have no usable keys.
    without_keys: Option<Instant>,
    /// The last fetch because of an unknown key id.
    looked_again: Option<Instant>,
}

/// The keys of an issuer at one point in time.
#[derive(Clone, Debug)]
pub(crate) struct FetchedKeys {
    pub(crate) set: Arc<KeySet>,
    /// When the fetch began. The age of the keys counts from here.
    fetched: Instant,
    /// When the fetch ended.
    arrived: Instant,
}

/// No keys are known, and none can be fetched now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct KeysUnavailable;

/// Why keys are fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FetchReason {
    /// No keys are known, or they are old.
    Age,
    /// A token has an unknown key id.
    UnknownKey,
}

impl<F: KeySource> KeyCache<F> {
    pub(crate) fn new(source: F, limits: OAuthLimits) -> KeyCache<F> {
        let places = Semaphore::new(limits.waiting.min(Semaphore::MAX_PERMITS));
        KeyCache { shared: Arc::new(SharedKeyCache { source, limits, state: Mutex::default() }), places }
    }

    /// Returns the valid keys. Waits for a fetch only if no keys are known, or if they are old and the
    /// last fetch was successful.
    pub(crate) async fn current(&self, now: Instant) -> Result<FetchedKeys, KeysUnavailable> {
        let limits = &self.shared.limits;
        let (known, fetch) = {
            let mut state = self.shared.state();
            state.good.take_if(|keys| now.duration_since(keys.fetched) >= limits.keep);
            let known = state.good.clone();
            let age = known.as_ref().map(|keys| now.duration_since(keys.fetched));
            if let Some(keys) = &known
                && age < Some(limits.refresh_early())
            {
                return Ok(keys.clone());
            }
            let in_time = age.is_some_and(|age| age < limits.refresh) || state.failures > 0;
            let fetch = self.shared.join_or_start(&mut state, now, FetchReason::Age);
            match (known, fetch) {
                (Some(keys), _) if in_time => return Ok(keys),
                (known, Some(fetch)) => (known, fetch),
                (Some(keys), None) => return Ok(keys),
                (None, None) => return Err(KeysUnavailable),
            }
        };
        if !self.wait(fetch).await {
            return known.ok_or(KeysUnavailable);
        }
        self.shared.state().good.clone().ok_or(KeysUnavailable)
    }

    /// Returns the known keys without waiting. If they are old, a fetch is started in the background.
    pub(crate) fn cached(&self) -> Option<Arc<KeySet>> {
        let mut state = self.shared.state();
        let now = Instant::now();
        let keys = state.good.clone()?;
        let is_old = now.duration_since(keys.fetched) >= self.shared.limits.refresh_early();
        if is_old && tokio::runtime::Handle::try_current().is_ok() {
            self.shared.join_or_start(&mut state, now, FetchReason::Age);
        }
        Some(keys.set)
    }

    /// Fetches the keys again because a token has an unknown key id, and returns the newest keys.
    /// `asked` is the time of the token's request. Returns `keys` unchanged if another fetch is not
    /// allowed yet.
    pub(crate) async fn refresh_for_unknown_key(&self, keys: FetchedKeys, asked: Instant) -> FetchedKeys {
        let fetch = {
            let mut state = self.shared.state();
            let now = Instant::now();
            match &state.good {
                // Another request has fetched newer keys.
                Some(good) if good.fetched > keys.fetched => return good.clone(),
                _ => {}
            }
            if keys.arrived >= asked {
                // The keys arrived while this token waited, so another fetch would not help.
                state.looked_again = state.looked_again.max(Some(keys.fetched));
                return keys;
            }
            let interval = self.shared.limits.unknown_key;
            if state.looked_again.is_some_and(|last| now.duration_since(last) < interval) {
                return keys;
            }
            match self.shared.join_or_start(&mut state, now, FetchReason::UnknownKey) {
                Some(fetch) => fetch,
                None => return keys,
            }
        };
        self.wait(fetch).await;
        self.shared.state().good.clone().unwrap_or(keys)
    }

    /// Waits until a fetch ends. Returns `false` immediately if too many requests wait. The timeout of
    /// the fetch limits the wait.
    async fn wait(&self, mut fetch: watch::Receiver<()>) -> bool {
        let Ok(_place) = self.places.try_acquire() else { return false };
        // No value is ever sent. The end of the fetch closes the channel.
        let _ = fetch.changed().await;
        true
    }
}

impl<F: KeySource> SharedKeyCache<F> {
    /// Locks the state. No code that can panic runs under this lock.
    fn state(&self) -> MutexGuard<'_, KeyCacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the running fetch, or starts one if that is allowed. The fetch is a separate task, so it
    /// continues when the request that started it is cancelled.
    fn join_or_start(
        self: &Arc<SharedKeyCache<F>>,
        state: &mut KeyCacheState,
        now: Instant,
        reason: FetchReason,
    ) -> Option<watch::Receiver<()>> {
        if let Some(fetch) = state.fetch.as_ref().filter(|fetch| fetch.has_changed().is_ok()) {
            return Some(fetch.clone());
        }
        if state.retry_at.is_some_and(|time| now < time) {
            return None;
        }
        let (under_way, fetch) = watch::channel(());
        state.fetch = Some(fetch.clone());
        let shared = self.clone();
        tokio::spawn(async move {
            let limit = shared.limits.fetch_timeout;
            let fetched = tokio::time::timeout(limit, shared.source.fetch()).await;
            shared.store_fetched(fetched.unwrap_or(Err(FetchError::TimedOut)), now, reason);
            drop(under_way);
        });
        Some(fetch)
    }

    /// Stores the result of a fetch that began at `began`.
    fn store_fetched(&self, fetched: Result<KeySet, FetchError>, began: Instant, reason: FetchReason) {
        let issuer = self.source.name();
        match fetched.and_then(|set| self.state().accept_key_set(set, began, self.limits.confirm_no_keys)) {
            Ok(set) => {
                debug!(issuer, keys = set.len(), ?reason, "fetched the keys of an issuer");
                let mut state = self.state();
                state.good =
                    Some(FetchedKeys { set: Arc::new(set), fetched: began, arrived: Instant::now() });
                state.failures = 0;
                state.retry_at = None;
                if reason == FetchReason::UnknownKey {
                    state.looked_again = Some(began);
                }
            }
            Err(error) => {
                warn!(issuer, %error, "the keys of an issuer cannot be fetched");
                let mut state = self.state();
                state.failures = state.failures.saturating_add(1);
                state.retry_at = Instant::now().checked_add(self.limits.back_off(state.failures));
            }
        }
    }
}

impl KeyCacheState {
    /// Accepts the keys of a response. A response without keys is an error until all responses for
    /// `confirm` had none.
    fn accept_key_set(
        &mut self,
        set: KeySet,
        began: Instant,
        confirm: Duration,
    ) -> Result<KeySet, FetchError> {
        if set.len() > 0 {
            self.without_keys = None;
            return Ok(set);
        }
        let since = *self.without_keys.get_or_insert(began);
        if began.duration_since(since) >= confirm { Ok(set) } else { Err(FetchError::NoKeys) }
    }
}

#[cfg(test)]
mod tests;
