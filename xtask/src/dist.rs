//! `cargo xtask dist`: the packages of a release. Nothing is uploaded.
//!
//! `contents.rs` gathers what every package contains: the program, its manual, completions and licenses. There is one
//! file for each kind of package: `archive.rs`, `debian.rs`, `npm.rs`, `wheel.rs`. `container.rs` checks the image
//! definition. `java_worker.rs` compiles the worker that the program contains. `installed.rs` is the test: it installs every package and runs the program.
//!
//! The same input gives the same bytes: entries are sorted, and all times are [`MODIFIED`].

mod archive;
mod container;
mod contents;
mod debian;
mod installed;
mod java_worker;
mod licenses;
mod linkage;
mod npm;
mod wheel;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::workspace;
use contents::ReleaseContents;
pub(crate) use installed::run as test;
pub(crate) use licenses::run as print_licenses;

/// The time of every entry: 1980-01-01, the first that a ZIP file can have.
const MODIFIED: u64 = 315_532_800;

/// One kind of package: from the contents to the files that people download.
type PackageKind = fn(&ReleaseContents) -> Result<Vec<ReleaseFile>>;

const KINDS: &[PackageKind] = &[archive::package, debian::package, npm::package, wheel::package];

/// A file of a release.
struct ReleaseFile {
    name: String,
    content: Vec<u8>,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let (mut profile, mut program) = ("dist", None);
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let value = args.next().with_context(|| format!("{arg} needs a value"))?;
        match (arg.as_str(), value.as_str()) {
            ("--profile", "dev" | "release" | "dist") => profile = value.as_str(),
            ("--program", file) => program = Some(PathBuf::from(file)),
            _ => bail!(
                "no such option: {arg} {value} (there are --profile dev|release|dist and --program FILE)"
            ),
        }
    }
    let program = match program {
        Some(program) => program,
        None => build(profile)?.join("bindpost"),
    };
    write_packages(&program, &folder())?;
    Ok(())
}

/// Builds the program with the compiled Java worker, and returns its folder.
fn build(profile: &str) -> Result<PathBuf> {
    let classes = java_worker::compile()?;
    workspace::build_with(profile, &["bindpost-cli"], &[(java_worker::VARIABLE, &classes)])
}

/// Returns the folder of the packages. `target/dist` is the folder of the build profile.
fn folder() -> PathBuf {
    workspace::target().join("packages")
}

/// Writes all packages of a program into an empty folder, with their checksums.
fn write_packages(program: &Path, folder: &Path) -> Result<ReleaseContents> {
    container::check()?;
    let contents = ReleaseContents::gather(program)?;
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    for file in make_packages(&contents)? {
        fs::write(folder.join(&file.name), &file.content)?;
        println!("{:>10} {}", file.content.len(), folder.join(&file.name).display());
    }
    Ok(contents)
}

/// All files of a release, and `SHA256SUMS`, which `sha256sum --check` reads.
fn make_packages(contents: &ReleaseContents) -> Result<Vec<ReleaseFile>> {
    let mut files = Vec::new();
    for package in KINDS {
        files.extend(package(contents)?);
    }
    files.sort_by(|one, other| one.name.cmp(&other.name));
    let lines = files.iter().map(|file| format!("{}  {}\n", sha256_hex(&file.content), file.name));
    let sums: String = lines.collect();
    files.push(ReleaseFile { name: "SHA256SUMS".into(), content: sums.into_bytes() });
    Ok(files)
}

fn sha256_hex(content: &[u8]) -> String {
    Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::contents::ReleaseContents;
    use super::make_packages;

    #[test]
    fn the_same_input_gives_the_same_bytes() {
        let make = || make_packages(&ReleaseContents::example()).unwrap();
        let (first, second) = (make(), make());
        let names: Vec<&str> = first.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "bindpost-1.2.3-py3-none-manylinux_2_34_x86_64.whl",
                "bindpost-1.2.3-x86_64-unknown-linux-gnu.tar.gz",
                "bindpost-1.2.3.tgz",
                "bindpost-linux-x64-1.2.3.tgz",
                "bindpost_1.2.3_amd64.deb",
                "SHA256SUMS",
            ]
        );
        for (first, second) in first.iter().zip(&second) {
            assert!(first.content == second.content, "{} differs", first.name);
        }
        let sums = String::from_utf8(first.last().unwrap().content.clone()).unwrap();
        assert_eq!(sums.lines().count(), 5);
        assert!(sums.lines().all(|line| line.split_once("  ").unwrap().0.len() == 64));
    }
}
