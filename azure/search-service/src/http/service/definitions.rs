//! Lists, reads, creates, replaces and deletes definitions.

use bindpost_azure_search_model::ApiError;
use http::header::{ETAG, LOCATION};
use http::{Method, StatusCode};
use serde_json::{Map, Value};

use crate::budget::WorkKind;
use crate::http::answer::HttpReply;
use crate::http::route::RouteCollection;
use crate::resources::{ResourceDefinition, ResourceKind, ResourceRegistry};

use super::{AuthorizedRequest, HttpService};

impl HttpService {
    /// Handles `/indexes` and the other collections.
    pub(super) async fn handle_collection(
        &self,
        call: AuthorizedRequest<'_>,
        set: RouteCollection,
    ) -> Result<HttpReply, ApiError> {
        if call.method == Method::GET {
            return self.list(&call, set);
        }
        let body = call.object()?;
        let created = self.blocking(&call, move |resources| resources.create(set.kind, body)).await?;
        call.definition_reply(set, StatusCode::CREATED, &created)
    }

    /// Handles `/indexes('x')` and definitions of other kinds.
    pub(super) async fn handle_definition(
        &self,
        call: AuthorizedRequest<'_>,
        set: RouteCollection,
        name: String,
    ) -> Result<HttpReply, ApiError> {
        let conditions = call.headers.conditions();
        if call.method == Method::PUT {
            let body = call.object()?;
            let downtime = call.options.boolean("allowIndexDowntime")?;
            let put = move |resources: &ResourceRegistry| {
                resources.put(set.kind, &name, body, &conditions, downtime)
            };
            let (definition, is_new) = self.blocking(&call, put).await?;
            return match (is_new, call.headers.wants_representation()) {
                (true, _) => call.definition_reply(set, StatusCode::CREATED, &definition),
                (false, true) => call.definition_reply(set, StatusCode::OK, &definition),
                (false, false) => {
                    Ok(HttpReply::empty(StatusCode::NO_CONTENT).with_header(ETAG, &definition.etag))
                }
            };
        }
        if call.method == Method::DELETE {
            self.blocking(&call, move |resources| resources.delete(set.kind, &name, &conditions)).await?;
            return Ok(HttpReply::empty(StatusCode::NO_CONTENT));
        }
        let found = match set.kind {
            ResourceKind::Index => self.resources.find_index(&name)?,
            kind => self.resources.find(kind, &name)?,
        };
        call.definition_reply(set, StatusCode::OK, &found)
    }

    fn list(&self, call: &AuthorizedRequest<'_>, set: RouteCollection) -> Result<HttpReply, ApiError> {
        let select =
            call.options.one("$select")?.map(str::trim).filter(|select| !matches!(*select, "" | "*"));
        let names: Option<Vec<_>> = select.map(|select| select.split(',').map(str::trim).collect());
        let shown = self.resources.list(set.kind).into_iter().map(|definition| {
            let mut shown = definition.public_json();
            if let (Some(names), Value::Object(members)) = (&names, &mut shown) {
                members.retain(|member, _| member == "@odata.etag" || names.contains(&member.as_str()));
            }
            shown
        });
        let mut body = Map::new();
        if let Some(context) = call.context.list_context(set.collection, select) {
            body.insert("@odata.context".to_owned(), Value::from(context));
        }
        body.insert("value".to_owned(), Value::Array(shown.collect()));
        HttpReply::json(StatusCode::OK, &body)
    }

    /// Runs a write on a blocking thread. It waits for the disk and for the creation of an index.
    async fn blocking<T: Send + 'static>(
        &self,
        call: &AuthorizedRequest<'_>,
        work: impl FnOnce(&ResourceRegistry) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let resources = self.resources.clone();
        call.context.budget.run_blocking(WorkKind::Write, move || work(&resources)).await
    }
}

impl AuthorizedRequest<'_> {
    /// Returns a response with one definition. Its ETag is in the body and in the header.
    fn definition_reply(
        &self,
        set: RouteCollection,
        status: StatusCode,
        definition: &ResourceDefinition,
    ) -> Result<HttpReply, ApiError> {
        let mut shown = definition.public_json();
        if let (Value::Object(members), Some(context)) =
            (&mut shown, self.context.entity_context(set.collection))
        {
            members.insert("@odata.context".to_owned(), Value::from(context));
        }
        let reply = HttpReply::json(status, &shown)?.with_header(ETAG, &definition.etag);
        if status != StatusCode::CREATED {
            return Ok(reply);
        }
        let (base, version) = (&self.context.base, &self.context.api_version);
        let (collection, name) = (set.collection, &definition.name);
        Ok(reply.with_header(LOCATION, &format!("{base}/{collection}('{name}')?api-version={version}")))
    }
}
