//! The lock files: what is fuzzed and replayed has the dependencies of the product, and these build with the compiler
//! that `rust-version` promises.

use std::collections::{HashMap, HashSet};

use super::{Repository, TidyFinding};

const PRODUCT: &str = "Cargo.lock";
const FUZZ: &str = "fuzz/Cargo.lock";

pub(super) fn fuzz_is_in_step(repository: &Repository) -> Vec<TidyFinding> {
    let [Some(product), Some(fuzz)] = [PRODUCT, FUZZ].map(|path| repository.file(path)) else {
        return vec![TidyFinding::error(FUZZ, "there is no lock file", "run `cargo xtask fuzz --replay`")];
    };
    let differing = differing(&product.text, &fuzz.text);
    if differing.is_empty() {
        return Vec::new();
    }
    let what = format!("not the versions of {PRODUCT}: {}", differing.join(", "));
    vec![TidyFinding::error(FUZZ, what, format!("cp {PRODUCT} {FUZZ} && cargo xtask fuzz --replay"))]
}

/// The packages that both have, of which the second has a version that the first has not.
fn differing(product: &str, fuzz: &str) -> Vec<String> {
    let mut versions: HashMap<&str, HashSet<&str>> = HashMap::new();
    for (name, version) in packages(product) {
        versions.entry(name).or_default().insert(version);
    }
    let differs =
        |(name, version): &(&str, &str)| versions.get(name).is_some_and(|all| !all.contains(version));
    packages(fuzz).filter(differs).map(|(name, version)| format!("{name} {version}")).collect()
}

/// No dependency requires a newer compiler than the crates of this repository promise. Clippy's lint
/// `incompatible_msrv` checks the code of the repository itself.
pub(super) fn rust_version_is_true(repository: &Repository) -> Vec<TidyFinding> {
    let promises = repository.crates.iter().map(|krate| krate.rust_version.as_str());
    let Some(promised) = promises.min_by_key(|text| version_numbers(text)) else { return Vec::new() };
    let newer = repository.dependencies.iter().filter(|package| {
        !package.rust_version.is_empty() && version_numbers(&package.rust_version) > version_numbers(promised)
    });
    newer
        .map(|package| {
            TidyFinding::error(
                PRODUCT,
                format!("{} {} needs Rust {}", package.name, package.version, package.rust_version),
                format!("raise `rust-version` in Cargo.toml from {promised}, or keep an older version"),
            )
        })
        .collect()
}

/// `1.90` and `1.90.0` are the same compiler.
fn version_numbers(text: &str) -> [u32; 3] {
    let mut numbers = text.split('.').map(|number| number.parse().unwrap_or(0));
    std::array::from_fn(|_| numbers.next().unwrap_or(0))
}

/// The name and the version of each package of a lock file.
fn packages(lock: &str) -> impl Iterator<Item = (&str, &str)> {
    lock.split("[[package]]").filter_map(|package| {
        let member = |name: &str| {
            let value = package.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
            value.map(|value| value.trim_matches('"'))
        };
        member("name").zip(member("version"))
    })
}

#[cfg(test)]
mod tests {
    use super::super::{LockedPackage, Repository, WorkspaceCrate};
    use super::{differing, rust_version_is_true};

    fn lock(packages: &[(&str, &str)]) -> String {
        let package = |(name, version): &(&str, &str)| {
            format!(
                "\n[[package]]\nname = \"{name}\"\nversion = \"{version}\"\ndependencies = [\n \"name\",\n]\n"
            )
        };
        format!("version = 4\n{}", packages.iter().map(package).collect::<String>())
    }

    #[test]
    fn a_package_of_both_has_a_version_of_the_product() {
        let product = lock(&[("http", "1.5.0"), ("syn", "2.0.1"), ("syn", "3.0.9"), ("clap", "4.6.0")]);
        let fuzz = lock(&[("http", "1.5.0"), ("syn", "3.0.9"), ("libfuzzer-sys", "0.4.13")]);
        assert!(differing(&product, &fuzz).is_empty());
        let fuzz = lock(&[("http", "1.4.0"), ("syn", "3.0.9")]);
        assert_eq!(differing(&product, &fuzz), ["http 1.4.0"]);
    }

    #[test]
    fn no_dependency_needs_a_newer_compiler() {
        let krate = WorkspaceCrate { rust_version: "1.90".into(), ..WorkspaceCrate::default() };
        let package = |name: &str, rust_version: &str| LockedPackage {
            name: name.into(),
            version: "1.0.0".into(),
            rust_version: rust_version.into(),
        };
        let dependencies = vec![
            package("silent", ""),
            package("older", "1.9"),
            package("same", "1.90.0"),
            package("newer", "1.91"),
        ];
        let repository = Repository { crates: vec![krate], dependencies, ..Repository::default() };
        let findings = rust_version_is_true(&repository);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].what, "newer 1.0.0 needs Rust 1.91");
    }
}
