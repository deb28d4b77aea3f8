//! The context that a function receives about its caller.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::client::{Client, PATH, Way};
use crate::served::Language;

for_all_apps! {
    gets_the_caller_on_every_transport,
    gets_headers,
    gets_the_headers_of_the_stream_and_of_the_message_over_http_sse,
    gets_header_names_as_they_were_sent,
}

async fn context_of(client: &mut Client) -> Value {
    let arguments = json!({"n": 1.50, "nested": {"a": [null, true]}});
    let text = client.text("ContextTool", arguments).await;
    serde_json::from_str(&text).unwrap()
}

async fn gets_the_caller_on_every_transport(app: Language) {
    let host = app.shared();
    for mut client in host.clients().await {
        let way = client.way;
        let context = context_of(&mut client).await;
        assert_eq!(context["name"], "ContextTool");
        assert_eq!(context["arguments"], json!({"n": 1.5, "nested": {"a": [null, true]}}), "{way:?}");
        // Real clients expect it on HTTP+SSE. It is set after a handshake or with an envelope.
        let known = json!({"name": "scenarios", "title": "The scenarios", "version": "1.2.3"});
        assert_eq!(context.get("clientinfo"), (way != Way::Cold).then_some(&known), "{way:?}");
        let transport = &context["transport"];
        assert_eq!(
            transport["name"],
            if way == Way::Sse { "http-sse" } else { "http-streamable" },
            "{way:?}"
        );
        if let Way::Session(_) = way {
            let session = json!(client.session);
            assert_eq!((&context["sessionid"], &transport["sessionId"]), (&session, &session), "{way:?}");
        }
        if matches!(way, Way::Alone | Way::Cold | Way::Sse) {
            assert_eq!((context.get("sessionid"), transport.get("sessionId")), (None, None), "{way:?}");
        }
        assert_eq!(context.get("inputResponses"), None);
        assert_eq!(context.get("state"), None);
    }
}

async fn gets_headers(app: Language) {
    let host = app.shared();
    for way in Way::ALL {
        let headers = [("authorization", "Bearer abc"), ("x-one", "1"), ("x-one", "2")];
        let mut client = Client::connect_with(host.address, way, &headers).await;
        let context = context_of(&mut client).await;
        let heard = &context["transport"]["properties"]["headers"];
        assert_eq!(heard["Authorization"], "Bearer abc", "{way:?}: {heard}");
        assert_eq!(heard["x-one"], "1,2", "{way:?}: {heard}");
        assert_eq!(heard["Host"], host.address.to_string());
        if let Way::Session(_) = way {
            assert_eq!(heard["mcp-session-id"], json!(client.session));
        }
    }
}

/// A client may send its credentials with the stream only.
async fn gets_the_headers_of_the_stream_and_of_the_message_over_http_sse(app: Language) {
    let host = app.shared();
    let of_stream = [("authorization", "Bearer abc"), ("x-both", "stream")];
    let mut client = Client::connect_with(host.address, Way::Sse, &of_stream).await;
    client.headers = vec![("x-both", "message".to_owned()), ("x-own", "1".to_owned())];
    let context = context_of(&mut client).await;
    let heard = &context["transport"]["properties"]["headers"];
    assert_eq!((&heard["Authorization"], &heard["X-Both"]), (&json!("Bearer abc"), &Value::Null));
    assert_eq!((&heard["x-both"], &heard["x-own"]), (&json!("message"), &json!("1")), "{heard}");
    assert_eq!(heard["Content-Type"], "application/json");
}

/// Standard names have their usual spelling, because many clients send them in lower case.
async fn gets_header_names_as_they_were_sent(app: Language) {
    let host = app.shared();
    let params = json!({"name": "ContextTool", "arguments": {"n": 1}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
    let mut stream = TcpStream::connect(host.address).await.unwrap();
    let head = format!(
        "POST {PATH} HTTP/1.1\r\nHOST: {}\r\nconnection: close\r\ncontent-TYPE: application/json\r\nx-oNe: 1\r\nX-Two: 2\r\n\
         AUTHORIZATION: Bearer abc\r\nX-ONE: 3\r\nContent-Length: {}\r\n\r\n{body}",
        host.address,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).await.unwrap();
    let (_, message) = reply.split_once("\r\n\r\n").unwrap();
    let message: Value = serde_json::from_str(message).unwrap();
    let text = message["result"]["content"][0]["text"].as_str().unwrap();
    let context: Value = serde_json::from_str(text).unwrap();
    let expected = json!({"Host": host.address, "Connection": "close", "Content-Type": "application/json", "x-oNe": "1,3",
                          "X-Two": "2", "Authorization": "Bearer abc", "Content-Length": body.len().to_string()});
    assert_eq!(context["transport"]["properties"]["headers"], expected);
}
