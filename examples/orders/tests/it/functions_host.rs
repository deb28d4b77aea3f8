//! A stand-in of the Functions host and of App Service in front of it, over HTTP on the loopback.
//!
//! It reads the files of an app folder, starts the custom handler that they name, and forwards requests as the
//! platform does:
//!
//! - App Service adds its headers. With authentication it removes identity headers of clients and sets its own.
//!   Without authentication it passes all headers on.
//! - `enableProxyingHttpRequest`, which the profile `mcp-custom-handler` sets too: the path is unchanged, `Host` is
//!   the address of the handler, `X-Forwarded-Host` is the host of the client, and the response is streamed.
//! - `enableForwardingHttpRequest`, on hosts that do not know the other one: the request is built again. `Host` is
//!   kept, a body needs a length, the host appends itself to `User-Agent`, and the response is buffered.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::program::{Answer, begin, free_port, send};

/// The name of the app on the platform.
pub(crate) const APP_NAME: &str = "orders.azurewebsites.net";

const VERSION: &str = "4.1045.200.25556";
const INVOCATION: &str = "d0f2b1a5-6c0b-4b3e-9d3c-1f5e0a7c9b42";

/// A folder of the recipe, and the kind of host that runs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The profile `mcp-custom-handler`.
    Profile,
    /// `function.json`, on a host that streams.
    Classic,
    /// `function.json`, on a host that only knows `enableForwardingHttpRequest`.
    ClassicOldHost,
}

impl Layout {
    pub(crate) const ALL: [Layout; 3] = [Layout::Profile, Layout::Classic, Layout::ClassicOldHost];

    fn folder(self) -> PathBuf {
        let name = if self == Layout::Profile { "profile" } else { "classic" };
        Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy").join(name)
    }
}

/// App Service authentication.
#[derive(Clone, Debug, Default)]
pub(crate) enum PlatformAuth {
    #[default]
    Off,
    /// Unauthenticated requests are passed on (`AllowAnonymous`) or get 401 (`Return401`). The tokens are those that the
    /// platform accepts, each with the claims of its user.
    On { allows_anonymous: bool, tokens: Vec<(&'static str, Value)> },
}

/// The running host.
pub(crate) struct FunctionsHost {
    handler: Child,
    address: String,
    _folder: AppFolder,
}

/// The folder of a published app. It is deleted when this value is dropped.
struct AppFolder(PathBuf);

impl Drop for AppFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the host knows of the app.
struct RunningApp {
    port: u16,
    routes: Vec<HttpRoute>,
    is_proxied: bool,
    auth: PlatformAuth,
}

/// What `host.json` and the `function.json` files say.
struct AppFiles {
    executable: PathBuf,
    arguments: Vec<String>,
    routes: Vec<HttpRoute>,
    is_proxied: bool,
}

/// A route of an HTTP trigger.
struct HttpRoute {
    template: String,
    /// The methods in lower case. `None` allows all.
    methods: Option<Vec<String>>,
    level: String,
}

/// A request of a client.
struct ClientRequest {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl FunctionsHost {
    /// Publishes the files of the recipe with these app settings, and starts the handler. The error is what the
    /// handler printed before it ended.
    pub(crate) fn start(
        layout: Layout,
        settings: &[(&str, &str)],
        auth: &PlatformAuth,
    ) -> Result<FunctionsHost, String> {
        let folder = AppFolder(published(layout));
        let root = &folder.0;
        let app = AppFiles::read(root, layout);
        let port = free_port();
        let mut command = Command::new(&app.executable);
        command
            .args(&app.arguments)
            .current_dir(root)
            .envs(settings.iter().copied())
            .env("FUNCTIONS_CUSTOMHANDLER_PORT", port.to_string())
            .env("FUNCTIONS_CUSTOMHANDLER_WORKER_ID", INVOCATION)
            .env("FUNCTIONS_HTTPWORKER_PORT", port.to_string())
            .env("FUNCTIONS_APP_ROOT_PATH", root)
            .env("WEBSITE_HOSTNAME", APP_NAME)
            .env("WEBSITE_AUTH_ENABLED", if matches!(auth, PlatformAuth::Off) { "False" } else { "True" })
            .env("RUST_BACKTRACE", "0")
            .stderr(Stdio::piped());
        let mut handler = command.spawn().expect("the executable of host.json starts");
        let printed = collect(handler.stderr.take().expect("piped"));
        wait_until_ready(&mut handler, port).map_err(|()| {
            handler.wait().expect("it has ended");
            printed.join().expect("its output is text")
        })?;
        let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
        let address = listener.local_addr().expect("has an address").to_string();
        let running = RunningApp { port, routes: app.routes, is_proxied: app.is_proxied, auth: auth.clone() };
        let running = Arc::new(running);
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let running = running.clone();
                std::thread::spawn(move || running.serve(client));
            }
        });
        Ok(FunctionsHost { handler, address, _folder: folder })
    }

    /// Sends a request to a host name of the app.
    pub(crate) fn request(&self, host: &str, method: &str, path: &str, headers: &str, body: &str) -> Answer {
        send(&self.address, method, path, &format!("Host: {host}\r\nUser-Agent: test/1.0\r\n{headers}"), body)
    }

    /// Sends a request and returns the connection, for a response that does not end.
    pub(crate) fn open(&self, method: &str, path: &str, headers: &str, body: &str) -> TcpStream {
        begin(&self.address, method, path, &format!("Host: {APP_NAME}\r\n{headers}"), body)
    }
}

impl Drop for FunctionsHost {
    fn drop(&mut self) {
        let _ = self.handler.kill();
        let _ = self.handler.wait();
    }
}

/// Copies the files of the recipe and the program into a folder, as `func azure functionapp publish` does.
fn published(layout: Layout) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let name = format!("app-{}-{number}", std::process::id());
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&root);
    copy_folder(&layout.folder(), &root);
    let program = root.join("orders");
    fs::hard_link(env!("CARGO_BIN_EXE_orders"), &program)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_orders"), &program).map(drop))
        .expect("copies the program");
    root
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("creates a folder");
    for entry in fs::read_dir(from).expect("a folder of the recipe").map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_folder(&from, &to);
        } else if entry.file_name() != "local.settings.json" {
            fs::copy(from, to).expect("copies a file");
        }
    }
}

/// Reads a stream to its end in the background.
fn collect(stream: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        let _ = BufReader::new(stream).read_to_string(&mut text);
        text
    })
}

/// Sends `GET /` every 25 ms until there is any response. Fails if the handler ends.
fn wait_until_ready(handler: &mut Child, port: u16) -> Result<(), ()> {
    let begin = Instant::now();
    while handler.try_wait().expect("its state").is_none() {
        assert!(begin.elapsed() < Duration::from_secs(60), "the handler does not answer");
        if let Ok(mut socket) = TcpStream::connect(("127.0.0.1", port)) {
            let head = format!("GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
            let mut first = [0];
            if socket.write_all(head.as_bytes()).is_ok() && socket.read_exact(&mut first).is_ok() {
                return Ok(());
            }
        }
        std::thread::sleep(Duration::from_millis(25));
    }
    Err(())
}

fn read_json(path: &Path) -> Value {
    let text = fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn texts(value: &Value) -> Option<Vec<String>> {
    let items = value.as_array()?;
    Some(items.iter().map(|item| item.as_str().expect("a text").to_lowercase()).collect())
}

impl AppFiles {
    fn read(root: &Path, layout: Layout) -> AppFiles {
        let host = read_json(&root.join("host.json"));
        assert_eq!(host["version"], "2.0");
        let handler = &host["customHandler"];
        let description = &handler["description"];
        let name = description["defaultExecutablePath"].as_str().expect("an executable");
        let executable = root.join(name);
        assert!(executable.exists(), "{name} is not beside host.json");
        let arguments = description["arguments"].as_array().into_iter().flatten();
        let arguments = arguments.map(|text| text.as_str().expect("a text").to_owned()).collect();
        let is_profile = match host["configurationProfile"].as_str() {
            None => false,
            Some("mcp-custom-handler") => true,
            Some(other) => panic!("the configuration profile {other:?} is not supported"),
        };
        // Without it, requests would be wrapped in the JSON of a custom handler.
        let is_proxied =
            is_profile || handler["enableProxyingHttpRequest"] == true && layout != Layout::ClassicOldHost;
        assert!(is_proxied || handler["enableForwardingHttpRequest"] == true);
        let functions = functions(root);
        let routes = if is_profile {
            assert!(functions.is_empty(), "routes and function.json files cannot be mixed");
            let level = handler["http"]["defaultAuthorizationLevel"].as_str().unwrap_or("function");
            vec![HttpRoute { template: "{*route}".to_owned(), methods: None, level: level.to_owned() }]
        } else {
            let prefix = host["extensions"]["http"]["routePrefix"].as_str().unwrap_or("api");
            functions.iter().map(|(name, function)| HttpRoute::of_function(prefix, name, function)).collect()
        };
        AppFiles { executable, arguments, routes, is_proxied }
    }
}

/// Returns the functions of an app, by name.
fn functions(root: &Path) -> BTreeMap<String, Value> {
    let folders = fs::read_dir(root).expect("the app").map(Result::unwrap);
    let files = folders.map(|folder| (folder.file_name(), folder.path().join("function.json")));
    let files = files.filter(|(_, file)| file.exists());
    files.map(|(name, file)| (name.to_string_lossy().into_owned(), read_json(&file))).collect()
}

impl HttpRoute {
    fn of_function(prefix: &str, name: &str, function: &Value) -> HttpRoute {
        let bindings = function["bindings"].as_array().expect("bindings");
        // Only functions with one HTTP trigger and one HTTP output get the plain request.
        let [trigger, output] = &bindings[..] else { panic!("{name} has other bindings") };
        assert_eq!((&trigger["type"], &trigger["direction"]), (&json!("httpTrigger"), &json!("in")));
        assert_eq!((&output["type"], &output["direction"]), (&json!("http"), &json!("out")));
        let route = trigger["route"].as_str().unwrap_or(name);
        HttpRoute {
            template: format!("{prefix}/{route}").trim_matches('/').to_owned(),
            methods: texts(&trigger["methods"]),
            level: trigger["authLevel"].as_str().unwrap_or("function").to_owned(),
        }
    }

    fn matches(&self, request: &ClientRequest) -> bool {
        let path = request.path.split('?').next().unwrap_or_default().trim_matches('/');
        let known = self.methods.as_ref().is_none_or(|all| all.contains(&request.method.to_lowercase()));
        known
            && match self.template.split_once("{*") {
                Some((before, _)) => path.starts_with(before),
                None => path.eq_ignore_ascii_case(&self.template),
            }
    }
}

impl ClientRequest {
    fn read(client: &TcpStream) -> Option<ClientRequest> {
        let mut reader = BufReader::new(client);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut words = line.split_whitespace();
        let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.push((name.to_lowercase(), value.to_owned()));
        }
        let mut request = ClientRequest { method, path, headers, body: String::new() };
        let length = request.header("content-length").map_or(0, |length| length.parse().expect("a length"));
        reader.take(length).read_to_string(&mut request.body).ok()?;
        Some(request)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn set(&mut self, name: &str, value: &str) {
        self.remove(|known| known == name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    fn remove(&mut self, matches: impl Fn(&str) -> bool) {
        self.headers.retain(|(name, _)| !matches(name));
    }
}

impl RunningApp {
    fn serve(&self, mut client: TcpStream) {
        let Some(mut request) = ClientRequest::read(&client) else { return };
        if let Err(status) = self.pass_front_end(&mut request).and_then(|()| self.find_route(&request)) {
            let _ = write!(
                client,
                "HTTP/1.1 {status} Rejected\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            return;
        }
        let _ = if self.is_proxied { self.proxy(client, request) } else { self.rebuild(client, request) };
    }

    /// App Service: its headers, and authentication.
    fn pass_front_end(&self, request: &mut ClientRequest) -> Result<(), u16> {
        let path = request.path.clone();
        for (name, value) in [
            ("x-arr-log-id", INVOCATION),
            ("x-original-url", &path),
            ("x-waws-unencoded-url", &path),
            ("was-default-hostname", APP_NAME),
            ("disguised-host", APP_NAME),
            ("client-ip", "203.0.113.7:52044"),
            ("x-forwarded-for", "203.0.113.7:52044"),
            ("x-forwarded-proto", "https"),
        ] {
            request.set(name, value);
        }
        let PlatformAuth::On { allows_anonymous, tokens } = &self.auth else { return Ok(()) };
        request.remove(|name| name.starts_with("x-ms-client-principal") || name.starts_with("x-ms-token-"));
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let Some(bearer) = bearer else { return if *allows_anonymous { Ok(()) } else { Err(401) } };
        let user = tokens.iter().find(|(token, _)| *token == bearer).ok_or(401_u16)?;
        let principal = json!({"auth_typ": "aad", "name_typ": "name", "role_typ": "roles", "claims": user.1});
        let token = bearer.to_owned();
        request.set("x-ms-client-principal", &BASE64_STANDARD.encode(principal.to_string()));
        request.set("x-ms-client-principal-id", "object");
        request.set("x-ms-client-principal-name", "Alice");
        request.set("x-ms-client-principal-idp", "aad");
        request.set("x-ms-token-aad-access-token", &token);
        Ok(())
    }

    /// The host: its own paths, the routes, and their keys.
    fn find_route(&self, request: &ClientRequest) -> Result<(), u16> {
        if ["/admin/", "/runtime/"].iter().any(|own| request.path.starts_with(own)) {
            return Err(404);
        }
        let route = self.routes.iter().find(|route| route.matches(request)).ok_or(404_u16)?;
        // No test has a key of the host.
        if route.level == "anonymous" { Ok(()) } else { Err(401) }
    }

    /// Forwards like a reverse proxy: byte by byte in both directions.
    fn proxy(&self, mut client: TcpStream, mut request: ClientRequest) -> std::io::Result<()> {
        let host = request.header("host").unwrap_or_default().to_owned();
        let hop_by_hop =
            ["host", "connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];
        request.remove(|name| hop_by_hop.contains(&name) || name.starts_with("proxy-"));
        request.set("x-forwarded-host", &host);
        request.set("x-forwarded-for", "10.0.0.4");
        request.set("x-azure-functions-invocationid", INVOCATION);
        request.set("x-azure-functions-hostversion", VERSION);
        request.set("x-ms-invocation-id", INVOCATION);
        let mut handler = self.send_to_handler(&request, &format!("127.0.0.1:{}", self.port))?;
        std::io::copy(&mut handler, &mut client).map(drop)
    }

    /// Builds the request again, and sends the response when it is complete.
    fn rebuild(&self, mut client: TcpStream, mut request: ClientRequest) -> std::io::Result<()> {
        let host = request.header("host").unwrap_or_default().to_owned();
        let agent = request.header("user-agent").unwrap_or_default().to_owned();
        let has_body = !request.body.is_empty();
        request.remove(|name| name == "host" || name == "connection");
        request.remove(|name| {
            name.starts_with("content-") && !(has_body && ["content-length", "content-type"].contains(&name))
        });
        request.set("user-agent", format!("{agent} Azure-Functions-Host/{VERSION}").trim());
        request.set("x-azure-functions-invocationid", INVOCATION);
        request.set("x-azure-functions-hostversion", VERSION);
        let mut whole = Vec::new();
        self.send_to_handler(&request, &host)?.read_to_end(&mut whole)?;
        client.write_all(&whole)
    }

    fn send_to_handler(&self, request: &ClientRequest, host: &str) -> std::io::Result<TcpStream> {
        let ClientRequest { method, path, headers, body } = request;
        let mut handler = TcpStream::connect(("127.0.0.1", self.port))?;
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let head = format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{headers}\r\n");
        handler.write_all(format!("{head}{body}").as_bytes())?;
        Ok(handler)
    }
}
