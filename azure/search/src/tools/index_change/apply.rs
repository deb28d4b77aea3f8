//! Applies a plan. A rebuild that fails is rolled back.

use std::sync::Arc;

use bindpost_mcp_server::Context;
use serde_json::{Value, json};

use super::IndexChangeRequest;
use super::compare::{ChangeEffect, compare};
use super::copy::{self, CopyPaging};
use super::live::{IndexAlias, LiveIndex};
use super::plan::{ChangePlan, ChangeStrategy};
use crate::service::client::odata_key;
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::reading::alias_target;

pub(super) async fn apply(
    shared: &Arc<SearchServerState>,
    context: &Context,
    live: LiveIndex,
    plan: ChangePlan,
    wish: &IndexChangeRequest,
) -> Result<Value, ServiceFailure> {
    if plan.strategy != ChangeStrategy::RebuildBehindAlias {
        return update(shared, &live, &plan, wish).await;
    }
    let (Some(alias), Ok(paging)) = (live.aliases.first().cloned(), plan.paging.clone()) else {
        return Err(ServiceFailure::new(Kind::InvalidRequest, "no alias to switch"));
    };
    let rebuild = IndexRebuild {
        shared: shared.clone(),
        context: context.clone(),
        old: live,
        new: plan.new_name,
        wanted: plan.wanted,
        alias,
        paging,
        keeps_old: wish.keep_old.unwrap_or(true),
        id: wish.client_request_id.clone(),
    };
    // The rebuild runs in its own task, so that a cancelled call is still rolled back.
    match tokio::spawn(rebuild.run()).await {
        Ok(done) => done,
        Err(error) => {
            tracing::error!(%error, "a rebuild panicked");
            Err(ServiceFailure::new(
                Kind::ServerError,
                "the rebuild failed with an internal error of this server; see its log",
            ))
        }
    }
}

/// Writes the definition, unless it was changed since it was read.
async fn update(
    shared: &SearchServerState,
    live: &LiveIndex,
    plan: &ChangePlan,
    wish: &IndexChangeRequest,
) -> Result<Value, ServiceFailure> {
    let path = format!("indexes{}", odata_key(&live.name));
    let mut call =
        shared.client.put(path.clone(), plan.wanted.clone()).header("prefer", "return=representation");
    if let Some(etag) = &live.etag {
        call = call.header("if-match", etag);
    }
    if plan.strategy == ChangeStrategy::UpdateWithDowntime {
        call = call.query("allowIndexDowntime", "true");
    }
    match call.request_id(wish.client_request_id.as_deref()).send().await {
        Ok(answer) => Ok(json!({"indexName": live.name, "etag": answer.etag()})),
        Err(mut failure) if failure.status == Some(412) => {
            if let Some(now) = shared.client.get(path).send().await.ok().and_then(|answer| answer.etag()) {
                failure = failure.with("currentETag", now);
            }
            Err(failure)
        }
        Err(failure) => Err(failure),
    }
}

/// A rebuild: creates a new index, copies the documents, then switches the alias.
struct IndexRebuild {
    shared: Arc<SearchServerState>,
    context: Context,
    old: LiveIndex,
    new: String,
    wanted: Value,
    alias: IndexAlias,
    paging: CopyPaging,
    keeps_old: bool,
    id: Option<String>,
}

impl IndexRebuild {
    async fn run(mut self) -> Result<Value, ServiceFailure> {
        if let Value::Object(members) = &mut self.wanted {
            members.insert("name".to_owned(), self.new.clone().into());
        }
        // Not cancellable: the outcome of the creation must be known.
        let created = self.create().await?;
        let copied = tokio::select! {
            copied = self.copy_documents() => copied,
            () = self.context.cancelled() => Err(ServiceFailure::new(Kind::UnknownError, "the call was cancelled")),
        };
        let documents = match copied {
            Ok(documents) => documents,
            Err(failure) => return Err(self.roll_back(failure, created).await),
        };
        // Not cancellable: an abandoned switch may have been executed.
        self.switch(created).await?;
        let old = self.delete_old().await;
        Ok(json!({
            "indexName": self.new,
            "oldIndexName": self.old.name,
            "aliasName": self.alias.name,
            "documents": documents,
            "oldIndex": old,
            "undo": {"tool": "createOrUpdateAlias", "arguments": {"aliasName": self.alias.name,
                "body": {"name": self.alias.name, "indexes": [self.old.name]}}},
        }))
    }

    /// Creates the new index. Returns `false` if an earlier attempt left one with the same definition,
    /// which is then used.
    async fn create(&self) -> Result<bool, ServiceFailure> {
        let client = &self.shared.client;
        let path = format!("indexes{}", odata_key(&self.new));
        if self.old.taken.contains(&self.new) {
            let there = client.get(path).send().await?.body;
            let is_same =
                compare(&there, &self.wanted).iter().all(|change| change.effect == ChangeEffect::None);
            if is_same && there.get("name").and_then(Value::as_str) == Some(&self.new) {
                return Ok(false);
            }
            let text = format!(
                "\"{}\" already exists with another definition; choose another newIndexName, or delete it",
                self.new
            );
            return Err(ServiceFailure::new(Kind::Conflict, text));
        }
        let call = client.put(path, self.wanted.clone()).header("if-none-match", "*");
        call.header("prefer", "return=representation").request_id(self.id.as_deref()).send().await?;
        Ok(true)
    }

    async fn copy_documents(&self) -> Result<u64, ServiceFailure> {
        let names = (self.old.name.as_str(), self.new.as_str());
        copy::copy(&self.shared.client, &self.context, &self.paging, names, self.old.documents).await?;
        let documents = copy::wait_for_equal_counts(&self.shared.client, names.0, names.1).await?;
        let now = self.shared.client.get(format!("indexes{}", odata_key(names.0))).send().await?.etag();
        if now != self.old.etag {
            let text =
                format!("the definition of \"{}\" was changed while it was copied; plan again", names.0);
            return Err(ServiceFailure::new(Kind::Conflict, text).with("currentETag", now));
        }
        Ok(documents)
    }

    /// Points the alias to the new index, unless the alias was changed since it was read.
    async fn switch(&self, created: bool) -> Result<(), ServiceFailure> {
        let path = format!("aliases{}", odata_key(&self.alias.name));
        let body = json!({"name": self.alias.name, "indexes": [self.new]});
        let client = &self.shared.client;
        let mut call = client.put(path.clone(), body).header("prefer", "return=representation");
        if let Some(etag) = &self.alias.etag {
            call = call.header("if-match", etag);
        }
        let Err(failure) = call.request_id(self.id.as_deref()).send().await else { return Ok(()) };
        let now = client.get(path).send().await;
        let points_to = now.as_ref().ok().and_then(|answer| alias_target(&answer.body)).map(str::to_owned);
        if points_to.as_deref() == Some(&self.new) {
            // The switch succeeded, but its response was lost.
            return Ok(());
        }
        let etag = now.as_ref().ok().and_then(|answer| answer.etag());
        if failure.status != Some(412) && points_to.as_deref() == Some(&self.old.name) {
            return Err(self.roll_back(failure, created).await);
        }
        let text = format!(
            "the alias \"{}\" was changed during the rebuild, so it was not switched. Both indexes are kept: \"{}\" contains \
             all the documents. Check the alias, then switch it with createOrUpdateAlias, or delete \"{}\"",
            self.alias.name, self.new, self.new
        );
        let mut told = ServiceFailure::new(Kind::Conflict, text)
            .with("cause", failure.to_json())
            .with("newIndexName", self.new.clone())
            .with("aliasPointsTo", points_to);
        told.status = failure.status;
        Err(match etag {
            Some(etag) => told.with("currentETag", etag),
            None => told,
        })
    }

    /// Deletes only what this rebuild has created.
    async fn roll_back(&self, failure: ServiceFailure, created: bool) -> ServiceFailure {
        let told = match created {
            false => format!("\"{}\" existed before and is kept", self.new),
            true => {
                match self.shared.client.delete(format!("indexes{}", odata_key(&self.new))).send().await {
                    Ok(_) => format!("the new index \"{}\" was deleted again; nothing has changed", self.new),
                    Err(error) => {
                        let why = error.message;
                        format!(
                            "the new index \"{}\" could not be deleted ({why}); delete it with deleteIndex",
                            self.new
                        )
                    }
                }
            }
        };
        tracing::warn!(
            index = self.old.name,
            new = self.new,
            reason = failure.message,
            "a rebuild was rolled back"
        );
        failure.with("rolledBack", told)
    }

    async fn delete_old(&self) -> String {
        if self.keeps_old {
            return "kept; delete it with deleteIndex when it is no longer needed".to_owned();
        }
        let mut call = self.shared.client.delete(format!("indexes{}", odata_key(&self.old.name)));
        if let Some(etag) = &self.old.etag {
            call = call.header("if-match", etag);
        }
        match call.request_id(self.id.as_deref()).send().await {
            Ok(_) => "deleted".to_owned(),
            Err(failure) => format!("kept, because it could not be deleted: {}", failure.message),
        }
    }
}
