//! Decides which functions and operations are tools.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bindpost_mcp_openapi::{Document, Operation, ParameterLocation};
use bindpost_mcp_server::nearest;
use http::HeaderName;

use super::requests::is_ours;
use super::synthesis::{self, SynthesizedOperation};
use crate::app::HttpToolConfig;
use crate::function::{AuthorizationLevel, Function};
use crate::host::report::AppWarning;
use crate::routes::FunctionRoute;
use crate::routes::front::AppRoutes;

/// The member of `host.json`, for messages.
const MEMBER: &str = "host.json: extensions.mcp.httpTools";

/// The operations of an app, and those that are tools.
#[derive(Debug, Default)]
pub(super) struct ToolPlan {
    pub(super) document: Document,
    /// The function of each operation that is a tool, by the id of the operation.
    pub(super) functions: HashMap<String, Arc<Function>>,
    pub(super) warnings: Vec<AppWarning>,
}

/// Selects the tools of an app.
pub(super) fn select(config: &HttpToolConfig, document: Option<Document>, routes: &AppRoutes) -> ToolPlan {
    let mut plan = ToolPlan::default();
    let mut described: HashSet<&str> = HashSet::new();
    let mut names: Vec<String> =
        routes.table.routes().iter().map(|route| route.function.name.clone()).collect();
    let mut left_out = LeftOut { config, streams: routes.streams(), told: HashSet::new() };
    if let Some(document) = document {
        plan.warnings.extend(document.warnings.iter().map(AppWarning::new));
        plan.document = document;
        let bases = base_paths(&plan.document, routes);
        let mut operations = std::mem::take(&mut plan.document.operations);
        for operation in &mut operations {
            let Some((path, route)) = route_of(operation, &bases, routes) else { continue };
            operation.path = path;
            operation.parameters.retain(|parameter| {
                let name = HeaderName::from_bytes(parameter.name.as_bytes()).ok();
                parameter.place != ParameterLocation::Header || !name.is_some_and(|name| is_ours(&name))
            });
            let function = &route.function;
            described.insert(function.name.as_str());
            names.push(operation.id.clone());
            let is_included = config.include.select(&function.name) || config.include.select(&operation.id);
            let is_excluded = config.exclude.select(&function.name) || config.exclude.select(&operation.id);
            if !is_included || is_excluded {
                continue;
            }
            match left_out.reason(route) {
                Some(reason) => plan.warnings.extend(left_out.warning(route, reason)),
                None => drop(plan.functions.insert(operation.id.clone(), function.clone())),
            }
        }
        plan.document.operations = operations;
    }
    for route in routes.table.routes() {
        let name = route.function.name.as_str();
        if described.contains(name) || !config.selects(name) {
            continue;
        }
        if let Some(reason) = left_out.reason(route) {
            plan.warnings.extend(left_out.warning(route, reason));
            continue;
        }
        let synthesized = match synthesis::describe_route(route) {
            Ok(synthesized) => synthesized,
            Err(reason) => {
                plan.warnings.extend(left_out.warning(route, &reason));
                continue;
            }
        };
        plan.add(synthesized, route);
    }
    plan.warn_of_idle_patterns(config, &names);
    plan
}

impl ToolPlan {
    fn add(&mut self, synthesized: SynthesizedOperation, route: &FunctionRoute) {
        let SynthesizedOperation { operation, is_described } = synthesized;
        let name = &route.function.name;
        if self.document.operation(&operation.id).is_some() {
            let message = format!(
                "function {name} is not a tool: an operation of the OpenAPI document has its name as operationId"
            );
            let fix = "correct the path or the method of this operation, or rename it";
            self.warnings.push(AppWarning::new(message).fix(fix));
            return;
        }
        if !is_described {
            let message = format!("tool {name} has no description: models choose tools by it");
            let fix = "describe the function in an OpenAPI document beside host.json, or in Python in its docstring";
            self.warnings.push(AppWarning::new(message).fix(fix));
        }
        self.functions.insert(operation.id.clone(), route.function.clone());
        self.document.operations.push(operation);
    }

    /// Warns of patterns that match neither a function nor an operation.
    fn warn_of_idle_patterns(&mut self, config: &HttpToolConfig, names: &[String]) {
        let known: Vec<&str> = names.iter().map(String::as_str).collect();
        let patterns =
            config.include.idle_patterns(&known).into_iter().chain(config.exclude.idle_patterns(&known));
        let warnings = patterns.map(|pattern| {
            let message = format!("{MEMBER}: {pattern:?} matches no function with an HTTP trigger");
            AppWarning::new(message).fix(match nearest::nearest(pattern, &known) {
                Some(near) => format!("write {near:?}"),
                None => "write the name of a function or an operationId; * matches any text".to_owned(),
            })
        });
        self.warnings.extend(warnings.collect::<Vec<_>>());
    }
}

/// Finds the reasons why functions are left out, and reports each function once.
struct LeftOut<'a> {
    config: &'a HttpToolConfig,
    streams: bool,
    told: HashSet<String>,
}

impl LeftOut<'_> {
    fn reason(&self, route: &FunctionRoute) -> Option<&'static str> {
        if route.level == AuthorizationLevel::Admin {
            return Some("its authLevel is admin, and only the master key opens it");
        }
        self.streams.then_some("the responses of this app stream, and a tool has one result")
    }

    fn warning(&mut self, route: &FunctionRoute, reason: &str) -> Option<AppWarning> {
        let name = &route.function.name;
        // `true` means all functions of other levels.
        let is_implied = route.level == AuthorizationLevel::Admin
            && matches!(self.config.include, crate::app::NamePatterns::All);
        if is_implied || !self.told.insert(name.clone()) {
            return None;
        }
        let message = format!("function {name} is not a tool: {reason}");
        Some(AppWarning::new(message).fix("remove it from extensions.mcp.httpTools, or exclude it there"))
    }
}

/// Returns the paths below which the paths of a document may be, the most likely one first.
fn base_paths(document: &Document, routes: &AppRoutes) -> Vec<String> {
    let path = |server: &String| match server.split_once("://") {
        Some((_, rest)) => rest.find('/').and_then(|start| rest.get(start..)).unwrap_or_default().to_owned(),
        None => server.clone(),
    };
    let mut bases: Vec<String> = document.servers.iter().map(path).collect();
    bases.push(String::new());
    bases.push(routes.prefix().trim_matches('/').to_owned());
    for base in &mut bases {
        let plain = base.trim_matches('/');
        *base = if plain.is_empty() { String::new() } else { format!("/{plain}") };
    }
    let mut seen = HashSet::new();
    bases.retain(|base| seen.insert(base.clone()));
    bases
}

/// Returns the route of an operation, and its path with the base.
fn route_of<'a>(
    operation: &Operation,
    bases: &[String],
    routes: &'a AppRoutes,
) -> Option<(String, &'a FunctionRoute)> {
    let sample = |name: &str| {
        let mut parameters = operation.parameters.iter();
        let parameter = parameters
            .find(|parameter| parameter.place == ParameterLocation::Path && parameter.name == name)?;
        let text = |keyword: &str| parameter.schema.get(keyword).and_then(|value| value.as_str());
        let value = match (text("type"), text("format")) {
            (Some("integer" | "number"), _) => {
                let least = parameter.schema.get("minimum").and_then(serde_json::Value::as_i64);
                return Some(least.unwrap_or(1).to_string());
            }
            (Some("boolean"), _) => "true",
            (_, Some("uuid")) => "12345678-1234-1234-1234-123456789abc",
            (_, Some("date-time")) => "2026-01-01T00:00:00Z",
            (_, Some("date")) => "2026-01-01",
            _ => return None,
        };
        Some(value.to_owned())
    };
    bases.iter().find_map(|base| {
        let path = format!("{base}{}", operation.path);
        let covering = routes.table.routes().iter().filter(|route| {
            route.allows(&operation.method) && route.template.covers_operation(&path, &sample)
        });
        let covering: Vec<&FunctionRoute> = covering.collect();
        // Two functions may differ only in constraints of which the document says nothing.
        let named = covering.iter().find(|route| route.function.name.eq_ignore_ascii_case(&operation.id));
        let route = named.or(covering.first())?;
        Some((path, *route))
    })
}
