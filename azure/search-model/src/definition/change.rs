//! Which changes an index update may make, and what they require of the engine.

use http::StatusCode;
use serde_json::Value;

use super::field::IndexField;
use super::fields::type_name;
use super::index::{ANALYSIS, IndexDefinition};
use crate::ApiError;

/// The work that the engine has to do after an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexUpdateKind {
    Nothing,
    /// Only settings that are read per request have changed, such as scoring profiles, synonym maps and CORS.
    Settings,
    /// Columns have changed. Every stored document must be read and indexed again.
    Rebuild,
}

/// Compares two definitions of one index. `downtime` is `allowIndexDowntime` of the request.
pub fn compare_definitions(
    old: &IndexDefinition,
    new: &IndexDefinition,
    downtime: bool,
) -> Result<IndexUpdateKind, ApiError> {
    if old.json == new.json {
        return Ok(IndexUpdateKind::Nothing);
    }
    let mut rebuild = fields(old.schema.fields(), new.schema.fields())?;
    rebuild |= analysis(&old.json, &new.json, downtime)?;
    similarity(&old.json, &new.json, downtime)?;
    rebuild |= suggesters(old, new)?;
    // Vectors are organized by their algorithm. A new structure is built from the stored vectors.
    rebuild |= old.json.get("vectorSearch") != new.json.get("vectorSearch");
    Ok(if rebuild { IndexUpdateKind::Rebuild } else { IndexUpdateKind::Settings })
}

fn not_allowed(code: &'static str, message: String) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "OperationNotAllowed", message.clone()).with_detail(code, message)
}

/// Returns whether the columns differ. Existing fields must not change.
fn fields(old: &[IndexField], new: &[IndexField]) -> Result<bool, ApiError> {
    let mut differ = old.len() != new.len();
    for (at, before) in old.iter().enumerate() {
        let Some(place) = new.iter().position(|field| field.name == before.name) else {
            return Err(not_allowed(
                "CannotChangeExistingField",
                format!(
                    "Existing field '{}' cannot be deleted. Keep it in the definition, or create a new index without it.",
                    before.path
                ),
            ));
        };
        // Documents are stored in the order of the fields.
        differ |= place != at;
        if let Some(after) = new.get(place) {
            check_unchanged(before, after)?;
            differ |= fields(&before.fields, &after.fields)?;
        }
    }
    Ok(differ)
}

fn check_unchanged(old: &IndexField, new: &IndexField) -> Result<(), ApiError> {
    let flag = |flag: bool| flag.to_string();
    let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "none".to_owned());
    let number = |field: &IndexField| field.vector.as_ref().map_or(0, |vector| vector.dimensions).to_string();
    let compared = [
        ("type", type_name(old.kind).to_owned(), type_name(new.kind).to_owned()),
        ("key", flag(old.key), flag(new.key)),
        ("searchable", flag(old.searchable), flag(new.searchable)),
        ("filterable", flag(old.filterable), flag(new.filterable)),
        ("sortable", flag(old.sortable), flag(new.sortable)),
        ("facetable", flag(old.facetable), flag(new.facetable)),
        ("stored", flag(old.stored), flag(new.stored)),
        ("indexing analyzer", name(&old.index_analyzer), name(&new.index_analyzer)),
        ("normalizer", name(&old.normalizer), name(&new.normalizer)),
        ("dimensions", number(old), number(new)),
    ];
    match compared.into_iter().find(|(_, before, after)| before != after) {
        None => Ok(()),
        Some((attribute, before, after)) => Err(not_allowed(
            "CannotChangeExistingField",
            format!(
                "Existing field '{}' cannot be changed. Its {attribute} is {before}, and the update has {after}. Add a new field, or create a new index.",
                old.path
            ),
        )),
    }
}

/// Returns whether custom analysis has additions. Existing components must not change, because
/// documents were analyzed with them.
fn analysis(old: &Value, new: &Value, downtime: bool) -> Result<bool, ApiError> {
    let mut grown = false;
    for part in ANALYSIS {
        let (before, after) = (elements(old, part), elements(new, part));
        for element in before {
            let name = name_of(element);
            match after.iter().find(|other| name_of(other) == name) {
                Some(same) if same == element => {}
                found => {
                    let done = if found.is_some() { "changed" } else { "deleted" };
                    return Err(not_allowed(
                        "CannotChangeExistingAnalysis",
                        format!(
                            "'{name}' of '{part}' cannot be {done} in an existing index. Add one under a new name, or create a new index."
                        ),
                    ));
                }
            }
        }
        if let Some(added) =
            after.iter().find(|element| !before.iter().any(|old| name_of(old) == name_of(element)))
        {
            if !downtime {
                return Err(not_allowed(
                    "IndexDowntimeNeeded",
                    format!(
                        "'{}' cannot be added to '{part}' while the index is online. Send the update with allowIndexDowntime=true.",
                        name_of(added)
                    ),
                ));
            }
            grown = true;
        }
    }
    Ok(grown)
}

fn elements<'a>(json: &'a Value, part: &str) -> &'a [Value] {
    json.get(part).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn name_of(element: &Value) -> &str {
    element.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn similarity(old: &Value, new: &Value, downtime: bool) -> Result<(), ApiError> {
    if old.get("similarity") == new.get("similarity") || downtime {
        return Ok(());
    }
    Err(not_allowed(
        "IndexDowntimeNeeded",
        "'similarity' cannot be changed while the index is online. Send the update with allowIndexDowntime=true."
            .to_owned(),
    ))
}

/// Returns whether suggesters differ. A suggester column must exist from the first document on, so only
/// new fields can be added to a suggester.
fn suggesters(old: &IndexDefinition, new: &IndexDefinition) -> Result<bool, ApiError> {
    let known = old.suggester_paths();
    for path in new.suggester_paths() {
        if !known.contains(&path) && old.schema.find(&path).is_some() {
            return Err(not_allowed(
                "CannotChangeSuggester",
                format!(
                    "Existing field '{path}' cannot be added to a suggester. Only fields that are new in the same update can."
                ),
            ));
        }
    }
    Ok(known != new.suggester_paths())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn base() -> Value {
        json!({"name": "hotels", "fields": [
            {"name": "id", "type": "Edm.String", "key": true},
            {"name": "title", "type": "Edm.String", "indexAnalyzer": "simple", "searchAnalyzer": "simple"},
            {"name": "address", "type": "Edm.ComplexType", "fields": [{"name": "city", "type": "Edm.String"}]}
        ]})
    }

    /// Applies an edit to the base definition and compares.
    fn after(downtime: bool, edit: impl FnOnce(&mut Value)) -> Result<IndexUpdateKind, ApiError> {
        let mut new = base();
        edit(&mut new);
        let [old, new] = [base(), new].map(|json| IndexDefinition::parse(&json).unwrap());
        compare_definitions(&old, &new, downtime)
    }

    #[test]
    fn an_identical_update_changes_nothing() {
        assert_eq!(after(false, |_| {}), Ok(IndexUpdateKind::Nothing));
        assert_eq!(
            after(false, |new| new["fields"][0]["sortable"] = json!(true)),
            Ok(IndexUpdateKind::Nothing)
        );
    }

    #[test]
    fn settings_change_freely() {
        let edits: [fn(&mut Value); 6] = [
            |new| new["fields"][1]["retrievable"] = json!(false),
            |new| new["fields"][1]["searchAnalyzer"] = json!("stop"),
            |new| new["fields"][1]["synonymMaps"] = json!(["m"]),
            |new| new["scoringProfiles"] = json!([{"name": "p"}]),
            |new| new["corsOptions"] = json!({"allowedOrigins": ["*"]}),
            |new| new["description"] = json!("text"),
        ];
        for edit in edits {
            assert_eq!(after(false, edit), Ok(IndexUpdateKind::Settings));
        }
    }

    #[test]
    fn new_fields_at_any_depth_need_a_rebuild() {
        let field = json!({"name": "new", "type": "Edm.Int32"});
        let at_root = after(false, |new| new["fields"].as_array_mut().unwrap().push(field.clone()));
        assert_eq!(at_root, Ok(IndexUpdateKind::Rebuild));
        let below = after(false, |new| new["fields"][2]["fields"].as_array_mut().unwrap().push(field));
        assert_eq!(below, Ok(IndexUpdateKind::Rebuild));
    }

    #[test]
    fn existing_fields_cannot_change() {
        let error =
            after(false, |new| new["fields"][2]["fields"][0]["filterable"] = json!(false)).unwrap_err();
        assert_eq!((error.status.as_u16(), error.code), (400, "OperationNotAllowed"));
        assert_eq!(error.details[0].code, "CannotChangeExistingField");
        assert!(error.message.starts_with("Existing field 'address/city' cannot be changed."), "{error}");
        assert!(error.message.contains("filterable"), "{error}");
        let analyzer = after(true, |new| new["fields"][1]["indexAnalyzer"] = json!("stop")).unwrap_err();
        assert!(analyzer.message.contains("analyzer is simple"), "{analyzer}");
        let gone = after(true, |new| drop(new["fields"].as_array_mut().unwrap().remove(1))).unwrap_err();
        assert!(gone.message.contains("'title' cannot be deleted"), "{gone}");
    }

    #[test]
    fn analysis_grows_only_with_downtime() {
        let add = |new: &mut Value| new["tokenizers"] = json!([{"name": "t"}]);
        assert!(after(false, add).unwrap_err().message.contains("allowIndexDowntime"));
        assert_eq!(after(true, add), Ok(IndexUpdateKind::Rebuild));
        let similarity = |new: &mut Value| {
            new["similarity"] = json!({"@odata.type": "#Microsoft.Azure.Search.BM25Similarity", "k1": 1.0});
        };
        assert!(after(false, similarity).unwrap_err().message.contains("allowIndexDowntime"));
        assert_eq!(after(true, similarity), Ok(IndexUpdateKind::Settings));
    }

    #[test]
    fn only_new_fields_can_be_added_to_a_suggester() {
        let old = |new: &mut Value| new["suggesters"] = json!([{"name": "s", "sourceFields": ["title"]}]);
        assert!(after(false, old).unwrap_err().message.contains("'title'"));
        let fresh = |new: &mut Value| {
            new["fields"].as_array_mut().unwrap().push(json!({"name": "new", "type": "Edm.String"}));
            new["suggesters"] = json!([{"name": "s", "sourceFields": ["new"]}]);
        };
        assert_eq!(after(false, fresh), Ok(IndexUpdateKind::Rebuild));
    }
}
