//! A search request, parsed as far as possible without its index.

use std::borrow::Cow;

use bindpost_azure_search_model::{ApiError, RequestObject};
use serde_json::Value;

use super::parameters::{read_names, read_parameters};

/// The default number of documents on a page.
const PAGE: usize = 50;
/// The maximum number of documents on a page. A larger `top` is split into several pages.
pub(crate) const LARGEST_PAGE: usize = 1000;
const LARGEST_SKIP: i64 = 100_000;
/// The largest `maxTextRecallSize` of a hybrid search.
const MOST_TEXT_RECALL: usize = 10_000;

const KNOWN: &[&str] = &[
    "search",
    "searchFields",
    "searchMode",
    "queryType",
    "filter",
    "orderby",
    "select",
    "top",
    "skip",
    "count",
    "facets",
    "highlight",
    "highlightPreTag",
    "highlightPostTag",
    "minimumCoverage",
    "scoringProfile",
    "scoringParameters",
    "scoringStatistics",
    "sessionId",
    "semanticConfiguration",
    "semanticErrorHandling",
    "semanticMaxWaitInMilliseconds",
    "semanticQuery",
    "semanticFields",
    "answers",
    "captions",
    "queryLanguage",
    "speller",
    "queryRewrites",
    "debug",
    "vectorQueries",
    "vectorFilterMode",
    "hybridSearch",
    "querySourceAuthorization",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuerySyntax {
    Simple,
    Full,
    /// Runs as a simple query with a partial response, because there is no model for the ranking.
    Semantic,
}

/// A typed search request. Field names are still text, because only the index can check them.
#[derive(Debug, Clone)]
pub struct SearchRequest {
    pub search: Option<String>,
    pub search_fields: Option<String>,
    pub all: bool,
    pub syntax: QuerySyntax,
    pub filter: Option<String>,
    pub orderby: Option<String>,
    pub select: Option<String>,
    /// The requested number of documents. `None` if the request does not set it.
    pub top: Option<usize>,
    pub skip: usize,
    pub count: bool,
    pub facets: Vec<String>,
    pub highlight: Option<String>,
    pub highlight_tags: (Option<String>, Option<String>),
    pub minimum_coverage: bool,
    pub semantic_configuration: Option<String>,
    pub scoring_profile: Option<String>,
    pub scoring_parameters: Vec<String>,
    /// The request body, for `@search.coverage` and the vector queries.
    pub body: Value,
}

impl SearchRequest {
    pub fn parse(body: Value) -> Result<Self, ApiError> {
        let given = read_parameters(&body, KNOWN)?;
        let owned = |name| Ok::<_, ApiError>(given.text(name)?.map(str::to_owned));
        let texts = |name| {
            Ok::<_, ApiError>(
                given.text_or_texts(name)?.into_iter().map(str::to_owned).collect::<Vec<String>>(),
            )
        };
        let names = |name| Ok::<_, ApiError>(read_names(&given, name)?.map(Cow::into_owned));
        let syntax = given.choice_in_any_case(
            "queryType",
            &[
                ("simple", QuerySyntax::Simple),
                ("full", QuerySyntax::Full),
                ("semantic", QuerySyntax::Semantic),
            ],
        )?;
        let syntax = syntax.unwrap_or(QuerySyntax::Simple);
        let fails = given
            .choice_in_any_case("semanticErrorHandling", &[("partial", false), ("fail", true)])?
            .unwrap_or(false);
        if syntax == QuerySyntax::Semantic && fails {
            return Err(ApiError::not_supported(
                "This service has no semantic ranker. Set semanticErrorHandling to 'partial' to get the results of keywords and vectors, or use queryType simple or full.",
            ));
        }
        if given.text("queryRewrites")?.is_some_and(|rewrites| rewrites != "none") {
            return Err(ApiError::not_supported(
                "Query rewriting is not supported, because it needs a language model. Remove queryRewrites.",
            ));
        }
        answers_and_captions(&given)?;
        if let Some(hybrid) = given.object("hybridSearch")? {
            hybrid.allow_only(&["maxTextRecallSize", "countAndFacetMode"])?;
            hybrid.integer_in("maxTextRecallSize", 1..=MOST_TEXT_RECALL)?;
            hybrid.choice_in_any_case(
                "countAndFacetMode",
                &[("countRetrievableResults", ()), ("countAllResults", ())],
            )?;
        }
        let coverage = given.number("minimumCoverage")?;
        if coverage.is_some_and(|coverage| !(0.0..=100.0).contains(&coverage)) {
            return Err(ApiError::parameter(
                "minimumCoverage",
                "'minimumCoverage' must be a number from 0 to 100.",
            ));
        }
        let request = Self {
            search: owned("search")?,
            search_fields: names("searchFields")?,
            all: given.choice_in_any_case("searchMode", &[("any", false), ("all", true)])?.unwrap_or(false),
            syntax,
            filter: owned("filter")?,
            orderby: names("orderby")?,
            select: names("select")?,
            top: given.integer("top")?.map(checked_top).transpose()?,
            skip: checked_skip(given.integer("skip")?.unwrap_or(0))?,
            count: given.boolean("count")?.unwrap_or(false),
            facets: texts("facets")?,
            highlight: names("highlight")?,
            highlight_tags: (owned("highlightPreTag")?, owned("highlightPostTag")?),
            minimum_coverage: coverage.is_some(),
            semantic_configuration: owned("semanticConfiguration")?.filter(|name| !name.is_empty()),
            scoring_profile: owned("scoringProfile")?.filter(|name| !name.is_empty()),
            scoring_parameters: texts("scoringParameters")?,
            body: Value::Null,
        };
        Ok(Self { body, ..request })
    }

    /// Returns the maximum number of documents in this response.
    pub fn page_size(&self) -> usize {
        self.top.unwrap_or(PAGE).min(LARGEST_PAGE)
    }

    /// Returns the request for the next page. Returns `None` if this page completes the request.
    pub fn next_page(&self) -> Option<Value> {
        let mut next = self.body.clone();
        let members = next.as_object_mut()?;
        members.insert("skip".to_owned(), (self.skip + self.page_size()).into());
        if let Some(top) = self.top {
            let rest = top.saturating_sub(self.page_size());
            if rest == 0 {
                return None;
            }
            members.insert("top".to_owned(), rest.into());
        }
        Some(next)
    }
}

/// Checks `answers` and `captions`. They have no effect, because there is no semantic ranker.
///
/// Options follow the kind: `extractive|count-3,threshold-0.9`. A list of strings is the kind and its options too.
fn answers_and_captions(given: &RequestObject<'_>) -> Result<(), ApiError> {
    for name in ["answers", "captions"] {
        for value in given.text_or_texts(name)? {
            let (kind, options) = value.split_once('|').unwrap_or((value, ""));
            let known = |option: &str| match option.split_once('-') {
                Some(("count", number)) if name == "answers" => {
                    number.parse::<u32>().is_ok_and(|number| (1..=10).contains(&number))
                }
                Some(("threshold", number)) if name == "answers" => {
                    number.parse::<f64>().is_ok_and(|number| (0.0..=1.0).contains(&number))
                }
                Some(("maxcharlength", number)) => number.parse::<u32>().is_ok(),
                Some(("highlight", flag)) if name == "captions" => matches!(flag, "true" | "false"),
                _ => false,
            };
            let options = options.split(',').map(str::trim).filter(|option| !option.is_empty());
            let is_kind = ["none", "extractive"].iter().any(|known| kind.trim().eq_ignore_ascii_case(known));
            if !is_kind || !options.map(str::to_ascii_lowercase).all(|option| known(&option)) {
                let form = match name {
                    "answers" => {
                        "none, extractive or extractive with options such as extractive|count-3,threshold-0.9"
                    }
                    _ => "none, extractive or extractive|highlight-true",
                };
                let shown: String = value.chars().take(60).collect();
                return Err(ApiError::parameter(name, format!("'{name}' must be {form}, not '{shown}'.")));
            }
        }
    }
    Ok(())
}

fn checked_top(top: i64) -> Result<usize, ApiError> {
    let large = || {
        ApiError::parameter(
            "$top",
            format!("'{top}' is not a valid number of documents. It must be 0 or more."),
        )
    };
    usize::try_from(top).map_err(|_| large())
}

fn checked_skip(skip: i64) -> Result<usize, ApiError> {
    let message = || {
        format!(
            "The number of documents to skip is {skip}, but it must be from 0 to {LARGEST_SKIP}. To read more documents, order by the key and filter by the last key."
        )
    };
    match usize::try_from(skip) {
        Ok(number) if skip <= LARGEST_SKIP => Ok(number),
        _ => Err(ApiError::parameter("$skip", message())),
    }
}
