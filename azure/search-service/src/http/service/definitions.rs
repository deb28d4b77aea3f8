//! Lists, reads, creates, replaces and deletes definitions.

use http::header::{ETAG, LOCATION};
use http::{Method, StatusCode};
use serde_json::{Map, Value};

use crate::ApiError;
use crate::budget::Lane;
use crate::http::answer::Reply;
use crate::http::route::Set;
use crate::resources::{Definition, Kind, Resources};

use super::{Call, Service};

impl Service {
    /// `/indexes` and its like.
    pub(super) async fn all(&self, call: Call<'_>, set: Set) -> Result<Reply, ApiError> {
        if call.method == Method::GET {
            return self.list(&call, set);
        }
        let body = call.object()?;
        let created = self.blocking(&call, move |resources| resources.create(set.kind, body)).await?;
        call.entity(set, StatusCode::CREATED, &created)
    }

    /// `/indexes('x')` and its like.
    pub(super) async fn one(&self, call: Call<'_>, set: Set, name: String) -> Result<Reply, ApiError> {
        let conditions = call.headers.conditions();
        if call.method == Method::PUT {
            let body = call.object()?;
            let downtime = call.options.boolean("allowIndexDowntime")?;
            let put =
                move |resources: &Resources| resources.put(set.kind, &name, body, &conditions, downtime);
            let (definition, is_new) = self.blocking(&call, put).await?;
            return match (is_new, call.headers.wants_representation()) {
                (true, _) => call.entity(set, StatusCode::CREATED, &definition),
                (false, true) => call.entity(set, StatusCode::OK, &definition),
                (false, false) => {
                    Ok(Reply::empty(StatusCode::NO_CONTENT).with_header(ETAG, &definition.etag))
                }
            };
        }
        if call.method == Method::DELETE {
            self.blocking(&call, move |resources| resources.delete(set.kind, &name, &conditions)).await?;
            return Ok(Reply::empty(StatusCode::NO_CONTENT));
        }
        let found = match set.kind {
            Kind::Index => self.resources.find_index(&name)?,
            kind => self.resources.find(kind, &name)?,
        };
        call.entity(set, StatusCode::OK, &found)
    }

    fn list(&self, call: &Call<'_>, set: Set) -> Result<Reply, ApiError> {
        let select =
            call.options.one("$select")?.map(str::trim).filter(|select| !matches!(*select, "" | "*"));
        let names: Option<Vec<_>> = select.map(|select| select.split(',').map(str::trim).collect());
        let shown = self.resources.list(set.kind).into_iter().map(|definition| {
            let mut shown = definition.shown();
            if let (Some(names), Value::Object(members)) = (&names, &mut shown) {
                members.retain(|member, _| member == "@odata.etag" || names.contains(&member.as_str()));
            }
            shown
        });
        let mut body = Map::new();
        if let Some(context) = call.context.of_list(set.collection, select) {
            body.insert("@odata.context".to_owned(), Value::from(context));
        }
        body.insert("value".to_owned(), Value::Array(shown.collect()));
        Reply::json(StatusCode::OK, &body)
    }

    /// Writing waits for the disk, and for whoever makes the index.
    async fn blocking<T: Send + 'static>(
        &self,
        call: &Call<'_>,
        work: impl FnOnce(&Resources) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let resources = self.resources.clone();
        call.context.budget.work(Lane::Write, move || work(&resources)).await
    }
}

impl Call<'_> {
    /// One definition, with its ETag in the body and in the header.
    fn entity(&self, set: Set, status: StatusCode, definition: &Definition) -> Result<Reply, ApiError> {
        let mut shown = definition.shown();
        if let (Value::Object(members), Some(context)) = (&mut shown, self.context.of_entity(set.collection))
        {
            members.insert("@odata.context".to_owned(), Value::from(context));
        }
        let reply = Reply::json(status, &shown)?.with_header(ETAG, &definition.etag);
        if status != StatusCode::CREATED {
            return Ok(reply);
        }
        let (base, version) = (&self.context.base, &self.context.api_version);
        let (collection, name) = (set.collection, &definition.name);
        Ok(reply.with_header(LOCATION, &format!("{base}/{collection}('{name}')?api-version={version}")))
    }
}
