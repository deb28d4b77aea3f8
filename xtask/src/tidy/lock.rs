//! The lock file of `fuzz/`: what is fuzzed and replayed has the dependencies of the product.

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
    use super::differing;

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
}
