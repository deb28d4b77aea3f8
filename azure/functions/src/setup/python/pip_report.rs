//! Reads from the output of a failed pip which Python the packages need.

use super::requirements::specifier_of;
use super::version::VersionSpecifier;
use super::wishes::PythonWish;

/// Returns the versions of Python that the package needs because of which pip failed.
pub(super) fn needed_python(output: &[String]) -> Option<PythonWish> {
    other_python(output).or_else(|| output.iter().find_map(|line| different_python(line)))
}

/// Reads the lines `Ignored the following versions that require a different python version: 2.1.0 Requires-Python
/// >=3.13; …` and `No matching distribution found for azure-functions>=2.1.0`.
fn other_python(output: &[String]) -> Option<PythonWish> {
    const IGNORED: &str = "require a different python version: ";
    const NOT_FOUND: &str = "No matching distribution found for ";
    let requirement =
        output.iter().find_map(|line| line.split_once(NOT_FOUND)).map(|(_, rest)| rest.trim())?;
    let (_, ignored) = output.iter().rev().find_map(|line| line.split_once(IGNORED))?;
    let name_end =
        requirement.find(['=', '<', '>', '!', '~', '[', ' ', '(', ';']).unwrap_or(requirement.len());
    let name = requirement.get(..name_end)?.to_ascii_lowercase().replace(['_', '.'], "-");
    let wanted = specifier_of(requirement, &name).and_then(VersionSpecifier::parse);
    let mut specifiers: Vec<VersionSpecifier> = Vec::new();
    for (version, python) in ignored.split(';').filter_map(|part| part.split_once(" Requires-Python ")) {
        let numbers: Vec<u32> = version
            .trim()
            .split('.')
            .map_while(|part| part.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok())
            .collect();
        if wanted.as_ref().is_some_and(|wanted| !wanted.matches(&numbers)) {
            continue;
        }
        if let Some(specifier) = VersionSpecifier::parse(python)
            && !specifiers.contains(&specifier)
        {
            specifiers.push(specifier);
        }
    }
    let shown = specifiers.iter().map(VersionSpecifier::as_str).collect::<Vec<_>>().join(" or ");
    let reason = format!("{requirement} needs Python {shown}");
    (!specifiers.is_empty()).then(|| PythonWish::new(specifiers, reason))
}

/// Reads the line `ERROR: Package 'app' requires a different Python: 3.11.7 not in '>=3.13'`.
fn different_python(line: &str) -> Option<PythonWish> {
    let (before, after) = line.split_once(" requires a different Python: ")?;
    let package = before.rsplit('\'').nth(1)?;
    let specifier = VersionSpecifier::parse(after.split('\'').nth(1)?)?;
    let reason = format!("{package} needs Python {}", specifier.as_str());
    Some(PythonWish::new(vec![specifier], reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(lines: &[&str]) -> Option<String> {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        needed_python(&lines).map(|wish| wish.reason)
    }

    #[test]
    fn versions_that_pip_ignored_tell_the_python_that_they_need() {
        let ignored = "ERROR: Ignored the following versions that require a different python version: \
                       1.25.0 Requires-Python >=3.10; 1.26.0b3 Requires-Python <3.13,>=3.10; \
                       2.1.0 Requires-Python >=3.13; 2.2.0b2 Requires-Python >=3.13";
        let found = |requirement: &str| {
            reason(&[
                ignored,
                &format!("ERROR: No matching distribution found for {requirement}"),
                "[notice] x",
            ])
        };
        assert_eq!(found("azure-functions>=2.1.0").unwrap(), "azure-functions>=2.1.0 needs Python >=3.13");
        let several = found("azure-functions>=1.26.0b1").unwrap();
        assert_eq!(several, "azure-functions>=1.26.0b1 needs Python <3.13,>=3.10 or >=3.13");
        assert_eq!(found("azure-functions>=9"), None);
        assert_eq!(reason(&[ignored]), None);
    }

    #[test]
    fn a_package_that_needs_another_python_is_named() {
        let line = "ERROR: Package 'mine' requires a different Python: 3.11.7 not in '>=3.13'";
        assert_eq!(reason(&[line]).unwrap(), "mine needs Python >=3.13");
        assert_eq!(reason(&["ERROR: something else"]), None);
    }
}
