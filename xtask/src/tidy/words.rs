//! Rules about names and prose: what [`style`](super) of the repository can be counted.
//!
//! `cargo xtask words` prints the figures per crate, for this repository or for another one.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use super::{Repository, RepositoryFile, TidyFinding};
use crate::table;

/// The largest share of type names that are one word.
const MAX_ONE_WORD_SHARE: f64 = 0.30;
/// Source files in one folder, folders below it aside.
const MAX_FILES_IN_FOLDER: usize = 20;

/// Names that every crate may define several times, because Rust itself repeats them.
const REPEATED_NAMES: &[&str] = &["Error", "Builder"];

// In two parts, so that this file does not match itself.
const VAGUE_WORDS: &[&str] = &[
    concat!("some", "body"),
    concat!("no", "body"),
    concat!("who", "ever"),
    concat!("unless", " told"),
    concat!("at the", " door"),
];

/// Lines that may use one of these words: (file, a part of the line).
const WORDS_ALLOWED: &[(&str, &str)] = &[];

/// A definition of a struct, enum, union or trait.
#[derive(Debug, PartialEq, Eq)]
struct TypeDefinition<'a> {
    name: &'a str,
    line: usize,
}

/// The lines of a source file with their numbers, up to the module with its tests.
pub(super) fn lines_before_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let following = text.lines().skip(1).map(str::trim_end).chain([""]);
    let before = (1..).zip(text.lines()).zip(following);
    let is_code =
        |((_, line), next): &((usize, &str), &str)| line.trim() != "#[cfg(test)]" || !next.ends_with('{');
    before.take_while(is_code).map(|(line, _)| line)
}

/// The types that a source file defines, without those of its tests.
fn type_definitions(text: &str) -> Vec<TypeDefinition<'_>> {
    let mut found = Vec::new();
    for (number, line) in lines_before_tests(text) {
        let code = line.trim_start();
        let code = match code.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => rest.split_once(") ").map_or("", |(_, rest)| rest),
            Some(rest) if rest.starts_with(' ') => rest.trim_start(),
            _ => code,
        };
        let keywords = ["struct ", "enum ", "trait ", "union "];
        let Some(rest) = keywords.iter().find_map(|keyword| code.strip_prefix(keyword)) else { continue };
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let name = rest.get(..end).unwrap_or_default();
        if name.starts_with(char::is_uppercase) {
            found.push(TypeDefinition { name, line: number });
        }
    }
    found
}

/// Whether a name is one word: `Server`, `Odata`, `P256`, but not `ServerState`.
fn is_one_word(name: &str) -> bool {
    let mut previous = 'A';
    !name.chars().skip(1).any(|c| {
        let begins_word = c.is_uppercase() && !previous.is_uppercase();
        previous = c;
        begins_word
    })
}

/// A product source file: tests, examples and benchmarks are left out, as in other repositories.
pub(super) fn is_product_source(path: &str) -> bool {
    path.ends_with(".rs")
        && path.contains("src/")
        && !path.ends_with("/tests.rs")
        && !["/tests/", "/benches/", "/examples/"].iter().any(|part| path.contains(part))
        && !["examples/", "fuzz/", "bench/", "interop/"].iter().any(|folder| path.starts_with(folder))
}

/// The crate of a source file: the folder above `src/`.
fn crate_of(path: &str) -> &str {
    path.split_once("/src/").map_or("", |(folder, _)| folder)
}

/// The types of each crate, with the file and line of each.
fn types_by_crate(files: &[RepositoryFile]) -> BTreeMap<&str, Vec<(&str, TypeDefinition<'_>)>> {
    let mut crates: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for file in files.iter().filter(|file| is_product_source(&file.path)) {
        let types = type_definitions(&file.text).into_iter().map(|found| (file.path.as_str(), found));
        crates.entry(crate_of(&file.path)).or_default().extend(types);
    }
    crates
}

/// A type name stands for one type within a crate.
pub(super) fn unique_type_names(repository: &Repository) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for types in types_by_crate(&repository.files).values() {
        let mut first: BTreeMap<&str, &str> = BTreeMap::new();
        for (path, found) in types.iter().filter(|(_, found)| !REPEATED_NAMES.contains(&found.name)) {
            if let Some(other) = first.insert(found.name, path) {
                findings.push(TidyFinding::error(
                    format!("{path}:{}", found.line),
                    format!("the crate defines `{}` twice; the other one is in {other}", found.name),
                    "name each after what it is, such as `WorkerGeneration` instead of `Generation`",
                ));
            }
        }
    }
    findings
}

/// Most type names say what the type is without their module.
pub(super) fn names_stand_alone(repository: &Repository) -> Vec<TidyFinding> {
    let crates = types_by_crate(&repository.files);
    let crowded = crates.iter().filter_map(|(folder, types)| {
        let one_word = types.iter().filter(|(_, found)| is_one_word(found.name)).count();
        let share = one_word as f64 / types.len().max(1) as f64;
        (types.len() >= 10 && share > MAX_ONE_WORD_SHARE).then(|| {
            TidyFinding::error(
                *folder,
                format!("{one_word} of {} type names are one word", types.len()),
                format!(
                    "at most {:.0} % may be; name types so that they stand alone",
                    100.0 * MAX_ONE_WORD_SHARE
                ),
            )
        })
    });
    crowded.collect()
}

/// The vague words of [`VAGUE_WORDS`] occur nowhere.
pub(super) fn no_vague_words(repository: &Repository) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| is_written_by_people(&file.path)) {
        for (number, line) in file.lines() {
            let lower = line.to_lowercase();
            let word = VAGUE_WORDS.iter().find(|word| lower.contains(**word));
            if let Some(word) = word.filter(|_| !file.is_allowed(line, WORDS_ALLOWED)) {
                findings.push(TidyFinding::error(
                    format!("{}:{number}", file.path),
                    format!("the word {word:?}"),
                    "use the field's own term: client, caller, unauthenticated, default, cancelled",
                ));
            }
        }
    }
    findings
}

/// Sources, documents and API descriptions, but not data.
fn is_written_by_people(path: &str) -> bool {
    let endings =
        [".rs", ".md", ".py", ".js", ".mjs", ".ts", ".toml", ".yaml", ".proto", ".txt", ".java", ".html"];
    endings.iter().any(|ending| path.ends_with(ending))
}

/// A documentation comment of one word says nothing.
pub(super) fn no_fill_comments(repository: &Repository) -> Vec<TidyFinding> {
    let mut findings = Vec::new();
    for file in repository.files.iter().filter(|file| is_product_source(&file.path)) {
        let lines: Vec<&str> = file.text.lines().collect();
        for (number, line) in lines.iter().enumerate() {
            let is_doc = |line: Option<&&str>| line.is_some_and(|line| line.trim_start().starts_with("///"));
            let stands_alone = !is_doc(number.checked_sub(1).and_then(|before| lines.get(before)))
                && !is_doc(lines.get(number + 1));
            if stands_alone && is_fill_comment(line) {
                findings.push(TidyFinding::error(
                    format!("{}:{}", file.path, number + 1),
                    format!("the comment {:?} only fills a lint", line.trim()),
                    "say what the item means, as its specification does, or delete the comment",
                ));
            }
        }
    }
    findings
}

fn is_fill_comment(line: &str) -> bool {
    let Some(text) = line.trim_start().strip_prefix("/// ") else { return false };
    text.strip_suffix('.').is_some_and(|word| !word.is_empty() && word.chars().all(char::is_alphabetic))
}

/// A folder with many files shows its groups.
pub(super) fn folders_have_groups(repository: &Repository) -> Vec<TidyFinding> {
    let mut folders: BTreeMap<&str, usize> = BTreeMap::new();
    for file in repository.files.iter().filter(|file| is_product_source(&file.path)) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        *folders.entry(folder).or_default() += 1;
    }
    let crowded = folders.iter().filter(|(_, count)| **count > MAX_FILES_IN_FOLDER);
    crowded
        .map(|(folder, count)| {
            TidyFinding::error(
                *folder,
                format!("{count} files in one folder"),
                format!(
                    "at most {MAX_FILES_IN_FOLDER}; put files that belong together into a folder of their own"
                ),
            )
        })
        .collect()
}

/// `cargo xtask words [FOLDER]`: the figures of this repository, or of the git checkout in a folder.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let files = match args {
        [] => Repository::read_files(crate::workspace::root())?,
        [folder] => Repository::read_files(Path::new(folder))?,
        _ => anyhow::bail!("words takes at most one folder"),
    };
    let mut rows = Vec::new();
    let (mut all_types, mut all_one_word, mut all_repeated) = (0, 0, 0);
    for (folder, types) in types_by_crate(&files) {
        let mut names: BTreeMap<&str, usize> = BTreeMap::new();
        types.iter().for_each(|(_, found)| *names.entry(found.name).or_default() += 1);
        let repeated: usize = names.values().filter(|count| **count > 1).sum();
        let one_word = types.iter().filter(|(_, found)| is_one_word(found.name)).count();
        all_types += types.len();
        all_one_word += one_word;
        all_repeated += repeated;
        rows.push(row(folder, types.len(), one_word, repeated));
    }
    rows.push(row("all", all_types, all_one_word, all_repeated));
    table::print(&["crate", "types", "one word", "%", "name used twice in the crate"], &rows);
    let repository = Repository { files, ..Repository::default() };
    println!("\nvague words: {}", no_vague_words(&repository).len());
    println!("fill comments: {}", no_fill_comments(&repository).len());
    println!("folders above {MAX_FILES_IN_FOLDER} files: {}", folders_have_groups(&repository).len());
    Ok(())
}

fn row(folder: &str, types: usize, one_word: usize, repeated: usize) -> Vec<String> {
    let share = 100.0 * one_word as f64 / types.max(1) as f64;
    vec![folder.into(), types.to_string(), one_word.to_string(), format!("{share:.1}"), repeated.to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_definitions_outside_of_tests() {
        let text = "pub struct One;\n    pub(crate) enum Two<T> {\n// struct No\ntrait Three: Four {\nlet structure = 1;\n\
                    #[cfg(test)]\nmod tests {\nstruct Five;";
        let names: Vec<&str> = type_definitions(text).iter().map(|found| found.name).collect();
        assert_eq!(names, ["One", "Two", "Three"]);
    }

    #[test]
    fn counts_words_of_names() {
        for name in ["Server", "P256", "JSON", "Html"] {
            assert!(is_one_word(name), "{name}");
        }
        for name in ["ServerState", "HtmlStrip", "ToolEntry"] {
            assert!(!is_one_word(name), "{name}");
        }
    }

    #[test]
    fn knows_comments_that_only_fill_a_lint() {
        assert!(is_fill_comment("    /// More."));
        assert!(!is_fill_comment("    /// The page size."));
        assert!(!is_fill_comment("    // More."));
    }

    #[test]
    fn reports_a_name_that_two_types_share() {
        let file = |path: &str, text: &str| RepositoryFile { path: path.into(), text: text.into() };
        let files = vec![
            file("mcp/a/src/one.rs", "struct Kind;"),
            file("mcp/a/src/two.rs", "enum Kind {}"),
            file("mcp/b/src/one.rs", "struct Kind;\nstruct Error;"),
            file("mcp/b/src/two.rs", "struct Error;"),
        ];
        let findings = unique_type_names(&Repository { files, ..Repository::default() });
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].place, "mcp/a/src/two.rs:1");
    }
}
