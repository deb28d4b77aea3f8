//! Vector search: definitions, queries, distances and the search for the nearest vectors.
//!
//! [`VectorSet`] holds all vectors of one field and is changed by batches. A search uses a [`VectorView`] of
//! it. Small sets are scanned. For large sets, [`VectorSet::maintain`] builds graphs in the background.

mod bytes;
mod definition;
mod fuse;
mod hnsw;
mod metric;
mod points;
mod query;
mod segment;
mod set;
mod value;
mod view;

pub(crate) use bytes::{decode_into, encode};
pub(crate) use definition::VectorSearch;
pub(crate) use fuse::{WeightedRanking, reciprocal_rank_fusion};
pub(crate) use query::{VectorFilterMode, VectorQuery};
pub(crate) use set::VectorSet;
pub(crate) use view::{AllowedDocuments, NearestQuery, VectorView};
