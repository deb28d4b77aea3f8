//! [`Revision`]: a dated version of the protocol, and what each one has.
//!
//! This is the only place where revisions are compared. Elsewhere, ask the revision a question.

use std::fmt;
use std::str::FromStr;

/// A dated revision of the Model Context Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// The first one: HTTP+SSE, no annotations.
    V2024_11_05,
    /// Streamable HTTP, batches, tool annotations, audio.
    V2025_03_26,
    /// Structured content, elicitation, titles; batches left.
    V2025_06_18,
    /// Icons, URL elicitation, resumable polling. The last one with a handshake.
    V2025_11_25,
    /// No handshake and no session: every request stands alone.
    V2026_07_28,
}

use Revision::*;

impl Revision {
    /// Every revision, oldest first.
    pub const ALL: [Revision; 5] = [V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28];
    /// The newest revision that opens with a handshake: what an unknown one is negotiated down to.
    pub const LATEST_WITH_HANDSHAKE: Revision = V2025_11_25;
    /// What an HTTP request without a version header means, as 2025-06-18 defined it.
    pub const WITHOUT_HEADER: Revision = V2025_03_26;
    /// The revisions that stand without a handshake, as `server/discover` lists them.
    pub const DISCOVERABLE: [Revision; 1] = [V2026_07_28];

    /// The date as the wire spells it.
    pub const fn as_str(self) -> &'static str {
        match self {
            V2024_11_05 => "2024-11-05",
            V2025_03_26 => "2025-03-26",
            V2025_06_18 => "2025-06-18",
            V2025_11_25 => "2025-11-25",
            V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision a text names, if we know it.
    pub fn parse(text: &str) -> Option<Revision> {
        Revision::ALL.into_iter().find(|revision| revision.as_str() == text)
    }

    /// The position in [`Revision::ALL`], for tables with one slot per revision.
    pub const fn index(self) -> usize {
        self as usize
    }

    /// What `initialize` answers to a client that asks for `requested`, out of those that are spoken: the
    /// same if it has a handshake, else the newest one that has. An unknown version is never echoed.
    pub fn negotiate(requested: &str, spoken: &[Revision]) -> Option<Revision> {
        let with_handshake = || spoken.iter().copied().filter(|revision| revision.has_handshake());
        let same = Revision::parse(requested).filter(|wanted| with_handshake().any(|known| known == *wanted));
        same.or_else(|| with_handshake().max())
    }

    /// Until 2025-11-25 a handshake opens a session; from 2026-07-28 every request stands alone.
    pub fn has_handshake(self) -> bool {
        self <= V2025_11_25
    }
    /// Batches came with 2025-03-26 and left with 2025-06-18.
    pub fn allows_batches(self) -> bool {
        self == V2025_03_26
    }
    /// `Tool.annotations` came with 2025-03-26.
    pub fn has_tool_annotations(self) -> bool {
        self >= V2025_03_26
    }
    /// Audio content came with 2025-03-26.
    pub fn has_audio(self) -> bool {
        self >= V2025_03_26
    }
    /// `notifications/progress` got its `message` with 2025-03-26.
    pub fn has_progress_message(self) -> bool {
        self >= V2025_03_26
    }
    /// The capability `completions` came with 2025-03-26; before, completion was always on.
    pub fn has_completions_capability(self) -> bool {
        self >= V2025_03_26
    }
    /// `title` and `_meta` on definitions came with 2025-06-18.
    pub fn has_titles(self) -> bool {
        self >= V2025_06_18
    }
    /// `resource_link` content came with 2025-06-18.
    pub fn has_resource_links(self) -> bool {
        self >= V2025_06_18
    }
    /// `outputSchema` and `structuredContent` came with 2025-06-18.
    pub fn has_structured_content(self) -> bool {
        self >= V2025_06_18
    }
    /// Until 2025-11-25 structured content is an object; from 2026-07-28 any JSON.
    pub fn structures_any_json(self) -> bool {
        self >= V2026_07_28
    }
    /// `annotations.lastModified` came with 2025-06-18.
    pub fn has_last_modified(self) -> bool {
        self >= V2025_06_18
    }
    /// Elicitation by form came with 2025-06-18.
    pub fn has_elicitation(self) -> bool {
        self >= V2025_06_18
    }
    /// Elicitation by URL came with 2025-11-25.
    pub fn has_url_elicitation(self) -> bool {
        self >= V2025_11_25
    }
    /// URL elicitation carries an `elicitationId` in 2025-11-25 only.
    pub fn has_elicitation_ids(self) -> bool {
        self == V2025_11_25
    }
    /// Icons, and an implementation's description and website, came with 2025-11-25.
    pub fn has_icons(self) -> bool {
        self >= V2025_11_25
    }
    /// A stream opens with an empty event that carries an id since 2025-11-25. Clients of older
    /// revisions try to parse the empty data.
    pub fn primes_streams(self) -> bool {
        self == V2025_11_25
    }
    /// From 2026-07-28 every result says its `resultType`, and lists say how long they hold.
    pub fn has_result_types(self) -> bool {
        self >= V2026_07_28
    }
    /// From 2026-07-28 a server asks by an `input_required` result, before by a request to the client.
    pub fn asks_by_result(self) -> bool {
        self >= V2026_07_28
    }
    /// From 2026-07-28 a closed connection cancels the request; before, it must not.
    pub fn disconnect_cancels(self) -> bool {
        self >= V2026_07_28
    }
    /// An unknown resource was -32002 until 2025-11-25 and is -32602 since.
    pub fn resource_not_found_code(self) -> i64 {
        if self.has_handshake() { -32002 } else { -32602 }
    }
    /// Capabilities carry `extensions` from 2026-07-28; clients with a handshake read them there too.
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

/// A text that names no revision we know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownRevision(pub String);

impl fmt::Display for UnknownRevision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let known = Revision::ALL.map(Revision::as_str).join(", ");
        write!(f, "unknown protocol revision {:?}; known: {known}", self.0)
    }
}

impl std::error::Error for UnknownRevision {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negotiates_and_never_echoes_an_unknown_version() {
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
