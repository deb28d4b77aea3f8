//! Pages of tools (MCP Apps).

use bindpost_mcp_server::protocol::Revision;
use bindpost_mcp_server::testing::{ServerChange, TestClient};
use bindpost_mcp_server::{
    AppPage, Context, Identity, PagePermission, ResourceEntry, Server, ServerBuilder, TemplateEntry,
    ToolEntry,
};
use serde_json::{Value, json};

const MIME_TYPE: &str = "text/html;profile=mcp-app";

fn chart() -> AppPage {
    AppPage::new("ui://sales/chart", "<p>chart</p>")
}

fn tool(name: &str) -> ToolEntry {
    ToolEntry::new(name, async || "12 orders")
}

fn builder() -> ServerBuilder {
    Server::builder("s", "1")
}

/// Returns the mistakes of a server.
fn mistakes(builder: ServerBuilder) -> String {
    builder.build().unwrap_err().to_string()
}

#[tokio::test]
async fn a_page_is_a_resource_that_its_tool_names() {
    let page = chart()
        .connect_to(["https://api.shop.example"])
        .load_from(["https://*.cdn.example", "https://fonts.example"])
        .permission(PagePermission::ClipboardWrite)
        .domain("shop.example")
        .border(true);
    // The order of the setters makes no difference.
    let tool = tool("sales").page(page).with_meta("shop.example/x", 1).for_pages_only();
    let server = builder().tool(tool).build().unwrap();
    for revision in Revision::ALL {
        let mut client = TestClient::builder(&server).revision(revision).connect().await.unwrap();
        let tools = client.request("tools/list", json!({})).await.unwrap();
        let meta = json!({
            "shop.example/x": 1,
            "ui": {"resourceUri": "ui://sales/chart", "visibility": ["app"]},
            "ui/resourceUri": "ui://sales/chart",
        });
        let is_shown = revision >= Revision::V2025_06_18;
        assert_eq!(tools["tools"][0]["_meta"], if is_shown { meta } else { Value::Null }, "{revision}");
        let read = client.request("resources/read", json!({"uri": "ui://sales/chart"})).await.unwrap();
        let contents = &read["contents"][0];
        assert_eq!(contents["mimeType"], MIME_TYPE);
        assert_eq!(contents["text"], "<p>chart</p>");
        let ui = json!({
            "csp": {
                "connectDomains": ["https://api.shop.example"],
                "resourceDomains": ["https://*.cdn.example", "https://fonts.example"],
            },
            "permissions": {"clipboardWrite": {}},
            "domain": "shop.example",
            "prefersBorder": true,
        });
        assert_eq!(contents["_meta"]["ui"], if is_shown { ui.clone() } else { Value::Null }, "{revision}");
        let listed = client.request("resources/list", json!({})).await.unwrap();
        assert_eq!(listed["resources"][0]["mimeType"], MIME_TYPE);
    }
}

#[tokio::test]
async fn the_extension_is_declared_if_a_tool_has_a_page() {
    for (tool, declared) in [
        (tool("t").page(chart()), json!({})),
        (tool("t").for_pages_only(), json!({})),
        (tool("t"), Value::Null),
    ] {
        let server = builder().tool(tool).build().unwrap();
        let client = TestClient::builder(&server).revision(Revision::V2026_07_28);
        let found = client.connect().await.unwrap().request("server/discover", json!({})).await.unwrap();
        assert_eq!(found["capabilities"]["extensions"]["io.modelcontextprotocol/ui"], declared);
    }
}

#[tokio::test]
async fn a_tool_knows_whether_the_client_shows_pages() {
    let told = ToolEntry::new("t", async |context: Context| context.shows_pages().to_string());
    let server = builder().tool(told.page(chart())).build().unwrap();
    for (settings, expected) in [
        (json!({"mimeTypes": [MIME_TYPE]}), "true"),
        (json!({"mimeTypes": ["text/plain"]}), "false"),
        (json!({}), "false"),
    ] {
        let client = TestClient::builder(&server).extension("io.modelcontextprotocol/ui", settings);
        assert_eq!(client.connect().await.unwrap().call("t", ()).await.unwrap().text(), expected);
    }
    assert_eq!(TestClient::connect(&server).call("t", ()).await.unwrap().text(), "false");
}

#[tokio::test]
async fn the_callers_of_the_tool_may_read_its_page() {
    let server = builder()
        .tool(tool("sales").page(chart()).scopes(["sales.read"]))
        .tool(tool("menu").page(AppPage::new("ui://menu", "<p>")).anonymous())
        .tool(tool("shared").page(AppPage::new("ui://shared", "<p>")).scopes(["a"]))
        .tool(tool("shared_too").page(AppPage::new("ui://shared", "<p>")).scopes(["b"]))
        .build()
        .unwrap();
    let mut anonymous = TestClient::connect(&server);
    assert!(anonymous.read("ui://menu").await.is_ok());
    assert_eq!(anonymous.read("ui://sales/chart").await.unwrap_err().code(), Some(-32001));
    assert_eq!(anonymous.read("ui://shared").await.unwrap_err().code(), Some(-32001));
    let mut user = TestClient::connect_as(&server, Identity::new("ada").user());
    assert_eq!(user.read("ui://sales/chart").await.unwrap_err().code(), Some(-32001));
    assert!(user.read("ui://shared").await.is_ok());
    let mut seller = TestClient::connect_as(&server, Identity::new("bob").user().scope("sales.read"));
    assert!(seller.read("ui://sales/chart").await.is_ok());
}

#[tokio::test]
async fn pages_follow_tools_that_change_while_the_server_runs() {
    let server = builder().tool(tool("first").page(chart())).build().unwrap();
    let mut client = TestClient::connect(&server);
    client.watch_lists().await.unwrap();

    let table = AppPage::new("ui://sales/table", "<table>");
    server.catalog().add_tool(tool("second").page(table.clone())).unwrap();
    assert_eq!(client.next_change().await.unwrap(), ServerChange::Tools);
    assert_eq!(client.next_change().await.unwrap(), ServerChange::Resources);
    assert_eq!(client.read("ui://sales/table").await.unwrap().text(), "<table>");

    // A page that is shared already adds no resource, and another page under its URI is rejected.
    server.catalog().add_tool(tool("third").page(table)).unwrap();
    let other = tool("fourth").page(AppPage::new("ui://sales/table", "<ul>"));
    let error = server.catalog().add_tool(other).unwrap_err().to_string();
    let expected = "tool \"fourth\": its page \"ui://sales/table\": the tool \"second\" has another page with this \
                    URI; rename one";
    assert_eq!(error, expected);

    server.catalog().remove_tool("third");
    assert!(client.read("ui://sales/table").await.is_ok());
    server.catalog().remove_tool("second");
    assert_eq!(client.read("ui://sales/table").await.unwrap_err().code(), Some(-32002));

    let entries = [tool("only").page(AppPage::new("ui://only", "<p>")).into()];
    server.catalog().replace(entries).unwrap();
    let uris: Vec<String> = client.list_resources().await.unwrap().into_iter().map(|it| it.uri).collect();
    assert_eq!(uris, ["ui://only"]);
}

#[test]
fn a_page_that_no_host_could_show_is_a_mistake() {
    for (page, expected) in [
        (AppPage::new("https://x", "<p>"), "the URI of a page begins with `ui://`, like `ui://sales/chart`"),
        (AppPage::new("ui://", "<p>"), "the URI of a page begins with `ui://`, like `ui://sales/chart`"),
        (AppPage::new("ui://x", "chart.html"), "a page is an HTML document, but this text has no tags"),
        (
            chart().connect_to(["api.shop.example"]),
            "\"api.shop.example\" is not an origin; write a scheme and a host, like `https://api.shop.example`",
        ),
        (
            chart().load_from(["https://cdn.example/lib.js"]),
            "\"https://cdn.example/lib.js\" is not an origin; write a scheme and a host, like \
             `https://api.shop.example`",
        ),
    ] {
        let error = mistakes(builder().tool(tool("t").page(page)));
        assert!(error.ends_with(expected), "{error}");
    }
    let taken =
        builder().resource(ResourceEntry::text("ui://sales/chart", "x", "x")).tool(tool("t").page(chart()));
    assert!(mistakes(taken).contains("resource \"ui://sales/chart\" is defined twice"));
}

#[test]
fn a_tool_that_names_a_page_by_hand_needs_the_resource() {
    let named = |uri: &str| builder().tool(tool("t").with_meta("ui", json!({"resourceUri": uri})));
    assert_eq!(
        mistakes(named("ui://x")),
        "tool \"t\": its page \"ui://x\" is not a resource of the server; add it, or use `.page(AppPage::new(…))`"
    );
    assert_eq!(
        mistakes(named("https://x")),
        "tool \"t\": its page \"https://x\" must have a URI that begins with `ui://`"
    );
    let plain = ResourceEntry::text("ui://x", "x", "<p>").mime_type("text/html");
    assert_eq!(
        mistakes(named("ui://x").resource(plain.clone())),
        "tool \"t\": its page \"ui://x\" has the media type text/html; a host expects text/html;profile=mcp-app"
    );
    assert!(named("ui://x").resource(plain.mime_type(MIME_TYPE)).build().is_ok());
    let template = TemplateEntry::new("ui://{name}", "pages", async || "<p>");
    assert!(named("ui://x").template(template).build().is_ok());
}
