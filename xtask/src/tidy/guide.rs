//! The code of the guide is code that is compiled and tested.

use super::{Repository, TidyFinding};

/// The languages whose blocks must be excerpts. Commands (`sh`, `console`) are checked by `documents.rs`.
const LANGUAGES: [&str; 7] = ["rust", "python", "js", "json", "toml", "dockerfile", "text"];

/// Every fenced block of code below `docs/guide` is an excerpt of a file below `examples/`, ignoring indentation
/// and blank lines.
pub(super) fn samples_are_tested(repository: &Repository) -> Vec<TidyFinding> {
    let sources: Vec<Vec<&str>> = repository
        .files
        .iter()
        .filter(|file| file.path.starts_with("examples/"))
        .map(|file| significant_lines(&file.text))
        .collect();
    let chapters = repository.files.iter().filter(|file| file.path.starts_with("docs/guide/"));
    let blocks =
        chapters.flat_map(|file| code_blocks(&file.text).map(|(line, code)| (&file.path, line, code)));
    blocks
        .filter(|(_, _, code)| !sources.iter().any(|source| contains(source, &significant_lines(code))))
        .map(|(path, line, _)| {
            TidyFinding::error(
                format!("{path}:{line}"),
                "this code is in no file below examples/",
                "copy it from the sample of the chapter in examples/guide/src, where it is tested",
            )
        })
        .collect()
}

/// Returns the blocks of code with the number of their first line.
fn code_blocks(document: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut line = 1;
    document.split("```").enumerate().filter_map(move |(number, part)| {
        let first = line;
        line += part.matches('\n').count();
        let (language, code) = part.split_once('\n').filter(|_| number % 2 == 1)?;
        // A manifest names a checkout beside the reader's crate, which no example has.
        let is_manifest = code.starts_with("[dependencies]") || code.starts_with("[dev-dependencies]");
        (LANGUAGES.contains(&language) && !is_manifest).then_some((first + 1, code))
    })
}

fn significant_lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect()
}

fn contains(source: &[&str], excerpt: &[&str]) -> bool {
    !excerpt.is_empty() && source.windows(excerpt.len()).any(|window| window == excerpt)
}

#[cfg(test)]
mod tests {
    use super::super::{Repository, RepositoryFile};
    use super::samples_are_tested;

    fn file(path: &str, text: &str) -> RepositoryFile {
        RepositoryFile { path: path.to_owned(), text: text.to_owned() }
    }

    #[test]
    fn code_that_is_in_no_example_is_found() {
        let chapter = "Text.\n```rust\nfn a() {\n    b()\n}\n```\nMore.\n```sh\ncargo run\n```\n```rust\nfn c() {}\n```\n";
        let sample = "mod x {\n    fn a() {\n\n        b()\n    }\n}\n";
        let files = vec![file("docs/guide/x.md", chapter), file("examples/guide/src/x.rs", sample)];
        let findings = samples_are_tested(&Repository { files, ..Repository::default() });
        let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["docs/guide/x.md:12"]);
    }
}
