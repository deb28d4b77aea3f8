//! Bindings as JSON → [`Function`].

use serde_json::{Map, Value};

use super::{
    BindingDirection, BindingInfo, BlobBinding, DataType, Function, FunctionRejection, FunctionSource,
    HttpTrigger, InputBinding, OutputBinding, SkippedFunction, TimerTrigger, Trigger, path_arguments,
};
use crate::bindings::mcp;
use crate::bindings::template::PathTemplate;
use crate::json::{ConfigReader, ProblemCollector, member};
use crate::problem::Problem;

/// The default `connection` of a blob binding.
const DEFAULT_CONNECTION: &str = "AzureWebJobsStorage";

/// The kinds of binding, in the spelling of the extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BindingKind {
    ToolTrigger,
    ResourceTrigger,
    PromptTrigger,
    ToolProperty,
    PromptArgument,
    HttpTrigger,
    HttpResponse,
    TimerTrigger,
    Blob,
}

const KINDS: [(&str, BindingKind); 9] = [
    ("mcpToolTrigger", BindingKind::ToolTrigger),
    ("mcpResourceTrigger", BindingKind::ResourceTrigger),
    ("mcpPromptTrigger", BindingKind::PromptTrigger),
    ("mcpToolProperty", BindingKind::ToolProperty),
    ("mcpPromptArgument", BindingKind::PromptArgument),
    ("httpTrigger", BindingKind::HttpTrigger),
    ("http", BindingKind::HttpResponse),
    ("timerTrigger", BindingKind::TimerTrigger),
    ("blob", BindingKind::Blob),
];

impl BindingKind {
    fn from_type_name(text: &str) -> Option<(&'static str, BindingKind)> {
        KINDS.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(text))
    }
    fn is_trigger(self) -> bool {
        match self {
            BindingKind::ToolTrigger
            | BindingKind::ResourceTrigger
            | BindingKind::PromptTrigger
            | BindingKind::HttpTrigger
            | BindingKind::TimerTrigger => true,
            BindingKind::ToolProperty
            | BindingKind::PromptArgument
            | BindingKind::HttpResponse
            | BindingKind::Blob => false,
        }
    }
}

/// A binding of a known kind.
struct ParsedBinding<'a> {
    kind: BindingKind,
    info: BindingInfo,
    members: ConfigReader<'a>,
}

pub(super) fn build_function(
    name: &str,
    id: &str,
    mut source: FunctionSource,
    bindings: &[Value],
    setting: &dyn Fn(&str) -> Option<String>,
) -> Result<Function, FunctionRejection> {
    let notes = ProblemCollector::on_function(name);
    let objects: Vec<&Map<String, Value>> = objects(bindings, &notes);
    if let Some(reason) = reason_to_skip(&objects) {
        return Err(FunctionRejection::Skipped(SkippedFunction { name: name.to_owned(), reason }));
    }
    let bindings: Vec<ParsedBinding<'_>> =
        objects.into_iter().filter_map(|object| binding(object, &notes)).collect();
    check_names(&bindings, &notes);
    source.bindings = bindings.iter().map(|binding| binding.info.clone()).collect();

    let mut triggers = Vec::new();
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for ParsedBinding { kind, info, members } in bindings {
        let (name, members) = (info.name.clone(), &members);
        match kind {
            BindingKind::ToolTrigger => triggers.push(Trigger::Tool(mcp::read_tool_trigger(name, members))),
            BindingKind::ResourceTrigger => {
                triggers.extend(mcp::read_resource_trigger(name, members).map(Trigger::Resource))
            }
            BindingKind::PromptTrigger => {
                triggers.push(Trigger::Prompt(mcp::read_prompt_trigger(name, members)))
            }
            BindingKind::ToolProperty => {
                let property = members.required_text("propertyName").unwrap_or_default();
                inputs.push(InputBinding::ToolProperty { name, property });
            }
            BindingKind::PromptArgument => {
                let argument = members.required_text("argumentName").unwrap_or_default();
                let required = members.flag("isRequired").unwrap_or(false);
                inputs.push(InputBinding::PromptArgument { name, argument, required });
            }
            BindingKind::HttpTrigger => {
                triggers.push(Trigger::Http(HttpTrigger::read(name, members, setting)));
            }
            BindingKind::TimerTrigger => {
                triggers.extend(TimerTrigger::read(name, members, setting).map(Trigger::Timer))
            }
            BindingKind::HttpResponse => outputs.push(OutputBinding::Http { name }),
            BindingKind::Blob => match (blob(&info, members, setting), info.direction) {
                (Some(blob), BindingDirection::Out) => outputs.push(OutputBinding::Blob(blob)),
                (Some(blob), _) => inputs.push(InputBinding::Blob(blob)),
                (None, _) => {}
            },
        }
    }
    for input in &inputs {
        check_trigger_matches(input, &triggers, &notes);
    }
    check_responses(&outputs, &triggers, &notes);
    if let [trigger] = triggers.as_slice() {
        let read = inputs.iter().filter_map(InputBinding::as_blob);
        let written = outputs.iter().filter_map(OutputBinding::as_blob);
        path_arguments::check(trigger, read.chain(written), &notes);
    }
    let warnings = notes.take_warnings();
    let trigger = notes.into_result(triggers.pop()).map_err(FunctionRejection::Problems)?;
    // Without a problem there is exactly one trigger, as `reason_to_skip` has checked.
    let trigger = trigger
        .ok_or_else(|| FunctionRejection::Problems(vec![Problem::new("has no trigger").of_function(name)]))?;
    Ok(Function { name: name.to_owned(), id: id.to_owned(), trigger, inputs, outputs, source, warnings })
}

fn objects<'a>(bindings: &'a [Value], notes: &ProblemCollector) -> Vec<&'a Map<String, Value>> {
    let object = |(index, value): (usize, &'a Value)| {
        let object = value.as_object();
        if object.is_none() {
            notes.add_problem(Problem::new("must be an object").at(format!("bindings[{index}]")));
        }
        object
    };
    bindings.iter().enumerate().filter_map(object).collect()
}

fn kind_text(object: &Map<String, Value>) -> &str {
    member(object, "type").and_then(Value::as_str).unwrap_or_default().trim()
}

/// Returns the reason if a function is not supported. A binding that is not supported is such a reason,
/// because the function cannot work without it.
fn reason_to_skip(objects: &[&Map<String, Value>]) -> Option<String> {
    let ends_in_trigger = |kind: &str| kind.to_ascii_lowercase().ends_with("trigger");
    let triggers: Vec<&str> =
        objects.iter().map(|object| kind_text(object)).filter(|kind| ends_in_trigger(kind)).collect();
    let ours =
        "bindpost runs mcpToolTrigger, mcpResourceTrigger, mcpPromptTrigger, httpTrigger and timerTrigger";
    match triggers.as_slice() {
        [] => return Some(format!("it has no trigger; {ours}")),
        [one] if BindingKind::from_type_name(one).is_none() => {
            return Some(format!("the trigger {one} is not supported; {ours}"));
        }
        [_] => {}
        many => {
            return Some(format!("it has {} triggers ({}); a function has one", many.len(), many.join(", ")));
        }
    }
    let foreign = objects
        .iter()
        .map(|object| kind_text(object))
        .find(|kind| !kind.is_empty() && BindingKind::from_type_name(kind).is_none())?;
    Some(format!(
        "the binding {foreign} is not supported; a function may use blob, with an HTTP trigger also http, and \
         with an MCP trigger also mcpToolProperty or mcpPromptArgument"
    ))
}

fn binding<'a>(object: &'a Map<String, Value>, notes: &'a ProblemCollector) -> Option<ParsedBinding<'a>> {
    let Some((spelling, kind)) = BindingKind::from_type_name(kind_text(object)) else {
        let problem = Problem::new("a binding has no type").at("bindings");
        notes.add_problem(problem.fix("give it a type, like mcpToolTrigger or blob"));
        return None;
    };
    let label = match member(object, "name").and_then(Value::as_str) {
        Some(name) if !kind.is_trigger() => format!("{spelling}[{name}]"),
        _ => spelling.to_owned(),
    };
    let members = ConfigReader::new(object, label, notes);
    // Missing and invalid members are reported. Parsing continues to find the other mistakes.
    let info = BindingInfo {
        name: members.required_text("name").unwrap_or_default(),
        kind: kind_text(object).to_owned(),
        direction: direction(&members, kind).unwrap_or_default(),
        data_type: data_type(&members).unwrap_or_default(),
    };
    Some(ParsedBinding { kind, info, members })
}

fn direction(members: &ConfigReader<'_>, kind: BindingKind) -> Option<BindingDirection> {
    let text = members.text("direction").unwrap_or_default();
    let direction = match text.trim().to_ascii_lowercase().as_str() {
        // The default is `in`, as in .NET.
        "" | "in" => BindingDirection::In,
        "out" => BindingDirection::Out,
        "inout" => BindingDirection::InOut,
        _ => {
            members.report_problem("direction", format!("{text:?} is not valid"), Some("write in or out"));
            return None;
        }
    };
    let fix = match (kind, direction) {
        (BindingKind::HttpResponse, BindingDirection::Out) => return Some(direction),
        (BindingKind::HttpResponse, _) => "write out",
        (_, BindingDirection::In) | (BindingKind::Blob, BindingDirection::Out) => return Some(direction),
        (BindingKind::Blob, _) => "use two bindings, one with direction in and one with direction out",
        _ => "write in",
    };
    members.report_problem(
        "direction",
        format!("this binding cannot have the direction {text:?}"),
        Some(fix),
    );
    None
}

fn data_type(members: &ConfigReader<'_>) -> Option<DataType> {
    let text = members.text("dataType").unwrap_or_default();
    match text.trim().to_ascii_lowercase().as_str() {
        "" | "undefined" => Some(DataType::Undefined),
        "string" => Some(DataType::Text),
        "binary" => Some(DataType::Binary),
        "stream" => Some(DataType::Stream),
        _ => {
            members.report_problem(
                "dataType",
                format!("{text:?} is not valid"),
                Some("write string, binary or stream"),
            );
            None
        }
    }
}

/// Checks that the names of bindings are unique: a worker could not distinguish two bindings of one name.
fn check_names(bindings: &[ParsedBinding<'_>], notes: &ProblemCollector) {
    for (index, binding) in bindings.iter().enumerate() {
        let name = &binding.info.name;
        if !name.is_empty()
            && bindings.iter().take(index).any(|other| other.info.name.eq_ignore_ascii_case(name))
        {
            let problem = Problem::new(format!("two bindings have the name {name:?}")).at("bindings");
            notes.add_problem(problem.fix("give each binding a name of its own"));
        }
        if name == "$return" && binding.info.direction == BindingDirection::In {
            binding.members.report_problem(
                "name",
                "$return is the name of an output",
                Some("name a parameter"),
            );
        }
    }
}

fn blob(
    info: &BindingInfo,
    members: &ConfigReader<'_>,
    setting: &dyn Fn(&str) -> Option<String>,
) -> Option<BlobBinding> {
    let path = members.required_text("path")?;
    let connection = members.text("connection").filter(|name| !name.trim().is_empty());
    match PathTemplate::parse(&path, setting) {
        Ok(path) => Some(BlobBinding {
            name: info.name.clone(),
            path,
            connection: connection.unwrap_or_else(|| DEFAULT_CONNECTION.to_owned()),
            data_type: info.data_type,
        }),
        Err(error) => {
            members.report_problem("path", error.to_string(), None);
            None
        }
    }
}

/// Checks that an argument binding has the trigger whose arguments it reads.
fn check_trigger_matches(input: &InputBinding, triggers: &[Trigger], notes: &ProblemCollector) {
    let (kind, name, wanted) = match (input, triggers) {
        (InputBinding::Blob(_), _)
        | (InputBinding::ToolProperty { .. }, [Trigger::Tool(_)])
        | (InputBinding::PromptArgument { .. }, [Trigger::Prompt(_)])
        | (_, []) => return,
        (InputBinding::ToolProperty { name, .. }, _) => ("mcpToolProperty", name, "mcpToolTrigger"),
        (InputBinding::PromptArgument { name, .. }, _) => ("mcpPromptArgument", name, "mcpPromptTrigger"),
    };
    let problem =
        Problem::new(format!("this binding needs an {wanted}, but the function has another trigger"));
    notes.add_problem(
        problem.at(format!("{kind}[{name}]")).fix(format!("remove it, or make the trigger an {wanted}")),
    );
}

/// Checks that only a function with an HTTP trigger has a response, and only one.
fn check_responses(outputs: &[OutputBinding], triggers: &[Trigger], notes: &ProblemCollector) {
    let is_http = matches!(triggers, [Trigger::Http(_)] | []);
    let responses = outputs.iter().filter_map(|output| match output {
        OutputBinding::Http { name } => Some(name),
        OutputBinding::Blob(_) => None,
    });
    for (index, name) in responses.enumerate() {
        let (message, fix) = match index {
            _ if !is_http => {
                ("this binding needs an httpTrigger, but the function has another trigger", "remove it")
            }
            0 => continue,
            _ => (
                "a request has one response, but the function has several bindings for it",
                "remove all but one",
            ),
        };
        notes.add_problem(Problem::new(message).at(format!("http[{name}]")).fix(fix));
    }
}
