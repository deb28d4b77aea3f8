//! Facets: how many of the found documents have which value, all facets of a request in one pass over fast columns.
//!
//! `expression` reads what the client wrote, `counting` is the work per segment, `answer` adds the segments up and
//! writes JSON. Facets below facets and facets with filters of their own are refused.

mod answer;
mod calendar;
mod counting;
mod expression;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value};
use tantivy::collector::Collector;
use tantivy::{SegmentOrdinal, SegmentReader};

pub use self::calendar::{Calendar, CalendarUnit, render_date};
pub use self::expression::{Facet, FacetKind, Metric, Sort};

use self::counting::{Counted, SegmentFacets};
use super::columns::Columns;
use crate::ApiError;
use crate::definition::Schema;

/// All facets of one request: a collector whose fruit is the value of `@search.facets`.
#[derive(Debug, Clone, PartialEq)]
pub struct Facets {
    facets: Vec<(Facet, String)>,
}

impl Facets {
    /// Reads expressions such as `category,count:5,sort:-value` and checks them against the fields of the index.
    pub fn parse<S: AsRef<str>>(
        expressions: &[S],
        schema: &Schema,
        columns: &Columns,
    ) -> Result<Self, ApiError> {
        let facet = |expression: &S| {
            let facet = Facet::parse(expression.as_ref(), schema)?;
            let column = columns.of(&facet.path).value.ok_or_else(|| {
                let what = format!("The field '{}' has no values that could be counted.", facet.path);
                ApiError::parameter("facets", what)
            })?;
            let name = columns.schema().get_field_name(column).to_owned();
            Ok::<_, ApiError>((facet, name))
        };
        Ok(Self { facets: expressions.iter().map(facet).collect::<Result<_, _>>()? })
    }

    pub fn is_empty(&self) -> bool {
        self.facets.is_empty()
    }
}

impl Collector for Facets {
    type Fruit = Map<String, Value>;
    type Child = SegmentFacets;

    fn for_segment(&self, _: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<SegmentFacets> {
        SegmentFacets::new(&self.facets, segment)
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    /// Two expressions on one field share a list, in the order of the request.
    fn merge_fruits(&self, segments: Vec<Vec<Counted>>) -> tantivy::Result<Map<String, Value>> {
        let mut by_facet: Vec<Vec<Counted>> = self.facets.iter().map(|_| Vec::new()).collect();
        for segment in segments {
            for (all, counted) in by_facet.iter_mut().zip(segment) {
                all.push(counted);
            }
        }
        let mut answer = Map::new();
        for ((facet, _), counted) in self.facets.iter().zip(by_facet) {
            let buckets = answer::buckets(facet, counted)?;
            match answer.get_mut(&facet.path) {
                Some(Value::Array(list)) => list.extend(buckets),
                _ => {
                    answer.insert(facet.path.clone(), Value::Array(buckets));
                }
            }
        }
        Ok(answer)
    }
}
