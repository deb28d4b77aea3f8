//! Prompts and completion.

use std::collections::BTreeMap;
use std::sync::Arc;

use bindpost::prelude::*;

/// The books of each author.
pub type Authors = Arc<BTreeMap<String, Vec<String>>>;

/// Writes a review of a book.
#[prompt(title = "Review a book")]
fn review(
    /// The author of the book.
    #[arg(complete = authors)]
    author: String,
    /// The title of the book.
    #[arg(complete = titles)]
    title: String,
    /// How the review sounds, for instance "kind".
    tone: Option<String>,
) -> Vec<PromptMessage> {
    let tone = tone.unwrap_or_else(|| "honest".to_owned());
    vec![
        PromptMessage::user(format!("Write a short, {tone} review of {title:?} by {author}.")),
        PromptMessage::assistant("May I mention how the book ends?"),
        PromptMessage::user("No."),
    ]
}

fn authors(typed: &str, State(authors): State<Authors>) -> Vec<String> {
    authors.keys().filter(|name| name.starts_with(typed)).cloned().collect()
}

/// Suggests the titles of the author that the user has already chosen.
async fn titles(typed: String, State(authors): State<Authors>, context: Context) -> Vec<String> {
    let author: Option<String> = context.argument("author").unwrap_or_default();
    let titles = author.and_then(|author| authors.get(&author)).into_iter().flatten();
    titles.filter(|title| title.starts_with(&typed)).cloned().collect()
}

pub fn server(authors: Authors) -> Result<Server, BuildError> {
    Server::builder("library", "1.0.0").state(authors).add(entries![review]).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::testing::TestClient;
    use serde_json::json;

    fn sample() -> Authors {
        let books = [("Austen", vec!["Emma", "Persuasion"]), ("Asimov", vec!["Foundation"])];
        let owned = books.map(|(author, titles)| {
            (author.to_owned(), titles.into_iter().map(str::to_owned).collect::<Vec<_>>())
        });
        Arc::new(owned.into())
    }

    #[tokio::test]
    async fn the_prompt_has_its_messages() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server(sample())?);
        let reply = client.get_prompt("review", json!({"author": "Austen", "title": "Emma"})).await?;
        assert!(reply.text().starts_with("Write a short, honest review of \"Emma\" by Austen."));
        let error = client.get_prompt("review", json!({"author": "Austen"})).await.unwrap_err();
        assert!(error.to_string().contains("title"), "{error}");
        Ok(())
    }

    #[tokio::test]
    async fn titles_depend_on_the_author() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server(sample())?);
        let found = client.complete_prompt("review", "author", "A", ()).await?;
        assert_eq!(found.values, ["Asimov", "Austen"]);
        let found = client.complete_prompt("review", "title", "", json!({"author": "Austen"})).await?;
        assert_eq!(found.values, ["Emma", "Persuasion"]);
        Ok(())
    }
}
