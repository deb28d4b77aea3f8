//! The errors of search as code.

use std::path::{Path, PathBuf};

use crate::service::failure::ServiceFailure;

/// An error of search as code. Its text contains the fix.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// Problems of the folder, each with its place and its fix.
    #[error("{}", numbered(.0))]
    Problems(Vec<String>),
    #[error("{what}: {}", told(failure))]
    Service { what: String, failure: Box<ServiceFailure> },
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    /// The change was refused, or another client changed the service meanwhile.
    #[error("{0}")]
    Refused(String),
    #[error("stopped")]
    Stopped,
}

impl CodeError {
    pub(crate) fn service(what: impl Into<String>) -> impl FnOnce(ServiceFailure) -> CodeError {
        let what = what.into();
        move |failure| CodeError::Service { what, failure: Box::new(failure) }
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(std::io::Error) -> CodeError + use<> {
        let path = path.to_owned();
        move |source| CodeError::File { path, source }
    }
}

fn numbered(problems: &[String]) -> String {
    match problems {
        [one] => one.clone(),
        several => {
            let list: Vec<String> = several.iter().map(|problem| format!("  - {problem}")).collect();
            format!("{} problems:\n{}", several.len(), list.join("\n"))
        }
    }
}

/// Returns the message of a failure, with its status and its hint.
fn told(failure: &ServiceFailure) -> String {
    let mut text = failure.message.clone();
    if let Some(status) = failure.status {
        text = format!("{text} ({status})");
    }
    match failure.more.get("hint").and_then(|hint| hint.as_str()) {
        Some(hint) => format!("{text}\n  fix: {hint}"),
        None => text,
    }
}
