//! `planIndexChange`: plans the change of an index definition and applies it, in place or as a
//! blue-green rebuild behind an alias.

mod apply;
pub(crate) mod compare;
pub(crate) mod copy;
pub(crate) mod fields;
pub(crate) mod live;
pub(crate) mod plan;

use std::sync::Arc;

use bindpost_mcp_server::{Context, Entry, ToolError, ToolHints};
use serde::Deserialize;
use serde_json::{Value, json};

use self::live::LiveIndex;
use self::plan::{ChangePlan, ChangeStrategy};
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{DESTROYS, READS, ToolOutline};

pub(crate) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let read_only = shared.read_only;
    let description = "Compares a wanted index definition with the live one: what changes in place, what needs a rebuild, \
        and the steps. With apply it does them: updates in place, or creates a new index, copies the documents, checks the \
        count and switches the alias; rolls back if that fails.";
    let mut properties = json!({
        "indexName": {"type": "string", "minLength": 1},
        "body": {"type": "object", "description": "the complete wanted definition: missing parts are removed"},
        "aliasName": {"type": "string", "description": "the alias that callers use; detected if absent"},
        "newIndexName": {"type": "string", "description": "for a rebuild; default {name}-v2 and so on"},
        "etag": {"type": "string", "description": "fail if the index has another etag"},
        "clientRequestId": {"type": "string"}
    });
    if !read_only {
        properties["apply"] = json!({"type": "boolean", "default": false, "description": "apply the change, after confirmation if the client supports it"});
        properties["keepOld"] = json!({"type": "boolean", "default": true, "description": "false: delete the old index after a rebuild"});
    }
    let hints = if read_only { READS } else { ToolHints { idempotent: false, ..DESTROYS } };
    let outline = ToolOutline::new("planIndexChange", description, hints, properties, &["indexName", "body"]);
    vec![outline.typed(shared, change).timeout(None).into()]
}

/// The arguments of the tool.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct IndexChangeRequest {
    index_name: String,
    body: Value,
    #[serde(default)]
    apply: bool,
    alias_name: Option<String>,
    new_index_name: Option<String>,
    etag: Option<String>,
    keep_old: Option<bool>,
    client_request_id: Option<String>,
}

async fn change(
    shared: Arc<SearchServerState>,
    context: Context,
    mut wish: IndexChangeRequest,
) -> Result<Value, ToolError> {
    let live = LiveIndex::read(&shared, &wish).await?;
    check_unchanged(&wish, &live)?;
    // `indexName` determines the name. Members that the service adds to its responses are not
    // part of a definition.
    let said = wish.body.get("name").and_then(Value::as_str).map(str::to_owned);
    let renamed = said.filter(|said| *said != live.name && *said != wish.index_name);
    if let Value::Object(members) = &mut wish.body {
        members.retain(|name, _| !name.starts_with("@odata."));
        members.insert("name".to_owned(), live.name.clone().into());
    }
    let mut plan = ChangePlan::new(&live, &wish);
    if let Some(renamed) = renamed {
        plan.note(format!(
            "the name in the body is \"{renamed}\", but an index cannot be renamed; \"{}\" is changed",
            live.name
        ));
    }
    let mut told = plan.to_json(shared.answer_bytes / 2);
    if wish.apply && !shared.read_only {
        match plan.refusal() {
            Some(refusal) => {
                let failure =
                    ServiceFailure::new(Kind::InvalidRequest, refusal).with("plan", Value::Object(told));
                return Err(failure.into());
            }
            None if plan.strategy == ChangeStrategy::Nothing => {}
            None => {
                shared.confirm(&context, &plan.question(&wish)).await?;
                if plan.strategy == ChangeStrategy::RebuildBehindAlias {
                    context.go_on_as_task().await;
                }
                let done = apply::apply(&shared, &context, live, plan, &wish).await?;
                told.insert("applied".to_owned(), done);
            }
        }
    }
    Ok(Value::Object(told))
}

/// Rejects the change if the index differs from the version that the caller has read.
fn check_unchanged(wish: &IndexChangeRequest, live: &LiveIndex) -> Result<(), ServiceFailure> {
    let bare = |etag: &str| etag.trim().trim_start_matches("W/").trim_matches('"').to_owned();
    match (&wish.etag, &live.etag) {
        (Some(seen), Some(now)) if bare(seen) != bare(now) => {
            let text = format!(
                "the index \"{}\" was changed since its etag was read; plan again with the current definition",
                live.name
            );
            Err(ServiceFailure::new(Kind::Conflict, text).with("currentETag", now.clone()))
        }
        _ => Ok(()),
    }
}
