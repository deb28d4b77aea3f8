//! Resources and templates: the entries, the read, and how a return value becomes a result.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bindpost_mcp_protocol::lifecycle::{Completion, Icon};
use bindpost_mcp_protocol::{
    Annotations, Meta, ReadResourceResult, Resource, ResourceContents, ResourceTemplate, Revision,
};
use bytes::Bytes;

use crate::answer::Answer;
use crate::call::{Call, Finished, HandlerFuture, Running, Subject};
use crate::dispatch::{Dispatch, Inbound};
use crate::error::{ProtocolError, ToolError};
use crate::extract::{Handler, Parts};
use crate::prompt::Completer;
use crate::server::{Cache, Shared};
use crate::transport::HeaderValues;
use crate::uri_template::UriTemplate;

/// The handler behind a resource or a template; takes the entry's media type along.
type Run = Arc<dyn Fn(Parts, Option<String>) -> HandlerFuture + Send + Sync>;

fn erase<M, R, H>(handler: H) -> Run
where
    R: IntoResourceResult + 'static,
    H: Handler<M, R>,
{
    Arc::new(move |parts: Parts, mime_type: Option<String>| {
        let handler = handler.clone();
        Box::pin(async move {
            let uri = parts.context.uri().unwrap_or_default().to_owned();
            let result = handler.run(parts).await?.into_resource_result(&uri, mime_type.as_deref())?;
            Ok(Finished::Resource(result))
        })
    })
}

/// A resource: its definition and its handler.
#[derive(Clone)]
pub struct ResourceEntry {
    pub(crate) definition: Resource,
    timeout: Option<Option<Duration>>,
    run: Run,
    fixed: Option<Arc<Fixed>>,
}

/// A text that does not change, and its encoded results.
struct Fixed {
    text: String,
    results: [OnceLock<Bytes>; Revision::ALL.len()],
}

impl std::fmt::Debug for ResourceEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceEntry").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl ResourceEntry {
    /// A resource with this URI and name, served by an async function.
    pub fn new<M, R, H>(uri: impl Into<String>, name: impl Into<String>, handler: H) -> ResourceEntry
    where
        R: IntoResourceResult + 'static,
        H: Handler<M, R>,
    {
        ResourceEntry {
            definition: Resource { uri: uri.into(), name: name.into(), ..Resource::default() },
            timeout: None,
            run: erase(handler),
            fixed: None,
        }
    }

    /// A resource whose text does not change.
    pub fn text(uri: impl Into<String>, name: impl Into<String>, text: impl Into<String>) -> ResourceEntry {
        let fixed = Arc::new(Fixed { text: text.into(), results: Default::default() });
        let text = fixed.clone();
        let entry = ResourceEntry::new(uri, name, move || {
            let text = text.clone();
            async move { text.text.clone() }
        });
        ResourceEntry { fixed: Some(fixed), ..entry }
    }

    /// What it holds, for the model.
    pub fn description(mut self, description: impl Into<String>) -> ResourceEntry {
        self.definition.description = Some(description.into());
        self
    }

    /// Its name for people.
    pub fn title(mut self, title: impl Into<String>) -> ResourceEntry {
        self.definition.title = Some(title.into());
        self
    }

    /// Its media type.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> ResourceEntry {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Its size in bytes.
    pub fn size(mut self, size: u64) -> ResourceEntry {
        self.definition.size = Some(size);
        self
    }

    /// Hints.
    pub fn annotations(mut self, annotations: Annotations) -> ResourceEntry {
        self.definition.annotations = Some(annotations);
        self
    }

    /// Its pictures.
    pub fn icons(mut self, icons: Vec<Icon>) -> ResourceEntry {
        self.definition.icons = icons;
        self
    }

    /// Its `_meta`.
    pub fn meta(mut self, meta: Meta) -> ResourceEntry {
        self.definition.meta = Some(meta);
        self
    }

    /// How long a read may take, instead of the server's default.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> ResourceEntry {
        self.timeout = Some(timeout.into());
        self
    }

    /// The result of a read, encoded before, if the resource does not change.
    pub(crate) fn fixed_result(&self, revision: Revision, server: &Shared) -> Option<Bytes> {
        let fixed = self.fixed.as_ref()?;
        let result = fixed.results[revision.index()].get_or_init(|| {
            let Resource { uri, mime_type, .. } = &self.definition;
            let contents = ResourceContents::text(uri, &fixed.text);
            let contents = ResourceContents { mime_type: mime_type.clone(), ..contents };
            let result = ReadResourceResult { contents: vec![contents], ..ReadResourceResult::default() };
            let mut out = Vec::new();
            server.write_complete(&mut out, revision, &result, None, Cache::AsSet);
            out.into()
        });
        Some(result.clone())
    }

    pub(crate) fn compile(&mut self) -> Result<(), String> {
        // Encoded results belong to one server; a clone of an entry may go to another.
        if let Some(fixed) = &mut self.fixed {
            *fixed = Arc::new(Fixed { text: fixed.text.clone(), results: Default::default() });
        }
        let uri = &self.definition.uri;
        let scheme = uri.split_once(':').map(|(scheme, _)| scheme).unwrap_or_default();
        let fits = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
        if fits { Ok(()) } else { Err("a resource's URI starts with a scheme, like `file:`".to_owned()) }
    }
}

/// A family of resources: its definition and its handler.
#[derive(Clone)]
pub struct TemplateEntry {
    pub(crate) definition: ResourceTemplate,
    pub(crate) completers: Vec<(String, Completer)>,
    timeout: Option<Option<Duration>>,
    template: Option<UriTemplate>,
    run: Run,
}

impl std::fmt::Debug for TemplateEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TemplateEntry").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl TemplateEntry {
    /// Resources of this URI template, served by an async function;
    /// [`Context::variable`](crate::Context::variable) gives the template's variables.
    pub fn new<M, R, H>(uri_template: impl Into<String>, name: impl Into<String>, handler: H) -> TemplateEntry
    where
        R: IntoResourceResult + 'static,
        H: Handler<M, R>,
    {
        TemplateEntry {
            definition: ResourceTemplate {
                uri_template: uri_template.into(),
                name: name.into(),
                ..ResourceTemplate::default()
            },
            completers: Vec::new(),
            timeout: None,
            template: None,
            run: erase(handler),
        }
    }

    /// What they hold, for the model.
    pub fn description(mut self, description: impl Into<String>) -> TemplateEntry {
        self.definition.description = Some(description.into());
        self
    }

    /// Its name for people.
    pub fn title(mut self, title: impl Into<String>) -> TemplateEntry {
        self.definition.title = Some(title.into());
        self
    }

    /// Their media type.
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> TemplateEntry {
        self.definition.mime_type = Some(mime_type.into());
        self
    }

    /// Its `_meta`.
    pub fn meta(mut self, meta: Meta) -> TemplateEntry {
        self.definition.meta = Some(meta);
        self
    }

    /// Its pictures.
    pub fn icons(mut self, icons: Vec<Icon>) -> TemplateEntry {
        self.definition.icons = icons;
        self
    }

    /// Completes a variable from what the user typed so far.
    pub fn complete(
        mut self,
        variable: impl Into<String>,
        completer: impl Fn(&str) -> Vec<String> + Send + Sync + 'static,
    ) -> TemplateEntry {
        self.completers.push((variable.into(), Completer::new(completer)));
        self
    }

    /// How long a read may take, instead of the server's default.
    pub fn timeout(mut self, timeout: impl Into<Option<Duration>>) -> TemplateEntry {
        self.timeout = Some(timeout.into());
        self
    }

    pub(crate) fn compile(&mut self) -> Result<(), String> {
        let template = UriTemplate::parse(&self.definition.uri_template)?;
        if let Some((unknown, _)) =
            self.completers.iter().find(|(name, _)| !template.variables().any(|variable| variable == name))
        {
            return Err(format!("there is no variable {unknown:?} to complete"));
        }
        self.template = Some(template);
        Ok(())
    }

    pub(crate) fn matches(&self, uri: &str) -> Option<Vec<(String, String)>> {
        self.template.as_ref()?.matches(uri)
    }

    pub(crate) fn completion(&self, variable: &str, typed: &str) -> Option<Completion> {
        self.completers.iter().find(|(name, _)| name == variable).map(|(_, completer)| completer.run(typed))
    }
}

/// A resource that can be read, whichever way it was found.
pub(crate) struct Readable {
    timeout: Option<Option<Duration>>,
    run: Run,
    mime_type: Option<String>,
    variables: Vec<(String, String)>,
}

impl Readable {
    pub(crate) fn plain(entry: &ResourceEntry) -> Readable {
        Readable {
            timeout: entry.timeout,
            run: entry.run.clone(),
            mime_type: entry.definition.mime_type.clone(),
            variables: Vec::new(),
        }
    }

    pub(crate) fn from_template(entry: &TemplateEntry, variables: Vec<(String, String)>) -> Readable {
        Readable {
            timeout: entry.timeout,
            run: entry.run.clone(),
            mime_type: entry.definition.mime_type.clone(),
            variables,
        }
    }
}

/// `resources/read`
pub(crate) fn read(inbound: Inbound, _headers: &dyn HeaderValues) -> Dispatch {
    const METHOD: &str = "resources/read";
    let Some(uri) = inbound.request.params().text("uri") else {
        return inbound.refuse(&ProtocolError::invalid(METHOD, "`uri` must be a string"));
    };
    let snapshot = inbound.server.catalog.snapshot();
    if let Some(result) =
        snapshot.resource(&uri).and_then(|entry| entry.fixed_result(inbound.revision(), &inbound.server))
    {
        return Dispatch::Answer(Answer::shared(&inbound.request.id, result));
    }
    let uri = uri.into_owned();
    let Some(readable) = snapshot.readable(&uri) else {
        return inbound.refuse(&ProtocolError::UnknownResource(uri));
    };
    let timeout = readable.timeout.unwrap_or(inbound.server.limits.call_timeout);
    let Readable { run, variables, mime_type, .. } = readable;
    let call = Call::new(inbound, Subject::Resource { uri, variables });
    Running::start(call, METHOD, timeout, false, |context| run(Parts { context, arguments: None }, mime_type))
}

/// Can be the return value of a resource's handler.
pub trait IntoResourceResult: Send {
    /// The result it stands for; `uri` and `mime_type` are those of the entry.
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

impl<T: IntoResourceResult, E: Into<ToolError> + Send> IntoResourceResult for Result<T, E> {
    fn into_resource_result(
        self,
        uri: &str,
        mime_type: Option<&str>,
    ) -> Result<ReadResourceResult, ToolError> {
        self.map_err(Into::into)?.into_resource_result(uri, mime_type)
    }
}
