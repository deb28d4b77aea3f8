//! Requests that schemathesis generates from OpenAPI documents: none is a server error.
//!
//! Its phase `coverage` is used, which makes the same requests in each run.

use std::process::Command;

use super::frameworks::fastapi;
use super::*;
use crate::packages;

for_each_language!(plain_functions_have_no_server_errors);

/// Describes functions of the fixture apps, and requests that the document does not allow.
const DOCUMENT: &str = r#"{
  "openapi": "3.0.3", "info": {"title": "functions", "version": "1"},
  "paths": {
    "/api/echo/{id}": {
      "parameters": [
        {"name": "id", "in": "path", "required": true, "schema": {"type": "integer"}},
        {"name": "q", "in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
        {"name": "x-test", "in": "header", "schema": {"type": "string"}},
        {"name": "c", "in": "cookie", "schema": {"type": "string"}}
      ],
      "get": {"responses": {"200": {"description": "ok"}}},
      "put": {"responses": {"200": {"description": "ok"}}, "requestBody": {"content": {"text/plain": {"schema": {"type": "string"}}}}}
    },
    "/api/binary": {"post": {"responses": {"200": {"description": "ok"}}, "requestBody": {"content": {
      "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
      "multipart/form-data": {"schema": {"type": "object", "properties": {"a": {"type": "string", "format": "binary"}}}},
      "application/x-www-form-urlencoded": {"schema": {"type": "object", "additionalProperties": {"type": "string"}}}
    }}}},
    "/api/load/{folder}/{name}": {"get": {
      "parameters": [
        {"name": "folder", "in": "path", "required": true, "schema": {"type": "string"}},
        {"name": "name", "in": "path", "required": true, "schema": {"type": "string"}}
      ],
      "responses": {"200": {"description": "ok"}}
    }}
  }
}"#;

/// Sends the requests for a document, a file or an address, and fails if a response is a server error.
async fn check(host: &Served, document: &str) {
    let program = packages::pip(&[("schemathesis", "4.32.5")]).with_file_name("schemathesis");
    let mut command = Command::new(program);
    command.args(["run", document, "--url", &format!("http://{}", host.address)]);
    command.args([
        "--phases",
        "coverage",
        "--checks",
        "not_a_server_error",
        "--seed",
        "1",
        "--warnings",
        "off",
    ]);
    let folder = host.file(".");
    let output =
        tokio::task::spawn_blocking(move || command.current_dir(folder).output().unwrap()).await.unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("No issues found"), "{told}");
}

async fn plain_functions_have_no_server_errors(language: Language) {
    let host = launch(language).file("generated.json", DOCUMENT).serve();
    check(&host, "generated.json").await;
}

#[tokio::test]
async fn fastapi_behind_a_function_has_no_server_errors() {
    let host = fastapi();
    check(&host, &format!("http://{}/openapi.json", host.address)).await;
}
