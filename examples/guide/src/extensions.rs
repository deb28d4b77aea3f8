//! Pages and skills.

use bindpost::prelude::*;
use bindpost::{AppPage, SkillSet};
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
struct Loans {
    months: Vec<Month>,
}

#[derive(Serialize, JsonSchema)]
struct Month {
    name: &'static str,
    loans: u32,
}

/// Shows the loans of each month as a chart.
#[tool(read_only, ui = "loans.html")]
fn show_loans() -> Loans {
    let months = [("January", 80), ("February", 65), ("March", 92)];
    Loans { months: months.map(|(name, loans)| Month { name, loans }).into() }
}

/// The map loads its images from another service, which has to be named.
fn map_page() -> AppPage {
    AppPage::new("ui://library/map", "<!doctype html><title>Map</title><div id=map></div>")
        .load_from(["https://tiles.example"])
        .border(true)
}

/// Shows where a book stands.
#[tool(read_only, ui = map_page())]
fn show_shelf(book: String, context: Context) -> String {
    match context.shows_pages() {
        true => format!("the map shows the shelf of {book:?}"),
        false => format!("{book:?} is on shelf 3, on the first floor, beside the window"),
    }
}

/// Moves the map. Only the page calls it.
#[tool(read_only, for_pages_only, ui = map_page())]
fn move_map(floor: u8) -> String {
    format!("floor {floor}")
}

pub fn server() -> Result<Server, BuildError> {
    Server::builder("library", "1.0.0")
        .add(entries![show_loans, show_shelf, move_map])
        // A folder for each skill, with a SKILL.md in it.
        .skills(SkillSet::from_folder(concat!(env!("CARGO_MANIFEST_DIR"), "/skills")))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::testing::TestClient;
    use serde_json::{Value, json};

    #[tokio::test]
    async fn the_tool_names_its_page() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        let tools = client.list_tools().await?;
        let meta = tools[0].meta.as_ref().ok_or("no _meta")?;
        assert_eq!(meta["ui"]["resourceUri"], "ui://show_loans/page");
        assert!(client.read("ui://show_loans/page").await?.text().contains("<title>Loans</title>"));
        let loans: Value = client.call_as("show_loans", ()).await?;
        assert_eq!(loans["months"][2], json!({"name": "March", "loans": 92}));
        Ok(())
    }

    #[tokio::test]
    async fn a_client_without_pages_gets_a_text() -> Result<(), Box<dyn std::error::Error>> {
        let server = server()?;
        let dune = json!({"book": "Dune"});
        let mut client = TestClient::connect(&server);
        let text = client.call("show_shelf", &dune).await?.text();
        assert_eq!(text, "\"Dune\" is on shelf 3, on the first floor, beside the window");
        let pages = json!({"mimeTypes": ["text/html;profile=mcp-app"]});
        let client = TestClient::builder(&server).extension("io.modelcontextprotocol/ui", pages);
        let text = client.connect().await?.call("show_shelf", &dune).await?.text();
        assert_eq!(text, "the map shows the shelf of \"Dune\"");
        Ok(())
    }

    #[tokio::test]
    async fn the_skill_is_a_resource() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        let skill = client.read("skill://lend-a-book/SKILL.md").await?;
        assert!(skill.text().contains("four weeks from today"));
        Ok(())
    }
}
