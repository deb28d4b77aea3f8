//! What the packages contain, gathered once.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context, Result, ensure};

use super::licenses;
use super::linkage::ProgramLinkage;
use crate::workspace;

/// A platform that packages are made for, by the names that each package manager has for it.
pub(super) struct TargetPlatform {
    pub(super) triple: &'static str,
    pub(super) debian: &'static str,
    pub(super) npm_os: &'static str,
    pub(super) npm_cpu: &'static str,
    pub(super) python_machine: &'static str,
}

/// The platforms whose packages are tested.
pub(super) const PLATFORMS: &[TargetPlatform] = &[TargetPlatform {
    triple: "x86_64-unknown-linux-gnu",
    debian: "amd64",
    npm_os: "linux",
    npm_cpu: "x64",
    python_machine: "x86_64",
}];

/// A file of a package, with its path in the package.
#[derive(Clone)]
pub(super) struct PackageFile {
    pub(super) path: String,
    pub(super) executable: bool,
    pub(super) content: Rc<[u8]>,
}

/// What every package of a release is made from.
pub(super) struct ReleaseContents {
    pub(super) version: String,
    pub(super) description: String,
    pub(super) homepage: String,
    pub(super) license: String,
    pub(super) platform: &'static TargetPlatform,
    pub(super) program: PackageFile,
    pub(super) linkage: ProgramLinkage,
    pub(super) readme: PackageFile,
    /// Our license files, and those of the crates in the program.
    pub(super) licenses: Vec<PackageFile>,
    /// `bindpost.bash`, `_bindpost` of zsh, `bindpost.fish`, `_bindpost.ps1`.
    pub(super) completions: Vec<PackageFile>,
    /// `bindpost.1`, and a page for each command.
    pub(super) manuals: Vec<PackageFile>,
}

impl PackageFile {
    pub(super) fn new(path: impl Into<String>, content: impl Into<Rc<[u8]>>) -> Self {
        Self { path: path.into(), executable: false, content: content.into() }
    }

    pub(super) fn executable(path: impl Into<String>, content: impl Into<Rc<[u8]>>) -> Self {
        Self { executable: true, ..Self::new(path, content) }
    }

    /// The same file at another path.
    pub(super) fn at(&self, path: impl Into<String>) -> Self {
        Self { path: path.into(), ..self.clone() }
    }

    /// The same file in a folder, which ends with a slash.
    pub(super) fn below(&self, folder: &str) -> Self {
        self.at(format!("{folder}{}", self.path))
    }

    pub(super) fn mode(&self) -> u32 {
        if self.executable { 0o755 } else { 0o644 }
    }
}

impl ReleaseContents {
    /// Strips the program, and writes its manual, completions and the list of licenses.
    pub(super) fn gather(program: &Path) -> Result<Self> {
        let metadata = workspace::metadata(&[])?;
        let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
        let cli = packages.iter().find(|package| package["name"] == "bindpost-cli");
        let cli = cli.context("there is no package bindpost-cli")?;
        let text = |key: &str| cli[key].as_str().unwrap_or_default().to_owned();
        let platform = host_platform()?;

        let scratch = workspace::target().join("tmp/dist");
        fs::create_dir_all(&scratch)?;
        let stripped = scratch.join("bindpost");
        workspace::run(Command::new("strip").arg("-o").arg(&stripped).arg(program))
            .context("strip and objdump are needed (they are in binutils, which a C compiler needs)")?;
        let root = workspace::root();
        let readme = fs::read_to_string(root.join("cli/README.md"))?;
        let readme = readme.replacen("# bindpost-cli", "# bindpost", 1);
        let (completions, manuals) = reference(&scratch.join("reference"))?;
        Ok(Self {
            version: text("version"),
            description: "Turns functions, services and search into MCP servers.".into(),
            homepage: text("homepage"),
            license: text("license"),
            platform,
            linkage: ProgramLinkage::read(&stripped)?,
            program: PackageFile::executable("bindpost", fs::read(&stripped)?),
            readme: PackageFile::new("README.md", readme.into_bytes()),
            licenses: vec![
                PackageFile::new("LICENSE-APACHE", fs::read(root.join("LICENSE-APACHE"))?),
                PackageFile::new("LICENSE-MIT", fs::read(root.join("LICENSE-MIT"))?),
                PackageFile::new(
                    "THIRD-PARTY-LICENSES.txt",
                    licenses::third_party(platform.triple, packages)?.into_bytes(),
                ),
            ],
            completions,
            manuals,
        })
    }

    /// The files that accompany the program in every package.
    pub(super) fn documents(&self) -> impl Iterator<Item = &PackageFile> {
        self.licenses.iter().chain([&self.readme])
    }

    #[cfg(test)]
    pub(super) fn example() -> Self {
        let text = |path: &str| PackageFile::new(path, format!("text of {path}\n").into_bytes());
        Self {
            version: "1.2.3".into(),
            description: "Turns functions into MCP servers.".into(),
            homepage: "https://example.com/bindpost".into(),
            license: "MIT OR Apache-2.0".into(),
            platform: &PLATFORMS[0],
            program: PackageFile::executable("bindpost", vec![7; 5000]),
            linkage: ProgramLinkage::example(),
            readme: text("README.md"),
            licenses: vec![text("LICENSE-MIT"), text("THIRD-PARTY-LICENSES.txt")],
            completions: ["_bindpost", "_bindpost.ps1", "bindpost.bash", "bindpost.fish"].map(text).to_vec(),
            manuals: ["bindpost-run.1", "bindpost.1"].map(text).to_vec(),
        }
    }
}

/// The platform of the compiler. Packages are not cross-compiled, because the tests run them.
fn host_platform() -> Result<&'static TargetPlatform> {
    let host = host_triple()?;
    let found = PLATFORMS.iter().find(|platform| platform.triple == host);
    found.with_context(|| format!("there are no packages for {host} yet (PLATFORMS in dist/contents.rs)"))
}

pub(super) fn host_triple() -> Result<String> {
    let said = workspace::output(Command::new("rustc").arg("-vV").current_dir(workspace::root()))?;
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc names no host")?.to_owned())
}

/// Writes the completions and the man pages of the flags in `cli`.
fn reference(folder: &Path) -> Result<(Vec<PackageFile>, Vec<PackageFile>)> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let mut cargo =
        workspace::cargo(&["run", "--quiet", "-p", "bindpost-cli", "--example", "reference", "--"]);
    workspace::run(cargo.arg(folder))?;
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        files.push(PackageFile::new(entry.file_name().to_string_lossy(), fs::read(entry.path())?));
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let (manuals, completions): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| file.path.ends_with(".1"));
    ensure!(manuals.len() > 1 && completions.len() == 4, "the example `reference` wrote too few files");
    Ok((completions, manuals))
}
