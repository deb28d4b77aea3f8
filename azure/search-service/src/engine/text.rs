//! Converts a parsed search text into a tantivy query over the text columns of fields.
//!
//! Each word is searched in all fields and its scores are summed, as in Lucene. With searchMode `all`,
//! each word must occur in some field, but the words may be in different fields. If the analyzer splits a
//! word (`wi-fi`) into several terms, searchMode joins them within a field. Terms at the same position
//! and synonyms are alternatives, and the best score is used.

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::syntax::synonyms::CompiledSynonyms;
use bindpost_azure_search_model::syntax::tree::{ClauseOccur, QueryClause, QueryNode};
use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, DisjunctionMaxQuery, EmptyQuery, Occur as TantivyOccur, PhraseQuery,
    Query, TermQuery,
};
use tantivy::schema::{Field as Column, IndexRecordOption};
use tantivy::tokenizer::TextAnalyzer;

use crate::budget::Budget;

mod expression;
mod highlight;
mod pattern;
mod words;

pub(crate) use highlight::{HighlightKind, HighlightTerm};
pub(crate) use pattern::TermPattern;
pub(crate) use words::{MAX_TERMS, too_many_terms};

use pattern::PatternBuilder;
pub(crate) use pattern::PatternQuery;
use words::{AnalyzedPosition, TermExpander};

/// The maximum product of nested boosts.
const MAX_BOOST: f32 = 1e9;

/// A search text and the fields to search.
pub struct TextSearch<'a> {
    pub node: &'a QueryNode,
    /// The fields for words without a field prefix: `searchFields`, or all searchable fields.
    pub fields: Vec<SearchField<'a>>,
    /// Returns any other searchable field, for `field:word`. This is independent of `searchFields`.
    pub others: &'a dyn Fn(&str) -> Option<SearchField<'a>>,
    /// True for searchMode `all`.
    pub all: bool,
    pub budget: &'a Budget,
}

/// A field to search.
pub struct SearchField<'a> {
    pub path: &'a str,
    /// The text column.
    pub column: Column,
    /// The weight from a scoring profile. Default: 1.
    pub weight: f32,
    /// The search analyzer, cloned once for the whole query.
    pub analyzer: TextAnalyzer,
    pub synonyms: Option<&'a CompiledSynonyms>,
}

/// The query for a search text.
#[derive(Debug)]
pub struct BuiltText {
    pub query: Box<dyn Query>,
    /// The matches to highlight in each field. Excluded terms are not included.
    pub highlight: Vec<HighlightTerm>,
    /// The number of terms in the query.
    pub terms: usize,
}

impl TextSearch<'_> {
    /// Builds the query. Fails if a pattern is invalid or the text is too large. A text that matches
    /// nothing is not an error.
    pub fn build(self) -> Result<BuiltText, ApiError> {
        let mut builder = TextQueryBuilder {
            chosen: self.fields.len(),
            fields: self.fields,
            others: self.others,
            all: self.all,
            budget: self.budget,
            patterns: PatternBuilder::default(),
            words: TermExpander::default(),
            highlight: Vec::new(),
        };
        let scope = NodeScope { field: None, boost: 1.0, negated: false };
        let query = match builder.build_node(self.node, scope)? {
            Some(part) => part.into_query(),
            // The text has only stop words.
            None => Box::new(EmptyQuery),
        };
        Ok(BuiltText { query, highlight: builder.highlight, terms: builder.words.terms })
    }
}

struct TextQueryBuilder<'a> {
    /// The selected fields, followed by the fields that the text names.
    fields: Vec<SearchField<'a>>,
    chosen: usize,
    others: &'a dyn Fn(&str) -> Option<SearchField<'a>>,
    all: bool,
    budget: &'a Budget,
    patterns: PatternBuilder,
    words: TermExpander,
    highlight: Vec<HighlightTerm>,
}

/// The context that a node inherits from the nodes above it.
#[derive(Clone, Copy)]
struct NodeScope {
    /// The position in `TextQueryBuilder::fields`.
    field: Option<usize>,
    /// The boost for the leaves. Scores are sums, and tantivy is fastest with flat unions of terms.
    boost: f32,
    negated: bool,
}

/// A query under construction.
enum PartialQuery {
    /// At least one of these must match, and the scores are summed.
    Any(Vec<Box<dyn Query>>),
    One(Box<dyn Query>),
    /// Everything except these.
    Without(Vec<Box<dyn Query>>),
}

impl PartialQuery {
    fn into_query(self) -> Box<dyn Query> {
        match self {
            Self::One(query) => query,
            Self::Any(mut queries) => match queries.len() {
                0 | 1 => queries.pop().unwrap_or_else(|| Box::new(EmptyQuery)),
                _ => Box::new(BooleanQuery::union(queries)),
            },
            Self::Without(queries) => {
                let mut clauses: Vec<(TantivyOccur, Box<dyn Query>)> =
                    vec![(TantivyOccur::Must, Box::new(AllQuery))];
                clauses.extend(queries.into_iter().map(|query| (TantivyOccur::MustNot, query)));
                Box::new(BooleanQuery::with_minimum_required_clauses(clauses, 0))
            }
        }
    }
}

impl TextQueryBuilder<'_> {
    /// Builds the query of a node. Returns `None` if analysis leaves no terms. The clause is then ignored.
    ///
    /// The recursion is as deep as the tree, and the parsers limit its depth.
    fn build_node(&mut self, node: &QueryNode, scope: NodeScope) -> Result<Option<PartialQuery>, ApiError> {
        Ok(match node {
            QueryNode::All => Some(PartialQuery::One(boosted(Box::new(AllQuery), scope.boost))),
            QueryNode::Nothing => Some(PartialQuery::One(Box::new(EmptyQuery))),
            QueryNode::Clauses(clauses) => self.build_clauses(clauses, scope)?,
            QueryNode::Field { path, node } => {
                let field = Some(self.field(path)?);
                self.build_node(node, NodeScope { field, ..scope })?
            }
            QueryNode::Boost { node, factor } => {
                // Infinite scores cannot be ordered.
                let boost = (scope.boost * factor).min(MAX_BOOST);
                self.build_node(node, NodeScope { boost, ..scope })?
            }
            QueryNode::Term(text) => self.build_analyzed(text, None, scope)?,
            QueryNode::Phrase { text, slop } => self.build_analyzed(text, Some(*slop), scope)?,
            QueryNode::Prefix(text) => {
                let pattern = TermPattern::prefix(text);
                self.build_pattern(&pattern, None, scope)
            }
            QueryNode::Wildcard(pieces) => {
                let pattern = self.patterns.wildcard(pieces)?;
                self.build_pattern(&pattern, None, scope)
            }
            QueryNode::Regex(expression) => {
                let pattern = self.patterns.regex(expression)?;
                self.build_pattern(&pattern, None, scope)
            }
            QueryNode::Fuzzy { text, distance } => {
                let text = text.to_lowercase();
                let pattern = self.patterns.fuzzy(&text, *distance)?;
                self.build_pattern(&pattern, Some(&text), scope)
            }
        })
    }

    fn field(&mut self, path: &str) -> Result<usize, ApiError> {
        if let Some(at) = self.fields.iter().position(|field| field.path == path) {
            return Ok(at);
        }
        let field = (self.others)(path).ok_or_else(|| {
            ApiError::parameter("search", format!("`{path}` is not a searchable field of this index."))
        })?;
        self.fields.push(field);
        Ok(self.fields.len() - 1)
    }

    fn range(&self, scope: NodeScope) -> std::ops::Range<usize> {
        match scope.field {
            Some(at) => at..at + 1,
            None => 0..self.chosen,
        }
    }

    fn build_clauses(
        &mut self,
        clauses: &[QueryClause],
        scope: NodeScope,
    ) -> Result<Option<PartialQuery>, ApiError> {
        let strict = self.all || clauses.iter().any(|clause| clause.occur == ClauseOccur::Must);
        let (mut must, mut should, mut not) = (Vec::new(), Vec::new(), Vec::new());
        for clause in clauses {
            let excluded = clause.occur == ClauseOccur::MustNot;
            let below = NodeScope { negated: scope.negated != excluded, ..scope };
            let Some(part) = self.build_node(&clause.node, below)? else { continue };
            let required = match clause.occur {
                ClauseOccur::Must => true,
                ClauseOccur::Default => self.all,
                ClauseOccur::Should => false,
                ClauseOccur::MustNot if strict || clauses.len() == 1 => {
                    not.push(part.into_query());
                    continue;
                }
                // With searchMode `any`, `wifi NOT luxury` matches documents with wifi or without luxury.
                ClauseOccur::MustNot => {
                    should.push(PartialQuery::Without(vec![part.into_query()]).into_query());
                    continue;
                }
            };
            match (required, part) {
                (true, PartialQuery::Without(queries)) => not.extend(queries),
                (true, part) => must.push(part.into_query()),
                (false, PartialQuery::Any(queries)) => should.extend(queries),
                (false, part) => should.push(part.into_query()),
            }
        }
        Ok(match (must.is_empty(), should.is_empty(), not.is_empty()) {
            (true, true, true) => None,
            (true, true, false) => Some(PartialQuery::Without(not)),
            (true, false, true) => Some(PartialQuery::Any(should)),
            (false, true, true) if must.len() == 1 => must.pop().map(PartialQuery::One),
            _ => {
                // If a clause is required, the other clauses only add to the score.
                let minimum = usize::from(must.is_empty());
                let mut all: Vec<(TantivyOccur, Box<dyn Query>)> = Vec::new();
                all.extend(must.into_iter().map(|query| (TantivyOccur::Must, query)));
                all.extend(should.into_iter().map(|query| (TantivyOccur::Should, query)));
                all.extend(not.into_iter().map(|query| (TantivyOccur::MustNot, query)));
                Some(PartialQuery::One(Box::new(BooleanQuery::with_minimum_required_clauses(all, minimum))))
            }
        })
    }

    /// Builds the query for a word, or for a phrase if a slop is given.
    fn build_analyzed(
        &mut self,
        text: &str,
        slop: Option<u32>,
        scope: NodeScope,
    ) -> Result<Option<PartialQuery>, ApiError> {
        let mut queries: Vec<Box<dyn Query>> = Vec::new();
        for at in self.range(scope) {
            let Some(field) = self.fields.get_mut(at) else { continue };
            self.budget.check();
            let places = self.words.analyze(field, text)?;
            let boost = scope.boost * field.weight;
            let column = field.column;
            let mut hits = Vec::new();
            match slop {
                Some(slop) => {
                    let phrases = self.words.phrases(&places)?;
                    queries.extend(best(
                        phrases
                            .into_iter()
                            .filter_map(|terms| term_or_phrase_query(column, terms, slop, &mut hits))
                            .collect(),
                        boost,
                    ));
                }
                None => {
                    let mut each: Vec<Box<dyn Query>> = places
                        .into_iter()
                        .filter_map(|AnalyzedPosition { alternatives, .. }| {
                            let rows = alternatives.into_iter();
                            best(
                                rows.filter_map(|terms| term_or_phrase_query(column, terms, 0, &mut hits))
                                    .collect(),
                                boost,
                            )
                        })
                        .collect();
                    if self.all && each.len() > 1 {
                        queries.push(Box::new(BooleanQuery::intersection(each)));
                    } else {
                        queries.append(&mut each);
                    }
                }
            }
            if !scope.negated {
                let path = field.path;
                self.highlight.extend(hits.into_iter().map(|hit| HighlightTerm::new(path, hit)));
            }
        }
        Ok((!queries.is_empty()).then_some(PartialQuery::Any(queries)))
    }

    /// Builds the query for a pattern. All matching terms have the same score. `exact` is a term with a
    /// higher score.
    fn build_pattern(
        &mut self,
        pattern: &TermPattern,
        exact: Option<&str>,
        scope: NodeScope,
    ) -> Option<PartialQuery> {
        let mut queries: Vec<Box<dyn Query>> = Vec::new();
        for at in self.range(scope) {
            let Some(field) = self.fields.get(at) else { continue };
            let boost = scope.boost * field.weight;
            queries.push(boosted(
                Box::new(PatternQuery::new(field.column, pattern.clone(), self.budget)),
                boost,
            ));
            if let Some(text) = exact {
                queries.push(boosted(term(field.column, text), boost));
            }
            if !scope.negated {
                self.highlight.push(HighlightTerm::new(field.path, HighlightKind::Pattern(pattern.clone())));
            }
        }
        Some(PartialQuery::Any(queries))
    }
}

/// Builds a term query for one term, or a phrase query for several terms with positions.
fn term_or_phrase_query(
    column: Column,
    terms: Vec<(usize, String)>,
    slop: u32,
    hits: &mut Vec<HighlightKind>,
) -> Option<Box<dyn Query>> {
    // tantivy stores the slop in a byte.
    let slop = slop.min(u8::MAX.into());
    match terms.as_slice() {
        [] => None,
        [(_, text)] => {
            let query = term(column, text);
            hits.extend(terms.into_iter().map(|(_, text)| HighlightKind::Term(text)));
            Some(query)
        }
        terms_in_row => {
            let phrase =
                terms_in_row.iter().map(|(at, text)| (*at, Term::from_field_text(column, text))).collect();
            hits.push(HighlightKind::Phrase { words: terms, slop });
            Some(Box::new(PhraseQuery::new_with_offset_and_slop(phrase, slop)))
        }
    }
}

fn term(column: Column, text: &str) -> Box<dyn Query> {
    Box::new(TermQuery::new(Term::from_field_text(column, text), IndexRecordOption::WithFreqs))
}

/// Combines alternatives with the score of the best one. More synonyms do not increase the score.
fn best(mut queries: Vec<Box<dyn Query>>, boost: f32) -> Option<Box<dyn Query>> {
    let query = match queries.len() {
        0 | 1 => queries.pop()?,
        _ => Box::new(DisjunctionMaxQuery::new(queries)),
    };
    Some(boosted(query, boost))
}

fn boosted(query: Box<dyn Query>, boost: f32) -> Box<dyn Query> {
    if boost == 1.0 { query } else { Box::new(BoostQuery::new(query, boost)) }
}

#[cfg(test)]
mod tests;
