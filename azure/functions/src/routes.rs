//! HTTP triggers: which function answers a request, who may call it, and what it is given.
//!
//! The path of one request, in `front::FunctionRoutes::answer`:
//!
//! 1. Find the route by path and method ([`RouteTable::find`]). The first function that matches answers, in the order of
//!    the names of functions.
//! 2. Check the `Host` header, as for MCP requests. The `Origin` header is checked by the browser (`cors.rs`).
//! 3. Check the key, if the level of the function requires one (`access.rs`).
//! 4. Wait for a place (`throttle.rs`), read the body within its limits, and describe the request for the worker (`request.rs`).
//! 5. Run the function, in `invocation.rs`. If its worker has an HTTP server, the request is forwarded there instead of
//!    being read, and the response streams (`stream.rs`).
//! 6. Convert what it returned to a response (`response.rs`).
//!
//! `template.rs` and `constraint.rs` have the syntax of routes.

pub(crate) mod access;
pub mod constraint;
pub(crate) mod cors;
pub(crate) mod front;
pub(crate) mod request;
pub(crate) mod response;
pub(crate) mod stream;
pub mod template;
pub(crate) mod throttle;

use std::sync::Arc;

use http::Method;

use self::template::{RouteTemplate, RouteValues};
use crate::function::{AuthorizationLevel, Function, Trigger};
use crate::problem::Problem;

/// The routes of an app, in the order in which they are tried.
#[derive(Debug, Default)]
pub struct RouteTable {
    routes: Vec<FunctionRoute>,
}

/// The route of one function.
#[derive(Debug)]
pub struct FunctionRoute {
    pub function: Arc<Function>,
    pub template: RouteTemplate,
    /// The template as text, with the prefix.
    pub text: String,
    /// The methods that the function answers. Empty means all.
    pub methods: Vec<Method>,
    pub level: AuthorizationLevel,
}

/// A route that matches a request.
#[derive(Debug)]
pub struct MatchedRoute<'a> {
    pub route: &'a FunctionRoute,
    pub values: RouteValues,
}

impl RouteTable {
    /// Builds the table from the functions with an HTTP trigger. A function whose route is not valid is not in the table
    /// but has a problem.
    pub fn build<'a>(
        functions: impl IntoIterator<Item = &'a Arc<Function>>,
        prefix: &str,
    ) -> (RouteTable, Vec<Problem>) {
        let mut named: Vec<&Arc<Function>> = functions.into_iter().collect();
        named.sort_by_cached_key(|function| function.name.to_uppercase());
        let mut routes: Vec<FunctionRoute> = Vec::new();
        let mut problems = Vec::new();
        for function in named {
            let Trigger::Http(trigger) = &function.trigger else { continue };
            let own = trigger.template(&function.name);
            let text = match prefix.trim_matches('/') {
                "" => own.to_owned(),
                prefix if own.is_empty() => prefix.to_owned(),
                prefix => format!("{prefix}/{own}"),
            };
            let wrong = |message: String, fix: &str| {
                Problem::new(message).of_function(&function.name).at("httpTrigger.route").fix(fix)
            };
            let lower = own.to_ascii_lowercase();
            if lower.starts_with("admin") || lower.starts_with("runtime") {
                let message = "The specified route conflicts with one or more built in routes.".to_owned();
                problems.push(wrong(message, "choose a route that does not begin with admin or runtime"));
                continue;
            }
            let template = match RouteTemplate::parse(&text) {
                Ok(template) => template,
                Err(error) => {
                    let fix = "write a route such as orders/{id:int}, or orders/{*rest} for everything below";
                    problems.push(wrong(format!("{error}, in {text:?}"), fix));
                    continue;
                }
            };
            let methods = trigger.methods.clone();
            let taken = routes.iter().find(|other| {
                other.text.eq_ignore_ascii_case(&text) && have_common_method(&other.methods, &methods)
            });
            if let Some(other) = taken {
                let message = format!(
                    "The route specified conflicts with the route defined by function '{}'.",
                    other.function.name
                );
                problems.push(wrong(
                    message,
                    "choose another route, or methods that the other function does not have",
                ));
                continue;
            }
            routes.push(FunctionRoute {
                function: function.clone(),
                template,
                text,
                methods,
                level: trigger.level,
            });
        }
        (RouteTable { routes }, problems)
    }

    /// Returns the route that answers a request. A method that a function does not list is no match, as on the platform:
    /// the next functions are tried, and without a match the response is 404.
    pub fn find(&self, method: &Method, path: &str) -> Option<MatchedRoute<'_>> {
        self.routes.iter().filter(|route| route.allows(method)).find_map(|route| {
            let values = route.template.match_path(path)?;
            Some(MatchedRoute { route, values })
        })
    }

    /// Returns the methods of all functions that answer this path. A function for all methods has none of its own.
    pub(crate) fn methods_at(&self, path: &str) -> Option<Vec<Method>> {
        let mut matching =
            self.routes.iter().filter(|route| route.template.match_path(path).is_some()).peekable();
        matching.peek()?;
        let mut methods = Vec::new();
        for route in matching {
            if route.methods.is_empty() {
                return Some(Vec::new());
            }
            methods.extend(route.methods.iter().cloned());
        }
        Some(methods)
    }

    pub fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }

    pub fn routes(&self) -> &[FunctionRoute] {
        &self.routes
    }
}

impl FunctionRoute {
    pub(crate) fn allows(&self, method: &Method) -> bool {
        self.methods.is_empty() || self.methods.contains(method)
    }
}

fn have_common_method(one: &[Method], other: &[Method]) -> bool {
    one.is_empty() || other.is_empty() || one.iter().any(|method| other.contains(method))
}

#[cfg(test)]
mod tests;
