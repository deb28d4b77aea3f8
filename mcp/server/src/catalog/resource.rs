//! Resources and templates: the entries, `resources/read`, and the conversion of return values.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bindpost_mcp_protocol::lifecycle::Icon;
use bindpost_mcp_protocol::{
    Annotations, Meta, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Revision,
    ShapeForRevision,
};
use bytes::Bytes;
use futures_util::FutureExt as _;
use serde::Serialize;
use serde_json::Value;

use crate::auth::AccessRule;
use crate::call::answer::EncodedResponse;
use crate::call::{Call, CallTarget, HandlerFuture, HandlerOutput, RunningCall, TaskStart};
use crate::catalog::completion::{ArgumentCompleter, Completer};
use crate::catalog::entry::entry_methods;
use crate::catalog::uri_template::UriTemplate;
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::{ProtocolError, ToolError};
use crate::handler::extract::{CallParts, Handler, Json};
use crate::handler::signature::Signature;
use crate::hooks::OperationEntry;
use crate::result_envelope::{CachePolicy, PerPolicy};
use crate::server::ServerState;
use crate::transport::HeaderValues;

/// The handler of a resource or a template. Its second parameter is the media type of the entry.
type Run = Arc<dyn Fn(CallParts, Option<String>) -> HandlerFuture + Send + Sync>;

/// Wraps a handler so that it returns a result for the URI that is read.
fn erase<R, Fut>(run: impl Fn(CallParts) -> Fut + Send + Sync + 'static) -> Run
where
    R: IntoResourceResult,
    Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
{
    Arc::new(move |parts: CallParts, mime_type: Option<String>| {
        let context = parts.context.clone();
        // An async block would store the future twice: captured and awaited.
        Box::pin(run(parts).map(move |returned| {
            let uri = context.uri().unwrap_or_default();
            let result = returned?.into_resource_result(uri, mime_type.as_deref())?;
            Ok(HandlerOutput::Resource(result))
        }))
    })
}

/// Converts a handler into a function of its [`CallParts`].
pub(crate) fn handler_fn<M, R, H>(
    handler: H,
) -> impl Fn(CallParts) -> Pin<Box<dyn Future<Output = Result<R, ToolError>> + Send>> + Send + Sync + 'static
where
    R: Send + 'static,
    H: Handler<M, R>,
{
    move |parts: CallParts| {
        let handler = handler.clone();
        Box::pin(async move { handler.run(parts).await })
    }
}

/// A resource: its definition and its handler.
#[derive(Clone)]
pub struct ResourceEntry {
    pub(crate) definition: Resource,
    pub(crate) access: Arc<AccessRule>,
    pub(crate) signature: Signature,
    origin: &'static Location<'static>,
    timeout: Option<Option<Duration>>,
    run: Run,
    fixed: Option<Arc<FixedContents>>,
    /// Whether the resource is a file of a skill. [`Catalog::replace`](crate::Catalog::replace) keeps those.
    pub(crate) is_skill_file: bool,
    /// Whether the resource is the page of a tool.
    pub(crate) is_page: bool,
}

/// Constant contents and their encoded results.
struct FixedContents {
    contents: Arc<ResourceContents>,
    results: PerPolicy<[OnceLock<Bytes>; Revision::ALL.len()]>,
}

impl FixedContents {
    fn new(contents: Arc<ResourceContents>) -> Arc<FixedContents> {
        Arc::new(FixedContents { contents, results: Default::default() })
    }
}

/// The result of a handler with constant contents. The URI and the media type are those of the entry.
struct SharedContents(Arc<ResourceContents>);

impl IntoResourceResult for SharedContents {
    fn into_resource_result(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ToolError> {
        let mut contents = ResourceContents::clone(&self.0);
        contents.uri = uri.to_owned();
        contents.mime_type = mime_type.map(str::to_owned);
        contents.into_resource_result(uri, mime_type)
    }
}

impl std::fmt::Debug for ResourceEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceEntry").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl ResourceEntry {
    /// Returns a resource with this URI and name, and an async function as its handler.
    #[track_caller]
    pub fn new<M, R, H>(uri: impl Into<String>, name: impl Into<String>, handler: H) -> ResourceEntry
    where
        R: IntoResourceResult + 'static,
        H: Handler<M, R>,
    {
        ResourceEntry::with_signature(uri, name, H::signature(), handler_fn(handler))
    }

    /// Returns a resource with an explicit signature. `run` fills its parameters with [`CallParts::fill`].
    /// The attribute `#[resource]` generates calls of this function.
    #[track_caller]
    pub fn with_signature<R, Fut>(
        uri: impl Into<String>,
        name: impl Into<String>,
        signature: Signature,
        run: impl Fn(CallParts) -> Fut + Send + Sync + 'static,
    ) -> ResourceEntry
    where
        R: IntoResourceResult,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        ResourceEntry {
            definition: Resource { uri: uri.into(), name: name.into(), ..Resource::default() },
            access: Arc::default(),
            signature,
            origin: Location::caller(),
            timeout: None,
            run: erase(run),
            fixed: None,
            is_skill_file: false,
            is_page: false,
        }
    }

    /// Returns a resource with a constant text.
    #[track_caller]
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> ResourceEntry {
        ResourceEntry::with_contents(uri, name, ResourceContents::text("", text))
    }

    /// Returns a resource with constant contents. Their URI and media type are those of the entry.
    #[track_caller]
    pub(crate) fn with_contents(
        uri: impl Into<String>,
        name: impl Into<String>,
        contents: ResourceContents,
    ) -> ResourceEntry {
        let contents = Arc::new(contents);
        let fixed = FixedContents::new(contents.clone());
        let entry = ResourceEntry::new(uri, name, move || {
            let contents = SharedContents(contents.clone());
            async move { contents }
        });
        ResourceEntry { fixed: Some(fixed), ..entry }
    }

    /// Sets the media type.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> ResourceEntry {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Sets the size of the content in bytes.
    pub fn size(mut self, size: u64) -> ResourceEntry {
        self.definition.size = Some(size);
        self
    }

    /// Sets the annotations: the intended audience, the priority and the time of the last modification.
    pub fn annotations(mut self, annotations: Annotations) -> ResourceEntry {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Replaces the whole definition, which the builder has set.
    pub fn definition(mut self, definition: Resource) -> ResourceEntry {
        self.definition = definition;
        self
    }

    /// Returns whether this text is the constant contents of the resource.
    pub(crate) fn has_text(&self, text: &str) -> bool {
        self.fixed.as_ref().is_some_and(|fixed| fixed.contents.text.as_deref() == Some(text))
    }

    /// Returns the encoded result of a resource with constant contents.
    pub(crate) fn fixed_result(
        &self,
        revision: Revision,
        server: &ServerState,
        cache: CachePolicy,
    ) -> Option<Bytes> {
        let fixed = self.fixed.as_ref()?;
        let result = fixed.results.get(cache)[revision.index()].get_or_init(|| {
            let Resource { uri, mime_type, .. } = &self.definition;
            let mut contents = ResourceContents::clone(&fixed.contents);
            contents.uri.clone_from(uri);
            contents.mime_type.clone_from(mime_type);
            contents.shape(revision);
            let result = ReadResourceResult { contents: vec![contents], ..ReadResourceResult::default() };
            let mut out = Vec::new();
            server.write_complete(&mut out, revision, &result, None, cache);
            out.into()
        });
        Some(result.clone())
    }

    pub(crate) fn compile(&mut self) -> Result<(), String> {
        // Encoded results belong to one server, but a clone of the entry may be added to another.
        if let Some(fixed) = &mut self.fixed {
            *fixed = FixedContents::new(fixed.contents.clone());
        }
        let uri = &self.definition.uri;
        let scheme = uri.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
        let fits = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
        if !fits {
            return Err("a resource's URI starts with a scheme, like `file:`".to_owned());
        }
        self.signature.check()?;
        match self.signature.names().next() {
            None => Ok(()),
            Some(name) => Err(format!("parameter {name:?} cannot be filled: {uri:?} has no variables")),
        }
    }
}

entry_methods!(ResourceEntry, "a read");

/// A resource template: its definition and its handler.
#[derive(Clone)]
pub struct TemplateEntry {
    pub(crate) definition: ResourceTemplate,
    pub(crate) completers: Vec<(String, ArgumentCompleter)>,
    pub(crate) access: Arc<AccessRule>,
    pub(crate) signature: Signature,
    origin: &'static Location<'static>,
    pub(crate) timeout: Option<Option<Duration>>,
    template: Option<UriTemplate>,
    matcher: Option<Matcher>,
    run: Run,
}

/// A custom function that matches a URI and returns the variables.
type Matcher = Arc<dyn Fn(&str) -> Option<Vec<(String, String)>> + Send + Sync>;

impl std::fmt::Debug for TemplateEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemplateEntry").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl TemplateEntry {
    /// Returns a template for the resources of this URI template, with an async function as its handler.
    /// [`Context::variable`](crate::Context::variable) returns the variables.
    #[track_caller]
    pub fn new<M, R, H>(uri_template: impl Into<String>, name: impl Into<String>, handler: H) -> TemplateEntry
    where
        R: IntoResourceResult + 'static,
        H: Handler<M, R>,
    {
        TemplateEntry::with_signature(uri_template, name, H::signature(), handler_fn(handler))
    }

    /// Returns a template with an explicit signature, whose arguments are the template's variables.
    /// `run` fills its parameters with [`CallParts::fill`]. The attribute `#[resource]` generates calls
    /// of this function.
    #[track_caller]
    pub fn with_signature<R, Fut>(
        uri_template: impl Into<String>,
        name: impl Into<String>,
        signature: Signature,
        run: impl Fn(CallParts) -> Fut + Send + Sync + 'static,
    ) -> TemplateEntry
    where
        R: IntoResourceResult,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        TemplateEntry {
            definition: ResourceTemplate {
                uri_template: uri_template.into(),
                name: name.into(),
                ..ResourceTemplate::default()
            },
            completers: Vec::new(),
            access: Arc::default(),
            signature,
            origin: Location::caller(),
            timeout: None,
            template: None,
            matcher: None,
            run: erase(run),
        }
    }

    /// Sets the media type of the resources.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> TemplateEntry {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Replaces the whole definition, which the builder has set.
    pub fn definition(mut self, definition: ResourceTemplate) -> TemplateEntry {
        self.definition = definition;
        self
    }

    /// Sets a function that matches URIs and returns the variables, instead of RFC 6570 matching. The URI
    /// template is then used in lists only.
    pub fn matched_by(
        mut self,
        matcher: impl Fn(&str) -> Option<Vec<(String, String)>> + Send + Sync + 'static,
    ) -> TemplateEntry {
        self.matcher = Some(Arc::new(matcher));
        self
    }

    /// Sets a function that completes a variable from the text typed so far.
    pub fn complete(
        mut self,
        variable: impl Into<String>,
        completer: impl Fn(&str) -> Vec<String> + Send + Sync + 'static,
    ) -> TemplateEntry {
        self.completers.push((variable.into(), ArgumentCompleter::new(completer)));
        self
    }

    /// Sets a function that completes a variable. It can be async and take [`State`](crate::State) and
    /// [`Context`](crate::Context), see [`Completer`]. The timeout is [`TemplateEntry::timeout`].
    pub fn completer<M: 'static>(
        mut self,
        variable: impl Into<String>,
        completer: impl Completer<M>,
    ) -> TemplateEntry {
        let (completer, needed) = ArgumentCompleter::from_function(completer);
        self.signature.needs_states_of(&needed);
        self.completers.push((variable.into(), completer));
        self
    }

    /// Sets an async function that completes a variable. Its timeout is [`TemplateEntry::timeout`]. If it
    /// fails or times out, it suggests nothing and the reason is logged.
    pub fn complete_with<Fut>(
        mut self,
        variable: impl Into<String>,
        completer: impl Fn(String) -> Fut + Send + Sync + 'static,
    ) -> TemplateEntry
    where
        Fut: Future<Output = Result<Vec<String>, ToolError>> + Send + 'static,
    {
        self.completers.push((variable.into(), ArgumentCompleter::new_async(completer)));
        self
    }

    pub(crate) fn compile(&mut self) -> Result<(), String> {
        if self.matcher.is_some() {
            return self.signature.check();
        }
        let template = UriTemplate::parse(&self.definition.uri_template)?;
        if let Some((unknown, _)) =
            self.completers.iter().find(|(name, _)| !template.variables().any(|variable| variable == name))
        {
            return Err(format!("there is no variable {unknown:?} to complete"));
        }
        self.signature.check()?;
        let unknown = self.signature.names().find(|name| !template.variables().any(|known| known == *name));
        if let Some(unknown) = unknown {
            let known: Vec<&str> = template.variables().collect();
            let known = known.join(", ");
            return Err(format!(
                "parameter {unknown:?} has no variable in the URI template; the variables are: {known}"
            ));
        }
        self.template = Some(template);
        Ok(())
    }

    /// Returns the names of the variables, or `None` if a function of the server matches the URIs.
    pub(crate) fn known_variables(&self) -> Option<Vec<&str>> {
        Some(self.template.as_ref()?.variables().collect())
    }

    /// Returns whether both templates match the same URIs.
    pub(crate) fn covers_the_same(&self, other: &TemplateEntry) -> bool {
        match (&self.template, &other.template) {
            (Some(one), Some(other)) => one.covers_the_same(other),
            _ => false,
        }
    }

    pub(crate) fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        match &self.matcher {
            Some(matcher) => matcher(uri),
            None => self.template.as_ref()?.matches(uri),
        }
    }
}

entry_methods!(TemplateEntry, "a read");

/// A resource to read, from a resource entry or a template.
pub(crate) struct ReadableResource {
    timeout: Option<Option<Duration>>,
    run: Run,
    mime_type: Option<String>,
    variables: Vec<(String, String)>,
    takes_arguments: bool,
    entry: OperationEntry,
}

impl ReadableResource {
    pub(crate) fn from_entry(entry: Arc<ResourceEntry>) -> ReadableResource {
        ReadableResource {
            timeout: entry.timeout,
            run: entry.run.clone(),
            mime_type: entry.definition.mime_type.clone(),
            variables: Vec::new(),
            takes_arguments: false,
            entry: OperationEntry::Resource(entry),
        }
    }

    pub(crate) fn from_template(
        entry: &Arc<TemplateEntry>,
        variables: Vec<(String, String)>,
    ) -> ReadableResource {
        ReadableResource {
            timeout: entry.timeout,
            run: entry.run.clone(),
            mime_type: entry.definition.mime_type.clone(),
            variables,
            takes_arguments: entry.signature.takes_arguments(),
            entry: OperationEntry::Template(entry.clone()),
        }
    }
}

/// `resources/read`
pub(crate) fn read(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    const METHOD: &str = "resources/read";
    let Some(uri) = inbound.request.params().text("uri") else {
        return inbound.refuse(&ProtocolError::invalid_params(METHOD, "`uri` must be a string"));
    };
    let visible = inbound.visible_entries();
    let cache = inbound.server.cache_policy(&inbound.exchange.caller);
    if inbound.server.hooks.is_empty()
        && let Some(entry) = visible.resource(&uri)
        && let Some(result) = entry.fixed_result(inbound.revision(), &inbound.server, cache)
    {
        return DispatchOutcome::Answer(EncodedResponse::from_shared_result(&inbound.request.id, result));
    }
    let uri = uri.into_owned();
    let Some(readable) = visible.find_readable(&uri) else {
        return inbound.refuse_not_found(ProtocolError::UnknownResource(uri));
    };
    let timeout = readable.timeout.unwrap_or(inbound.server.limits.call_timeout);
    let ReadableResource { run, variables, mime_type, takes_arguments, entry, .. } = readable;
    let arguments = takes_arguments
        .then(|| variables.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str()))).collect());
    let call = Call::new(inbound, CallTarget::Resource { uri, variables });
    RunningCall::start(call, METHOD, timeout, TaskStart::Never, |context| {
        if context.call().server().hooks.is_empty() {
            return run(CallParts::with_text_arguments(context, arguments), mime_type);
        }
        let hooks = context.call().server().hooks.clone();
        hooks.start(context, entry, move |context| {
            run(CallParts::with_text_arguments(context, arguments), mime_type)
        })
    })
}

/// A type that the handler of a resource can return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the contents of a resource",
    note = "return text, bytes, `ResourceContents`, several of them, or `Json<T>`"
)]
pub trait IntoResourceResult: Send {
    /// Converts the value into a result. `uri` is the URI that is read, `mime_type` the media type
    /// of the entry.
    fn into_resource_result(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ToolError>;
}

impl IntoResourceResult for ReadResourceResult {
    fn into_resource_result(self, _: &str, _: Option<&str>) -> Result<ReadResourceResult, ToolError> {
        Ok(self)
    }
}

impl IntoResourceResult for ResourceContents {
    fn into_resource_result(self, _: &str, _: Option<&str>) -> Result<ReadResourceResult, ToolError> {
        Ok(ReadResourceResult { contents: vec![self], ..ReadResourceResult::default() })
    }
}

impl IntoResourceResult for Vec<ResourceContents> {
    fn into_resource_result(self, _: &str, _: Option<&str>) -> Result<ReadResourceResult, ToolError> {
        Ok(ReadResourceResult { contents: self, ..ReadResourceResult::default() })
    }
}

impl IntoResourceResult for String {
    fn into_resource_result(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ToolError> {
        let contents = ResourceContents::text(uri, self);
        ResourceContents { mime_type: mime_type.map(str::to_owned), ..contents }
            .into_resource_result(uri, mime_type)
    }
}

impl IntoResourceResult for &'static str {
    fn into_resource_result(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ToolError> {
        self.to_owned().into_resource_result(uri, mime_type)
    }
}

impl IntoResourceResult for Vec<u8> {
    fn into_resource_result(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ToolError> {
        let contents = ResourceContents::blob(uri, self);
        ResourceContents { mime_type: mime_type.map(str::to_owned), ..contents }
            .into_resource_result(uri, mime_type)
    }
}

/// Returns the value as JSON text.
impl<T: Serialize + Send> IntoResourceResult for Json<T> {
    fn into_resource_result(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ToolError> {
        let text = serde_json::to_string(&self.0)
            .map_err(|error| ToolError::with_source("the resource cannot be written as JSON", error))?;
        text.into_resource_result(uri, mime_type.or(Some("application/json")))
    }
}

impl<T: IntoResourceResult, E: Into<ToolError> + Send> IntoResourceResult for Result<T, E> {
    fn into_resource_result(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ToolError> {
        self.map_err(Into::into)?.into_resource_result(uri, mime_type)
    }
}
