//! [`Skill`] and [`SkillSet`]: the skills as their author gives them.

use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

use super::folder;
use crate::auth::AccessRule;
use crate::catalog::CatalogError;

/// A skill whose files are given by the program, for example with `include_str!`.
///
/// One of the files is `SKILL.md`. It begins with a YAML header, which has at least the skill's name and
/// a description of when to use it.
#[derive(Clone, Debug)]
pub struct Skill {
    pub(super) path: String,
    pub(super) files: Vec<(String, Vec<u8>)>,
    pub(super) place: &'static Location<'static>,
}

impl Skill {
    /// Returns a skill without files. The last segment of its path is its name: `refunds` or
    /// `billing/refunds`.
    #[track_caller]
    pub fn new(path: impl Into<String>) -> Skill {
        Skill { path: path.into(), files: Vec::new(), place: Location::caller() }
    }

    /// Adds a file by its path in the skill: `SKILL.md` or `references/forms.md`.
    pub fn file(mut self, path: impl Into<String>, content: impl Into<Vec<u8>>) -> Skill {
        self.files.push((path.into(), content.into()));
        self
    }
}

/// Skills with one access rule, for [`ServerBuilder::skills`](crate::ServerBuilder::skills).
///
/// By default every authenticated caller may read them, as it is for resources.
///
/// ```
/// use bindpost_mcp_server::{AccessRule, Skill, SkillSet};
///
/// let manifest = "---\nname: refunds\ndescription: How to refund an order\n---\n\nAsk for the number.\n";
/// let internal = SkillSet::new()
///     .skill(Skill::new("refunds").file("SKILL.md", manifest))
///     .access(AccessRule::default().with_scopes(["support"]));
/// # let _ = internal;
/// ```
#[derive(Clone, Debug, Default)]
pub struct SkillSet {
    pub(super) skills: Vec<SkillDraft>,
    pub(super) files: Vec<FileDraft>,
    pub(super) access: Arc<AccessRule>,
    pub(super) mistakes: Vec<CatalogError>,
}

/// The folder of a skill, before its files are checked.
#[derive(Clone, Debug)]
pub(super) struct SkillDraft {
    pub(super) path: String,
    /// Where the skill is defined, for messages.
    pub(super) place: String,
}

/// A file of a skill, or of several skills that are in each other.
#[derive(Clone, Debug)]
pub(super) struct FileDraft {
    /// The path from the root of all skills: `billing/refunds/SKILL.md`.
    pub(super) path: String,
    pub(super) content: Vec<u8>,
    /// Where the file is defined, for messages.
    pub(super) place: String,
}

impl SkillSet {
    /// Returns a set without skills.
    pub fn new() -> SkillSet {
        SkillSet::default()
    }

    /// Reads every skill below a folder. A relative path starts at the working directory of the program.
    ///
    /// ```text
    /// skills/
    ///   refunds/SKILL.md                 skill://refunds/SKILL.md
    ///   refunds/references/forms.md      skill://refunds/references/forms.md
    ///   billing/invoices/SKILL.md        skill://billing/invoices/SKILL.md
    /// ```
    ///
    /// - A folder with a `SKILL.md` is a skill. Its name is the `name` in the header of the file. Skills
    ///   can be in folders, and in other skills.
    /// - Files and folders whose names begin with a dot are not read, and neither are files in the folder
    ///   itself, such as a `README.md`.
    /// - A symbolic link to a file in the folder is followed. A link to a file outside of it, or to a
    ///   folder, is a mistake.
    /// - The files are read once, now. The server does not notice later changes on disk, so the digests in
    ///   `skills/list` are always those of the files that it serves.
    ///
    /// This function does not fail: [`ServerBuilder::build`](crate::ServerBuilder::build) returns every
    /// mistake in the folder, each with its file.
    ///
    /// ```
    /// use bindpost_mcp_server::{Server, SkillSet};
    ///
    /// let skills = SkillSet::from_folder("no/such/folder");
    /// let error = Server::builder("shop", "1.0.0").skills(skills).build().unwrap_err();
    /// assert!(error.to_string().contains("the folder cannot be read"));
    /// ```
    pub fn from_folder(folder: impl AsRef<Path>) -> SkillSet {
        folder::read_set(folder.as_ref())
    }

    /// Adds a skill whose files are given by the program.
    pub fn skill(mut self, skill: Skill) -> SkillSet {
        let Skill { path, files, place } = skill;
        let place = place.to_string();
        for (name, content) in files {
            self.files.push(FileDraft { path: format!("{path}/{name}"), content, place: place.clone() });
        }
        self.skills.push(SkillDraft { path, place });
        self
    }

    /// Sets the callers that may read the skills.
    pub fn access(mut self, access: AccessRule) -> SkillSet {
        self.access = Arc::new(access);
        self
    }
}
