//! One HTTP request to an [`Endpoint`], over a connection in memory.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bindpost_mcp_http::{Endpoint, SessionMode, Settings};
use bindpost_mcp_protocol::jsonrpc::HEADER_MISMATCH;
use bindpost_mcp_protocol::{DecodedBody, Message, Request, decode, meta};
use bindpost_mcp_server::{Args, PromptEntry, Server, ToolEntry};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::{Input, agrees_exactly};

/// Headers that frame the message. The target sets them itself.
const FRAMING: [HeaderName; 6] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::EXPECT,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

const HOST: &str = "api.example.com";
const ORIGIN: &str = "https://app.example.com";

/// The arguments of the tool `route`: the JSON pointer, and the header that repeats the value.
const REPEATED: [(&str, &str); 4] = [
    ("/region", "mcp-param-region"),
    ("/count", "mcp-param-count"),
    ("/dry", "mcp-param-dry"),
    ("/deep/zone", "mcp-param-zone"),
];

static SERVER: LazyLock<Server> = LazyLock::new(|| {
    let route = ToolEntry::new("route", async |_: Args<Value>| "routed").input_schema(json!({
        "type": "object",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "count": {"type": "integer", "x-mcp-header": "Count"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"},
            "deep": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
        },
    }));
    let server =
        Server::builder("fuzzed", "0.0.0").tool(route).prompt(PromptEntry::new("greet", async || "hello"));
    server.build().expect("a server")
});

struct Reply {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
}

pub fn check(input: &Input<'_>) {
    let (method, path) = first_line(input.first_line);
    let mut request = format!("{method} {path} HTTP/1.1\r\n").into_bytes();
    let mut headers = input.headers.clone();
    FRAMING.iter().for_each(|name| drop(headers.remove(name)));
    for (name, value) in &headers {
        request.extend_from_slice(&[name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    request.extend_from_slice(
        format!("connection: close\r\ncontent-length: {}\r\n\r\n", input.body.len()).as_bytes(),
    );
    request.extend_from_slice(input.body);

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let reply = runtime.block_on(exchange(&request));
    check_reply(&method, &headers, input.body, &reply);
}

/// Parses `METHOD /path`. Any other text means a POST to the endpoint.
fn first_line(line: &[u8]) -> (Method, String) {
    let text = std::str::from_utf8(line).unwrap_or_default();
    let (method, path) = text.split_once(' ').unwrap_or_default();
    let method = match Method::from_bytes(method.as_bytes()) {
        // CONNECT opens a tunnel, and a response to HEAD has no body.
        Ok(method) if method != Method::CONNECT && method != Method::HEAD => method,
        _ => Method::POST,
    };
    let fits = path.starts_with('/')
        && path.bytes().all(|byte| byte.is_ascii_graphic())
        && path.parse::<Uri>().is_ok();
    (method, if fits { path } else { "/mcp" }.to_owned())
}

async fn exchange(request: &[u8]) -> Reply {
    let endpoint = Endpoint::new(
        SERVER.clone(),
        Settings {
            allowed_hosts: vec![HOST.to_owned()],
            allowed_origins: vec![ORIGIN.to_owned()],
            open_to_all: true,
            sessions: SessionMode::Optional,
            stream_after: Duration::ZERO,
            ..Settings::default()
        },
    );
    let (mut client, server) = tokio::io::duplex(request.len() + 64 * 1024);
    client.write_all(request).await.expect("there is room for all of it");
    let service = service_fn(|request| endpoint.clone().handle(request));
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(server), service);
    // Runs until the connection is closed. A stream stays open, so its head is sufficient.
    let both = async {
        tokio::select! {
            biased;
            reply = read_reply(&mut client) => reply,
            _ = async { let _ = connection.await; std::future::pending::<()>().await } => unreachable!(),
        }
    };
    tokio::time::timeout(Duration::from_secs(5), both).await.expect("an answer within five seconds")
}

async fn read_reply(client: &mut DuplexStream) -> Reply {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        assert!(client.read_buf(&mut bytes).await.expect("memory") > 0, "the response ends in its head");
    };
    let head = std::str::from_utf8(&bytes[..head_end]).expect("a head in ASCII").to_owned();
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.split(' ').nth(1)).and_then(|status| status.parse().ok());
    let headers: HeaderMap = lines
        .map(|line| line.split_once(": ").expect("a header"))
        .map(|(name, value)| {
            (name.parse().expect("a header name"), HeaderValue::from_str(value).expect("a value"))
        })
        .collect();
    let mut body = bytes.split_off(head_end + 4);
    if headers.get(header::CONTENT_TYPE).is_none_or(|kind| kind != "text/event-stream") {
        while client.read_buf(&mut body).await.expect("memory") > 0 {}
    }
    Reply { status: status.expect("a status"), headers, body }
}

fn check_reply(method: &Method, headers: &HeaderMap, body: &[u8], reply: &Reply) {
    assert!(!reply.status.is_server_error(), "{}", reply.status);
    let allowed = reply.headers.get(header::ACCESS_CONTROL_ALLOW_ORIGIN);
    assert!(allowed.is_none_or(|origin| origin.as_bytes().eq_ignore_ascii_case(ORIGIN.as_bytes())));
    if reply.status.is_success() {
        assert!(headers.contains_key(header::HOST));
        for host in headers.get_all(header::HOST) {
            assert!(is_known_host(host.as_bytes()), "served for host {host:?}");
        }
        for origin in headers.get_all(header::ORIGIN) {
            assert!(is_known_origin(origin.as_bytes()), "served for origin {origin:?}");
        }
    }
    if reply.headers.get(header::CONTENT_TYPE).is_none_or(|kind| kind != "application/json") {
        return;
    }
    // Not decoded, because an id may be larger than any number that `Value` supports.
    let answer: &RawValue = serde_json::from_slice(&reply.body).expect("the answer is JSON");
    if *method != Method::POST {
        return;
    }
    if let Ok(DecodedBody::One(Message::Request(request))) = decode(body.to_vec().into()) {
        let members: HashMap<String, &RawValue> = serde_json::from_str(answer.get()).expect("one answer");
        let code = match decode(reply.body.clone().into()) {
            Ok(DecodedBody::One(Message::Response(response))) => {
                assert_eq!(response.id, request.id);
                response.outcome.err().map(|error| error.code)
            }
            // The HTTP request was rejected, not the message.
            _ => {
                assert!(!members.contains_key("id") && members.contains_key("error"), "{answer}");
                None
            }
        };
        if request.params().meta(meta::PROTOCOL_VERSION).is_some() {
            let agree = agree(headers, &request);
            assert!(code != Some(HEADER_MISMATCH) || agree.is_err(), "rejected: {answer}");
            assert!(!members.contains_key("result") || agree.is_ok(), "served: {agree:?}");
        }
    }
}

fn is_known_host(host: &[u8]) -> bool {
    let Ok(host) = std::str::from_utf8(host) else { return false };
    let names = ["localhost", "127.0.0.1", "[::1]", HOST];
    let host = host.to_ascii_lowercase();
    names.iter().any(|name| {
        host.strip_prefix(name).is_some_and(|rest| {
            rest.is_empty()
                || rest.strip_prefix(':').is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()))
        })
    })
}

fn is_known_origin(origin: &[u8]) -> bool {
    let host = origin.strip_prefix(b"http://").or_else(|| origin.strip_prefix(b"https://"));
    origin.eq_ignore_ascii_case(ORIGIN.as_bytes())
        || host.is_some_and(|host| {
            is_known_host(host) && !host.to_ascii_lowercase().starts_with(HOST.as_bytes())
        })
}

/// Returns whether the headers of a stateless request match its body, and each occurs once.
fn agree(headers: &HeaderMap, request: &Request) -> Result<(), String> {
    let params = request.params();
    let version = params.meta(meta::PROTOCOL_VERSION).and_then(|version| version.as_text());
    match (once(headers, "mcp-protocol-version")?, version) {
        (None, _) => return Err("no version".to_owned()),
        (Some(header), Some(version)) if *header == *version => {}
        (Some(_), None) => return Ok(()),
        (header, version) => return Err(format!("version {header:?}, {version:?}")),
    }
    if once(headers, "mcp-method")? != Some(request.method()) {
        return Err("method".to_owned());
    }
    let named = match request.method() {
        "tools/call" | "prompts/get" => params.text("name"),
        "resources/read" => params.text("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params.text("taskId"),
        // There is nothing to compare it with, but it must not occur twice.
        _ => return once(headers, "mcp-name").map(|_| ()),
    };
    let name = once(headers, "mcp-name")?.ok_or("no name")?;
    let form = name.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    let name = match form {
        None => name.to_owned(),
        Some(form) => String::from_utf8(STANDARD.decode(form).map_err(|error| error.to_string())?)
            .map_err(|error| error.to_string())?,
    };
    if named.as_ref().is_some_and(|named| *named != name) {
        return Err(format!("name {name:?}, {named:?}"));
    }
    if request.method() == "tools/call" && named.as_deref() == Some("route") {
        let arguments: Value = params.get("arguments").and_then(|raw| raw.decode().ok()).unwrap_or_default();
        for (pointer, header) in REPEATED {
            let given = arguments.pointer(pointer).unwrap_or(&Value::Null);
            let fits = match once(headers, header)? {
                None => given.is_null(),
                Some(value) => agrees_exactly(given, value),
            };
            if !fits {
                return Err(format!("{header}, {given}"));
            }
        }
    }
    Ok(())
}

/// Returns the value of a header that may occur only once.
fn once<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, String> {
    let mut values = headers.get_all(name).iter();
    let value = values.next();
    if values.next().is_some() {
        return Err(format!("{name} is there twice"));
    }
    value.map(|value| value.to_str()).transpose().map_err(|_| format!("{name} is not ASCII"))
}
