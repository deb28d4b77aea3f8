//! [`ResourceListEntry`]: resources that are listed by a handler, in addition to registered ones.

use std::future::Future;
use std::panic::Location;
use std::pin::Pin;
use std::sync::Arc;

use bindpost_mcp_protocol::Resource;

use crate::auth::AccessRule;
use crate::catalog::resource::handler_fn;
use crate::error::ToolError;
use crate::handler::context::Context;
use crate::handler::extract::{CallParts, Handler};
use crate::handler::signature::Signature;

/// A list of the resources of one scheme, computed by a handler for each `resources/list`.
///
/// A registered resource or template reads them, as it reads any other.
#[derive(Clone)]
pub struct ResourceListEntry {
    pub(crate) scheme: String,
    pub(crate) signature: Signature,
    pub(crate) access: Arc<AccessRule>,
    origin: &'static Location<'static>,
    list: Arc<List>,
}

type List = dyn Fn(CallParts) -> ListFuture + Send + Sync;
pub(crate) type ListFuture = Pin<Box<dyn Future<Output = Result<Vec<Resource>, ToolError>> + Send>>;

impl std::fmt::Debug for ResourceListEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ResourceListEntry").field("scheme", &self.scheme).finish_non_exhaustive()
    }
}

impl ResourceListEntry {
    /// Returns an entry that lists the resources of a scheme (`menu` for `menu://…`) with an async function.
    #[track_caller]
    pub fn new<M, R, H>(scheme: impl Into<String>, handler: H) -> ResourceListEntry
    where
        R: IntoResourceList + 'static,
        H: Handler<M, R>,
    {
        ResourceListEntry::with_signature(scheme, H::signature(), handler_fn(handler))
    }

    /// Returns an entry with an explicit signature. The attribute `#[resource_list]` generates calls
    /// of this function.
    #[track_caller]
    pub fn with_signature<R, Fut>(
        scheme: impl Into<String>,
        signature: Signature,
        run: impl Fn(CallParts) -> Fut + Send + Sync + 'static,
    ) -> ResourceListEntry
    where
        R: IntoResourceList,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
    {
        let list = move |parts: CallParts| -> ListFuture {
            let running = run(parts);
            Box::pin(async move { running.await?.into_resource_list() })
        };
        ResourceListEntry {
            scheme: scheme.into(),
            signature,
            access: Arc::default(),
            origin: Location::caller(),
            list: Arc::new(list),
        }
    }

    /// Sets the callers that may see the listed resources. The default is every authenticated caller. The
    /// rule applies for every [`ListVisibility`](crate::ListVisibility), because the list contains data.
    pub fn access(mut self, access: AccessRule) -> ResourceListEntry {
        self.access = Arc::new(access);
        self
    }

    pub(crate) fn origin(&self) -> &'static Location<'static> {
        self.origin
    }

    pub(crate) fn compile(&mut self) -> Result<(), String> {
        self.signature.check()?;
        if self.scheme.is_empty() || self.scheme.contains(':') {
            return Err("a resource list has one scheme; write `menu` for `menu://…`".to_owned());
        }
        match self.signature.names().next() {
            None => Ok(()),
            Some(name) => Err(format!("a list takes no arguments, so {name:?} cannot be filled")),
        }
    }

    /// Runs the handler and returns the resources.
    pub(crate) async fn list(&self, context: Context) -> Result<Vec<Resource>, ToolError> {
        let resources = (self.list)(CallParts::new(context, None)).await?;
        let scheme = |resource: &Resource| resource.uri.split(':').next().unwrap_or_default().to_owned();
        match resources.iter().find(|resource| scheme(resource) != self.scheme) {
            None => Ok(resources),
            Some(other) => {
                let reason = format!("the list of scheme {:?} returned {:?}", self.scheme, other.uri);
                Err(ToolError::with_source("the list of resources is invalid", reason))
            }
        }
    }
}

/// A type that a handler of a list of resources can return.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a list of resources",
    note = "return `Vec<Resource>`, or a `Result` of one"
)]
pub trait IntoResourceList: Send {
    /// Converts the value into the definitions of the resources.
    fn into_resource_list(self) -> Result<Vec<Resource>, ToolError>;
}

impl IntoResourceList for Vec<Resource> {
    fn into_resource_list(self) -> Result<Vec<Resource>, ToolError> {
        Ok(self)
    }
}

impl<T: IntoResourceList, E: Into<ToolError> + Send> IntoResourceList for Result<T, E> {
    fn into_resource_list(self) -> Result<Vec<Resource>, ToolError> {
        self.map_err(Into::into)?.into_resource_list()
    }
}
