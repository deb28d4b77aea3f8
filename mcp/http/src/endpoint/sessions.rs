//! [`SessionStore`]: the sessions of an endpoint, with limits and expiry.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bindpost_mcp_server::Caller;
use bindpost_mcp_server::transport::{MessageStream, Session};

use crate::settings::SessionLimits;

/// A session with the state that HTTP adds: when it was last used, and its streams.
#[derive(Debug)]
pub(crate) struct SessionEntry {
    key: u128,
    pub(crate) session: Arc<Session>,
    /// The first authenticated caller of a session that was opened without authentication.
    adopted_by: OnceLock<Caller>,
    opened: Instant,
    /// The time of the last use, in seconds since the start.
    seen: AtomicU32,
    /// The number of sessions that had been opened at the last use. It orders sessions more finely than
    /// a clock, which decides what is evicted while many sessions are opened at once.
    used: AtomicU64,
    /// Whether any message followed `initialize`.
    established: AtomicBool,
    streams: Mutex<SessionStreams>,
}

#[derive(Debug, Default)]
struct SessionStreams {
    last: u32,
    kept: Vec<KeptStream>,
}

/// A stream that can be resumed.
#[derive(Debug)]
struct KeptStream {
    number: u32,
    stream: Arc<MessageStream>,
    /// Whether a call writes to it. Otherwise it is for messages that belong to no call.
    of_call: bool,
}

type SessionMap = HashMap<u128, Arc<SessionEntry>, BuildHasherDefault<SessionIdHasher>>;

/// All sessions of an endpoint.
#[derive(Debug)]
pub(crate) struct SessionStore {
    limits: SessionLimits,
    entries: RwLock<SessionMap>,
    started: Instant,
    /// Seconds since the start, as of the last sweep. This is precise enough and cheaper than a clock.
    now: AtomicU32,
    /// The number of sessions opened since the start.
    opened: AtomicU64,
}

/// Uses session ids as their own hashes, because they are random.
#[derive(Debug, Default)]
struct SessionIdHasher(u64);

impl Hasher for SessionIdHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }
    fn write_u128(&mut self, id: u128) {
        self.0 = id as u64;
    }
}

/// A session that was added.
#[derive(Debug)]
pub(crate) struct AddedSession {
    /// The session id for the client.
    pub(crate) id: String,
    /// The delay of the response to `initialize`.
    pub(crate) delay: Duration,
}

/// If an evicted session is younger than this, sessions are being opened too fast.
const FLOOD_AGE: Duration = Duration::from_secs(1);

/// The store is full, and all sessions are in use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SessionStoreFull;

impl SessionStore {
    pub(crate) fn new(limits: SessionLimits) -> SessionStore {
        SessionStore {
            limits,
            entries: RwLock::default(),
            started: Instant::now(),
            now: AtomicU32::new(0),
            opened: AtomicU64::new(0),
        }
    }

    fn now(&self) -> u32 {
        self.now.load(Ordering::Relaxed)
    }

    /// Adds a session. If it replaces one that was opened within the last second, the response has to
    /// be delayed. This slows down a client that opens sessions too fast, but not the other clients.
    pub(crate) fn add(&self, session: Session) -> Result<AddedSession, SessionStoreFull> {
        let (key, id) = new_id().ok_or(SessionStoreFull)?;
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        let evicted = self.make_room(&mut entries, session.caller())?;
        let (now, opened) = (self.now(), Instant::now());
        let entry = SessionEntry {
            key,
            session: Arc::new(session),
            adopted_by: OnceLock::new(),
            opened,
            seen: AtomicU32::new(now),
            used: AtomicU64::new(self.opened.fetch_add(1, Ordering::Relaxed) + 1),
            established: AtomicBool::new(false),
            streams: Mutex::default(),
        };
        entries.insert(key, Arc::new(entry));
        drop(entries);
        let mut delay = Duration::ZERO;
        if let Some(evicted) = evicted {
            evicted.close();
            if opened.saturating_duration_since(evicted.opened) < FLOOD_AGE {
                delay = self.limits.flood_delay;
            }
        }
        Ok(AddedSession { id, delay })
    }

    /// Evicts a session if there is no room for one more session of this caller. The evicted session is
    /// returned, because it has to be closed after the lock is released.
    fn make_room(
        &self,
        entries: &mut SessionMap,
        caller: &Caller,
    ) -> Result<Option<Arc<SessionEntry>>, SessionStoreFull> {
        let evicted = self.evict_own(entries, caller)?;
        if evicted.is_some() || entries.len() < self.limits.total {
            return Ok(evicted);
        }
        self.evict(entries, self.limits.total, |_| true).map(Some)
    }

    /// Evicts a session of this caller if the caller has reached its limit.
    fn evict_own(
        &self,
        entries: &mut SessionMap,
        caller: &Caller,
    ) -> Result<Option<Arc<SessionEntry>>, SessionStoreFull> {
        let limits = &self.limits;
        let most = if caller.is_authenticated() { limits.per_caller } else { limits.anonymous };
        let is_own = |entry: &SessionEntry| entry.owner() == caller;
        // Counting is only needed if the caller can have reached its limit.
        if entries.len() < most || entries.values().filter(|entry| is_own(entry)).count() < most {
            return Ok(None);
        }
        self.evict(entries, most, is_own).map(Some)
    }

    /// Evicts one session: first those that sent only `initialize`, then those that were idle longest.
    /// A session in use is never evicted. A new session is treated as used, because its client is about
    /// to use it, until a quarter of `most` further sessions have been opened.
    fn evict(
        &self,
        entries: &mut SessionMap,
        most: usize,
        may_go: impl Fn(&SessionEntry) -> bool,
    ) -> Result<Arc<SessionEntry>, SessionStoreFull> {
        let oldest_new = self.opened.load(Ordering::Relaxed).saturating_sub((most / 4) as u64);
        let rank = |entry: &&Arc<SessionEntry>| {
            let used = entry.used.load(Ordering::Relaxed);
            (entry.established.load(Ordering::Relaxed) || used > oldest_new, used)
        };
        let candidates = || entries.values().filter(|entry| may_go(entry));
        // `is_in_use` locks the session, so all sessions are only checked if the first candidate is in use.
        let first = candidates().min_by_key(rank).filter(|entry| !entry.is_in_use());
        let chosen = first.or_else(|| candidates().filter(|entry| !entry.is_in_use()).min_by_key(rank));
        let key = chosen.ok_or(SessionStoreFull)?.key;
        entries.remove(&key).ok_or(SessionStoreFull)
    }

    /// Returns the session with this id if it belongs to this caller or can be transferred to it.
    pub(crate) fn find(&self, id: &str, caller: &Caller) -> Option<Arc<SessionEntry>> {
        let key = parse_id(id)?;
        let entry = self.entries.read().unwrap_or_else(PoisonError::into_inner).get(&key)?.clone();
        if entry.owner() != caller && !self.adopt(&entry, caller) {
            return None;
        }
        entry.seen.store(self.now(), Ordering::Relaxed);
        entry.used.store(self.opened.load(Ordering::Relaxed), Ordering::Relaxed);
        entry.established.store(true, Ordering::Relaxed);
        Some(entry)
    }

    /// Transfers a session that was opened without authentication to an authenticated caller, and
    /// returns whether it did. Clients connect first and get a token when a call requires one. A
    /// session is transferred only once.
    fn adopt(&self, entry: &SessionEntry, caller: &Caller) -> bool {
        if entry.session.caller().is_authenticated() || !caller.is_authenticated() {
            return false;
        }
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        if entry.adopted_by.get().is_some() {
            return false;
        }
        let Ok(evicted) = self.evict_own(&mut entries, caller) else { return false };
        let adopted = entry.adopted_by.set(caller.clone()).is_ok();
        drop(entries);
        if let Some(evicted) = evicted {
            evicted.close();
        }
        if adopted {
            entry.detach_readers();
        }
        adopted
    }

    /// Returns all sessions.
    pub(crate) fn all(&self) -> Vec<Arc<SessionEntry>> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Ends a session.
    pub(crate) fn remove(&self, entry: &SessionEntry) {
        let removed = self.entries.write().unwrap_or_else(PoisonError::into_inner).remove(&entry.key);
        if let Some(entry) = removed {
            entry.close();
        }
    }

    /// Ends expired sessions and streams. A session with a running call or a connected stream is not idle.
    pub(crate) fn sweep(&self) {
        let now = Instant::now();
        let seconds = now.duration_since(self.started).as_secs() as u32;
        self.now.store(seconds, Ordering::Relaxed);
        let mut expired = Vec::new();
        let mut entries = self.entries.write().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|_, entry| {
            entry.forget_streams(&self.limits);
            let keep = !entry.has_expired(now, seconds, &self.limits);
            if !keep {
                expired.push(entry.clone());
            }
            keep
        });
        if entries.capacity() > 4 * entries.len().max(1_000) {
            entries.shrink_to_fit();
        }
        drop(entries);
        expired.iter().for_each(|entry| entry.close());
    }

    /// Ends the streams that no call writes to, because the server shuts down.
    pub(crate) fn end_streams(&self) {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        for entry in entries.values() {
            entry.end_streams();
        }
    }
}

/// Creates a random id, as a number and as text. Returns `None` if the system has no randomness.
pub(crate) fn new_id() -> Option<(u128, String)> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some((u128::from_be_bytes(bytes), URL_SAFE_NO_PAD.encode(bytes)))
}

fn parse_id(id: &str) -> Option<u128> {
    let mut bytes = [0; 18];
    let length = URL_SAFE_NO_PAD.decode_slice(id, &mut bytes).ok()?;
    let bytes: [u8; 16] = bytes.get(..length)?.try_into().ok()?;
    Some(u128::from_be_bytes(bytes))
}

impl SessionEntry {
    fn streams(&self) -> std::sync::MutexGuard<'_, SessionStreams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the caller to which the session belongs. No other caller may use it.
    pub(crate) fn owner(&self) -> &Caller {
        self.adopted_by.get().unwrap_or_else(|| self.session.caller())
    }

    /// Disconnects the readers of the streams that no call writes to, because they are not authenticated as
    /// the new owner. Later messages are retained until the client reconnects with its token.
    fn detach_readers(&self) {
        for kept in self.streams().kept.iter().filter(|kept| !kept.of_call) {
            if let Some(reader) = kept.stream.attach(None) {
                kept.stream.detach(reader);
            }
        }
    }

    /// Ends the streams that no call writes to.
    fn end_streams(&self) {
        self.streams().kept.iter().filter(|kept| !kept.of_call).for_each(|kept| kept.stream.end());
    }

    /// Keeps a stream so that it can be resumed, and returns its number. If the session already has
    /// `most` streams, the oldest one that has ended or is idle is removed. Returns `None` if there is
    /// no such stream.
    pub(crate) fn keep_stream(&self, stream: &Arc<MessageStream>, of_call: bool, most: usize) -> Option<u32> {
        let mut streams = self.streams();
        if streams.kept.len() >= most {
            // An idle stream has no reader, and no call writes to it.
            let idle = |kept: &KeptStream| !kept.of_call && kept.stream.abandoned_for().is_some();
            let spare = streams.kept.iter().position(|kept| kept.stream.has_ended() || idle(kept))?;
            streams.kept.remove(spare);
        }
        streams.last += 1;
        let number = streams.last;
        streams.kept.push(KeptStream { number, stream: stream.clone(), of_call });
        Some(number)
    }

    pub(crate) fn stream(&self, number: u32) -> Option<Arc<MessageStream>> {
        self.streams().kept.iter().find(|kept| kept.number == number).map(|kept| kept.stream.clone())
    }

    pub(crate) fn forget_stream(&self, number: u32) {
        self.streams().kept.retain(|kept| kept.number != number);
    }

    fn forget_streams(&self, limits: &SessionLimits) {
        let mut streams = self.streams();
        if streams.kept.is_empty() {
            return;
        }
        streams.kept.retain(|kept| {
            kept.of_call && !kept.stream.has_ended()
                || kept.stream.abandoned_for().is_none_or(|idle| idle < limits.stream_kept)
        });
        streams.kept.shrink_to_fit();
    }

    /// Returns whether a call is running or a client reads a stream.
    fn is_in_use(&self) -> bool {
        self.session.running_calls() > 0
            || self.streams().kept.iter().any(|kept| kept.stream.abandoned_for().is_none())
    }

    fn has_expired(&self, now: Instant, seconds: u32, limits: &SessionLimits) -> bool {
        if now.saturating_duration_since(self.opened) >= limits.absolute {
            return self.session.running_calls() == 0;
        }
        if self.is_in_use() {
            self.seen.store(seconds, Ordering::Relaxed);
            return false;
        }
        let idle = u64::from(seconds.saturating_sub(self.seen.load(Ordering::Relaxed)));
        let most = if self.established.load(Ordering::Relaxed) { limits.idle } else { limits.opening };
        idle >= most.as_secs()
    }

    fn close(&self) {
        self.session.close();
        for kept in std::mem::take(&mut self.streams().kept) {
            kept.stream.end();
        }
    }
}
