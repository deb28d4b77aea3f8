//! Language workers: processes that run the functions of an app, the stream to each of them, and their pool.
//!
//! Read `pool.rs` first. A worker is started (`launch.rs`, `start.rs`) as a process (`process.rs`, `console.rs`). It
//! connects back (`grpc.rs` for public workers, `socket.rs` for our own, `arrivals.rs` for who may), and its stream
//! becomes a channel (`channel.rs`, `calls.rs`, `invoke.rs`). `supervise.rs` replaces workers that end. Wire types do
//! not leave this module: `typed_data.rs` and `indexing.rs` are the border.

mod arrivals;
mod calls;
mod channel;
mod console;
mod error;
mod events;
mod framing;
mod grpc;
mod indexing;
mod invocation_json;
mod invoke;
mod launch;
mod limits;
mod message;
mod outbox;
mod own;
mod parts;
mod pool;
mod private_folder;
mod process;
/// The generated message types, for tests that play the worker.
#[doc(hidden)]
pub mod proto;
mod socket;
mod start;
mod supervise;
mod typed_data;

pub(crate) use console::ProcessConsole;
pub use error::{ConsoleTail, InvocationError, StartStep, WorkerStartError};
pub use events::{
    ConsoleLine, ConsoleSource, LogOrigin, LogRecord, LogSeverity, NoEvents, WorkerDetails, WorkerEvents,
    WorkerNumber,
};
pub use framing::Framing;
#[doc(hidden)]
pub use framing::cut_frames;
pub use indexing::{IndexedFunction, IndexingResult};
pub use launch::WorkerLaunch;
pub use limits::WorkerLimits;
pub use own::{BundledWorker, UnpackedWorker};
pub use pool::{LoadResults, PoolHealth, PreparedWorker, WorkerPool};
pub use private_folder::PrivateFolder;
pub(crate) use process::{ChildProcess, ProcessExit, StopSignal};
