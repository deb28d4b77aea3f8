//! Language workers: processes that run the functions of an app, the stream to each of them, and their pool.
//!
//! Read `pool.rs` first. `pool/` starts workers, waits until they connect (`arrivals.rs`) and replaces those that end
//! (`supervise.rs`). `process/` is the operating system's side: how a worker is launched, its console, its folders.
//! `channel/` is one stream to one worker: invocations that are sent and answered. `wire/` is what travels on it: gRPC for
//! public workers, frames of JSON for ours. Wire types do not leave that folder.

mod channel;
mod error;
mod events;
mod limits;
mod pool;
mod process;
mod wire;

/// The generated message types, for tests that play the worker.
#[doc(hidden)]
pub use wire::proto;

pub use error::{ConsoleTail, InvocationError, StartStep, WorkerStartError};
pub use events::{
    ConsoleLine, ConsoleSource, LogOrigin, LogRecord, LogSeverity, NoEvents, WorkerDetails, WorkerEvents,
    WorkerNumber,
};
pub use limits::WorkerLimits;
pub use pool::{LoadResults, PoolHealth, PreparedWorker, WorkerPool};
pub(crate) use process::console::ProcessConsole;
pub use process::launch::WorkerLaunch;
pub use process::own::{BundledWorker, UnpackedWorker};
pub use process::private_folder::PrivateFolder;
pub(crate) use process::{ChildProcess, ProcessExit, StopSignal};
pub use wire::framing::Framing;
#[doc(hidden)]
pub use wire::framing::cut_frames;
pub use wire::indexing::{IndexedFunction, IndexingResult};
