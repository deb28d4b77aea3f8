//! Converts schemas of any document version to JSON Schema 2020-12 with
//! `#/$defs/NAME`, for both directions.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::names::{DefinitionNames, definitions_of};
use super::{is_alias, reference_to};
use crate::document::sources::{SourceLocation, SourceSet};

/// The maximum length of a chain of definitions that depend on each other. A deeper one stays a reference.
const MAX_CHAIN: usize = 100;
/// The maximum number of warnings.
const MAX_WARNINGS: usize = 200;

/// Normalises the schemas of a document while it is read.
pub(crate) struct SchemaNormaliser {
    pub(crate) sources: SourceSet,
    pub(super) names: DefinitionNames,
    /// Definitions that are normalised.
    pub(super) done: BTreeMap<String, Value>,
    /// Definitions that are being normalised, outermost first.
    pub(super) doing: Vec<String>,
    waiting: Vec<String>,
    /// Facts about a definition that are not in its schema.
    pub(super) facts: HashMap<String, InheritanceFacts>,
    references: HashMap<(usize, String), Option<String>>,
    pub(super) patterns: HashMap<String, bool>,
    /// The number of members copied by merging. It is limited, because definitions can be written to copy
    /// without end.
    pub(super) copied: usize,
    depth: usize,
    warned: HashSet<String>,
    unsaid: usize,
}

/// Facts about a definition that inheritance needs.
#[derive(Default)]
pub(super) struct InheritanceFacts {
    /// The definitions that it extends.
    pub(super) parents: Vec<String>,
    /// The value of `x-ms-discriminator-value`.
    pub(super) value: Option<String>,
}

/// The location of a schema, for messages.
pub(crate) struct SchemaPath<'a> {
    spot: &'a SourceLocation,
    up: Option<&'a SchemaPath<'a>>,
    token: &'a str,
}

impl<'a> SchemaPath<'a> {
    pub(crate) fn new(spot: &'a SourceLocation) -> SchemaPath<'a> {
        SchemaPath { spot, up: None, token: "" }
    }

    pub(crate) fn down(&'a self, token: &'a str) -> SchemaPath<'a> {
        SchemaPath { spot: self.spot, up: Some(self), token }
    }

    pub(crate) fn file(&self) -> usize {
        self.spot.file
    }

    fn is_top(&self) -> bool {
        self.up.is_none()
    }

    pub(crate) fn spot(&self) -> SourceLocation {
        let mut tokens = Vec::new();
        let mut trail = self;
        while let Some(up) = trail.up {
            tokens.push(trail.token.to_owned());
            trail = up;
        }
        tokens.reverse();
        let mut spot = self.spot.clone();
        spot.pointer.extend(tokens);
        spot
    }
}

impl SchemaNormaliser {
    pub(crate) fn new(sources: SourceSet) -> SchemaNormaliser {
        let names = DefinitionNames::of_roots(&sources);
        let waiting = names.all();
        SchemaNormaliser {
            sources,
            names,
            done: BTreeMap::new(),
            doing: Vec::new(),
            waiting,
            facts: HashMap::new(),
            references: HashMap::new(),
            patterns: HashMap::new(),
            copied: 0,
            depth: 0,
            warned: HashSet::new(),
            unsaid: 0,
        }
    }

    /// Adds a warning once.
    pub(crate) fn warn(&mut self, spot: &SourceLocation, problem: &str) {
        let key = format!("{}:{problem}", spot.file);
        if self.warned.contains(&key) {
            return;
        }
        if self.warned.len() >= MAX_WARNINGS {
            self.unsaid += 1;
            return;
        }
        self.warned.insert(key);
        let place = self.sources.describe(spot);
        self.sources.warnings.push(format!("{place}: {problem}"));
    }

    /// Returns all warnings so far.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        let mut warnings = std::mem::take(&mut self.sources.warnings);
        if self.unsaid > 0 {
            warnings.push(format!("and {} more warnings", self.unsaid));
        }
        warnings
    }

    /// Cuts cycles without content and returns a warning for each. See [`super::cycles`].
    pub(crate) fn cut_cycles(&mut self) -> Vec<String> {
        let places: Vec<String> = super::cycles::cut_cycles(&mut self.done)
            .into_iter()
            .map(|name| match self.names.spot(&name) {
                Some(spot) if spot.file != usize::MAX => self.sources.describe(spot),
                _ => name,
            })
            .collect();
        let problem = "its definition leads back to itself without content, so any value is accepted; describe its type";
        places.into_iter().map(|place| format!("{place}: {problem}")).collect()
    }

    /// Returns the finished definitions.
    pub(crate) fn take_definitions(&mut self) -> BTreeMap<String, Value> {
        std::mem::take(&mut self.done)
    }

    /// Normalises every definition that was named or referenced.
    pub(crate) fn define_all(&mut self) {
        let mut scanned: HashSet<usize> = self.sources.roots().iter().copied().collect();
        loop {
            while let Some(name) = self.waiting.pop() {
                self.define(&name);
            }
            // A file that is only referenced may contain subtypes of known definitions.
            for file in (0..self.sources.len()).filter(|file| scanned.insert(*file)) {
                for spot in definitions_of(&self.sources, file) {
                    let extends = |value: &Value| value.get("allOf").is_some_and(Value::is_array);
                    if self.sources.value(&spot).is_some_and(extends) {
                        let name = self.names.name_for(&spot);
                        self.waiting.push(name);
                    }
                }
            }
            if self.waiting.is_empty() {
                return;
            }
        }
    }

    /// Returns the normalised definition. Normalises it now if possible.
    pub(super) fn normalised_definition(&mut self, name: &str) -> Option<&Value> {
        if !self.done.contains_key(name) {
            if self.depth > MAX_CHAIN || self.doing.iter().any(|doing| doing == name) {
                return None;
            }
            self.define(name);
        }
        self.done.get(name)
    }

    fn define(&mut self, name: &str) {
        if self.done.contains_key(name) || self.doing.iter().any(|doing| doing == name) {
            return;
        }
        let Some(spot) = self.names.spot(name).cloned() else { return };
        let Some(file) = self.sources.file(spot.file).map(|source| source.value.clone()) else { return };
        let found = spot.pointer.iter().try_fold(&*file, |value, token| match value {
            Value::Array(items) => token.parse::<usize>().ok().and_then(|index| items.get(index)),
            value => value.get(token),
        });
        self.doing.push(name.to_owned());
        let facts = found.map(|value| self.facts_of(value, spot.file)).unwrap_or_default();
        self.facts.insert(name.to_owned(), facts);
        let schema = found.map_or(Value::Bool(true), |value| self.normalise(value, &SchemaPath::new(&spot)));
        // Members may be added to a definition, so it must be an object.
        let schema = match schema {
            Value::Bool(true) => json!({}),
            Value::Bool(false) => json!({"not": {}}),
            schema => schema,
        };
        self.done.insert(name.to_owned(), schema);
        self.doing.pop();
    }

    fn facts_of(&mut self, value: &Value, file: usize) -> InheritanceFacts {
        let parts = value.get("allOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        let references: Vec<String> =
            parts.iter().filter_map(crate::document::sources::reference_of).map(str::to_owned).collect();
        let spot = SourceLocation { file, pointer: Vec::new() };
        let trail = SchemaPath::new(&spot);
        let parents = references
            .iter()
            .filter_map(|reference| self.definition_of_reference(reference, &trail))
            .collect();
        let value = match value.get("x-ms-discriminator-value") {
            Some(Value::String(value)) => Some(value.clone()),
            Some(Value::Number(value)) => Some(value.to_string()),
            _ => None,
        };
        InheritanceFacts { parents, value }
    }

    /// Returns the name of the definition that a reference leads to. The reason for an error is returned
    /// only once.
    fn resolve(&mut self, file: usize, reference: &str) -> Result<String, Option<String>> {
        let key = (file, reference.to_owned());
        if let Some(known) = self.references.get(&key) {
            return known.clone().ok_or(None);
        }
        let target = self.sources.resolve_reference(file, reference);
        let found = target.and_then(|target| self.sources.find(&target));
        match found {
            Ok(spot) => {
                let name = self.names.name_for(&spot);
                if !self.done.contains_key(&name) {
                    self.waiting.push(name.clone());
                }
                self.references.insert(key, Some(name.clone()));
                Ok(name)
            }
            Err(reason) => {
                self.references.insert(key, None);
                Err(Some(reason))
            }
        }
    }

    /// Returns the definition of a reference. Adds a warning if it cannot be resolved.
    pub(super) fn definition_of_reference(
        &mut self,
        reference: &str,
        trail: &SchemaPath<'_>,
    ) -> Option<String> {
        match self.resolve(trail.file(), reference) {
            Ok(name) => Some(name),
            Err(Some(reason)) => {
                self.warn(&trail.spot(), &format!("`{reference}` accepts any value: {reason}"));
                None
            }
            // The warning was added at the first occurrence.
            Err(None) => None,
        }
    }

    /// Normalises a schema. A value that is not a schema accepts anything.
    pub(crate) fn normalise(&mut self, value: &Value, trail: &SchemaPath<'_>) -> Value {
        self.depth += 1;
        let schema = match value {
            Value::Bool(_) => value.clone(),
            Value::Object(members) => self.object(members, trail),
            _ => {
                self.warn(&trail.spot(), "this is not a schema, so any value is accepted; write an object");
                json!({})
            }
        };
        self.depth -= 1;
        schema
    }

    fn object(&mut self, members: &Map<String, Value>, trail: &SchemaPath<'_>) -> Value {
        let is_nullable =
            ["nullable", "x-nullable"].into_iter().any(|key| members.get(key) == Some(&Value::Bool(true)));
        let mut schema = match members.get("$ref") {
            Some(Value::String(reference)) => {
                let mut schema = match self.definition_of_reference(reference, trail) {
                    Some(name) => reference_to(&name),
                    None => json!({}),
                };
                if let Some(schema) = schema.as_object_mut() {
                    // Before 3.1, members beside a reference are ignored, but many documents write
                    // descriptions there.
                    if self.allows_siblings(trail.file()) {
                        self.keywords(members, schema, trail);
                    } else {
                        self.annotations(members, schema);
                    }
                }
                schema
            }
            _ => {
                let mut schema = Map::new();
                self.keywords(members, &mut schema, trail);
                Value::Object(schema)
            }
        };
        if let Some(Value::Array(parts)) = members.get("allOf") {
            let takes_siblings = !members.contains_key("$ref") || self.allows_siblings(trail.file());
            if takes_siblings && let Value::Object(own) = schema {
                let within = trail.down("allOf");
                let parts = parts
                    .iter()
                    .enumerate()
                    .map(|(index, part)| self.normalise(part, &within.down(&index.to_string())))
                    .collect();
                schema = self.all_of(own, parts, trail.is_top() && !self.doing.is_empty());
            }
        }
        if is_nullable { nullable(schema) } else { schema }
    }

    fn allows_siblings(&self, file: usize) -> bool {
        let version = self.sources.file(file).and_then(|source| source.value.get("openapi"));
        version.is_some_and(|version| match version {
            Value::String(version) => version.starts_with("3.1") || version.starts_with("3.2"),
            Value::Number(version) => version.as_f64().is_some_and(|version| version > 3.05),
            _ => false,
        })
    }
}

/// Returns a schema that also allows null.
pub(super) fn nullable(schema: Value) -> Value {
    let Value::Object(mut members) = schema else { return schema };
    let null = || json!({"type": "null"});
    let has_type = members.contains_key("type");
    match members.get_mut("type") {
        Some(Value::Array(types)) if types.iter().any(|kind| kind == "null") => {}
        Some(Value::Array(types)) => types.push(json!("null")),
        Some(kind) if kind != "null" => *kind = json!([kind.clone(), "null"]),
        _ => {}
    }
    if let Some(Value::Array(values)) = members.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    let needs_choice =
        ["$ref", "allOf", "oneOf", "anyOf", "const", "not"].into_iter().any(|key| members.contains_key(key));
    if !needs_choice {
        return Value::Object(members);
    }
    if !has_type && !members.contains_key("discriminator") && !is_alias(&Value::Object(members.clone())) {
        for key in ["anyOf", "oneOf"] {
            if members.len() == 1
                && let Some(Value::Array(choices)) = members.get_mut(key)
            {
                choices.push(null());
                return Value::Object(members);
            }
        }
    }
    let mut outer = Map::new();
    for key in super::ANNOTATIONS {
        if let Some(value) = members.remove(key) {
            outer.insert(key.to_owned(), value);
        }
    }
    outer.insert("anyOf".to_owned(), Value::Array(vec![Value::Object(members), null()]));
    Value::Object(outer)
}
