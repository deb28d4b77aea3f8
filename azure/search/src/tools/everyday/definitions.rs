//! The four tools for every kind of definition: list, get, create or update, delete.

use std::sync::Arc;

use bindpost_mcp_openapi::count_fitting;
use bindpost_mcp_server::{Entry, ToolError, ToolHints};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::body_check::BodyCheck;
use super::differences::differences;
use super::{DefinitionKind, KINDS, hide_secrets};
use crate::service::client::{ServiceResponse, odata_key, percent_encoded};
use crate::service::failure::{Kind, ServiceFailure};
use crate::shared::SearchServerState;
use crate::tools::builder::{DESTROYS, READS, ToolArguments, ToolOutline, page};

/// Default number of items in one result of a list.
const PAGE: u64 = 50;
/// Maximum number of items in one result of a list.
const LARGEST_PAGE: u64 = 200;
/// Size of a result without its items, in bytes.
const FRAME: usize = 512;

pub(crate) fn entries(shared: &Arc<SearchServerState>) -> Vec<Entry> {
    let mut entries = Vec::new();
    for kind in KINDS {
        entries.push(list_tool(kind, shared));
        entries.push(get_tool(kind, shared));
        if !shared.read_only {
            entries.push(put_tool(kind, shared));
            entries.push(delete_tool(kind, shared));
        }
    }
    entries
}

fn list_tool(kind: &'static DefinitionKind, shared: &Arc<SearchServerState>) -> Entry {
    let shown: String = kind.listed.iter().map(|member| format!(", {member}")).collect();
    let description = format!("List {}: name, description, etag{shown}.", kind.words);
    let properties = json!({
        "cursor": {"type": "string"},
        "limit": {"type": "integer", "minimum": 1, "maximum": LARGEST_PAGE, "default": PAGE},
        "select": {"type": "string", "description": "members to show whole; * for all"},
        "clientRequestId": {"type": "string"},
    });
    ToolOutline::new(format!("list{}", kind.many), description, READS, properties, &[])
        .output(json!({"type": "object", "required": ["items", "hasMore"]}))
        .entry(shared, move |shared, arguments| async move { Ok(list(kind, &shared, &arguments).await?) })
}

/// Position in a list: after this name, so that added or deleted definitions do not shift it.
#[derive(Serialize, Deserialize)]
struct DefinitionCursor {
    name: String,
    select: Option<String>,
}

async fn list(
    kind: &DefinitionKind,
    shared: &SearchServerState,
    arguments: &ToolArguments,
) -> Result<Value, ServiceFailure> {
    let place = format!("list{}", kind.many);
    let after: Option<DefinitionCursor> = match arguments.text("cursor") {
        Some(cursor) => Some(shared.cursors.verify(&place, arguments.caller(), cursor)?),
        None => None,
    };
    let select = arguments.joined_names("select").or_else(|| after.as_ref()?.select.clone());
    if let Some(select) = &select {
        check_selection(kind, shared, select)?;
    }
    let mut items = read_list(kind, shared, select.as_deref(), arguments.request_id()).await?;
    let total = items.len();
    if let Some(after) = &after {
        items.retain(|item| name_of(item) > after.name.as_str());
    }
    let limit = arguments.whole_number("limit").unwrap_or(PAGE).clamp(1, LARGEST_PAGE) as usize;
    let fit = count_fitting(&items, shared.answer_bytes.saturating_sub(FRAME)).min(limit);
    let last = match items.len() > fit {
        true => fit.checked_sub(1).and_then(|last| items.get(last)).map(|item| name_of(item).to_owned()),
        false => None,
    };
    items.truncate(fit);
    let cursor = last
        .and_then(|name| shared.cursors.sign(&place, arguments.caller(), &DefinitionCursor { name, select }));
    let mut answer = page(items, cursor);
    answer["total"] = total.into();
    Ok(answer)
}

/// Rejects a selection of members that definitions of this kind do not have.
fn check_selection(
    kind: &DefinitionKind,
    shared: &SearchServerState,
    select: &str,
) -> Result<(), ServiceFailure> {
    let Some(own) = kind.schemas.iter().find(|name| shared.document.definitions.contains_key(**name)) else {
        return Ok(());
    };
    // The schemas of subtypes contain the name of the kind's schema, and have members of their own.
    let schemas = shared.document.definitions.iter().filter(|(name, _)| name.ends_with(own));
    let properties = schemas.filter_map(|(_, schema)| schema.get("properties")?.as_object());
    let mut known: Vec<&str> = properties.flat_map(|members| members.keys().map(String::as_str)).collect();
    known.extend(["name", "description", "@odata.etag", "*"]);
    let mut named = select.split(',').map(str::trim).filter(|name| !name.is_empty());
    let Some(unknown) = named.find(|name| !known.contains(name)) else { return Ok(()) };
    let message = format!("`select` contains {unknown:?}, which is not a member of {}", kind.word);
    let near = bindpost_mcp_server::nearest::nearest(unknown, &known);
    let fix = match near {
        Some(near) => format!("write {near}"),
        None => "use members of the definition, or * for all".to_owned(),
    };
    Err(ServiceFailure::new(Kind::InvalidRequest, message).with("fix", fix))
}

/// Returns the members that a list shows by default.
fn brief(kind: &DefinitionKind, definition: &Value) -> Value {
    let mut told = serde_json::Map::new();
    for member in ["name", "description", "@odata.etag"].iter().chain(kind.listed) {
        let value = match definition.get(*member) {
            None | Some(Value::Null) => continue,
            Some(Value::String(text)) if text.is_empty() => continue,
            Some(Value::Array(parts)) => {
                parts.iter().map(|part| part.get("name").unwrap_or(part).clone()).collect()
            }
            Some(value) => value.get("name").unwrap_or(value).clone(),
        };
        told.insert((*member).to_owned(), value);
    }
    Value::Object(told)
}

/// Returns all definitions of a kind, sorted by name, with the selected members: all for `*`, the brief
/// form for none.
pub(crate) async fn read_list(
    kind: &DefinitionKind,
    shared: &SearchServerState,
    select: Option<&str>,
    request_id: Option<&str>,
) -> Result<Vec<Value>, ServiceFailure> {
    let mut call = shared.client.get(kind.path(&shared.client)).request_id(request_id);
    // The name is always selected, because the list is sorted by it.
    let wanted: Option<Vec<&str>> = select.map(|select| {
        let named = select.split(',').map(str::trim).filter(|name| !name.is_empty() && *name != "name");
        std::iter::once("name").chain(named).collect()
    });
    if let Some(wanted) = wanted.as_ref().filter(|wanted| kind.selects && !wanted.contains(&"*")) {
        call = call.query("$select", wanted.join(","));
    }
    let mut answer = call.send().await?;
    let items = answer.body.get_mut("value").map(Value::take);
    let Some(Value::Array(mut items)) = items else {
        return Err(ServiceFailure::new(Kind::ServerError, "the service returned no list")
            .with("status", answer.status));
    };
    // A service may return members that were not selected.
    if let Some(wanted) = wanted.filter(|wanted| !wanted.contains(&"*")) {
        for members in items.iter_mut().filter_map(Value::as_object_mut) {
            members.retain(|name, _| wanted.contains(&name.as_str()));
        }
    }
    items.iter_mut().for_each(hide_secrets);
    if select.is_none() {
        items = items.iter().map(|item| brief(kind, item)).collect();
    }
    items.sort_by(|one, other| name_of(one).cmp(name_of(other)));
    Ok(items)
}

/// Returns the name of a definition.
pub(crate) fn name_of(definition: &Value) -> &str {
    definition.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn get_tool(kind: &'static DefinitionKind, shared: &Arc<SearchServerState>) -> Entry {
    let description = format!("Get the definition of {}, with its `@odata.etag`: {}.", kind.word, kind.about);
    let properties = json!({
        kind.argument: {"type": "string"},
        "clientRequestId": {"type": "string"},
    });
    ToolOutline::new(format!("get{}", kind.one), description, READS, properties, &[kind.argument]).entry(
        shared,
        move |shared, arguments| async move {
            let name = arguments.name(kind.argument)?;
            Ok(read_definition(kind, &shared, name, arguments.request_id()).await?.body)
        },
    )
}

/// Returns one definition without its secrets.
pub(crate) async fn read_definition(
    kind: &DefinitionKind,
    shared: &SearchServerState,
    name: &str,
    request_id: Option<&str>,
) -> Result<ServiceResponse, ServiceFailure> {
    let path = format!("{}{}", kind.path(&shared.client), odata_key(name));
    let mut answer = shared.client.get(path).request_id(request_id).send().await?;
    hide_secrets(&mut answer.body);
    Ok(answer)
}

fn put_tool(kind: &'static DefinitionKind, shared: &Arc<SearchServerState>) -> Entry {
    let is_index = kind.has_path("indexes");
    let description =
        format!("Create or replace {}. To change one: get it, change it, send its etag.", kind.word);
    let schema = kind.schemas.iter().find(|name| shared.document.definitions.contains_key(**name));
    let schema = schema.or(kind.schemas.first()).copied().unwrap_or_default();
    let mut properties = json!({
        kind.argument: {"type": "string"},
        "body": {"type": "object", "description": format!("complete definition; schema: search-schema://{schema}")},
        "etag": {"type": "string", "description": "change only this version"},
        "createOnly": {"type": "boolean", "description": "fail if it exists"},
        "clientRequestId": {"type": "string"},
    });
    if is_index {
        let description = "take the index offline for seconds if the change needs it, such as a new analyzer";
        properties["allowIndexDowntime"] = json!({"type": "boolean", "description": description});
    }
    let hints = ToolHints { destructive: kind.replaces, ..DESTROYS };
    let check = Arc::new(BodyCheck::default());
    ToolOutline::new(
        format!("createOrUpdate{}", kind.one),
        description,
        hints,
        properties,
        &[kind.argument, "body"],
    )
    .entry(shared, move |shared, arguments| {
        let check = check.clone();
        async move { put(kind, &shared, &check, arguments).await }
    })
}

async fn put(
    kind: &DefinitionKind,
    shared: &SearchServerState,
    check: &BodyCheck,
    mut arguments: ToolArguments,
) -> Result<Value, ToolError> {
    let body = arguments.take("body").unwrap_or_default();
    let name = arguments.name(kind.argument)?;
    let body = with_name(body, kind, name)?;
    check.check(kind, &shared.document, &body)?;
    let (etag, create_only) = (arguments.text("etag"), arguments.flag("createOnly"));
    if etag.is_some() && create_only {
        let message = "`etag` requires an existing definition, `createOnly` a new one; set only one of them";
        return Err(ServiceFailure::new(Kind::InvalidRequest, message).into());
    }
    let downtime = arguments.flag("allowIndexDowntime");
    if downtime {
        let question = format!(
            "Change the index {name:?} and take it offline for some seconds? Searches and uploads fail during that time."
        );
        shared.confirm(&arguments.context, &question).await?;
    }
    let path = format!("{}{}", kind.path(&shared.client), odata_key(name));
    // An update replaces all rules of a synonym map, so an existing map needs a confirmation.
    let replaces = kind.has_path("synonymmaps") && shared.confirms && !create_only;
    if replaces && shared.client.get(path.clone()).send().await.is_ok() {
        let question = format!("Replace all rules of the synonym map {name:?}? The old ones are lost.");
        shared.confirm(&arguments.context, &question).await?;
    }
    let mut call = shared.client.put(path, body.clone()).request_id(arguments.request_id());
    call = call.header("prefer", "return=representation");
    if downtime {
        call = call.query("allowIndexDowntime", "true");
    }
    if let Some(etag) = etag {
        call = call.header("if-match", &as_etag(etag));
    }
    if create_only {
        call = call.header("if-none-match", "*");
    }
    let mut saved = match call.send().await {
        Ok(answer) => answer.body,
        Err(failure) if failure.status == Some(412) => {
            return Err(conflict(kind, shared, name, failure, Some(body), create_only).await.into());
        }
        Err(failure) => return Err(failure.into()),
    };
    if saved.is_null() {
        // A service without support for `Prefer` returns no body.
        saved = read_definition(kind, shared, name, None).await?.body;
    }
    hide_secrets(&mut saved);
    announce(kind, &arguments, name);
    Ok(saved)
}

/// Returns the definition with its name, without members that only our results have.
fn with_name(body: Value, kind: &DefinitionKind, name: &str) -> Result<Value, ServiceFailure> {
    let invalid = |message: String| Err(ServiceFailure::new(Kind::InvalidRequest, message));
    let Value::Object(mut members) = body else {
        return invalid("`body` must be an object, the definition".to_owned());
    };
    members.remove("@odata.context");
    members.remove("clientRequestId");
    match members.get("name") {
        None | Some(Value::Null) => drop(members.insert("name".to_owned(), name.into())),
        Some(Value::String(own)) if own == name => {}
        Some(own) => {
            return invalid(format!(
                "`body.name` is {own}, but `{}` is {name:?}; remove `body.name` or use the same name. A definition \
                 cannot be renamed",
                kind.argument
            ));
        }
    }
    Ok(Value::Object(members))
}

/// Returns an ETag as a header value. Models often omit the quotes.
fn as_etag(etag: &str) -> String {
    match etag.trim() {
        etag if etag == "*" || etag.ends_with('"') => etag.to_owned(),
        etag => format!("\"{etag}\""),
    }
}

/// Returns the failure of a condition, with the current state and a hint.
async fn conflict(
    kind: &DefinitionKind,
    shared: &SearchServerState,
    name: &str,
    failure: ServiceFailure,
    yours: Option<Value>,
    create_only: bool,
) -> ServiceFailure {
    let current = match read_definition(kind, shared, name, None).await {
        Ok(current) => current,
        Err(gone) if gone.status == Some(404) => {
            return failure.with(
                "hint",
                "It no longer exists. To create it again, if the user wants that, call without `etag`.",
            );
        }
        Err(_) => {
            return failure.with("hint", "Get the current definition and its `@odata.etag`, then try again.");
        }
    };
    let mut failure = failure;
    if let Some(etag) = current.etag() {
        failure = failure.with("currentETag", etag);
    }
    if let Some(mut yours) = yours {
        hide_secrets(&mut yours);
        let (found, more) = differences(&yours, &current.body);
        failure = failure.with("differences", found);
        if more > 0 {
            failure = failure.with("moreDifferences", more);
        }
    }
    if create_only {
        return failure.with(
            "hint",
            "A definition with this name exists, and `createOnly` does not change it. Choose another name, or call again \
             with `currentETag` as `etag` instead to change this one.",
        );
    }
    failure.with(
        "hint",
        "It was changed since you read it. Check `differences`, apply your change to the current definition, and call again with \
         `currentETag` as `etag`.",
    )
}

fn delete_tool(kind: &'static DefinitionKind, shared: &Arc<SearchServerState>) -> Entry {
    let description = format!("Delete {}. {}", kind.word, kind.loses);
    let properties = json!({
        kind.argument: {"type": "string"},
        "etag": {"type": "string"},
        "clientRequestId": {"type": "string"},
    });
    ToolOutline::new(format!("delete{}", kind.one), description, DESTROYS, properties, &[kind.argument])
        .entry(shared, move |shared, arguments| async move { delete(kind, &shared, &arguments).await })
}

async fn delete(
    kind: &DefinitionKind,
    shared: &SearchServerState,
    arguments: &ToolArguments,
) -> Result<Value, ToolError> {
    let name = arguments.name(kind.argument)?;
    let path = format!("{}{}", kind.path(&shared.client), odata_key(name));
    let nothing = || json!({"name": name, "deleted": false, "existed": false});
    if shared.confirms {
        let lost = match describe_loss(kind, shared, &path).await {
            Ok(lost) => lost,
            Err(failure) if failure.status == Some(404) => return Ok(nothing()),
            // The service decides whether it can be deleted.
            Err(_) => String::new(),
        };
        let kind_word = kind.word.split_once(' ').map_or(kind.word, |(_, word)| word);
        let question = format!("Delete the {kind_word} {name:?}{lost}? {} It cannot be undone.", kind.loses);
        shared.confirm(&arguments.context, &question).await?;
    }
    let mut call = shared.client.delete(path).request_id(arguments.request_id());
    if let Some(etag) = arguments.text("etag") {
        call = call.header("if-match", &as_etag(etag));
    }
    match call.send().await {
        Ok(_) => {
            announce(kind, arguments, name);
            Ok(json!({"name": name, "deleted": true, "existed": true}))
        }
        Err(failure) if failure.status == Some(404) => Ok(nothing()),
        Err(failure) if failure.status == Some(412) => {
            Err(conflict(kind, shared, name, failure, None, false).await.into())
        }
        Err(failure) => Err(failure.into()),
    }
}

/// Returns the loss by a deletion as text after the name. Fails if the definition does not exist.
async fn describe_loss(
    kind: &DefinitionKind,
    shared: &SearchServerState,
    path: &str,
) -> Result<String, ServiceFailure> {
    if !kind.has_path("indexes") {
        return shared.client.get(path).send().await.map(|_| String::new());
    }
    let count = shared.client.get(format!("{path}/docs/$count")).send().await?.body;
    Ok(match count.as_u64() {
        Some(1) => " with its 1 document".to_owned(),
        Some(count) => format!(" with its {count} documents"),
        None => String::new(),
    })
}

/// Notifies subscribers of the resources of this definition.
fn announce(kind: &DefinitionKind, arguments: &ToolArguments, name: &str) {
    let server = arguments.context.server();
    let all = kind.resource();
    server.resource_updated(&format!("{all}/{}", percent_encoded(name)));
    server.resource_updated(&all);
}
