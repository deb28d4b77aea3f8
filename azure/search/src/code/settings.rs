//! `search.json`: the settings of a folder.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The settings of a folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FolderSettings {
    /// The version of the format.
    pub(crate) version: u32,
    /// The API version that the definitions were written for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api_version: Option<String>,
    /// Whether new indexes are created as versions behind aliases of their names.
    #[serde(default = "yes")]
    pub(crate) behind_aliases: bool,
    /// What the judged queries must reach, by the names of their files.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) tests: BTreeMap<String, RelevanceTarget>,
}

fn yes() -> bool {
    true
}

impl Default for FolderSettings {
    fn default() -> Self {
        FolderSettings { version: 1, api_version: None, behind_aliases: true, tests: BTreeMap::new() }
    }
}

/// What the queries of a file must reach.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct RelevanceTarget {
    /// The index, if the file has another name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) index: Option<String>,
    /// Number of hits that are measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) k: Option<usize>,
    /// The lowest acceptable means.
    #[serde(default, skip_serializing_if = "RelevanceMinimum::is_empty")]
    pub(crate) minimum: RelevanceMinimum,
    /// Search parameters of all queries.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) parameters: Map<String, Value>,
}

/// The lowest acceptable measures.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RelevanceMinimum {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ndcg: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) recall: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) precision: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) mrr: Option<f64>,
}

impl RelevanceMinimum {
    pub(crate) fn is_empty(&self) -> bool {
        self.named().iter().all(|(_, minimum)| minimum.is_none())
    }

    /// Returns all measures with their names.
    pub(crate) fn named(&self) -> [(&'static str, Option<f64>); 4] {
        [("ndcg", self.ndcg), ("recall", self.recall), ("precision", self.precision), ("mrr", self.mrr)]
    }
}
