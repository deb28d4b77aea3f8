//! `extensions.mcp.httpTools` of `host.json`: which functions with an HTTP trigger are tools.

use serde_json::Value;

use super::name_patterns::NamePatterns;
use crate::json::ConfigReader;

/// The members of the object form.
const MEMBERS: [&str; 3] = ["include", "exclude", "openapi"];

/// The section `extensions.mcp.httpTools`. It exists in bindpost only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HttpToolConfig {
    /// The names of functions, or of operations of the OpenAPI document.
    pub include: NamePatterns,
    /// Names that are not included in spite of `include`.
    pub exclude: NamePatterns,
    /// The OpenAPI document: a file, relative to the app's folder, or with a leading slash a path that the app answers.
    pub openapi: Option<String>,
}

impl HttpToolConfig {
    /// Reads the member: `true`, a list of names, or an object.
    pub(super) fn read(mcp: &ConfigReader<'_>) -> HttpToolConfig {
        let name = "httpTools";
        // A list of application settings is an object whose members are numbers.
        let is_object = matches!(mcp.value(name), Some(Value::Object(members))
            if members.is_empty() || members.keys().any(|key| key.parse::<usize>().is_err()));
        if !is_object {
            let include = NamePatterns::read(mcp, name);
            return HttpToolConfig { include, ..HttpToolConfig::default() };
        }
        let members = mcp.object(name);
        super::host_json::warn_of_unknown(&members, &MEMBERS);
        let openapi = members.text("openapi").map(|file| file.trim().to_owned());
        HttpToolConfig {
            include: match members.value("include") {
                None => NamePatterns::All,
                Some(_) => NamePatterns::read(&members, "include"),
            },
            exclude: NamePatterns::read(&members, "exclude"),
            openapi: openapi.filter(|file| !file.is_empty()),
        }
    }

    /// Returns whether a name is included and not excluded.
    pub(crate) fn selects(&self, name: &str) -> bool {
        self.include.select(name) && !self.exclude.select(name)
    }
}
