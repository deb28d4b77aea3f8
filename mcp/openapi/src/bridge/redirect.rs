//! Redirects of the service: it is matched against the selection where they lead, as if it were called.

use bindpost_mcp_server::{AccessRule, Caller};
use http::Method;

use super::BridgeState;
use super::offered::OfferedOperation;
use crate::operation::ParameterLocation;
use crate::{paging, request};

/// What is said of a place that is none of an operation that is served. One that was left out is as unknown as any other.
const UNKNOWN: &str = "no operation that is served here has this verb and path; the operator has to select the operation that has them";

impl BridgeState {
    /// The path to ask for when the service redirects a call to this verb and path below the base address, or why the
    /// redirect is not followed.
    pub(super) fn redirect_path(
        &self,
        offered: &OfferedOperation,
        sent: &str,
        caller: &Caller,
        method: &Method,
        path: &str,
    ) -> Result<String, String> {
        let refused = |reason: &str| Err(reason.to_owned());
        // The same address with or without a slash at its end.
        if *method == offered.operation.method && without_slash(sent) == without_slash(path) {
            return Ok(path.to_owned());
        }
        let served = || self.offered.iter().filter(|other| other.operation.method == *method);
        let target =
            served().filter(|other| other.path.covers(path)).min_by_key(|other| other.path.variables);
        let Some(target) = target else { return refused(UNKNOWN) };
        // Of two operations that fit, the service may take either.
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
                return Err(format!("the operation there needs the scopes {scopes}"));
            }
        }
        let (called, found) = (offered.hints, target.hints);
        if called.read_only && !found.read_only || !called.destructive && found.destructive {
            return refused("the operation there changes more than the one that was called; call that one");
        }
        if self.confirms && target.asks.is_some() {
            return refused("the user is asked before the operation there is called; call that one");
        }
        // What is hidden in an answer is decided by the operation that was called.
        if self.conceals.is_some() && target.operation.id != offered.operation.id {
            return refused("the answers of the operation there hide something else; call that one");
        }
        let is_fixed_elsewhere = target.operation.parameters.iter().any(|parameter| {
            matches!(parameter.place, ParameterLocation::Header | ParameterLocation::Cookie)
                && target.fixed.contains_key(&parameter.argument)
                && !offered.fixed.contains_key(&parameter.argument)
        });
        if is_fixed_elsewhere {
            return refused("the operation there has parameters that the operator gives; call that one");
        }
        let fixed = request::query(&target.operation, &target.fixed);
        let bare = paging::without_fixed(path, &target.fixed_names);
        Ok(paging::with_fixed(&bare, &format!("?{fixed}"), &target.fixed_names))
    }
}

/// An address without the slash at the end of its path.
fn without_slash(address: &str) -> (&str, Option<&str>) {
    let (path, query) = match address.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (address, None),
    };
    (path.trim_end_matches('/'), query)
}
