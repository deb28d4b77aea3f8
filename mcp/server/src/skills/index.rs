//! Builds the [`SkillIndex`] of a server from its sets: checks, digests, folders, and the resources.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bindpost_mcp_protocol::{Resource, ResourceContents};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::front_matter::FrontMatter;
use super::set::{FileDraft, SkillDraft, SkillSet};
use super::{
    DIRECTORY, DirectoryChild, IndexedSkill, MANIFEST, MAX_BYTES, MAX_FILES, SCHEME, SkillDirectory,
    SkillIndex,
};
use crate::auth::AccessRule;
use crate::catalog::resource::ResourceEntry;
use crate::catalog::{CatalogError, CatalogSnapshot};

/// An entry of `skills/list`.
#[derive(Serialize)]
struct SkillEntry<'a> {
    uri: &'a str,
    frontmatter: &'a Map<String, Value>,
    resources: Vec<FileReference<'a>>,
}

#[derive(Clone, Copy, Serialize)]
struct FileReference<'a> {
    uri: &'a str,
    digest: &'a str,
    size: u64,
}

/// A file with what clients learn about it.
struct SkillFile {
    resource: Resource,
    digest: String,
    size: u64,
    access: Arc<AccessRule>,
    content: Vec<u8>,
    place: String,
}

/// A skill whose header is valid.
struct CheckedSkill {
    header: FrontMatter,
    access: Arc<AccessRule>,
}

pub(super) fn build(
    sets: Vec<SkillSet>,
    page_size: usize,
    snapshot: &mut CatalogSnapshot,
    mistakes: &mut Vec<CatalogError>,
) -> SkillIndex {
    let mut collection = SkillCollection::default();
    for set in sets {
        let SkillSet { skills, files, access, mistakes: found } = set;
        mistakes.extend(found);
        files.into_iter().for_each(|file| collection.add_file(file, &access, mistakes));
        skills.into_iter().for_each(|skill| collection.add_skill(&skill, &access, mistakes));
    }
    collection.check_tree(mistakes);
    collection.describe_files();
    let directories = collection.directories();
    let mut skills: Vec<IndexedSkill> = collection
        .skills
        .iter()
        .filter_map(|(path, skill)| collection.entry(path, skill, mistakes))
        .collect();
    skills.sort_by(|one, other| one.uri.cmp(&other.uri));
    for (path, file) in collection.files {
        let SkillFile { resource, access, content, place, .. } = file;
        let contents = match String::from_utf8(content) {
            Ok(text) => ResourceContents::text("", text),
            Err(bytes) => ResourceContents::blob("", bytes.as_bytes()),
        };
        let entry = ResourceEntry::with_contents(&resource.uri, &resource.name, contents);
        let mut entry = entry.definition(resource).access(AccessRule::clone(&access));
        entry.is_skill_file = true;
        if let Err(error) = snapshot.resources.add(entry) {
            mistakes.push(invalid(&place, format!("{path} cannot be served: {error}")));
        }
    }
    SkillIndex { skills, directories, page_size }
}

fn invalid(place: &str, reason: String) -> CatalogError {
    CatalogError::Invalid { kind: "skill", name: place.to_owned(), reason }
}

/// All skills and files, by their paths from the root.
#[derive(Default)]
struct SkillCollection {
    skills: BTreeMap<String, CheckedSkill>,
    files: BTreeMap<String, SkillFile>,
}

impl SkillCollection {
    fn add_file(&mut self, file: FileDraft, access: &Arc<AccessRule>, mistakes: &mut Vec<CatalogError>) {
        let FileDraft { path, content, place } = file;
        if let Some(segment) = path.split('/').find(|segment| !is_file_name(segment)) {
            let reason = format!("the path {path:?} has the invalid segment {segment:?}; rename the file");
            return mistakes.push(invalid(&place, reason));
        }
        if let Some(first) = self.files.get(&path) {
            let reason = format!("the file {path:?} is also given by {}; remove one", first.place);
            return mistakes.push(invalid(&place, reason));
        }
        let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
        let name = path.rsplit('/').next().unwrap_or_default();
        let resource = Resource {
            uri: uri_of(&path),
            name: name.to_owned(),
            mime_type: Some(media_type(name, &content).to_owned()),
            size: Some(size),
            ..Resource::default()
        };
        let digest = digest_of(&content);
        self.files.insert(path, SkillFile { resource, digest, size, access: access.clone(), content, place });
    }

    /// Checks the path and the header of a skill.
    fn add_skill(&mut self, skill: &SkillDraft, access: &Arc<AccessRule>, mistakes: &mut Vec<CatalogError>) {
        let SkillDraft { path, place } = skill;
        let (above, folder) = path.rsplit_once('/').unwrap_or(("", path));
        let above = above.split('/').filter(|_| !above.is_empty());
        if let Some(segment) = above.into_iter().find(|segment| !is_folder_name(segment)) {
            let reason = format!(
                "the folder {segment:?} of {path:?} cannot be part of a URI; use lower-case letters, digits, \
                 `-`, `_`, `.` and `~`"
            );
            mistakes.push(invalid(place, reason));
        }
        if self.skills.contains_key(path) {
            return mistakes.push(invalid(place, format!("the skill {path:?} is defined twice; remove one")));
        }
        let Some(manifest) = self.files.get_mut(&format!("{path}/{MANIFEST}")) else {
            let reason = format!("the skill {path:?} has no file {MANIFEST:?}; add it");
            return mistakes.push(invalid(place, reason));
        };
        let header = match FrontMatter::parse(&manifest.content, folder) {
            Ok(header) => header,
            Err(found) => {
                return mistakes.extend(found.into_iter().map(|reason| invalid(place, reason)));
            }
        };
        manifest.resource.name.clone_from(&header.name);
        manifest.resource.description = Some(header.description.clone());
        self.skills.insert(path.clone(), CheckedSkill { header, access: access.clone() });
    }

    /// Describes the files that are no `SKILL.md` of a skill, by the innermost skill that contains them.
    fn describe_files(&mut self) {
        let mut files = std::mem::take(&mut self.files);
        for (path, file) in files.iter_mut().filter(|(_, file)| file.resource.description.is_none()) {
            if let Some((skill, checked)) = self.skill_around(path) {
                let inside = path.get(skill.len() + 1..).unwrap_or_default();
                file.resource.description =
                    Some(format!("The file {inside} of the skill {}", checked.header.name));
            }
        }
        self.files = files;
    }

    /// Rejects paths that are both a file and a folder.
    fn check_tree(&self, mistakes: &mut Vec<CatalogError>) {
        for (path, file) in &self.files {
            let inside = format!("{path}/");
            if let Some((other, _)) =
                self.files.range(inside.clone()..).next().filter(|(other, _)| other.starts_with(&inside))
            {
                let reason = format!("{path:?} is a file, and the folder of {other:?}; rename one");
                mistakes.push(invalid(&file.place, reason));
            }
        }
    }

    /// Returns a skill as it is listed. Its files include those of the skills in it.
    fn entry(
        &self,
        path: &str,
        skill: &CheckedSkill,
        mistakes: &mut Vec<CatalogError>,
    ) -> Option<IndexedSkill> {
        let prefix = format!("{path}/");
        let files = self.files.range(prefix.clone()..).take_while(|(path, _)| path.starts_with(&prefix));
        let resources: Vec<FileReference<'_>> = files
            .map(|(_, file)| FileReference { uri: &file.resource.uri, digest: &file.digest, size: file.size })
            .collect();
        let manifest = self.files.get(&format!("{path}/{MANIFEST}"))?;
        let bytes: u64 = resources.iter().map(|file| file.size).sum();
        if resources.len() > MAX_FILES || bytes > MAX_BYTES {
            let reason = format!(
                "the skill has {} files with {bytes} bytes; hosts may refuse more than {MAX_FILES} files or \
                 {MAX_BYTES} bytes, remove files",
                resources.len()
            );
            mistakes.push(invalid(&manifest.place, reason));
        }
        let uri = manifest.resource.uri.clone();
        let entry = SkillEntry { uri: &uri, frontmatter: &skill.header.members, resources };
        let entry = serde_json::value::to_raw_value(&entry).ok()?;
        Some(IndexedSkill { uri, access: skill.access.clone(), entry })
    }

    /// Returns every folder by its URI.
    fn directories(&self) -> HashMap<String, SkillDirectory> {
        let mut folders: BTreeMap<String, BTreeMap<String, DirectoryChild>> = BTreeMap::new();
        for (path, file) in &self.files {
            let (mut folder, name) = path.rsplit_once('/').unwrap_or(("", path));
            let child = DirectoryChild { resource: file.resource.clone(), access: vec![file.access.clone()] };
            folders.entry(folder.to_owned()).or_default().insert(name.to_owned(), child);
            // The same for every folder above, up to the root, which has no URI.
            while let Some((above, name)) = folder.rsplit_once('/') {
                let siblings = folders.entry(above.to_owned()).or_default();
                let child = siblings.entry(name.to_owned()).or_insert_with(|| DirectoryChild {
                    resource: Resource {
                        uri: uri_of(folder),
                        name: name.to_owned(),
                        mime_type: Some(DIRECTORY.to_owned()),
                        ..Resource::default()
                    },
                    access: Vec::new(),
                });
                if !child.access.contains(&file.access) {
                    child.access.push(file.access.clone());
                }
                folder = above;
            }
        }
        let folders = folders.into_iter().map(|(path, children)| {
            let access = self.skill_around(&path).map(|(_, skill)| skill.access.clone());
            (uri_of(&path), SkillDirectory { access, children: children.into_values().collect() })
        });
        folders.collect()
    }

    /// Returns the innermost skill that is or contains a folder, or that contains a file, with its path.
    fn skill_around<'a>(&self, path: &'a str) -> Option<(&'a str, &CheckedSkill)> {
        let mut path = path;
        loop {
            if let Some(skill) = self.skills.get(path) {
                return Some((path, skill));
            }
            path = path.rsplit_once('/')?.0;
        }
    }
}

/// Returns whether a folder above a skill can have this name. The first one is the authority of the URI,
/// where case does not matter, so capital letters are excluded.
fn is_folder_name(segment: &str) -> bool {
    is_file_name(segment)
        && segment.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_.~".contains(&b))
}

fn is_file_name(segment: &str) -> bool {
    !matches!(segment, "" | "." | "..") && !segment.contains(|c: char| c == '\\' || c.is_control())
}

/// Returns the URI of a file or folder, with percent-encoded segments.
fn uri_of(path: &str) -> String {
    let mut uri = SCHEME.to_owned();
    for byte in path.bytes() {
        // The characters of a path segment (RFC 3986), and the slash between segments.
        if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

fn digest_of(content: &[u8]) -> String {
    let hex = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    format!("sha256:{hex}")
}

/// Returns the media type for the extension of a file name.
fn media_type(name: &str, content: &[u8]) -> &'static str {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("md" | "markdown") => "text/markdown",
        Some("html" | "htm") => "text/html",
        Some("css") => "text/css",
        Some("csv") => "text/csv",
        Some("js" | "mjs" | "cjs") => "text/javascript",
        Some("py") => "text/x-python",
        Some("sh" | "bash") => "application/x-sh",
        Some("json") => "application/json",
        Some("yaml" | "yml") => "application/yaml",
        Some("toml") => "application/toml",
        Some("xml") => "application/xml",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("pdf") => "application/pdf",
        Some("zip") => "application/zip",
        _ if std::str::from_utf8(content).is_ok() => "text/plain",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris_of_encoded_segments() {
        assert_eq!(uri_of("a/my file #1?.md"), "skill://a/my%20file%20%231%3F.md");
        assert_eq!(uri_of("a/für.md"), "skill://a/f%C3%BCr.md");
        assert_eq!(uri_of("a/50%.md"), "skill://a/50%25.md");
    }

    #[test]
    fn digests_are_those_of_sha_256() {
        assert_eq!(
            digest_of(b"abc"),
            "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }

    #[test]
    fn media_types_follow_extensions_and_content() {
        assert_eq!(media_type("FORMS.MD", b""), "text/markdown");
        assert_eq!(media_type("LICENSE", b"MIT"), "text/plain");
        assert_eq!(media_type("data", b"\xff"), "application/octet-stream");
    }
}
