//! Why an app does not run.

use std::io;

use crate::keys::KeysError;
use crate::problem::AppError;
use crate::setup::SetupError;
use crate::worker::WorkerStartError;

/// Why an app does not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Its files have mistakes.
    #[error(transparent)]
    App(#[from] AppError),
    /// It could not be made ready.
    #[error("{}", with_fix(.0))]
    Setup(#[from] SetupError),
    /// Its worker did not start.
    #[error(transparent)]
    Start(#[from] WorkerStartError),
    /// There is no worker for its language.
    #[error(
        "there is no built-in worker for {language}\n  fix: name a folder of workers that has one, with --workers DIR \
         or the setting languageWorkers__{language}__workerDirectory"
    )]
    NoWorker {
        /// The language.
        language: String,
    },
    /// The runtime is `custom`, and nothing says what to start.
    #[error(
        "FUNCTIONS_WORKER_RUNTIME is custom, and host.json has no customHandler\n  fix: add \"customHandler\": \
         {{\"description\": {{\"defaultExecutablePath\": \"…\"}}}} to host.json"
    )]
    NoHandler,
    /// Nothing was found, and the worker may have said why.
    #[error("no functions were found{}", console_excerpt(console))]
    NoFunctions {
        /// The last lines of the worker's console.
        console: Vec<String>,
    },
    /// What was found cannot be served.
    #[error("none of the app's functions can be served:\n  {}", reasons.join("\n  "))]
    NothingToServe {
        /// Why, function by function.
        reasons: Vec<String>,
    },
    /// Our own worker could not be written to a temporary folder.
    #[error("the built-in worker cannot be written to a temporary folder: {0}")]
    Unpack(io::Error),
    /// The keys cannot be read or made.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The address could not be served.
    #[error(transparent)]
    Serve(#[from] io::Error),
    /// Workers ended again and again.
    #[error("the app does not stay up: {0}")]
    Failed(String),
    /// The server does not come together.
    #[error("{0}")]
    Server(String),
}

fn console_excerpt(console: &[String]) -> String {
    match console {
        [] => "\n  fix: give the folder that has function_app.py, or whose package.json names the functions in `main`"
            .to_owned(),
        lines => format!("; the worker said:\n    {}", lines.join("\n    ")),
    }
}

fn with_fix(error: &SetupError) -> String {
    match error.fix() {
        Some(fix) => format!("{error}\n  fix: {fix}"),
        None => error.to_string(),
    }
}
