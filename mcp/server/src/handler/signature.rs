//! [`Signature`]: the arguments and the state that the parameters of a handler need.
//!
//! The traits of a parameter's type decide whether it is an argument, never the spelling of the type. A
//! type that implements [`FromCall`] is filled from the call. A type that can be deserialised and has a
//! schema is the argument of that name.

use std::any::TypeId;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::error::{ProtocolError, ToolError};
use crate::handler::extract::{CallParts, FromCall, normalize_integers};
use crate::handler::returns::to_json;
use crate::handler::schema::{self, CompiledSchema, UnknownMembers};

/// The arguments and the state that a handler needs.
///
/// ```
/// use bindpost_mcp_server::{Argument, Signature, State};
///
/// let signature = Signature::new()
///     .parameter::<State<String>, _>(Argument::new("greeting"))
///     .parameter::<String, _>(Argument::new("name").description("Whom to greet").max_length(80))
///     .parameter::<Option<u8>, _>(Argument::new("times").maximum(3));
/// assert_eq!(signature.schema()["required"], serde_json::json!(["name"]));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Signature {
    whole: Option<Value>,
    arguments: Vec<(String, Value, bool)>,
    states: Vec<(TypeId, &'static str)>,
    mistakes: Vec<String>,
    sees_call: bool,
    allows_unknown: bool,
}

fn any_object() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": true})
}

impl Signature {
    /// Returns a signature without parameters.
    pub fn new() -> Signature {
        Signature::default()
    }

    /// Adds a parameter. Its type decides whether it is an argument.
    pub fn parameter<P: Parameter<M>, M>(mut self, argument: Argument) -> Signature {
        P::describe(&mut self, argument);
        self
    }

    /// Declares that one parameter takes all arguments as a value with this schema.
    pub fn takes_all(&mut self, schema: Value) {
        if self.whole.is_some() {
            self.mistakes.push("two parameters take all arguments; keep one `Args<T>`".to_owned());
        }
        // The schema `true` allows any JSON, but arguments are always an object.
        let says_nothing = schema.as_object().is_none_or(Map::is_empty);
        self.whole = Some(if says_nothing { any_object() } else { schema });
    }

    /// Allows arguments that no parameter declares. They are ignored, at every depth. By default they are
    /// rejected, unless the handler reads them: with [`RawArguments`](crate::RawArguments), a map with
    /// `#[serde(flatten)]`, or a [`Context`](crate::Context) as its only parameter.
    pub fn allow_unknown_arguments(mut self) -> Signature {
        self.allows_unknown = true;
        self
    }

    /// Declares that the handler can read the arguments from the call.
    pub(crate) fn sees_the_call(&mut self) {
        self.sees_call = true;
    }

    /// Declares that the handler needs state of this type.
    pub fn needs_state<T: 'static>(&mut self) {
        self.states.push((TypeId::of::<T>(), std::any::type_name::<T>()));
    }

    /// Declares that the handler needs the state that another signature needs.
    pub(crate) fn needs_states_of(&mut self, other: &Signature) {
        self.states.extend_from_slice(&other.states);
    }

    /// Returns the schema of the arguments in the form for clients.
    pub fn schema(&self) -> Value {
        self.schema_for_clients(self.unknown_members())
    }

    /// Returns the schema in the form for clients, with or without the rejection of unknown members.
    pub(crate) fn schema_for_clients(&self, unknown: UnknownMembers) -> Value {
        schema::for_clients(&self.derived_schema(), unknown)
    }

    /// Returns whether undeclared arguments are rejected. They are allowed by an option, or because the
    /// handler may read them from the call.
    pub(crate) fn unknown_members(&self) -> UnknownMembers {
        match self.allows_unknown || self.sees_call && !self.takes_arguments() {
            true => UnknownMembers::Allowed,
            false => UnknownMembers::Rejected,
        }
    }

    /// The same for a signature that names no argument. `has_declared` says that the entry itself declares some.
    pub(crate) fn unknown_without_properties(&self, has_declared: bool) -> UnknownMembers {
        let reads_all = self.sees_call || self.whole.is_some();
        match self.allows_unknown || reads_all && !has_declared {
            true => UnknownMembers::Allowed,
            false => UnknownMembers::Rejected,
        }
    }

    /// Returns the schema as it is derived from the types, with details that clients do not get.
    pub(crate) fn derived_schema(&self) -> Value {
        if let Some(whole) = &self.whole {
            return whole.clone();
        }
        let part = |(name, schema, _): &(String, Value, bool)| {
            let mut schema = schema.clone();
            let place = name.replace('~', "~0").replace('/', "~1");
            schema::move_references(&mut schema, &format!("/properties/{place}"));
            (name.clone(), schema)
        };
        let properties: Map<String, Value> = self.arguments.iter().map(part).collect();
        let required: Vec<&String> =
            self.arguments.iter().filter(|(.., required)| *required).map(|(name, ..)| name).collect();
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = json!(required);
        }
        schema
    }

    /// Returns the names of the single arguments.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.arguments.iter().map(|(name, ..)| name.as_str())
    }

    pub(crate) fn takes_arguments(&self) -> bool {
        self.whole.is_some() || !self.arguments.is_empty()
    }

    pub(crate) fn states(&self) -> &[(TypeId, &'static str)] {
        &self.states
    }

    /// Checks the signature. The error lists every mistake.
    pub(crate) fn check(&self) -> Result<(), String> {
        let mut mistakes = self.mistakes.clone();
        if self.whole.is_some()
            && let Some((name, ..)) = self.arguments.first()
        {
            mistakes.push(format!("`Args<T>` takes all arguments, so {name:?} cannot be one too; keep one"));
        }
        for (index, (name, schema, _)) in self.arguments.iter().enumerate() {
            let bounds = [("minimum", "maximum"), ("minLength", "maxLength"), ("minItems", "maxItems")];
            for (least, most) in bounds {
                let bound = |keyword: &str| schema.get(keyword).and_then(Value::as_f64);
                if let (Some(low), Some(high)) = (bound(least), bound(most))
                    && low > high
                {
                    let reason = format!(
                        "argument {name:?} accepts no value: {least} {low} is greater than {most} {high}"
                    );
                    mistakes.push(reason);
                }
            }
            mistakes.extend(useless_keywords(name, schema));
            if let Some(default) = schema.get("default")
                && let Ok(schema) = CompiledSchema::compile(schema)
                && let Err(violations) = schema.check(default)
            {
                mistakes.push(format!("the default of argument {name:?} is invalid: {violations}"));
            }
            if self.arguments[..index].iter().any(|(other, ..)| other == name) {
                mistakes.push(format!("argument {name:?} appears twice"));
            }
        }
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes.join("; ")) }
    }
}

/// Returns the constraints that have no effect on values of the argument's type.
fn useless_keywords(name: &str, schema: &Value) -> Vec<String> {
    const KEYWORDS: [(&str, &str, &str); 7] = [
        ("minimum", "number", "`min_length` limits a text, `min_items` a list"),
        ("maximum", "number", "`max_length` limits a text, `max_items` a list"),
        ("minLength", "string", "`minimum` limits a number, `min_items` a list"),
        ("maxLength", "string", "`maximum` limits a number, `max_items` a list"),
        ("pattern", "string", "only texts have one"),
        ("minItems", "array", "`min_length` limits a text"),
        ("maxItems", "array", "`max_length` limits a text"),
    ];
    // Without a type, or with a reference to one, the values are not known here.
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
        _ => return Vec::new(),
    };
    let fits = |wanted: &str| types.iter().any(|it| *it == wanted || *it == "integer" && wanted == "number");
    let useless =
        KEYWORDS.into_iter().filter(|(keyword, wanted, _)| schema.get(*keyword).is_some() && !fits(wanted));
    useless
        .map(|(keyword, _, hint)| {
            let types = types.join(" or ");
            format!("{keyword} has no effect on argument {name:?}, whose type is {types}; {hint}")
        })
        .collect()
}

/// One argument: its name, and schema keywords in addition to its type.
#[derive(Clone, Debug, Default)]
pub struct Argument {
    name: String,
    keywords: Map<String, Value>,
    required: Option<bool>,
}

impl Argument {
    /// Returns an argument with this name.
    pub fn new(name: impl Into<String>) -> Argument {
        Argument { name: name.into(), ..Argument::default() }
    }

    /// Sets the description for the model.
    pub fn description(self, description: impl Into<String>) -> Argument {
        self.keyword("description", description.into())
    }

    /// Sets the default value. The argument is not required then.
    pub fn default_value(self, value: impl Serialize) -> Argument {
        match serde_json::to_value(value) {
            Ok(value) => self.keyword("default", value),
            Err(_) => self,
        }
    }

    /// Sets the allowed values.
    pub fn one_of(self, values: impl IntoIterator<Item = impl Serialize>) -> Argument {
        let values: Vec<Value> =
            values.into_iter().filter_map(|value| serde_json::to_value(value).ok()).collect();
        self.keyword("enum", values)
    }

    /// Sets the format of a string: `date`, `date-time`, `time`, `email`, `uri`, `uuid`, `hostname`, …
    pub fn format(self, format: impl Into<String>) -> Argument {
        self.keyword("format", format.into())
    }

    /// Sets the minimum value.
    pub fn minimum(self, minimum: impl Serialize) -> Argument {
        self.keyword("minimum", json!(minimum))
    }

    /// Sets the maximum value.
    pub fn maximum(self, maximum: impl Serialize) -> Argument {
        self.keyword("maximum", json!(maximum))
    }

    /// Sets the minimum number of characters.
    pub fn min_length(self, length: usize) -> Argument {
        self.keyword("minLength", length)
    }

    /// Sets the maximum number of characters.
    pub fn max_length(self, length: usize) -> Argument {
        self.keyword("maxLength", length)
    }

    /// Sets the minimum number of items of a list.
    pub fn min_items(self, count: usize) -> Argument {
        self.keyword("minItems", count)
    }

    /// Sets the maximum number of items of a list.
    pub fn max_items(self, count: usize) -> Argument {
        self.keyword("maxItems", count)
    }

    /// Sets the regular expression that the value must match.
    pub fn pattern(self, pattern: impl Into<String>) -> Argument {
        self.keyword("pattern", pattern.into())
    }

    /// Sets whether the argument is required. By default it is, unless it is an `Option` or has a default.
    pub fn required(mut self, required: bool) -> Argument {
        self.required = Some(required);
        self
    }

    fn keyword(mut self, keyword: &str, value: impl Into<Value>) -> Argument {
        self.keywords.insert(keyword.to_owned(), value.into());
        self
    }
}

/// A type that can be a parameter of a function with `#[tool]`, `#[resource]` or `#[prompt]`.
///
/// `Marker` selects how the parameter is filled and is always inferred: [`ByCall`] for types that implement
/// [`FromCall`], [`ByName`] for arguments.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a parameter of an entry",
    label = "neither an argument nor filled from the call",
    note = "an argument's type derives `serde::Deserialize` and `schemars::JsonSchema` and owns its data",
    note = "for the call itself take `Context`, for shared state `State<T>` (`T` is `Clone`), for all arguments `Args<T>`",
    note = "types of other crates need a feature of `schemars`, for instance `chrono04` or `uuid1`"
)]
pub trait Parameter<Marker>: Sized + Send {
    /// Adds the parameter to the signature.
    fn describe(signature: &mut Signature, argument: Argument);
    /// Fills the parameter.
    fn fill(parts: &mut CallParts, name: &str) -> Result<Self, ToolError>;
}

/// Marks parameters that are filled from the call.
#[derive(Debug)]
pub enum ByCall {}

/// Marks parameters that are arguments, found by their name.
#[derive(Debug)]
pub enum ByName {}

impl<T: FromCall> Parameter<ByCall> for T {
    fn describe(signature: &mut Signature, argument: Argument) {
        // A description comes from a doc comment, which is allowed on any parameter.
        let says_more = argument.keywords.keys().any(|keyword| keyword != "description");
        if says_more || argument.required.is_some() {
            let reason =
                format!("parameter {:?} is not an argument, so `#[arg]` has no effect", argument.name);
            signature.mistakes.push(reason);
        }
        T::describe(signature);
    }

    fn fill(parts: &mut CallParts, _: &str) -> Result<T, ToolError> {
        T::from_call(parts)
    }
}

impl<T: DeserializeOwned + JsonSchema + Send> Parameter<ByName> for T {
    fn describe(signature: &mut Signature, argument: Argument) {
        let Argument { name, keywords, required } = argument;
        let mut schema = schema::derive::<T>();
        let optional = schema::allows_null(&schema) || keywords.contains_key("default");
        // The schema `true` is not an object, so keywords cannot be added to it.
        if !keywords.is_empty() && !schema.is_object() {
            schema = json!({});
        }
        if let Value::Object(members) = &mut schema {
            members.extend(keywords);
        }
        if name.is_empty() {
            let reason = "a destructured parameter has no name, so it cannot be an argument; name it, or take \
                          the struct as `Args<T>`";
            signature.mistakes.push(reason.to_owned());
        }
        if required == Some(false) && !optional {
            let reason = format!("argument {name:?} is not required, but is no `Option` and has no default");
            signature.mistakes.push(reason);
        }
        signature.arguments.push((name, schema, required.unwrap_or(!optional)));
    }

    fn fill(parts: &mut CallParts, name: &str) -> Result<T, ToolError> {
        let value = parts.take_argument(name)?.unwrap_or(Value::Null);
        decode_argument(name, value, parts.are_texts.then(|| parts.context.method()))
    }
}

impl CallParts {
    /// Fills a parameter.
    pub fn fill<P: Parameter<M>, M>(&mut self, name: &str) -> Result<P, ToolError> {
        P::fill(self, name)
    }

    /// Fills a parameter. An argument that was not given gets the value `default`.
    pub fn fill_or<P: Parameter<M>, M>(
        &mut self,
        name: &str,
        default: impl Serialize,
    ) -> Result<P, ToolError> {
        if !self.has_argument(name)? {
            self.give_argument(name, to_json(&default)?)?;
        }
        P::fill(self, name)
    }
}

/// Decodes an argument. Arguments of prompts and variables of URIs are strings, so numbers and booleans are
/// parsed from strings there. `texts_of` is the method in this case.
pub(crate) fn decode_argument<T: DeserializeOwned>(
    name: &str,
    mut value: Value,
    texts_of: Option<&'static str>,
) -> Result<T, ToolError> {
    let Some(method) = texts_of else {
        normalize_integers(&mut value);
        return T::deserialize(value)
            .map_err(|error| ToolError::new(format!("invalid argument {name:?}: {error}")));
    };
    let plain: Option<Value> = match &value {
        Value::String(text) => serde_json::from_str(text).ok().filter(|value: &Value| !value.is_string()),
        _ => None,
    };
    let as_text = match T::deserialize(value) {
        Ok(decoded) => return Ok(decoded),
        Err(error) => error,
    };
    let error = match plain.map(T::deserialize) {
        Some(Ok(decoded)) => return Ok(decoded),
        Some(Err(error)) => error,
        None => as_text,
    };
    Err(ProtocolError::invalid_params(method, format!("{name:?}: {error}")).into())
}
