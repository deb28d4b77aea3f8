//! Discriminators: the subtypes of a definition and the values that select them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::{Map, Value, json};

use super::normalise::SchemaNormaliser;
use super::{is_alias, reference_to, referenced_definition};
use crate::document::Document;

/// A subtype of a definition with a discriminator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subtype {
    /// The value of the discriminator property for this subtype.
    pub value: String,
    /// The name of its definition.
    pub definition: String,
}

impl Document {
    /// Returns the subtypes of a definition. The list is empty if it has no discriminator.
    pub fn subtypes(&self, name: &str) -> Vec<Subtype> {
        let Some(schema) = self.definitions.get(name) else { return Vec::new() };
        let Some(property) = property_of(schema) else { return Vec::new() };
        let choices = ["oneOf", "anyOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
        let mut subtypes = Vec::new();
        for choice in choices.flatten() {
            let Some(definition) = referenced_definition(choice) else { continue };
            let said = allowed_values(choice, property);
            let said = said.or_else(|| allowed_values(self.definitions.get(definition)?, property));
            for value in said.unwrap_or_else(|| vec![definition.to_owned()]) {
                subtypes.push(Subtype { value, definition: definition.to_owned() });
            }
        }
        subtypes
    }
}

fn property_of(schema: &Value) -> Option<&str> {
    schema.get("discriminator")?.get("propertyName")?.as_str()
}

/// Returns the values that a schema allows for a member, if it restricts them.
fn allowed_values(schema: &Value, property: &str) -> Option<Vec<String>> {
    let member = schema.get("properties")?.get(property)?;
    let word = |value: &Value| match value {
        Value::String(word) => Some(word.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    };
    match (member.get("const"), member.get("enum")) {
        (Some(value), _) => word(value).map(|value| vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().filter_map(word).collect()),
        _ => None,
    }
}

/// The inheritance between definitions.
struct InheritanceGraph {
    children: HashMap<String, Vec<String>>,
}

impl InheritanceGraph {
    /// Returns all definitions that extend a definition, at any depth.
    fn descendants(&self, name: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut open = vec![name.to_owned()];
        while let Some(next) = open.pop() {
            for child in self.children.get(&next).into_iter().flatten() {
                if child != name && found.insert(child.clone()) {
                    open.push(child.clone());
                }
            }
        }
        found
    }
}

/// A definition with a discriminator and subtypes.
struct DiscriminatedUnion {
    property: String,
    /// The subtypes with their values.
    subtypes: Vec<(String, Vec<String>)>,
    /// Its own values, if it can occur itself.
    own: Vec<String>,
}

impl SchemaNormaliser {
    /// Replaces every definition with a discriminator by a choice of its subtypes.
    pub(crate) fn expand_discriminators(&mut self) {
        let family = self.inheritance_graph();
        let unions = self.unions(&family);
        let mut itself: HashMap<String, String> = HashMap::new();
        for name in unions.keys() {
            let made = self.names.generate_name(&format!("{name}.itself"));
            itself.insert(name.clone(), made);
        }
        // Definitions with an explicit choice also have a plain part, which their subtypes extend.
        let chosen: Vec<String> = self
            .done
            .iter()
            .filter(|(name, schema)| has_choice(schema) && !family.descendants(name).is_empty())
            .map(|(name, _)| name.clone())
            .collect();
        for name in &chosen {
            let made = self.names.generate_name(&format!("{name}.itself"));
            itself.insert(name.clone(), made);
        }
        self.write_discriminator_values(&unions);
        self.extend_plain_parts(&itself);
        for (name, union) in &unions {
            let Some(plain) = self.done.get(name).cloned() else { continue };
            let mut choices = Vec::new();
            for (subtype, values) in &union.subtypes {
                let target = itself.get(subtype).filter(|_| unions.contains_key(subtype)).unwrap_or(subtype);
                choices.push(self.choice(target, &union.property, values));
            }
            let own = itself.get(name).cloned().unwrap_or_default();
            if !union.own.is_empty() {
                choices.push(self.choice(&own, &union.property, &union.own));
            }
            let mut schema = Map::new();
            for key in ["title", "description"] {
                if let Some(text) = plain.get(key) {
                    schema.insert(key.to_owned(), text.clone());
                }
            }
            schema.insert("discriminator".to_owned(), json!({"propertyName": union.property}));
            schema.insert("oneOf".to_owned(), Value::Array(choices));
            self.done.insert(name.clone(), Value::Object(schema));
        }
        for (name, schema) in &mut self.done {
            if !unions.contains_key(name)
                && !has_choice(schema)
                && let Some(members) = schema.as_object_mut()
            {
                members.remove("discriminator");
            }
        }
        let unfinished = self.done.iter().filter(|(_, schema)| mentions_discriminator(schema));
        let unfinished: Vec<(String, Value)> =
            unfinished.map(|(name, schema)| (name.clone(), schema.clone())).collect();
        for (name, mut schema) in unfinished {
            self.finish(&mut schema);
            self.done.insert(name, schema);
        }
        self.remove_unused_parts(&itself);
    }

    /// Plain parts are created for all definitions that may need them. Unused ones are removed.
    fn remove_unused_parts(&mut self, itself: &HashMap<String, String>) {
        let mut used = BTreeSet::new();
        for schema in self.done.values() {
            collect_references(schema, &mut used);
        }
        for made in itself.values().filter(|made| !used.contains(*made)) {
            self.done.remove(made);
        }
    }

    fn inheritance_graph(&self) -> InheritanceGraph {
        let mut children: HashMap<String, Vec<String>> = HashMap::new();
        let mut names: Vec<&String> = self.facts.keys().collect();
        names.sort();
        for name in names {
            let Some(facts) = self.facts.get(name) else { continue };
            for parent in &facts.parents {
                children.entry(self.without_alias(parent)).or_default().push(name.clone());
            }
        }
        InheritanceGraph { children }
    }

    fn without_alias(&self, name: &str) -> String {
        let mut name = name;
        for _ in 0..8 {
            match self.done.get(name) {
                Some(schema) if is_alias(schema) => name = referenced_definition(schema).unwrap_or(name),
                _ => break,
            }
        }
        name.to_owned()
    }

    fn unions(&self, family: &InheritanceGraph) -> BTreeMap<String, DiscriminatedUnion> {
        let mut unions = BTreeMap::new();
        for (name, schema) in &self.done {
            let Some(property) = property_of(schema) else { continue };
            if has_choice(schema) {
                continue;
            }
            let mut mapped: HashMap<String, Vec<String>> = HashMap::new();
            let mapping =
                schema.get("discriminator").and_then(|found| found.get("mapping")).and_then(Value::as_object);
            for (value, target) in mapping.into_iter().flatten() {
                if let Some(target) = referenced_definition(target) {
                    mapped.entry(self.without_alias(target)).or_default().push(value.clone());
                }
            }
            let mut members = family.descendants(name);
            members.extend(mapped.keys().filter(|target| *target != name).cloned());
            let said = |name: &str| self.facts.get(name).and_then(|facts| facts.value.clone());
            let any_said = said(name).is_some() || members.iter().any(|member| said(member).is_some());
            let values_of = |member: &str| -> Vec<String> {
                let has_children = family.children.contains_key(member);
                if let Some(value) = said(member) {
                    return vec![value];
                }
                if let Some(values) = mapped.get(member) {
                    return values.clone();
                }
                let told = self.done.get(member).and_then(|schema| allowed_values(schema, property));
                let original = self.names.original(member);
                match told {
                    Some(values) if values.len() == 1 => values,
                    // A name that is not in the list of values is not a value.
                    Some(values) if !values.contains(&original) => Vec::new(),
                    _ if any_said || (!mapped.is_empty() && has_children) => Vec::new(),
                    _ => vec![original],
                }
            };
            // A member that others extend includes them in turn.
            let standing = members.iter().filter(|member| {
                family.children.contains_key(*member)
                    && self.done.get(*member).is_some_and(|schema| property_of(schema).is_none())
            });
            let mut bases: Vec<(String, BTreeSet<String>)> =
                standing.map(|member| (member.clone(), family.descendants(member))).collect();
            bases.push((name.clone(), members.clone()));
            for (base, members) in bases {
                let subtypes: Vec<(String, Vec<String>)> = members
                    .iter()
                    .filter(|member| **member != base)
                    .map(|member| (member.clone(), values_of(member)))
                    .filter(|(member, values)| {
                        !values.is_empty() || (!any_said && !family.children.contains_key(member))
                    })
                    .collect();
                if subtypes.is_empty() {
                    continue;
                }
                let own = if mapped.is_empty() || base != *name {
                    values_of(&base)
                } else {
                    mapped.get(&base).cloned().unwrap_or_default()
                };
                unions.insert(base, DiscriminatedUnion { property: property.to_owned(), subtypes, own });
            }
        }
        unions
    }

    /// Writes its discriminator value into each subtype.
    fn write_discriminator_values(&mut self, unions: &BTreeMap<String, DiscriminatedUnion>) {
        for (name, union) in unions {
            let own = [(name.clone(), union.own.clone())];
            for (subtype, values) in union.subtypes.iter().chain(&own) {
                let Some(Value::Object(schema)) = self.done.get_mut(subtype) else { continue };
                if values.is_empty() || !schema.contains_key("properties") || schema.contains_key("allOf") {
                    continue;
                }
                require_values(schema, &union.property, values);
            }
        }
    }

    /// A subtype that could not be merged extends the plain part, because the definition itself became a
    /// choice of its subtypes.
    fn extend_plain_parts(&mut self, itself: &HashMap<String, String>) {
        for (name, made) in itself {
            let Some(Value::Object(mut plain)) = self.done.get(name).cloned() else { continue };
            if plain.remove("discriminator").is_some() {
                plain.remove("oneOf");
                plain.remove("anyOf");
            }
            self.done.insert(made.clone(), Value::Object(plain));
        }
        for (name, schema) in &mut self.done {
            let Some(facts) = self.facts.get(name) else { continue };
            if facts.parents.is_empty() {
                continue;
            }
            let Some(Value::Array(parts)) = schema.get_mut("allOf") else { continue };
            for part in parts {
                if let Some(made) = referenced_definition(part).and_then(|parent| itself.get(parent)) {
                    *part = reference_to(made);
                }
            }
        }
        // The plain part of a definition that extends another one extends the plain part of that one.
        for made in itself.values() {
            let Some(Value::Array(parts)) =
                self.done.get_mut(made).and_then(|schema| schema.get_mut("allOf"))
            else {
                continue;
            };
            for part in parts {
                if let Some(other) = referenced_definition(part).and_then(|parent| itself.get(parent))
                    && other != made
                {
                    *part = reference_to(other);
                }
            }
        }
    }

    /// Returns a subtype as a branch of a choice, with its value unless it already requires it.
    fn choice(&self, definition: &str, property: &str, values: &[String]) -> Value {
        let mut choice = reference_to(definition);
        let told = self.done.get(definition).and_then(|schema| allowed_values(schema, property));
        if told.is_none()
            && !values.is_empty()
            && let Some(members) = choice.as_object_mut()
        {
            require_values(members, property, values);
        }
        choice
    }

    /// Adds discriminator values to the branches of an explicit choice. Also used
    /// for schemas of operations.
    pub(crate) fn finish(&self, schema: &mut Value) {
        match schema {
            Value::Object(members) => {
                self.finish_choice(members);
                for (key, value) in members.iter_mut() {
                    match key.as_str() {
                        "properties" | "patternProperties" | "dependentSchemas" => {
                            value
                                .as_object_mut()
                                .into_iter()
                                .flatten()
                                .for_each(|(_, part)| self.finish(part));
                        }
                        "default" | "examples" | "enum" | "const" | "required" | "discriminator" => {}
                        _ => self.finish(value),
                    }
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.finish(item)),
            _ => {}
        }
    }

    fn finish_choice(&self, members: &mut Map<String, Value>) {
        let Some(discriminator) = members.get("discriminator").cloned() else { return };
        let property =
            discriminator.get("propertyName").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(key) = ["oneOf", "anyOf"].into_iter().find(|key| members.contains_key(*key)) else {
            members.remove("discriminator");
            return;
        };
        // Definitions with subtypes are already finished.
        let Some(mapping) = discriminator.get("mapping").and_then(Value::as_object) else { return };
        let Some(Value::Array(mut choices)) = members.remove(key) else { return };
        let mut is_exact = true;
        for choice in &mut choices {
            let Some(name) = referenced_definition(choice).map(str::to_owned) else {
                is_exact &= choice.get("type") == Some(&json!("null"));
                continue;
            };
            let target = self.without_alias(&name);
            let schema = self.done.get(&target);
            let told = schema.and_then(|schema| allowed_values(schema, &property));
            let stands_for_others = schema.is_some_and(|schema| property_of(schema).is_some());
            let mut values: Vec<String> = mapping
                .iter()
                .filter(|(_, mapped)| {
                    referenced_definition(mapped).is_some_and(|mapped| mapped == name || mapped == target)
                })
                .map(|(value, _)| value.clone())
                .collect();
            if values.is_empty() && told.is_none() {
                values.push(self.names.original(&name));
            }
            let fits = told.as_ref().is_none_or(|told| values.iter().all(|value| told.contains(value)));
            let is_object =
                schema.is_some_and(|schema| schema.get("type").is_none_or(|kind| kind == "object"));
            if stands_for_others || values.is_empty() || !fits || !is_object {
                is_exact = false;
            } else if let Some(members) = choice.as_object_mut() {
                require_values(members, &property, &values);
            }
        }
        members.insert(if is_exact { "oneOf" } else { "anyOf" }.to_owned(), Value::Array(choices));
        members.insert("discriminator".to_owned(), json!({"propertyName": property}));
    }
}

fn collect_references(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            names.extend(referenced_definition(schema).map(str::to_owned));
            members.values().for_each(|part| collect_references(part, names));
        }
        Value::Array(parts) => parts.iter().for_each(|part| collect_references(part, names)),
        _ => {}
    }
}

/// Returns whether a schema, or one below it, has a discriminator. A member of that name is harmless.
fn mentions_discriminator(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.contains_key("discriminator") || members.values().any(mentions_discriminator)
        }
        Value::Array(parts) => parts.iter().any(mentions_discriminator),
        _ => false,
    }
}

fn has_choice(schema: &Value) -> bool {
    property_of(schema).is_some() && (schema.get("oneOf").is_some() || schema.get("anyOf").is_some())
}

/// Requires a member with one of these values.
fn require_values(schema: &mut Map<String, Value>, property: &str, values: &[String]) {
    let mut member = match values {
        [value] => json!({"type": "string", "const": value}),
        values => json!({"type": "string", "enum": values}),
    };
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if let Value::Object(properties) = properties {
        // A member that is not a string keeps its type. Then only its presence is required.
        let known = properties.get(property);
        let kind = known.and_then(|known| known.get("type"));
        if kind.is_some_and(|kind| kind != "string" && *kind != json!(["string", "null"])) {
            member = known.cloned().unwrap_or_default();
        }
        properties.insert(property.to_owned(), member);
    }
    let required = schema.entry("required").or_insert_with(|| json!([]));
    if let Value::Array(required) = required
        && !required.iter().any(|name| name == property)
    {
        required.push(json!(property));
    }
}
