//! Finds and reads the OpenAPI document of an app.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_openapi::{Document, LoadOptions};
use bytes::Bytes;
use http::header::HOST;
use http::{Request, StatusCode};

use super::requests::OwnAddress;
use crate::app::App;
use crate::host::console::ConsoleLogSink;
use crate::host::report::AppWarning;
use crate::invocation::{FunctionRunner, TraceContext};
use crate::routes::front::{AppRoutes, WholeRequest};

/// The names of documents that are found beside `host.json`.
const FILES: [&str; 3] = ["openapi.json", "openapi.yaml", "swagger.json"];
/// How long the app may take to answer with its document.
const ANSWER: Duration = Duration::from_secs(60);

/// Returns the files that may have the document of an app. They may not exist.
pub(crate) fn document_files(app: &App) -> Vec<PathBuf> {
    let config = &app.host.mcp.http_tools;
    if config.include.is_none() {
        return Vec::new();
    }
    let named = config.openapi.iter().map(String::as_str).filter(|file| !file.starts_with('/'));
    FILES.into_iter().chain(named).map(|file| app.folder.join(file)).collect()
}

/// Returns the document of an app, or `None` if it has none. An error is a warning for the operator, because the tools are
/// then left out.
pub(super) async fn find(
    app: &App,
    runner: &Arc<FunctionRunner>,
    routes: &Arc<AppRoutes>,
    address: &OwnAddress,
) -> Result<Option<Document>, AppWarning> {
    let named = app.host.mcp.http_tools.openapi.as_deref();
    let read = match named {
        Some(path) if path.starts_with('/') => {
            let text = fetch(path, runner, routes, address).await;
            text.and_then(|text| Document::parse(&text, path).map_err(|error| error.to_string())).map(Some)
        }
        Some(file) => load(app, file).map(Some),
        None => match FILES.iter().find(|file| app.folder.join(file).is_file()) {
            Some(file) => load(app, file).map(Some),
            None => Ok(None),
        },
    };
    read.map_err(|error| {
        let (error, fix) = match error.split_once("\n  fix: ") {
            Some((error, fix)) => (error, fix),
            None => (error.as_str(), "correct the document, or remove it"),
        };
        let message =
            format!("no HTTP function is a tool, because the OpenAPI document cannot be read: {error}");
        AppWarning::new(message).fix(fix)
    })
}

fn load(app: &App, file: &str) -> Result<Document, String> {
    let path = app.folder.join(file);
    if !path.is_file() {
        let fix = "name a file, relative to the folder of host.json, in extensions.mcp.httpTools.openapi";
        return Err(format!("the file {file} does not exist\n  fix: {fix}"));
    }
    Document::load(&[path], &LoadOptions::default()).map_err(|error| error.to_string())
}

/// Returns the document that the app itself answers with, as FastAPI does.
async fn fetch(
    path: &str,
    runner: &Arc<FunctionRunner>,
    routes: &Arc<AppRoutes>,
    address: &OwnAddress,
) -> Result<String, String> {
    let request = Request::get(format!("{}{path}", address.base())).header(HOST, address.host()).body(());
    let request = request.map_err(|error| format!("{path} is not a path: {error}"))?;
    let (parts, ()) = request.into_parts();
    let found = routes.table.find(&parts.method, parts.uri.path());
    let found = found.ok_or_else(|| {
        format!("no function answers GET {path}\n  fix: write the path with the prefix of routes, such as /api/openapi.json")
    })?;
    let function = found.route.function.clone();
    let logs = ConsoleLogSink { levels: &runner.log_levels, function: &function.name };
    let is_secure = address.is_secure();
    let request = WholeRequest { parts, is_secure, body: Bytes::new(), trace: TraceContext::default() };
    let answer = tokio::time::timeout(ANSWER, routes.respond(runner, found, request, &logs)).await;
    let answer = answer.map_err(|_| format!("function {} does not answer GET {path}", function.name))?;
    if answer.status() != StatusCode::OK {
        return Err(format!(
            "function {} answers GET {path} with status {}",
            function.name,
            answer.status().as_u16()
        ));
    }
    String::from_utf8(answer.into_body().into()).map_err(|_| format!("the answer to GET {path} is not UTF-8"))
}
