//! State: values that tools share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use bindpost::prelude::*;

/// The loans, by book. Clones share the same loans.
#[derive(Clone, Default)]
pub struct Loans(Arc<Mutex<BTreeMap<String, String>>>);

impl Loans {
    fn change<T>(&self, change: impl FnOnce(&mut BTreeMap<String, String>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Lends a book to a reader.
#[tool]
fn lend(State(loans): State<Loans>, book: String, reader: String) -> Result<String, ToolError> {
    loans.change(|loans| match loans.get(&book) {
        Some(other) => Err(ToolError::new(format!("{other} has {book:?}"))),
        None => {
            let answer = format!("{reader} has {book:?} now");
            loans.insert(book, reader);
            Ok(answer)
        }
    })
}

pub fn server(loans: Loans) -> Result<Server, BuildError> {
    Server::builder("library", "1.0.0").state(loans).add(entries![lend]).build()
}

/// The same as methods: the value is the state.
pub struct Desk {
    pub loans: Loans,
    pub name: String,
}

#[tools]
impl Desk {
    /// Takes a book back.
    #[tool(idempotent)]
    fn give_back(&self, book: String) -> String {
        let reader = self.loans.change(|loans| loans.remove(&book));
        let reader = reader.unwrap_or_else(|| "the shelf".to_owned());
        format!("{} took {book:?} back from {reader}", self.name)
    }
}

pub fn server_with_desk(loans: Loans) -> Result<Server, BuildError> {
    let desk = Desk { loans: loans.clone(), name: "the front desk".to_owned() };
    Server::builder("library", "1.0.0").state(loans).add(entries![lend]).add(desk).build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::testing::TestClient;
    use serde_json::json;

    #[tokio::test]
    async fn clients_share_the_loans() -> Result<(), Box<dyn std::error::Error>> {
        let server = server_with_desk(Loans::default())?;
        let [mut ada, mut bob] = [TestClient::connect(&server), TestClient::connect(&server)];
        ada.call("lend", json!({"book": "Dune", "reader": "Ada"})).await?;
        let error = bob.call("lend", json!({"book": "Dune", "reader": "Bob"})).await.unwrap_err();
        assert_eq!(error.to_string(), "Ada has \"Dune\"");
        let reply = bob.call("give_back", json!({"book": "Dune"})).await?;
        assert_eq!(reply.text(), "the front desk took \"Dune\" back from Ada");
        Ok(())
    }

    #[test]
    fn missing_state_is_found_at_start() {
        let server = Server::builder("library", "1.0.0").add(entries![lend]).build();
        let error = server.unwrap_err().to_string();
        let expected = "tool \"lend\": it needs State<guide::state::Loans>, which the server does not have; \
                        add `.state(…)` to the server";
        assert_eq!(error, expected);
    }
}
