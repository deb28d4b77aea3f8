//! Search as code: the definitions of a service as files, what differs, tests of relevance, and changes
//! that continue or roll back after a crash.
//!
//! Files, in reading order: `kinds.rs` (the kinds of definitions and their folders), `folder.rs` and `settings.rs` (the
//! files), `canonical.rs`, `defaults.rs`, `print.rs` and `secrets.rs` (the readable form of a definition), `names.rs`
//! (versions of an index behind aliases), `live.rs` (what a service has), `pull.rs`, `plan/` (what differs, what each
//! change needs, and the steps), `push/` (the journal of steps, running and undoing them), `relevance/` (judged queries),
//! `checks.rs` (results as JUnit, JSON and Markdown), and `transfer/` (export and import of documents).
//!
//! Nothing here prints, reads the environment, or knows MCP.

mod canonical;
mod checks;
mod defaults;
mod failure;
mod files;
mod folder;
mod kinds;
mod live;
mod names;
mod plan;
mod print;
mod pull;
mod push;
mod relevance;
mod secrets;
mod settings;
mod transfer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

pub use checks::{CheckOutcome, CheckReport, CheckSuite, SuiteCheck};
pub use failure::CodeError;
pub use folder::SearchFolder;
pub use kinds::CodeKind;
pub use plan::{ChangeAction, PlanDifference, PlanOptions, PlanSummary, ResourceChange, SearchPlan, plan};
pub use pull::{PullOptions, PullReport, PulledFile, pull};
pub use push::{PushOptions, PushReport, PushState, interrupted, push, roll_back};
pub use relevance::{RelevanceOptions, accept, test_folder};
pub use transfer::{ExportOptions, ExportReport, ImportAction, ImportOptions, ImportReport, export, import};

/// Returns the value of an environment variable that a file refers to.
pub type SecretLookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// How far a long operation is.
#[derive(Clone, Debug)]
pub struct ProgressUpdate {
    /// What is being done, such as `copy hotels-v1 to hotels-v2`.
    pub what: String,
    pub done: u64,
    pub total: Option<u64>,
    /// What is counted: `documents`, `bytes`, `steps` or `queries`.
    pub unit: &'static str,
}

/// What long operations report to, and how they are stopped.
#[derive(Clone)]
pub struct RunControl {
    progress: Arc<dyn Fn(ProgressUpdate) + Send + Sync>,
    stopped: Arc<AtomicBool>,
}

impl Default for RunControl {
    fn default() -> Self {
        RunControl::new(|_| {})
    }
}

impl RunControl {
    pub fn new(progress: impl Fn(ProgressUpdate) + Send + Sync + 'static) -> RunControl {
        RunControl { progress: Arc::new(progress), stopped: Arc::default() }
    }

    /// Stops the operation at its next step. A push rolls back; an import and an export can be continued.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::SeqCst)
    }

    fn check_stopped(&self) -> Result<(), CodeError> {
        if self.is_stopped() { Err(CodeError::Stopped) } else { Ok(()) }
    }

    fn report(&self, what: impl Into<String>, done: u64, total: Option<u64>, unit: &'static str) {
        (self.progress)(ProgressUpdate { what: what.into(), done, total, unit });
    }
}
