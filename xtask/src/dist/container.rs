//! Checks of `deploy/Containerfile` that need no container engine. They do not build the image.

use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace;

const FILE: &str = "deploy/Containerfile";

/// Base images without a shell.
const BASES_WITHOUT_SHELL: &[&str] =
    &["scratch", "gcr.io/distroless/static-debian12", "gcr.io/distroless/cc-debian12"];

/// An instruction: its word in upper case, and the rest of its line.
type Instruction = (String, String);

/// One `FROM` and what follows it.
#[derive(Debug, Default)]
struct BuildStage {
    image: String,
    name: String,
    instructions: Vec<Instruction>,
}

/// Fails if the image would run as root, contain a shell, or copy a file that does not exist.
pub(super) fn check() -> Result<()> {
    let root = workspace::root();
    let stages = parse(&fs::read_to_string(root.join(FILE))?)?;
    let exists = |path: &str| root.join(path).exists();
    check_stages(&stages, exists).with_context(|| format!("{FILE} is not in order"))?;
    let toolchain = fs::read_to_string(root.join("rust-toolchain.toml"))?;
    let version = toolchain.split('"').nth(1).context("rust-toolchain.toml names no version")?;
    let image = stages.first().map_or("", |stage| stage.image.as_str());
    ensure!(
        image.contains(&format!("/rust:{version}-")),
        "{FILE} builds with {image}, not with Rust {version}"
    );
    Ok(())
}

/// Splits a file into its stages. Continued lines are joined, comments are left out.
fn parse(text: &str) -> Result<Vec<BuildStage>> {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = lines.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    let mut stages: Vec<BuildStage> = Vec::new();
    for line in joined.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (word, rest) = (word.to_uppercase(), rest.trim());
        if word == "FROM" {
            let words: Vec<&str> = rest.split_whitespace().collect();
            let name = if let [_, "AS" | "as", name] = words.as_slice() { name } else { "" };
            let image = words.first().copied().unwrap_or_default();
            stages.push(BuildStage { image: image.into(), name: name.into(), ..BuildStage::default() });
        } else {
            let stage = stages.last_mut().with_context(|| format!("{word} stands before the first FROM"))?;
            stage.instructions.push((word, rest.to_owned()));
        }
    }
    Ok(stages)
}

fn check_stages(stages: &[BuildStage], exists: impl Fn(&str) -> bool) -> Result<()> {
    let [builds @ .., last] = stages else { bail!("there is no stage") };
    ensure!(!builds.is_empty(), "one stage would ship the compiler; use a stage for the build");
    for stage in stages {
        for (_, rest) in stage.instructions.iter().filter(|(word, _)| word == "COPY" || word == "ADD") {
            let words: Vec<&str> = rest.split_whitespace().collect();
            let (flags, paths): (Vec<&str>, Vec<&str>) =
                words.iter().partition(|word| word.starts_with("--"));
            let [sources @ .., _] = paths.as_slice() else { bail!("COPY {rest} names no files") };
            match flags.iter().find_map(|flag| flag.strip_prefix("--from=")) {
                Some(from) => {
                    ensure!(builds.iter().any(|stage| stage.name == from), "no stage is called {from}")
                }
                None => {
                    for source in sources {
                        ensure!(exists(source), "COPY {rest}: there is no {source}");
                    }
                }
            }
        }
    }
    let base = last.image.split([':', '@']).next().unwrap_or_default();
    ensure!(BASES_WITHOUT_SHELL.contains(&base), "{base} may contain a shell");
    let values = |word: &str| {
        last.instructions.iter().filter(|(found, _)| found == word).map(|(_, rest)| rest).collect::<Vec<_>>()
    };
    let user = values("USER").last().map_or("", |user| user.as_str());
    let number = user.split(':').next().and_then(|user| user.parse::<u32>().ok());
    ensure!(
        number.is_some_and(|number| number > 0),
        "the last stage runs as {user:?}, not as the number of a user"
    );
    for word in ["RUN", "SHELL", "HEALTHCHECK"] {
        ensure!(values(word).is_empty(), "{word} in the last stage needs a shell");
    }
    ensure!(!values("EXPOSE").is_empty(), "no port is exposed");
    let entry_point = values("ENTRYPOINT");
    ensure!(
        entry_point.iter().any(|value| value.starts_with("[\"")),
        "ENTRYPOINT without brackets needs a shell"
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{check, check_stages, parse};

    const GOOD: &str = "# comment\nFROM docker.io/library/rust:1 AS build\nCOPY . .\nRUN a \\\n  b\n\
        FROM gcr.io/distroless/cc-debian12:nonroot\nCOPY --from=build /a /b\nUSER 65532:65532\nEXPOSE 1\nENTRYPOINT [\"/b\"]\n";

    fn verdict(text: &str) -> Result<(), String> {
        check_stages(&parse(text).unwrap(), |path| path == ".").map_err(|error| error.to_string())
    }

    #[test]
    fn the_image_of_this_repository_is_in_order() {
        check().unwrap();
    }

    #[test]
    fn finds_what_is_wrong_with_an_image() {
        assert_eq!(verdict(GOOD), Ok(()));
        for (from, to, complaint) in [
            ("USER 65532:65532\n", "", "runs as"),
            ("USER 65532:65532", "USER 0", "runs as"),
            ("gcr.io/distroless/cc-debian12:nonroot", "debian:12", "may contain a shell"),
            ("--from=build", "--from=other", "no stage is called other"),
            ("COPY . .", "COPY missing .", "there is no missing"),
            ("EXPOSE 1", "RUN x", "RUN in the last stage"),
            ("[\"/b\"]", "/b", "needs a shell"),
        ] {
            let found = verdict(&GOOD.replace(from, to)).unwrap_err();
            assert!(found.contains(complaint), "{complaint}: {found}");
        }
    }
}
