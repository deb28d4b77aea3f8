//! `test`: runs judged queries, on an embedded service with the sample documents or on another service.

mod offline;
pub(crate) mod query;

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::checks::{CheckOutcome, CheckReport, CheckSuite, SuiteCheck};
use super::failure::CodeError;
use super::folder::{JUDGEMENTS, SETTINGS, SearchFolder};
use super::kinds::CodeKind;
use super::settings::{RelevanceMinimum, RelevanceTarget};
use super::{RunControl, files, print};
use crate::service::client::{SearchClient, odata_key};
use crate::tools::evaluate::measure::{RankingMeasures, ScoredHit, measure};
use crate::tools::index_change::copy::send_with_retry;
use crate::tools::index_change::fields;
use offline::OfflineService;
use query::QueryCheck;

/// Default number of hits that are measured.
const DEFAULT_K: usize = 10;
/// Number of further hits to read, to tell the rank of a document that is behind the others.
const BEYOND: usize = 10;
/// Smaller differences are rounding errors.
const SAME: f64 = 1e-9;
/// Maximum number of queries and hits that a text lists.
const LISTED: usize = 5;

/// Options of [`test_folder`].
#[derive(Clone, Debug, Default)]
pub struct RelevanceOptions {
    /// Names of judged files; none runs all.
    pub only: Vec<String>,
    /// Runs the queries on this service instead of the embedded one. Nothing is changed there.
    pub service: Option<SearchClient>,
}

impl RelevanceOptions {
    fn includes(&self, name: &String) -> bool {
        self.only.is_empty() || self.only.contains(name)
    }
}

/// Runs the judged queries of a folder.
pub async fn test_folder(
    folder: &SearchFolder,
    options: &RelevanceOptions,
    control: &RunControl,
) -> Result<CheckReport, CodeError> {
    if let Some(unknown) = options.only.iter().find(|name| !folder.judged.contains_key(*name)) {
        return Err(CodeError::Refused(format!(
            "{JUDGEMENTS}/{unknown}.jsonl: no such file\n  fix: use one of {}",
            folder.judged.keys().cloned().collect::<Vec<_>>().join(", ")
        )));
    }
    let mut report = CheckReport { title: "Search test".to_owned(), ..CheckReport::default() };
    let judged: Vec<(&String, &Vec<QueryCheck>)> =
        folder.judged.iter().filter(|(name, _)| options.includes(name)).collect();
    let indexes: BTreeSet<&str> = judged.iter().map(|(name, _)| tested_index(folder, name)).collect();
    let offline = match &options.service {
        Some(_) => None,
        None => Some(OfflineService::start(folder, &indexes, &mut report, control).await?),
    };
    let total: usize = judged.iter().map(|(_, queries)| queries.len()).sum();
    let mut done = 0;
    for (name, queries) in judged {
        let index = tested_index(folder, name);
        let suite = TestSuite {
            name,
            index,
            queries,
            target: folder.settings.tests.get(name).cloned().unwrap_or_default(),
            client: options.service.as_ref().or(offline.as_ref().map(OfflineService::client)),
            key: key(folder, index),
            unready: offline.as_ref().and_then(|offline| offline.unready(index)),
        };
        let progress = |place: usize| {
            control.report("queries", (done + place) as u64, Some(total as u64), "queries");
            control.check_stopped()
        };
        report.suites.push(suite.run(&mut report.notes, &progress).await?);
        done += queries.len();
    }
    if folder.judged.is_empty() {
        report.notes.push(format!(
            "there are no judged queries: write them to {JUDGEMENTS}/INDEX.jsonl, or begin with bindpost search pull DIR \
             --documents N"
        ));
    }
    if let Some(offline) = offline {
        offline.stop().await;
    }
    Ok(report)
}

/// Runs the judged queries and writes what they reach to `search.json`, as the lowest acceptable means.
pub async fn accept(
    folder: &mut SearchFolder,
    options: &RelevanceOptions,
    control: &RunControl,
) -> Result<CheckReport, CodeError> {
    let mut settings = folder.settings.clone();
    for name in folder.judged.keys().filter(|name| options.includes(name)) {
        settings.tests.entry(name.clone()).or_default().minimum = RelevanceMinimum::default();
    }
    folder.settings = settings;
    let mut report = test_folder(folder, options, control).await?;
    if report.has_failures() {
        report.notes.push("nothing was accepted, because other checks failed".to_owned());
        return Ok(report);
    }
    for suite in &report.suites {
        let Some(target) = folder.settings.tests.get_mut(&suite.name) else { continue };
        // Rounded down, so that the same measures pass.
        let reached = |name: &str| {
            let mean = suite.measures.iter().find(|(known, _)| *known == name);
            mean.map(|(_, mean)| (mean * 1000.0).floor() / 1000.0)
        };
        target.minimum = RelevanceMinimum {
            ndcg: reached("ndcg"),
            recall: reached("recall"),
            precision: None,
            mrr: reached("mrr"),
        };
    }
    let text = serde_json::to_value(&folder.settings).map(|json| print::readable(&json)).unwrap_or_default();
    files::replace(&folder.root.join(SETTINGS), text.as_bytes())?;
    report.notes.push(format!("what was reached is now required: see tests in {SETTINGS}"));
    Ok(report)
}

/// Returns the index of a file of judged queries.
fn tested_index<'a>(folder: &'a SearchFolder, name: &'a str) -> &'a str {
    folder.settings.tests.get(name).and_then(|target| target.index.as_deref()).unwrap_or(name)
}

fn key(folder: &SearchFolder, index: &str) -> Option<String> {
    let definition = folder.get(CodeKind::Index, index)?;
    fields::key(&fields::all(definition)).map(|key| key.path.clone())
}

/// The judged queries of one file.
struct TestSuite<'a> {
    name: &'a str,
    index: &'a str,
    queries: &'a [QueryCheck],
    target: RelevanceTarget,
    client: Option<&'a SearchClient>,
    /// The key field of the index.
    key: Option<String>,
    /// Why the queries cannot run.
    unready: Option<String>,
}

impl TestSuite<'_> {
    async fn run(
        &self,
        notes: &mut Vec<String>,
        progress: &(dyn Fn(usize) -> Result<(), CodeError> + Sync),
    ) -> Result<CheckSuite, CodeError> {
        let mut suite = CheckSuite { name: self.name.to_owned(), ..CheckSuite::default() };
        let mut push = |name: String, outcome: CheckOutcome, details: String| {
            suite.checks.push(SuiteCheck { name, outcome, details });
        };
        let (Some(client), Some(key)) = (self.client, &self.key) else {
            let why = format!(
                "indexes/{}.json does not exist, or has no key\n  fix: rename the file of queries to that of its index, or set \
                 tests.{}.index in {SETTINGS}",
                self.index, self.name
            );
            push("queries".to_owned(), CheckOutcome::Failed(why), String::new());
            return Ok(suite);
        };
        if let Some(why) = &self.unready {
            push("queries".to_owned(), CheckOutcome::Failed(why.clone()), String::new());
            return Ok(suite);
        }
        let k = self.target.k.unwrap_or(DEFAULT_K).max(1);
        let mut measured: Vec<Option<RankingMeasures>> = Vec::new();
        for (place, query) in self.queries.iter().enumerate() {
            progress(place)?;
            let name = query.name(place + 1);
            let found = match self.search(client, key, query, k).await? {
                Ok(found) => found,
                Err(why) => {
                    push(name, CheckOutcome::Failed(why), String::new());
                    measured.push(None);
                    continue;
                }
            };
            notes.extend(found.note.filter(|note| !notes.contains(note)));
            let measures = measure(&found.hits, &query.judgements, k);
            if let Some((outcome, details)) = judge(query, &found.hits, &measures, k) {
                push(name, outcome, details);
            }
            measured.push(Some(measures));
        }
        progress(self.queries.len())?;
        let means = means(&measured);
        for (name, minimum) in self.target.minimum.named() {
            let Some(minimum) = minimum else { continue };
            let mean = means.iter().find(|(known, _)| *known == name).map(|(_, mean)| *mean);
            let check = format!("{name}@{k}");
            match mean {
                Some(mean) if mean + SAME >= minimum => {
                    push(check, CheckOutcome::Passed, format!("{mean:.3}, at least {minimum}"));
                }
                Some(mean) => {
                    let why = format!(
                        "{check} is {mean:.3}, but {SETTINGS} requires {minimum}{}",
                        worst(self.queries, &measured)
                    );
                    push(check, CheckOutcome::Failed(why), String::new());
                }
                None => {
                    let why = "no query has a relevant document".to_owned();
                    push(check, CheckOutcome::Failed(why), String::new());
                }
            }
        }
        if self.target.minimum.is_empty() && measured.iter().flatten().any(|one| one.ndcg.is_some()) {
            notes.push(format!(
                "{}: no minimum is set, so nDCG and recall are not checked; bindpost search test DIR --accept sets them",
                self.name
            ));
        }
        suite.measures = means;
        Ok(suite)
    }

    /// Runs a query. Returns why the service refused it, if it did.
    async fn search(
        &self,
        client: &SearchClient,
        key: &str,
        query: &QueryCheck,
        k: usize,
    ) -> Result<Result<FoundHits, String>, CodeError> {
        let mut body = Map::from_iter([("search".to_owned(), json!(query.search))]);
        body.extend(self.target.parameters.clone());
        body.extend(query.parameters.clone());
        body.insert("select".to_owned(), json!(key));
        body.insert("top".to_owned(), json!(k + BEYOND));
        let path = format!("indexes{}/docs/search.post.search", odata_key(self.index));
        let sent = send_with_retry(|| client.post(path.clone(), Value::Object(body.clone()))).await;
        let answer = match sent {
            Ok(answer) => answer.body,
            Err(failure) if failure.status == Some(400) => {
                return Ok(Err(format!("the service refused the query: {}", failure.message)));
            }
            Err(failure) => {
                return Err(CodeError::service(format!("a query of {}", self.index))(failure));
            }
        };
        let is_partial = answer.get("@search.semanticPartialResponseReason").is_some();
        let note = is_partial.then(|| {
            "the service did not rank semantically, so results of keywords and vectors were measured"
                .to_owned()
        });
        let documents = answer.get("value").and_then(Value::as_array).into_iter().flatten();
        let hits = documents.filter_map(|document| {
            let score = document.get("@search.rerankerScore").filter(|score| score.is_number());
            let score = score.or(document.get("@search.score")).and_then(Value::as_f64).unwrap_or_default();
            Some(ScoredHit { key: document.get(key)?.as_str()?.to_owned(), score })
        });
        Ok(Ok(FoundHits { hits: hits.collect(), note }))
    }
}

/// The hits of a query.
struct FoundHits {
    hits: Vec<ScoredHit>,
    note: Option<String>,
}

/// Checks what a query expects of its own. Returns `None` if it expects nothing.
fn judge(
    query: &QueryCheck,
    hits: &[ScoredHit],
    measures: &RankingMeasures,
    k: usize,
) -> Option<(CheckOutcome, String)> {
    if query.expect.is_empty() && query.reject.is_empty() && query.minimum.is_empty() {
        return None;
    }
    let rank = |key: &str| hits.iter().position(|hit| hit.key == key).map(|place| place + 1);
    let mut problems = Vec::new();
    for (key, limit) in &query.expect {
        let limit = limit.unwrap_or(k);
        match rank(key) {
            Some(rank) if rank <= limit => {}
            Some(rank) => {
                problems.push(format!("{key} is hit {rank}, but must be among the first {limit}"));
            }
            None => problems.push(format!("{key} is not found, but must be among the first {limit}")),
        }
    }
    for key in &query.reject {
        if let Some(rank) = rank(key).filter(|rank| *rank <= k) {
            problems.push(format!("{key} is hit {rank}, but must not be among the first {k}"));
        }
    }
    let reached = [
        ("ndcg", measures.ndcg),
        ("recall", measures.recall),
        ("precision", Some(measures.precision)),
        ("mrr", measures.reciprocal_rank),
    ];
    for (name, minimum) in query.minimum.named() {
        let Some(minimum) = minimum else { continue };
        let value = reached
            .iter()
            .find(|(known, _)| *known == name)
            .and_then(|(_, value)| *value)
            .unwrap_or_default();
        if value + SAME < minimum {
            problems.push(format!("{name}@{k} is {value:.3}, but must be at least {minimum}"));
        }
    }
    if problems.is_empty() {
        return Some((CheckOutcome::Passed, format!("\"{}\"", query.search)));
    }
    let first: Vec<&str> = hits.iter().take(LISTED).map(|hit| hit.key.as_str()).collect();
    Some((
        CheckOutcome::Failed(format!("\"{}\": {}", query.search, problems.join("; "))),
        format!("first hits: {}", first.join(", ")),
    ))
}

/// Returns the means of all queries that have the measure.
fn means(measured: &[Option<RankingMeasures>]) -> Vec<(&'static str, f64)> {
    let mean = |value: fn(&RankingMeasures) -> Option<f64>| {
        let values: Vec<f64> = measured.iter().flatten().filter_map(value).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let means = [
        ("ndcg", mean(|one| one.ndcg)),
        ("recall", mean(|one| one.recall)),
        ("precision", mean(|one| one.ndcg.map(|_| one.precision))),
        ("mrr", mean(|one| one.reciprocal_rank)),
    ];
    means.into_iter().filter_map(|(name, mean)| Some((name, mean?))).collect()
}

/// Names the queries with the lowest nDCG.
fn worst(queries: &[QueryCheck], measured: &[Option<RankingMeasures>]) -> String {
    let mut worst: Vec<(String, f64)> = queries
        .iter()
        .zip(measured)
        .enumerate()
        .filter_map(|(place, (query, one))| Some((query.name(place + 1), one.as_ref()?.ndcg?)))
        .filter(|(_, ndcg)| *ndcg < 1.0)
        .collect();
    worst.sort_by(|one, other| one.1.total_cmp(&other.1));
    let named: Vec<String> =
        worst.iter().take(LISTED).map(|(name, ndcg)| format!("{name} ({ndcg:.3})")).collect();
    if named.is_empty() { String::new() } else { format!("\nlowest nDCG: {}", named.join(", ")) }
}
