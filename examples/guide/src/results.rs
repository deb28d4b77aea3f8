//! Results and errors.

use std::fs;

use bindpost::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Book {
    pub title: String,
    /// The number of pages.
    pub pages: u32,
}

/// Returns a book by its number.
#[tool(read_only)]
fn get_book(id: u32) -> Result<Book, String> {
    match id {
        1 => Ok(Book { title: "Dune".to_owned(), pages: 412 }),
        _ => Err(format!("there is no book {id}; find_books lists the known ones")),
    }
}

/// Returns the cover of a book as a picture, with a caption.
#[tool(read_only)]
fn get_cover(id: u32) -> Result<Vec<Content>, ToolError> {
    let picture = read_cover(id).or_tool_error(format!("book {id} has no cover"))?;
    Ok(vec![Content::text("The cover, as it was scanned."), Content::image(picture, "image/png")])
}

fn read_cover(id: u32) -> std::io::Result<Vec<u8>> {
    fs::read(format!("covers/{id}.png"))
}

/// Counts the books in the file of the catalog.
#[tool(read_only, blocking)]
fn count_books() -> Result<usize, ToolError> {
    // The model reads that the request failed. The reason is in the log.
    let catalog = fs::read_to_string("catalog.csv")?;
    Ok(catalog.lines().count())
}

#[derive(Debug, thiserror::Error)]
enum LoanError {
    #[error("book {0} is lent out until {1}")]
    LentOut(u32, String),
    #[error("the database does not answer")]
    Database(#[from] std::io::Error),
}

impl IntoToolError for LoanError {
    fn into_tool_error(self) -> ToolError {
        match self {
            // What the model can act on is its text.
            LoanError::LentOut(..) => ToolError::new(self.to_string()),
            // What it cannot act on goes to the log.
            LoanError::Database(_) => ToolError::with_source("loans are not available now", self),
        }
    }
}

/// Lends a book.
#[tool]
fn lend_book(id: u32) -> Result<String, LoanError> {
    match id {
        1 => Err(LoanError::LentOut(id, "2026-12-01".to_owned())),
        2 => Err(LoanError::Database(std::io::Error::other("10.0.0.7 refused the connection"))),
        _ => Ok("have fun".to_owned()),
    }
}

/// Returns a book in a form that a person reads, and in one that a program reads.
#[tool(read_only)]
fn describe_book() -> CallToolResult {
    let book = Book { title: "Dune".to_owned(), pages: 412 };
    CallToolResult {
        content: vec![Content::text(format!("{} has {} pages.", book.title, book.pages))],
        ..CallToolResult::structured(serde_json::json!(book))
    }
}

pub fn server() -> Result<Server, BuildError> {
    let entries = entries![get_book, get_cover, count_books, lend_book, describe_book];
    Server::builder("library", "1.0.0").add(entries).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::testing::TestClient;
    use serde_json::json;

    #[tokio::test]
    async fn a_result_has_a_type() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        let book: Book = client.call_as("get_book", json!({"id": 1})).await?;
        assert_eq!(book, Book { title: "Dune".to_owned(), pages: 412 });
        let described = client.call("describe_book", ()).await?;
        assert_eq!(described.text(), "Dune has 412 pages.");
        assert_eq!(described.structured::<Book>()?, book);
        Ok(())
    }

    #[tokio::test]
    async fn the_model_reads_what_it_can_act_on() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        for (tool, id, expected) in [
            ("get_book", 7, "there is no book 7; find_books lists the known ones"),
            ("get_cover", 7, "book 7 has no cover"),
            ("lend_book", 1, "book 1 is lent out until 2026-12-01"),
            ("lend_book", 2, "loans are not available now"),
        ] {
            let error = client.call(tool, json!({"id": id})).await.unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
        let error = client.call("count_books", ()).await.unwrap_err();
        assert_eq!(error.to_string(), "the request failed; the reason is in the log of the server");
        Ok(())
    }
}
