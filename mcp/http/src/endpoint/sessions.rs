//! The sessions of an endpoint: found by id, capped, expired.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bindpost_mcp_server::{Caller, MessageStream, Session};

use crate::settings::SessionLimits;

/// A session with what HTTP adds: when it was used, and its streams.
#[derive(Debug)]
pub(crate) struct SessionEntry {
    key: u128,
    pub(crate) session: Arc<Session>,
    /// Whose it became after nobody in particular had opened it.
    adopted_by: OnceLock<Caller>,
    opened: Instant,
    seen: AtomicU32,
    /// How many sessions had been opened when it was last used: finer than any clock when sessions come in a
    /// flood, which is when it decides which one gives way.
    used: AtomicU64,
    /// Whether anything came after `initialize`.
    established: AtomicBool,
    streams: Mutex<SessionStreams>,
}

#[derive(Debug, Default)]
struct SessionStreams {
    last: u32,
    kept: Vec<KeptStream>,
}

/// A stream that can be taken up again.
#[derive(Debug)]
struct KeptStream {
    number: u32,
    stream: Arc<MessageStream>,
    /// A call writes to it; otherwise it is for what belongs to no call.
    of_call: bool,
}

type SessionMap = HashMap<u128, Arc<SessionEntry>, BuildHasherDefault<SessionIdHasher>>;

/// All sessions.
#[derive(Debug)]
pub(crate) struct SessionStore {
    limits: SessionLimits,
    entries: RwLock<SessionMap>,
    started: Instant,
    /// Seconds since the start, as of the last sweep: near enough, and free to read.
    now: AtomicU32,
    /// How many were opened since the start.
    opened: AtomicU64,
}

/// Ids are random already; hashing them again would only cost.
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
    /// What the client will name.
    pub(crate) id: String,
    /// How long the answer to `initialize` is held back.
    pub(crate) delay: Duration,
}

/// Sessions that are evicted younger than this are opened in a flood.
const FLOOD_AGE: Duration = Duration::from_secs(1);

/// There are too many sessions, and all of them are in use.
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

    /// Keeps a session. If it replaces one that was opened within the last second, sessions are opened in a flood,
    /// and the answer has to be delayed: a client that waits for answers then slows itself down, not the others.
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

    /// Makes room for one more session of this caller. The session that gives way is returned to be closed
    /// once the lock is free.
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

    /// Takes out a session of this caller if it is at its cap.
    fn evict_own(
        &self,
        entries: &mut SessionMap,
        caller: &Caller,
    ) -> Result<Option<Arc<SessionEntry>>, SessionStoreFull> {
        let limits = &self.limits;
        let most = if caller.is_authenticated() { limits.per_caller } else { limits.anonymous };
        let is_own = |entry: &SessionEntry| entry.owner() == caller;
        // Counting is only needed where a caller can be at its limit.
        if entries.len() < most || entries.values().filter(|entry| is_own(entry)).count() < most {
            return Ok(None);
        }
        self.evict(entries, most, is_own).map(Some)
    }

    /// Takes out the session that gives way first: one that only sent `initialize` before one that was used, and
    /// then the one that was idle longest. A session in use never gives way. One that was opened a moment ago counts
    /// as used, because its client is about to: only a quarter of `most` others are opened before it no longer does.
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
        // Whether a session is in use takes its locks, so it is asked of all only when the first one is.
        let first = candidates().min_by_key(rank).filter(|entry| !entry.is_in_use());
        let chosen = first.or_else(|| candidates().filter(|entry| !entry.is_in_use()).min_by_key(rank));
        let key = chosen.ok_or(SessionStoreFull)?.key;
        entries.remove(&key).ok_or(SessionStoreFull)
    }

    /// The session with this id, if it is this caller's, or becomes it.
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

    /// A session that nobody in particular opened becomes that of the first known caller that names it:
    /// clients connect first and get a token when a call needs one. It stays whose it is from then on.
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

    /// All sessions, as of now.
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

    /// Ends what has expired. A session with a call or a reader is in use, however old its last request.
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

    /// Ends the streams that would stay open: the server goes away.
    pub(crate) fn end_streams(&self) {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        for entry in entries.values() {
            entry.end_streams();
        }
    }
}

/// A new id that cannot be guessed, and how clients spell it. `None` without randomness.
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

    /// Whose it is. Nobody else may use it.
    pub(crate) fn owner(&self) -> &Caller {
        self.adopted_by.get().unwrap_or_else(|| self.session.caller())
    }

    /// Cuts off whoever reads the streams that no call writes to: nobody has shown that it is the caller.
    /// What is said from now on waits for the client to come back with its token.
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

    /// Keeps a stream that can be taken up again; its number names it. The oldest one that has ended
    /// makes room; `None` if there is none.
    pub(crate) fn keep_stream(&self, stream: &Arc<MessageStream>, of_call: bool, most: usize) -> Option<u32> {
        let mut streams = self.streams();
        if streams.kept.len() >= most {
            // One that has ended, or one that nobody reads and no call writes to.
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

    /// Whether a call runs or a stream is read.
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
