//! Pages of tools (the extension MCP Apps, `io.modelcontextprotocol/ui`, SEP-1865).
//!
//! A page is a resource with the scheme `ui`, and the definition of a tool names it. The host shows the page
//! in a sandbox and passes the results of the tool to it. What the page and the host say to each other does
//! not reach the server.

use std::sync::Arc;

use bindpost_mcp_protocol::meta::APPS_EXTENSION;
use bindpost_mcp_protocol::{Meta, ResourceContents, Tool};
use serde_json::{Map, Value, json};

use crate::auth::AccessRule;
use crate::catalog::resource::ResourceEntry;
use crate::catalog::tool::ToolEntry;
use crate::catalog::{CatalogEntry as _, CatalogError, CatalogSnapshot};
use crate::handler::context::Context;

/// The scheme of pages.
const SCHEME: &str = "ui://";
/// The media type of pages.
const MIME_TYPE: &str = "text/html;profile=mcp-app";
/// The member of `_meta` for definitions and contents.
const UI: &str = "ui";
/// The member of `_meta` that hosts read before there was `ui`.
const OLD_RESOURCE_URI: &str = "ui/resourceUri";

/// A page that a host shows with the results of a tool (MCP Apps).
///
/// ```
/// use bindpost_mcp_server::{AppPage, Server, ToolEntry};
///
/// let page = AppPage::new("ui://sales/chart", "<!doctype html><title>Sales</title>…")
///     .connect_to(["https://api.shop.example"]);
/// let chart = ToolEntry::new("sales_chart", async || "12 orders").description("Shows the sales.").page(page);
/// let server = Server::builder("shop", "1.0.0").tool(chart).build()?;
/// # let _ = server;
/// # Ok::<(), bindpost_mcp_server::BuildError>(())
/// ```
///
/// The page runs in a sandbox without network access. Each origin that it needs has to be named. Tools may
/// share a page: give them equal pages. It may be read by the callers of the tool. If its tools have
/// different access rules, every authenticated caller may read it.
#[derive(Clone, Debug, PartialEq)]
pub struct AppPage {
    uri: String,
    html: Arc<str>,
    /// The content security policy: `connectDomains` and others.
    csp: Map<String, Value>,
    permissions: Map<String, Value>,
    domain: Option<String>,
    border: Option<bool>,
}

/// What a page may use of the device. The host asks the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PagePermission {
    /// The camera.
    Camera,
    /// The microphone.
    Microphone,
    /// The position of the device.
    Geolocation,
    /// Writing to the clipboard.
    ClipboardWrite,
}

impl PagePermission {
    fn name(self) -> &'static str {
        match self {
            PagePermission::Camera => "camera",
            PagePermission::Microphone => "microphone",
            PagePermission::Geolocation => "geolocation",
            PagePermission::ClipboardWrite => "clipboardWrite",
        }
    }
}

impl AppPage {
    /// Returns a page with this URI, which begins with `ui://`, and this HTML document.
    pub fn new(uri: impl Into<String>, html: impl Into<Arc<str>>) -> AppPage {
        AppPage {
            uri: uri.into(),
            html: html.into(),
            csp: Map::new(),
            permissions: Map::new(),
            domain: None,
            border: None,
        }
    }

    /// Allows requests to these origins (`fetch`, WebSocket).
    pub fn connect_to(self, origins: impl IntoIterator<Item = impl Into<String>>) -> AppPage {
        self.allow("connectDomains", origins)
    }

    /// Allows scripts, styles, images, fonts and media of these origins.
    pub fn load_from(self, origins: impl IntoIterator<Item = impl Into<String>>) -> AppPage {
        self.allow("resourceDomains", origins)
    }

    /// Allows frames of these origins.
    pub fn frame_from(self, origins: impl IntoIterator<Item = impl Into<String>>) -> AppPage {
        self.allow("frameDomains", origins)
    }

    /// Allows these origins as the base of relative URLs.
    pub fn base_from(self, origins: impl IntoIterator<Item = impl Into<String>>) -> AppPage {
        self.allow("baseUriDomains", origins)
    }

    fn allow(mut self, directive: &str, origins: impl IntoIterator<Item = impl Into<String>>) -> AppPage {
        let origins = origins.into_iter().map(|origin| Value::String(origin.into()));
        if let Value::Array(all) = self.csp.entry(directive).or_insert_with(|| json!([])) {
            all.extend(origins);
        }
        self
    }

    /// Asks for something of the device.
    pub fn permission(mut self, permission: PagePermission) -> AppPage {
        self.permissions.insert(permission.name().to_owned(), json!({}));
        self
    }

    /// Sets the origin under which the host runs the page, for services that know the origins of their
    /// clients. Its form depends on the host.
    pub fn domain(mut self, domain: impl Into<String>) -> AppPage {
        self.domain = Some(domain.into());
        self
    }

    /// Sets whether the host draws a border around the page.
    pub fn border(mut self, border: bool) -> AppPage {
        self.border = Some(border);
        self
    }

    /// Returns what is wrong with the page.
    fn mistake(&self) -> Option<String> {
        if self.uri.strip_prefix(SCHEME).is_none_or(str::is_empty) {
            return Some(format!("the URI of a page begins with `{SCHEME}`, like `ui://sales/chart`"));
        }
        if !self.html.contains('<') {
            return Some("a page is an HTML document, but this text has no tags".to_owned());
        }
        let origins = self.csp.values().filter_map(Value::as_array).flatten().filter_map(Value::as_str);
        let wrong = origins.into_iter().find(|origin| !is_origin(origin))?;
        Some(format!(
            "{wrong:?} is not an origin; write a scheme and a host, like `https://api.shop.example`"
        ))
    }

    /// Returns `_meta.ui` of the resource.
    fn meta(&self) -> Option<Meta> {
        let mut ui = Map::new();
        if !self.csp.is_empty() {
            ui.insert("csp".to_owned(), self.csp.clone().into());
        }
        if !self.permissions.is_empty() {
            ui.insert("permissions".to_owned(), self.permissions.clone().into());
        }
        ui.extend(self.domain.clone().map(|domain| ("domain".to_owned(), domain.into())));
        ui.extend(self.border.map(|border| ("prefersBorder".to_owned(), border.into())));
        (!ui.is_empty()).then(|| Meta::from_iter([(UI.to_owned(), ui.into())]))
    }

    /// Returns the resource of the page.
    fn resource(&self, tool: &ToolEntry, access: AccessRule) -> ResourceEntry {
        let contents = ResourceContents { meta: self.meta(), ..ResourceContents::text("", &*self.html) };
        let name = self.uri.trim_start_matches(SCHEME).replace('/', "_");
        let mut entry = ResourceEntry::with_contents(&self.uri, name, contents)
            .mime_type(MIME_TYPE)
            .description(format!("The page of the tool {}.", tool.definition.name))
            .access(access);
        entry.definition.meta = self.meta();
        entry
    }
}

/// Returns whether a text is an origin. The first label of its host may be `*`.
fn is_origin(text: &str) -> bool {
    let Some((scheme, host)) = text.split_once("://") else { return false };
    let host = host.strip_prefix("*.").unwrap_or(host);
    matches!(scheme, "http" | "https" | "ws" | "wss")
        && !host.is_empty()
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte))
}

impl ToolEntry {
    /// Shows a page with the results of the tool, in hosts that support MCP Apps. The page becomes a
    /// resource of the server. Results still need a text, for the model and for other hosts. The
    /// structured content is the data of the page.
    pub fn page(mut self, page: AppPage) -> ToolEntry {
        self.page = Some(page);
        self
    }

    /// Hides the tool from the model: only pages call it (MCP Apps). Hosts without MCP Apps still show it to
    /// the model.
    pub fn for_pages_only(mut self) -> ToolEntry {
        self.is_for_pages = true;
        self
    }

    /// Writes the page and the visibility into the definition.
    pub(crate) fn describe_page(&mut self) {
        if let Some(uri) = self.page.as_ref().map(|page| page.uri.clone()) {
            self.set_ui("resourceUri", uri.clone().into());
            self.definition.meta.get_or_insert_default().insert(OLD_RESOURCE_URI.to_owned(), uri.into());
        }
        if self.is_for_pages {
            self.set_ui("visibility", json!(["app"]));
        }
    }

    fn set_ui(&mut self, name: &str, value: Value) {
        let meta = self.definition.meta.get_or_insert_default();
        let ui = meta.entry(UI).or_insert_with(|| json!({}));
        if !ui.is_object() {
            *ui = json!({});
        }
        if let Value::Object(ui) = ui {
            ui.insert(name.to_owned(), value);
        }
    }
}

impl Context {
    /// Returns whether the client shows pages with the results of tools (MCP Apps).
    pub fn shows_pages(&self) -> bool {
        let capabilities = self.capabilities();
        let types =
            capabilities.extensions.get(APPS_EXTENSION).and_then(|settings| settings.get("mimeTypes"));
        types.and_then(Value::as_array).is_some_and(|types| types.iter().any(|name| name == MIME_TYPE))
    }
}

/// Returns whether the definition of a tool uses MCP Apps.
pub(crate) fn uses_pages(tool: &Tool) -> bool {
    tool.meta.as_ref().is_some_and(|meta| meta.contains_key(UI) || meta.contains_key(OLD_RESOURCE_URI))
}

/// Returns the URI of the page that the definition of a tool names.
fn page_uri(tool: &Tool) -> Option<&str> {
    let meta = tool.meta.as_ref()?;
    meta.get(UI).and_then(|ui| ui.get("resourceUri")).or_else(|| meta.get(OLD_RESOURCE_URI))?.as_str()
}

impl CatalogSnapshot {
    /// Makes the pages of the tools resources, and removes pages without a tool. Returns whether a resource
    /// changed.
    pub(crate) fn update_pages(&mut self) -> Result<bool, CatalogError> {
        let tools: Vec<Arc<ToolEntry>> =
            self.tools.shared_entries().filter(|tool| tool.page.is_some()).cloned().collect();
        let mut pages: Vec<(&AppPage, &ToolEntry, AccessRule)> = Vec::new();
        for tool in &tools {
            let Some(page) = &tool.page else { continue };
            let invalid = |reason: String| CatalogError::Invalid {
                kind: "tool",
                name: tool.definition.name.clone(),
                reason: format!("its page {:?}: {reason}", page.uri),
            };
            if let Some(mistake) = page.mistake() {
                return Err(invalid(mistake));
            }
            match pages.iter_mut().find(|(other, ..)| other.uri == page.uri) {
                Some((other, first, _)) if *other != page => {
                    let first = &first.definition.name;
                    return Err(invalid(format!(
                        "the tool {first:?} has another page with this URI; rename one"
                    )));
                }
                Some((.., access)) if *access != *tool.access => {
                    let is_open = access.is_anonymous() || tool.access.is_anonymous();
                    *access = if is_open { AccessRule::anonymous() } else { AccessRule::default() };
                }
                Some(_) => {}
                None => pages.push((page, tool, AccessRule::clone(&tool.access))),
            }
        }
        let is_orphan = |entry: &ResourceEntry| {
            entry.is_page && !pages.iter().any(|(page, ..)| page.uri == entry.definition.uri)
        };
        let orphans = self.resources.iter().filter(|entry| is_orphan(entry));
        let orphans: Vec<String> = orphans.map(|entry| entry.definition.uri.clone()).collect();
        let mut has_changed = !orphans.is_empty();
        for uri in &orphans {
            self.resources.remove(uri);
        }
        for (page, tool, access) in pages {
            if let Some(known) = self.resource(&page.uri).filter(|known| known.is_page) {
                if known.definition.meta == page.meta()
                    && *known.access == access
                    && known.has_text(&page.html)
                {
                    continue;
                }
                self.resources.remove(&page.uri);
            }
            let mut entry = page.resource(tool, access);
            entry.is_page = true;
            self.resources.add(entry)?;
            has_changed = true;
        }
        Ok(has_changed)
    }

    /// Returns the tools whose definitions name a page that the server does not have.
    pub(crate) fn missing_pages(&self) -> impl Iterator<Item = CatalogError> {
        let by_hand = self.tools.iter().filter(|tool| tool.page.is_none());
        by_hand.filter_map(|tool| {
            let uri = page_uri(&tool.definition)?;
            let reason = self.page_problem(uri)?;
            let name = tool.key().to_owned();
            Some(CatalogError::Invalid { kind: "tool", name, reason: format!("its page {uri:?} {reason}") })
        })
    }

    fn page_problem(&self, uri: &str) -> Option<String> {
        if !uri.starts_with(SCHEME) {
            return Some(format!("must have a URI that begins with `{SCHEME}`"));
        }
        if let Some(resource) = self.resource(uri) {
            let mime_type = resource.definition.mime_type.as_deref().unwrap_or("none");
            let is_page = mime_type == MIME_TYPE;
            return (!is_page).then(|| format!("has the media type {mime_type}; a host expects {MIME_TYPE}"));
        }
        let is_matched = self.templates.iter().any(|template| template.matches(uri).is_some());
        (!is_matched)
            .then(|| "is not a resource of the server; add it, or use `.page(AppPage::new(…))`".to_owned())
    }
}
