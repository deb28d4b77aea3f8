//! Negated queries.

use tantivy::query::{
    AllQuery, BooleanQuery, EnableScoring, Explanation, Occur, Query, QueryClone, Scorer, Weight,
};
use tantivy::{DocId, DocSet, Score, SegmentReader, Term};

use super::{FilterScope, without_score};

pub(super) fn negated_query(query: Box<dyn Query>, scope: &FilterScope<'_>) -> Box<dyn Query> {
    let excluded = Box::new(ForwardOnlyQuery(query));
    Box::new(BooleanQuery::new(vec![
        (Occur::Must, without_score(AllQuery, scope)),
        (Occur::MustNot, excluded),
    ]))
}

/// A query with the same matches that never seeks to a document before the current one.
///
/// For an exclusion, tantivy seeks to each document from the first on, even if the exclusion is already
/// at a later document. The seek is passed on to the parts. A range of numbers within a conjunction has
/// moved ahead by then. It computes the distance as if it could only grow, and overflows.
#[derive(Debug)]
struct ForwardOnlyQuery(Box<dyn Query>);

impl Clone for ForwardOnlyQuery {
    fn clone(&self) -> Self {
        Self(self.0.box_clone())
    }
}

impl Query for ForwardOnlyQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(ForwardOnlyWeight(self.0.weight(scoring)?)))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.0.query_terms(visitor);
    }
}

struct ForwardOnlyWeight(Box<dyn Weight>);

impl Weight for ForwardOnlyWeight {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        Ok(Box::new(ForwardOnlyScorer(self.0.scorer(segment, boost)?)))
    }

    fn explain(&self, segment: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.0.explain(segment, doc)
    }
}

/// Keeps the default `seek_danger` of [`DocSet`], which checks the current document first.
struct ForwardOnlyScorer(Box<dyn Scorer>);

impl DocSet for ForwardOnlyScorer {
    fn advance(&mut self) -> DocId {
        self.0.advance()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.0.seek(target)
    }

    fn doc(&self) -> DocId {
        self.0.doc()
    }

    fn size_hint(&self) -> u32 {
        self.0.size_hint()
    }

    fn cost(&self) -> u64 {
        self.0.cost()
    }
}

impl Scorer for ForwardOnlyScorer {
    fn score(&mut self) -> Score {
        self.0.score()
    }
}
