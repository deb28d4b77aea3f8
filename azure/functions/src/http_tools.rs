//! Functions with an HTTP trigger as tools: `extensions.mcp.httpTools` of `host.json`.
//!
//! At the start of an app: `document.rs` finds the OpenAPI document of the app, `plan.rs` finds the function of each of its
//! operations and decides which of them are tools, and `synthesis.rs` describes functions that the document does not have,
//! by their routes and docstrings (`docstring.rs`).
//!
//! One call: the bridge of `mcp/openapi` checks the arguments and builds a request → `requests.rs` runs the function, in this
//! process → the bridge converts the response to a result. The key of the function is not checked, because the owner of the
//! app has made it a tool. A request that belongs to another function is rejected.

mod docstring;
mod document;
mod plan;
mod requests;
mod synthesis;

pub(crate) use self::document::document_files;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bindpost_mcp_openapi::{Bridge, BridgeError, Document, OperationSelection, Upstream, UpstreamLimits};
use bindpost_mcp_protocol::Tool;
use bindpost_mcp_server::Entry;

use self::requests::{FunctionRequests, OwnAddress};
use crate::app::{App, TaskConfig};
use crate::function::Function;
use crate::host::report::{AppReport, AppWarning};
use crate::invocation::FunctionRunner;
use crate::routes::front::AppRoutes;

/// The maximum size of the body of an error response in the error of a tool.
const ERROR_BODY: usize = 4 * 1024;
/// The maximum size of a result in text. A longer list is cut.
const ANSWER_BYTES: usize = 1 << 20;
/// The time limit of a request. `functionTimeout` ends it earlier.
const LONGEST_CALL: Duration = Duration::from_secs(365 * 24 * 3600);

/// The functions of an app that are tools by their HTTP triggers.
#[derive(Debug, Default)]
pub(crate) struct HttpTools {
    /// All operations of the app's document, also those that are not tools: no argument may address them.
    document: Arc<Document>,
    /// The function of each operation that is a tool, by the id of the operation.
    functions: Arc<HashMap<String, Arc<Function>>>,
    address: OwnAddress,
}

/// A tool by an HTTP trigger.
#[derive(Debug)]
pub(crate) struct HttpTool {
    pub(crate) definition: Tool,
    pub(crate) function: Arc<Function>,
    /// The methods and the path of its operation.
    pub(crate) operation: String,
}

impl HttpTools {
    /// Finds the tools of an app. Problems are added to the report.
    pub(crate) async fn find(
        app: &App,
        runner: &Arc<FunctionRunner>,
        routes: &Arc<AppRoutes>,
        report: &mut AppReport,
    ) -> HttpTools {
        let address = OwnAddress::of_app(app);
        let config = &app.host.mcp.http_tools;
        if config.include.is_none() {
            return HttpTools::default();
        }
        let document = match document::find(app, runner, routes, &address).await {
            Ok(document) => document,
            Err(warning) => {
                report.warnings.push(warning);
                return HttpTools::default();
            }
        };
        let plan::ToolPlan { document, functions, warnings } = plan::select(config, document, routes);
        report.warnings.extend(warnings);
        let mut tools = HttpTools { document: Arc::new(document), functions: Arc::new(functions), address };
        tools.leave_out_clashes(runner, routes, report);
        tools
    }

    /// Returns the tools as entries of the server's catalog.
    pub(crate) fn entries(
        &self,
        runner: &Arc<FunctionRunner>,
        routes: &Arc<AppRoutes>,
        tasks: &TaskConfig,
    ) -> Vec<Entry> {
        let Some(bridge) = self.bridge(runner, routes) else { return Vec::new() };
        let names: Vec<String> = bridge.definitions().iter().map(|tool| tool.name.clone()).collect();
        let entry = |(entry, name): (Entry, String)| match entry {
            Entry::Tool(tool) => tool.task(tasks.support_name(&name)).timeout(None).into(),
            other => other,
        };
        bridge.tools().into_iter().zip(names).map(entry).collect()
    }

    /// Returns the tools in the order of the document.
    pub(crate) fn list(&self, runner: &Arc<FunctionRunner>, routes: &Arc<AppRoutes>) -> Vec<HttpTool> {
        let Some(bridge) = self.bridge(runner, routes) else { return Vec::new() };
        let tool = |(operation, definition): (&bindpost_mcp_openapi::Operation, &Tool)| {
            let methods: Vec<&str> = operation.methods().map(http::Method::as_str).collect();
            Some(HttpTool {
                definition: definition.clone(),
                function: self.functions.get(&operation.id)?.clone(),
                operation: format!("{} {}", methods.join(","), operation.path),
            })
        };
        bridge.operations().zip(bridge.definitions()).filter_map(tool).collect()
    }

    /// Leaves out tools whose name an earlier tool has. Case is ignored, as in calls.
    fn leave_out_clashes(
        &mut self,
        runner: &Arc<FunctionRunner>,
        routes: &Arc<AppRoutes>,
        report: &mut AppReport,
    ) {
        let mut taken: HashMap<String, String> =
            report.tools.iter().map(|tool| (tool.name.to_lowercase(), tool.function.clone())).collect();
        let mut clashing = Vec::new();
        let Some(bridge) = self.bridge(runner, routes) else { return };
        for (operation, tool) in bridge.operations().zip(bridge.definitions()) {
            let Some(function) = self.functions.get(&operation.id) else { continue };
            match taken.get(&tool.name.to_lowercase()) {
                None => drop(taken.insert(tool.name.to_lowercase(), function.name.clone())),
                Some(other) => {
                    let message = format!(
                        "function {}: the tool {} of its HTTP trigger is left out: function {other} has a tool with this name",
                        function.name, tool.name
                    );
                    let fix = "rename one of the two; upper and lower case are the same";
                    report.warnings.push(AppWarning::new(message).fix(fix));
                    clashing.push(operation.id.clone());
                }
            }
        }
        if !clashing.is_empty() {
            let mut functions = (*self.functions).clone();
            functions.retain(|operation, _| !clashing.contains(operation));
            self.functions = Arc::new(functions);
        }
    }

    /// Returns a bridge to the functions. It holds the runner, so it must not live longer than the entries of the catalog.
    fn bridge(&self, runner: &Arc<FunctionRunner>, routes: &Arc<AppRoutes>) -> Option<Bridge> {
        if self.functions.is_empty() {
            return None;
        }
        let requests = FunctionRequests::new(
            runner.clone(),
            routes.clone(),
            self.functions.clone(),
            self.address.clone(),
        );
        let limits = UpstreamLimits { total: LONGEST_CALL, tries: 1, ..UpstreamLimits::default() };
        let upstream = Upstream::handled_by(Arc::new(requests), self.address.base(), limits);
        let ids = self.functions.keys();
        let selection = ids.fold(OperationSelection::all(), |selection, id| selection.allow(id));
        let bridge = upstream.map_err(|error| error.to_string()).and_then(|upstream| {
            let builder = Bridge::builder(self.document.clone(), upstream);
            let builder = builder.select(selection).list_budget(usize::MAX).answer_budget(ANSWER_BYTES);
            let built =
                builder.error_body(ERROR_BODY).detect_objects().confirms(false).scheme("function").build();
            built.map_err(|error: BridgeError| error.to_string())
        });
        bridge
            .inspect_err(|error| tracing::error!(target: "host", "the HTTP tools are not served: {error}"))
            .ok()
    }
}
