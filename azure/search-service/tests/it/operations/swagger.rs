//! The required members of responses, from the official API description if it is available.

use std::collections::HashMap;
use std::path::Path;

use serde_json::Value;

/// The folder next to the repository. The files are not part of the repository.
pub(crate) const FOLDER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/specs/azure-search/2025-08-01-preview");

const FILES: [&str; 3] = ["searchservice.json", "searchindex.json", "knowledgeagent.json"];

pub(crate) struct Swagger {
    files: Vec<Value>,
    /// Maps an operation id and a status to the index of a file and a schema in it.
    answers: HashMap<(String, String), (usize, Value)>,
}

impl Swagger {
    /// Opens the files. Prints a line and returns `None` if they are not available.
    pub(crate) fn open() -> Option<Self> {
        let mut swagger = Self { files: Vec::new(), answers: HashMap::new() };
        for (number, name) in FILES.iter().enumerate() {
            let path = Path::new(FOLDER).join(name);
            let Ok(text) = std::fs::read(&path) else {
                eprintln!("skipped: required members of answers, there is no {}", path.display());
                return None;
            };
            let file: Value = serde_json::from_slice(&text).unwrap();
            for operations in file["paths"].as_object().unwrap().values() {
                for operation in operations.as_object().unwrap().values() {
                    let Some(id) = operation["operationId"].as_str() else { continue };
                    for (status, response) in operation["responses"].as_object().unwrap() {
                        if let Some(schema) = response.get("schema") {
                            swagger.answers.insert((id.to_owned(), status.clone()), (number, schema.clone()));
                        }
                    }
                }
            }
            swagger.files.push(file);
        }
        Some(swagger)
    }

    /// Returns the paths of required members that the response does not have. A response with an
    /// undocumented status is reported too.
    pub(crate) fn missing(&self, operation: &str, status: u16, answer: Option<&Value>) -> Vec<String> {
        let mut missing = Vec::new();
        match (self.answers.get(&(operation.to_owned(), status.to_string())), answer) {
            (Some((file, schema)), Some(answer)) => self.look(*file, schema, answer, "", &mut missing),
            (Some(_), None) => missing.push("a body".to_owned()),
            (None, Some(_)) => missing.push(format!("a description of a body for {status}")),
            (None, None) => {}
        }
        missing
    }

    fn look(&self, file: usize, schema: &Value, answer: &Value, path: &str, missing: &mut Vec<String>) {
        if let Some(name) = schema["$ref"].as_str() {
            // Other files contain only the format of errors.
            if let Some(pointer) = name.strip_prefix('#') {
                let target = self.files[file].pointer(pointer).unwrap();
                self.look(file, target, answer, path, missing);
            }
            return;
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.look(file, part, answer, path, missing);
        }
        if let Some(elements) = answer.as_array() {
            for (at, element) in elements.iter().enumerate() {
                self.look(file, &schema["items"], element, &format!("{path}/{at}"), missing);
            }
        }
        for member in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            let nullable = schema["properties"][member]["x-nullable"].as_bool().unwrap_or(false);
            match answer.get(member) {
                None => missing.push(format!("{path}/{member}")),
                Some(Value::Null) if !nullable => missing.push(format!("{path}/{member} (null)")),
                Some(_) => {}
            }
        }
        for (member, schema) in schema["properties"].as_object().into_iter().flatten() {
            if let Some(value) = answer.get(member).filter(|value| !value.is_null()) {
                self.look(file, schema, value, &format!("{path}/{member}"), missing);
            }
        }
    }
}
