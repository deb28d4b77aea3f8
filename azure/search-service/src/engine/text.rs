//! From a parsed search text to a tantivy query over the text columns of fields.
//!
//! Each word is searched in all fields and its scores are added up, as Lucene expands a word over several fields: with
//! searchMode `all` each word must be in some field, not all of them in the same one. Terms that analysis makes of one
//! word (`wi-fi`) join by searchMode within a field; terms at the same place, and synonyms, stand for each other, and
//! the best of them counts.

use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, DisjunctionMaxQuery, EmptyQuery, Occur as TantivyOccur, PhraseQuery,
    Query, TermQuery,
};
use tantivy::schema::{Field as Column, IndexRecordOption};
use tantivy::tokenizer::TextAnalyzer;

use crate::ApiError;
use crate::budget::Budget;
use crate::syntax::synonyms::CompiledSynonyms;
use crate::syntax::tree::{ClauseOccur, QueryClause, QueryNode};

mod expression;
mod highlight;
mod pattern;
mod words;

pub use highlight::{HighlightKind, HighlightTerm};
pub use pattern::TermPattern;
pub use words::{MAX_TERMS, too_many_terms};

use pattern::PatternBuilder;
pub(crate) use pattern::PatternQuery;
use words::{AnalyzedPosition, TermExpander};

/// What boosts within boosts may multiply to.
const MAX_BOOST: f32 = 1e9;

/// A search text and where to search it.
pub struct TextSearch<'a> {
    pub node: &'a QueryNode,
    /// The fields for words without a field of their own: `searchFields`, or all searchable ones.
    pub fields: Vec<SearchField<'a>>,
    /// Any other searchable field, for `field:word`, which looks there whatever `searchFields` says.
    pub others: &'a dyn Fn(&str) -> Option<SearchField<'a>>,
    /// searchMode `all`.
    pub all: bool,
    pub budget: &'a Budget,
}

/// One field to search.
pub struct SearchField<'a> {
    pub path: &'a str,
    /// The text column.
    pub column: Column,
    /// From a scoring profile; 1 otherwise.
    pub weight: f32,
    /// The search analyzer, cloned once for the whole query.
    pub analyzer: TextAnalyzer,
    pub synonyms: Option<&'a CompiledSynonyms>,
}

/// What a search text became.
#[derive(Debug)]
pub struct BuiltText {
    pub query: Box<dyn Query>,
    /// What counts as a hit in each field. Nothing that the text excludes is here.
    pub highlight: Vec<HighlightTerm>,
    /// How many terms were made of it.
    pub terms: usize,
}

impl TextSearch<'_> {
    /// Fails when patterns are wrong or the text is too large; never for what merely finds nothing.
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
            // Stop words and nothing else.
            None => Box::new(EmptyQuery),
        };
        Ok(BuiltText { query, highlight: builder.highlight, terms: builder.words.terms })
    }
}

struct TextQueryBuilder<'a> {
    /// The chosen ones first, then others as the text names them.
    fields: Vec<SearchField<'a>>,
    chosen: usize,
    others: &'a dyn Fn(&str) -> Option<SearchField<'a>>,
    all: bool,
    budget: &'a Budget,
    patterns: PatternBuilder,
    words: TermExpander,
    highlight: Vec<HighlightTerm>,
}

/// What the nodes above say about this one.
#[derive(Clone, Copy)]
struct NodeScope {
    /// A place in `TextQueryBuilder::fields`.
    field: Option<usize>,
    /// Pushed down to the leaves: scores are sums, and flat unions of terms are what tantivy is quickest at.
    boost: f32,
    negated: bool,
}

/// A query in the making.
enum PartialQuery {
    /// One of these suffices, and scores add up.
    Any(Vec<Box<dyn Query>>),
    One(Box<dyn Query>),
    /// Everything but these.
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
    /// None when analysis leaves nothing to search for: then the clause does not count at all.
    ///
    /// Recursion is as deep as the tree, and parsers bound that.
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
                // Infinite scores have no order.
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
                // With searchMode `any`, `wifi NOT luxury` asks for wifi or for no luxury.
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
                // Beside a must, the others only add to the score.
                let minimum = usize::from(must.is_empty());
                let mut all: Vec<(TantivyOccur, Box<dyn Query>)> = Vec::new();
                all.extend(must.into_iter().map(|query| (TantivyOccur::Must, query)));
                all.extend(should.into_iter().map(|query| (TantivyOccur::Should, query)));
                all.extend(not.into_iter().map(|query| (TantivyOccur::MustNot, query)));
                Some(PartialQuery::One(Box::new(BooleanQuery::with_minimum_required_clauses(all, minimum))))
            }
        })
    }

    /// A word, or with a slop a phrase.
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

    /// Terms that fit a pattern all count the same; `exact` is a term that counts more.
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

/// Terms with their places: one is a term query, several are a phrase.
fn term_or_phrase_query(
    column: Column,
    terms: Vec<(usize, String)>,
    slop: u32,
    hits: &mut Vec<HighlightKind>,
) -> Option<Box<dyn Query>> {
    // tantivy counts slop in a byte.
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

/// Alternatives for the same thing: the best one counts, so that knowing many names for it is no merit.
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
