use super::*;
use bindpost_net_upstream::Upstream;
use http::{HeaderMap, HeaderValue};
use serde_json::json;

/// Cuts a response to the budget. Cursors are the JSON of their content.
fn cut_to(
    value: Value,
    budget: usize,
    next: &PageCursor,
    link: Option<&str>,
) -> Result<Value, OversizedPage> {
    let seal = |next: &PageCursor| serde_json::to_string(next).ok();
    let link = link.map(str::to_owned);
    cut_page(
        value,
        &PageOptions {
            budget,
            items: None,
            next,
            link,
            repeatable: true,
            is_list: true,
            next_cursor: "nextCursor",
            seal: &seal,
        },
    )
}

fn cursor(value: &Value) -> PageCursor {
    serde_json::from_str(value["nextCursor"].as_str().unwrap()).unwrap()
}

#[test]
fn following_cursors_returns_all_items_once_and_in_order() {
    let all: Vec<Value> = (0..50).map(|n| json!({"id": n, "text": "x".repeat(20)})).collect();
    let (mut next, mut seen, mut pages) = (PageCursor::default(), Vec::new(), 0);
    loop {
        let page = cut_to(json!({"items": all, "total": 50}), 600, &next, None).unwrap();
        assert!(page.to_string().len() <= 600, "{page}");
        seen.extend(page["items"].as_array().unwrap().clone());
        pages += 1;
        if page["hasMore"] == false {
            break;
        }
        next = cursor(&page);
    }
    assert!(pages > 3);
    assert_eq!(seen, all);
}

#[test]
fn the_next_page_comes_after_the_last_item_of_this_one() {
    let value = json!({"items": [1, 2, 3]});
    let page = cut_to(value, 1000, &PageCursor::default(), Some("/list?page=2")).unwrap();
    assert_eq!(cursor(&page).link.as_deref(), Some("/list?page=2"));
    assert_eq!(page["hasMore"], true);
    // A page that is cut continues before the next page.
    let value = json!({"items": ["x".repeat(300), "y".repeat(300)]});
    let page = cut_to(value, 520, &PageCursor::default(), Some("/list?page=2")).unwrap();
    assert_eq!((cursor(&page).link, cursor(&page).offset), (None, 1));
}

#[test]
fn the_largest_list_below_is_cut_when_the_top_has_none() {
    let long: Vec<String> = (0..100).map(|n| format!("number {n}")).collect();
    let value = json!({"a": {"short": [1, 2], "b": {"long": long}}, "empty": []});
    let page = cut_to(value, 600, &PageCursor::default(), None).unwrap();
    assert_eq!(page["cutAt"], "/a/b/long");
    assert_eq!(page["a"]["short"], json!([1, 2]));
    assert!(page["a"]["b"]["long"].as_array().unwrap().len() < 100);
}

#[test]
fn a_response_that_cannot_be_cut_reports_its_size() {
    let text = json!({"text": "x".repeat(1000)});
    assert_eq!(
        cut_to(text, 500, &PageCursor::default(), None),
        Err(OversizedPage { bytes: 1011, beyond: None })
    );
    let items = json!({"items": ["x".repeat(1000), "y"]});
    let uncut = cut_to(items, 500, &PageCursor::default(), None).unwrap_err();
    let beyond: PageCursor = serde_json::from_str(&uncut.beyond.unwrap()).unwrap();
    assert_eq!(beyond.offset, 1);
}

#[test]
fn links_are_found_in_the_formats_that_services_use() {
    let none = HeaderMap::new();
    for (value, named, expected) in [
        (json!({"@odata.nextLink": "https://x/a"}), Some("@odata.nextLink"), Some("https://x/a")),
        (json!({"page": {"more": "?p=2"}}), Some("page.more"), Some("?p=2")),
        (json!({"next": "https://x/?page=2"}), None, Some("https://x/?page=2")),
        (json!({"next": "token"}), None, None),
        (json!({"next": null}), None, None),
        (json!({"_links": {"next": {"href": "/a?p=2"}}}), None, Some("/a?p=2")),
        (json!({"nextLink": ""}), Some("nextLink"), None),
    ] {
        assert_eq!(next_link(&value, named, &none).as_deref(), expected, "{value}");
    }
    let mut headers = HeaderMap::new();
    let link = r#"<https://x/a?p=1>; rel="prev", <https://x/a?p=3>; rel="next", <https://x/a?p=9>; rel=last"#;
    headers.insert("link", HeaderValue::from_static(link));
    assert_eq!(next_link(&json!({}), None, &headers).as_deref(), Some("https://x/a?p=3"));
}

#[test]
fn a_link_stays_below_the_base_address() {
    let fixed = ["key".to_owned()];
    let upstream = Upstream::builder("https://x.example/v1/").build().unwrap();
    for (link, expected) in [
        ("https://x.example/v1/pets?page=2", Some("/pets?page=2")),
        ("/v1/pets?page=2#top", Some("/pets?page=2")),
        ("?page=2", Some("/pets?page=2")),
        ("pets?page=2&key=secret", Some("/pets?page=2")),
        ("pets?key=secret", Some("/pets")),
        ("https://x.example/v10/pets", None),
        ("https://x.example/v2/pets", None),
        ("/v1/../admin", None),
        ("http://x.example/v1/pets", None),
        ("https://evil.example/v1/pets", None),
        ("//evil.example/v1/pets", None),
        ("https://u:p@x.example/v1/pets", None),
        ("javascript:alert(1)", None),
    ] {
        let found = upstream.link_path("/pets?page=1", link).ok();
        let found = found.map(|link| without_fixed(&link, &fixed));
        assert_eq!(found.as_deref(), expected, "{link}");
    }
    assert_eq!(with_fixed("/pets?page=2", "/pets?key=secret&page=1", &fixed), "/pets?page=2&key=secret");
}

#[test]
fn a_link_is_removed_at_any_depth() {
    let mut value = json!({"items": ["/a?page=2"], "_links": {"next": {"href": "/a?page=2"}, "self": "/a"}});
    remove_link(&mut value, "/a?page=2");
    assert_eq!(value, json!({"items": ["/a?page=2"], "_links": {"next": {}, "self": "/a"}}));
}
