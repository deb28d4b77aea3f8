//! Builds the text of a filter from a form. Every path is checked, and every constant has the type of
//! its field.

use bindpost_azure_search_model::definition::{FieldType, IndexField, PrimitiveType};
use bindpost_mcp_server::nearest::nearest;
use serde_json::{Map, Value};

use super::comparison::{FilterText, missing_value, one_of, one_value};
use super::problem::FilterProblem;
use crate::tools::reading::{IndexDescription, odata_literal};

/// Maximum nesting of conditions. The service accepts a hundred levels.
const DEEPEST: usize = 50;
const OPERATORS: [&str; 16] = [
    "eq",
    "ne",
    "gt",
    "ge",
    "lt",
    "le",
    "in",
    "between",
    "exists",
    "missing",
    "contains",
    "containsAll",
    "startsWith",
    "matches",
    "geoDistance",
    "search.in",
];
const MEMBERS: [&str; 9] = ["field", "op", "value", "on", "where", "mode", "queryType", "point", "km"];

/// The result of a form.
#[derive(Debug, Default)]
pub(super) struct BuiltFilter {
    pub(super) filter: String,
    /// All problems, not only the first.
    pub(super) problems: Vec<FilterProblem>,
    pub(super) notes: Vec<String>,
}

pub(super) fn build(form: &Value, index: &IndexDescription) -> BuiltFilter {
    let mut builder = FilterBuilder { index, problems: Vec::new(), notes: Vec::new(), lambdas: 0 };
    let filter = builder.condition(form, "conditions", None, 0).map(|text| text.text);
    BuiltFilter { filter: filter.unwrap_or_default(), problems: builder.problems, notes: builder.notes }
}

struct FilterBuilder<'a> {
    index: &'a IndexDescription,
    problems: Vec<FilterProblem>,
    notes: Vec<String>,
    lambdas: usize,
}

/// The element of a complex collection to which conditions apply: its variable and its field.
#[derive(Clone)]
struct LambdaElement<'a> {
    variable: String,
    field: &'a IndexField,
}

/// The field of a condition.
struct ConditionField<'a> {
    field: &'a IndexField,
    /// The path as the filter writes it.
    written: String,
    /// The collections on the path, outermost first: path and variable.
    entered: Vec<(String, String)>,
}

impl<'a> FilterBuilder<'a> {
    fn condition(
        &mut self,
        form: &Value,
        at: &str,
        element: Option<&LambdaElement<'a>>,
        depth: usize,
    ) -> Option<FilterText> {
        let Some(members) = form.as_object().filter(|members| !members.is_empty()) else {
            return self.refuse(shape_problem(form).at(at));
        };
        if depth > DEEPEST {
            return self.refuse(FilterProblem::new("form", "The conditions are nested too deeply.").at(at));
        }
        for (name, joined) in [("all", " and "), ("any", " or ")] {
            if let Some(parts) = members.get(name) {
                return self.join_conditions(parts, &format!("{at}.{name}"), joined, element, depth);
            }
        }
        if let Some(inner) = members.get("not") {
            let inner = self.condition(inner, &format!("{at}.not"), element, depth + 1)?;
            return FilterText::closed(format!("not ({})", inner.text));
        }
        let unknown: Vec<&String> = members.keys().filter(|name| !MEMBERS.contains(&name.as_str())).collect();
        if let Some(unknown) = unknown.first() {
            let known = ["all", "any", "not"].into_iter().chain(MEMBERS).collect::<Vec<_>>();
            let fix = match nearest(unknown, &known) {
                Some(near) => format!("write `{near}`"),
                None => format!("valid members are {}", known.join(", ")),
            };
            let problem = FilterProblem::new("form", format!("Unknown member `{unknown}` in a condition."));
            return self.refuse(problem.fix(fix).at(at));
        }
        self.leaf(members, at, element, depth)
    }

    fn join_conditions(
        &mut self,
        parts: &Value,
        at: &str,
        joined: &str,
        element: Option<&LambdaElement<'a>>,
        depth: usize,
    ) -> Option<FilterText> {
        let Some(parts) = parts.as_array().filter(|parts| !parts.is_empty()) else {
            let problem = FilterProblem::new("form", "Expected a list of at least one condition.");
            return self.refuse(problem.at(at));
        };
        // Every part is checked, so that all problems are reported at once.
        let built: Vec<Option<FilterText>> = parts
            .iter()
            .enumerate()
            .map(|(number, part)| self.condition(part, &format!("{at}[{number}]"), element, depth + 1))
            .collect();
        let mut built: Vec<FilterText> = built.into_iter().collect::<Option<_>>()?;
        if built.len() == 1 {
            return built.pop();
        }
        FilterText::open(built.iter().map(FilterText::as_operand).collect::<Vec<_>>().join(joined))
    }

    fn leaf(
        &mut self,
        members: &Map<String, Value>,
        at: &str,
        element: Option<&LambdaElement<'a>>,
        depth: usize,
    ) -> Option<FilterText> {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let (path, op) = (text("field"), text("op"));
        if op == Some("matches") {
            return self.matches(members, path, at, element);
        }
        let Some(path) = path else {
            return self.refuse(shape_problem(&Value::Object(members.clone())).at(at));
        };
        let subject = match self.resolve(path, element) {
            Ok(subject) => subject,
            Err(problem) => return self.refuse(problem.at(at)),
        };
        let over = match text("on") {
            None => None,
            Some("any") => Some("any"),
            Some("all") => Some("all"),
            Some(other) => {
                let problem = FilterProblem::new("form", format!("`on` must be any or all, not {other}."));
                return self.refuse(problem.field(path).at(at));
            }
        };
        if let Some(inner) = members.get("where") {
            return self.element_condition(subject, over.unwrap_or("any"), inner, at, depth);
        }
        let Some(op) = op.filter(|op| OPERATORS.contains(op)) else {
            let given = op.map_or("`op` is missing.".to_owned(), |op| format!("Unknown op `{op}`."));
            let fix = match op.and_then(|op| nearest(op, &OPERATORS)) {
                Some(near) => format!("write {near}"),
                None => format!("ops are {}", OPERATORS[..15].join(", ")),
            };
            return self.refuse(FilterProblem::new("unknownOp", given).field(path).fix(fix).at(at));
        };
        match self.comparison(&subject, op, over, members) {
            Ok(condition) => Some(wrap_in_lambdas(condition, &subject.entered, over.unwrap_or("any"))),
            Err(problem) => {
                let problem = FilterProblem { field: problem.field.or(Some(path.to_owned())), ..problem };
                self.refuse(problem.at(at))
            }
        }
    }

    /// Builds a condition on one element, or on all elements, of a complex collection.
    fn element_condition(
        &mut self,
        subject: ConditionField<'a>,
        over: &str,
        inner: &Value,
        at: &str,
        depth: usize,
    ) -> Option<FilterText> {
        if subject.field.kind != FieldType::ManyComplex {
            let problem =
                FilterProblem::new("collection", "`where` is only valid for collections of complex values.")
                    .field(&subject.field.path)
                    .fix("replace `where` by `op` and `value`");
            return self.refuse(problem.at(at));
        }
        let element = LambdaElement { variable: self.variable(), field: subject.field };
        let inner = self.condition(inner, &format!("{at}.where"), Some(&element), depth + 1)?;
        let variable = element.variable;
        let condition = format!("{}/{over}({variable}: {})", subject.written, inner.text);
        Some(wrap_in_lambdas(FilterText { text: condition, closed: true }, &subject.entered, "any"))
    }

    /// Resolves a path from the root, or from the element to which conditions apply.
    fn resolve(
        &mut self,
        path: &str,
        element: Option<&LambdaElement<'a>>,
    ) -> Result<ConditionField<'a>, FilterProblem> {
        let (mut fields, mut written) = match element {
            Some(element) => (&element.field.fields, element.variable.clone()),
            None => return self.resolve_whole(path),
        };
        let mut found = None;
        for name in path.split('/') {
            let Some(field) = fields.iter().find(|field| field.name == name) else {
                let known: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
                let fix = match nearest(name, &known) {
                    Some(near) => format!("write {near}"),
                    None => format!(
                        "its subfields are {}; paths in `where` start at the element",
                        known.join(", ")
                    ),
                };
                let message = format!("Unknown subfield '{name}'.");
                return Err(FilterProblem::new("unknownField", message).field(path).fix(fix));
            };
            written = format!("{written}/{name}");
            (fields, found) = (&field.fields, Some(field));
        }
        let field = found.ok_or_else(|| FilterProblem::unknown_field(path, self.index))?;
        Ok(ConditionField { field, written, entered: Vec::new() })
    }

    fn resolve_whole(&mut self, path: &str) -> Result<ConditionField<'a>, FilterProblem> {
        let schema = &self.index.schema;
        let field = schema.find(path).ok_or_else(|| FilterProblem::unknown_field(path, self.index))?;
        let (mut entered, mut written, mut walked) = (Vec::new(), String::new(), String::new());
        let names: Vec<&str> = path.split('/').collect();
        for (number, name) in names.iter().enumerate() {
            for text in [&mut written, &mut walked] {
                if !text.is_empty() {
                    text.push('/');
                }
                text.push_str(name);
            }
            let is_last = number + 1 == names.len();
            if !is_last && schema.find(&walked).is_some_and(|field| field.kind == FieldType::ManyComplex) {
                let variable = self.variable();
                entered.push((written, variable.clone()));
                written = variable;
            }
        }
        Ok(ConditionField { field, written, entered })
    }

    fn variable(&mut self) -> String {
        self.lambdas += 1;
        format!("x{}", self.lambdas)
    }

    fn comparison(
        &mut self,
        subject: &ConditionField<'a>,
        op: &str,
        over: Option<&str>,
        members: &Map<String, Value>,
    ) -> Result<FilterText, FilterProblem> {
        let ConditionField { field, written, .. } = subject;
        let path = &field.path;
        if op == "startsWith" {
            return self.starts_with(subject, members);
        }
        let Some(primitive) = field.kind.primitive() else {
            let message = format!("'{path}' is complex and cannot be compared itself.");
            let subfields: Vec<&str> = field.fields.iter().map(|field| field.path.as_str()).collect();
            return Err(
                FilterProblem::new("collection", message).fix(format!("use one of {}", subfields.join(", ")))
            );
        };
        if field.vector.is_some() || !field.filterable {
            let fix = match field.searchable && field.vector.is_none() {
                true => format!("search it instead: {{field: '{path}', op: 'matches', value: 'words'}}"),
                false => "use a filterable field; making this one filterable requires a new index".to_owned(),
            };
            return Err(FilterProblem::new("notFilterable", format!("'{path}' is not filterable.")).fix(fix));
        }
        let collection = field.kind.is_collection();
        if op == "exists" || op == "missing" {
            return Ok(match (collection, op) {
                (true, "exists") => FilterText { text: format!("{written}/any()"), closed: true },
                (true, _) => FilterText { text: format!("not {written}/any()"), closed: true },
                (false, "exists") => FilterText { text: format!("{written} ne null"), closed: true },
                (false, _) => FilterText { text: format!("{written} eq null"), closed: true },
            });
        }
        if let "contains" | "containsAll" = op {
            if !collection {
                let fix = match field.searchable {
                    true => {
                        format!("to match words in it: {{field: '{path}', op: 'matches', value: 'words'}}")
                    }
                    false => "use eq".to_owned(),
                };
                let message = format!("'{path}' is not a collection, which `{op}` requires.");
                return Err(FilterProblem::new("collection", message).fix(fix));
            }
            return self.contained(subject, primitive, op, members);
        }
        if collection {
            let Some(over) = over else {
                let message = format!("'{path}' is a collection, but `{op}` compares one value.");
                let fix =
                    format!("use op contains, or add on: 'any' or on: 'all' to compare elements by {op}");
                return Err(FilterProblem::new("collection", message).fix(fix));
            };
            let variable = self.variable();
            let condition = one_value(field, primitive, &variable, op, members)?;
            self.note_day_as_midnight(field, members);
            return Ok(FilterText {
                text: format!("{written}/{over}({variable}: {})", condition.text),
                closed: true,
            });
        }
        self.note_day_as_midnight(field, members);
        one_value(field, primitive, written, op, members)
    }

    /// Adds a note if a date without a time is compared as midnight.
    fn note_day_as_midnight(&mut self, field: &IndexField, members: &Map<String, Value>) {
        let is_day = |value: &Value| value.as_str().is_some_and(|text| text.len() == 10);
        let days = members.get("value").is_some_and(|value| match value {
            Value::Array(values) => values.iter().any(is_day),
            one => is_day(one),
        });
        if days && field.kind.primitive() == Some(PrimitiveType::DateTimeOffset) {
            self.notes.push(format!("{}: a date without a time means midnight in UTC", field.path));
        }
    }

    fn contained(
        &mut self,
        subject: &ConditionField<'_>,
        primitive: PrimitiveType,
        op: &str,
        members: &Map<String, Value>,
    ) -> Result<FilterText, FilterProblem> {
        let values = match members.get("value") {
            Some(Value::Array(values)) if !values.is_empty() => values.clone(),
            None | Some(Value::Null | Value::Array(_)) => return Err(missing_value(op)),
            Some(one) => vec![one.clone()],
        };
        let written = &subject.written;
        let lambda = |builder: &mut Self, values: &[Value]| {
            let variable = builder.variable();
            let inner = one_of(subject.field, primitive, &variable, values)?;
            Ok(format!("{written}/any({variable}: {})", inner.text))
        };
        if op == "contains" {
            return Ok(FilterText { text: lambda(self, &values)?, closed: true });
        }
        let parts: Vec<String> =
            values.iter().map(|value| lambda(self, std::slice::from_ref(value))).collect::<Result<_, _>>()?;
        Ok(FilterText { closed: parts.len() == 1, text: parts.join(" and ") })
    }

    /// Builds a prefix condition. OData filters have no prefix match, so it is a search for words with
    /// this prefix.
    fn starts_with(
        &mut self,
        subject: &ConditionField<'a>,
        members: &Map<String, Value>,
    ) -> Result<FilterText, FilterProblem> {
        let path = &subject.field.path;
        let prefix = members.get("value").and_then(Value::as_str).filter(|prefix| !prefix.trim().is_empty());
        let prefix = prefix.ok_or_else(|| missing_value("startsWith"))?;
        if !subject.field.searchable || subject.field.vector.is_some() {
            let message = "startsWith uses a search, and this field is not searchable.";
            return Err(FilterProblem::new("notSearchable", message).fix("use eq or in with whole values"));
        }
        if !subject.entered.is_empty() || subject.written != *path {
            return Err(not_in_lambda("startsWith"));
        }
        let mut words: Vec<&str> = prefix.split_whitespace().filter(|word| is_plain(word)).collect();
        let Some(last) = words.pop() else {
            let message = "startsWith supports only letters and digits.";
            return Err(FilterProblem::new("wrongType", message));
        };
        let last = format!("{last}*");
        words.push(&last);
        self.notes.push(format!(
            "{path}: startsWith matches the beginning of any word in the field, not only of the first"
        ));
        let text = format!(
            "search.ismatch({}, {}, 'simple', 'all')",
            odata_literal(&words.join(" ")),
            odata_literal(path)
        );
        Ok(FilterText { text, closed: true })
    }

    fn matches(
        &mut self,
        members: &Map<String, Value>,
        path: Option<&str>,
        at: &str,
        element: Option<&LambdaElement<'a>>,
    ) -> Option<FilterText> {
        if element.is_some() {
            return self.refuse(not_in_lambda("matches").at(at));
        }
        let Some(words) = members.get("value").and_then(Value::as_str) else {
            return self.refuse(missing_value("matches").at(at));
        };
        let mut fields = Vec::new();
        for path in path.into_iter().flat_map(|paths| paths.split(',')).map(str::trim) {
            match self.index.schema.find(path) {
                None => return self.refuse(FilterProblem::unknown_field(path, self.index).at(at)),
                Some(field) if !field.searchable || field.vector.is_some() => {
                    let problem = FilterProblem::new(
                        "notSearchable",
                        format!("'{path}' is not a searchable text field."),
                    );
                    return self.refuse(problem.field(path).fix("use eq, or another field").at(at));
                }
                Some(_) => fields.push(path),
            }
        }
        let choice = |name: &str, known: [&'static str; 2]| match members.get(name).and_then(Value::as_str) {
            None => Ok(None),
            Some(given) => known.into_iter().find(|known| *known == given).map(Some).ok_or_else(|| {
                FilterProblem::new("form", format!("`{name}` is {} or {}, not {given}.", known[0], known[1]))
            }),
        };
        let (kind, mode) = match (choice("queryType", ["simple", "full"]), choice("mode", ["any", "all"])) {
            (Ok(kind), Ok(mode)) => (kind, mode),
            (Err(problem), _) | (_, Err(problem)) => return self.refuse(problem.at(at)),
        };
        let words = odata_literal(words);
        let listed = if fields.is_empty() { "null".to_owned() } else { odata_literal(&fields.join(",")) };
        FilterText::closed(match (kind, mode) {
            (None, None) if fields.is_empty() => format!("search.ismatch({words})"),
            (None, None) => format!("search.ismatch({words}, {listed})"),
            (kind, mode) => {
                let (kind, mode) = (kind.unwrap_or("simple"), mode.unwrap_or("any"));
                format!("search.ismatch({words}, {listed}, '{kind}', '{mode}')")
            }
        })
    }

    fn refuse(&mut self, problem: FilterProblem) -> Option<FilterText> {
        self.problems.push(problem);
        None
    }
}

/// Wraps a condition in the lambdas of the collections on its path.
fn wrap_in_lambdas(condition: FilterText, entered: &[(String, String)], over: &str) -> FilterText {
    entered.iter().rev().fold(condition, |inner, (path, variable)| FilterText {
        text: format!("{path}/{over}({variable}: {})", inner.text),
        closed: true,
    })
}

fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '\'')
}

fn not_in_lambda(op: &str) -> FilterProblem {
    FilterProblem::new(
        "collection",
        format!("`{op}` applies to whole documents, not to elements of collections."),
    )
    .fix("move it out of `where`, beside the condition on the collection")
}

fn shape_problem(given: &Value) -> FilterProblem {
    FilterProblem::new(
        "form",
        format!("{} is not a condition.", crate::tools::builder::shortened(&given.to_string(), 80)),
    )
    .fix("give {field, op, value}, {all: […]}, {any: […]} or {not: …}")
}
