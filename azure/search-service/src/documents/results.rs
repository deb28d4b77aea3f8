//! The results of indexing a batch, one per document.

use std::io::Write;

use http::StatusCode;

use super::value::write_text;

/// The result of one action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexingResult {
    pub key: String,
    pub status: StatusCode,
    /// The error message if the action failed.
    pub error: Option<String>,
}

impl IndexingResult {
    /// A document was created: 201.
    pub fn created(key: impl Into<String>) -> Self {
        Self { key: key.into(), status: StatusCode::CREATED, error: None }
    }

    /// A document was changed or deleted, or the document to delete did not exist: 200.
    pub fn done(key: impl Into<String>) -> Self {
        Self { key: key.into(), status: StatusCode::OK, error: None }
    }

    /// The document is invalid: 400.
    pub fn refused(key: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { key: key.into(), status: StatusCode::BAD_REQUEST, error: Some(reason.into()) }
    }

    /// The document to merge into does not exist: 404.
    pub fn missing(key: impl Into<String>) -> Self {
        let reason =
            "There is no document with this key to merge into. Use mergeOrUpload or upload to create it.";
        Self { key: key.into(), status: StatusCode::NOT_FOUND, error: Some(reason.to_owned()) }
    }
}

/// Returns the status and body of the response. The status is 207 if any document failed, otherwise 200.
pub(crate) fn indexing_response(outcomes: &[IndexingResult]) -> (StatusCode, Vec<u8>) {
    let mut body = Vec::with_capacity(16 + outcomes.len() * 80);
    body.extend_from_slice(br#"{"value":["#);
    let mut failed = false;
    for (at, outcome) in outcomes.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        failed |= outcome.error.is_some();
        body.extend_from_slice(br#"{"key":"#);
        write_text(&outcome.key, &mut body);
        // Writing to memory cannot fail.
        let _ = write!(body, r#","status":{},"errorMessage":"#, outcome.error.is_none());
        match &outcome.error {
            Some(reason) => write_text(reason, &mut body),
            None => body.extend_from_slice(b"null"),
        }
        let _ = write!(body, r#","statusCode":{}}}"#, outcome.status.as_u16());
    }
    body.extend_from_slice(b"]}");
    (if failed { StatusCode::MULTI_STATUS } else { StatusCode::OK }, body)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn any_failure_makes_the_response_a_207() {
        let (status, body) = indexing_response(&[IndexingResult::created("1"), IndexingResult::done("2")]);
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            serde_json::from_slice::<Value>(&body).unwrap(),
            json!({"value": [
                {"key": "1", "status": true, "errorMessage": null, "statusCode": 201},
                {"key": "2", "status": true, "errorMessage": null, "statusCode": 200}
            ]})
        );
        let (status, body) = indexing_response(&[
            IndexingResult::done("1"),
            IndexingResult::missing("2"),
            IndexingResult::refused("a\"b", "is \"wrong\""),
        ]);
        assert_eq!(status, StatusCode::MULTI_STATUS);
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["value"][1]["statusCode"], 404);
        assert_eq!(
            body["value"][2],
            json!({"key": "a\"b", "status": false, "errorMessage": "is \"wrong\"", "statusCode": 400})
        );
    }
}
