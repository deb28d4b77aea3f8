//! Generates the message types of the worker protocol from `proto/functions.proto`, and the list of files of
//! the bundled workers. It does not need an installed protoc.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

const PACKAGE: &str = ".AzureFunctionsRpcMessages";
/// The variable with the folder of the compiled Java worker.
const JAVA_CLASSES: &str = "BINDPOST_JAVA_CLASSES";

/// Messages whose JSON form is derived. The JSON of `StreamingMessage`, `TypedData`,
/// `CollectionBytes`, `CollectionSInt64` and `Period` is written by hand in
/// `src/worker/wire/message.rs` and `src/worker/wire/typed_data.rs`.
const PLAIN_JSON: &[&str] = &[
    "StartStream",
    "WorkerInitRequest",
    "WorkerInitResponse",
    "WorkerMetadata",
    "StatusResult",
    "RpcException",
    "WorkerTerminate",
    "WorkerStatusRequest",
    "WorkerStatusResponse",
    "FunctionsMetadataRequest",
    "FunctionMetadataResponse",
    "RpcFunctionMetadata",
    "BindingInfo",
    "FunctionLoadRequest",
    "FunctionLoadResponse",
    "FunctionLoadRequestCollection",
    "FunctionLoadResponseCollection",
    "InvocationRequest",
    "RpcTraceContext",
    "InvocationResponse",
    "InvocationCancel",
    "ParameterBinding",
    "CollectionString",
    "CollectionDouble",
    "RpcHttp",
    "RpcHttpCookie",
    "NullableString",
    "NullableDouble",
    "NullableBool",
    "NullableTimestamp",
    "Timestamp",
    "RpcLog",
];

/// Members that are omitted from the JSON when they are not set, so that a worker does not have to
/// distinguish null from absent.
const OPTIONAL: &[&str] = &[
    "WorkerInitResponse.result",
    "WorkerInitResponse.worker_metadata",
    "StatusResult.exception",
    "WorkerTerminate.grace_period",
    "FunctionMetadataResponse.result",
    "RpcFunctionMetadata.status",
    "FunctionLoadRequest.metadata",
    "FunctionLoadResponse.result",
    "InvocationRequest.trace_context",
    "InvocationResponse.result",
    "InvocationResponse.return_value",
    "InvocationCancel.grace_period",
    "ParameterBinding.data",
    "RpcHttp.body",
    "RpcHttpCookie.domain",
    "RpcHttpCookie.path",
    "RpcHttpCookie.expires",
    "RpcHttpCookie.secure",
    "RpcHttpCookie.http_only",
    "RpcHttpCookie.max_age",
    "RpcLog.exception",
];

/// Members that are omitted from the JSON when they are empty: a request has no member of a response, and the reverse.
const OMITTED_IF_EMPTY: &[(&str, &str)] = &[
    ("FunctionLoadResponse.http_uri", "String"),
    ("RpcHttp.status_code", "String"),
    ("RpcHttp.cookies", "Vec"),
    ("RpcHttp.headers", "std::collections::BTreeMap"),
    ("RpcHttp.query", "std::collections::BTreeMap"),
    ("RpcHttp.params", "std::collections::BTreeMap"),
    ("RpcHttp.nullable_headers", "std::collections::BTreeMap"),
    ("RpcHttp.nullable_query", "std::collections::BTreeMap"),
    ("RpcHttp.nullable_params", "std::collections::BTreeMap"),
];

/// Lists whose elements need much more memory than bytes on the wire. Their lengths are limited.
const LIMITED: &[&str] = &[
    "FunctionMetadataResponse.function_metadata_results",
    "FunctionLoadRequestCollection.function_load_requests",
    "FunctionLoadResponseCollection.function_load_responses",
    "InvocationRequest.input_data",
    "InvocationResponse.output_data",
    "CollectionString.string",
    "RpcHttp.cookies",
];

/// Maps whose entries need much more memory than bytes on the wire.
const LIMITED_MAPS: &[&str] = &[
    "RpcHttp.headers",
    "RpcHttp.query",
    "RpcHttp.params",
    "RpcHttp.nullable_headers",
    "RpcHttp.nullable_query",
    "RpcHttp.nullable_params",
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto/functions.proto");
    let descriptors = protox::compile(["functions.proto"], ["proto"])?;
    let mut config = prost_build::Config::new();
    config.bytes(["."]);
    for message in PLAIN_JSON {
        config.message_attribute(
            format!("{PACKAGE}.{message}"),
            "#[derive(serde::Serialize, serde::Deserialize)] #[serde(rename_all = \"camelCase\", default)]",
        );
    }
    for field in OPTIONAL {
        config.field_attribute(
            format!("{PACKAGE}.{field}"),
            "#[serde(skip_serializing_if = \"Option::is_none\")]",
        );
    }
    for field in LIMITED {
        config.field_attribute(
            format!("{PACKAGE}.{field}"),
            "#[serde(deserialize_with = \"super::parts::deserialize_limited_list\")]",
        );
    }
    for field in LIMITED_MAPS {
        config.field_attribute(
            format!("{PACKAGE}.{field}"),
            "#[serde(deserialize_with = \"super::parts::deserialize_limited_map\")]",
        );
    }
    for (field, kind) in OMITTED_IF_EMPTY {
        config.field_attribute(
            format!("{PACKAGE}.{field}"),
            format!("#[serde(skip_serializing_if = \"{kind}::is_empty\")]"),
        );
    }
    // Headers and parameters keep a stable order.
    config.btree_map([format!("{PACKAGE}.RpcHttp")]);
    config.compile_fds(descriptors)?;

    let workers = PathBuf::from(std::env::var("CARGO_MANIFEST_DIR")?).join("workers");
    let list = own_workers(&workers)?;
    std::fs::write(PathBuf::from(std::env::var("OUT_DIR")?).join("own_workers.rs"), list)?;
    Ok(())
}

/// Returns Rust source with lists of file names and contents. A new file of a worker needs no other change.
fn own_workers(workers: &Path) -> Result<String, Box<dyn Error>> {
    let mut list = String::new();
    write_files(&mut list, "PYTHON", &workers.join("python"), &["py"])?;
    write_files(&mut list, "NODE", &workers.join("node"), &["cjs", "mjs", "js", "json"])?;
    write_files(&mut list, "JAVA_SOURCES", &workers.join("java"), &["java"])?;
    // The compiled Java worker, if there is a folder with it. Otherwise the program compiles the sources when needed.
    println!("cargo::rerun-if-env-changed={JAVA_CLASSES}");
    match std::env::var_os(JAVA_CLASSES) {
        Some(folder) => write_files(&mut list, "JAVA_CLASSES", &PathBuf::from(folder), &["class"])?,
        None => writeln!(list, "pub(crate) const JAVA_CLASSES: &[BundledFile] = &[];")?,
    }
    Ok(list)
}

/// Writes a list of the files of a folder.
fn write_files(
    list: &mut String,
    constant: &str,
    root: &Path,
    endings: &[&str],
) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={}", root.display());
    let mut files = Vec::new();
    collect(root, endings, &mut files)?;
    files.sort();
    writeln!(list, "pub(crate) const {constant}: &[BundledFile] = &[")?;
    for file in files {
        let name = file.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
        writeln!(list, "    ({name:?}, include_bytes!({:?})),", file.to_string_lossy())?;
    }
    writeln!(list, "];")?;
    Ok(())
}

fn collect(folder: &Path, endings: &[&str], files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if name.starts_with('.') || ["test", "tests", "__pycache__", "node_modules"].contains(&&*name) {
            continue;
        }
        if path.is_dir() {
            collect(&path, endings, files)?;
        } else if path.extension().is_some_and(|ending| endings.iter().any(|it| ending == *it)) {
            files.push(path);
        }
    }
    Ok(())
}
