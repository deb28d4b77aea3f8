//! The fields of an index: names, types and what may be done with them.

use std::collections::HashMap;

/// What one value of a field is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PrimitiveType {
    String,
    Boolean,
    Int32,
    Int64,
    Double,
    /// Kept as milliseconds since 1970 in UTC; any year from 1 to 9999.
    DateTimeOffset,
    GeographyPoint,
    /// Elements of vectors; fields of a single one do not exist.
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

/// How a vector field is kept and searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorAttributes {
    pub dimensions: usize,
    /// The name of a profile in `vectorSearch.profiles`.
    pub profile: String,
    /// `vectorEncoding: packedBit`: eight dimensions in each byte.
    pub packed_bits: bool,
}

/// One field, with its subfields when it is complex. Everything in it has been checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexField {
    pub name: String,
    /// From the root, with slashes: `address/city`.
    pub path: String,
    pub kind: FieldType,
    pub key: bool,
    pub searchable: bool,
    pub filterable: bool,
    pub sortable: bool,
    pub facetable: bool,
    /// May be shown in answers (`retrievable`, or `hidden` negated).
    pub retrievable: bool,
    /// `stored: false` is for vectors that are searched and never shown.
    pub stored: bool,
    /// Analyzer names; `None` when the field is not searchable text.
    pub index_analyzer: Option<String>,
    pub search_analyzer: Option<String>,
    pub normalizer: Option<String>,
    pub synonym_maps: Vec<String>,
    pub vector: Option<VectorAttributes>,
    /// Subfields of complex fields.
    pub fields: Vec<IndexField>,
    /// A collection, or below one: one document may have several values.
    pub multiple: bool,
    /// Below a collection of complex values: conditions on it must hold for the same element.
    pub below_collection: bool,
}

impl IndexField {
    /// A field that can be shown and nothing else; the start of every definition, and handy in tests.
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

    /// The subfield of this name.
    pub fn subfield(&self, name: &str) -> Option<&IndexField> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// All fields of an index, in the order of its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexSchema {
    fields: Vec<IndexField>,
    /// From each path to the positions that lead to it.
    places: HashMap<String, Vec<usize>>,
    key: usize,
}

impl IndexSchema {
    /// Takes fields whose rules have been checked; fills in `path`, `multiple` and `below_collection`.
    ///
    /// `None` when no field at the root is the key.
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

    /// The field at a path such as `address/city`. Names differ by case.
    pub fn find(&self, path: &str) -> Option<&IndexField> {
        let (first, rest) = self.places.get(path)?.split_first()?;
        let start = self.fields.get(*first)?;
        rest.iter().try_fold(start, |field, &at| field.fields.get(at))
    }

    /// All fields without subfields, depth first.
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
