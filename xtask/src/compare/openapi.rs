//! `cargo xtask compare openapi`: compares servers that convert an OpenAPI document to tools, all with the
//! same Swagger, and prints the table of `docs/openapi.md`.
//!
//! The other servers are installed below `target/compare-openapi` in pinned versions. The scripts in
//! `examples/compare/openapi` do the rest: `prepare.mjs` converts the documents for servers that do not
//! support Swagger, and `measure.mjs` is the client that measures all servers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use crate::workspace::{self, cargo};
use crate::{node, packages};

/// The folder of the documents, next to the repository. They belong to Microsoft and are not part of it.
const DOCUMENTS: &str = "../shared/specs/azure-search/2025-08-01-preview";
/// The documents. The largest one is the first, because the start time is measured with it.
const NAMES: [&str; 3] = ["searchservice", "searchindex", "knowledgeagent"];
/// The base address. It is never called, because listing tools sends no requests.
const SERVICE: &str = "http://127.0.0.1:9";
const RMCP_OPENAPI: &str = "0.32.1";
/// A budget that is large enough for the full schemas of all operations.
const NO_BUDGET: &str = "100000000";
/// The maximum length of an error in the table.
const FIRST_WORDS: usize = 200;

pub(super) fn run(options: &[String]) -> Result<()> {
    let program = match options {
        [] => None,
        [option, program] if option == "--program" => Some(PathBuf::from(program)),
        _ => bail!("compare openapi has one option: --program FILE, a bindpost that was built before"),
    };
    let documents = workspace::root().join(DOCUMENTS);
    if !documents.join("searchservice.json").exists() {
        println!("skipped: {} does not exist", documents.display());
        return Ok(());
    }
    let documents = documents.canonicalize()?;
    let program = match program {
        Some(program) => program.canonicalize().context("the program of --program does not exist")?,
        None => {
            workspace::build_dist(&["bindpost-cli"])?;
            workspace::target().join("dist/bindpost")
        }
    };
    let folder = workspace::target().join("compare-openapi");
    fs::create_dir_all(&folder)?;
    let peers = OpenapiPeers::install(&folder, &documents)?;
    let subjects: Vec<Value> =
        our_subjects(&program, &documents).into_iter().chain(peers.subjects()).collect();
    let plan = folder.join("plan.json");
    fs::write(&plan, json!({"folder": documents, "names": NAMES, "subjects": subjects}).to_string())?;
    let mut measure = Command::new(&peers.node);
    measure
        .arg("measure.mjs")
        .arg(&plan)
        .current_dir(&peers.npm)
        .env("AZURE_SEARCH_API_KEY", "not-asked-for");
    let said = workspace::output(&mut measure)?;
    let lines = said.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>()?;
    let (totals, figures) = lines.split_first().context("nothing was measured")?;
    fs::write(folder.join("figures.json"), format!("{:#}\n", json!(figures)))?;
    print(totals, figures);
    Ok(())
}

/// Our servers: the bridge in its default form and with full schemas, and the server for Azure AI Search.
fn our_subjects(program: &Path, documents: &Path) -> Vec<Value> {
    let openapi = |names: &[&str], options: &[&str]| {
        let files = names.iter().map(|name| documents.join(name).with_extension("json"));
        let mut command = vec![program.to_owned(), "openapi".into()];
        command.extend(files);
        command.extend(["--base-url", SERVICE, "--stdio"].iter().chain(options).map(PathBuf::from));
        json!({"command": command})
    };
    let search = |spec: PathBuf| {
        let mut command = vec![program.to_owned(), "search".into(), "--spec".into(), spec];
        command.extend(["--endpoint", SERVICE, "--stdio"].map(PathBuf::from));
        json!({"command": command})
    };
    let subject = |name: &str, all: Value, largest: Value| {
        let mut start = largest;
        start["all"] = all.clone();
        json!({"name": name, "servers": [all], "start": start})
    };
    let [largest, ..] = NAMES;
    let whole = ["--list-budget", NO_BUDGET];
    vec![
        subject("bindpost openapi", openapi(&NAMES, &[]), openapi(&[largest], &[])),
        subject("bindpost openapi, whole", openapi(&NAMES, &whole), openapi(&[largest], &whole)),
        subject(
            "bindpost search",
            search(documents.to_owned()),
            search(documents.join(largest).with_extension("json")),
        ),
    ]
}

/// The other servers, and the documents that they support.
struct OpenapiPeers {
    node: PathBuf,
    npm: PathBuf,
    python: PathBuf,
    /// The program, or the reason why it is missing.
    rmcp: Result<PathBuf>,
    documents: PathBuf,
    generated: PathBuf,
}

impl OpenapiPeers {
    fn install(folder: &Path, documents: &Path) -> Result<Self> {
        let peers = Self {
            node: node::node()?,
            npm: folder.join("node"),
            python: packages::python(&folder.join("python"), &sources().join("requirements.txt"))?,
            rmcp: rmcp_openapi(&folder.join("rmcp")),
            documents: folder.join("documents"),
            generated: folder.join("generated"),
        };
        packages::npm(&peers.npm, &sources())?;
        let mut prepare = Command::new(&peers.node);
        prepare.arg("prepare.mjs").args([documents, &peers.documents]).args(NAMES).current_dir(&peers.npm);
        workspace::run(&mut prepare)?;
        peers.generate()?;
        Ok(peers)
    }

    /// Generates the servers of openapi-mcp-generator, and builds them. They share their packages.
    fn generate(&self) -> Result<()> {
        fs::create_dir_all(&self.generated)?;
        for (at, name) in NAMES.iter().enumerate() {
            let project = self.generated.join(name);
            let mut generate = Command::new(&self.node);
            generate.arg(self.npm.join("node_modules/openapi-mcp-generator/bin/openapi-mcp-generator.js"));
            generate.arg("--input").arg(self.document(name)).arg("--output").arg(&project);
            generate.args(["--base-url", SERVICE, "--force"]);
            workspace::output(&mut generate)?;
            if at == 0 && !self.generated.join("node_modules").exists() {
                fs::copy(project.join("package.json"), self.generated.join("package.json"))?;
                let mut npm = Command::new("npm");
                npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
                workspace::run(npm.current_dir(&self.generated))?;
            }
            let mut build = Command::new(&self.node);
            build.arg(self.generated.join("node_modules/typescript/bin/tsc")).current_dir(&project);
            workspace::run(&mut build)?;
        }
        Ok(())
    }

    fn document(&self, name: &str) -> PathBuf {
        self.documents.join(format!("{name}.3.json"))
    }

    /// Each reads one document at a time, so each has three servers.
    fn subjects(&self) -> Vec<Value> {
        let subject = |name: &str, server: &dyn Fn(&str) -> Value| {
            let servers = NAMES.map(server);
            json!({"name": name, "start": servers[0], "servers": servers})
        };
        let fastmcp = |name: &str| {
            let script = sources().join("fastmcp_server.py");
            json!({"command": [self.python, script, self.document(name), PathBuf::from(SERVICE)]})
        };
        let generated =
            |name: &str| json!({"command": [self.node, self.generated.join(name).join("build/index.js")]});
        let rmcp = |program: &Path, name: &str| {
            let mut command = vec![program.to_owned(), self.document(name)];
            command.extend(["--base-url", SERVICE, "--port", "{port}"].map(PathBuf::from));
            json!({"command": command, "http": true})
        };
        vec![
            subject("FastMCP", &fastmcp),
            subject("openapi-mcp-generator", &generated),
            match &self.rmcp {
                Ok(program) => subject("rmcp-openapi", &|name| rmcp(program, name)),
                Err(error) => json!({"name": "rmcp-openapi", "error": format!("{error:#}")}),
            },
        ]
    }
}

/// Builds the server of rmcp-openapi, unless it exists.
fn rmcp_openapi(folder: &Path) -> Result<PathBuf> {
    let (program, stamp) = (folder.join("bin/rmcp-openapi-server"), folder.join("installed.txt"));
    if fs::read_to_string(&stamp).is_ok_and(|version| version == RMCP_OPENAPI) && program.exists() {
        return Ok(program);
    }
    println!("building rmcp-openapi-server {RMCP_OPENAPI}; that takes minutes");
    let mut install = cargo(&["install", "--quiet", "--locked", "--version", RMCP_OPENAPI, "--root"]);
    install.arg(folder).arg("rmcp-openapi-server").env("CARGO_TARGET_DIR", folder.join("build"));
    workspace::output(&mut install)?;
    fs::write(stamp, RMCP_OPENAPI)?;
    Ok(program)
}

fn sources() -> PathBuf {
    workspace::root().join("examples/compare/openapi")
}

/// Prints the table as Markdown, with a column for each server, as in the document.
fn print(totals: &Value, figures: &[Value]) {
    let row = |heading: &str, cell: &dyn Fn(&Value) -> String| {
        let cells = figures.iter().map(|of| if of["error"].is_string() { "-".to_owned() } else { cell(of) });
        println!("| {heading} | {} |", cells.collect::<Vec<_>>().join(" | "));
    };
    let names: Vec<&str> = figures.iter().filter_map(|of| of["name"].as_str()).collect();
    println!("\n| | {} |", names.join(" | "));
    println!("|---|{}", "---:|".repeat(names.len()));
    let count = |value: &Value| with_commas(value.as_u64().unwrap_or_default());
    let seconds = |value: &Value| value.as_f64().map_or("-".to_owned(), |seconds| format!("{seconds:.2} s"));
    row("tools", &|of| count(&of["tools"]));
    row("bytes of `tools/list`", &|of| count(&of["bytes"]));
    row(&format!("operations with usable inputs, of {}", totals["operations"]), &|of| count(&of["usable"]));
    let subtypes = &totals["subtypes"];
    row(&format!("subtypes described in the list, of {subtypes}"), &|of| count(&of["subtypes"]["described"]));
    row("… only named there", &|of| {
        let [named, described] =
            ["named", "described"].map(|key| of["subtypes"][key].as_u64().unwrap_or_default());
        with_commas(named.saturating_sub(described))
    });
    row("… described in the list or where it points", &|of| count(&of["reachable"]["described"]));
    row("operations with hints", &|of| count(&of["hints"]));
    row(&format!("operations with an output schema, of {}", totals["answering"]), &|of| {
        count(&of["outputs"])
    });
    row("seconds to the list, largest file", &|of| seconds(&of["seconds"]));
    row("seconds to the list, all three files", &|of| seconds(&of["secondsOfAll"]));
    for of in figures {
        let name = of["name"].as_str().unwrap_or_default();
        if let Some(error) = of["error"].as_str() {
            println!("\n{name} could not be measured: {}", first_words(error));
        }
        if let Some(refusal) = of["refusal"].as_str() {
            println!("\nThe official client rejects the list of {name}: {}", first_words(refusal));
        }
        let unusable = of["unusable"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let unusable: Vec<&str> = unusable.collect();
        if !unusable.is_empty() {
            println!("\nNot usable with {name}: {}", unusable.join(", "));
        }
    }
}

/// Returns the beginning of a text, on one line.
fn first_words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(FIRST_WORDS).collect()
}

/// Formats `1595921` as 1,595,921.
fn with_commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{first_words, with_commas};

    #[test]
    fn groups_digits() {
        assert_eq!([0, 999, 1000, 1_595_921].map(with_commas), ["0", "999", "1,000", "1,595,921"]);
    }

    #[test]
    fn shows_the_beginning_of_an_error_on_one_line() {
        assert_eq!(first_words("it\n  failed"), "it failed");
        assert_eq!(first_words(&"x".repeat(500)).len(), super::FIRST_WORDS);
    }
}
