//! Runs one search and returns the matching documents.

use std::collections::HashMap;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::ScoringProfile;
use bindpost_azure_search_model::odata::{parse_filter, parse_orderby};
use serde_json::Value;
use tantivy::collector::{Count, TopDocs};
use tantivy::query::{AllQuery, BooleanQuery, ConstScoreQuery, Occur, Query, QueryClone};

use super::request::{QuerySyntax, SearchRequest};
use super::scope::SearchScope;
use super::vectors::{self, VectorHits};
use crate::budget::Budget;
use crate::engine::facets::{FacetLists, RequestFacets};
use crate::engine::scoring::{ProfileScorer, ScoringParameters};
use crate::engine::snapshot::IndexSnapshot;
use crate::engine::text::HighlightTerm;
use crate::engine::top::{OrderedTopDocs, SearchHit};
use crate::engine::watch::BudgetCollector;
use crate::search::scope::SynonymMaps;
use crate::vectors::{VectorFilterMode, VectorQuery, WeightedRanking, reciprocal_rank_fusion};

/// The results of a search: one page of documents, the count and the facets.
pub struct SearchResults {
    pub documents: Vec<FoundDocument>,
    /// Whether more documents follow the page.
    pub more: bool,
    /// The number of all matching documents, if requested.
    pub count: Option<u64>,
    pub facets: Option<FacetLists>,
    pub highlight: Vec<HighlightTerm>,
}

pub struct FoundDocument {
    /// The number of the document in the store.
    pub number: u64,
    pub score: f32,
}

/// How many documents of the full-text ranking are fused in a hybrid search.
const FUSED: usize = 1000;
/// The memory of a filter for each byte of its text. `search.in` can have one value for every two bytes.
pub(super) const FILTER_BYTES: usize = 48;
/// With more terms, skipping documents that cannot be among the first costs more than it saves. The
/// budget is also not checked meanwhile.
const MOST_PRUNED_TERMS: usize = 64;

pub fn run(
    request: &SearchRequest,
    snapshot: &IndexSnapshot,
    synonyms: &SynonymMaps,
    budget: &Budget,
) -> Result<SearchResults, ApiError> {
    let plan = &snapshot.plan;
    let definition = &plan.definition;
    let schema = &definition.schema;
    let profile = profile(request, snapshot)?;
    check_semantic(request, snapshot)?;
    let scope = SearchScope { snapshot, synonyms, profile, budget };
    let parameters = ScoringParameters::parse(&request.scoring_parameters)?;
    let scorer = match profile {
        Some(profile) => {
            let now = chrono::Utc::now().timestamp_millis();
            Some(ProfileScorer::new(profile, &parameters, &plan.columns, now)?)
                .filter(|scorer| !scorer.is_empty())
        }
        None => None,
    };
    let order = parse_orderby(request.orderby.as_deref().unwrap_or_default(), schema)?;
    let facets = match request.facets.as_slice() {
        [] => None,
        expressions => Some(RequestFacets::parse(expressions, schema, &plan.columns, budget)?),
    };
    let filter = match request.filter.as_deref().map(str::trim).filter(|filter| !filter.is_empty()) {
        Some(filter) => {
            budget.take_memory(filter.len().saturating_mul(FILTER_BYTES));
            let filter = parse_filter(filter, schema)?;
            Some(CompiledFilter { query: scope.filter_query(&filter)?, scores: filter.scores() })
        }
        None => None,
    };
    let member = |name: &str| request.body.get(name).unwrap_or(&Value::Null);
    let vector_queries = VectorQuery::parse_all(member("vectorQueries"), schema, &plan.vector_search)?;
    let mode = VectorFilterMode::parse(member("vectorFilterMode"))?;

    let search = request.search.as_deref().map(str::trim).unwrap_or_default();
    // A pure vector search returns only the nearest documents, not all documents.
    let only_vectors = !vector_queries.is_empty() && matches!(search, "" | "*");
    let fields: Vec<String> = request
        .search_fields
        .iter()
        .flat_map(|fields| fields.split(','))
        .map(str::trim)
        .filter(|field| !field.is_empty())
        .map(str::to_owned)
        .collect();
    let built = scope.text_query(search, &fields, request.syntax == QuerySyntax::Full, request.all)?;
    let prunes = built.terms <= MOST_PRUNED_TERMS;
    let ask = SearchPlan { snapshot, filter: filter.as_ref(), order: &order, scorer, facets, prunes, budget };

    if vector_queries.is_empty() {
        let mut found =
            ask.run_text(Some(&*built.query), request.skip, request.page_size(), request.count)?;
        found.highlight = built.highlight;
        return Ok(found);
    }
    let nearest =
        vectors::nearest(&vector_queries, mode, &scope, filter.as_ref().map(|filter| &*filter.query))?;
    let text = if only_vectors { None } else { Some(&*built.query) };
    let mut found = ask.run_hybrid(text, &nearest, mode, request)?;
    found.highlight = if only_vectors { Vec::new() } else { built.highlight };
    Ok(found)
}

/// Checks the semantic configuration. It has no effect here, but Azure rejects a name that does not exist.
fn check_semantic(request: &SearchRequest, snapshot: &IndexSnapshot) -> Result<(), ApiError> {
    let Some(name) = &request.semantic_configuration else { return Ok(()) };
    if snapshot.plan.definition.semantic.find(Some(name)).is_some() {
        return Ok(());
    }
    let message = format!("Unknown semantic configuration '{name}': the index does not define it.");
    Err(ApiError::parameter("semanticConfiguration", message))
}

fn profile<'a>(
    request: &SearchRequest,
    snapshot: &'a IndexSnapshot,
) -> Result<Option<&'a ScoringProfile>, ApiError> {
    let definition = &snapshot.plan.definition;
    let Some(name) = request.scoring_profile.as_ref().or(definition.default_scoring_profile.as_ref()) else {
        return Ok(None);
    };
    let found = definition.scoring_profiles.iter().find(|profile| profile.name.eq_ignore_ascii_case(name));
    found.map(Some).ok_or_else(|| {
        let names: Vec<&str> =
            definition.scoring_profiles.iter().map(|profile| profile.name.as_str()).collect();
        let known =
            if names.is_empty() { String::new() } else { format!(" Its profiles are {}.", names.join(", ")) };
        ApiError::parameter("scoringProfile", format!("The index has no scoring profile '{name}'.{known}"))
    })
}

/// The parts that all kinds of searches share.
struct SearchPlan<'a> {
    snapshot: &'a IndexSnapshot,
    filter: Option<&'a CompiledFilter>,
    order: &'a [bindpost_azure_search_model::odata::ast::OrderByClause],
    scorer: Option<ProfileScorer>,
    facets: Option<RequestFacets>,
    /// Whether the first documents by score are found without visiting every matching document.
    prunes: bool,
    budget: &'a Budget,
}

impl SearchPlan<'_> {
    fn run_text(
        self,
        text: Option<&dyn Query>,
        skip: usize,
        page: usize,
        count: bool,
    ) -> Result<SearchResults, ApiError> {
        let query = combined_query(text, self.filter);
        let failed = |error| ApiError::internal("searching", error);
        let searcher = &self.snapshot.searcher;
        // One more document than the page shows whether another page follows.
        let limit = skip.saturating_add(page).saturating_add(1);
        let counting = count.then_some(Count);
        let by_score = self.order.is_empty() && self.scorer.is_none();
        let watch = BudgetCollector(self.budget.clone());
        let (hits, counted, facets) = if page == 0 {
            let (_, counted, facets) =
                searcher.search(&query, &(watch, counting, self.facets)).map_err(failed)?;
            (Vec::new(), counted, facets)
        } else if by_score {
            let top = TopDocs::with_limit(limit).order_by_score();
            let (hits, counted, facets) = if counting.is_none() && self.facets.is_none() && self.prunes {
                // Alone, this collector skips documents that cannot be among the first.
                (searcher.search(&query, &top).map_err(failed)?, None, None)
            } else {
                let all = searcher.search(&query, &(watch, top, counting, self.facets));
                all.map(|(_, hits, counted, facets)| (hits, counted, facets)).map_err(failed)?
            };
            let hits = hits.into_iter().map(|(score, address)| SearchHit { score, address });
            (hits.collect(), counted, facets)
        } else {
            let plan = &self.snapshot.plan;
            let top = OrderedTopDocs::new(
                self.order,
                limit,
                self.scorer,
                &plan.definition.schema,
                &plan.columns,
                self.budget,
            )?;
            let all = searcher.search(&query, &(watch, top, counting, self.facets));
            all.map(|(_, hits, counted, facets)| (hits, counted, facets)).map_err(failed)?
        };
        let more = page > 0 && hits.len() >= limit;
        let documents = hits.into_iter().skip(skip).take(page).filter_map(|hit| {
            Some(FoundDocument { number: self.snapshot.number(hit.address)?, score: hit.score })
        });
        let documents = documents.collect();
        let count = counted.map(|count| count as u64);
        Ok(SearchResults { documents, more, count, facets, highlight: Vec::new() })
    }

    /// Ranks by vectors, and by text if there is one. The result has the documents of all rankings.
    fn run_hybrid(
        self,
        text: Option<&dyn Query>,
        nearest: &[VectorHits],
        mode: VectorFilterMode,
        request: &SearchRequest,
    ) -> Result<SearchResults, ApiError> {
        let failed = |error| ApiError::internal("searching", error);
        let snapshot = self.snapshot;
        let mut scores: HashMap<u64, f32> = HashMap::new();
        let mut rankings: Vec<(Vec<u64>, f32)> = nearest
            .iter()
            .map(|hits| (hits.hits.iter().map(|(number, _)| *number).collect(), hits.weight))
            .collect();
        if let Some(text) = text {
            let query = combined_query(Some(text), self.filter);
            let top = TopDocs::with_limit(FUSED).order_by_score();
            let hits = match self.prunes {
                true => snapshot.searcher.search(&query, &top).map_err(failed)?,
                false => {
                    let watched = (BudgetCollector(self.budget.clone()), top);
                    snapshot.searcher.search(&query, &watched).map_err(failed)?.1
                }
            };
            let numbers = hits.into_iter().filter_map(|(_, address)| snapshot.number(address));
            rankings.push((numbers.collect(), 1.0));
        }
        if let ([only], None) = (nearest, text) {
            // A single ranking keeps its scores.
            scores.extend(only.hits.iter().copied());
        } else {
            let rankings: Vec<WeightedRanking<'_>> = rankings
                .iter()
                .map(|(numbers, weight)| WeightedRanking { numbers, weight: *weight })
                .collect();
            scores.extend(reciprocal_rank_fusion(&rankings));
        }
        let mut ranked: Vec<(u64, f32)> = scores.iter().map(|(number, score)| (*number, *score)).collect();
        ranked.sort_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
        if (mode != VectorFilterMode::PreFilter && self.filter.is_some())
            || !self.order.is_empty()
            || self.facets.is_some()
            || self.scorer.is_some()
        {
            return self.run_ranked(ranked, request);
        }
        let (skip, page) = (request.skip, request.page_size());
        let more = ranked.len() > skip.saturating_add(page);
        let count = request.count.then_some(ranked.len() as u64);
        let documents = ranked.into_iter().skip(skip).take(page);
        let documents = documents.map(|(number, score)| FoundDocument { number, score }).collect();
        Ok(SearchResults { documents, more, count, facets: None, highlight: Vec::new() })
    }

    /// Filters, orders and counts already ranked documents.
    fn run_ranked(self, ranked: Vec<(u64, f32)>, request: &SearchRequest) -> Result<SearchResults, ApiError> {
        let _memory = self.budget.reserve_memory(ranked.len().saturating_mul(vectors::KNOWN_BYTES));
        let known = vectors::known_documents(&ranked, &self.snapshot.plan.columns);
        let (skip, page) = (request.skip, request.page_size());
        let ordered = !self.order.is_empty() || self.scorer.is_some();
        if ordered {
            return self.run_text(Some(&known), skip, page, request.count);
        }
        // All documents are read, so that the ranking can be kept.
        let rest = SearchPlan {
            snapshot: self.snapshot,
            filter: self.filter,
            order: &[],
            scorer: None,
            facets: self.facets,
            prunes: false,
            budget: self.budget,
        };
        let mut found = rest.run_text(Some(&known), 0, ranked.len().max(1), request.count)?;
        let ranks: HashMap<u64, usize> =
            ranked.iter().enumerate().map(|(rank, (number, _))| (*number, rank)).collect();
        found.documents.sort_by_key(|document| ranks.get(&document.number).copied().unwrap_or(usize::MAX));
        found.more = found.documents.len() > skip.saturating_add(page);
        found.documents = found.documents.into_iter().skip(skip).take(page).collect();
        let scores: HashMap<u64, f32> = ranked.into_iter().collect();
        for document in &mut found.documents {
            document.score = scores.get(&document.number).copied().unwrap_or(document.score);
        }
        Ok(found)
    }
}

fn combined_query(text: Option<&dyn Query>, filter: Option<&CompiledFilter>) -> Box<dyn Query> {
    let Some(filter) = filter else {
        return text.map_or_else(|| Box::new(AllQuery) as _, QueryClone::box_clone);
    };
    let text = match text.filter(|text| !text.is::<AllQuery>()) {
        Some(text) => text.box_clone(),
        // tantivy removes a match-all query from a conjunction, together with its score of 1.
        None => {
            let one = Box::new(ConstScoreQuery::new(filter.query.box_clone(), 1.0));
            if !filter.scores {
                return one;
            }
            one
        }
    };
    Box::new(BooleanQuery::new(vec![(Occur::Must, text), (Occur::Must, filter.query.box_clone())]))
}

/// The compiled `$filter`.
struct CompiledFilter {
    query: Box<dyn Query>,
    scores: bool,
}
