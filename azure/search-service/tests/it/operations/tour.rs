//! Runs the operations one after the other against a service on its own port, and records the results.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::swagger::Swagger;
use super::table::{OPERATIONS, Operation};
use crate::server::Answer;
use crate::whole::WholeService;

pub(crate) const VERSION: &str = "2025-08-01-preview";

/// The two ways to write a name in a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// `/indexes('hotels')/search.stats`
    Quoted,
    /// `/indexes/hotels/stats`
    Plain,
}

impl Form {
    pub(crate) const BOTH: [Self; 2] = [Self::Quoted, Self::Plain];

    /// Returns the path of an operation with its names filled in.
    fn path(self, operation: &Operation, names: &[&str]) -> String {
        let mut path = operation.path.to_owned();
        for name in names {
            let (before, rest) = path.split_once("('{").expect("a place for every name");
            let (_, after) = rest.split_once("}')").unwrap();
            path = match self {
                Self::Quoted => format!("{before}('{name}'){after}"),
                Self::Plain => format!("{before}/{name}{after}"),
            };
        }
        assert!(!path.contains('{'), "{path}: a name is missing");
        match self {
            Self::Quoted => path,
            Self::Plain => path.replace("search.post.", "").replace("search.", ""),
        }
    }
}

/// The options, headers and body of a request.
#[derive(Debug, Default)]
pub(crate) struct Ask<'a> {
    pub(crate) options: &'a str,
    pub(crate) headers: &'a [(&'a str, &'a str)],
    pub(crate) body: Option<Value>,
}

impl Ask<'_> {
    pub(crate) fn with(body: Value) -> Self {
        Self { body: Some(body), ..Self::default() }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum State {
    Done,
    Partial(String),
    Refused(String),
}

#[derive(Debug, Default)]
struct Noted {
    forms: BTreeSet<Form>,
    /// Successful statuses.
    statuses: BTreeSet<u16>,
    partial: Option<String>,
    refused: Option<String>,
}

pub(crate) struct Tour {
    service: WholeService,
    swagger: Option<Swagger>,
    noted: BTreeMap<&'static str, Noted>,
}

impl Tour {
    pub(crate) async fn start() -> Self {
        let service = WholeService::start().await;
        Self { service, swagger: Swagger::open(), noted: BTreeMap::new() }
    }

    /// Stops the service, checks that its folder can be opened again, and deletes it.
    pub(crate) async fn end(self) {
        self.service.end().await;
    }

    /// Writes a file for data sources.
    pub(crate) fn put_file(&self, container: &str, name: &str, text: &str) {
        self.service.put_file(container, name, text);
    }

    /// Sends a request and expects the given status. Checks the common parts of every response.
    pub(crate) async fn ask(
        &mut self,
        id: &str,
        form: Form,
        names: &[&str],
        ask: Ask<'_>,
        status: u16,
    ) -> Answer {
        let operation = OPERATIONS.iter().find(|operation| operation.id == id).expect(id);
        let target = format!("{}?api-version={VERSION}{}", form.path(operation, names), ask.options);
        let (verb, body) = (operation.verb, ask.body.as_ref());
        let answer = self.service.send(verb, &target, ask.headers, body).await;
        let got = answer.status;
        let what = format!("{id}: {} {target}", operation.verb);
        assert_eq!(answer.status, status, "{what}: {answer:?}");
        assert_eq!(answer.header("odata-version"), "4.0", "{what}");
        assert!(!answer.header("request-id").is_empty(), "{what}");
        let is_json = answer.header("content-type").starts_with("application/json");
        let body = is_json.then(|| answer.json());
        if got < 300 {
            assert_eq!(answer.text.is_empty(), matches!(got, 202 | 204), "{what}: {answer:?}");
            let missing = match &self.swagger {
                // A count is a plain number.
                _ if id == "Documents_Count" || ask.options.contains("$select") => Vec::new(),
                Some(swagger) => swagger.missing(id, got, body.as_ref()),
                None => Vec::new(),
            };
            assert_eq!(missing, [] as [String; 0], "{what} has no {missing:?}: {answer:?}");
        } else {
            assert!(!answer.message().is_empty(), "{what}: {answer:?}");
        }
        let noted = self.noted.entry(operation.id).or_default();
        noted.forms.insert(form);
        if got < 300 {
            noted.statuses.insert(got);
        } else if answer.code() == "NotSupportedByEmbeddedService" {
            noted.refused = Some(answer.message());
        }
        answer
    }

    /// Records that a part of the operation is not supported.
    pub(crate) fn is_partial(&mut self, id: &str, what: &str) {
        let (_, noted) = self.noted.iter_mut().find(|(known, _)| **known == id).expect(id);
        noted.partial = Some(what.to_owned());
    }

    /// Returns the result of an operation. Fails if the operation was not tested in both path forms.
    pub(crate) fn state(&self, operation: &Operation) -> (&BTreeSet<u16>, State) {
        let noted = self.noted.get(operation.id).unwrap_or_else(|| panic!("{} was not tested", operation.id));
        let forms = if operation.path.contains('{') { 2 } else { 1 };
        assert!(noted.forms.len() >= forms, "{} was tested only as {:?}", operation.id, noted.forms);
        let state = match (&noted.refused, &noted.partial) {
            (Some(why), _) => State::Refused(why.clone()),
            (None, Some(what)) => State::Partial(what.clone()),
            (None, None) => State::Done,
        };
        let is_refused = matches!(state, State::Refused(_));
        assert_eq!(noted.statuses.is_empty(), is_refused, "{}: {noted:?}", operation.id);
        (&noted.statuses, state)
    }
}
