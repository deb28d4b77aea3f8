//! [`Revision`]: a dated version of the protocol, and the features of each.
//!
//! Revisions are compared only in this module. Other code calls a method of the revision instead.
//!
//! Revisions up to 2025-11-25 open a session with a handshake and are called *legacy*. Revisions from
//! 2026-07-28 are stateless and are called *modern*.

use std::fmt;
use std::str::FromStr;

/// A dated revision of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// The first revision: HTTP+SSE, no annotations.
    V2024_11_05,
    /// Adds Streamable HTTP, batches, tool annotations and audio.
    V2025_03_26,
    /// Adds structured content, elicitation and titles. Removes batches.
    V2025_06_18,
    /// Adds icons, URL elicitation and resumable polling. The last revision with a handshake.
    V2025_11_25,
    /// Has no handshake and no session. Every request is self-contained.
    V2026_07_28,
}

use Revision::*;

impl Revision {
    /// All revisions, oldest first.
    pub const ALL: [Revision; 5] = [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
    /// The newest revision with a handshake. `initialize` falls back to it when the client requests an
    /// unknown revision.
    pub const LATEST_WITH_HANDSHAKE: Revision = V2025_11_25;
    /// The revision of an HTTP request without a version header, as defined by 2025-06-18.
    pub const WITHOUT_HEADER: Revision = V2025_03_26;
    /// The revisions without a handshake, as listed by `server/discover`.
    pub const DISCOVERABLE: [Revision; 1] = [V2026_07_28];

    /// Returns the date as written on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            V2024_11_05 => "2024-11-05",
            V2025_03_26 => "2025-03-26",
            V2025_06_18 => "2025-06-18",
            V2025_11_25 => "2025-11-25",
            V2026_07_28 => "2026-07-28",
        }
    }

    /// Parses a date. Returns `None` for an unknown revision.
    pub fn parse(text: &str) -> Option<Revision> {
        Revision::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// Returns the position in [`Revision::ALL`], for tables with one slot per revision.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Selects the revision that `initialize` returns to a client that requests `requested`, out of the
    /// supported revisions `spoken`. It is the requested one if that has a handshake, otherwise the
    /// newest one with a handshake. An unknown revision is never returned.
    pub fn negotiate(requested: &str, spoken: &[Revision]) -> Option<Revision> {
        let with_handshake = || spoken.iter().copied().filter(|revision| revision.has_handshake());
        let same = Revision::parse(requested).filter(|wanted| with_handshake().any(|known| known == *wanted));
        same.or_else(|| with_handshake().max())
    }

    /// Until 2025-11-25 a handshake opens a session. From 2026-07-28 every request is self-contained.
    pub fn has_handshake(self) -> bool {
        self <= V2025_11_25
    }
    /// Batches were added in 2025-03-26 and removed in 2025-06-18.
    pub fn allows_batches(self) -> bool {
        self == V2025_03_26
    }
    /// `Tool.annotations` was added in 2025-03-26.
    pub fn has_tool_annotations(self) -> bool {
        self >= V2025_03_26
    }
    /// Audio content was added in 2025-03-26.
    pub fn has_audio(self) -> bool {
        self >= V2025_03_26
    }
    /// The `message` of `notifications/progress` was added in 2025-03-26.
    pub fn has_progress_message(self) -> bool {
        self >= V2025_03_26
    }
    /// The capability `completions` was added in 2025-03-26. Before that, completion needed no capability.
    pub fn has_completions_capability(self) -> bool {
        self >= V2025_03_26
    }
    /// `title` and `_meta` on definitions were added in 2025-06-18.
    pub fn has_titles(self) -> bool {
        self >= V2025_06_18
    }
    /// `resource_link` content was added in 2025-06-18.
    pub fn has_resource_links(self) -> bool {
        self >= V2025_06_18
    }
    /// `outputSchema` and `structuredContent` were added in 2025-06-18.
    pub fn has_structured_content(self) -> bool {
        self >= V2025_06_18
    }
    /// Until 2025-11-25 structured content must be an object. From 2026-07-28 it can be any JSON.
    pub fn structures_any_json(self) -> bool {
        self >= V2026_07_28
    }
    /// `annotations.lastModified` was added in 2025-06-18.
    pub fn has_last_modified(self) -> bool {
        self >= V2025_06_18
    }
    /// Form elicitation was added in 2025-06-18.
    pub fn has_elicitation(self) -> bool {
        self >= V2025_06_18
    }
    /// Before 2025-11-25 only booleans of a form can have a default.
    pub fn has_form_defaults(self) -> bool {
        self >= V2025_11_25
    }
    /// Titles of choices as `oneOf`, and choices of several values, were added in 2025-11-25.
    pub fn has_multiple_choices(self) -> bool {
        self >= V2025_11_25
    }
    /// URL elicitation was added in 2025-11-25.
    pub fn has_url_elicitation(self) -> bool {
        self >= V2025_11_25
    }
    /// URL elicitation has an `elicitationId` in 2025-11-25 only.
    pub fn has_elicitation_ids(self) -> bool {
        self == V2025_11_25
    }
    /// Icons, and the description and website of an implementation, were added in 2025-11-25.
    pub fn has_icons(self) -> bool {
        self >= V2025_11_25
    }
    /// From 2025-11-25 a stream opens with an event that has an id and empty data. Clients of older
    /// revisions fail to parse the empty data.
    pub fn primes_streams(self) -> bool {
        self == V2025_11_25
    }
    /// From 2026-07-28 every result has a `resultType`, and lists have a cache lifetime.
    pub fn has_result_types(self) -> bool {
        self >= V2026_07_28
    }
    /// From 2026-07-28 a server requests input with an `input_required` result. Before that, it sends a
    /// request to the client.
    pub fn asks_by_result(self) -> bool {
        self >= V2026_07_28
    }
    /// From 2026-07-28 a client that disconnects cancels its request. Before that, a disconnect must
    /// not cancel it.
    pub fn disconnect_cancels(self) -> bool {
        self >= V2026_07_28
    }
    /// The error code for an unknown resource is -32002 until 2025-11-25 and -32602 from 2026-07-28.
    pub fn resource_not_found_code(self) -> i64 {
        if self.has_handshake() { -32002 } else { -32602 }
    }
    /// In 2025-11-25 a client requests a task with the parameter `task`, and tools declare whether they support it. From
    /// 2026-07-28 the server decides (tasks extension).
    pub fn has_task_requests(self) -> bool {
        self == V2025_11_25
    }
    /// Tasks were added in 2025-11-25.
    pub fn has_tasks(self) -> bool {
        self >= V2025_11_25
    }
    /// Capabilities define `extensions` from 2026-07-28. They are sent from 2025-11-25, because clients
    /// with a handshake read them too.
    pub fn has_extensions(self) -> bool {
        self >= V2025_11_25
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Revision {
    type Err = UnknownRevision;
    fn from_str(text: &str) -> Result<Revision, UnknownRevision> {
        Revision::parse(text).ok_or_else(|| UnknownRevision(text.to_owned()))
    }
}

/// The error for a text that is not a known revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRevision(pub String);

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Revision::ALL.map(Revision::as_str).join(", ");
        write!(f, "unknown protocol revision {:?}. Known revisions: {known}", self.0)
    }
}

impl std::error::Error for UnknownRevision {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiation_never_returns_an_unknown_revision() {
        assert_eq!(Revision::negotiate("2025-06-18", &Revision::ALL), Some(V2025_06_18));
        assert_eq!(Revision::negotiate("1999-01-01", &Revision::ALL), Some(V2025_11_25));
        assert_eq!(Revision::negotiate("2026-07-28", &Revision::ALL), Some(V2025_11_25));
        assert_eq!(Revision::negotiate("", &Revision::ALL), Some(V2025_11_25));
        let some = [V2025_03_26, V2025_06_18, V2026_07_28];
        assert_eq!(Revision::negotiate("2025-11-25", &some), Some(V2025_06_18));
        assert_eq!(Revision::negotiate("2025-03-26", &some), Some(V2025_03_26));
        assert_eq!(Revision::negotiate("2025-03-26", &[V2026_07_28]), None);
    }

    #[test]
    fn every_revision_round_trips() {
        for (index, revision) in Revision::ALL.into_iter().enumerate() {
            assert_eq!(revision.to_string().parse(), Ok(revision));
            assert_eq!(revision.index(), index);
        }
    }
}
