//! Arguments and schemas.

use bindpost::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Finds books by words in their titles.
#[tool(read_only, rename_all = "camelCase")]
fn find_books(
    /// Words of the title.
    #[arg(min_length = 2, max_length = 100)]
    words: String,
    /// How the books are sorted.
    #[arg(one_of = ["title", "year"], default = "title")]
    sort_by: String,
    /// The maximum number of books.
    #[arg(minimum = 1, maximum = 50, default = 10)]
    limit: usize,
    /// Only books of this author.
    author: Option<String>,
) -> String {
    let author = author.unwrap_or_else(|| "anyone".to_owned());
    format!("{limit} books with {words:?} by {author}, sorted by {sort_by}")
}

/// A book to add.
#[derive(Deserialize, JsonSchema)]
struct NewBook {
    /// The title, as on the cover.
    #[schemars(length(min = 1, max = 200))]
    title: String,
    /// The authors, the main one first.
    #[schemars(length(min = 1))]
    authors: Vec<Author>,
    #[serde(default)]
    shelf: Shelf,
}

#[derive(Deserialize, JsonSchema)]
struct Author {
    name: String,
    /// The year of birth, if it is known.
    born: Option<i16>,
}

#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Shelf {
    /// Novels and short stories.
    #[default]
    Fiction,
    Science,
    Travel,
}

/// Adds a book.
#[tool]
fn add_book(Args(book): Args<NewBook>) -> String {
    let authors: Vec<String> = book
        .authors
        .iter()
        .map(|author| match author.born {
            Some(year) => format!("{} (born {year})", author.name),
            None => author.name.clone(),
        })
        .collect();
    format!("added {:?} by {} to {:?}", book.title, authors.join(" and "), book.shelf)
}

/// Stores a label with any further members.
#[tool(allow_unknown_arguments)]
fn label(name: String, context: Context) -> Result<String, ToolError> {
    let color: Option<String> = context.argument("color")?;
    Ok(format!("{name} is {}", color.as_deref().unwrap_or("plain")))
}

pub fn server() -> Result<Server, BuildError> {
    Server::builder("library", "1.0.0").add(entries![find_books, add_book, label]).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::testing::TestClient;
    use serde_json::json;

    #[tokio::test]
    async fn defaults_are_filled_in() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        let reply = client.call("find_books", json!({"words": "sea", "author": "Verne"})).await?;
        assert_eq!(reply.text(), "10 books with \"sea\" by Verne, sorted by title");
        let book = json!({"title": "Dune", "authors": [{"name": "Frank Herbert", "born": 1920}]});
        let reply = client.call("add_book", book).await?;
        assert_eq!(reply.text(), "added \"Dune\" by Frank Herbert (born 1920) to Fiction");
        let reply = client.call("label", json!({"name": "box", "color": "red"})).await?;
        assert_eq!(reply.text(), "box is red");
        Ok(())
    }

    #[tokio::test]
    async fn one_error_names_every_mistake() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        let mistakes = json!({"words": "x", "sort": "title", "limit": 500});
        let error = client.call("find_books", mistakes).await.unwrap_err();
        assert_eq!(error.to_string(), include_str!("arguments_mistakes.txt").trim_end());
        Ok(())
    }

    #[tokio::test]
    async fn the_schema_is_what_the_guide_shows() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        let tools = client.list_tools().await?;
        let shown = serde_json::from_str::<serde_json::Value>(include_str!("arguments_schema.json"))?;
        assert_eq!(tools[0].input_schema, shown);
        Ok(())
    }
}
