//! The `search.analyze` operation: returns the tokens that an analyzer produces for a text.

use serde_json::{Value, json};
use tantivy::tokenizer::{TextAnalyzer, TokenStream as _};

use super::AnalyzerRegistry;
use crate::ApiError;
use crate::budget::{Budget, JsonBuffer};

/// The maximum number of tokens in one response. N-gram filters produce hundreds of tokens per
/// character, and an unlimited response would exhaust memory.
const MOST_TOKENS: usize = 500_000;

/// Runs an analyze request and writes `{"tokens":[{"token","startOffset","endOffset","position"}]}`.
/// Offsets are in UTF-16 code units, as in .NET.
pub fn analyze(
    request: &Value,
    analyzers: &AnalyzerRegistry,
    budget: &Budget,
) -> Result<JsonBuffer, ApiError> {
    let string = |key: &str| match request.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(ApiError::parameter(key, format!("The property '{key}' must be a string."))),
    };
    let names = |key: &str| match request.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(value) => value
            .as_array()
            .and_then(|list| list.iter().map(|name| name.as_str().map(str::to_owned)).collect())
            .ok_or_else(|| {
                ApiError::parameter(key, format!("The property '{key}' must be an array of names."))
            }),
    };
    let known = ["text", "analyzer", "tokenizer", "normalizer", "tokenFilters", "charFilters"];
    let members =
        request.as_object().ok_or_else(|| ApiError::invalid("The request must be a JSON object."))?;
    if let Some(key) = members.keys().find(|key| !known.contains(&key.as_str()) && !key.starts_with('@')) {
        return Err(ApiError::parameter(
            key,
            format!("The property '{key}' does not exist in an analyze request."),
        ));
    }
    let text =
        string("text")?.ok_or_else(|| ApiError::parameter("text", "The property 'text' is required."))?;
    let filters = names("tokenFilters")?;
    let char_filters = names("charFilters")?;
    let tokenizer = string("tokenizer")?;
    if tokenizer.is_none() && !(filters.is_empty() && char_filters.is_empty()) {
        return Err(ApiError::invalid(
            "'tokenFilters' and 'charFilters' can be given only together with 'tokenizer'.",
        ));
    }
    let offsets = Utf16Offsets::new(text);
    match (string("analyzer")?, tokenizer, string("normalizer")?) {
        (Some(name), None, None) => {
            analyzers.check(name)?;
            let analyzer = analyzers
                .get(name)
                .ok_or_else(|| ApiError::not_found(format!("There is no analyzer '{name}'.")))?;
            tokens(analyzer, text, &offsets, budget)
        }
        (None, Some(tokenizer), None) => {
            let analyzer = analyzers.assemble("The request", tokenizer, &filters, &char_filters)?;
            tokens(TextAnalyzer::from(analyzer), text, &offsets, budget)
        }
        (None, None, Some(name)) => {
            analyzers.check_normalizer(name)?;
            let value = analyzers.normalizer(name).map(|normalizer| normalizer.apply(text));
            let mut answer = JsonBuffer::new(budget);
            answer.push_json(&json!({"tokens": [{
                "token": value,
                "startOffset": 0,
                "endOffset": offsets.at(text.len()),
                "position": 0,
            }]}));
            Ok(answer)
        }
        _ => Err(ApiError::invalid("Exactly one of 'analyzer', 'tokenizer' and 'normalizer' must be given.")),
    }
}

fn tokens(
    mut analyzer: TextAnalyzer,
    text: &str,
    offsets: &Utf16Offsets,
    budget: &Budget,
) -> Result<JsonBuffer, ApiError> {
    let mut tokens = JsonBuffer::new(budget);
    let mut answer = JsonBuffer::new(budget);
    let mut number = 0;
    let mut stream = analyzer.token_stream(text);
    while let Some(token) = stream.next() {
        budget.check();
        number += 1;
        if number > MOST_TOKENS {
            return Err(ApiError::parameter(
                "text",
                format!("The text produces more than {MOST_TOKENS} tokens. Analyze a shorter text."),
            ));
        }
        tokens.push_json(&json!({
            "token": token.text,
            "startOffset": offsets.at(token.offset_from),
            "endOffset": offsets.at(token.offset_to),
            "position": token.position,
        }));
    }
    answer.bytes.extend_from_slice(b"{\"tokens\":[");
    answer.bytes.append(&mut tokens.bytes);
    answer.bytes.extend_from_slice(b"]}");
    answer.account_growth();
    Ok(answer)
}

/// Maps byte offsets to UTF-16 offsets. Empty for ASCII text, where both are the same.
struct Utf16Offsets(Vec<usize>);

impl Utf16Offsets {
    fn new(text: &str) -> Self {
        if text.is_ascii() {
            return Self(Vec::new());
        }
        let mut units = Vec::with_capacity(text.len() + 1);
        let mut count = 0;
        for c in text.chars() {
            units.extend(std::iter::repeat_n(count, c.len_utf8()));
            count += c.len_utf16();
        }
        units.push(count);
        Self(units)
    }

    fn at(&self, byte: usize) -> usize {
        self.0.get(byte).copied().unwrap_or(byte)
    }
}
