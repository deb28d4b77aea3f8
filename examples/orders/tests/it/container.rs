//! `deploy/Dockerfile` and the `.dockerignore` of the repository, without a container engine: their paths, the
//! toolchain, and the flags with which the image starts the program.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::Orders;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(repository().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the instructions of each stage: the word and the rest of its line.
fn stages() -> Vec<Vec<(String, String)>> {
    let text = read("examples/orders/deploy/Dockerfile");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut stages: Vec<Vec<(String, String)>> = Vec::new();
    for line in lines.join("\n").replace("\\\n", " ").lines().filter(|line| !line.trim().is_empty()) {
        let (word, rest) = line.split_once(' ').unwrap();
        if word == "FROM" {
            stages.push(Vec::new());
        }
        stages.last_mut().expect("FROM comes first").push((word.to_owned(), rest.trim().to_owned()));
    }
    stages
}

fn values<'a>(stage: &'a [(String, String)], word: &str) -> Vec<&'a str> {
    stage.iter().filter(|(known, _)| known == word).map(|(_, rest)| rest.as_str()).collect()
}

/// Returns whether the build context lacks this path.
fn is_ignored(path: &str) -> bool {
    let text = read(".dockerignore");
    let patterns = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let parts: Vec<&str> = path.split('/').collect();
    patterns.into_iter().any(|pattern| match pattern.strip_prefix("**/") {
        Some(name) => {
            assert!(!name.contains(['*', '/', '!']), "the test does not know {pattern}");
            parts.contains(&name)
        }
        None => {
            assert!(!pattern.contains(['*', '!']), "the test does not know {pattern}");
            path == pattern || path.starts_with(&format!("{pattern}/"))
        }
    })
}

#[test]
fn the_image_is_built_with_the_pinned_toolchain() {
    let [build, _] = &stages()[..] else { panic!("a stage for the build and one for the image") };
    let toolchain = read("rust-toolchain.toml");
    let version = toolchain.split('"').nth(1).unwrap();
    let image = values(build, "FROM")[0];
    assert!(image.contains(&format!("/rust:{version}-")), "{image} is not Rust {version}");
    assert_eq!(values(build, "COPY"), [". ."]);
    assert_eq!(values(build, "RUN"), ["cargo build --locked --profile dist --package orders"]);
    assert!(read("Cargo.toml").contains("[profile.dist]"));
}

#[test]
fn the_image_has_certificates_and_no_root_user() {
    let [build, image] = &stages()[..] else { panic!("a stage for the build and one for the image") };
    let folder = values(build, "WORKDIR")[0];
    let copied = format!("--from=build {folder}/target/dist/orders /usr/local/bin/orders");
    assert_eq!(values(image, "COPY"), [copied]);
    assert!(values(image, "RUN").iter().any(|run| run.contains(" ca-certificates ")));
    let user: u32 = values(image, "USER").last().unwrap().split(':').next().unwrap().parse().unwrap();
    assert!(user > 0);
    // Both stages have the C library of the same release.
    assert!([build, image].iter().all(|stage| values(stage, "FROM")[0].contains("bookworm")));
}

#[test]
fn the_build_context_has_the_sources_and_no_secrets() {
    let manifest = read("Cargo.toml");
    let paths = manifest.lines().filter_map(|line| line.split_once("path = \"")?.1.split('"').next());
    let crates: Vec<String> = paths.map(|path| format!("{path}/Cargo.toml")).collect();
    assert!(crates.len() > 10, "{crates:?}");
    let others = ["Cargo.toml", "Cargo.lock", "examples/orders/Cargo.toml", "examples/orders/src/main.rs"];
    for path in crates.iter().map(String::as_str).chain(others) {
        assert!(repository().join(path).exists() && !is_ignored(path), "{path}");
    }
    for path in [
        "target/debug/orders",
        ".git/config",
        "keys.txt",
        "examples/orders/keys.txt",
        "examples/orders/deploy/profile/local.settings.json",
        ".env",
    ] {
        assert!(is_ignored(path), "{path}");
    }
}

/// The program, started as in the image. `--port 0` is added, so that any port will do.
#[test]
fn the_image_starts_with_authentication_only() {
    let stages = stages();
    let image = stages.last().unwrap();
    let [entry] = values(image, "ENTRYPOINT")[..] else { panic!("one ENTRYPOINT") };
    let mut arguments: Vec<String> = serde_json::from_str(entry).unwrap();
    assert_eq!(arguments.remove(0), "orders");
    arguments.extend(["--port", "0"].map(str::to_owned));
    let variables: Vec<(&str, &str)> =
        values(image, "ENV").into_iter().map(|variable| variable.split_once('=').unwrap()).collect();
    assert_eq!(values(image, "EXPOSE"), ["7071"]);

    let open = Command::new(env!("CARGO_BIN_EXE_orders"))
        .args(&arguments)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&open.stderr);
    assert!(!open.status.success() && said.contains("has no authentication"), "{said}");

    let keys = crate::program::file("image-keys", "till = till-secret\n");
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut orders = Orders::start_with(&arguments, |command| {
        command.envs(variables).env("BINDPOST_AUTH__API_KEYS_FILE", keys);
    });
    orders.address = orders.address.replace("0.0.0.0", "127.0.0.1");
    for probe in ["/_/healthz", "/_/readyz"] {
        assert_eq!(orders.request("GET", probe, "", "").status, 200, "{probe}");
    }
    let call =
        |headers: &str| orders.call_tool("get_order", serde_json::json!({"orderId": "123"}), headers).status;
    assert_eq!((call(""), call("X-API-Key: till-secret\r\n")), (401, 200));
}
