//! A service that repeats our credential in every encoding. No result contains it in any readable form.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use bindpost_mcp_openapi::{Bridge, Credential, Secret, Upstream, UpstreamLimits};
use http::HeaderName;
use serde_json::{Value, json};

use crate::bridge_pets::{Reply, Shop, call, connect, document, operation};

const KEY: &str = "Kx+/q=7&p\"w\\z<t>%h yÖß";
/// All characters that are valid in a header.
const HEADER_KEY: &str = "Kx+/q=7&p\"w\\z<t>%h y-~";

/// Returns a text in all encodings that services and their libraries use.
pub(crate) fn spellings(key: &str) -> Vec<(&'static str, String)> {
    let json = |text: &str| {
        let written = Value::from(text).to_string();
        written[1..written.len() - 1].to_owned()
    };
    let units = |each: fn(u16) -> String| key.encode_utf16().map(each).collect::<String>();
    let percent = |keeps: fn(u8) -> bool, each: fn(u8) -> String| -> String {
        key.bytes().map(|byte| if keeps(byte) { char::from(byte).to_string() } else { each(byte) }).collect()
    };
    let upper = |byte: u8| format!("%{byte:02X}");
    let lower = |byte: u8| format!("%{byte:02x}");
    let entities = |each: fn(char) -> String| key.chars().map(each).collect::<String>();
    let named = key.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let shifted = |before: &str, after: &str| STANDARD.encode(format!("{before}{key}{after}"));
    vec![
        ("plain", key.to_owned()),
        ("with a word before", format!("Bearer {key}")),
        ("JSON", json(key)),
        ("JSON, slashes escaped", json(key).replace('/', "\\/")),
        ("JSON, every letter by number", units(|unit| format!("\\u{unit:04x}"))),
        ("JSON, every letter by number in capitals", units(|unit| format!("\\u{unit:04X}"))),
        ("JSON, some letters by number", json(key).replace('+', "\\u002B").replace('K', "\\u004b")),
        ("JSON in JSON", json(&json(key))),
        ("JSON in JSON in JSON, slashes escaped", json(&json(&json(key).replace('/', "\\/")))),
        ("letters by number in JSON in JSON", json(&units(|unit| format!("\\u{unit:04x}")))),
        ("JavaScript", key.replace('+', "\\x2b").replace('/', "\\x2F")),
        ("percent", percent(|byte| byte.is_ascii_alphanumeric(), upper)),
        ("percent in small letters", percent(|byte| byte.is_ascii_alphanumeric(), lower)),
        ("percent, every byte", percent(|_| false, upper)),
        ("percent, some bytes", percent(|byte| !b"+/% ".contains(&byte) && byte.is_ascii(), lower)),
        ("percent twice", percent(|byte| byte.is_ascii_alphanumeric(), lower).replace('%', "%25")),
        ("a form", percent(|byte| byte.is_ascii_alphanumeric() || byte == b' ', upper).replace(' ', "+")),
        ("HTML", named.clone()),
        ("HTML twice", named.replace('&', "&amp;")),
        ("HTML, letters by number", entities(|letter| format!("&#{};", letter as u32))),
        ("HTML, letters by number in hexadecimal", entities(|letter| format!("&#x{:X};", letter as u32))),
        (
            "HTML, letters by name",
            named.replace('+', "&plus;").replace('/', "&sol;").replace('=', "&equals;"),
        ),
        ("base64", STANDARD.encode(key)),
        ("base64 without padding", STANDARD_NO_PAD.encode(key)),
        ("base64 for addresses", URL_SAFE.encode(key)),
        ("base64 for addresses without padding", URL_SAFE_NO_PAD.encode(key)),
        ("base64 of a pair", shifted("me:", "")),
        ("base64, one byte before", shifted("a", "bc")),
        ("base64, two bytes before", shifted("ab", "c")),
        (
            "base64 in percent",
            STANDARD.encode(key).replace('+', "%2b").replace('/', "%2f").replace('=', "%3d"),
        ),
        ("with signs that have no shape", key.replace('+', "\u{200b}+\u{feff}")),
    ]
}

/// Returns whether the secret can be read in a text after decoding.
fn reveals(text: &str, key: &str) -> bool {
    let mut texts = vec![text.to_owned()];
    for _ in 0..3 {
        let mut read = Vec::new();
        for text in &texts {
            read.push(
                text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\""),
            );
            read.push(percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned());
            read.push(text.replace('+', " "));
            read.push(text.replace(['\u{200b}', '\u{feff}', '\0'], ""));
            read.extend(serde_json::from_str::<String>(&format!("\"{text}\"")));
            read.push(text.replace("\\/", "/").replace("\\\"", "\"").replace("\\\\", "\\"));
            for word in text.split(|letter: char| !letter.is_ascii_alphanumeric() && !"+/-_".contains(letter))
            {
                let word = word.replace('-', "+").replace('_', "/");
                for from in 0..4.min(word.len()) {
                    let whole = (word.len() - from) / 4 * 4;
                    if let Ok(bytes) = STANDARD_NO_PAD.decode(&word[from..from + whole]) {
                        read.push(String::from_utf8_lossy(&bytes).into_owned());
                    }
                }
            }
        }
        read.retain(|text| text.len() >= 6);
        read.sort();
        read.dedup();
        texts.extend(read.into_iter().take(40));
    }
    texts.iter().any(|text| text.contains(key) || key.get(2..12).is_some_and(|part| text.contains(part)))
}

fn limits() -> UpstreamLimits {
    UpstreamLimits { tries: 1, ..UpstreamLimits::default() }
}

/// Returns the result of `getStatus`, and of reading it as a resource, for this response.
async fn results(credential: Credential, reply: Reply) -> Vec<Value> {
    let shop = Shop::open(move |_| reply.clone()).await;
    let upstream = Upstream::new(&shop.base, credential, limits()).unwrap();
    let bridge = Bridge::builder(document(), upstream).build().unwrap();
    let mut client = connect(&bridge).await;
    let called = call(&mut client, "getStatus", json!({})).await;
    let read = client.request("resources/read", json!({"uri": "openapi:///status"})).await;
    let read = read.unwrap_or_else(|error| json!({"message": error.message, "data": error.data}));
    vec![called, read]
}

fn check(results: &[Value], key: &str, what: &str) {
    for result in results {
        let mut texts = Vec::new();
        collect(result, &mut texts);
        for text in texts {
            assert!(!reveals(&text, key), "{what}: {text}");
        }
    }
}

/// Collects every text of a result.
fn collect(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, texts)),
        Value::Object(members) => {
            for (name, value) in members {
                texts.push(name.clone());
                match (name.as_str(), value.as_str()) {
                    ("blob" | "data", Some(bytes)) => {
                        let bytes = STANDARD.decode(bytes).unwrap();
                        texts.push(String::from_utf8_lossy(&bytes).into_owned());
                    }
                    _ => collect(value, texts),
                }
            }
        }
        _ => {}
    }
}

fn of_type(status: u16, media: &str, body: impl Into<Vec<u8>>) -> Reply {
    (status, vec![("content-type", media.to_owned())], body.into())
}

fn query(key: &str) -> Credential {
    Credential::Query("key".to_owned(), Secret::new(key))
}

#[tokio::test]
async fn no_spelling_of_the_credential_is_returned_in_json() {
    for (what, spelled) in spellings(KEY) {
        // The credential is in the source of the JSON, if that is valid JSON, and in the decoded values.
        let raw = format!("{{\"told\": \"{spelled} and more\", \"other\": [1]}}");
        if serde_json::from_str::<Value>(&raw).is_ok() {
            check(&results(query(KEY), of_type(200, "application/json", raw.clone())).await, KEY, what);
            check(&results(query(KEY), of_type(404, "application/json", raw)).await, KEY, what);
        }
        for said in [
            json!({"told": format!("> {spelled} <"), "other": 12345}),
            json!({"deep": [{"er": [spelled]}]}),
            json!({format!("x{spelled}"): {spelled.as_str(): 1}}),
            json!([spelled]),
            json!(spelled),
            json!({"inner": json!({"told": spelled}).to_string()}),
        ] {
            let results = results(query(KEY), of_type(200, "application/json", said.to_string())).await;
            check(&results, KEY, what);
            assert!(results[0].to_string().contains("(secret)"), "{what}: {}", results[0]);
        }
        let error = json!({"error": {"code": spelled, "message": format!("refused: {spelled}"), "requestId": spelled}});
        check(&results(query(KEY), of_type(403, "application/json", error.to_string())).await, KEY, what);
    }
}

#[tokio::test]
async fn no_spelling_of_the_credential_is_returned_in_other_responses() {
    for (what, spelled) in spellings(KEY) {
        let text = format!("before {spelled} after");
        for (status, media) in [
            (200, "text/plain"),
            (200, "application/xml"),
            (200, "application/x-ndjson"),
            (200, "application/octet-stream"),
            (200, "image/png"),
            (200, "text/html"),
            (500, "text/plain"),
            (500, "text/html"),
            (502, "application/xml"),
        ] {
            let mut body = text.clone().into_bytes();
            if media == "image/png" {
                body.extend([0xff, 0xfe, 0]);
            }
            check(
                &results(query(KEY), of_type(status, media, body)).await,
                KEY,
                &format!("{what}, {status} {media}"),
            );
        }
    }
}

#[tokio::test]
async fn no_spelling_of_the_credential_is_returned_in_headers_and_links() {
    for (what, spelled) in spellings(HEADER_KEY) {
        if !spelled.is_ascii() {
            continue;
        }
        let header = || Credential::Header(HeaderName::from_static("x-key"), Secret::new(HEADER_KEY));
        let headers =
            vec![("x-request-id", spelled.clone()), ("content-type", "application/json".to_owned())];
        check(&results(header(), (500, headers, b"{}".to_vec())).await, HEADER_KEY, what);
        let written = spelled.replace(' ', "%20").replace(['<', '>', '"', '\\'], "");
        let body = json!({"value": [1], "nextLink": format!("/v1/status?a={written}")});
        check(&results(header(), of_type(200, "application/json", body.to_string())).await, HEADER_KEY, what);
        let headers = vec![("location", format!("/v1/elsewhere/{written}?{written}"))];
        check(&results(header(), (302, headers, Vec::new())).await, HEADER_KEY, what);
    }
}

#[tokio::test]
async fn utf_16_does_not_hide_the_credential() {
    let header = || Credential::Bearer(Secret::new(HEADER_KEY));
    for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
        let body: Vec<u8> = format!("told {HEADER_KEY} here").encode_utf16().flat_map(bytes).collect();
        for (status, media) in
            [(200, "text/plain; charset=utf-16"), (200, "application/pdf"), (500, "text/plain")]
        {
            check(&results(header(), of_type(status, media, body.clone())).await, HEADER_KEY, media);
        }
    }
}

#[tokio::test]
async fn removing_markup_does_not_reassemble_the_credential() {
    let key = "hush-more-than-this";
    for told in
        ["hush-[more](http://x)-than-this", "hush-![more](x)-than-this", "hush-\u{2060}more-than-this"]
    {
        for body in [json!({"message": told}).to_string(), format!("<html><title>{told}</title></html>")] {
            let results =
                results(Credential::Bearer(Secret::new(key)), of_type(500, "text/html", body)).await;
            check(&results, key, told);
        }
    }
}

#[tokio::test]
async fn a_numeric_credential_keeps_the_response_valid() {
    let body = r#"{"account": 4711081512, "name": "4711081512", "count": 12}"#;
    let results =
        results(Credential::Bearer(Secret::new("4711081512")), of_type(200, "application/json", body)).await;
    assert_eq!(
        results[0]["structuredContent"],
        json!({"account": "(secret)", "name": "(secret)", "count": 12}),
        "{}",
        results[0]
    );
}

#[tokio::test]
async fn user_and_password_are_masked() {
    let basic = || Credential::Basic("operator".to_owned(), Secret::new(HEADER_KEY));
    let pair = STANDARD.encode(format!("operator:{HEADER_KEY}"));
    for told in
        [pair.clone(), format!("Basic {pair}"), pair.trim_end_matches('=').to_owned(), HEADER_KEY.to_owned()]
    {
        let results =
            results(basic(), of_type(200, "application/json", json!({"told": told}).to_string())).await;
        check(&results, HEADER_KEY, &told);
        assert!(!results[0].to_string().contains(&pair[..20]), "{}", results[0]);
    }
    // With a short password, only the encoded pair is long enough to be masked.
    let pair = STANDARD.encode("operator:abc");
    let short = Credential::Basic("operator".to_owned(), Secret::new("abc"));
    let results =
        results(short, of_type(200, "application/json", json!({"told": pair, "abc": 1}).to_string())).await;
    assert_eq!(results[0]["structuredContent"], json!({"told": "(secret)", "abc": 1}));
}

#[tokio::test]
async fn responses_without_the_credential_are_unchanged() {
    let body = "{ \"a\" : 1.0e2, \"b\":\"\\u00e9\\/ %2f &amp;\", \"c\":\"aGVsbG8=\" }";
    let credential = || Credential::Bearer(Secret::new(HEADER_KEY));
    let results = results(credential(), of_type(200, "application/json", body)).await;
    assert_eq!(results[1]["contents"][0]["text"], body);
    let xml = "<a b='&#43;'>100 % \\n</a>";
    let shop = Shop::open(move |_| of_type(200, "application/xml", xml)).await;
    let mut described = document();
    described.operations = vec![operation("getStatus", http::Method::GET, "/status", json!({}))];
    described.operations[0].responses.clear();
    let upstream = Upstream::new(&shop.base, credential(), limits()).unwrap();
    let bridge = Bridge::builder(described, upstream).build().unwrap();
    let result = call(&mut connect(&bridge).await, "getStatus", json!({})).await;
    assert_eq!(result["content"][0]["text"], xml);
}
