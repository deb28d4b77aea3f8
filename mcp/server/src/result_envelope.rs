//! [`ResultEnvelope`]: the members that every result of 2026-07-28 carries besides its own.

use std::time::Duration;

use bindpost_mcp_protocol::jsonrpc::write_json;
use bindpost_mcp_protocol::lifecycle::Implementation;
use bindpost_mcp_protocol::{Meta, Revision, meta};
use serde::Serialize;
use serde_json::{Value, json};

/// The cache members of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CachePolicy {
    /// None: results of this kind have no cache members.
    Unsaid,
    /// As configured with [`ServerBuilder::cache`](crate::ServerBuilder::cache).
    AsSet,
    /// The configured time, but only for this caller, because the result depends on it.
    Private,
    /// The result must not be cached, because it depends on answers of the user.
    Never,
}

/// Who may cache a list or a resource (2026-07-28).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheScope {
    /// Any client or intermediary may cache the result and share it between callers.
    Public,
    /// The result must not be shared with other callers.
    Private,
}

/// The members that every result of 2026-07-28 carries besides its own, encoded once.
#[derive(Debug)]
pub(crate) struct ResultEnvelope {
    server_info: Value,
    /// `"resultType":"complete","_meta":{…}`
    complete: Vec<u8>,
    /// `,"ttlMs":…,"cacheScope":…`
    cache: Vec<u8>,
    private_cache: Vec<u8>,
    scope: CacheScope,
}

/// Values that are cached for [`CachePolicy::AsSet`] and [`CachePolicy::Private`].
#[derive(Debug, Default)]
pub(crate) struct PerPolicy<T> {
    as_set: T,
    private: T,
}

impl<T> PerPolicy<T> {
    pub(crate) fn get(&self, policy: CachePolicy) -> &T {
        match policy {
            CachePolicy::Private => &self.private,
            CachePolicy::Unsaid | CachePolicy::AsSet | CachePolicy::Never => &self.as_set,
        }
    }
}

impl ResultEnvelope {
    pub(crate) fn new(implementation: &Implementation, ttl: Duration, scope: CacheScope) -> ResultEnvelope {
        let server_info = json!(implementation);
        let mut complete = b"\"resultType\":\"complete\",\"_meta\":".to_vec();
        write_json(&mut complete, &json!({meta::SERVER_INFO: server_info}));
        let members = |scope| {
            let scope = match scope {
                CacheScope::Public => "public",
                CacheScope::Private => "private",
            };
            format!(",\"ttlMs\":{},\"cacheScope\":\"{scope}\"", ttl.as_millis()).into_bytes()
        };
        let (cache, private_cache) = (members(scope), members(CacheScope::Private));
        ResultEnvelope { server_info, complete, cache, private_cache, scope }
    }

    /// Returns the policy of a list or a resource. One that depends on its caller is never public.
    pub(crate) fn cache_policy(&self, depends_on_caller: bool) -> CachePolicy {
        match self.scope {
            CacheScope::Public if depends_on_caller => CachePolicy::Private,
            CacheScope::Public | CacheScope::Private => CachePolicy::AsSet,
        }
    }

    /// Appends a complete result in the form of its revision. `result` must serialise to an object without
    /// `_meta`, which is passed as `own_meta`.
    pub(crate) fn write_complete(
        &self,
        out: &mut Vec<u8>,
        revision: Revision,
        result: &impl Serialize,
        own_meta: Option<Meta>,
        cache: CachePolicy,
    ) {
        write_json(out, result);
        if !revision.has_result_types() {
            if let Some(meta) = own_meta {
                reopen(out);
                out.extend_from_slice(b"\"_meta\":");
                write_json(out, &meta);
                out.push(b'}');
            }
            return;
        }
        reopen(out);
        match own_meta {
            None => out.extend_from_slice(&self.complete),
            Some(mut meta) => {
                meta.insert(meta::SERVER_INFO.to_owned(), self.server_info.clone());
                out.extend_from_slice(b"\"resultType\":\"complete\",\"_meta\":");
                write_json(out, &meta);
            }
        }
        match cache {
            CachePolicy::Unsaid => {}
            CachePolicy::AsSet => out.extend_from_slice(&self.cache),
            CachePolicy::Private => out.extend_from_slice(&self.private_cache),
            CachePolicy::Never => out.extend_from_slice(b",\"ttlMs\":0,\"cacheScope\":\"private\""),
        }
        out.push(b'}');
    }

    /// Appends a result whose type is not `complete`.
    pub(crate) fn write_typed(&self, out: &mut Vec<u8>, result_type: &str, result: &impl Serialize) {
        write_json(out, result);
        reopen(out);
        out.extend_from_slice(b"\"resultType\":");
        write_json(out, &result_type);
        out.extend_from_slice(b",\"_meta\":");
        write_json(out, &json!({meta::SERVER_INFO: self.server_info}));
        out.push(b'}');
    }
}

/// Removes the closing brace of the last object, so that more members can be appended.
fn reopen(out: &mut Vec<u8>) {
    out.pop();
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}
