//! The skills extension: folders of instructions that a host loads on demand
//! (`io.modelcontextprotocol/skills`, SEP-2640).
//!
//! # Types
//!
//! - [`Skill`] and [`SkillSet`] (`skills/set.rs`): what an author gives to the builder. `skills/folder.rs`
//!   reads a set from a folder. Mistakes are collected in the set and reported by
//!   [`ServerBuilder::build`], all of them at once.
//! - `FrontMatter` (`skills/front_matter.rs`): the YAML header of a `SKILL.md` as JSON.
//! - [`SkillIndex`] (this file): what a running server answers from. `skills/index.rs` builds it from all
//!   sets, with digests and limits, and adds one resource to the catalog for each file.
//!
//! Everything is read once, when the set is created. A file that changes on disk later changes nothing in
//! the server, so a digest is always that of the served bytes.
//!
//! # The path of a request
//!
//! `dispatch.rs` finds the method in its table. The methods exist if the server has at least one set and
//! the revision has extensions.
//!
//! - `skills/list`: [`list`] copies the encoded entries of one page. Lists that show permitted entries only
//!   leave out the skills that the caller may not read.
//! - `skills/get`: [`get`] copies one encoded entry. It requires the access that the skill's `SKILL.md`
//!   requires.
//! - `resources/read` of a file: `catalog/resource.rs`, as for every other resource, with its hooks.
//! - `resources/directory/read`: [`read_directory`] lists the direct children of a folder.
//!
//! The file `no_skills.rs` replaces this one in a program without the feature `skills`.

mod folder;
mod front_matter;
mod index;
mod set;

use std::collections::HashMap;
use std::sync::Arc;

use bindpost_mcp_protocol::{Params, Resource, ShapeForRevision as _};
use serde::Serialize;
use serde_json::value::RawValue;

pub use self::set::{Skill, SkillSet};
use crate::auth::required::RequiredAccess;
use crate::auth::{AccessRule, Caller};
use crate::catalog::cursor::{decode_position, encode_position};
use crate::catalog::visible_entries::VisibleEntries;
use crate::catalog::{CatalogError, CatalogSnapshot};
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::ProtocolError;
use crate::server::{ServerBuilder, ServerState};
use crate::transport::HeaderValues;

/// The scheme of all skills.
const SCHEME: &str = "skill://";
/// The file that makes a folder a skill.
const MANIFEST: &str = "SKILL.md";
/// The media type of folders.
const DIRECTORY: &str = "inode/directory";
/// Every host supports skills of this number of files, and may refuse larger ones.
const MAX_FILES: usize = 512;
/// Every host supports skills of this total size, and may refuse larger ones.
const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// The tags of the cursors.
const LIST_CURSOR: u8 = 16;
const DIRECTORY_CURSOR: u8 = 17;

/// The sets that were given to a builder.
#[derive(Debug, Default)]
pub(crate) struct SkillDrafts(Vec<SkillSet>);

impl SkillDrafts {
    /// Builds the index, and adds the files to the catalog. Without sets there is no index.
    pub(crate) fn resolve(
        self,
        page_size: usize,
        snapshot: &mut CatalogSnapshot,
        mistakes: &mut Vec<CatalogError>,
    ) -> Option<SkillIndex> {
        if self.0.is_empty() {
            return None;
        }
        Some(index::build(self.0, page_size, snapshot, mistakes))
    }
}

impl ServerBuilder {
    /// Adds skills, and declares the skills extension: instructions that a host loads on demand.
    ///
    /// Each file of a skill becomes a resource. The methods `skills/list` and `skills/get` return the
    /// skills with the digests of their files, and `resources/directory/read` lists their folders.
    ///
    /// ```
    /// use bindpost_mcp_server::{Server, Skill, SkillSet};
    ///
    /// let manifest = "---\nname: refunds\ndescription: How to refund an order\n---\n\nAsk for the number.\n";
    /// let refunds = Skill::new("billing/refunds").file("SKILL.md", manifest);
    /// let server = Server::builder("shop", "1.0.0").skills(SkillSet::new().skill(refunds)).build()?;
    /// # let _ = server;
    /// # Ok::<(), bindpost_mcp_server::BuildError>(())
    /// ```
    ///
    /// A folder with one folder for each skill is one line: `.skills(SkillSet::from_folder("skills"))`.
    pub fn skills(mut self, skills: SkillSet) -> ServerBuilder {
        self.skills.0.push(skills);
        self
    }
}

/// The skills of a server. They do not change while it runs.
#[derive(Debug)]
pub(crate) struct SkillIndex {
    /// Sorted by URI.
    skills: Vec<IndexedSkill>,
    /// The folders by their URIs: the skills, what is in them, and the folders above them.
    directories: HashMap<String, SkillDirectory>,
    page_size: usize,
}

#[derive(Debug)]
struct IndexedSkill {
    /// The URI of its `SKILL.md`.
    uri: String,
    access: Arc<AccessRule>,
    /// The entry as `skills/list` and `skills/get` return it.
    entry: Box<RawValue>,
}

#[derive(Debug)]
struct SkillDirectory {
    /// The access rule of the skill. A folder above the skills has none and is open as lists are.
    access: Option<Arc<AccessRule>>,
    /// Sorted by name.
    children: Vec<DirectoryChild>,
}

/// A file or a folder in a folder.
#[derive(Debug)]
struct DirectoryChild {
    resource: Resource,
    /// The access rules of the files. A caller sees a folder if it may read something in it.
    access: Vec<Arc<AccessRule>>,
}

impl DirectoryChild {
    fn is_permitted(&self, caller: Option<&Caller>) -> bool {
        caller.is_none_or(|caller| self.access.iter().any(|access| access.permits(caller)))
    }
}

/// Returns the access that `skills/get` and `resources/directory/read` require.
pub(crate) fn required_access(
    server: &ServerState,
    visible: &VisibleEntries<'_>,
    params: &Params,
) -> RequiredAccess {
    let Some(index) = &server.skills else { return RequiredAccess::Opening };
    let Some(uri) = params.text("uri") else { return RequiredAccess::Known };
    if let Some(directory) = index.directories.get(&*uri).filter(|_| is_shown(visible, &uri)) {
        return directory
            .access
            .clone()
            .map_or(RequiredAccess::Opening, |access| RequiredAccess::from_rule(Some(access)));
    }
    RequiredAccess::from_rule(visible.access_of_resource(&uri))
}

/// Returns whether the caller sees a file, or a file in a folder. A skill is hidden with its `SKILL.md`.
fn is_shown(visible: &VisibleEntries<'_>, uri: &str) -> bool {
    let is_inside = |file: &Resource| file.uri.strip_prefix(uri).is_some_and(|rest| rest.starts_with('/'));
    !visible.is_filtered() || visible.resource(uri).is_some() || visible.resources().any(is_inside)
}

/// One page of `skills/list`.
#[derive(Serialize)]
struct SkillPage<'a> {
    skills: Vec<&'a RawValue>,
    #[serde(rename = "nextCursor", skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// `skills/list`
pub(crate) fn list(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    const METHOD: &str = "skills/list";
    let Some(index) = &inbound.server.skills else { return unknown_method(&inbound) };
    let start = match parse_start(LIST_CURSOR, METHOD, inbound.request.params()) {
        Ok(start) => start,
        Err(error) => return inbound.refuse(&error),
    };
    let (visible, caller) = (inbound.visible_entries(), inbound.exchange.listed_for());
    let lists = |skill: &IndexedSkill| {
        caller.is_none_or(|caller| skill.access.permits(caller)) && is_shown(&visible, &skill.uri)
    };
    let (page, next) = cut_page(&index.skills, start, index.page_size, lists);
    let page = SkillPage {
        skills: page.into_iter().map(|skill| &*skill.entry).collect(),
        next_cursor: next.map(|after| encode_position(LIST_CURSOR, after)),
    };
    // Another caller may see other skills.
    let cache = inbound.server.stamp.cache_policy(caller.is_some() || visible.is_filtered());
    inbound.answer_with(page, cache)
}

#[derive(Serialize)]
struct SkillResult<'a> {
    skill: &'a RawValue,
}

/// `skills/get`
pub(crate) fn get(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    const METHOD: &str = "skills/get";
    let Some(index) = &inbound.server.skills else { return unknown_method(&inbound) };
    let Some(uri) = inbound.request.params().text("uri") else {
        return inbound.refuse(&ProtocolError::invalid_params(METHOD, "`uri` must be a string"));
    };
    let found = index.skills.binary_search_by(|skill| skill.uri.as_str().cmp(&uri));
    let found = found.ok().and_then(|at| index.skills.get(at));
    let Some(skill) = found.filter(|skill| is_shown(&inbound.visible_entries(), &skill.uri)) else {
        let reason = format!("no skill has the URI {uri}; it is the URI of a {MANIFEST}");
        return inbound.refuse(&ProtocolError::invalid_params(METHOD, reason));
    };
    let cache = inbound.server.cache_policy(&inbound.exchange.caller);
    inbound.answer_with(SkillResult { skill: &skill.entry }, cache)
}

/// One page of `resources/directory/read`.
#[derive(Serialize)]
struct DirectoryPage {
    resources: Vec<Resource>,
    #[serde(rename = "nextCursor", skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// `resources/directory/read`
pub(crate) fn read_directory(inbound: InboundRequest, _headers: &dyn HeaderValues) -> DispatchOutcome {
    const METHOD: &str = "resources/directory/read";
    let Some(index) = &inbound.server.skills else { return unknown_method(&inbound) };
    let params = inbound.request.params();
    let Some(uri) = params.text("uri") else {
        return inbound.refuse(&ProtocolError::invalid_params(METHOD, "`uri` must be a string"));
    };
    let visible = inbound.visible_entries();
    let Some(directory) = index.directories.get(&*uri).filter(|_| is_shown(&visible, &uri)) else {
        let reason = format!("{uri} is not a directory; the URI of one has no slash at its end");
        return inbound.refuse(&ProtocolError::invalid_params(METHOD, reason));
    };
    let start = match parse_start(DIRECTORY_CURSOR, METHOD, params) {
        Ok(start) => start,
        Err(error) => return inbound.refuse(&error),
    };
    let caller = inbound.exchange.listed_for();
    let lists =
        |child: &DirectoryChild| child.is_permitted(caller) && is_shown(&visible, &child.resource.uri);
    let (page, next) = cut_page(&directory.children, start, index.page_size, lists);
    let shaped = page.into_iter().map(|child| {
        let mut resource = child.resource.clone();
        resource.shape(inbound.revision());
        resource
    });
    inbound.answer(DirectoryPage {
        resources: shaped.collect(),
        next_cursor: next.map(|after| encode_position(DIRECTORY_CURSOR, after)),
    })
}

fn unknown_method(inbound: &InboundRequest) -> DispatchOutcome {
    inbound.refuse(&ProtocolError::UnknownMethod(inbound.request.method().to_owned()))
}

/// Returns the items of one page, and the position after its last item if more follow.
fn cut_page<T>(all: &[T], start: u64, size: usize, permitted: impl Fn(&T) -> bool) -> (Vec<&T>, Option<u64>) {
    let numbered = (1_u64..).zip(all);
    let mut rest = numbered.filter(|(after, item)| *after > start && permitted(item));
    let page: Vec<(u64, &T)> = rest.by_ref().take(size).collect();
    let next = page.last().map(|(after, _)| *after).filter(|_| rest.next().is_some());
    (page.into_iter().map(|(_, item)| item).collect(), next)
}

/// Parses the cursor of a page: the number of items before it.
fn parse_start(tag: u8, method: &str, params: &Params) -> Result<u64, ProtocolError> {
    let Some(raw) = params.get("cursor").filter(|cursor| !cursor.is_null()) else { return Ok(0) };
    raw.as_text().and_then(|text| decode_position(tag, &text)).ok_or_else(|| {
        let reason = format!("unknown cursor {}; start again without one", raw.as_json());
        ProtocolError::invalid_params(method, reason)
    })
}
