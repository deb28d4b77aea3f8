//! The substitute for `skills.rs` in a program built without the feature `skills`: no server has skills.

use bindpost_mcp_protocol::Params;

use crate::auth::required::RequiredAccess;
use crate::catalog::visible_entries::VisibleEntries;
use crate::catalog::{CatalogError, CatalogSnapshot};
use crate::dispatch::{DispatchOutcome, InboundRequest};
use crate::error::ProtocolError;
use crate::server::ServerState;
use crate::transport::HeaderValues;

/// No server has one.
pub(crate) type SkillIndex = std::convert::Infallible;
pub(crate) type SkillDrafts = NoSkills;

#[derive(Debug, Default)]
pub(crate) struct NoSkills {}

impl NoSkills {
    pub(crate) fn resolve(
        self,
        _page_size: usize,
        _snapshot: &mut CatalogSnapshot,
        _mistakes: &mut Vec<CatalogError>,
    ) -> Option<SkillIndex> {
        None
    }
}

pub(crate) fn required_access(_: &ServerState, _: &VisibleEntries<'_>, _: &Params) -> RequiredAccess {
    RequiredAccess::Opening
}

pub(crate) fn list(inbound: InboundRequest, _: &dyn HeaderValues) -> DispatchOutcome {
    inbound.refuse(&ProtocolError::UnknownMethod(inbound.request.method().to_owned()))
}

pub(crate) fn get(inbound: InboundRequest, headers: &dyn HeaderValues) -> DispatchOutcome {
    list(inbound, headers)
}

pub(crate) fn read_directory(inbound: InboundRequest, headers: &dyn HeaderValues) -> DispatchOutcome {
    list(inbound, headers)
}
