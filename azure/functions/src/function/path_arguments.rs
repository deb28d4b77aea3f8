//! Checks the arguments that the paths of blobs name against those that the trigger declares.

use bindpost_mcp_server::nearest;

use super::{BlobBinding, Trigger};
use crate::bindings::mcp::property_names;
use crate::json::ProblemCollector;
use crate::problem::Problem;

/// The arguments that a trigger declares.
struct DeclaredArguments {
    names: Vec<String>,
    /// The member of the context that has them, with names in their own case.
    group: &'static str,
    /// The word for one of them.
    word: &'static str,
    /// The place of the declarations.
    member: &'static str,
}

impl DeclaredArguments {
    /// Returns the arguments of a tool or prompt. Returns `None` for another trigger, and for a tool whose schema lists
    /// no properties.
    fn of_trigger(trigger: &Trigger) -> Option<DeclaredArguments> {
        match trigger {
            Trigger::Tool(trigger) => {
                let schema = &trigger.tool.input_schema;
                let allows_others = schema.get("additionalProperties").is_some_and(|more| *more != false)
                    || schema.get("patternProperties").is_some();
                (schema.get("properties").is_some() && !allows_others).then(|| DeclaredArguments {
                    names: property_names(schema),
                    group: "mcptoolargs",
                    word: "property of the tool",
                    member: "mcpToolTrigger.toolProperties",
                })
            }
            Trigger::Prompt(trigger) => Some(DeclaredArguments {
                names: trigger.prompt.arguments.iter().map(|argument| argument.name.clone()).collect(),
                group: "mcppromptargs",
                word: "argument of the prompt",
                member: "mcpPromptTrigger.promptArguments",
            }),
            Trigger::Resource(_) | Trigger::Http(_) | Trigger::Timer(_) => None,
        }
    }

    /// Returns whether an argument of a group is declared.
    fn has(&self, group: &str, name: &str) -> bool {
        // The platform finds members of the context in any case, but arguments in their own case only.
        let ignores_case = !group.eq_ignore_ascii_case(self.group);
        self.names.iter().any(|known| match ignores_case {
            true => known.eq_ignore_ascii_case(name),
            false => known == name,
        })
    }
}

/// Warns of arguments in the paths of blobs that the trigger does not declare. Calls fail unless the client sends them
/// anyway.
pub(super) fn check<'a>(
    trigger: &Trigger,
    blobs: impl Iterator<Item = &'a BlobBinding>,
    notes: &ProblemCollector,
) {
    let Some(declared) = DeclaredArguments::of_trigger(trigger) else { return };
    for blob in blobs {
        for (group, rest) in blob.path.data_names() {
            let is_group =
                group.eq_ignore_ascii_case(declared.group) || group.eq_ignore_ascii_case("arguments");
            let [name] = rest else { continue };
            if !is_group || declared.has(group, name) {
                continue;
            }
            let known: Vec<&str> = declared.names.iter().map(String::as_str).collect();
            let other_case = known.iter().copied().find(|known| known.eq_ignore_ascii_case(name));
            let fix = match other_case.or_else(|| nearest::nearest(name, &known)) {
                Some(near) => format!("write {{{group}.{near}}}"),
                None => format!("declare it in {}", declared.member),
            };
            let problem = Problem::new(format!("{{{group}.{name}}} names no {}", declared.word));
            notes.add_warning(problem.at(format!("blob[{}].path", blob.name)).fix(fix));
        }
    }
}
