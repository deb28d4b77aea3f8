//! The context that a function receives about its caller.

use serde_json::{Value, json};

use crate::client::{Client, Way};
use crate::served::Language;

for_both_apps! {
    gets_the_caller_on_every_transport,
    gets_headers,
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
        assert_eq!(heard["X-One"], "1,2", "{way:?}: {heard}");
        assert_eq!(heard["Host"], host.address.to_string());
        if let Way::Session(_) = way {
            assert_eq!(heard["Mcp-Session-Id"], json!(client.session));
        }
    }
}
