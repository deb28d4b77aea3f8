//! `extensions.mcp.tasks` of `host.json`: which tools run as tasks.

use std::time::Duration;

use bindpost_mcp_server::TaskSupport;

use super::name_patterns::NamePatterns;
use crate::function::ToolTrigger;
use crate::json::ConfigReader;

/// The section `extensions.mcp.tasks`. It exists in bindpost only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskConfig {
    pub tools: NamePatterns,
    /// How long a task and its result exist.
    pub lifetime: Duration,
    /// When a call of a client without tasks is answered with the id of a task.
    pub answer_after: Option<Duration>,
}

impl Default for TaskConfig {
    fn default() -> TaskConfig {
        TaskConfig {
            tools: NamePatterns::default(),
            lifetime: Duration::from_secs(60 * 60),
            answer_after: None,
        }
    }
}

impl TaskConfig {
    pub(super) fn read(members: &ConfigReader<'_>) -> TaskConfig {
        let default = TaskConfig::default();
        TaskConfig {
            tools: NamePatterns::read(members, "tools"),
            lifetime: positive_time(members, "lifetime").unwrap_or(default.lifetime),
            answer_after: positive_time(members, "answerAfter"),
        }
    }

    /// The members of the section.
    pub(super) const MEMBERS: [&str; 3] = ["tools", "lifetime", "answerAfter"];

    /// Returns when a call of a tool is answered for a client without tasks, if it still runs then. An answer without the
    /// tool's result would break an output schema.
    pub(crate) fn answer_after(&self, trigger: &ToolTrigger) -> Option<Duration> {
        let is_possible =
            self.support(trigger) == TaskSupport::WhenPossible && trigger.tool.output_schema.is_none();
        self.answer_after.filter(|_| is_possible)
    }

    /// Returns whether calls of a tool run as tasks. The trigger decides, and if it does not, the selection.
    pub(crate) fn support(&self, trigger: &ToolTrigger) -> TaskSupport {
        match trigger.task_support {
            Some(support) => support,
            None => self.support_name(&trigger.tool.name),
        }
    }

    /// Returns whether calls of a tool run as tasks, if only the selection decides.
    pub(crate) fn support_name(&self, tool: &str) -> TaskSupport {
        match self.tools.select(tool) {
            true => TaskSupport::WhenPossible,
            false => TaskSupport::Never,
        }
    }
}

fn positive_time(members: &ConfigReader<'_>, name: &str) -> Option<Duration> {
    let time = members.time(name)?;
    if time.is_zero() {
        members.report_problem(name, "must be more than zero", Some("write it as hh:mm:ss, like 00:01:30"));
        return None;
    }
    Some(time)
}
