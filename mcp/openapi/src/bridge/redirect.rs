//! Redirects of the service. The target is checked against the selection, as if it were called.

use bindpost_mcp_server::{AccessRule, Caller};
use http::Method;

use super::BridgeState;
use super::call::RequestTarget;
use super::offered::OfferedOperation;
use crate::operation::ParameterLocation;
use crate::{paging, request};

/// The error for a target that is not a served operation. An operation that is not selected is reported
/// as unknown too.
const UNKNOWN: &str =
    "no served operation has this method and path; the operator has to select such an operation";

impl BridgeState {
    /// Returns the path to request when the service redirects a call to this method and path below the
    /// base address. Returns an error if the redirect is not followed.
    pub(super) fn redirect_path(
        &self,
        offered: &OfferedOperation,
        sent: RequestTarget<'_>,
        caller: &Caller,
        method: &Method,
        path: &str,
    ) -> Result<String, String> {
        let refused = |reason: &str| Err(reason.to_owned());
        // The target differs only in its trailing slash.
        if method == sent.method && without_slash(sent.path) == without_slash(path) {
            return Ok(path.to_owned());
        }
        let served = || self.offered.iter().filter(|other| other.operation.method == *method);
        let target =
            served().filter(|other| other.path.covers(path)).min_by_key(|other| other.path.variables);
        let Some(target) = target else { return refused(UNKNOWN) };
        // If two operations match, the service may route the request to either.
        let fewest = target.path.variables;
        let is_left_out = self.left_out.iter().any(|(left_out, pattern)| {
            left_out == method && pattern.variables <= fewest && pattern.may_cover(path)
        });
        if is_left_out {
            return refused(UNKNOWN);
        }
        if self.enforces_scopes {
            let lacking = served().find(|other| {
                let may_be = other.path.variables <= fewest && other.path.may_cover(path);
                may_be && !AccessRule::default().with_scopes(&other.operation.scopes).permits(caller)
            });
            if let Some(lacking) = lacking {
                let scopes = lacking.operation.scopes.join(", ");
                return Err(format!("its target requires the scopes {scopes}"));
            }
        }
        let (called, found) = (offered.hints, target.hints);
        if called.read_only && !found.read_only || !called.destructive && found.destructive {
            return refused("its target changes more than the called operation; call the target directly");
        }
        if self.confirms && target.asks.is_some() {
            return refused("its target requires confirmation by the user; call the target directly");
        }
        // The called operation decides which members of a response are hidden.
        if self.conceals.is_some() && target.operation.id != offered.operation.id {
            return refused("its target hides other members of the response; call the target directly");
        }
        let is_fixed_elsewhere = target.operation.parameters.iter().any(|parameter| {
            matches!(parameter.place, ParameterLocation::Header | ParameterLocation::Cookie)
                && target.fixed.contains_key(&parameter.argument)
                && !offered.fixed.contains_key(&parameter.argument)
        });
        if is_fixed_elsewhere {
            return refused("its target has parameters that the operator fixed; call the target directly");
        }
        let fixed = request::query(&target.operation, &target.fixed);
        let bare = paging::without_fixed(path, &target.fixed_names);
        Ok(paging::with_fixed(&bare, &format!("?{fixed}"), &target.fixed_names))
    }
}

/// Returns an address without the trailing slash of its path.
fn without_slash(address: &str) -> (&str, Option<&str>) {
    let (path, query) = match address.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (address, None),
    };
    (path.trim_end_matches('/'), query)
}
