//! tantivy queries and collectors that check the budget of a request.

use tantivy::collector::{Collector, SegmentCollector};
use tantivy::query::{EnableScoring, Explanation, Query, QueryClone as _, Scorer, Weight};
use tantivy::{DocId, Score, SegmentOrdinal, SegmentReader, Term};

use crate::budget::Budget;

/// A collector that checks the budget at every collected document.
pub(crate) struct BudgetCollector(pub Budget);

impl Collector for BudgetCollector {
    type Fruit = ();
    type Child = Self;

    fn for_segment(&self, _: SegmentOrdinal, _: &SegmentReader) -> tantivy::Result<Self> {
        self.0.check();
        Ok(Self(self.0.clone()))
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, _: Vec<()>) -> tantivy::Result<()> {
        Ok(())
    }
}

impl SegmentCollector for BudgetCollector {
    type Fruit = ();

    fn collect(&mut self, _: DocId, _: Score) {
        self.0.check();
    }

    fn collect_block(&mut self, _: &[DocId]) {
        self.0.check();
    }

    fn harvest(self) {}
}

/// Wraps a query. The budget is checked before a segment is opened, because a part of a filter may then
/// read a whole column.
#[derive(Debug)]
pub(crate) struct BudgetedQuery {
    query: Box<dyn Query>,
    budget: Budget,
}

impl BudgetedQuery {
    pub(crate) fn new(query: impl Query, budget: &Budget) -> Self {
        Self { query: Box::new(query), budget: budget.clone() }
    }
}

impl Clone for BudgetedQuery {
    fn clone(&self) -> Self {
        Self { query: self.query.box_clone(), budget: self.budget.clone() }
    }
}

impl Query for BudgetedQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        self.budget.check();
        Ok(Box::new(BudgetedWeight { weight: self.query.weight(scoring)?, budget: self.budget.clone() }))
    }

    fn query_terms<'a>(&'a self, visitor: &mut dyn FnMut(&'a Term, bool)) {
        self.query.query_terms(visitor);
    }
}

struct BudgetedWeight {
    weight: Box<dyn Weight>,
    budget: Budget,
}

impl Weight for BudgetedWeight {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        self.budget.check();
        self.weight.scorer(segment, boost)
    }

    fn explain(&self, segment: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        self.weight.explain(segment, doc)
    }

    fn count(&self, segment: &SegmentReader) -> tantivy::Result<u32> {
        self.budget.check();
        self.weight.count(segment)
    }

    fn for_each(
        &self,
        segment: &SegmentReader,
        callback: &mut dyn FnMut(DocId, Score),
    ) -> tantivy::Result<()> {
        self.budget.check();
        self.weight.for_each(segment, callback)
    }

    fn for_each_no_score(
        &self,
        segment: &SegmentReader,
        callback: &mut dyn FnMut(&[DocId]),
    ) -> tantivy::Result<()> {
        self.budget.check();
        self.weight.for_each_no_score(segment, callback)
    }
}
