//! The enrichment tree: a document, and the outputs of skills below its values.

use std::collections::BTreeMap;

use bindpost_azure_search_model::ApiError;
use serde_json::{Map, Value};

/// A node of the tree. Unlike in JSON, a string may have members, as in `/document/content/pages`.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct EnrichmentNode {
    /// A plain value, or null.
    value: Value,
    members: BTreeMap<String, EnrichmentNode>,
    items: Option<Vec<EnrichmentNode>>,
}

/// A path such as `/document/pages/*/text`, without its first part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnrichmentPath(Vec<EnrichmentPathPart>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum EnrichmentPathPart {
    Name(String),
    /// All elements of a list.
    Star,
}

impl EnrichmentPath {
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let rest = text.trim().trim_end_matches('/').strip_prefix("/document");
        let rest = rest.filter(|rest| rest.is_empty() || rest.starts_with('/')).ok_or_else(|| {
            ApiError::invalid(format!(
                "The path '{text}' must start with '/document', as in '/document/content'."
            ))
        })?;
        let parts = rest.split('/').filter(|part| !part.is_empty());
        Ok(Self(
            parts
                .map(|part| match part {
                    "*" => EnrichmentPathPart::Star,
                    name => EnrichmentPathPart::Name(name.to_owned()),
                })
                .collect(),
        ))
    }
}

impl EnrichmentNode {
    /// Creates the tree of an item and the metadata of its blob.
    pub(crate) fn document(fields: &Map<String, Value>, metadata: &Map<String, Value>) -> Self {
        let mut members: BTreeMap<String, EnrichmentNode> =
            metadata.iter().map(|(name, value)| (name.clone(), Self::new(value.clone()))).collect();
        members.extend(fields.iter().map(|(name, value)| (name.clone(), Self::new(value.clone()))));
        Self { members, ..Self::default() }
    }

    fn new(value: Value) -> Self {
        match value {
            Value::Object(members) => {
                let members = members.into_iter().map(|(name, value)| (name, Self::new(value))).collect();
                Self { members, ..Self::default() }
            }
            Value::Array(list) => {
                Self { items: Some(list.into_iter().map(Self::new).collect()), ..Self::default() }
            }
            value => Self { value, ..Self::default() },
        }
    }

    /// Returns the value without the outputs of skills.
    fn to_value(&self) -> Value {
        match (&self.items, &self.value) {
            (Some(items), _) => Value::Array(items.iter().map(Self::to_value).collect()),
            (None, Value::Null) if !self.members.is_empty() => Value::Object(
                self.members.iter().map(|(name, node)| (name.clone(), node.to_value())).collect(),
            ),
            (None, value) => value.clone(),
        }
    }

    /// Returns the value at a path. Stars give one flat list.
    pub(crate) fn select(&self, path: &EnrichmentPath) -> Option<Value> {
        self.input(&EnrichmentPath(Vec::new()), &[], path)
    }

    /// Returns all nodes that a context selects. Each one is a list of the positions that its stars match.
    pub(crate) fn places(&self, context: &EnrichmentPath) -> Vec<Vec<usize>> {
        self.places_below(context, &EnrichmentPath(Vec::new()), &[])
    }

    /// Returns the nodes of `inner` below one node of an outer context.
    pub(crate) fn places_below(
        &self,
        inner: &EnrichmentPath,
        outer: &EnrichmentPath,
        place: &[usize],
    ) -> Vec<Vec<usize>> {
        let mut found = Vec::new();
        let bound = shared_positions(&inner.0, &outer.0, place);
        self.walk(&inner.0, bound, &mut Vec::new(), &mut |_, place| found.push(place.to_vec()));
        found
    }

    /// Returns the value of a source path for one node of a context. Shared stars match the same elements.
    pub(crate) fn input(
        &self,
        context: &EnrichmentPath,
        place: &[usize],
        source: &EnrichmentPath,
    ) -> Option<Value> {
        let bound = shared_positions(&source.0, &context.0, place);
        let stars = source.0.iter().filter(|part| **part == EnrichmentPathPart::Star).count();
        let mut found = Vec::new();
        self.walk(&source.0, bound, &mut Vec::new(), &mut |node, _| found.push(node.to_value()));
        if stars > bound.len() { Some(Value::Array(found)) } else { found.pop() }
    }

    /// Adds a value below one node of a context.
    pub(crate) fn put(&mut self, context: &EnrichmentPath, place: &[usize], name: &str, value: Value) {
        let mut place = place.iter();
        let mut here = self;
        for part in &context.0 {
            let next = match part {
                EnrichmentPathPart::Star => place.next().and_then(|at| here.items.as_mut()?.get_mut(*at)),
                EnrichmentPathPart::Name(name) => here.member_mut(name),
            };
            let Some(next) = next else { return };
            here = next;
        }
        here.members.insert(name.to_owned(), Self::new(value));
    }

    fn member(&self, name: &str) -> Option<&Self> {
        self.members.get(name).or_else(|| self.items.as_ref()?.get(name.parse::<usize>().ok()?))
    }

    fn member_mut(&mut self, name: &str) -> Option<&mut Self> {
        match self.members.get_mut(name) {
            Some(member) => Some(member),
            None => self.items.as_mut()?.get_mut(name.parse::<usize>().ok()?),
        }
    }

    fn walk<'a>(
        &'a self,
        path: &[EnrichmentPathPart],
        bound: &[usize],
        place: &mut Vec<usize>,
        found: &mut dyn FnMut(&'a Self, &[usize]),
    ) {
        match path.split_first() {
            None => found(self, place),
            Some((EnrichmentPathPart::Name(name), rest)) => {
                if let Some(member) = self.member(name) {
                    member.walk(rest, bound, place, found);
                }
            }
            Some((EnrichmentPathPart::Star, rest)) => {
                let fixed = bound.get(place.len());
                for (at, item) in self.items.iter().flatten().enumerate() {
                    if fixed.is_none_or(|fixed| *fixed == at) {
                        place.push(at);
                        item.walk(rest, bound, place, found);
                        place.pop();
                    }
                }
            }
        }
    }
}

/// Estimates the size of a value in bytes.
pub(crate) fn estimated_bytes(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 32,
        Value::Array(list) => list.iter().map(estimated_bytes).sum::<usize>() + 32,
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + estimated_bytes(value) + 32).sum()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => 32,
    }
}

/// Returns the positions of the stars that `path` shares with a context.
fn shared_positions<'p>(
    path: &[EnrichmentPathPart],
    context: &[EnrichmentPathPart],
    place: &'p [usize],
) -> &'p [usize] {
    let shared = path.iter().zip(context).take_while(|(one, other)| one == other);
    let stars = shared.filter(|(part, _)| **part == EnrichmentPathPart::Star).count();
    place.get(..stars).unwrap_or(place)
}
