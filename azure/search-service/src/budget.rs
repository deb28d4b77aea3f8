//! Limits of memory, time and concurrency for each request.
//!
//! A [`Budget`] is created for each HTTP request and passed to all code that works for it. The code
//! reserves memory that grows with the number of documents or with the size of the request. It also
//! checks the budget in every loop over documents, terms and vectors. The budget stops the work when the
//! client disconnects, the time limit passes or the memory is used up.
//!
//! The callbacks of tantivy cannot return errors. The work is therefore stopped by unwinding, and
//! [`Budget::run`] catches only these unwinds. `resume_unwind` runs no panic hook, so a stopped request
//! is not logged or printed as a panic.

mod pool;
mod turns;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use bindpost_azure_search_model::ApiError;
use bytes::Bytes;
use http::StatusCode;

pub(crate) use self::turns::WorkKind;

use self::pool::MemoryPool;
use self::turns::ConcurrencyLimits;

/// Limits for one request and for all requests together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLimits {
    /// Time limit for a search, suggestion, completion, look-up, count or analysis. It includes the wait
    /// for a free slot. It excludes the commit of documents that were written earlier. A request over the
    /// limit gets 503. Batches and definitions wait at most this long for a slot and then always finish.
    /// Default: 10 s.
    pub time: Duration,
    /// Memory limit of one request, including its response. A request over the limit gets 400. Default:
    /// 128 MiB.
    pub bytes: usize,
    /// Memory limit of all requests together, including responses that clients have not read yet. A
    /// request over the limit gets 503 with `Retry-After`. Default: 512 MiB.
    pub all_bytes: usize,
    /// Memory limit of the request bodies that are being received or processed. Bodies of up to 64 KiB
    /// are not included. A request over the limit gets 503 with `Retry-After`. Default: 256 MiB.
    pub all_body_bytes: usize,
    /// How many searches, suggestions, completions, analyses and retrievals run at the same time. Further
    /// requests wait. Default: twice the number of processors, at least 4.
    pub searches: usize,
    /// How many look-ups, counts, statistics and indexer status requests run at the same time. Default: 16.
    pub reads: usize,
    /// How many batches and changes of definitions run at the same time. Default: 8.
    pub writes: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        Self {
            time: Duration::from_secs(10),
            bytes: 128 << 20,
            all_bytes: 512 << 20,
            all_body_bytes: 256 << 20,
            searches: (2 * processors).max(4),
            reads: 16,
            writes: 8,
        }
    }
}

/// Bodies up to this size are not counted. The maximum number of connections limits them.
const SMALL_BODY: usize = 64 << 10;

/// Creates the budgets of all requests of a service.
pub(crate) struct ServiceBudget {
    limits: RequestLimits,
    memory: Arc<MemoryPool>,
    bodies: Arc<MemoryPool>,
    turns: Arc<ConcurrencyLimits>,
}

impl ServiceBudget {
    pub(crate) fn new(limits: RequestLimits) -> Self {
        Self {
            memory: Arc::new(MemoryPool::new(limits.all_bytes)),
            bodies: Arc::new(MemoryPool::new(limits.all_body_bytes)),
            turns: Arc::new(ConcurrencyLimits::new(&limits)),
            limits,
        }
    }

    /// Creates the budget of one request.
    pub(crate) fn new_request_budget(&self) -> Budget {
        Budget(Arc::new(BudgetState {
            stopped: AtomicU8::new(RUNNING),
            time: self.limits.time,
            limit: self.limits.bytes,
            taken: AtomicUsize::new(0),
            body: AtomicUsize::new(0),
            memory: Arc::clone(&self.memory),
            bodies: Arc::clone(&self.bodies),
            turns: Arc::clone(&self.turns),
        }))
    }
}

/// The budget of one request. Clones share the same budget. Its memory is released when the last clone
/// is dropped.
#[derive(Clone)]
pub struct Budget(Arc<BudgetState>);

struct BudgetState {
    stopped: AtomicU8,
    time: Duration,
    limit: usize,
    taken: AtomicUsize,
    body: AtomicUsize,
    memory: Arc<MemoryPool>,
    bodies: Arc<MemoryPool>,
    turns: Arc<ConcurrencyLimits>,
}

const RUNNING: u8 = 0;
const CLIENT_GONE: u8 = 1;
const TIME_OVER: u8 = 2;

/// The payload that stopped work unwinds with.
struct BudgetAbort(ApiError);

impl Budget {
    /// Creates a budget without limits, for work that no client requested.
    pub fn unlimited() -> Self {
        let limits = RequestLimits {
            time: Duration::MAX,
            bytes: usize::MAX,
            all_bytes: usize::MAX,
            all_body_bytes: usize::MAX,
            ..RequestLimits::default()
        };
        ServiceBudget::new(limits).new_request_budget()
    }

    /// Stops the work if the client has disconnected or the time limit has passed. The check costs as
    /// much as reading a variable.
    #[inline]
    pub fn check(&self) {
        if self.0.stopped.load(Ordering::Relaxed) != RUNNING {
            self.end();
        }
    }

    #[cold]
    fn end(&self) -> ! {
        let seconds = self.0.time.as_secs_f64();
        // A disconnected client never receives this error.
        unwind(ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "RequestTimeout",
            format!(
                "The request took longer than {seconds} seconds and was stopped. Use a more \
                 selective filter, or send fewer clauses, facets, patterns and vector queries."
            ),
        ))
    }

    /// Reserves memory until the request ends. Stops the work when the limit is reached.
    pub fn take_memory(&self, bytes: usize) {
        if let Err(error) = self.try_take_memory(bytes) {
            unwind(error);
        }
    }

    /// Reserves memory until the request ends. Returns an error when the limit is reached.
    pub fn try_take_memory(&self, bytes: usize) -> Result<(), ApiError> {
        let inner = &*self.0;
        let before = inner.taken.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > inner.limit {
            inner.taken.fetch_sub(bytes, Ordering::Relaxed);
            return Err(too_large(inner.limit));
        }
        if !inner.memory.try_take(bytes) {
            inner.taken.fetch_sub(bytes, Ordering::Relaxed);
            return Err(service_busy());
        }
        Ok(())
    }

    /// Releases reserved memory.
    fn release_memory(&self, bytes: usize) {
        self.0.taken.fetch_sub(bytes, Ordering::Relaxed);
        self.0.memory.give(bytes);
    }

    /// Reserves memory until the returned value is dropped.
    pub fn reserve_memory(&self, bytes: usize) -> MemoryReservation {
        self.take_memory(bytes);
        MemoryReservation { budget: self.clone(), bytes }
    }

    /// Reserves memory for a part of the request body.
    pub fn take_body(&self, bytes: usize) -> Result<(), ApiError> {
        let before = self.0.body.fetch_add(bytes, Ordering::Relaxed);
        // The pool counts only the bytes above the size of a small body.
        let counted = |length: usize| length.saturating_sub(SMALL_BODY);
        let more = counted(before.saturating_add(bytes)) - counted(before);
        if self.0.bodies.try_take(more) {
            return Ok(());
        }
        self.0.body.fetch_sub(bytes, Ordering::Relaxed);
        Err(service_busy())
    }

    /// Runs the work of a request. Returns the error of this budget if the budget stops the work.
    pub fn run<T>(&self, work: impl FnOnce() -> Result<T, ApiError>) -> Result<T, ApiError> {
        // Unfinished work is dropped by the unwind. It has changed no shared state.
        let done = catch_unwind(AssertUnwindSafe(|| {
            self.check();
            work()
        }));
        done.unwrap_or_else(|panic| match panic.downcast::<BudgetAbort>() {
            Ok(ended) => Err(ended.0),
            Err(panic) => resume_unwind(panic),
        })
    }

    fn stop(&self, reason: u8) {
        self.0.stopped.store(reason, Ordering::Relaxed);
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.0.taken.load(Ordering::Relaxed);
        formatter.debug_struct("Budget").field("taken", &taken).finish_non_exhaustive()
    }
}

impl Drop for BudgetState {
    fn drop(&mut self) {
        self.memory.give(*self.taken.get_mut());
        self.bodies.give(self.body.get_mut().saturating_sub(SMALL_BODY));
    }
}

/// Reserved memory that is released when this value is dropped.
#[must_use = "the memory is released when this value is dropped"]
#[derive(Debug)]
pub struct MemoryReservation {
    budget: Budget,
    bytes: usize,
}

impl MemoryReservation {
    /// Reserves more memory.
    pub fn grow(&mut self, bytes: usize) {
        self.budget.take_memory(bytes);
        self.bytes += bytes;
    }
}

impl Drop for MemoryReservation {
    fn drop(&mut self) {
        self.budget.release_memory(self.bytes);
    }
}

/// JSON text under construction that reserves memory as it grows.
#[derive(Debug)]
pub struct JsonBuffer {
    /// The text. Call [`JsonBuffer::account_growth`] after each addition.
    pub bytes: Vec<u8>,
    memory: MemoryReservation,
}

impl JsonBuffer {
    pub fn new(budget: &Budget) -> Self {
        Self { bytes: Vec::new(), memory: budget.reserve_memory(0) }
    }

    /// Reserves memory for the growth of the text.
    pub fn account_growth(&mut self) {
        if self.bytes.capacity() > self.memory.bytes {
            self.memory.grow(self.bytes.capacity() - self.memory.bytes);
        }
    }

    /// Writes a comma if the text is not empty.
    pub fn write_separator(&mut self) {
        if !self.bytes.is_empty() {
            self.bytes.push(b',');
        }
    }

    /// Writes a comma if needed, then a value.
    pub fn push_json(&mut self, value: &serde_json::Value) {
        self.write_separator();
        self.bytes.extend_from_slice(value.to_string().as_bytes());
        self.account_growth();
    }
}

impl AsRef<[u8]> for JsonBuffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The body of a response keeps its memory until the client has received it.
impl From<JsonBuffer> for Bytes {
    fn from(text: JsonBuffer) -> Self {
        Self::from_owner(text)
    }
}

/// Estimates how much memory a JSON text needs after parsing.
pub(crate) fn parsed_bytes(json: &[u8]) -> usize {
    let cost = |byte: &u8| match byte {
        b',' | b'[' | b'{' => 40,
        // A member of an object needs a name and a part of a tree node.
        b':' => 100,
        _ => 1,
    };
    json.iter().map(cost).sum()
}

fn unwind(error: ApiError) -> ! {
    resume_unwind(Box::new(BudgetAbort(error)))
}

fn too_large(limit: usize) -> ApiError {
    ApiError::invalid(format!(
        "The request needs more than {} MiB of memory. Request fewer facets or a smaller count of values, select fewer \
         fields, lower $top and $skip, or send less at once.",
        limit >> 20
    ))
}

/// Returns the error for a request that exceeds the capacity of the service. The client may retry.
fn service_busy() -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "ServiceUnavailable",
        "The service is at its capacity and cannot accept the request now. Retry it in a moment.",
    )
}

#[cfg(test)]
mod tests;
