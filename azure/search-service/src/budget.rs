//! What one request may take: memory, time, and a turn among the others.
//!
//! A [`Budget`] is made for each HTTP request and handed to everything that works for it. Work asks it for memory that
//! grows with documents or with what the client sent, and looks at it in every loop over documents, terms and vectors.
//! It ends the work when its client is gone, its time is over or its memory is used up.
//!
//! The callbacks of tantivy cannot fail, so work that is to end unwinds, and [`Budget::run`] catches that and nothing
//! else. `resume_unwind` runs no panic hook: such an end is neither logged nor printed as a panic.

mod pool;
mod turns;

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;

use crate::ApiError;

pub use self::turns::WorkKind;

use self::pool::MemoryPool;
use self::turns::ConcurrencyLimits;

/// What requests may take, one by one and together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestLimits {
    /// For the work on a search, suggestion, completion, look-up, count or analysis, its wait for a turn included and the
    /// commit of documents that came before it aside.
    /// Beyond it: 503. 10 s. Batches and definitions wait so long for their turn, and are then finished.
    pub time: Duration,
    /// The memory that one request may take, its answer included. Beyond it: 400. 128 MiB.
    pub bytes: usize,
    /// The same for all requests together, answers that clients have not read yet included. Beyond it: 503 with
    /// `Retry-After`. 512 MiB.
    pub all_bytes: usize,
    /// Bodies of requests that are being received or worked on, those of up to 64 KiB aside. Beyond it: 503 with
    /// `Retry-After`. 256 MiB.
    pub all_body_bytes: usize,
    /// Searches, suggestions, completions, analyses and retrievals that run at the same time; further ones wait.
    /// Twice the processors, at least 4.
    pub searches: usize,
    /// The same for look-ups, counts, statistics and states of indexers. 16.
    pub reads: usize,
    /// The same for batches and changes of definitions. 8.
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

/// Bodies up to this size are not counted: the number of connections bounds them.
const SMALL_BODY: usize = 64 << 10;

/// Makes the budgets of all requests of a service.
pub struct ServiceBudget {
    limits: RequestLimits,
    memory: Arc<MemoryPool>,
    bodies: Arc<MemoryPool>,
    turns: Arc<ConcurrencyLimits>,
}

impl ServiceBudget {
    pub fn new(limits: RequestLimits) -> Self {
        Self {
            memory: Arc::new(MemoryPool::new(limits.all_bytes)),
            bodies: Arc::new(MemoryPool::new(limits.all_body_bytes)),
            turns: Arc::new(ConcurrencyLimits::new(&limits)),
            limits,
        }
    }

    /// The budget of one request.
    pub fn new_request_budget(&self) -> Budget {
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

/// The budget of one request. Clones are the same budget; what it has taken is given back when the last one is gone.
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

/// What work unwinds with. Boxed: unwinding carries one pointer.
struct BudgetAbort(ApiError);

impl Budget {
    /// A budget without limits, for work that no client asks for.
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

    /// Ends the work if its client is gone or its time is over. Costs as much as reading a variable.
    #[inline]
    pub fn check(&self) {
        if self.0.stopped.load(Ordering::Relaxed) != RUNNING {
            self.end();
        }
    }

    #[cold]
    fn end(&self) -> ! {
        let seconds = self.0.time.as_secs_f64();
        // A client that is gone does not read it.
        unwind(ApiError::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "RequestTimeout",
            format!(
                "The request took longer than {seconds} seconds and was stopped. Let it look at fewer documents with a \
                 more selective filter, or ask for less: fewer clauses, facets, patterns and vector queries."
            ),
        ))
    }

    /// Takes memory for the rest of the request, or ends the work when there is no more for it.
    pub fn take_memory(&self, bytes: usize) {
        if let Err(error) = self.try_take_memory(bytes) {
            unwind(error);
        }
    }

    /// The same where an error can be returned.
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

    /// Gives back what was taken.
    fn release_memory(&self, bytes: usize) {
        self.0.taken.fetch_sub(bytes, Ordering::Relaxed);
        self.0.memory.give(bytes);
    }

    /// Takes memory until the value is dropped.
    pub fn reserve_memory(&self, bytes: usize) -> MemoryReservation {
        self.take_memory(bytes);
        MemoryReservation { budget: self.clone(), bytes }
    }

    /// Takes memory for a part of the request's own body.
    pub fn take_body(&self, bytes: usize) -> Result<(), ApiError> {
        let before = self.0.body.fetch_add(bytes, Ordering::Relaxed);
        // The pool has what is above the small size.
        let counted = |length: usize| length.saturating_sub(SMALL_BODY);
        let more = counted(before.saturating_add(bytes)) - counted(before);
        if self.0.bodies.try_take(more) {
            return Ok(());
        }
        self.0.body.fetch_sub(bytes, Ordering::Relaxed);
        Err(service_busy())
    }

    /// Does the work of a request, and ends it with the error that this budget ends it with.
    pub fn run<T>(&self, work: impl FnOnce() -> Result<T, ApiError>) -> Result<T, ApiError> {
        // What the work has left half done is dropped with it: it changes nothing that others see.
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

/// Memory that is given back when this is dropped.
#[must_use = "the memory is given back when this is dropped"]
#[derive(Debug)]
pub struct MemoryReservation {
    budget: Budget,
    bytes: usize,
}

impl MemoryReservation {
    /// Takes some more.
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

/// A text that is being written, and takes memory as it grows.
#[derive(Debug)]
pub struct JsonBuffer {
    /// To be [settled](JsonBuffer::settle) after every part of it.
    pub bytes: Vec<u8>,
    memory: MemoryReservation,
}

impl JsonBuffer {
    pub fn new(budget: &Budget) -> Self {
        Self { bytes: Vec::new(), memory: budget.reserve_memory(0) }
    }

    /// Takes what the text has grown by.
    pub fn account_growth(&mut self) {
        if self.bytes.capacity() > self.memory.bytes {
            self.memory.grow(self.bytes.capacity() - self.memory.bytes);
        }
    }

    /// Writes a comma if there is something before it.
    pub fn write_separator(&mut self) {
        if !self.bytes.is_empty() {
            self.bytes.push(b',');
        }
    }

    /// Writes a value behind a comma.
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

/// The body of an answer keeps its memory until the client has it.
impl From<JsonBuffer> for Bytes {
    fn from(text: JsonBuffer) -> Self {
        Self::from_owner(text)
    }
}

/// About how much memory a JSON text takes once it is parsed.
pub fn parsed_bytes(json: &[u8]) -> usize {
    let cost = |byte: &u8| match byte {
        b',' | b'[' | b'{' => 40,
        // Members of objects: a name and a part of a tree's node.
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
        "The request needs more than {} MiB of memory. Ask for fewer facets or give them a smaller count, select fewer \
         fields, lower $top and $skip, or send less at once.",
        limit >> 20
    ))
}

/// More requests than the service has room for; the next moment may be better.
fn service_busy() -> ApiError {
    ApiError::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "ServiceUnavailable",
        "The service has more requests at work than it has room for. Send the request again in a moment.",
    )
}

#[cfg(test)]
mod tests;
