//! `local.settings.json`: app settings and options of the host for local runs.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{read_object, unless_problems};
use crate::json::{ConfigReader, ProblemCollector, scalar_text};
use crate::problem::AppError;

const FILE: &str = "local.settings.json";

/// How the host listens on a developer's machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LocalHostConfig {
    /// `LocalHttpPort`: the port of the HTTP listener.
    pub port: Option<u16>,
    /// `CORS`: the origins that may call from a browser.
    pub cors: Vec<String>,
    /// `CORSCredentials`: whether those origins may send credentials.
    pub cors_credentials: bool,
}

/// Reads the file of an app. Returns empty values if it does not exist.
pub(super) fn read(folder: &Path) -> Result<(BTreeMap<String, String>, LocalHostConfig), AppError> {
    let Some(object) = read_object(&folder.join(FILE), FILE)? else { return Ok(Default::default()) };
    let notes = ProblemCollector::on_file(FILE);
    let root = ConfigReader::new(&object, "", &notes);
    if root.flag("IsEncrypted").unwrap_or(false) {
        let message = "the settings are encrypted, and only the machine that encrypted them can read them";
        root.report_problem("IsEncrypted", message, Some("run `func settings decrypt` in the app's folder"));
        return unless_problems(notes, Default::default());
    }
    let mut settings = values(&root.object("Values"));
    settings.extend(connection_strings(&root.object("ConnectionStrings")));
    let host = root.object("Host");
    let cors = host.text("CORS").unwrap_or_default();
    let local = LocalHostConfig {
        port: host.port("LocalHttpPort"),
        cors: cors.split(',').map(str::trim).filter(|origin| !origin.is_empty()).map(str::to_owned).collect(),
        cors_credentials: host.flag("CORSCredentials").unwrap_or(false),
    };
    unless_problems(notes, (settings, local))
}

fn values(members: &ConfigReader<'_>) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    for (name, value) in members.iter().filter(|(_, value)| !value.is_null()) {
        let Some(text) = scalar_text(value) else {
            let message = "a setting must be a string, but this is an object or an array";
            members.report_problem(
                name,
                message,
                Some("flatten it, with __ between the names: \"A__B\": \"…\""),
            );
            continue;
        };
        // A worker gets settings as environment variables. The system rejects other names and values.
        if name.is_empty() || name.contains(['=', '\0']) {
            members.report_problem(
                name,
                "is not a valid name for an environment variable",
                Some("use letters, digits and _"),
            );
        } else if text.contains('\0') {
            members.report_problem(
                name,
                "contains U+0000, which is not allowed in an environment variable",
                None,
            );
        } else {
            settings.insert(name.clone(), text);
        }
    }
    settings
}

/// Returns connection strings as settings named `ConnectionStrings:<name>`, like the tools of Azure.
fn connection_strings(members: &ConfigReader<'_>) -> BTreeMap<String, String> {
    let text = |(name, value): (&String, &Value)| {
        let text = match value {
            Value::Object(_) => members.object(name).text("ConnectionString")?,
            other => scalar_text(other)?,
        };
        Some((format!("ConnectionStrings:{name}"), text))
    };
    members.iter().filter_map(text).collect()
}
