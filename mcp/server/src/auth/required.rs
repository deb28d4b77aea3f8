//! [`RequiredAccess`]: the access that a message requires of its caller, and the comparison with the rights
//! that the caller has.
//!
//! Every transport with authentication authorizes a body by [`Server::refuse_body`] before it dispatches it.

use std::fmt;
use std::sync::Arc;

use bindpost_mcp_protocol::{DecodeError, DecodedBody, Message, Request, RequestId};

use super::{AccessRule, Caller, CallerKind};
use crate::dispatch::find_method;
use crate::server::Server;

/// The code of the JSON-RPC error for a request that its caller may not send.
pub const UNAUTHORIZED: i64 = -32001;

/// The access that a message requires of its caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequiredAccess {
    /// The message opens or continues a conversation, or lists entries. An unauthenticated caller is accepted if
    /// the server admits anonymous callers.
    Opening,
    /// Any authenticated caller.
    Known,
    /// A caller that the rules of all these entries permit.
    Entries(Vec<Arc<AccessRule>>),
}

impl RequiredAccess {
    pub(crate) fn from_rule(access: Option<Arc<AccessRule>>) -> RequiredAccess {
        // An unknown name has the default rule, so that an unauthenticated caller cannot probe
        // which names exist.
        access.map_or(RequiredAccess::Known, |access| RequiredAccess::Entries(vec![access]))
    }

    /// Returns whether this caller has the access. `admits_anonymous` returns whether unauthenticated
    /// callers may connect.
    pub fn permits(&self, caller: &Caller, admits_anonymous: impl FnOnce() -> bool) -> bool {
        match self {
            RequiredAccess::Opening => caller.is_authenticated() || admits_anonymous(),
            RequiredAccess::Known => caller.is_authenticated(),
            RequiredAccess::Entries(entries) => entries.iter().all(|access| access.permits(caller)),
        }
    }
}

/// A body that its caller may not send.
#[derive(Debug)]
pub struct RefusedBody<'a> {
    /// The id of the request, if the body is one message with an id.
    pub id: Option<&'a RequestId>,
    /// The access that the caller does not have.
    pub required: Vec<RequiredAccess>,
}

impl RefusedBody<'_> {
    /// Returns the rights that the caller lacks.
    pub fn lacking_access(&self, caller: &Caller) -> LackingAccess<'_> {
        let entries = self.required.iter().flat_map(|required| match required {
            RequiredAccess::Entries(entries) => entries.as_slice(),
            RequiredAccess::Opening | RequiredAccess::Known => &[],
        });
        let (mut scopes, mut roles) = (Vec::new(), Vec::new());
        for lacking in entries.map(|access| access.lacking_rights(caller)) {
            add_new(&mut scopes, lacking.scopes);
            add_new(&mut roles, lacking.roles);
        }
        LackingAccess { kind: caller.kind(), scopes, roles }
    }
}

/// The rights that the caller of a refused body lacks for all of its messages. Displayed, it is the text of
/// the error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LackingAccess<'a> {
    /// The kind of the caller. An anonymous caller has to authenticate first.
    pub kind: CallerKind,
    /// The scopes, each of them once.
    pub scopes: Vec<&'a str>,
    /// The roles, each of them once.
    pub roles: Vec<&'a str>,
}

impl fmt::Display for LackingAccess<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.kind {
            CallerKind::Anonymous => return f.write_str("authentication is required"),
            CallerKind::Application => "application",
            CallerKind::User | CallerKind::Other => "user",
        };
        let needed = [name_rights("scope", &self.scopes), name_rights("role", &self.roles)];
        let needed = needed.into_iter().flatten().collect::<Vec<_>>().join(" and ");
        if !self.roles.is_empty() {
            write!(f, "this needs {needed} of the {whose}")
        } else if !needed.is_empty() {
            write!(f, "this needs {needed}")
        } else if self.kind == CallerKind::Application {
            f.write_str("this is for users and not for applications that act for themselves")
        } else {
            f.write_str("this is for applications that act for themselves and not for users")
        }
    }
}

/// Returns a phrase like `the scopes a b`, or `None` without rights.
fn name_rights(what: &str, rights: &[&str]) -> Option<String> {
    match rights {
        [] => None,
        [right] => Some(format!("the {what} {right}")),
        rights => Some(format!("the {what}s {}", rights.join(" "))),
    }
}

fn add_new<'a>(all: &mut Vec<&'a str>, more: &'a [String]) {
    for right in more {
        if !all.contains(&right.as_str()) {
            all.push(right);
        }
    }
}

/// For [transports](crate::transport).
impl Server {
    /// Returns the access that a request requires of its caller. It does not depend on the revision. An entry
    /// that this caller does not see requires what an unknown one requires.
    pub fn required_access(&self, request: &Request, caller: &Caller) -> RequiredAccess {
        match find_method(request.method()) {
            Some(line) => (line.demands)(self.shared(), &self.catalog().visible_to(caller), request.params()),
            None => RequiredAccess::Opening,
        }
    }

    /// Returns the access that the caller lacks to send a body, or `None` if it may send the body. A batch is
    /// refused as a whole if the caller may not send one of its messages. `admits_anonymous` returns whether
    /// unauthenticated callers may connect.
    pub fn refuse_body<'a>(
        &self,
        caller: &Caller,
        body: &'a Result<DecodedBody, DecodeError>,
        admits_anonymous: impl Fn() -> bool,
    ) -> Option<RefusedBody<'a>> {
        match body {
            Ok(DecodedBody::One(message)) => {
                let required = self.required_by(message, caller);
                (!required.permits(caller, &admits_anonymous))
                    .then(|| RefusedBody { id: request_id(message), required: vec![required] })
            }
            Ok(DecodedBody::Batch(batch)) => {
                let required = batch.iter().map(|message| match message {
                    Ok(message) => self.required_by(message, caller),
                    Err(_) => RequiredAccess::Opening,
                });
                let refused: Vec<_> =
                    required.filter(|required| !required.permits(caller, &admits_anonymous)).collect();
                (!refused.is_empty()).then_some(RefusedBody { id: None, required: refused })
            }
            Err(_) if RequiredAccess::Opening.permits(caller, &admits_anonymous) => None,
            Err(error) => Some(RefusedBody { id: error.id.as_ref(), required: Vec::new() }),
        }
    }

    fn required_by(&self, message: &Message, caller: &Caller) -> RequiredAccess {
        match message {
            Message::Request(request) => self.required_access(request, caller),
            Message::Notification(_) | Message::Response(_) => RequiredAccess::Opening,
        }
    }

    /// Returns whether at least one entry permits unauthenticated callers.
    pub fn has_anonymous_entries(&self) -> bool {
        self.shared().catalog.snapshot().has_anonymous()
    }

    /// Returns every scope that some entry requires, sorted.
    pub fn scopes(&self) -> Vec<String> {
        self.shared().catalog.snapshot().scopes()
    }
}

fn request_id(message: &Message) -> Option<&RequestId> {
    match message {
        Message::Request(request) => Some(&request.id),
        Message::Notification(_) | Message::Response(_) => None,
    }
}
