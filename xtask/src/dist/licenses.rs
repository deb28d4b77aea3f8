//! `THIRD-PARTY-LICENSES.txt`: the license texts of the crates in the program, each text once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::contents::host_triple;
use crate::workspace;

/// A crate in the program that is not of this repository.
struct LinkedCrate {
    name: String,
    license: String,
    repository: String,
    authors: String,
    /// The license files in its source.
    texts: Vec<String>,
}

/// `cargo xtask licenses`: prints the document, for the container image.
pub(crate) fn run() -> Result<()> {
    let metadata = workspace::metadata(&[])?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    print!("{}", third_party(&host_triple()?, packages)?);
    Ok(())
}

/// The document. `packages` is what `cargo metadata` lists.
pub(super) fn third_party(triple: &str, packages: &[Value]) -> Result<String> {
    let linked = linked_packages(triple)?;
    let mut crates = Vec::new();
    for package in packages.iter().filter(|package| !package["source"].is_null()) {
        let krate = LinkedCrate::read(package)?;
        if linked.contains(&krate.name) {
            crates.push(krate);
        }
    }
    let rust = workspace::output(Command::new("rustc").arg("-V").current_dir(workspace::root()))?;
    document(&crates, rust.trim())
}

/// The names and versions of the crates whose code is in the program: no build scripts, no macros, no tests.
fn linked_packages(triple: &str) -> Result<Vec<String>> {
    let edges = ["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"];
    let mut tree = workspace::cargo(&["tree", "--locked", "-p", "bindpost-cli", "--target", triple]);
    let lines = workspace::output(tree.args(edges))?;
    // `name v1.2.3`, and `(*)` if it was listed before.
    let name = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?.strip_prefix('v')?))
    };
    Ok(lines.lines().filter_map(name).collect())
}

impl LinkedCrate {
    fn read(package: &Value) -> Result<Self> {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let authors = package["authors"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let folder = Path::new(text("manifest_path")).parent().context("a manifest is in a folder")?;
        Ok(Self {
            name: format!("{} {}", text("name"), text("version")),
            license: text("license").to_owned(),
            repository: text("repository").trim_end_matches(".git").to_owned(),
            authors: authors.collect::<Vec<_>>().join(", "),
            texts: license_texts(folder)?,
        })
    }

    /// What applies to a crate without a license file: the files of a crate from the same repository, or the MIT
    /// license with the names in its manifest.
    fn applicable_texts(&self, all: &[Self]) -> Result<Vec<String>> {
        if !self.texts.is_empty() {
            return Ok(self.texts.clone());
        }
        let sibling = |other: &&Self| !other.texts.is_empty() && other.repository == self.repository;
        if let Some(sibling) = all.iter().filter(|_| !self.repository.is_empty()).find(sibling) {
            return Ok(sibling.texts.clone());
        }
        if !self.license.contains("MIT") {
            bail!("{} ({}) has no license text", self.name, self.license);
        }
        let ours = fs::read_to_string(workspace::root().join("LICENSE-MIT"))?;
        let is_holder = |line: &&str| line.starts_with("Copyright (c)");
        let holder = ours.lines().find(is_holder).context("LICENSE-MIT names no copyright holder")?;
        let authors = if self.authors.is_empty() { &self.name } else { &self.authors };
        Ok(vec![ours.replace(holder, &format!("Copyright (c) {authors}"))])
    }
}

/// The texts of the files in a crate's folder that are named after a license.
fn license_texts(folder: &Path) -> Result<Vec<String>> {
    let mut texts = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_uppercase();
        let words = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE"];
        if words.iter().any(|word| name.starts_with(word)) && entry.file_type()?.is_file() {
            texts.insert(name, String::from_utf8_lossy(&fs::read(entry.path())?).into_owned());
        }
    }
    Ok(texts.into_values().collect())
}

fn document(crates: &[LinkedCrate], rust: &str) -> Result<String> {
    // Texts that differ in line ends and indentation only are one text.
    let mut groups: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
    for krate in crates {
        for text in krate.applicable_texts(crates)? {
            let key = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let (_, users) = groups.entry(key).or_insert_with(|| (text.replace("\r\n", "\n"), Vec::new()));
            users.push(format!("{} ({})", krate.name, krate.license));
        }
    }
    let mut groups: Vec<(String, Vec<String>)> = groups.into_values().collect();
    // Texts of many crates come first.
    groups.sort_by(|(_, one), (_, other)| (other.len(), one).cmp(&(one.len(), other)));
    let line = "=".repeat(80);
    let mut document = format!(
        "The program bindpost contains code of {} crates, and the standard library of\n\
         {rust}, which is licensed under MIT or Apache-2.0.\n\
         Each license text below is preceded by the crates it belongs to.\n",
        crates.len()
    );
    for (text, users) in groups {
        let text = text.trim_matches(['\n', '\u{feff}']).trim_end();
        document.push_str(&format!("\n{line}\n{}\n{line}\n\n{text}\n", users.join("\n")));
    }
    Ok(document)
}

#[cfg(test)]
mod tests {
    use super::{LinkedCrate, document};

    fn krate(name: &str, license: &str, repository: &str, texts: &[&str]) -> LinkedCrate {
        LinkedCrate {
            name: name.into(),
            license: license.into(),
            repository: repository.into(),
            authors: "Ada".into(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    #[test]
    fn a_text_that_crates_share_occurs_once() {
        let crates = [
            krate("one 1.0.0", "MIT", "", &["Permission\r\n is granted"]),
            krate("two 1.0.0", "MIT", "https://x", &["Permission\nis granted", "Notice of two"]),
            krate("three 1.0.0", "MIT", "https://x", &[]),
            krate("four 1.0.0", "MIT OR Zlib", "https://y", &[]),
        ];
        let document = document(&crates, "rustc 1.90.0").unwrap();
        assert_eq!(document.matches("Permission\n").count(), 1, "{document}");
        assert!(document.contains("one 1.0.0 (MIT)\ntwo 1.0.0 (MIT)\nthree 1.0.0 (MIT)\n="), "{document}");
        assert!(document.contains("Copyright (c) Ada\n"), "{document}");
    }

    #[test]
    fn a_crate_without_any_text_is_an_error() {
        assert!(document(&[krate("five 1.0.0", "BSD-3-Clause", "", &[])], "rustc").is_err());
    }
}
