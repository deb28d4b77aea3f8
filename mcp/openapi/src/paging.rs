//! Responses that are longer than one page: locates the items, cuts them to the budget and creates cursors.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::budget::count_fitting;
use crate::document::Document;
use crate::operation::{Operation, Parameter};

/// The content of a cursor: the same operation again or its next page, from an item on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PageCursor {
    /// The caller's arguments, without those that the operator fixed.
    #[serde(rename = "a", default)]
    pub(crate) arguments: Map<String, Value>,
    /// Path and query of a later page, below the base address.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
    /// The number of items of the page that were already returned.
    #[serde(rename = "o", default)]
    pub(crate) offset: usize,
    /// The location of the items, if they were cut.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<Vec<String>>,
}

/// Members that usually hold the items of a list.
const USUAL: [&str; 9] =
    ["items", "value", "data", "results", "entries", "records", "values", "elements", "content"];
/// Parameters that usually select a page, in lower case without separators.
const PLACES: [&str; 14] = [
    "after",
    "continuationtoken",
    "cursor",
    "marker",
    "nexttoken",
    "offset",
    "page",
    "pagenumber",
    "pagetoken",
    "skip",
    "skiptoken",
    "start",
    "startat",
    "startingafter",
];
/// Members that usually link to the next page.
const LINKS: [&[&str]; 6] = [
    &["@odata.nextLink"],
    &["nextLink"],
    &["next"],
    &["links", "next"],
    &["_links", "next", "href"],
    &["paging", "next"],
];

/// Returns whether the success response of an operation is a list.
pub(crate) fn is_list(document: &Document, operation: &Operation) -> bool {
    if operation.items.is_some() || operation.next_link.is_some() {
        return true;
    }
    let Some(schema) = operation.success().and_then(|success| success.schema.as_ref()) else { return false };
    if is_of_type(document, schema, "array") {
        return true;
    }
    let Some(properties) = resolve(document, schema).get("properties").and_then(Value::as_object) else {
        return false;
    };
    let mut arrays = properties.iter().filter(|(_, schema)| is_of_type(document, schema, "array"));
    match (arrays.next(), arrays.next()) {
        // A single object that is identified by its path may contain a list without being one.
        (Some((name, _)), None) => USUAL.contains(&name.as_str()) || !ends_with_variable(&operation.path),
        (Some(_), Some(_)) => USUAL.iter().any(|name| properties.contains_key(*name)),
        (None, _) => false,
    }
}

/// Returns whether a path ends with a variable.
fn ends_with_variable(path: &str) -> bool {
    path.trim_end_matches('/').rsplit('/').next().is_some_and(|last| last.contains('{'))
}

/// Returns whether the success response of an operation is JSON that may contain a list.
pub(crate) fn may_be_cut(document: &Document, operation: &Operation) -> bool {
    let Some(success) = operation.success().filter(|success| success.is_json()) else { return false };
    let is = |kind: &str| success.schema.as_ref().is_some_and(|schema| is_of_type(document, schema, kind));
    !["string", "number", "integer", "boolean"].into_iter().any(is)
}

/// Returns whether a parameter selects the position in a list.
pub(crate) fn is_page_parameter(parameter: &Parameter) -> bool {
    let letters = parameter.name.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    PLACES.contains(&name.as_str())
}

/// Returns whether a schema describes values of this type, directly or through references.
pub(crate) fn is_of_type(document: &Document, schema: &Value, wanted: &str) -> bool {
    match resolve(document, schema).get("type") {
        Some(Value::String(kind)) => kind == wanted,
        Some(Value::Array(kinds)) => {
            kinds.iter().any(|kind| kind == wanted)
                && kinds.iter().all(|kind| kind == wanted || kind == "null")
        }
        _ => false,
    }
}

fn resolve<'a>(document: &'a Document, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    // References may be circular.
    for _ in 0..16 {
        let name = schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix("#/$defs/"));
        match name.and_then(|name| document.definitions.get(name)) {
            Some(found) => schema = found,
            None => break,
        }
    }
    schema
}

/// Returns the location of the items: the one in the document, the top level, or the largest list below.
fn items_of(value: &Value, named: Option<&str>) -> Option<Vec<String>> {
    let top = value.as_object()?;
    let is_array = |name: &str| top.get(name).is_some_and(Value::is_array);
    if let Some(named) = named.filter(|name| is_array(name)) {
        return Some(vec![named.to_owned()]);
    }
    let mut arrays = top.iter().filter(|(_, value)| value.as_array().is_some_and(|items| !items.is_empty()));
    match (arrays.next(), arrays.next()) {
        (Some((only, _)), None) => return Some(vec![only.clone()]),
        (Some(_), Some(_)) => {
            let usual = USUAL.iter().find(|name| is_array(name)).map(|name| (*name).to_owned());
            let size = |name: &&String| top.get(*name).map_or(0, |value| value.to_string().len());
            let arrays = top.iter().filter(|(_, value)| value.is_array()).map(|(name, _)| name);
            return usual.or_else(|| arrays.max_by_key(size).cloned()).map(|name| vec![name]);
        }
        (None, _) => {}
    }
    let mut largest = (0, None);
    find_largest(value, &mut Vec::new(), &mut largest);
    largest.1
}

fn find_largest(value: &Value, place: &mut Vec<String>, largest: &mut (usize, Option<Vec<String>>)) {
    if place.len() > 8 {
        return;
    }
    let Some(members) = value.as_object() else { return };
    for (name, value) in members {
        place.push(name.clone());
        if let Some(items) = value.as_array() {
            let size = value.to_string().len();
            if items.len() > 1 && size > largest.0 {
                *largest = (size, Some(place.clone()));
            }
        } else {
            find_largest(value, place, largest);
        }
        place.pop();
    }
}

fn list_at<'a>(value: &'a mut Value, place: &[String]) -> Option<&'a mut Vec<Value>> {
    let mut value = value;
    for name in place {
        value = value.get_mut(name)?;
    }
    value.as_array_mut()
}

/// The parameters for cutting a page.
pub(crate) struct PageOptions<'a> {
    /// The maximum size of the response in bytes.
    pub(crate) budget: usize,
    /// The member that holds the items, if the document names it.
    pub(crate) items: Option<&'a str>,
    /// The cursor of this page.
    pub(crate) next: &'a PageCursor,
    /// The link to the next page from the response.
    pub(crate) link: Option<String>,
    /// Whether the operation can be called again without side effects.
    pub(crate) repeatable: bool,
    /// Whether the response has `hasMore`.
    pub(crate) is_list: bool,
    /// The member of the response for the next cursor.
    pub(crate) next_cursor: &'a str,
    /// Signs a cursor. Returns `None` if the content is too large.
    pub(crate) seal: &'a dyn Fn(&PageCursor) -> Option<String>,
}

/// A response that cannot be cut.
#[derive(Debug, PartialEq)]
pub(crate) struct OversizedPage {
    /// The size of the response.
    pub(crate) bytes: usize,
    /// The cursor after the item that is too large.
    pub(crate) beyond: Option<String>,
}

/// Returns the part of a response object that fits, with a cursor and `hasMore` if more items exist.
pub(crate) fn cut_page(mut value: Value, by: &PageOptions<'_>) -> Result<Value, OversizedPage> {
    let next = by.next;
    let place = next.place.clone().or_else(|| items_of(&value, by.items));
    if let Some(list) = place.as_ref().and_then(|place| list_at(&mut value, place)) {
        list.drain(..next.offset.min(list.len()));
    }
    let bytes = value.to_string().len();
    let mut more = by.link.clone().map(|link| PageCursor {
        arguments: next.arguments.clone(),
        link: Some(link),
        ..PageCursor::default()
    });
    let mut cut_at = None;
    if bytes > by.budget {
        let whole_place = place.clone();
        let list = place.as_ref().and_then(|place| list_at(&mut value, place)).map(std::mem::take);
        let items = list.unwrap_or_default();
        let here = |count: usize| PageCursor {
            offset: next.offset + count,
            place: whole_place.clone(),
            arguments: next.arguments.clone(),
            link: next.link.clone(),
        };
        let cursor = (by.seal)(&here(items.len())).map_or(0, |cursor| cursor.len());
        let frame = value.to_string().len() + cursor + 128;
        let left = by.budget.saturating_sub(frame);
        let first = items.first().map_or(usize::MAX, |item| item.to_string().len());
        if first >= left {
            let beyond = Some(here(1)).filter(|_| items.len() > 1 && by.repeatable);
            return Err(OversizedPage { bytes, beyond: beyond.and_then(|beyond| (by.seal)(&beyond)) });
        }
        let count = count_fitting(&items, left);
        if count < items.len() {
            more = Some(here(count));
            cut_at = place.clone();
        }
        if let Some(list) = place.as_ref().and_then(|place| list_at(&mut value, place)) {
            list.extend(items.into_iter().take(count));
        }
    }
    let Some(top) = value.as_object_mut() else { return Ok(value) };
    match more {
        Some(more) => {
            let cursor = (by.seal)(&more).filter(|_| by.repeatable);
            top.insert("hasMore".to_owned(), true.into());
            match cursor {
                Some(cursor) => top.insert(by.next_cursor.to_owned(), cursor.into()),
                None => {
                    let note = "the rest cannot be requested with a cursor; request less";
                    top.insert("note".to_owned(), note.into())
                }
            };
            // The location is obvious unless the list is deeply nested.
            if let Some(place) = cut_at.filter(|place| place.len() > 1) {
                top.insert("cutAt".to_owned(), format!("/{}", place.join("/")).into());
            }
        }
        None if by.is_list && !top.contains_key("hasMore") => {
            top.insert("hasMore".to_owned(), false.into());
        }
        None => {}
    }
    Ok(value)
}

/// Returns the link to the next page, from a member of the response or from a `Link` header.
pub(crate) fn next_link(value: &Value, named: Option<&str>, headers: &http::HeaderMap) -> Option<String> {
    let text = |value: &Value| value.as_str().filter(|link| !link.is_empty()).map(str::to_owned);
    let by_path = |path: &[&str]| path.iter().try_fold(value, |value, name| value.get(*name)).and_then(text);
    if let Some(named) = named {
        // A name may contain dots, or it may be a path.
        let parts: Vec<&str> = named.split('.').collect();
        if let Some(link) = by_path(&[named]).or_else(|| by_path(&parts)) {
            return Some(link);
        }
    }
    let looks_like_one = |link: &String| link.starts_with("http") || link.starts_with(['/', '?']);
    let usual = || LINKS.iter().find_map(|path| by_path(path)).filter(looks_like_one);
    by_link_header(headers).or_else(usual)
}

/// Parses `Link: <https://…>; rel="next"`.
fn by_link_header(headers: &http::HeaderMap) -> Option<String> {
    let values = headers.get_all(http::header::LINK).iter().filter_map(|value| value.to_str().ok());
    for value in values {
        let mut rest = value;
        while let Some((_, after)) = rest.split_once('<') {
            let (address, parameters) = after.split_once('>')?;
            let (parameters, following) = match parameters.find(",<").or_else(|| parameters.find(", <")) {
                Some(at) => parameters.split_at(at),
                None => (parameters, ""),
            };
            let is_next = parameters.split(';').any(|parameter| {
                let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                let mut relations = value.trim().trim_matches('"').split(' ');
                name.trim().eq_ignore_ascii_case("rel") && relations.any(|it| it.eq_ignore_ascii_case("next"))
            });
            if is_next {
                return Some(address.to_owned());
            }
            rest = following;
        }
    }
    None
}

/// Removes the parameters that the operator fixed from a link. Callers must not see them. They are added
/// again when the link is followed.
pub(crate) fn without_fixed(link: &str, fixed: &[String]) -> String {
    let Some((path, query)) = link.split_once('?') else { return link.to_owned() };
    let kept: Vec<&str> = query.split('&').filter(|pair| !is_fixed(pair, fixed)).collect();
    if kept.is_empty() { path.to_owned() } else { format!("{path}?{}", kept.join("&")) }
}

/// Returns whether a query pair is fixed by the operator.
fn is_fixed(pair: &str, fixed: &[String]) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    !name.is_empty() && fixed.iter().any(|fixed| fixed.eq_ignore_ascii_case(&name))
}

/// Adds the parameters that the operator fixed to a link, as in the first request.
pub(crate) fn with_fixed(link: &str, sent: &str, fixed: &[String]) -> String {
    let query = sent.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let mut link = link.to_owned();
    for pair in query.split('&').filter(|pair| is_fixed(pair, fixed)) {
        link.push(if link.contains('?') { '&' } else { '?' });
        link.push_str(pair);
    }
    link
}

/// Removes a link from a response, because a cursor replaces it.
pub(crate) fn remove_link(value: &mut Value, link: &str) {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, member| member.as_str() != Some(link));
        members.values_mut().for_each(|member| remove_link(member, link));
    }
}

#[cfg(test)]
mod tests;
