//! Facets: counts of the values of the matching documents. All facets of a request are counted in one
//! pass over fast columns.
//!
//! Azure documents no maximum for the number of facets and of facet values (`count:0` requests all). Here
//! the memory limit of the request applies. A column is counted once for all facets that show it, and
//! only values that are shown are kept.
//!
//! `expression` parses facet expressions and `counting` counts within a segment. `answer` adds up the
//! segments and writes JSON, and `best` keeps the first buckets of an order. Nested facets and facets
//! with their own filters are rejected.

mod answer;
mod best;
mod calendar;
mod counting;
mod expression;
#[cfg(test)]
mod tests;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::IndexSchema;
use serde_json::Value;
use tantivy::collector::Collector;
use tantivy::{SegmentOrdinal, SegmentReader};

pub(crate) use self::calendar::CalendarInterval;
pub(crate) use self::expression::FacetExpression;

use self::counting::{FacetCounts, SegmentFacets};
use super::columns::IndexColumns;
use crate::budget::{Budget, JsonBuffer};

/// The maximum number of facets in one request.
const MOST_FACETS: usize = 100;

/// All facets of one request. This collector returns the value of `@search.facets`.
#[derive(Debug, Clone)]
pub(crate) struct RequestFacets {
    /// Each facet with the index of its counts in `counted`.
    facets: Vec<(FacetExpression, usize)>,
    /// What is counted, with the name of its column. Facets that show the same counts in different ways
    /// share an entry.
    counted: Vec<(FacetExpression, String)>,
    budget: Budget,
}

impl RequestFacets {
    /// Parses expressions such as `category,count:5,sort:-value` and checks them against the fields of
    /// the index.
    pub(crate) fn parse<S: AsRef<str>>(
        expressions: &[S],
        schema: &IndexSchema,
        columns: &IndexColumns,
        budget: &Budget,
    ) -> Result<Self, ApiError> {
        if expressions.len() > MOST_FACETS {
            let what = format!(
                "The request has {} facets, but the maximum is {MOST_FACETS}. Send the others in another request.",
                expressions.len()
            );
            return Err(ApiError::parameter("facets", what));
        }
        let mut all = Self { facets: Vec::new(), counted: Vec::new(), budget: budget.clone() };
        for expression in expressions {
            let facet = FacetExpression::parse(expression.as_ref(), schema)?;
            let known = all.counted.iter().position(|(counted, _)| counted.counts_as(&facet));
            let place = match known {
                Some(place) => place,
                None => {
                    let column = columns.for_field(&facet.path).value.ok_or_else(|| {
                        let what = format!("The field '{}' has no values to count.", facet.path);
                        ApiError::parameter("facets", what)
                    })?;
                    let name = columns.schema().get_field_name(column).to_owned();
                    all.counted.push((facet.clone(), name));
                    all.counted.len() - 1
                }
            };
            all.facets.push((facet, place));
        }
        Ok(all)
    }
}

/// The buckets of all facets by the path of their field, as serialized JSON.
#[derive(Debug)]
pub struct FacetLists {
    lists: Vec<(String, JsonBuffer)>,
}

impl FacetLists {
    /// Writes the object of `@search.facets`.
    pub fn write(&self, out: &mut JsonBuffer) {
        out.bytes.push(b'{');
        for (at, (path, list)) in self.lists.iter().enumerate() {
            if at > 0 {
                out.bytes.push(b',');
            }
            out.bytes.extend_from_slice(Value::from(path.as_str()).to_string().as_bytes());
            out.bytes.extend_from_slice(b":[");
            out.bytes.extend_from_slice(&list.bytes);
            out.bytes.push(b']');
            out.account_growth();
        }
        out.bytes.push(b'}');
    }
}

impl Collector for RequestFacets {
    type Fruit = FacetLists;
    type Child = SegmentFacets;

    fn for_segment(&self, _: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<SegmentFacets> {
        SegmentFacets::new(&self.counted, segment, &self.budget)
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    /// Merges the counts of all segments. Two expressions on one field share a list, in the order of
    /// the request.
    fn merge_fruits(&self, segments: Vec<Vec<FacetCounts>>) -> tantivy::Result<FacetLists> {
        let mut counted: Vec<Vec<FacetCounts>> = self.counted.iter().map(|_| Vec::new()).collect();
        for segment in segments {
            for (all, one) in counted.iter_mut().zip(segment) {
                all.push(one);
            }
        }
        let mut lists: Vec<(String, JsonBuffer)> = Vec::new();
        for (facet, place) in &self.facets {
            let at = match lists.iter().position(|(path, _)| *path == facet.path) {
                Some(at) => at,
                None => {
                    lists.push((facet.path.clone(), JsonBuffer::new(&self.budget)));
                    lists.len() - 1
                }
            };
            if let (Some((_, list)), Some(counted)) = (lists.get_mut(at), counted.get(*place)) {
                answer::write_buckets(facet, counted, &self.budget, list)?;
            }
        }
        Ok(FacetLists { lists })
    }
}
