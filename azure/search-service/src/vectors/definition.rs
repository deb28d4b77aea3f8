//! The `vectorSearch` part of an index definition, and the vector fields that refer to it.

use std::collections::HashSet;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::VectorAttributes;
use bindpost_net_json::{JsonPlace, ObjectReader};
use serde_json::Value;

use super::metric::VectorMetric;
use super::set::VectorSettings;
use super::value::vector_length;
use crate::indexers::parse_duration;

/// The largest `truncationDimension`.
const MOST_DIMENSIONS: usize = 4096;

/// An object of `vectorSearch` or of a vector query, at a path such as `vectorSearch.profiles[0]`.
pub(super) type VectorObject<'a> = ObjectReader<'a, ApiError>;

/// A valid `vectorSearch`: every name that a profile refers to exists.
///
/// Only the names of compressions and vectorizers are kept. Vectors are always stored in full precision,
/// so a compression has no effect. A vectorizer needs a model, and this service calls none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct VectorSearch {
    pub algorithms: Vec<VectorAlgorithm>,
    pub profiles: Vec<VectorProfile>,
    pub compressions: Vec<String>,
    pub vectorizers: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorAlgorithm {
    pub name: String,
    pub metric: VectorMetric,
    pub kind: AlgorithmKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlgorithmKind {
    Hnsw(HnswParameters),
    ExhaustiveKnn,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HnswParameters {
    pub m: usize,
    pub ef_construction: usize,
    pub ef_search: usize,
}

impl Default for HnswParameters {
    fn default() -> Self {
        Self { m: 4, ef_construction: 400, ef_search: 500 }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorProfile {
    pub name: String,
    pub algorithm: String,
    pub compression: Option<String>,
    pub vectorizer: Option<String>,
}

impl VectorSearch {
    /// Parses the value of `vectorSearch`. Null is an empty one.
    pub fn parse(value: &Value) -> Result<Self, ApiError> {
        if value.is_null() {
            return Ok(Self::default());
        }
        let members = VectorObject::new(value, JsonPlace::at("vectorSearch"))?;
        members.allow_only(&["profiles", "algorithms", "vectorizers", "compressions"])?;
        let search = Self {
            algorithms: members.objects("algorithms")?.iter().map(algorithm).collect::<Result<_, _>>()?,
            profiles: members.objects("profiles")?.iter().map(profile).collect::<Result<_, _>>()?,
            compressions: members
                .objects("compressions")?
                .iter()
                .map(compression)
                .collect::<Result<_, _>>()?,
            vectorizers: members.objects("vectorizers")?.iter().map(vectorizer).collect::<Result<_, _>>()?,
        };
        search.check_names()?;
        Ok(search)
    }

    pub fn profile(&self, name: &str) -> Option<&VectorProfile> {
        self.profiles.iter().find(|profile| profile.name == name)
    }

    /// Returns the algorithm of a field. A field that has passed [`VectorSearch::check`] has one.
    pub fn algorithm(&self, field: &VectorAttributes) -> Option<&VectorAlgorithm> {
        let profile = self.profile(&field.profile)?;
        self.algorithms.iter().find(|algorithm| algorithm.name == profile.algorithm)
    }

    /// Returns the settings of a [`super::VectorSet`] for the field.
    pub fn settings(&self, field: &VectorAttributes) -> Option<VectorSettings> {
        let algorithm = self.algorithm(field)?;
        let hnsw = match algorithm.kind {
            AlgorithmKind::Hnsw(parameters) => Some(parameters),
            AlgorithmKind::ExhaustiveKnn => None,
        };
        Some(VectorSettings { metric: algorithm.metric, length: vector_length(field), hnsw })
    }

    /// Checks that the profile of a field exists, and that its metric fits its encoding.
    pub fn check(&self, path: &str, field: &VectorAttributes) -> Result<(), ApiError> {
        let refuse = |message: String| Err(ApiError::invalid(format!("The field '{path}' {message}")));
        let Some(algorithm) = self.algorithm(field) else {
            let known = names(self.profiles.iter().map(|profile| profile.name.as_str()));
            let profile = &field.profile;
            return refuse(format!(
                "refers to the vector search profile '{profile}', which does not exist. The index defines {known}."
            ));
        };
        if field.packed_bits != (algorithm.metric == VectorMetric::Hamming) {
            return refuse(format!(
                "uses the algorithm '{}'. The metric hamming requires packed bits, and packed bits require the metric hamming.",
                algorithm.name
            ));
        }
        Ok(())
    }

    fn check_names(&self) -> Result<(), ApiError> {
        let algorithms: Vec<&str> = self.algorithms.iter().map(|algorithm| algorithm.name.as_str()).collect();
        let profiles: Vec<&str> = self.profiles.iter().map(|profile| profile.name.as_str()).collect();
        let compressions: Vec<&str> = self.compressions.iter().map(String::as_str).collect();
        let vectorizers: Vec<&str> = self.vectorizers.iter().map(String::as_str).collect();
        for (list, names) in [
            ("algorithms", &algorithms),
            ("profiles", &profiles),
            ("compressions", &compressions),
            ("vectorizers", &vectorizers),
        ] {
            let mut seen = HashSet::new();
            if let Some(name) = names.iter().find(|&&name| !seen.insert(name)) {
                let message =
                    format!("'vectorSearch.{list}' has two members named '{name}'. Names must be unique.");
                return Err(ApiError::invalid(message));
            }
        }
        for profile in &self.profiles {
            for (what, name, known) in [
                ("algorithm", Some(&profile.algorithm), &algorithms),
                ("compression", profile.compression.as_ref(), &compressions),
                ("vectorizer", profile.vectorizer.as_ref(), &vectorizers),
            ] {
                if let Some(name) = name.filter(|name| !known.contains(&name.as_str())) {
                    return Err(ApiError::invalid(format!(
                        "The vector search profile '{}' refers to the {what} '{name}', which 'vectorSearch.{what}s' does not \
                         define. The index defines {}.",
                        profile.name,
                        names(known.iter().copied())
                    )));
                }
            }
        }
        Ok(())
    }
}

fn algorithm(members: &VectorObject<'_>) -> Result<VectorAlgorithm, ApiError> {
    members.allow_only(&["name", "kind", "hnswParameters", "exhaustiveKnnParameters"])?;
    let name = members.required_text("name")?.to_owned();
    match members.required_text("kind")? {
        "hnsw" => {
            let mut hnsw = HnswParameters::default();
            let Some(parameters) = members.object("hnswParameters")? else {
                return Ok(VectorAlgorithm {
                    name,
                    metric: VectorMetric::default(),
                    kind: AlgorithmKind::Hnsw(hnsw),
                });
            };
            parameters.allow_only(&["m", "efConstruction", "efSearch", "metric"])?;
            hnsw.m = parameters.integer_in("m", 4..=10)?.unwrap_or(hnsw.m);
            hnsw.ef_construction =
                parameters.integer_in("efConstruction", 100..=1000)?.unwrap_or(hnsw.ef_construction);
            hnsw.ef_search = parameters.integer_in("efSearch", 100..=1000)?.unwrap_or(hnsw.ef_search);
            Ok(VectorAlgorithm { name, metric: metric(&parameters)?, kind: AlgorithmKind::Hnsw(hnsw) })
        }
        "exhaustiveKnn" => {
            let metric = match members.object("exhaustiveKnnParameters")? {
                Some(parameters) => {
                    parameters.allow_only(&["metric"])?;
                    metric(&parameters)?
                }
                None => VectorMetric::default(),
            };
            Ok(VectorAlgorithm { name, metric, kind: AlgorithmKind::ExhaustiveKnn })
        }
        other => Err(members.error("kind", format_args!("must be hnsw or exhaustiveKnn, not '{other}'"))),
    }
}

fn metric(parameters: &VectorObject<'_>) -> Result<VectorMetric, ApiError> {
    let Some(name) = parameters.text("metric")? else { return Ok(VectorMetric::default()) };
    VectorMetric::parse(name).ok_or_else(|| {
        parameters.error("metric", format_args!("must be {}, not '{name}'", VectorMetric::NAMES))
    })
}

fn profile(members: &VectorObject<'_>) -> Result<VectorProfile, ApiError> {
    members.allow_only(&["name", "algorithm", "compression", "vectorizer"])?;
    let text = |name| Ok::<_, ApiError>(members.text(name)?.map(str::to_owned));
    Ok(VectorProfile {
        name: members.required_text("name")?.to_owned(),
        algorithm: members.required_text("algorithm")?.to_owned(),
        compression: text("compression")?,
        vectorizer: text("vectorizer")?,
    })
}

fn compression(members: &VectorObject<'_>) -> Result<String, ApiError> {
    let name = members.required_text("name")?.to_owned();
    let kinds = [("scalarQuantization", true), ("binaryQuantization", false)];
    let scalar = members.choice("kind", &kinds)?.ok_or_else(|| members.missing("kind"))?;
    members.allow_only(&[
        "name",
        "kind",
        "rerankWithOriginalVectors",
        "defaultOversampling",
        "rescoringOptions",
        "truncationDimension",
        "scalarQuantizationParameters",
    ])?;
    if !scalar && members.value("scalarQuantizationParameters").is_some() {
        return Err(members.error("scalarQuantizationParameters", "is only for the kind scalarQuantization"));
    }
    members.boolean("rerankWithOriginalVectors")?;
    oversampling(members)?;
    members.integer_in("truncationDimension", 2..=MOST_DIMENSIONS)?;
    let rescoring = members.object_or_empty("rescoringOptions")?;
    rescoring.allow_only(&["enableRescoring", "defaultOversampling", "rescoreStorageMethod"])?;
    rescoring.boolean("enableRescoring")?;
    oversampling(&rescoring)?;
    rescoring.choice("rescoreStorageMethod", &[("preserveOriginals", ()), ("discardOriginals", ())])?;
    let quantization = members.object_or_empty("scalarQuantizationParameters")?;
    quantization.allow_only(&["quantizedDataType"])?;
    quantization.choice("quantizedDataType", &[("int8", ())])?;
    Ok(name)
}

fn oversampling(given: &VectorObject<'_>) -> Result<(), ApiError> {
    match given.number("defaultOversampling")? {
        Some(factor) if factor < 1.0 => {
            Err(given.error("defaultOversampling", format_args!("must be 1 or more, not {factor}")))
        }
        _ => Ok(()),
    }
}

/// The kinds of vectorizers: the member with their parameters, and the names of these. Vectorizers are never called.
const VECTORIZERS: [(&str, (&str, &[&str])); 4] = [
    (
        "azureOpenAI",
        ("azureOpenAIParameters", &["resourceUri", "deploymentId", "apiKey", "authIdentity", "modelName"]),
    ),
    (
        "customWebApi",
        (
            "customWebApiParameters",
            &["uri", "httpHeaders", "httpMethod", "timeout", "authResourceId", "authIdentity"],
        ),
    ),
    (
        "aiServicesVision",
        ("aiServicesVisionParameters", &["modelVersion", "resourceUri", "apiKey", "authIdentity"]),
    ),
    ("aml", ("amlParameters", &["uri", "key", "resourceId", "timeout", "region", "modelName"])),
];

fn vectorizer(members: &VectorObject<'_>) -> Result<String, ApiError> {
    let name = members.required_text("name")?.to_owned();
    let (member, known) = members.choice("kind", &VECTORIZERS)?.ok_or_else(|| members.missing("kind"))?;
    // Azure returns the parameters of the other kinds as null.
    let others =
        VECTORIZERS.iter().map(|(_, (other, _))| *other).filter(|other| members.value(other).is_none());
    members.allow_only(&["name", "kind", member].into_iter().chain(others).collect::<Vec<_>>())?;
    let parameters = members.object_or_empty(member)?;
    parameters.allow_only(known)?;
    for name in known {
        match *name {
            "authIdentity" | "httpHeaders" => parameters.object(name).map(drop)?,
            "timeout" => {
                let wrong = |text: &&str| parse_duration(text).is_none();
                if let Some(text) = parameters.text(name)?.filter(wrong) {
                    let problem = format_args!("must be a duration such as 'PT30S', not '{text}'");
                    return Err(parameters.error(name, problem));
                }
            }
            _ => parameters.text(name).map(drop)?,
        }
    }
    Ok(name)
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.map(|name| format!("'{name}'")).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
#[path = "definition_tests.rs"]
mod tests;
