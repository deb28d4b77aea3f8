//! Authentication and authorization.

use bindpost::http::{ApiKeys, Auth, Authorizer, Denial, Settings};
use bindpost::prelude::*;
use bindpost::{Caller, HttpRequest, Identity, ListVisibility};

/// Tells when the library is open. Every caller may ask.
#[tool(read_only, anonymous)]
fn opening_hours() -> &'static str {
    "9 to 18"
}

/// Lists the books that the caller has borrowed. Every authenticated caller may ask.
#[tool(read_only)]
fn my_books(context: Context) -> String {
    let caller = context.caller();
    format!("{} has no books", caller.name().or(caller.id()).unwrap_or("the reader"))
}

/// Removes a reader. Users and keys need the scope, applications that act for themselves the role.
#[tool(destructive, scopes = ["readers.write"], roles = ["Readers.Write"])]
fn remove_reader(reader: String) -> String {
    format!("removed {reader}")
}

pub fn server() -> Result<Server, BuildError> {
    Server::builder("library", "1.0.0").add(entries![opening_hours, my_books, remove_reader]).build()
}

/// Callers have an API key.
pub fn with_keys() -> std::io::Result<Settings> {
    // The file is read again when it changes.
    let keys = ApiKeys::from_file("keys.txt")?;
    Ok(Settings {
        auth: Some(Auth::new(keys)),
        // The names by which clients reach the server.
        allowed_hosts: vec!["library.example".to_owned()],
        ..Settings::default()
    })
}

/// Lists show only what the caller may use.
pub fn with_short_lists(keys: ApiKeys) -> Settings {
    let auth = Auth::new(keys).listing(ListVisibility::Permitted);
    Settings { auth: Some(auth), ..Settings::default() }
}

/// An authorizer of your own: a reader's card in a header.
#[derive(Debug)]
pub struct ReaderCards;

impl Authorizer for ReaderCards {
    async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
        match request.header("x-reader-card") {
            None => Ok(Caller::ANONYMOUS),
            Some("4711") => Ok(Identity::new("card:4711").name("Ada").user().into()),
            Some(_) => Err(Denial::invalid("this reader's card is not known")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bindpost::testing::TestClient;
    use serde_json::json;

    #[test]
    fn the_file_of_the_guide_is_valid() -> std::io::Result<()> {
        let keys = ApiKeys::from_file(concat!(env!("CARGO_MANIFEST_DIR"), "/src/auth_keys.txt"))?;
        assert_eq!(format!("{keys:?}"), r#"["ada", "nightly-job"]"#);
        assert_eq!(keys.warnings(&["readers.write".to_owned()]), [""; 0]);
        Ok(())
    }

    #[tokio::test]
    async fn each_caller_gets_what_it_may_use() -> Result<(), Box<dyn std::error::Error>> {
        let server = server()?;
        let mut anonymous = TestClient::connect(&server);
        assert_eq!(anonymous.call("opening_hours", ()).await?.text(), "9 to 18");
        assert_eq!(anonymous.call("my_books", ()).await.unwrap_err().code(), Some(-32001));

        let remove = json!({"reader": "Bob"});
        let mut ada = TestClient::connect_as(&server, Identity::new("ada").name("Ada").user());
        assert_eq!(ada.call("my_books", ()).await?.text(), "Ada has no books");
        let error = ada.call("remove_reader", &remove).await.unwrap_err();
        assert_eq!(error.to_string(), "this needs the scope readers.write (-32001)");

        let librarian = Identity::new("librarian").user().scopes(["readers.read", "readers.write"]);
        let mut librarian = TestClient::connect_as(&server, librarian);
        assert_eq!(librarian.call("remove_reader", &remove).await?.text(), "removed Bob");

        let job = Identity::new("nightly job").application().role("Readers.Write");
        let mut job = TestClient::connect_as(&server, job);
        assert_eq!(job.call("remove_reader", &remove).await?.text(), "removed Bob");
        Ok(())
    }
}
