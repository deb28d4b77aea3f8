//! Routes: the resource that a path names, and its methods.
//!
//! Names have two forms, `/indexes('hotels')` and `/indexes/hotels`. Actions may have the prefix
//! `search.`. A quoted name is never parsed as an action.

use bindpost_azure_search_model::ApiError;
use http::Method;

use crate::resources::ResourceKind;

/// The resource that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// All definitions of a kind.
    All(RouteCollection),
    /// One definition.
    One(RouteCollection, String),
    /// An operation on an index. The name may be an alias.
    Index(String, IndexOperation),
    Indexer(String, IndexerOperation),
    ResetSkills(String),
    Retrieve(String),
    SourceStatus(String),
    ServiceStatistics,
    IndexStatistics,
}

/// A kind of resource, and the collection name in the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RouteCollection {
    pub kind: ResourceKind,
    pub collection: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum IndexOperation {
    Search,
    Suggest,
    Autocomplete,
    Lookup(String),
    Count,
    Documents,
    Analyze,
    Statistics,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IndexerOperation {
    Run,
    Reset,
    ResetDocuments,
    Resync,
    Status,
}

type Methods = &'static [Method];
const GET: Methods = &[Method::GET];
const POST: Methods = &[Method::POST];
const BOTH: Methods = &[Method::GET, Method::POST];

/// Returns the route of a percent-encoded path, and its methods.
pub(crate) fn find(path: &str) -> Result<(Route, Methods), ApiError> {
    let unknown = || {
        let shown: String = path.chars().take(200).collect();
        ApiError::not_found(format!(
            "The path '{shown}' does not exist. Use a path such as /indexes('name')/docs."
        ))
    };
    let segments = segments(path)?;
    let mut rest = segments.iter().map(String::as_str);
    let first = rest.next().ok_or_else(unknown)?;
    let (word, quoted) = split(first);
    match (word.to_ascii_lowercase().as_str(), quoted.is_none(), rest.len()) {
        ("servicestats", true, 0) => return Ok((Route::ServiceStatistics, GET)),
        ("indexstats", true, 0) => return Ok((Route::IndexStatistics, GET)),
        _ => {}
    }
    let set = parse_collection(word).ok_or_else(unknown)?;
    let Some(name) = quoted.or_else(|| rest.next().map(str::to_owned)) else {
        return Ok((Route::All(set), BOTH));
    };
    let rest: Vec<&str> = rest.collect();
    if rest.is_empty() {
        return Ok((Route::One(set, name), &[Method::GET, Method::PUT, Method::DELETE]));
    }
    action(set.kind, name, &rest).ok_or_else(unknown)
}

fn parse_collection(word: &str) -> Option<RouteCollection> {
    let word = word.to_ascii_lowercase();
    if word == "agents" {
        return Some(RouteCollection { kind: ResourceKind::KnowledgeBase, collection: "agents" });
    }
    let kind = ResourceKind::ALL.into_iter().find(|kind| kind.collection() == word)?;
    Some(RouteCollection { kind, collection: kind.collection() })
}

/// Returns the route for the path after the name of a definition.
fn action(kind: ResourceKind, name: String, rest: &[&str]) -> Option<(Route, Methods)> {
    let (first, more) = rest.split_first()?;
    if kind == ResourceKind::Index {
        let (on, methods) = index_operation(first, more)?;
        return Some((Route::Index(name, on), methods));
    }
    if !more.is_empty() {
        return None;
    }
    let plain = first.strip_prefix("search.").unwrap_or(first);
    let on_indexer = |action, methods| Some((Route::Indexer(name.clone(), action), methods));
    match (kind, plain) {
        (ResourceKind::Indexer, "run") => on_indexer(IndexerOperation::Run, POST),
        (ResourceKind::Indexer, "reset") => on_indexer(IndexerOperation::Reset, POST),
        (ResourceKind::Indexer, "resetdocs") => on_indexer(IndexerOperation::ResetDocuments, POST),
        (ResourceKind::Indexer, "resync") => on_indexer(IndexerOperation::Resync, POST),
        (ResourceKind::Indexer, "status") => on_indexer(IndexerOperation::Status, GET),
        (ResourceKind::Skillset, "resetskills") => Some((Route::ResetSkills(name), POST)),
        (ResourceKind::KnowledgeBase, "retrieve") => Some((Route::Retrieve(name), POST)),
        (ResourceKind::KnowledgeSource, "status") => Some((Route::SourceStatus(name), GET)),
        _ => None,
    }
}

fn index_operation(first: &str, more: &[&str]) -> Option<(IndexOperation, Methods)> {
    let (word, key) = split(first);
    match (word, key, more) {
        ("docs", Some(key), []) => Some((IndexOperation::Lookup(key), GET)),
        ("docs", None, []) => Some((IndexOperation::Search, GET)),
        ("docs", None, [one]) => Some(document_operation(one)),
        ("search.stats" | "stats", None, []) => Some((IndexOperation::Statistics, GET)),
        ("search.analyze" | "analyze", None, []) => Some((IndexOperation::Analyze, POST)),
        _ => None,
    }
}

/// Returns the operation on documents. Any word that is not an action is a document key.
fn document_operation(word: &str) -> (IndexOperation, Methods) {
    match word {
        "$count" => (IndexOperation::Count, GET),
        "search" => (IndexOperation::Search, BOTH),
        "search.post.search" => (IndexOperation::Search, POST),
        "suggest" => (IndexOperation::Suggest, BOTH),
        "search.suggest" => (IndexOperation::Suggest, GET),
        "search.post.suggest" => (IndexOperation::Suggest, POST),
        "autocomplete" => (IndexOperation::Autocomplete, BOTH),
        "search.autocomplete" => (IndexOperation::Autocomplete, GET),
        "search.post.autocomplete" => (IndexOperation::Autocomplete, POST),
        "index" | "search.index" => (IndexOperation::Documents, POST),
        key => (IndexOperation::Lookup(key.to_owned()), GET),
    }
}

/// Splits `word('name')` into its parts. Two quotes within the name are one quote.
fn split(segment: &str) -> (&str, Option<String>) {
    let parts = segment.split_once("('").and_then(|(word, rest)| Some((word, rest.strip_suffix("')")?)));
    match parts {
        Some((word, name)) => (word, Some(name.replace("''", "'"))),
        None => (segment, None),
    }
}

/// Returns the decoded segments of a path. A slash within a quoted name does not separate.
fn segments(path: &str) -> Result<Vec<String>, ApiError> {
    let mut segments = Vec::new();
    let mut rest = path.strip_prefix('/').unwrap_or(path);
    while !rest.is_empty() {
        let end = end_of_segment(rest);
        let (segment, after) = rest.split_at(end);
        segments.push(decode(segment)?);
        rest = after.strip_prefix('/').unwrap_or(after);
    }
    Ok(segments)
}

fn end_of_segment(path: &str) -> usize {
    let plain = path.find('/').unwrap_or(path.len());
    let Some(open) = path.find("('").filter(|open| *open < plain) else { return plain };
    // The quoted name ends at a closing that also ends the segment.
    let closing = path.get(open..).unwrap_or_default().match_indices("')").map(|(at, _)| open + at + 2);
    closing
        .into_iter()
        .find(|end| *end == path.len() || path.as_bytes().get(*end) == Some(&b'/'))
        .unwrap_or(plain)
}

/// Percent-decodes a part of a path.
pub(super) fn decode(text: &str) -> Result<String, ApiError> {
    if !text.contains('%') {
        return Ok(text.to_owned());
    }
    let wrong = |what: &str| {
        let shown: String = text.chars().take(200).collect();
        ApiError::invalid(format!("The path has {what} in '{shown}'. Percent-encode its UTF-8 bytes."))
    };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = after.split_at_checked(2).and_then(|(digits, after)| {
            let high = char::from(*digits.first()?).to_digit(16)?;
            let low = char::from(*digits.get(1)?).to_digit(16)?;
            Some((u8::try_from(high * 16 + low).ok()?, after))
        });
        let (value, after) = digits.ok_or_else(|| wrong("a '%' without two hexadecimal digits"))?;
        bytes.push(value);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| wrong("bytes that are not UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(path: &str) -> Route {
        find(path).unwrap_or_else(|error| panic!("{path}: {error}")).0
    }

    fn on(path: &str) -> IndexOperation {
        match route(path) {
            Route::Index(name, on) if name == "x" => on,
            other => panic!("{path}: {other:?}"),
        }
    }

    #[test]
    fn every_kind_has_two_forms() {
        for kind in ResourceKind::ALL {
            let collection = kind.collection();
            let set = RouteCollection { kind, collection };
            assert_eq!(route(&format!("/{collection}")), Route::All(set));
            assert_eq!(route(&format!("/{collection}/")), Route::All(set));
            assert_eq!(route(&format!("/{collection}('a-b')")), Route::One(set, "a-b".to_owned()));
            assert_eq!(route(&format!("/{collection}/a-b")), Route::One(set, "a-b".to_owned()));
            let upper = collection.to_ascii_uppercase();
            assert_eq!(route(&format!("/{upper}/a-b")), Route::One(set, "a-b".to_owned()));
        }
        let agents = RouteCollection { kind: ResourceKind::KnowledgeBase, collection: "agents" };
        assert_eq!(route("/agents('x')"), Route::One(agents, "x".to_owned()));
    }

    #[test]
    fn actions_of_an_index_with_and_without_prefix() {
        for index in ["/indexes('x')", "/indexes/x"] {
            for (path, expected) in [
                ("docs", IndexOperation::Search),
                ("docs/search", IndexOperation::Search),
                ("docs/search.post.search", IndexOperation::Search),
                ("docs/suggest", IndexOperation::Suggest),
                ("docs/search.suggest", IndexOperation::Suggest),
                ("docs/search.post.suggest", IndexOperation::Suggest),
                ("docs/autocomplete", IndexOperation::Autocomplete),
                ("docs/search.autocomplete", IndexOperation::Autocomplete),
                ("docs/search.post.autocomplete", IndexOperation::Autocomplete),
                ("docs/index", IndexOperation::Documents),
                ("docs/search.index", IndexOperation::Documents),
                ("docs/$count", IndexOperation::Count),
                ("docs/%24count", IndexOperation::Count),
                ("docs('1')", IndexOperation::Lookup("1".to_owned())),
                ("docs/1", IndexOperation::Lookup("1".to_owned())),
                ("docs('search')", IndexOperation::Lookup("search".to_owned())),
                ("stats", IndexOperation::Statistics),
                ("search.stats", IndexOperation::Statistics),
                ("analyze", IndexOperation::Analyze),
                ("search.analyze", IndexOperation::Analyze),
            ] {
                assert_eq!(on(&format!("{index}/{path}")), expected, "{index}/{path}");
            }
        }
    }

    #[test]
    fn actions_of_the_others() {
        for (word, action) in [
            ("run", IndexerOperation::Run),
            ("reset", IndexerOperation::Reset),
            ("resetdocs", IndexerOperation::ResetDocuments),
            ("resync", IndexerOperation::Resync),
            ("status", IndexerOperation::Status),
        ] {
            for path in [format!("/indexers('x')/search.{word}"), format!("/indexers/x/{word}")] {
                assert_eq!(route(&path), Route::Indexer("x".to_owned(), action), "{path}");
            }
        }
        let x = || "x".to_owned();
        assert_eq!(route("/skillsets('x')/search.resetskills"), Route::ResetSkills(x()));
        assert_eq!(route("/agents('x')/retrieve"), Route::Retrieve(x()));
        assert_eq!(route("/knowledgebases/x/retrieve"), Route::Retrieve(x()));
        assert_eq!(route("/knowledgesources('x')/status"), Route::SourceStatus(x()));
        assert_eq!(route("/servicestats"), Route::ServiceStatistics);
        assert_eq!(route("/indexstats"), Route::IndexStatistics);
    }

    #[test]
    fn keys_may_have_slashes_quotes_and_anything_else() {
        for (path, key) in [
            ("docs('a%2Fb%27c')", "a/b'c"),
            ("docs('a/b''c')", "a/b'c"),
            ("docs/a%2Fb%27c", "a/b'c"),
            ("docs('%C3%A4%20b')", "ä b"),
            ("docs('')", ""),
            ("docs('a')')", "a')"),
            ("docs%28%27a%27%29", "a"),
            ("docs('a+b')", "a+b"),
        ] {
            assert_eq!(
                on(&format!("/indexes('x')/{path}")),
                IndexOperation::Lookup(key.to_owned()),
                "{path}"
            );
        }
    }

    #[test]
    fn other_paths_are_rejected() {
        for path in [
            "",
            "/",
            "/nope",
            "/indexes('x')/nope",
            "/indexes('x')/docs/a/b",
            "/indexes('x')/stats/more",
            "/indexers/x/docs",
            "/servicestats/x",
            "/servicestats('x')",
            "//indexes",
            "/synonymmaps/x/run",
        ] {
            assert_eq!(find(path).unwrap_err().status, 404, "{path}");
        }
    }

    #[test]
    fn invalid_encodings_are_rejected() {
        for path in ["/indexes/%", "/indexes/%4", "/indexes/%zz", "/indexes/%ff", "/indexes/%+1"] {
            assert_eq!(find(path).unwrap_err().status, 400, "{path}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_path_is_parsed(path in "(/|indexes|docs|\\('|'\\)|%[0-9a-f]{0,2}|\\PC){0,12}") {
            let _ = find(&path);
        }

        #[test]
        fn any_key_can_be_requested(key in "\\PC{0,20}") {
            let doubled = key.replace('\'', "''");
            let encoded: String = doubled.bytes().map(|byte| format!("%{byte:02X}")).collect();
            assert_eq!(on(&format!("/indexes('x')/docs('{encoded}')")), IndexOperation::Lookup(key));
        }
    }
}
