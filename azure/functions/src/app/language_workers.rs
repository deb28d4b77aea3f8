//! `languageWorkers`: the worker of each language, from settings or `host.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::json::ConfigReader;

/// The section `languageWorkers`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LanguageWorkers {
    /// The folder that contains one folder for each language.
    workers_directory: Option<String>,
    /// The overrides by language, in lower case.
    languages: BTreeMap<String, WorkerOverride>,
}

/// Overrides of the `worker.config.json` of a language.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerOverride {
    pub worker_directory: Option<String>,
    pub default_executable_path: Option<String>,
    /// Added after those of `worker.config.json`. One string may contain several arguments,
    /// separated by spaces.
    pub arguments: Vec<String>,
}

impl LanguageWorkers {
    /// Returns the folder with the `worker.config.json` of a language, if one is configured. A relative path
    /// is resolved against the app's folder.
    pub fn directory(&self, language: &str, app: &Path) -> Option<PathBuf> {
        let own = self
            .override_for(language)
            .and_then(|language| language.worker_directory.as_ref())
            .map(PathBuf::from);
        let shared = || Some(Path::new(self.workers_directory.as_ref()?).join(language));
        own.or_else(shared).map(|directory| app.join(directory))
    }

    /// Returns the overrides for a language.
    pub fn override_for(&self, language: &str) -> Option<&WorkerOverride> {
        self.languages.get(&language.to_lowercase())
    }

    pub(super) fn read(members: &ConfigReader<'_>) -> LanguageWorkers {
        let objects = members.iter().filter(|(_, value)| matches!(value, Value::Object(_)));
        let languages = objects.map(|(language, _)| {
            let members = members.object(language);
            let path = |name: &str| members.text(name).filter(|path| !path.trim().is_empty());
            let worker = WorkerOverride {
                worker_directory: path("workerDirectory"),
                default_executable_path: path("defaultExecutablePath"),
                arguments: members.texts("arguments"),
            };
            (language.to_lowercase(), worker)
        });
        let workers_directory = members.text("workersDirectory").filter(|path| !path.trim().is_empty());
        LanguageWorkers { workers_directory, languages: languages.collect() }
    }
}
