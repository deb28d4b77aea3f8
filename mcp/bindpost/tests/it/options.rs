//! Options: the three ways to set them, and their effects.

mod app;
mod mistakes;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use bindpost::http::{AnonymousAccess, Authorizer, Denial, SessionMode, TlsFiles};
use bindpost::options::{OptionKey, OptionSource};
use bindpost::protocol::Revision;
use bindpost::testing::TestClient;
use bindpost::{
    CacheScope, Caller, HttpRequest, ListVisibility, Options, OptionsError, ServerBuilder, ToolEntry,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const FILE: &str = "bindpost.toml";

fn from_file(text: &str) -> Result<Options, OptionsError> {
    Options::default().load_toml(FILE, text)
}

fn from_variable(name: &str, value: &str) -> Result<Options, OptionsError> {
    Options::default().load_variables([(name, value)])
}

fn values(options: &Options) -> BTreeMap<&'static str, String> {
    options.keys().into_iter().map(|key| (key.name, key.value)).collect()
}

/// Writes a file for one test.
fn file(name: &str, text: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Returns a value other than the default, in TOML and as a variable.
fn another(key: &OptionKey) -> (String, String) {
    let texts: &[&str] = match (key.name, key.kind.as_str()) {
        ("server_version", _) => &["9.9.9"],
        (_, "text") => &["something else"],
        (_, "address") => &["localhost:1"],
        (_, "mode") => &["666"],
        (_, "path") => &["/else"],
        (_, "header") => &["x-else"],
        (_, "file") => &["else.keys"],
        (_, "URL") => &["https://else.example/mcp"],
        (_, "secret") => &["00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"],
        (_, "flag") => return if key.value == "true" { both("false") } else { both("true") },
        (_, "count" | "count or `none`") => return both("7"),
        (_, "size") => &["12KiB"],
        (_, "duration" | "duration or `none`") => &["77ms"],
        (_, "`required`, `optional`, `stateless` or `off`") => &["stateless"],
        (_, "`public` or `private`") => &["public"],
        (_, "`auto`, `open` or `closed`") => &["closed"],
        (_, "`all` or `permitted`") => &["permitted"],
        (_, "list: date") => &["2025-11-25", "2025-03-26"],
        (_, "list: origin") => &["https://a.example", "https://b.example:8443"],
        (_, "list: header") => &["x-user-", "x-token-"],
        (_, "list: host") => &["a.example", "b.example:8443"],
        (_, "list: URL") => &["https://a.example", "http://localhost:5000/b"],
        (_, "list: text") => &["one", "two"],
        (_, "list: name") => &["RS256", "ES384"],
        (_, "list: secret") => &["ops = top-secret", "bot = more-secret a.read b.write"],
        (name, kind) => panic!("no other value for {name}, which is a {kind}"),
    };
    let quoted: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
    let toml =
        if key.kind.starts_with("list") { format!("[{}]", quoted.join(", ")) } else { quoted.concat() };
    (toml, texts.join(" , "))
}

fn both(text: &str) -> (String, String) {
    (text.to_owned(), text.to_owned())
}

#[test]
fn every_key_sets_its_own_value_and_no_other_from_a_file_and_from_a_variable() {
    let defaults = values(&Options::default());
    for key in Options::default().keys() {
        let (toml, variable) = another(&key);
        let in_file = from_file(&format!("{} = {toml}", key.name)).unwrap();
        let in_variable = from_variable(&key.variable, &variable).unwrap();
        let changed = values(&in_file);
        assert_eq!(changed, values(&in_variable), "{}", key.name);
        let differ: Vec<&str> = defaults
            .iter()
            .filter(|(name, value)| changed[*name] != **value)
            .map(|(name, _)| *name)
            .collect();
        assert_eq!(differ, [key.name]);
        let place = |options: &Options| {
            options.keys().into_iter().find(|other| other.name == key.name).unwrap().place
        };
        assert_eq!(place(&in_file), OptionSource::Line { file: FILE.to_owned(), line: 1 });
        assert_eq!(place(&in_variable), OptionSource::Variable(key.variable));
    }
}

#[test]
fn every_default_can_be_loaded_from_a_file() {
    let defaults = Options::default();
    let text: String = defaults.keys().iter().map(|key| format!("{} = {}\n", key.name, key.value)).collect();
    let written = from_file(&text).unwrap();
    assert_eq!(values(&written), values(&defaults));
    written.settings().unwrap();
}

/// The options of one file. `in_rust` sets the same options in code.
const SAMPLE: &str = r#"
    server_name = "orders"
    server_version = "2.0.0"
    title = "Orders"
    description = "Takes orders."
    website_url = "https://orders.example"
    instructions = "Ask first."
    supported_protocol_versions = ["2025-11-25", 2025-06-18]
    enable_tools = true
    enable_resources = false
    enable_prompts = false
    page_size = 10
    cache_ttl = "1h"
    cache_scope = "public"
    state_key = "0707070707070707070707070707070707070707070707070707070707070707"
    address = "0.0.0.0:80"
    socket_mode = "660"
    path = "/v1/mcp/"
    sse = true
    sse_path = "/v1/sse"
    sse_message_path = "/v1/message"
    health = true
    sessions = "stateless"
    json_only = true
    allowed_origins = [
        "https://a.example",
        "https://b.example",
    ]
    allowed_hosts = ["api.example"]
    require_origin_header = true
    open_to_all = true
    behind_proxy = true
    identity_headers = ["x-user-"]
    trust_platform_identity = true

    [limits]
    call_timeout = "none"
    running_calls = 0x10
    [limits.stream]
    unread_bytes = "64KiB"

    [http]
    max_body = 2_000_000
    body_timeout = "250ms"
    stream_after = "5s"
    keep_alive = "6s"
    retry = "7s"

    [session_limits]
    idle = "5m"
    [connections]
    connections_per_address = "none"
    h2_streams = 7
    [tasks]
    enabled = true
    lifetime = "20m"
    [tls]
    certificate = "cert.pem"
    key = "key.pem"
    look_every = "1m"
    [auth]
    api_keys = ["ops = secret orders.read"]
    resource = "https://api.example/v1/mcp"
    listing = "permitted"
    opening = "closed"
    realm = "orders"
    timeout = "3s"
"#;

const VARIABLES: &[(&str, &str)] = &[
    ("BINDPOST_SERVER_NAME", "orders"),
    ("BINDPOST_SERVER_VERSION", "2.0.0"),
    ("BINDPOST_TITLE", "Orders"),
    ("BINDPOST_DESCRIPTION", "Takes orders."),
    ("BINDPOST_WEBSITE_URL", "https://orders.example"),
    ("BINDPOST_INSTRUCTIONS", "Ask first."),
    ("BINDPOST_SUPPORTED_PROTOCOL_VERSIONS", "2025-11-25,2025-06-18"),
    ("BINDPOST_ENABLE_TOOLS", "true"),
    ("BINDPOST_ENABLE_RESOURCES", "false"),
    ("BINDPOST_ENABLE_PROMPTS", "false"),
    ("BINDPOST_PAGE_SIZE", "10"),
    ("BINDPOST_CACHE_TTL", "1h"),
    ("BINDPOST_CACHE_SCOPE", "public"),
    ("BINDPOST_STATE_KEY", "0707070707070707070707070707070707070707070707070707070707070707"),
    ("BINDPOST_ADDRESS", "0.0.0.0:80"),
    ("BINDPOST_SOCKET_MODE", "660"),
    ("BINDPOST_PATH", "/v1/mcp/"),
    ("BINDPOST_SSE_PATH", "/v1/sse"),
    ("BINDPOST_SSE_MESSAGE_PATH", "/v1/message"),
    ("BINDPOST_HEALTH", "true"),
    ("BINDPOST_SESSIONS", "stateless"),
    ("BINDPOST_JSON_ONLY", "true"),
    ("BINDPOST_ALLOWED_ORIGINS", "https://a.example, https://b.example"),
    ("BINDPOST_ALLOWED_HOSTS", "api.example,"),
    ("BINDPOST_REQUIRE_ORIGIN_HEADER", "true"),
    ("BINDPOST_OPEN_TO_ALL", "true"),
    ("BINDPOST_BEHIND_PROXY", "true"),
    ("BINDPOST_IDENTITY_HEADERS", "x-user-"),
    ("BINDPOST_TRUST_PLATFORM_IDENTITY", "true"),
    ("BINDPOST_LIMITS__CALL_TIMEOUT", "never"),
    ("BINDPOST_LIMITS__RUNNING_CALLS", "16"),
    ("BINDPOST_LIMITS__STREAM__UNREAD_BYTES", "65536"),
    ("BINDPOST_HTTP__MAX_BODY", "2000000"),
    ("BINDPOST_HTTP__BODY_TIMEOUT", "250ms"),
    ("BINDPOST_HTTP__STREAM_AFTER", "5s"),
    ("BINDPOST_HTTP__KEEP_ALIVE", " 6s "),
    ("BINDPOST_HTTP__RETRY", "7s"),
    ("BINDPOST_SESSION_LIMITS__IDLE", "300s"),
    ("BINDPOST_CONNECTIONS__CONNECTIONS_PER_ADDRESS", "none"),
    ("BINDPOST_CONNECTIONS__H2_STREAMS", "7"),
    ("BINDPOST_TASKS__ENABLED", "true"),
    ("BINDPOST_TASKS__LIFETIME", "20m"),
    ("BINDPOST_TLS__CERTIFICATE", "cert.pem"),
    ("BINDPOST_TLS__KEY", "key.pem"),
    ("BINDPOST_TLS__LOOK_EVERY", "60s"),
    ("BINDPOST_AUTH__API_KEYS", "ops=secret orders.read"),
    ("BINDPOST_AUTH__RESOURCE", "https://api.example/v1/mcp"),
    ("BINDPOST_AUTH__LISTING", "permitted"),
    ("BINDPOST_AUTH__OPENING", "closed"),
    ("BINDPOST_AUTH__REALM", "orders"),
    ("BINDPOST_AUTH__TIMEOUT", "3s"),
    ("HOME", "somewhere"),
    ("bindpost_path", "not ours"),
];

fn in_rust() -> Options {
    Options::new("orders", "2.0.0")
        .title("Orders")
        .description("Takes orders.")
        .website_url("https://orders.example")
        .instructions("Ask first.")
        .supported_protocol_versions([Revision::V2025_11_25, Revision::V2025_06_18])
        .enable_tools(true)
        .enable_resources(false)
        .enable_prompts(false)
        .page_size(10)
        .cache_ttl(Duration::from_secs(3600))
        .cache_scope(CacheScope::Public)
        .state_key([7; 32])
        .address("0.0.0.0:80")
        .socket_mode(0o660)
        .path("/v1/mcp/")
        .sse(true)
        .sse_path("/v1/sse")
        .sse_message_path("/v1/message")
        .health(true)
        .sessions(SessionMode::Stateless)
        .json_only(true)
        .allowed_origins(["https://a.example", "https://b.example"])
        .allowed_hosts(["api.example"])
        .require_origin_header(true)
        .open_to_all(true)
        .behind_proxy(true)
        .identity_headers(["x-user-"])
        .trust_platform_identity(true)
        .limits(|limits| {
            limits.call_timeout = None;
            limits.running_calls = 16;
            limits.stream.unread_bytes = 64 * 1024;
        })
        .http(|http| {
            http.max_body = 2_000_000;
            http.body_timeout = Duration::from_millis(250);
            http.stream_after = Duration::from_secs(5);
            http.keep_alive = Duration::from_secs(6);
            http.retry = Duration::from_secs(7);
        })
        .session_limits(|sessions| sessions.idle = Duration::from_secs(300))
        .connections(|connections| {
            connections.connections_per_address = None;
            connections.h2_streams = 7;
        })
        .tasks(|tasks| {
            tasks.enabled = true;
            tasks.lifetime = Duration::from_secs(20 * 60);
        })
        .tls(|tls| {
            tls.certificate = Some("cert.pem".into());
            tls.key = Some("key.pem".into());
            tls.look_every = Duration::from_secs(60);
        })
        .auth(|auth| {
            auth.api_keys = vec!["ops = secret orders.read".to_owned()];
            auth.resource = Some("https://api.example/v1/mcp".to_owned());
            auth.listing = ListVisibility::Permitted;
            auth.opening = AnonymousAccess::Closed;
            auth.realm = "orders".to_owned();
            auth.timeout = Duration::from_secs(3);
        })
}

#[tokio::test]
async fn all_three_ways_give_the_same_server_and_settings() {
    let expected = values(&in_rust());
    let file = from_file(SAMPLE).unwrap();
    let variables = Options::default().load_variables(VARIABLES.iter().copied()).unwrap();
    for options in [in_rust(), file, variables] {
        assert_eq!(values(&options), expected);
        assert_eq!(options.listen_address(), "0.0.0.0:80");

        let settings = options.settings().unwrap();
        assert_eq!(settings.path, "/v1/mcp");
        assert_eq!(settings.sse_paths, Some(("/v1/sse".to_owned(), "/v1/message".to_owned())));
        assert_eq!(settings.allowed_hosts, ["api.example"]);
        assert_eq!(settings.identity_headers, ["x-user-"]);
        assert_eq!(settings.allowed_origins, ["https://a.example", "https://b.example"]);
        assert!(settings.require_origin && settings.json_only && settings.health);
        assert!(settings.open_to_all && settings.behind_proxy && settings.trust_platform_identity);
        assert_eq!(settings.sessions, SessionMode::Stateless);
        assert_eq!(settings.session_limits.idle, Duration::from_secs(300));
        assert_eq!(settings.connections.connections_per_address, None);
        assert_eq!(settings.connections.h2_streams, 7);
        assert_eq!(settings.max_body, 2_000_000);
        let times = [settings.body_timeout, settings.stream_after, settings.keep_alive, settings.retry];
        assert_eq!(times.map(|time| time.as_millis()), [250, 5_000, 6_000, 7_000]);
        let tls = TlsFiles { look_every: Duration::from_secs(60), ..TlsFiles::new("cert.pem", "key.pem") };
        assert_eq!(settings.tls, Some(tls));
        let auth = settings.auth.unwrap();
        assert_eq!((auth.opening, auth.listing), (AnonymousAccess::Closed, ListVisibility::Permitted));
        assert_eq!(auth.resource.as_deref(), Some("https://api.example/v1/mcp"));
        assert_eq!((auth.realm.as_str(), auth.timeout), ("orders", Duration::from_secs(3)));
        assert_eq!(auth.scopes_supported, None);

        let opened = open(options.server(), "2025-11-25").await;
        assert_eq!(opened["instructions"], "Ask first.");
        assert_eq!(
            opened["serverInfo"],
            json!({
                "name": "orders", "version": "2.0.0", "title": "Orders", "description": "Takes orders.",
                "websiteUrl": "https://orders.example",
            })
        );
        // A revision that is not listed is not supported.
        assert_eq!(open(options.server(), "2025-03-26").await["protocolVersion"], "2025-11-25");
    }
}

/// Returns the response to `initialize` of a server with one tool.
async fn open(server: ServerBuilder, revision: &str) -> Value {
    let server = server.tool(ToolEntry::new("hello", async || "Hello!")).build().unwrap();
    let params =
        json!({"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    TestClient::connect(&server).request("initialize", params).await.unwrap()
}

#[tokio::test]
async fn disabled_entries_are_not_offered() {
    let offers_tools = |options: Options| async move {
        open(options.server(), "2025-11-25").await["capabilities"].get("tools").is_some()
    };
    assert!(offers_tools(Options::default()).await);
    assert!(!offers_tools(from_file("enable_tools = false").unwrap()).await);
}

#[test]
fn the_defaults_are_those_of_the_server_and_of_http() {
    let options = Options::default();
    let settings = options.settings().unwrap();
    let usual = bindpost::http::Settings::default();
    assert_eq!(options.listen_address(), "127.0.0.1:7071");
    assert_eq!((&settings.path, &settings.sse_paths), (&usual.path, &usual.sse_paths));
    assert_eq!(settings.max_body, usual.max_body);
    assert!(settings.auth.is_none() && settings.tls.is_none() && !settings.open_to_all);
    assert_eq!(from_file("sse = false").unwrap().settings().unwrap().sse_paths, None);
}

#[test]
fn a_variable_overrides_the_file_and_the_file_overrides_earlier_values_of_the_program() {
    let path = file("precedence.toml", "title = \"file\"\ndescription = \"file\"\n[limits]\nlisteners = 5");
    let options = Options::new("program", "1.0.0")
        .title("program")
        .description("program")
        .instructions("program")
        .limits(|limits| limits.waiting_calls = 6)
        .load_variables([
            ("BINDPOST_TITLE".into(), "variable".into()),
            ("BINDPOST_CONFIG".into(), path.into_os_string()),
        ] as [(std::ffi::OsString, std::ffi::OsString); 2])
        .unwrap();
    let values = values(&options);
    assert_eq!(values["server_name"], r#""program""#);
    assert_eq!(values["title"], r#""variable""#);
    assert_eq!(values["description"], r#""file""#);
    assert_eq!(values["instructions"], r#""program""#);
    // A table is changed key by key.
    assert_eq!((values["limits.listeners"].as_str(), values["limits.waiting_calls"].as_str()), ("5", "6"));
    // A value set after loading is final.
    assert_eq!(options.address("localhost:1").listen_address(), "localhost:1");
}

#[test]
fn an_empty_variable_removes_a_value() {
    let options = Options::default().title("x").allowed_origins(["https://a.example"]);
    let options = options.load_variables([("BINDPOST_TITLE", ""), ("BINDPOST_ALLOWED_ORIGINS", "")]).unwrap();
    assert_eq!(values(&options), values(&Options::default()));
    // An empty name loads no file.
    Options::default().load_variables([("BINDPOST_CONFIG", "")]).unwrap();
}

#[test]
fn issuers_require_tokens() {
    let options =
        from_file("[auth]\nissuers = [\"https://a.example\"]\nresource = \"https://api.example/mcp\"")
            .unwrap();
    let auth = options.settings().unwrap().auth.unwrap();
    assert_eq!(auth.authorizer.authorization_servers(), ["https://a.example"]);
    let more = options.load_variables([
        ("BINDPOST_AUTH__AUTHORIZATION_SERVERS", "https://b.example"),
        ("BINDPOST_AUTH__ALGORITHMS", "RS256"),
        ("BINDPOST_AUTH__API_KEYS", "ops = secret"),
    ]);
    let auth = more.unwrap().settings().unwrap().auth.unwrap();
    assert_eq!(auth.authorizer.authorization_servers(), ["https://b.example"]);
    assert_eq!(auth.authorizer.challenges().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn api_keys_of_a_file_and_of_a_variable_are_accepted() {
    let keys = file("orders.keys", "file = from-file orders.read\n");
    let options = Options::new("orders", "1.0.0")
        .address("127.0.0.1:0")
        .auth(|auth| auth.opening = AnonymousAccess::Closed)
        .load_toml(
            FILE,
            &format!("[auth]\napi_keys_file = {:?}\napi_key_header = \"x-orders\"", keys.to_str().unwrap()),
        )
        .unwrap()
        .load_variables([("BINDPOST_AUTH__API_KEYS", "variable = from-variable")])
        .unwrap();
    let address = start(&options).await;
    for (header, status) in [
        ("x-orders: from-file", 200),
        ("x-orders: from-variable", 200),
        ("x-orders: from-nowhere", 401),
        ("x-api-key: from-file", 401),
    ] {
        assert_eq!(initialize(address, header).await, status, "{header}");
    }
}

#[derive(Debug)]
struct UserHeader;

impl Authorizer for UserHeader {
    async fn authorize(&self, request: &HttpRequest) -> Result<Caller, Denial> {
        request.header("x-user").map(Caller::new).ok_or_else(Denial::missing)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorizer_of_the_program_is_combined_with_api_keys() {
    let options = from_file("[auth]\napi_keys = [\"ops = secret\"]\nopening = \"closed\"").unwrap();
    let address = start(&options.address("127.0.0.1:0").authorizer(UserHeader)).await;
    for (header, status) in [("x-user: alice", 200), ("x-api-key: secret", 200), ("x-api-key: wrong", 401)] {
        assert_eq!(initialize(address, header).await, status, "{header}");
    }
}

#[tokio::test]
async fn other_machines_are_not_served_without_authentication() {
    let local = || Options::default().address("127.0.0.1:0");
    for options in [
        Options::default().address("0.0.0.0:0"),
        local().allowed_hosts(["api.example"]),
        local().allowed_hosts(["*"]),
        local().behind_proxy(true),
    ] {
        let error = options.serve(options.server().build().unwrap()).await.unwrap_err().to_string();
        assert!(error.contains("`open_to_all`") && error.contains("`auth`"), "{error}");
    }
    let options = Options::default().path("mcp");
    let error = options.serve(options.server().build().unwrap()).await.unwrap_err().to_string();
    assert_eq!(error, "`path` is \"mcp\"; it can be a path like /mcp");
}

#[tokio::test]
async fn serve_without_options_refuses_a_public_address() {
    let server = Options::default().server().build().unwrap();
    let error = bindpost::serve(server, "0.0.0.0:0").await.unwrap_err().to_string();
    for part in
        ["0.0.0.0", "without authentication", "fix:", "`auth`", "BINDPOST_AUTH__API_KEYS", "`open_to_all`"]
    {
        assert!(error.contains(part), "{error}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_unix_socket_is_served_with_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let path = std::env::temp_dir().join(format!("bindpost-options-{}.sock", std::process::id()));
    let file = format!("address = \"unix:{}\"\nsocket_mode = \"640\"", path.display());
    let options = from_file(&file).unwrap();
    let server = options.server().tool(ToolEntry::new("hello", async || "Hello!")).build().unwrap();
    let running = tokio::spawn(async move { options.serve(server).await });
    let ask = async {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
        let mut stream = loop {
            match tokio::net::UnixStream::connect(&path).await {
                Ok(stream) => break stream,
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        };
        let request = b"GET /nothing HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
        stream.write_all(request).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let answer = tokio::time::timeout(Duration::from_secs(30), ask).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    running.abort();
    let _ = running.await;
    assert!(!path.exists());
}

async fn start(options: &Options) -> SocketAddr {
    let server = options.server().tool(ToolEntry::new("hello", async || "Hello!")).build().unwrap();
    let bound = bindpost::http::bind(options.listen_address()).await.unwrap();
    let (address, stop) = bound.serve_in_background(server, options.settings().unwrap());
    std::mem::forget(stop);
    address
}

/// Returns the status of the response to `initialize` with an additional header.
async fn initialize(address: SocketAddr, header: &str) -> u16 {
    let header = header.to_owned();
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
    let ask = move || -> std::io::Result<String> {
        let mut stream = std::net::TcpStream::connect(address)?;
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\n{header}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    let answer = tokio::task::spawn_blocking(ask).await.unwrap().unwrap();
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// Returns the field names in the debug output of a struct.
fn fields(shown: &str) -> Vec<String> {
    let mut path: Vec<String> = Vec::new();
    let mut names = Vec::new();
    for line in shown.lines().skip(1) {
        let depth = line.chars().take_while(|c| *c == ' ').count() / 4;
        let Some((name, value)) = line.trim().split_once(": ") else { continue };
        path.truncate(depth - 1);
        path.push(name.to_owned());
        if !value.ends_with('{') {
            names.push(path.join("."));
        }
    }
    names
}

#[test]
fn every_limit_can_be_set() {
    let keys = Options::default().keys();
    let http = bindpost::http::Settings::default();
    let tables = [
        ("limits", fields(&format!("{:#?}", bindpost::ServerLimits::default()))),
        ("session_limits", fields(&format!("{:#?}", http.session_limits))),
        ("connections", fields(&format!("{:#?}", http.connections))),
        ("tasks", fields(&format!("{:#?}", bindpost::TaskLimits::default()))),
        ("auth.token_limits", fields(&format!("{:#?}", bindpost::oauth::OAuthLimits::default()))),
    ];
    // It decides what a service is given, and limits nothing.
    let is_limit = |name: &str| name != "connections.header_names";
    for (table, fields) in tables {
        assert!(fields.len() >= 4, "{table} {fields:?}");
        for name in fields.iter().map(|field| format!("{table}.{field}")).filter(|name| is_limit(name)) {
            assert!(
                keys.iter().any(|key| key.name == name),
                "key {name} is missing: add it to options/keys.rs"
            );
        }
    }
}

/// Begins the generated part of the documentation.
const MARK: &str =
    "<!-- A test generates the rest of this page. Run it with UPDATE_SNAPSHOTS=1 to update it. -->\n";

fn table() -> String {
    let mut text = String::new();
    let mut last = None;
    for key in Options::default().keys() {
        let table = key.name.rsplit_once('.').map_or("", |(table, _)| table);
        if last != Some(table) {
            let title = if table.is_empty() { "Top-level keys".to_owned() } else { format!("`[{table}]`") };
            text += &format!(
                "\n## {title}\n\n| Key | Variable | Type | Default | Meaning |\n| --- | --- | --- | --- | --- |\n"
            );
            last = Some(table);
        }
        let default = if key.value == "\"\"" { String::new() } else { format!("`{}`", key.value) };
        text += &format!(
            "| `{}` | `{}` | {} | {default} | {} |\n",
            key.name, key.variable, key.kind, key.meaning
        );
    }
    text
}

#[test]
fn the_documentation_has_every_key() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/options.md");
    let document = std::fs::read_to_string(path).unwrap();
    let (intro, written) = document.split_once(MARK).expect("the page has the mark");
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(path, format!("{intro}{MARK}{}", table())).unwrap();
        return;
    }
    let rows = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    assert_eq!(rows(written), rows(&table()), "run with UPDATE_SNAPSHOTS=1 and review the difference");
}

#[test]
fn the_examples_of_the_documentation_are_valid() {
    let document = include_str!("../../../../docs/options.md");
    let mut examples = document.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let options = from_file(examples.next().expect("the page has an example")).unwrap();
    options.settings().unwrap();
}

fn some_toml() -> impl Strategy<Value = String> {
    let names: Vec<&'static str> = Options::default().keys().into_iter().map(|key| key.name).collect();
    let value = prop_oneof![
        any::<i128>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "\"[ -~]{0,12}\"",
        "\"[0-9]{0,25}(ms|s|m|h|B|KiB|MiB|GiB)\"",
        "\\[(\"[a-z:/.*]{0,9}\"|[0-9-]{1,12}|true)?(, \"[^\"\\\\]{0,5}\")?,?\\]?",
        "\\{ [a-z_]{1,5} = [0-9]{1,3} \\}?",
        "[^\n]{0,10}",
        Just("true".to_owned()),
    ];
    let line = (proptest::sample::select(names), value).prop_map(|(name, value)| format!("{name} = {value}"));
    let line = prop_oneof![8 => line, 1 => "\\[{0,2}[a-z._]{0,10}\\]{0,2}", 1 => "\\PC{0,20}"];
    proptest::collection::vec(line, 0..8).prop_map(|lines| lines.join("\n"))
}

/// Checks that accepted options can be used, and that they stay the same when they are written and loaded again.
fn use_it(options: Options) {
    let _ = options.settings();
    options.server().build().unwrap();
    let keys = options.keys();
    let kept = keys.iter().filter(|key| !key.kind.contains("secret"));
    let text: String = kept.map(|key| format!("{} = {}\n", key.name, key.value)).collect();
    let again = from_file(&text).unwrap_or_else(|error| panic!("{text}\n{error}"));
    let same = |options: &Options| -> Vec<OptionKey> {
        let keys = options.keys().into_iter().filter(|key| !key.kind.contains("secret"));
        keys.map(|key| {
            let mut key = key;
            key.place = OptionSource::Program;
            key
        })
        .collect()
    };
    assert_eq!(same(&options), same(&again));
}

proptest! {
    #[test]
    fn any_text_is_options_or_mistakes(text in prop_oneof![any::<String>(), some_toml()]) {
        match from_file(&text) {
            Ok(options) => use_it(options),
            Err(error) => prop_assert!(!error.0.is_empty() && !error.to_string().is_empty()),
        }
    }

    #[test]
    fn any_variables_are_options_or_mistakes(
        values in proptest::collection::vec((any::<prop::sample::Index>(), prop_oneof![any::<String>(), "[0-9]{1,25}(ms|s|m|h|B|KiB|MiB|GiB)?", "[a-z0-9./:,= ]{0,30}"]), 1..6),
        name in "BINDPOST_[A-Z_]{0,20}",
    ) {
        let keys = Options::default().keys();
        let known = values.iter().map(|(index, value)| (index.get(&keys).variable.clone(), value.clone()));
        match Options::default().load_variables(known) {
            Ok(options) => use_it(options),
            Err(error) => prop_assert!(!error.0.is_empty()),
        }
        if name != "BINDPOST_CONFIG" {
            let _ = from_variable(&name, "x");
        }
    }
}
