//! Reads annotations, icons and `execution`, which the extension does not have on every trigger.
//!
//! They may be JSON or a text that holds JSON. Unknown members of annotations and icons are passed on.

use bindpost_mcp_protocol::{Annotations, Icon, Role, ToolAnnotations};
use bindpost_mcp_server::TaskSupport;
use serde_json::{Map, Value};

use crate::json::{ConfigReader, ProblemCollector};

/// Reads `annotations` of a tool, also called `toolAnnotations`.
pub(super) fn tool_annotations(members: &ConfigReader<'_>) -> Option<ToolAnnotations> {
    let name = if members.value("annotations").is_some() { "annotations" } else { "toolAnnotations" };
    let object = object(members, name)?;
    let known = ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];
    Some(reading(members, name, &object, |read| ToolAnnotations {
        title: read.text("title"),
        read_only_hint: read.flag("readOnlyHint"),
        destructive_hint: read.flag("destructiveHint"),
        idempotent_hint: read.flag("idempotentHint"),
        open_world_hint: read.flag("openWorldHint"),
        extra: unknown_members(&object, &known),
    }))
}

/// Reads `annotations` of a resource or prompt.
pub(super) fn annotations(members: &ConfigReader<'_>) -> Option<Annotations> {
    let object = object(members, "annotations")?;
    Some(reading(members, "annotations", &object, |read| Annotations {
        audience: read.texts("audience").iter().filter_map(|text| role(read, text)).collect(),
        priority: priority(read),
        last_modified: read.text("lastModified"),
        extra: unknown_members(&object, &["audience", "priority", "lastModified"]),
    }))
}

/// Reads `execution.taskSupport` of a tool.
pub(super) fn task_support(members: &ConfigReader<'_>) -> Option<TaskSupport> {
    let object = object(members, "execution")?;
    reading(members, "execution", &object, |read| {
        let name = "taskSupport";
        let text = read.text(name)?;
        match text.trim().to_ascii_lowercase().as_str() {
            "forbidden" => Some(TaskSupport::Never),
            "optional" => Some(TaskSupport::WhenPossible),
            "required" => Some(TaskSupport::Required),
            _ => {
                let message = format!("{text:?} is not a kind of task support");
                read.report_problem(name, message, Some("write optional, required or forbidden"));
                None
            }
        }
    })
}

/// Reads `icons`.
pub(super) fn icons(members: &ConfigReader<'_>) -> Vec<Icon> {
    let Some(value) = super::json_or_text(members, "icons", "array") else { return Vec::new() };
    let items = super::objects(members, "icons", value).unwrap_or_default();
    let icon = |(index, item): (usize, &Map<String, Value>)| {
        reading(members, &format!("icons[{index}]"), item, |read| Icon {
            src: read.required_text("src").unwrap_or_default(),
            mime_type: read.text("mimeType"),
            sizes: read.texts("sizes"),
            theme: read.text("theme"),
            extra: unknown_members(item, &["src", "mimeType", "sizes", "theme"]),
        })
    };
    items.iter().enumerate().map(icon).collect()
}

fn object(members: &ConfigReader<'_>, name: &str) -> Option<Map<String, Value>> {
    match super::json_or_text(members, name, "object")? {
        Value::Object(object) => Some(object),
        other => {
            let message = format!("must contain a JSON object, but has {}", crate::json::dotnet_kind(&other));
            members.report_problem(name, message, None);
            None
        }
    }
}

/// Reads an object in a member of another. Its problems are added to those of the other.
fn reading<T>(
    members: &ConfigReader<'_>,
    name: &str,
    object: &Map<String, Value>,
    read: impl FnOnce(&ConfigReader<'_>) -> T,
) -> T {
    let notes = ProblemCollector::default();
    let value = read(&ConfigReader::new(object, name, &notes));
    members.adopt(notes);
    value
}

fn role(read: &ConfigReader<'_>, text: &str) -> Option<Role> {
    match text.to_ascii_lowercase().as_str() {
        "user" => Some(Role::User),
        "assistant" => Some(Role::Assistant),
        _ => {
            read.report_problem(
                "audience",
                format!("{text:?} is not a valid audience"),
                Some("write user or assistant"),
            );
            None
        }
    }
}

fn priority(read: &ConfigReader<'_>) -> Option<f64> {
    let value = read.value("priority")?;
    let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
    if number.is_none() {
        read.report_problem("priority", "must be a number from 0 to 1", None);
    }
    number
}

/// Returns the members that are not `known`, without those that are `null`.
fn unknown_members(object: &Map<String, Value>, known: &[&str]) -> Map<String, Value> {
    let unknown = |name: &str| !known.iter().any(|known| known.eq_ignore_ascii_case(name));
    let others = object.iter().filter(|(name, value)| unknown(name) && !value.is_null());
    others.map(|(name, value)| (name.clone(), value.clone())).collect()
}
