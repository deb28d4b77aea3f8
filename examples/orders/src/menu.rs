//! The resources (the menu by category, and the settings) and a prompt.

use bindpost::protocol::Resource;
use bindpost::{Json, ProtocolError, State, ToolError, prompt, resource, resource_list};
use serde_json::{Value, json};

use crate::store::{Item, MENU, Store};

#[resource_list("menu")]
pub async fn menu() -> Vec<Resource> {
    let listed = MENU.iter().map(|category| Resource {
        uri: format!("menu://categories/{}", category.id),
        name: category.name.to_owned(),
        description: Some(format!("Menu items in {}", category.name)),
        mime_type: Some("application/json".to_owned()),
        ..Resource::default()
    });
    listed.collect()
}

/// Items in category
#[resource("menu://categories/{category_id}", name = "Menu Category")]
pub async fn category(
    #[arg(complete = category_ids)] category_id: String,
) -> Result<&'static [Item], ToolError> {
    match MENU.iter().find(|category| category.id == category_id) {
        Some(category) => Ok(category.items),
        None => Err(ProtocolError::UnknownResource(format!("menu://categories/{category_id}")).into()),
    }
}

fn category_ids(typed: &str) -> Vec<String> {
    MENU.iter().map(|category| category.id).filter(|id| id.starts_with(typed)).map(str::to_owned).collect()
}

/// Configuration
#[resource("config://settings", name = "Server Config", anonymous)]
pub fn settings() -> Json<Value> {
    Json(json!({"currency": "EUR", "categories": MENU.len(), "orderLinesAtMost": 100}))
}

/// Asks for a summary of an order for the customer
#[prompt(title = "Summarise an order", rename_all = "camelCase")]
pub fn order_summary(
    State(store): State<Store>,
    /// The order's id
    order_id: String,
    /// The tone of the summary
    #[arg(complete = tones)]
    tone: Option<String>,
) -> Result<String, ToolError> {
    let order = store.get(&order_id).ok_or_else(|| {
        ProtocolError::invalid_params("prompts/get", format!("there is no order {order_id:?}"))
    })?;
    let order = serde_json::to_string_pretty(&order)
        .map_err(|error| ToolError::with_source("the order cannot be serialized", error))?;
    let tone = tone.as_deref().unwrap_or("friendly");
    Ok(format!(
        "Summarise this order for the customer, in a {tone} tone and at most three sentences:\n\n{order}"
    ))
}

fn tones(typed: &str) -> Vec<String> {
    ["friendly", "formal", "brief"]
        .into_iter()
        .filter(|tone| tone.starts_with(typed))
        .map(str::to_owned)
        .collect()
}
