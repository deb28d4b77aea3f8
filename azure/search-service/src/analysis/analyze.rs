//! The `search.analyze` operation: returns the tokens that an analyzer produces for a text.

use bindpost_azure_search_model::{ApiError, RequestObject};
use bindpost_net_json::JsonPlace;
use serde_json::{Value, json};
use tantivy::tokenizer::{TextAnalyzer, TokenStream as _};

use super::AnalyzerRegistry;
use crate::budget::{Budget, JsonBuffer};

/// The maximum number of tokens in one response. N-gram filters produce hundreds of tokens per
/// character, and an unlimited response would exhaust memory.
const MOST_TOKENS: usize = 500_000;

/// Runs an analyze request and writes `{"tokens":[{"token","startOffset","endOffset","position"}]}`.
/// Offsets are in UTF-16 code units, as in .NET.
pub(crate) fn analyze(
    request: &Value,
    analyzers: &AnalyzerRegistry,
    budget: &Budget,
) -> Result<JsonBuffer, ApiError> {
    let given = RequestObject::new(request, JsonPlace::of("the request"))?;
    given.allow_only(&["text", "analyzer", "tokenizer", "normalizer", "tokenFilters", "charFilters"])?;
    let text = given.required_text_or_empty("text")?;
    let filters = given.texts("tokenFilters")?;
    let char_filters = given.texts("charFilters")?;
    let tokenizer = given.text("tokenizer")?;
    if tokenizer.is_none() && !(filters.is_empty() && char_filters.is_empty()) {
        return Err(ApiError::invalid(
            "'tokenFilters' and 'charFilters' can be given only together with 'tokenizer'.",
        ));
    }
    let offsets = Utf16Offsets::new(text);
    match (given.text("analyzer")?, tokenizer, given.text("normalizer")?) {
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
