//! One call of an operation: authorization, arguments, confirmation and result.

use bindpost_mcp_protocol::CallToolResult;
use bindpost_mcp_server::nearest::nearest;
use bindpost_mcp_server::{AccessRule, Context, ToolError};
use http::Method;
use serde_json::{Map, Value};

use super::offered::OfferedOperation;
use super::{BridgeState, text};
use crate::confirm::confirm;
use crate::operation::ParameterLocation;
use crate::paging::{self, PageCursor};
use crate::reply::{self, CallFailure, FailureKind};
use crate::request;
use bindpost_net_upstream::{UpstreamError, UpstreamRequest, UpstreamResponse};

/// The maximum number of unknown arguments, and of known ones, that an error lists.
const MOST_UNKNOWN: usize = 5;
const MOST_KNOWN: usize = 30;

/// The call that a bridge makes by a request. A [`RequestHandler`](crate::RequestHandler) finds it in the extensions of the
/// request.
#[derive(Clone, Debug)]
pub struct BridgedCall {
    /// The context of the MCP request.
    pub context: Context,
    /// The id of the called operation.
    pub operation: String,
}

/// The method of a request, and its path and query below the base address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestTarget<'a> {
    pub(crate) method: &'a Method,
    pub(crate) path: &'a str,
}

impl BridgeState {
    /// Calls an operation, by its tool or by its id.
    pub(crate) async fn call(
        &self,
        offered: &OfferedOperation,
        mut arguments: Map<String, Value>,
        context: &Context,
    ) -> Result<CallToolResult, ToolError> {
        // Models write null for arguments they omit.
        arguments.retain(|_, value| !value.is_null());
        let cursor = match offered.take_cursor(&mut arguments) {
            Ok(cursor) => cursor,
            Err(failure) => return Ok(failure.into_result()),
        };
        let next = match cursor {
            None => PageCursor { arguments, ..PageCursor::default() },
            Some(cursor) => {
                let opened =
                    self.cursors.verify::<PageCursor>(&offered.operation.id, context.caller().id(), &cursor);
                let next = match opened {
                    Ok(next) => next,
                    Err(error) => return Ok(CallFailure::invalid(error.to_string()).into_result()),
                };
                if let Some(changed) = CallFailure::changed_arguments(&arguments, &next.arguments) {
                    return Ok(changed.into_result());
                }
                next
            }
        };
        let sent = match self.prepare(offered, &next, context) {
            Ok(outgoing) => outgoing,
            Err(failure) => return Ok(failure.into_result()),
        };
        if self.confirms && offered.asks.is_some_and(|asks| asks(&next.arguments)) {
            confirm(context, &question(offered, &sent)).await?;
        }
        let (method, path) = (sent.method.clone(), sent.path.clone());
        let target = RequestTarget { method: &method, path: &path };
        match self.send(offered, sent, target, context).await {
            Ok(incoming) => {
                Ok(reply::call_result(self, offered, &next, target, &incoming, context.caller().id()))
            }
            Err(error) => Ok(self.upstream_failure(offered, &error).into_result()),
        }
    }

    /// Reads an operation as a resource. The response is returned unchanged.
    pub(crate) async fn read(
        &self,
        offered: &OfferedOperation,
        arguments: Map<String, Value>,
        context: &Context,
    ) -> Result<UpstreamResponse, CallFailure> {
        let next = PageCursor { arguments, ..PageCursor::default() };
        let sent = self.prepare(offered, &next, context)?;
        let (method, path) = (sent.method.clone(), sent.path.clone());
        let target = RequestTarget { method: &method, path: &path };
        self.send(offered, sent, target, context)
            .await
            .map_err(|error| self.upstream_failure(offered, &error))
    }

    /// Sends a request to its target. Redirects are followed only to operations that this caller may call.
    async fn send(
        &self,
        offered: &OfferedOperation,
        mut sent: UpstreamRequest,
        target: RequestTarget<'_>,
        context: &Context,
    ) -> Result<UpstreamResponse, UpstreamError> {
        if self.upstream.is_handled() {
            let (context, operation) = (context.clone(), offered.operation.id.clone());
            sent.extensions.insert(BridgedCall { context, operation });
        }
        let redirects =
            |method: &Method, to: &str| self.redirect_path(offered, target, context.caller(), method, to);
        self.upstream.send_within(sent, &redirects).await
    }

    /// Builds the request, if this caller may send it.
    fn prepare(
        &self,
        offered: &OfferedOperation,
        next: &PageCursor,
        context: &Context,
    ) -> Result<UpstreamRequest, CallFailure> {
        let operation = &offered.operation;
        if self.enforces_scopes && !operation.scopes.is_empty() {
            let access = AccessRule::default().with_scopes(&operation.scopes);
            if !access.permits(context.caller()) {
                let scopes = operation.scopes.join(", ");
                let text = format!("operation {:?} requires the scopes {scopes}", operation.id);
                return Err(CallFailure { kind: FailureKind::Unauthorized, ..CallFailure::invalid(text) });
            }
        }
        let mut arguments = next.arguments.clone();
        // Only the operator sets these, even if the schema cannot be compiled.
        if let Some(name) = arguments.keys().find(|name| offered.fixed.contains_key(*name)) {
            return Err(CallFailure::invalid(format!("argument {name:?} is unknown")));
        }
        let mut wrong = offered.describe_unknown_arguments(&arguments);
        let given = Value::Object(arguments);
        if let Some(check) = offered.argument_validator(&self.document)
            && check.check(&given).is_err()
            // Services return null for unset members, and clients send such objects back with changes.
            && let Err(lines) = check.check(&without_null_members(&given))
        {
            wrong.push(lines);
        }
        if !wrong.is_empty() {
            let text = format!("Invalid arguments for operation {:?}:\n{}", operation.id, wrong.join("\n"));
            return Err(CallFailure::invalid(text));
        }
        let Value::Object(given) = given else { return Err(CallFailure::invalid("no arguments".to_owned())) };
        arguments = given;
        arguments.extend(offered.fixed.clone());
        let mut outgoing = request::build_request(operation, &arguments)
            .map_err(|error| CallFailure::invalid(error.to_string()))?;
        if self.may_reach_excluded_operation(offered, &outgoing) {
            let text = "these arguments address another operation, which is not served here".to_owned();
            return Err(CallFailure::invalid(text));
        }
        if let Some(scopes) = self.missing_scopes_of_other_operation(offered, &outgoing, context) {
            let text =
                format!("these arguments address another operation, which requires the scopes {scopes}");
            return Err(CallFailure { kind: FailureKind::Unauthorized, ..CallFailure::invalid(text) });
        }
        if let Some(link) = &next.link {
            outgoing.path = paging::with_fixed(link, &outgoing.path, &offered.fixed_names);
        }
        outgoing.repeatable = offered.hints.read_only || offered.hints.idempotent;
        if let Some(http) = context.http() {
            let is_fixed = |name: &str| {
                operation.parameters.iter().any(|parameter| {
                    parameter.place == ParameterLocation::Header
                        && parameter.name.eq_ignore_ascii_case(name)
                        && offered.fixed.contains_key(&parameter.argument)
                })
            };
            self.passed.forward(http.headers(), &mut outgoing.headers, is_fixed);
        }
        Ok(outgoing)
    }

    /// Returns the failure for a request without a response.
    fn upstream_failure(&self, offered: &OfferedOperation, error: &UpstreamError) -> CallFailure {
        match error {
            UpstreamError::Rejected(reason) => return CallFailure::invalid(reason.clone()),
            _ => {
                tracing::warn!(
                    operation = offered.operation.id,
                    ?error,
                    "no response from the upstream service"
                );
            }
        }
        let kind = match error {
            UpstreamError::NoCredential(_) => FailureKind::Unauthorized,
            UpstreamError::TooLarge(_) => FailureKind::UnknownError,
            _ => FailureKind::ServerError,
        };
        let mut message = error.to_string();
        if matches!(error, UpstreamError::TooLarge(_)) {
            message.push('.');
            message += &reply::narrowing_advice(offered);
        }
        CallFailure { kind, message, ..CallFailure::default() }
    }
}

impl OfferedOperation {
    /// Removes the cursor from the arguments and returns it.
    fn take_cursor(&self, arguments: &mut Map<String, Value>) -> Result<Option<String>, CallFailure> {
        match arguments.remove(self.cursor) {
            None => Ok(None),
            Some(Value::String(cursor)) => Ok(Some(cursor)),
            Some(_) => Err(CallFailure::invalid(format!("`{}` must be a string", self.cursor))),
        }
    }

    /// Describes unknown arguments: suggests a similar one, or lists the known ones, required ones first.
    fn describe_unknown_arguments(&self, arguments: &Map<String, Value>) -> Vec<String> {
        let body = self.operation.body.iter().map(|body| (self.body, body.required));
        let parameters = self.parameters().map(|parameter| (parameter.argument.as_str(), parameter.required));
        let method = self.method.iter().map(|method| (*method, true));
        let (needed, other): (Vec<_>, Vec<_>) =
            parameters.chain(method).chain(body).partition(|(_, required)| *required);
        let known: Vec<&str> = needed.iter().chain(&other).map(|(name, _)| *name).collect();
        let mut lines = Vec::new();
        let mut names_none = false;
        for name in arguments.keys().filter(|name| !known.contains(&name.as_str())).take(MOST_UNKNOWN) {
            let short: String = name.chars().take(100).collect();
            lines.push(match nearest(name, &known) {
                Some(meant) => format!("- {short:?} is unknown; did you mean {meant:?}?"),
                None => {
                    names_none = true;
                    format!("- {short:?} is unknown")
                }
            });
        }
        if names_none && known.is_empty() {
            lines.push("- this operation has no arguments".to_owned());
        } else if names_none {
            let written = |(name, required): &(&str, bool)| match required {
                true => format!("{name} (needed)"),
                false => (*name).to_owned(),
            };
            let shown: Vec<String> = needed.iter().chain(&other).take(MOST_KNOWN).map(written).collect();
            let rest = known.len() - shown.len();
            let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
            lines.push(format!("- known: {}{more}", shown.join(", ")));
        }
        lines
    }
}

/// Returns the question for the user: the actual path and the summary of the operation.
fn question(offered: &OfferedOperation, sent: &UpstreamRequest) -> String {
    let path = sent.path.split('?').next().unwrap_or_default();
    let path: String = path.chars().take(300).collect();
    let operation = &offered.operation;
    format!(
        "{} {path}\n{} ({}). Continue?",
        sent.method,
        text::summary(operation).trim_end_matches('.'),
        offered.display_id()
    )
}

impl BridgeState {
    /// Returns whether a service could route this path to an operation that is not selected. A path of
    /// the called operation belongs to it, unless the other operation matches it more specifically.
    fn may_reach_excluded_operation(&self, offered: &OfferedOperation, sent: &UpstreamRequest) -> bool {
        let path = sent.path.as_str();
        let is_own = offered.path.may_cover(path);
        self.left_out.iter().any(|(method, pattern)| {
            *method == sent.method
                && (pattern.variables < offered.path.variables || !is_own)
                && pattern.may_cover(path)
        })
    }

    /// Returns the scopes that the caller lacks for another operation to which a service
    /// could route this path.
    fn missing_scopes_of_other_operation(
        &self,
        offered: &OfferedOperation,
        sent: &UpstreamRequest,
        context: &Context,
    ) -> Option<String> {
        if !self.enforces_scopes {
            return None;
        }
        let path = sent.path.as_str();
        let is_own = offered.path.may_cover(path);
        let other = self.offered.iter().find(|other| {
            other.operation.method == sent.method
                && other.operation.id != offered.operation.id
                && (other.path.variables < offered.path.variables || !is_own)
                && !AccessRule::default().with_scopes(&other.operation.scopes).permits(context.caller())
                && other.path.may_cover(path)
        })?;
        Some(other.operation.scopes.join(", "))
    }

    /// Returns whether a path from a response belongs to this operation, or to another read-only
    /// operation that is served.
    pub(crate) fn is_served_path(&self, offered: &OfferedOperation, path: &str) -> bool {
        let covering = self.offered.iter().filter(|other| {
            // Another operation may require other scopes.
            !self.enforces_scopes
                && other.operation.method == Method::GET
                && other.hints.read_only
                && other.path.covers(path)
        });
        let own = offered.path.covers(path).then_some(offered.path.variables);
        let Some(fewest) = covering.map(|other| other.path.variables).chain(own).min() else { return false };
        !self.left_out.iter().any(|(method, pattern)| {
            *method == Method::GET && pattern.variables < fewest && pattern.may_cover(path)
        })
    }
}

/// Removes null members of objects. Items of lists are kept.
fn without_null_members(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let set = members.iter().filter(|(_, value)| !value.is_null());
            Value::Object(set.map(|(name, value)| (name.clone(), without_null_members(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_null_members).collect()),
        _ => value.clone(),
    }
}
