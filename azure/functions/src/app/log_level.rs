//! Log levels: the section `logging.logLevel` of `host.json`.

use crate::json::{ConfigReader, scalar_text};

/// The minimum level that a category logs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    Trace,
    Debug,
    #[default]
    Information,
    Warning,
    Error,
    Critical,
    None,
}

const NAMES: [(&str, LogLevel); 7] = [
    ("Trace", LogLevel::Trace),
    ("Debug", LogLevel::Debug),
    ("Information", LogLevel::Information),
    ("Warning", LogLevel::Warning),
    ("Error", LogLevel::Error),
    ("Critical", LogLevel::Critical),
    ("None", LogLevel::None),
];

/// The levels of log categories such as `Function.save_snippet.User`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogLevels {
    default: LogLevel,
    categories: Vec<(String, LogLevel)>,
}

impl LogLevels {
    /// Returns the minimum level of a category. The longest configured prefix of the category decides.
    pub fn level(&self, category: &str) -> LogLevel {
        let starts =
            |name: &str| category.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        let matching = self.categories.iter().filter(|(name, _)| starts(name));
        matching.max_by_key(|(name, _)| name.len()).map_or(self.default, |(_, level)| *level)
    }

    pub(super) fn read(members: &ConfigReader<'_>) -> LogLevels {
        let mut levels = LogLevels::default();
        for (category, value) in members.iter() {
            let text = scalar_text(value).unwrap_or_default();
            let known = NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text.trim()));
            match known {
                None => {
                    let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
                    members.report_problem(
                        category,
                        format!("{text:?} is not a log level"),
                        Some(&format!("write one of {}", names.join(", "))),
                    );
                }
                Some((_, level)) if category.eq_ignore_ascii_case("default") => levels.default = *level,
                Some((_, level)) => levels.categories.push((category.clone(), *level)),
            }
        }
        levels
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::json::ProblemCollector;

    #[test]
    fn the_longest_prefix_of_a_category_decides() {
        let value =
            json!({"default": "warning", "Function": "Error", "function.a": "Trace", "Host.Results": "none"});
        let notes = ProblemCollector::default();
        let levels = LogLevels::read(&ConfigReader::new(value.as_object().unwrap(), "", &notes));
        assert_eq!(levels.level("Function.a.User"), LogLevel::Trace);
        assert_eq!(levels.level("Function.b"), LogLevel::Error);
        assert_eq!(levels.level("Host.Results"), LogLevel::None);
        assert_eq!(levels.level("Hö"), LogLevel::Warning);
        assert_eq!(LogLevels::default().level("x"), LogLevel::Information);
        assert!(notes.into_problems().is_empty());
    }
}
