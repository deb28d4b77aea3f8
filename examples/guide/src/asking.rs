//! Asking the user, and the model of the client.

use bindpost::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A reservation, as the user fills it in.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Reservation {
    /// Where we send a message when the book is there.
    #[schemars(email)]
    email: String,
    /// For how many weeks?
    #[schemars(range(min = 1, max = 8))]
    weeks: u8,
    pick_up: PickUp,
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum PickUp {
    /// At the front desk
    Desk,
    /// In the locker outside
    Locker,
}

/// Reserves a book. Asks the user how.
#[tool]
async fn reserve(book: String, context: Context) -> Result<String, ToolError> {
    match context.elicit::<Reservation>(format!("How do you want to reserve {book:?}?")).await? {
        Elicitation::Accepted(Reservation { email, weeks, pick_up }) => {
            Ok(format!("reserved {book:?} for {weeks} weeks ({pick_up:?}), we write to {email}"))
        }
        Elicitation::Declined => Ok(format!("{book:?} is not reserved")),
        Elicitation::Cancelled => Err(ToolError::new("the user closed the form; ask what they want")),
    }
}

/// A question with one answer.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Confirmation {
    /// Do it
    confirmed: bool,
}

/// Removes a book from the catalog. Asks for a confirmation where the client can.
#[tool(destructive)]
async fn remove_book(book: String, context: Context) -> Result<String, ToolError> {
    let confirmed = match context.elicit::<Confirmation>(format!("Remove {book:?} for good?")).await {
        Ok(answer) => answer.accepted().is_some_and(|form| form.confirmed),
        // The client cannot show forms. Its user has allowed the call already.
        Err(AskError::Unsupported(_)) => true,
        Err(error) => return Err(error.into()),
    };
    Ok(if confirmed { format!("removed {book:?}") } else { format!("{book:?} stays") })
}

/// Pays a late fee on the page of the library.
#[tool]
async fn pay_fee(context: Context) -> Result<&'static str, ToolError> {
    let url = "https://library.example/fees/pay";
    context.elicit_url("Please pay the fee on our page.", url).await?.required()?;
    Ok("the user opened the page; ask again whether the fee is paid")
}

/// Summarizes a book in one sentence, with the model of the client.
#[tool(read_only)]
async fn summarize(book: String, context: Context) -> Result<String, ToolError> {
    let answer = context
        .sample(format!("Summarize {book:?} in one sentence."))
        .system_prompt("You are a librarian.")
        .max_tokens(100)
        .await?;
    Ok(answer.text().unwrap_or_default().to_owned())
}

pub fn server() -> Result<Server, BuildError> {
    let entries = entries![reserve, remove_book, pay_fee, summarize];
    Server::builder("library", "1.0.0").add(entries).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::Revision;
    use bindpost::testing::{ElicitationRequest, SamplingRequest, TestClient};
    use serde_json::json;

    #[tokio::test]
    async fn the_user_fills_in_the_form() -> Result<(), Box<dyn std::error::Error>> {
        // In a session the server sends a request. From 2026-07-28 the call ends and is sent again.
        for revision in [Revision::V2025_11_25, Revision::V2026_07_28] {
            let mut client = TestClient::builder(&server()?)
                .revision(revision)
                .on_elicitation(|form: ElicitationRequest| {
                    assert_eq!(form.message(), "How do you want to reserve \"Dune\"?");
                    let email = "ada@example.com".to_owned();
                    form.accept(&Reservation { email, weeks: 2, pick_up: PickUp::Locker })
                })
                .connect()
                .await?;
            let reply = client.call("reserve", json!({"book": "Dune"})).await?;
            let expected = "reserved \"Dune\" for 2 weeks (Locker), we write to ada@example.com";
            assert_eq!(reply.text(), expected);
        }
        Ok(())
    }

    #[tokio::test]
    async fn the_user_declines() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::builder(&server()?)
            .on_elicitation(|form: ElicitationRequest| form.decline())
            .connect()
            .await?;
        assert_eq!(client.call("reserve", json!({"book": "Dune"})).await?.text(), "\"Dune\" is not reserved");
        assert_eq!(client.call("remove_book", json!({"book": "Dune"})).await?.text(), "\"Dune\" stays");
        Ok(())
    }

    #[tokio::test]
    async fn a_client_without_forms_is_not_asked() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::connect(&server()?);
        assert_eq!(client.call("remove_book", json!({"book": "Dune"})).await?.text(), "removed \"Dune\"");
        Ok(())
    }

    #[tokio::test]
    async fn the_model_of_the_client_writes_the_summary() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::builder(&server()?)
            .on_sampling(|request: SamplingRequest| {
                assert_eq!(request.system_prompt(), Some("You are a librarian."));
                "A desert planet has a precious spice."
            })
            .connect()
            .await?;
        let reply = client.call("summarize", json!({"book": "Dune"})).await?;
        assert_eq!(reply.text(), "A desert planet has a precious spice.");
        Ok(())
    }

    #[tokio::test]
    async fn the_user_opens_a_page() -> Result<(), Box<dyn std::error::Error>> {
        let mut client = TestClient::builder(&server()?)
            .on_elicitation(|question: ElicitationRequest| {
                assert_eq!(question.url(), Some("https://library.example/fees/pay"));
                question.accept(&())
            })
            .connect()
            .await?;
        let reply = client.call("pay_fee", ()).await?;
        assert!(reply.text().starts_with("the user opened the page"));
        Ok(())
    }
}
