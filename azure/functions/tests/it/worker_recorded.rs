//! Conversations with the public workers, recorded once and replayed by a process in their place.
//!
//! A file in `tests/recorded` has lines `worker: {…}`, which the process sends, and `host: {…}`, for which it
//! waits. The host must send at least those members. Names are those of the protocol. `<app>` is the app's
//! folder.

use std::path::Path;

use bindpost_azure_functions::datum::Datum;
use bindpost_azure_functions::function::{Function, FunctionSource};
use bindpost_azure_functions::invocation::Invocation;
use bindpost_azure_functions::worker::proto::StreamingMessage;
use bindpost_azure_functions::worker::*;
use serde_json::{Map, Value};

use super::worker_harness::*;
use super::worker_scripted::{Script, connect};

/// Replays a recording. Exits with an error if the host's messages differ.
pub(crate) async fn replay(file: &Path, worker_id: &str) {
    let app = std::env::current_dir().unwrap();
    let text = std::fs::read_to_string(file).unwrap();
    let text = text.replace("<app>", app.to_str().unwrap()).replace("<worker>", worker_id);
    let (sender, mut receiver) = connect().await;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (who, message) = line.split_once(": ").unwrap();
        let message = wire(serde_json::from_str(message).unwrap());
        if who == "worker" {
            sender.send(serde_json::from_value(message).unwrap()).unwrap();
            continue;
        }
        let heard = loop {
            let heard: StreamingMessage = receiver.recv().await.unwrap();
            let heard = serde_json::to_value(&heard).unwrap();
            // The host may send health checks at any time.
            if heard.get("workerStatusRequest").is_none() {
                break heard;
            }
        };
        if !holds(&heard, &message) {
            eprintln!("the host sent\n{heard}\nbut the recording has\n{message}");
            std::process::exit(1);
        }
    }
    while receiver.recv().await.is_some() {}
}

/// Converts JSON with the protocol's names to the JSON of the built-in workers.
fn wire(value: Value) -> Value {
    let Value::Object(members) = value else {
        return match value {
            Value::Array(items) => items.into_iter().map(wire).collect(),
            other => other,
        };
    };
    let rename = |(name, value): (String, Value)| {
        let value = match (&*name, value) {
            // These names belong to the app.
            ("capabilities" | "properties" | "custom_properties", value) => value,
            ("bindings" | "trigger_metadata", Value::Object(inner)) => {
                inner.into_iter().map(|(name, value)| (name, wire(value))).collect()
            }
            (_, Value::String(text)) => number_of(&name, &text).map_or(Value::String(text), Value::from),
            (_, value) => wire(value),
        };
        let mut words = name.split('_');
        let mut camel = words.next().unwrap_or_default().to_owned();
        for word in words {
            camel.push_str(&word[..1].to_uppercase());
            camel.push_str(&word[1..]);
        }
        (camel, value)
    };
    Value::Object(members.into_iter().map(rename).collect::<Map<_, _>>())
}

fn number_of(member: &str, text: &str) -> Option<i32> {
    let names: &[&str] = match member {
        "status" => &["Failure", "Success", "Cancelled"],
        "direction" => &["in", "out", "inout"],
        "level" => &["Trace", "Debug", "Information", "Warning", "Error", "Critical"],
        _ => return None,
    };
    names.iter().position(|name| *name == text).map(|it| i32::try_from(it).unwrap())
}

/// Returns whether the value contains the expected members.
fn holds(value: &Value, expected: &Value) -> bool {
    match (value, expected) {
        (Value::Object(value), Value::Object(expected)) => {
            expected.iter().all(|(name, it)| value.get(name).is_some_and(|value| holds(value, it)))
        }
        (Value::Array(value), Value::Array(expected)) => {
            value.len() == expected.len() && value.iter().zip(expected).all(|(value, it)| holds(value, it))
        }
        _ => value == expected,
    }
}

struct Recorded {
    workers: WorkerPool,
    indexing: IndexingResult,
    _scratch: Scratch,
}

async fn start(name: &str, indexes: bool) -> Recorded {
    let scratch = Scratch::new();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recorded").join(name);
    let script = Script { replay: Some(file), ..Script::default() };
    let launch = WorkerLaunch { indexes, ..launch(Framing::Grpc, &scratch, script) };
    let (workers, indexing) =
        WorkerPool::start(launch, quick(), std::sync::Arc::new(NoEvents)).await.unwrap();
    Recorded { workers, indexing, _scratch: scratch }
}

impl Recorded {
    async fn invoke(
        &self,
        id: &str,
        function: &std::sync::Arc<Function>,
        inputs: &[(&str, &str)],
    ) -> (Result<bindpost_azure_functions::invocation::InvocationOutcome, InvocationError>, Vec<LogRecord>)
    {
        let invocation = Invocation {
            id: id.into(),
            function: function.clone(),
            inputs: inputs.iter().map(|(name, text)| ((*name).into(), Datum::Text((*text).into()))).collect(),
            metadata: vec![("mcpsessionid".into(), Datum::Text("sess-1".into()))],
            trace_parent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
            trace_state: None,
            stream: None,
        };
        let mut logs = Vec::new();
        let outcome = self.workers.invoke(invocation, LONG, |log| logs.push(log)).await;
        (outcome, logs)
    }
}

fn text(text: &str) -> Datum {
    Datum::Text(text.into())
}

#[tokio::test]
async fn python() {
    let recorded = start("python.txt", true).await;
    let functions = functions(&recorded.indexing);
    let names: Vec<_> = functions.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["save_snippet", "readme", "code_review"]);
    let IndexingResult::Functions(indexed) = &recorded.indexing else { panic!() };
    assert_eq!(indexed[0].raw_bindings.len(), 2);
    assert!(indexed[1].raw_bindings[0].contains("file://readme.md"));
    assert_eq!(indexed[0].properties["worker_indexed"], "True");
    let save = &functions[0];
    assert_eq!(recorded.workers.load(vec![save.clone()]).await.unwrap(), [Ok(())]);
    assert_eq!(recorded.workers.worker_details()[0].1.runtime_version, "3.11");

    let (outcome, logs) = recorded.invoke("e146c8df", save, &[("context", "{}")]).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.returned, text("Snippet 'demo' saved"));
    assert_eq!(outcome.outputs, [("file".to_owned(), text("print(1)"))]);
    assert_eq!(logs.iter().map(|log| &*log.message).collect::<Vec<_>>(), ["save called"]);

    let (outcome, _) = recorded.invoke("c4d4fdf2", save, &[("context", "{}")]).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.returned, Datum::Bytes(bytes::Bytes::from_static(b"\0bytes")));
    assert_eq!(outcome.outputs[0].1, Datum::Bytes(bytes::Bytes::from_static(b"\0\x01\xff")));

    let (outcome, _) = recorded.invoke("6dd2ccad", save, &[("context", "{}")]).await;
    let InvocationError::Failed { message, stack } = outcome.unwrap_err() else { panic!() };
    assert_eq!(message, "ValueError: boom: bad argument");
    assert!(stack.contains("function_app.py"));
}

#[tokio::test]
async fn node() {
    let recorded = start("node.txt", true).await;
    let functions = functions(&recorded.indexing);
    let IndexingResult::Functions(indexed) = &recorded.indexing else { panic!() };
    assert_eq!((&*indexed[0].id, indexed[0].raw_bindings.len()), ("save_snippet", 2));
    assert_eq!(recorded.workers.load(functions.clone()).await.unwrap(), [Ok(())]);
    let (_, about) = &recorded.workers.worker_details()[0];
    assert_eq!((&*about.runtime, &*about.worker_version), ("node", "3.9.1"));

    let input = [("mcpToolTrigger96c1ebfeb0", "{}")];
    let (outcome, _) = recorded.invoke("c7e8cd1f", &functions[0], &input).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.outputs, [("blobOutput306fdaa929".to_owned(), text("print(1)"))]);
    let envelope = r#"{"type":"text","content":"{\"type\":\"text\",\"text\":\"saved demo\"}"}"#;
    assert_eq!(outcome.returned, text(envelope));
    let (outcome, _) = recorded.invoke("168a5bf6", &functions[0], &input).await;
    assert_eq!(outcome.unwrap().outputs[0].1, Datum::Json("{\"a\":1}".into()));
    let (outcome, _) = recorded.invoke("6872c0c8", &functions[0], &input).await;
    assert_eq!(outcome.unwrap_err().to_string(), "boom: bad argument");
}

#[tokio::test]
async fn java() {
    // The Java worker crashes if it is asked for its functions. The host reads function.json instead.
    let recorded = start("java.txt", false).await;
    assert!(matches!(recorded.indexing, IndexingResult::UseFunctionJson { .. }));
    let source = FunctionSource {
        directory: "/app/SaveSnippets".into(),
        script_file: "/app/probe-app.jar".into(),
        entry_point: "probe.Fn.save".into(),
        language: "java".into(),
        ..FunctionSource::default()
    };
    let save = function("SaveSnippets", "3ed2cf03", source);
    assert_eq!(recorded.workers.load(vec![save.clone()]).await.unwrap(), [Ok(())]);
    let inputs = [("saveSnippets", "{}"), ("snippetName", "demo"), ("snippet", "print(1)")];
    let (outcome, _) = recorded.invoke("3fd411d9", &save, &inputs).await;
    let outcome = outcome.unwrap();
    assert_eq!(outcome.returned, text("saved demo"));
    assert_eq!(outcome.outputs, [("outputBlob".to_owned(), text("print(1)"))]);
    let (outcome, _) = recorded.invoke("f12c59af", &save, &inputs).await;
    assert_eq!(outcome.unwrap_err().to_string(), "IllegalArgumentException: boom: bad argument");
}
