//! [`HostError`]: why an app does not run.

use std::io;

use crate::custom_handler::HandlerStartError;
use crate::host::empty_app::FunctionSearch;
use crate::host::keys::KeysError;
use crate::problem::AppError;
use crate::setup::SetupError;
use crate::worker::WorkerStartError;

/// The reason why an app does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The app's files are invalid.
    #[error(transparent)]
    App(#[from] AppError),
    /// The app could not be prepared.
    #[error("{}", with_fix(.0))]
    Setup(#[from] SetupError),
    /// The worker did not start.
    #[error(transparent)]
    Start(#[from] WorkerStartError),
    /// The custom handler, or the server of a self-hosted app, did not start.
    #[error(transparent)]
    Handler(#[from] HandlerStartError),
    /// No worker supports the app's language.
    #[error(
        "no built-in worker supports {language}\n  fix: name a folder with such a worker, with --workers DIR \
         or the setting languageWorkers__{language}__workerDirectory"
    )]
    NoWorker {
        /// The name of the language.
        language: String,
    },
    /// The runtime is `custom`, but `host.json` names no handler.
    #[error(
        "FUNCTIONS_WORKER_RUNTIME is custom, but host.json has no customHandler\n  fix: add \"customHandler\": \
         {{\"description\": {{\"defaultExecutablePath\": \"…\"}}}} to host.json"
    )]
    NoHandler,
    /// A self-hosted app cannot be served over stdio.
    #[error(
        "the app is a server of its own that speaks HTTP, so bindpost cannot serve it over stdio\n  fix: run it without \
         --stdio, and give the client the URL that the start screen shows"
    )]
    SelfHostedStdio,
    /// No functions were found. The worker's console may show the reason.
    #[error("no functions were found: {search}{}", console_excerpt(console))]
    NoFunctions {
        /// Where they were searched.
        search: FunctionSearch,
        /// The last lines of the worker's console.
        console: Vec<String>,
    },
    /// Functions were found, but none can be served.
    #[error("none of the app's functions can be served:\n  {}", reasons.join("\n  "))]
    NothingToServe {
        /// The reason for each function.
        reasons: Vec<String>,
    },
    /// The built-in worker could not be written to a temporary folder.
    #[error("the built-in worker cannot be written to a temporary folder: {0}")]
    Unpack(io::Error),
    /// The keys cannot be read or created.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The address could not be served.
    #[error(transparent)]
    Serve(#[from] io::Error),
    /// Workers exited too often.
    #[error("the app does not keep running: {0}")]
    Failed(String),
    /// The MCP server could not be built.
    #[error("{0}")]
    Server(String),
}

fn console_excerpt(console: &[String]) -> String {
    match console {
        [] => String::new(),
        lines => format!("\n  the last lines of the worker's console:\n    {}", lines.join("\n    ")),
    }
}

fn with_fix(error: &SetupError) -> String {
    match error.fix() {
        Some(fix) => format!("{error}\n  fix: {fix}"),
        None => error.to_string(),
    }
}
