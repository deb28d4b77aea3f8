//! The fields of an index: names, types and attributes.

use std::collections::HashMap;

/// The type of one value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrimitiveType {
    String,
    Boolean,
    Int32,
    Int64,
    Double,
    /// Stored as milliseconds since 1970 in UTC. The year is from 1 to 9999.
    DateTimeOffset,
    GeographyPoint,
    /// The type of vector elements. Fields with a single such value do not exist.
    Single,
    Half,
    Int16,
    SByte,
    Byte,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldType {
    One(PrimitiveType),
    Many(PrimitiveType),
    Complex,
    ManyComplex,
}

impl FieldType {
    pub fn is_collection(self) -> bool {
        matches!(self, Self::Many(_) | Self::ManyComplex)
    }

    pub fn primitive(self) -> Option<PrimitiveType> {
        match self {
            Self::One(primitive) | Self::Many(primitive) => Some(primitive),
            Self::Complex | Self::ManyComplex => None,
        }
    }
}

/// How a vector field is stored and searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorAttributes {
    pub dimensions: usize,
    /// The name of a profile in `vectorSearch.profiles`.
    pub profile: String,
    /// Whether `vectorEncoding` is `packedBit`: eight dimensions in each byte.
    pub packed_bits: bool,
}

/// One field, with its subfields if it is complex. All its attributes have been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexField {
    pub name: String,
    /// The path from the root, with slashes: `address/city`.
    pub path: String,
    pub kind: FieldType,
    pub key: bool,
    pub searchable: bool,
    pub filterable: bool,
    pub sortable: bool,
    pub facetable: bool,
    /// Whether the field may be returned (`retrievable`, or `hidden` negated).
    pub retrievable: bool,
    /// False only for vectors that are searched and never returned.
    pub stored: bool,
    /// Analyzer names. `None` if the field is not searchable text.
    pub index_analyzer: Option<String>,
    pub search_analyzer: Option<String>,
    pub normalizer: Option<String>,
    pub synonym_maps: Vec<String>,
    pub vector: Option<VectorAttributes>,
    /// Subfields of complex fields.
    pub fields: Vec<IndexField>,
    /// Whether the field is or lies below a collection, so that one document may have several values.
    pub multiple: bool,
    /// Whether the field lies below a collection of complex values. Conditions on it must hold
    /// for the same element.
    pub below_collection: bool,
}

impl IndexField {
    /// Creates a field that is only retrievable. Parsing and tests start from it.
    pub fn new(name: &str, kind: FieldType) -> Self {
        Self {
            name: name.to_owned(),
            path: name.to_owned(),
            kind,
            key: false,
            searchable: false,
            filterable: false,
            sortable: false,
            facetable: false,
            retrievable: true,
            stored: true,
            index_analyzer: None,
            search_analyzer: None,
            normalizer: None,
            synonym_maps: Vec::new(),
            vector: None,
            fields: Vec::new(),
            multiple: kind.is_collection(),
            below_collection: false,
        }
    }

    /// Returns the subfield with this name.
    pub fn subfield(&self, name: &str) -> Option<&IndexField> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// All fields of an index, in the order of its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSchema {
    fields: Vec<IndexField>,
    /// Maps each path to the positions that lead to it.
    places: HashMap<String, Vec<usize>>,
    key: usize,
}

impl IndexSchema {
    /// Creates a schema from checked fields. Sets `path`, `multiple` and `below_collection`.
    ///
    /// Returns `None` if no field at the root is the key.
    pub fn new(mut fields: Vec<IndexField>) -> Option<Self> {
        let key = fields.iter().position(|field| field.key)?;
        let mut places = HashMap::new();
        assign_paths(
            &mut fields,
            "",
            InheritedFlags { multiple: false, below_collection: false },
            &[],
            &mut places,
        );
        Some(Self { fields, places, key })
    }

    pub fn fields(&self) -> &[IndexField] {
        &self.fields
    }

    pub fn key(&self) -> &IndexField {
        &self.fields[self.key]
    }

    /// Returns the field at a path such as `address/city`. Names are case-sensitive.
    pub fn find(&self, path: &str) -> Option<&IndexField> {
        let (first, rest) = self.places.get(path)?.split_first()?;
        let start = self.fields.get(*first)?;
        rest.iter().try_fold(start, |field, &at| field.fields.get(at))
    }

    /// Returns all fields without subfields, depth first.
    pub fn leaves(&self) -> Vec<&IndexField> {
        let mut leaves = Vec::new();
        collect_leaves(&self.fields, &mut leaves);
        leaves
    }
}

#[derive(Clone, Copy)]
struct InheritedFlags {
    multiple: bool,
    below_collection: bool,
}

fn assign_paths(
    fields: &mut [IndexField],
    above: &str,
    setting: InheritedFlags,
    way: &[usize],
    places: &mut HashMap<String, Vec<usize>>,
) {
    for (at, field) in fields.iter_mut().enumerate() {
        field.path = match above {
            "" => field.name.clone(),
            above => format!("{above}/{}", field.name),
        };
        field.multiple = setting.multiple || field.kind.is_collection();
        field.below_collection = setting.below_collection;
        let mut way = way.to_vec();
        way.push(at);
        places.insert(field.path.clone(), way.clone());
        let below = InheritedFlags {
            multiple: field.multiple,
            below_collection: setting.below_collection || field.kind == FieldType::ManyComplex,
        };
        let path = field.path.clone();
        assign_paths(&mut field.fields, &path, below, &way, places);
    }
}

fn collect_leaves<'a>(fields: &'a [IndexField], leaves: &mut Vec<&'a IndexField>) {
    for field in fields {
        match field.kind {
            FieldType::Complex | FieldType::ManyComplex => collect_leaves(&field.fields, leaves),
            _ => leaves.push(field),
        }
    }
}
