//! Language workers: the processes that run the functions of an app, their streams, and their pool.
//!
//! Read `pool.rs` first.
//!
//! - `pool/` starts workers, waits until they connect (`arrivals.rs`) and replaces them when they exit
//!   (`supervise.rs`).
//! - `process/` starts worker processes and owns their consoles and folders.
//! - `channel/` is one stream to one worker. It sends invocations and receives their responses.
//! - `http_stream.rs` is for HTTP functions whose requests are forwarded to a server in the worker.
//! - `wire/` encodes and decodes messages: gRPC for public workers, JSON frames for ours. Wire types are not
//!   used outside of `worker`.

mod channel;
mod error;
mod events;
mod http_stream;
mod limits;
mod pool;
mod process;
mod wire;

/// The generated message types, for tests that act as a worker.
#[doc(hidden)]
pub use wire::proto;

pub use error::{ConsoleTail, InvocationError, StartStep, WorkerStartError};
pub use events::{
    ConsoleLine, ConsoleSource, LogOrigin, LogRecord, LogSeverity, NoEvents, WorkerDetails, WorkerEvents,
    WorkerNumber,
};
pub use http_stream::{StreamSlot, StreamTarget};
pub use limits::WorkerLimits;
pub use pool::{LoadResults, PoolHealth, PreparedWorker, WorkerPool};
pub(crate) use process::console::ProcessConsole;
pub use process::launch::WorkerLaunch;
pub(crate) use process::own::{BundledFile, JAVA_CLASSES, JAVA_SOURCES};
pub use process::own::{BundledWorker, UnpackedWorker};
pub use process::private_folder::PrivateFolder;
pub(crate) use process::{ChildProcess, ProcessExit, StopSignal};
pub use wire::framing::Framing;
#[doc(hidden)]
pub use wire::framing::cut_frames;
pub use wire::indexing::{IndexedFunction, IndexingResult};
