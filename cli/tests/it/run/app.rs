//! Function apps in folders that are deleted with the test.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};

/// A function that returns the id of its process.
pub(crate) const PID: &str = "module.exports = async () => String(process.pid);";
/// A function that records its start, then sleeps for the given number of milliseconds.
pub(crate) const NAP: &str = "
    const fs = require('node:fs');
    module.exports = async (context, call) => {
        fs.appendFileSync('begun.txt', '.');
        await new Promise((done) => setTimeout(done, call.arguments.ms));
        return `rested ${call.arguments.ms} ms in ${process.pid}`;
    };";
/// A function that records its start and never ends.
pub(crate) const HANG: &str = "
    const fs = require('node:fs');
    module.exports = () => {
        fs.appendFileSync('begun.txt', '.');
        return new Promise(() => {});
    };";

/// A function app.
pub(crate) struct App {
    folder: PathBuf,
}

impl App {
    /// Creates a Node app of the old programming model, which needs no package. It has no function yet.
    pub(crate) fn node() -> App {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("bindpost-run-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).expect("a temporary folder");
        let app = App { folder: folder.canonicalize().expect("the folder exists") };
        app.with("host.json", r#"{"version": "2.0"}"#)
    }

    /// Creates an app whose functions a Python script serves over HTTP. It uses the standard library only.
    ///
    /// `functions` defines one Python function per tool. `more` is run at the start.
    pub(crate) fn handler(tools: &[&str], functions: &str, more: &str) -> App {
        let host = json!({
            "version": "2.0",
            "customHandler": {"description": {"defaultExecutablePath": "python3", "arguments": ["handler.py"]}},
        });
        let app = App::node().with("host.json", &host.to_string());
        let app = app.with("handler.py", &handler(functions, more));
        tools.iter().fold(app, |app, name| app.with(&format!("{name}/function.json"), &tool(name)))
    }

    /// Adds a tool: a script that exports a function.
    pub(crate) fn tool(self, name: &str, script: &str) -> App {
        self.with(&format!("{name}/function.json"), &tool(name)).with(&format!("{name}/index.js"), script)
    }

    /// Adds a file.
    pub(crate) fn with(self, file: &str, text: &str) -> App {
        self.write(file, text);
        self
    }

    /// Adds members to `host.json`.
    pub(crate) fn host(self, members: Value) -> App {
        let mut host: Value =
            serde_json::from_str(&self.read("host.json").expect("it was written")).expect("JSON");
        host.as_object_mut().expect("an object").extend(members.as_object().expect("an object").clone());
        self.with("host.json", &host.to_string())
    }

    /// Writes a file atomically, as editors do.
    pub(crate) fn write(&self, file: &str, text: &str) {
        let path = self.folder.join(file);
        fs::create_dir_all(path.parent().expect("below the folder")).expect("creates");
        let draft = path.with_extension("draft");
        fs::write(&draft, text).expect("writes");
        fs::rename(draft, path).expect("renames");
    }

    pub(crate) fn read(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.folder.join(file)).ok()
    }

    /// Returns how many calls have recorded their start.
    pub(crate) fn begun(&self) -> usize {
        self.read("begun.txt").unwrap_or_default().len()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.folder
    }
}

impl Drop for App {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the `function.json` of a tool.
pub(crate) fn tool(name: &str) -> String {
    let trigger = json!({
        "type": "mcpToolTrigger", "direction": "in", "name": "call", "toolName": name, "description": "For a test",
    });
    json!({"scriptFile": "index.js", "bindings": [trigger]}).to_string()
}

/// Returns a script that serves functions over HTTP, each in its own thread.
pub(crate) fn handler(functions: &str, more: &str) -> String {
    format!(
        r#"
import json, os, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

def note():
    with open("begun.txt", "a") as file:
        file.write(".")

{functions}

{more}

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.answer({{}})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        # The platform writes texts as JSON once more.
        call = json.loads(json.loads(body["Data"]["call"]))
        self.answer({{"ReturnValue": globals()[self.path.strip("/")](call)}})

    def answer(self, value):
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass

class Server(ThreadingHTTPServer):
    request_queue_size = 256

Server(("127.0.0.1", int(os.environ["FUNCTIONS_CUSTOMHANDLER_PORT"])), Handler).serve_forever()
"#
    )
}

/// Tools of a handler: `pid`, `nap` and `hang`.
pub(crate) const HANDLER_TOOLS: &str = r#"
def pid(call):
    return str(os.getpid())

def nap(call):
    note()
    time.sleep(call["arguments"]["ms"] / 1000)
    return "rested in " + str(os.getpid())

def hang(call):
    note()
    time.sleep(3600)
"#;
