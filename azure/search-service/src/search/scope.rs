//! The scope of a search: a snapshot of an index, and its synonyms.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::definition::{IndexField, PrimitiveType, ScoringProfile};
use bindpost_azure_search_model::odata::ast::{OdataFilter, TextMatch};
use bindpost_azure_search_model::syntax::synonyms::{CompiledSynonyms, SynonymRules};
use bindpost_azure_search_model::syntax::tree::QueryNode;
use bindpost_azure_search_model::syntax::{MAX_CLAUSES, parse_full, parse_simple};
use tantivy::query::Query;
use tantivy::tokenizer::TokenStream as _;

use crate::budget::Budget;
use crate::engine::filter::{self, FilterScope};
use crate::engine::snapshot::IndexSnapshot;
use crate::engine::text::{BuiltText, MAX_TERMS, SearchField, TextSearch, too_many_terms};

/// The synonym maps of the service by name. Each map is analyzed once for each analyzer that uses it.
#[derive(Default)]
pub struct SynonymMaps {
    maps: Mutex<HashMap<String, Arc<SynonymRules>>>,
    /// Compiled maps by index, map and analyzer. Two indexes may have different analyzers with the same name.
    compiled: Mutex<HashMap<[String; 3], Arc<CompiledSynonyms>>>,
}

impl SynonymMaps {
    /// Sets or removes a map. Later searches use the change.
    pub fn set(&self, name: &str, synonyms: Option<SynonymRules>) {
        let mut maps = self.maps.lock().unwrap_or_else(PoisonError::into_inner);
        match synonyms {
            Some(synonyms) => maps.insert(name.to_owned(), Arc::new(synonyms)),
            None => maps.remove(name),
        };
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).retain(|[_, map, _], _| map != name);
    }

    /// Removes the compiled maps of an index whose analyzers may have changed.
    pub fn forget(&self, index: &str) {
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).retain(|[of, ..], _| of != index);
    }

    /// Returns the compiled synonyms of a field, or `None` if it has none. A missing map is an error,
    /// because results would silently change without it.
    fn compiled_for(
        &self,
        field: &IndexField,
        snapshot: &IndexSnapshot,
    ) -> Result<Option<Arc<CompiledSynonyms>>, ApiError> {
        let (Some(name), Some(analyzer)) = (field.synonym_maps.first(), &field.search_analyzer) else {
            return Ok(None);
        };
        let place = [snapshot.plan.definition.name.clone(), name.clone(), analyzer.clone()];
        if let Some(compiled) = self.compiled.lock().unwrap_or_else(PoisonError::into_inner).get(&place) {
            return Ok(Some(Arc::clone(compiled)));
        }
        let Some(synonyms) = self.maps.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
        else {
            let path = &field.path;
            return Err(ApiError::invalid(format!(
                "The field '{path}' uses the synonym map '{name}', which does not exist. Create it, or remove it from the field."
            )));
        };
        let Some(mut analyzer) = snapshot.plan.analyzers.get(analyzer) else { return Ok(None) };
        let compiled = Arc::new(synonyms.compile(&mut |text| {
            let mut words = Vec::new();
            let mut tokens = analyzer.token_stream(text);
            while let Some(token) = tokens.next() {
                // No search text has this many words in a row, so the alternative can never match.
                if words.len() == MAX_CLAUSES {
                    return Vec::new();
                }
                words.push(token.text.clone());
            }
            words
        }));
        self.compiled.lock().unwrap_or_else(PoisonError::into_inner).insert(place, Arc::clone(&compiled));
        Ok(Some(compiled))
    }
}

pub(crate) struct SearchScope<'a> {
    pub snapshot: &'a IndexSnapshot,
    pub synonyms: &'a SynonymMaps,
    /// The scoring profile, for the weights of fields.
    pub profile: Option<&'a ScoringProfile>,
    pub budget: &'a Budget,
}

impl SearchScope<'_> {
    /// Builds the query of a search text. Empty `fields` select all searchable fields.
    pub(crate) fn text_query(
        &self,
        text: &str,
        fields: &[String],
        full: bool,
        all: bool,
    ) -> Result<BuiltText, ApiError> {
        let schema = &self.snapshot.plan.definition.schema;
        let is_field = |path: &str| schema.find(path).is_some_and(is_text);
        let node = if full { parse_full(text, &is_field)? } else { parse_simple(text)? };
        let leaves = schema.leaves();
        let chosen: Vec<&IndexField> = match fields {
            [] => leaves.into_iter().filter(|field| is_text(field)).collect(),
            paths => {
                let field = |path: &String| schema.find(path).filter(|field| is_text(field));
                let unknown = |path: &String| {
                    ApiError::parameter(
                        "searchFields",
                        format!("'{path}' is not a searchable text field of this index."),
                    )
                };
                paths.iter().map(|path| field(path).ok_or_else(|| unknown(path))).collect::<Result<_, _>>()?
            }
        };
        // The full syntax may name any field.
        let named: Vec<&IndexField> = if full { schema.leaves() } else { chosen.clone() };
        let mut compiled: HashMap<&str, Arc<CompiledSynonyms>> = HashMap::new();
        if node != QueryNode::All {
            for field in named.into_iter().filter(|field| is_text(field)) {
                let synonyms = self.synonyms.compiled_for(field, self.snapshot)?;
                compiled.extend(synonyms.map(|synonyms| (field.path.as_str(), synonyms)));
            }
        }
        let search_field = |field: &'_ IndexField| -> Option<SearchField<'_>> {
            let field = schema.find(&field.path)?;
            Some(SearchField {
                path: &field.path,
                column: self.snapshot.plan.columns.for_field(&field.path).text?,
                weight: self.weight(&field.path),
                analyzer: self.snapshot.plan.analyzers.get(field.search_analyzer.as_deref()?)?,
                synonyms: compiled.get(field.path.as_str()).map(|compiled| &**compiled),
            })
        };
        let fields = chosen.into_iter().filter_map(search_field).collect();
        let others = |path: &str| search_field(schema.find(path)?);
        TextSearch { node: &node, fields, others: &others, all, budget: self.budget }.build()
    }

    /// Builds the query of a filter. Matches score 0, or the score of `search.ismatchscoring`.
    pub(crate) fn filter_query(&self, filter: &OdataFilter) -> Result<Box<dyn Query>, ApiError> {
        let plan = &self.snapshot.plan;
        let normalizer = |path: &str| {
            let name = plan.definition.schema.find(path)?.normalizer.as_deref()?;
            plan.analyzers.normalizer(name)
        };
        // A filter may search for several texts. Together they have the same limit of terms as one
        // search text.
        let terms = Cell::new(0);
        let text = |text: &TextMatch| {
            let built = self.text_query(&text.search, &text.fields, text.full, text.all)?;
            terms.set(terms.get() + built.terms);
            if terms.get() > MAX_TERMS { Err(too_many_terms()) } else { Ok(built.query) }
        };
        let scope = FilterScope {
            schema: &plan.definition.schema,
            columns: &plan.columns,
            documents: &self.snapshot.documents,
            normalizer: &normalizer,
            text: &text,
            budget: self.budget,
        };
        filter::compile(&filter::join_comparisons(filter), &scope)
    }

    fn weight(&self, path: &str) -> f32 {
        let weights = self.profile.map_or(&[][..], |profile| &profile.weights);
        weights.iter().find(|(field, _)| field == path).map_or(1.0, |(_, weight)| *weight as f32)
    }
}

pub(crate) fn is_text(field: &IndexField) -> bool {
    field.searchable && field.vector.is_none() && field.kind.primitive() == Some(PrimitiveType::String)
}
