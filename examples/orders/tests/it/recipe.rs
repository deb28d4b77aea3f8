//! The recipe of the README: the files in `deploy/`, run by a stand-in of the Functions host in every layout.

use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::functions_host::{APP_NAME, FunctionsHost, Layout, PlatformAuth};
use crate::issuer::{CLIENT, EntraIssuer, TENANT};
use crate::program::Answer;

/// The revisions of the two kinds: with a handshake, here without sessions, and stateless.
const REVISIONS: [&str; 2] = ["2025-11-25", "2026-07-28"];
const KEYS: &str = "till = till-secret orders.write, guest = guest-secret";

/// Returns the app settings in a file of `deploy/auth`, with the values that a user enters.
fn auth_settings(file: &str, values: &[(&str, &str)]) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/auth").join(file);
    let settings: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let entered =
        |value: &str| values.iter().fold(value.to_owned(), |text, (from, to)| text.replace(from, to));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    settings.iter().map(|setting| (text(&setting["name"]), entered(&text(&setting["value"])))).collect()
}

fn start(
    layout: Layout,
    settings: &[(String, String)],
    auth: &PlatformAuth,
) -> Result<FunctionsHost, String> {
    let settings: Vec<_> = settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    FunctionsHost::start(layout, &settings, auth)
}

/// The three ways to authenticate callers in the recipe.
struct Authentication {
    settings: Vec<(String, String)>,
    platform: PlatformAuth,
}

fn with_keys() -> Authentication {
    let settings = auth_settings("keys.json", &[("till = ", KEYS)]);
    Authentication { settings, platform: PlatformAuth::Off }
}

fn with_entra(issuer: &EntraIssuer) -> Authentication {
    let mut settings = auth_settings("entra.json", &[("TENANT-ID", TENANT), ("CLIENT-ID", CLIENT)]);
    settings.push(("ORDERS_ENTRA_MIRROR".to_owned(), issuer.url.clone()));
    Authentication { settings, platform: PlatformAuth::Off }
}

fn with_platform(allows_anonymous: bool) -> Authentication {
    let user = json!([
        {"typ": "tid", "val": TENANT}, {"typ": "oid", "val": "object"}, {"typ": "name", "val": "Alice"},
        {"typ": "http://schemas.microsoft.com/identity/claims/scope", "val": "orders.write"},
    ]);
    let guest = json!([{"typ": "tid", "val": TENANT}, {"typ": "oid", "val": "other"}]);
    let tokens = vec![("user-token", user), ("guest-token", guest)];
    let platform = PlatformAuth::On { allows_anonymous, tokens };
    Authentication { settings: auth_settings("platform.json", &[]), platform }
}

/// A client of one revision.
struct Client<'a> {
    host: &'a FunctionsHost,
    revision: &'static str,
    credentials: &'a str,
}

impl Client<'_> {
    fn message(&self, method: &str, mut params: Value) -> (String, String) {
        let mut headers = format!(
            "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             MCP-Protocol-Version: {}\r\n{}",
            self.revision, self.credentials
        );
        if self.revision == "2026-07-28" {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(self.revision);
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
            headers += &format!("Mcp-Method: {method}\r\n");
            if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
                headers += &format!("Mcp-Name: {name}\r\n");
            }
        }
        (headers, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string())
    }

    fn send(&self, method: &str, params: Value) -> Answer {
        let (headers, body) = self.message(method, params);
        self.host.request(APP_NAME, "POST", "/mcp", &headers, &body)
    }

    fn call(&self, tool: &str) -> Answer {
        self.send("tools/call", json!({"name": tool, "arguments": arguments(tool)}))
    }

    /// Returns the names of all tools, as a client lists them.
    fn tools(&self) -> Vec<String> {
        let answer = self.send("tools/list", json!({}));
        assert_eq!(answer.status, 200, "{answer:?}");
        let tools = answer.json()["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// Returns valid arguments for a tool.
fn arguments(tool: &str) -> Value {
    match tool {
        "get_order" => json!({"orderId": "123"}),
        "create_order" => json!({"customerId": "bob", "items": [{"itemId": "tea", "quantity": 1}]}),
        "cancel_order" => json!({"orderId": "123", "reason": "late"}),
        "get_time" => json!({}),
        _ => panic!("the test has no arguments for {tool}"),
    }
}

fn in_every_revision<'a>(host: &'a FunctionsHost, credentials: &'a str) -> [Client<'a>; 2] {
    REVISIONS.map(|revision| Client { host, revision, credentials })
}

/// Every tool but one, the menu and the prompt need credentials.
#[track_caller]
fn refuses_anonymous_callers(host: &FunctionsHost) {
    for client in in_every_revision(host, "") {
        let tools = client.tools();
        assert_eq!(tools.len(), 4);
        for tool in tools {
            let answer = client.call(&tool);
            let expected = if tool == "get_time" { 200 } else { 401 };
            assert_eq!(answer.status, expected, "{tool} {} {answer:?}", client.revision);
            assert!(expected == 200 || answer.header("www-authenticate").is_some());
        }
        let read = |uri: &str| client.send("resources/read", json!({"uri": uri})).status;
        assert_eq!((read("config://settings"), read("menu://categories/drinks")), (200, 401));
        let prompt = json!({"name": "order_summary", "arguments": {"orderId": "123"}});
        assert_eq!(client.send("prompts/get", prompt).status, 401);
    }
}

#[track_caller]
fn serves(host: &FunctionsHost, credentials: &str) {
    for client in in_every_revision(host, credentials) {
        for tool in client.tools() {
            let answer = client.call(&tool);
            assert_eq!(answer.status, 200, "{tool} {} {answer:?}", client.revision);
        }
        assert_eq!(client.send("resources/read", json!({"uri": "menu://categories/drinks"})).status, 200);
    }
}

/// An authenticated caller without the scope `orders.write` reads, but does not write.
#[track_caller]
fn serves_reads_only(host: &FunctionsHost, credentials: &str) {
    for client in in_every_revision(host, credentials) {
        let status = |tool: &str| client.call(tool).status;
        assert_eq!([status("get_order"), status("create_order"), status("cancel_order")], [200, 403, 403]);
    }
}

/// A reader who follows the steps has authentication before the app has code.
#[test]
fn the_readme_sets_authentication_before_it_publishes() {
    let readme = include_str!("../../README.md");
    let place = |text: &str| readme.find(text).unwrap_or_else(|| panic!("{text} is missing"));
    let published = place("func azure functionapp publish");
    for file in ["entra.json", "platform.json", "keys.json"] {
        assert!(place(&format!("deploy/auth/{file}")) < place("--settings @settings.json"));
    }
    assert!(place("az webapp auth update") < published && place("--settings @settings.json") < published);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (at, _) in readme.match_indices("examples/orders/deploy") {
        let path = readme[at..].split([' ', '\n']).next().unwrap().trim_end_matches("/.");
        assert!(repository.join(path).exists(), "{path}");
    }
}

#[test]
fn without_authentication_the_recipe_does_not_start() {
    for layout in Layout::ALL {
        let said = start(layout, &[], &PlatformAuth::Off).err().expect("it must not start");
        assert_eq!(
            said.lines().filter(|line| !line.starts_with("orders: ")).collect::<Vec<_>>(),
            [
                "Error: the server has no authentication, but FUNCTIONS_CUSTOMHANDLER_PORT is set: the host that \
                 started it forwards requests of other machines to it; without authentication every caller may call \
                 everything",
                "  fix: set `Settings::auth` (option `auth`: API keys in BINDPOST_AUTH__API_KEYS, or the issuers of \
                 tokens in BINDPOST_AUTH__ISSUERS), unset FUNCTIONS_CUSTOMHANDLER_PORT if nothing forwards requests, \
                 or set `Settings::open_to_all` (option `open_to_all`) if that is intended",
            ],
            "{layout:?}"
        );
        // App Service authentication alone does not protect: the program has to read the identities.
        assert!(start(layout, &[], &with_platform(false).platform).is_err(), "{layout:?}");
        let open = [("BINDPOST_OPEN_TO_ALL".to_owned(), "true".to_owned())];
        let open = start(layout, &open, &PlatformAuth::Off).expect("it starts");
        serves(&open, "");
    }
}

/// The files in `deploy/auth` have placeholders. With these, no caller gets in by a known secret.
#[test]
fn settings_that_were_not_filled_in_do_not_start() {
    for (file, part) in [
        ("keys.json", "BINDPOST_AUTH__API_KEYS"),
        ("entra.json", "a tenant must be a GUID"),
        ("platform.json", "WEBSITE_AUTH_ENABLED"),
    ] {
        let said = start(Layout::Profile, &auth_settings(file, &[]), &PlatformAuth::Off).err();
        let said = said.unwrap_or_else(|| panic!("it starts with {file}"));
        assert!(said.contains(part), "{said}");
    }
    // A reference to a secret store that the platform could not resolve.
    let reference = "@Microsoft.KeyVault(SecretUri=https://vault.example/secrets/keys)";
    let settings = auth_settings("keys.json", &[("till = ", reference)]);
    let said = start(Layout::Profile, &settings, &PlatformAuth::Off).err().expect("it must not start");
    assert!(said.contains("BINDPOST_AUTH__API_KEYS"), "{said}");
}

#[test]
fn callers_with_a_key_are_served() {
    let Authentication { settings, platform } = with_keys();
    for layout in Layout::ALL {
        let host = start(layout, &settings, &platform).expect("it starts");
        refuses_anonymous_callers(&host);
        serves(&host, "X-API-Key: till-secret\r\n");
        serves_reads_only(&host, "X-API-Key: guest-secret\r\n");
        let wrong = Client { host: &host, revision: REVISIONS[0], credentials: "X-API-Key: wrong\r\n" };
        assert_eq!(wrong.call("get_order").status, 401);
    }
}

#[test]
fn callers_with_a_token_of_entra_id_are_served() {
    let issuer = EntraIssuer::start();
    let Authentication { settings, platform } = with_entra(&issuer);
    let bearer =
        |version: &str, claims: Value| format!("Authorization: Bearer {}\r\n", issuer.token(version, claims));
    for layout in Layout::ALL {
        let host = start(layout, &settings, &platform).expect("it starts");
        refuses_anonymous_callers(&host);
        for version in ["1.0", "2.0"] {
            serves(&host, &bearer(version, json!({"scp": "orders.write"})));
            serves_reads_only(&host, &bearer(version, json!({"scp": "User.Read"})));
            serves(&host, &bearer(version, json!({"idtyp": "app", "roles": ["Orders.Write"]})));
        }
        for claims in [json!({"aud": "api://other", "scp": "orders.write"}), json!({"tid": "other"})] {
            let foreign = bearer("2.0", claims);
            let client = Client { host: &host, revision: REVISIONS[1], credentials: &foreign };
            assert_eq!(client.call("get_order").status, 401);
        }
    }
}

#[test]
fn callers_that_app_service_authenticates_are_served() {
    for layout in Layout::ALL {
        let Authentication { settings, platform } = with_platform(true);
        let host = start(layout, &settings, &platform).expect("it starts");
        refuses_anonymous_callers(&host);
        serves(&host, "Authorization: Bearer user-token\r\n");
        serves_reads_only(&host, "Authorization: Bearer guest-token\r\n");
        // The platform checks tokens itself.
        let unknown =
            Client { host: &host, revision: REVISIONS[1], credentials: "Authorization: Bearer x\r\n" };
        assert_eq!(unknown.call("get_time").status, 401);
    }
    // With `Return401`, the platform passes on no unauthenticated request.
    let Authentication { settings, platform } = with_platform(false);
    let host = start(Layout::Profile, &settings, &platform).expect("it starts");
    let anonymous = Client { host: &host, revision: REVISIONS[1], credentials: "" };
    assert_eq!(anonymous.call("get_time").status, 401);
    serves(&host, "Authorization: Bearer user-token\r\n");
}

/// The header of App Service, as a client forges it.
fn forged() -> String {
    let claims = json!([{"typ": "tid", "val": TENANT}, {"typ": "oid", "val": "mallory"},
        {"typ": "name", "val": "Mallory"}, {"typ": "scp", "val": "orders.write"}]);
    let principal = json!({"auth_typ": "aad", "name_typ": "name", "role_typ": "roles", "claims": claims});
    let value = BASE64_STANDARD.encode(principal.to_string());
    format!("X-MS-CLIENT-PRINCIPAL: {value}\r\nX-MS-CLIENT-PRINCIPAL-NAME: Mallory\r\n")
}

#[test]
fn a_forged_identity_header_is_removed() {
    let issuer = EntraIssuer::start();
    for layout in Layout::ALL {
        // Without App Service authentication the header reaches the program.
        for Authentication { settings, platform } in [with_keys(), with_entra(&issuer)] {
            let host = start(layout, &settings, &platform).expect("it starts");
            for client in in_every_revision(&host, &forged()) {
                assert_eq!(client.call("get_order").status, 401);
                assert_eq!(client.call("cancel_order").status, 401);
            }
        }
        // With it, the platform replaces the header.
        let Authentication { settings, platform } = with_platform(true);
        let host = start(layout, &settings, &platform).expect("it starts");
        for client in in_every_revision(&host, &forged()) {
            assert_eq!(client.call("get_order").status, 401);
        }
        let both = format!("{}Authorization: Bearer user-token\r\n", forged());
        let client = Client { host: &host, revision: REVISIONS[1], credentials: &both };
        assert_eq!(client.call("cancel_order").status, 200);
        let order = client.call("get_order").json();
        assert_eq!(order["result"]["structuredContent"]["reason"], "late (Alice)");
    }
}

/// Clients are sent to Entra ID with the host name that they used, also if the host hides it from the program.
#[test]
fn the_metadata_has_the_public_address() {
    let issuer = EntraIssuer::start();
    let Authentication { mut settings, platform } = with_entra(&issuer);
    settings.push(("BINDPOST_ALLOWED_HOSTS".to_owned(), "orders.example.com".to_owned()));
    let path = "/.well-known/oauth-protected-resource/mcp";
    for layout in Layout::ALL {
        let host = start(layout, &settings, &platform).expect("it starts");
        let client = Client { host: &host, revision: REVISIONS[1], credentials: "" };
        let (headers, body) =
            client.message("tools/call", json!({"name": "get_order", "arguments": {"orderId": "123"}}));
        for name in [APP_NAME, "orders.example.com"] {
            let refused = host.request(name, "POST", "/mcp", &headers, &body);
            let challenge = refused.header("www-authenticate").expect("a challenge").to_owned();
            assert!(
                challenge.contains(&format!("resource_metadata=\"https://{name}{path}\"")),
                "{challenge}"
            );
            let metadata = host.request(name, "GET", path, "", "").json();
            assert_eq!(metadata["resource"], format!("https://{name}/mcp"), "{layout:?}");
            let servers = json!([format!("https://login.microsoftonline.com/{TENANT}/v2.0")]);
            assert_eq!(metadata["authorization_servers"], servers);
        }
        // A custom domain that is not allowed. Only the old host passes it on as the `Host` header.
        let unknown = host.request("other.example.com", "GET", path, "", "").status;
        assert_eq!(unknown, if layout == Layout::ClassicOldHost { 403 } else { 404 }, "{layout:?}");
        // A client cannot choose the name.
        let forged = "X-Forwarded-Host: evil.example.com\r\n";
        assert_eq!(
            host.request(APP_NAME, "GET", path, forged, "").json()["resource"],
            format!("https://{APP_NAME}/mcp")
        );
    }
}

#[test]
fn a_session_with_a_handshake_needs_no_instance() {
    let Authentication { settings, platform } = with_keys();
    for layout in Layout::ALL {
        let host = start(layout, &settings, &platform).expect("it starts");
        let client =
            Client { host: &host, revision: REVISIONS[0], credentials: "X-API-Key: till-secret\r\n" };
        let opening = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let opened = client.send("initialize", opening);
        assert_eq!(opened.json()["result"]["protocolVersion"], "2025-11-25", "{layout:?}");
        let id = opened.header("mcp-session-id").expect("an id").to_owned();
        let later = format!("Mcp-Session-Id: {id}\r\nX-API-Key: till-secret\r\n");
        let later = Client { credentials: &later, ..client };
        let (headers, _) = later.message("notifications/initialized", json!({}));
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert_eq!(host.request(APP_NAME, "POST", "/mcp", &headers, ready).status, 202);
        assert_eq!(later.call("get_order").status, 200);
        // There are no streams without a call, so a host that buffers responses does not wait for their end.
        assert_eq!(host.request(APP_NAME, "GET", "/mcp", &headers, "").status, 405);
        assert_eq!(host.request(APP_NAME, "DELETE", "/mcp", &headers, "").status, 405);
    }
}

#[test]
fn event_streams_pass_the_host() {
    let Authentication { settings, platform } = with_keys();
    for layout in Layout::ALL {
        let host = start(layout, &settings, &platform).expect("it starts");
        for client in in_every_revision(&host, "X-API-Key: till-secret\r\n") {
            let mut params = json!({"name": "create_order", "arguments": arguments("create_order")});
            params["_meta"]["progressToken"] = json!("p");
            let messages = client.send("tools/call", params).messages();
            let [progress, result] = &messages[..] else { panic!("{layout:?} {messages:?}") };
            assert_eq!(progress["method"], "notifications/progress");
            assert_eq!(result["result"]["structuredContent"]["customerId"], "bob");
        }
        if layout == Layout::ClassicOldHost {
            continue;
        }
        // A stream that does not end arrives while it is open.
        let client =
            Client { host: &host, revision: REVISIONS[1], credentials: "X-API-Key: till-secret\r\n" };
        let listen = json!({"notifications": {"toolsListChanged": true}});
        let (headers, body) = client.message("subscriptions/listen", listen);
        let mut stream = host.open("POST", "/mcp", &headers, &body);
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut seen = String::new();
        let mut buffer = [0; 1024];
        while !seen.contains("notifications/subscriptions/acknowledged") {
            let count = stream.read(&mut buffer).expect("an event before the end");
            assert!(count > 0, "the stream ended: {seen}");
            seen += &String::from_utf8_lossy(&buffer[..count]);
        }
        assert!(seen.to_lowercase().contains("content-type: text/event-stream"), "{seen}");
    }
}
