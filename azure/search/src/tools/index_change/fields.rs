//! The fields of a definition, each with its path and explicit defaults.

use serde_json::Value;

const STRING: &str = "Edm.String";
const DEFAULT_ANALYZER: &str = "standard.lucene";
const VECTORS: [&str; 5] = [
    "Collection(Edm.Single)",
    "Collection(Edm.Half)",
    "Collection(Edm.Int16)",
    "Collection(Edm.SByte)",
    "Collection(Edm.Byte)",
];

/// One field or subfield.
#[derive(Clone, Debug)]
pub(crate) struct DefinitionField {
    /// The path with slashes: `address/city`.
    pub(crate) path: String,
    pub(crate) json: Value,
    /// Whether a document may have several values.
    multiple: bool,
}

/// Returns all fields of a definition. Subfields follow their parents.
pub(crate) fn all(definition: &Value) -> Vec<DefinitionField> {
    let mut fields = Vec::new();
    collect(definition, "", false, &mut fields);
    fields
}

fn collect(level: &Value, above: &str, multiple: bool, fields: &mut Vec<DefinitionField>) {
    for json in level.get("fields").and_then(Value::as_array).into_iter().flatten() {
        let Some(name) = json.get("name").and_then(Value::as_str) else { continue };
        let path = if above.is_empty() { name.to_owned() } else { format!("{above}/{name}") };
        let field = DefinitionField { multiple, path, json: json.clone() };
        let multiple = multiple || field.kind().starts_with("Collection(");
        let path = field.path.clone();
        fields.push(field);
        collect(json, &path, multiple, fields);
    }
}

/// Returns the key field.
pub(crate) fn key(fields: &[DefinitionField]) -> Option<&DefinitionField> {
    fields.iter().find(|field| field.flag("key"))
}

impl DefinitionField {
    pub(crate) fn kind(&self) -> &str {
        self.text("type").unwrap_or_default()
    }

    pub(crate) fn is_complex(&self) -> bool {
        self.kind().ends_with("Edm.ComplexType") || self.kind() == "Collection(Edm.ComplexType)"
    }

    pub(crate) fn is_vector(&self) -> bool {
        VECTORS.contains(&self.kind())
    }

    fn is_text(&self) -> bool {
        matches!(self.kind(), STRING | "Collection(Edm.String)")
    }

    pub(crate) fn text(&self, member: &str) -> Option<&str> {
        self.json.get(member).and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Returns a boolean attribute, with the default of the field's type.
    pub(crate) fn flag(&self, attribute: &str) -> bool {
        if let Some(said) = self.json.get(attribute).and_then(Value::as_bool) {
            return said;
        }
        let is_plain = !self.is_vector() && !self.is_complex();
        match attribute {
            "searchable" => self.is_text() || self.is_vector(),
            "filterable" => is_plain,
            "sortable" => is_plain && !self.multiple && !self.kind().starts_with("Collection("),
            "facetable" => is_plain && !self.kind().contains("GeographyPoint"),
            "retrievable" => !self.is_vector(),
            "stored" => true,
            _ => false,
        }
    }

    /// Returns the analyzer for documents or for queries.
    pub(crate) fn analyzer(&self, of: &str) -> Option<&str> {
        let is_analyzed = self.is_text() && self.flag("searchable");
        is_analyzed.then(|| self.text(of).or_else(|| self.text("analyzer")).unwrap_or(DEFAULT_ANALYZER))
    }
}
