//! Which tools of an app run as tasks, and what of `extensions.mcp.tasks` has no effect.

use std::sync::Arc;

use bindpost_mcp_server::{TaskSupport, ToolEntry, nearest};

use crate::app::{App, TaskConfig};
use crate::entries::ToolTasks;
use crate::function::{Function, ToolTrigger, Trigger};
use crate::host::report::{AppReport, AppWarning};

/// Returns whether and how calls of a function run as tasks.
pub(crate) fn tool_tasks(tasks: &TaskConfig, function: &Function) -> ToolTasks {
    match &function.trigger {
        Trigger::Tool(trigger) => {
            ToolTasks { support: tasks.support(trigger), answer_after: tasks.answer_after(trigger) }
        }
        _ => ToolTasks { support: TaskSupport::Never, answer_after: None },
    }
}

/// Returns the configuration of tasks for these functions. Reports what of `answerAfter` has no effect.
pub(crate) fn checked_tasks(app: &App, functions: &[Arc<Function>], report: &mut AppReport) -> TaskConfig {
    let mut tasks = app.host.mcp.tasks.clone();
    warn_of_idle_patterns(&tasks, report);
    if tasks.answer_after.is_none() {
        return tasks;
    }
    const PLACE: &str = "host.json: extensions.mcp.tasks.answerAfter";
    let triggers = || {
        functions.iter().filter_map(|function| match &function.trigger {
            Trigger::Tool(trigger) => Some((function, trigger)),
            _ => None,
        })
    };
    let own = triggers().find(|(_, trigger)| trigger.tool.name.eq_ignore_ascii_case(ToolEntry::TASK_RESULT));
    if let Some((function, trigger)) = own {
        let message = format!(
            "{PLACE} has no effect, because it needs the tool name {}, which function {} has",
            trigger.tool.name, function.name
        );
        report.warnings.push(AppWarning::new(message).fix("rename the tool of the function"));
        tasks.answer_after = None;
        return tasks;
    }
    let is_selected = |trigger: &ToolTrigger| tasks.support(trigger) == TaskSupport::WhenPossible;
    if !triggers().any(|(_, trigger)| is_selected(trigger)) {
        let fix = "select tools in extensions.mcp.tasks.tools";
        report
            .warnings
            .push(AppWarning::new(format!("{PLACE} has no effect, because no tool runs as a task")).fix(fix));
    }
    for (function, trigger) in triggers() {
        if is_selected(trigger) && trigger.tool.output_schema.is_some() {
            let message = format!(
                "{PLACE} does not apply to function {}, because an answer without the result would break its output schema",
                function.name
            );
            report.warnings.push(AppWarning::new(message).fix("remove outputSchema of the tool"));
        }
    }
    tasks
}

/// Warns of patterns in `extensions.mcp.tasks.tools` that match no tool.
fn warn_of_idle_patterns(tasks: &TaskConfig, report: &mut AppReport) {
    let tools: Vec<&str> = report.tools.iter().map(|tool| tool.name.as_str()).collect();
    let warnings = tasks.tools.idle_patterns(&tools).into_iter().map(|pattern| {
        let message = format!("host.json: extensions.mcp.tasks.tools: {pattern:?} matches no tool");
        AppWarning::new(message).fix(match nearest::nearest(pattern, &tools) {
            Some(tool) => format!("write {tool:?}"),
            None => "write the name of a tool; * matches any text, and true selects all tools".to_owned(),
        })
    });
    let warnings: Vec<AppWarning> = warnings.collect();
    report.warnings.extend(warnings);
}
