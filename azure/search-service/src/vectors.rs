//! Vector search: definitions, queries, distances and the search for the nearest vectors.
//!
//! [`VectorSet`] holds all vectors of one field and is changed by batches. A search uses a [`VectorView`] of
//! it. Small sets are scanned. For large sets, [`VectorSet::maintain`] builds graphs in the background.

mod bytes;
mod definition;
mod fuse;
mod hnsw;
mod members;
mod metric;
mod points;
mod query;
mod segment;
mod set;
mod value;
mod view;

pub use bytes::{decode, decode_into, encode};
pub use definition::{AlgorithmKind, HnswParameters, VectorAlgorithm, VectorProfile, VectorSearch};
pub use fuse::{WeightedRanking, reciprocal_rank_fusion};
pub use metric::VectorMetric;
pub use query::{VectorFilterMode, VectorQuery, VectorThreshold};
pub use set::{VectorBatch, VectorSet, VectorSettings};
pub use value::{parse_vector, vector_length};
pub use view::{AllowedDocuments, NearestQuery, VectorView};
