//! [`CallQuota`]: how many operations each caller may run in a period.
//!
//! A quota is a hook. It keeps one instant for each caller, or for each caller and entry: the time at which the
//! whole quota is available again (the generic cell rate algorithm). An operation moves that time forward by
//! its share of the period, and is rejected if it would move further away than one period.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::{NextHandler, Operation, OperationEntry, OperationResult};
use crate::auth::Caller;
use crate::catalog::entry_view::EntryView;
use crate::error::{ProtocolError, ToolError};
#[cfg(doc)]
use crate::server::ServerBuilder;

/// The maximum number of callers, or of callers with an entry, that one quota counts at once.
const MAX_COUNTED: usize = 65_536;

/// How many tool calls, reads and prompts each caller may run in a period. See [`ServerBuilder::quota`].
///
/// A caller that has used nothing may run all of them at once. After that, each becomes available again after
/// its share of the period: with 60 a minute, one each second.
///
/// ```
/// use std::time::Duration;
/// use bindpost_mcp_server::CallQuota;
///
/// // Each caller may use the whole server 600 times a minute, but send only five mails an hour.
/// let all = CallQuota::new(600, Duration::from_secs(60));
/// let mails = CallQuota::new(5, Duration::from_secs(3600)).entries(["send_mail"]);
/// // Each entry is counted on its own, and administrators have no limit.
/// let each = CallQuota::new(100, Duration::from_secs(60))
///     .each_entry()
///     .applies_if(|caller, _| !caller.has_role("Administrator"));
/// ```
#[derive(Clone)]
pub struct CallQuota {
    calls: u32,
    period: Duration,
    entries: Option<Vec<String>>,
    each_entry: bool,
    applies: Option<Arc<AppliesTo>>,
}

type AppliesTo = dyn Fn(&Caller, EntryView<'_>) -> bool + Send + Sync;

impl std::fmt::Debug for CallQuota {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CallQuota { calls, period, entries, each_entry, .. } = self;
        f.debug_struct("CallQuota")
            .field("calls", calls)
            .field("period", period)
            .field("entries", entries)
            .field("each_entry", each_entry)
            .finish_non_exhaustive()
    }
}

impl CallQuota {
    /// Returns a quota of `calls` in each `period`, for every caller and all entries together.
    pub fn new(calls: u32, period: Duration) -> CallQuota {
        CallQuota { calls, period, entries: None, each_entry: false, applies: None }
    }

    /// Limits the quota to the entries with these names: of tools and prompts, URIs of resources, and URI
    /// templates.
    pub fn entries(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> CallQuota {
        self.entries.get_or_insert_default().extend(names.into_iter().map(Into::into));
        self
    }

    /// Counts each entry on its own instead of all entries together.
    pub fn each_entry(mut self) -> CallQuota {
        self.each_entry = true;
        self
    }

    /// Limits the quota to the callers and entries for which this function returns `true`.
    pub fn applies_if(
        mut self,
        applies: impl Fn(&Caller, EntryView<'_>) -> bool + Send + Sync + 'static,
    ) -> CallQuota {
        self.applies = Some(Arc::new(applies));
        self
    }

    /// Returns the names that no entry has, because a misspelled name would switch the quota off.
    pub(crate) fn unknown_names<'a>(
        &'a self,
        is_known: impl Fn(&str) -> bool + 'a,
    ) -> impl Iterator<Item = &'a str> {
        self.entries.iter().flatten().map(String::as_str).filter(move |name| !is_known(name))
    }

    fn covers(&self, operation: &Operation) -> bool {
        let entry = operation.entry();
        let is_named =
            self.entries.as_ref().is_none_or(|names| names.iter().any(|name| name == entry.name()));
        is_named && self.applies.as_ref().is_none_or(|applies| applies(operation.caller(), entry))
    }

    /// Returns the time after which one operation is available again.
    fn share(&self) -> Duration {
        self.period / self.calls.max(1)
    }
}

/// A quota and what was used of it.
pub(crate) struct QuotaCounter {
    quota: CallQuota,
    /// When the whole quota is available again. Callers that have used nothing are not in the map.
    full_at: Mutex<HashMap<QuotaKey, Instant>>,
}

/// What a quota counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct QuotaKey {
    caller: Caller,
    /// The address of an anonymous caller.
    address: Option<IpAddr>,
    /// The kind and name of the entry, if each one is counted on its own.
    entry: Option<(&'static str, String)>,
}

impl QuotaCounter {
    pub(crate) fn new(quota: CallQuota) -> QuotaCounter {
        QuotaCounter { quota, full_at: Mutex::default() }
    }

    /// The hook.
    pub(crate) async fn limit(
        self: Arc<Self>,
        operation: Operation,
        next: NextHandler,
    ) -> Result<OperationResult, ToolError> {
        if !self.quota.covers(&operation) {
            return next.run(operation).await;
        }
        // The request that asked the client was charged. Its retry with the answers is the same operation, and a
        // state can be used once.
        if !operation.context().call().input_requests().is_resumed
            && let Err(wait) = self.charge(&self.key_of(&operation), Instant::now())
        {
            return Err(self.rejection(&operation, wait));
        }
        next.run(operation).await
    }

    fn key_of(&self, operation: &Operation) -> QuotaKey {
        let (caller, entry) = (operation.caller(), operation.entry());
        let http = operation.context().http().filter(|_| !caller.is_authenticated());
        QuotaKey {
            caller: caller.clone(),
            address: http.and_then(|http| http.peer).map(|peer| peer.ip()),
            entry: self.quota.each_entry.then(|| (entry.kind(), entry.name().to_owned())),
        }
    }

    /// Charges one operation. The error is the time after which it is available.
    fn charge(&self, key: &QuotaKey, now: Instant) -> Result<(), Duration> {
        let (share, period) = (self.quota.share(), self.quota.period);
        if self.quota.calls == 0 {
            return Err(period);
        }
        let mut all = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let used = all.get(key).map(|full_at| full_at.saturating_duration_since(now)).unwrap_or_default();
        let used = used.saturating_add(share);
        if let Some(wait) = used.checked_sub(period).filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        // A time that the clock cannot represent is centuries away.
        let full_at = now.checked_add(used).unwrap_or_else(|| now + Duration::from_secs(u32::MAX.into()));
        if all.len() >= MAX_COUNTED && !all.contains_key(key) {
            forget_some(&mut all, now);
        }
        all.insert(key.clone(), full_at);
        Ok(())
    }

    fn rejection(&self, operation: &Operation, wait: Duration) -> ToolError {
        let CallQuota { calls, period, .. } = self.quota;
        let retry_after_seconds = u32::try_from(wait.as_millis().div_ceil(1000)).unwrap_or(u32::MAX);
        tracing::info!(entry = operation.entry().name(), retry_after_seconds, "quota exceeded");
        match operation.entry {
            OperationEntry::Tool(_) => {
                let (period, plural) = (period.as_secs_f64(), if calls == 1 { "" } else { "s" });
                ToolError::new(format!(
                    "the quota of {calls} call{plural} in {period} s is used up; try again in \
                     {retry_after_seconds} s"
                ))
            }
            _ => ProtocolError::Busy { retry_after_seconds }.into(),
        }
    }
}

/// Makes room for a new caller. Callers whose quota is available again are forgotten. If there are none, those
/// who used least are.
fn forget_some(all: &mut HashMap<QuotaKey, Instant>, now: Instant) {
    all.retain(|_, full_at| *full_at > now);
    if all.len() >= MAX_COUNTED {
        let mut times: Vec<Instant> = all.values().copied().collect();
        let (_, median, _) = times.select_nth_unstable(MAX_COUNTED / 2);
        let median = *median;
        all.retain(|_, full_at| *full_at > median);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(caller: usize) -> QuotaKey {
        QuotaKey { caller: Caller::new(caller.to_string()), address: None, entry: None }
    }

    #[test]
    fn a_quota_fills_up_evenly() {
        let counter = QuotaCounter::new(CallQuota::new(3, Duration::from_secs(6)));
        let start = Instant::now();
        let charge = |after: u64| counter.charge(&key(1), start + Duration::from_secs(after));
        for _ in 0..3 {
            assert_eq!(charge(0), Ok(()));
        }
        assert_eq!(charge(0), Err(Duration::from_secs(2)));
        assert_eq!(charge(1), Err(Duration::from_secs(1)));
        assert_eq!(charge(2), Ok(()));
        assert_eq!(charge(3), Err(Duration::from_secs(1)));
        for _ in 0..3 {
            assert_eq!(charge(100), Ok(()));
        }
        assert!(charge(100).is_err());
    }

    #[test]
    fn extreme_quotas_are_possible() {
        for (calls, period) in [(1, Duration::MAX), (u32::MAX, Duration::from_nanos(1)), (1, Duration::ZERO)]
        {
            let counter = QuotaCounter::new(CallQuota::new(calls, period));
            assert_eq!(counter.charge(&key(1), Instant::now()), Ok(()), "{calls} in {period:?}");
            let _ = counter.charge(&key(1), Instant::now());
        }
        let none = QuotaCounter::new(CallQuota::new(0, Duration::from_secs(1)));
        assert!(none.charge(&key(1), Instant::now()).is_err());
    }

    #[test]
    fn memory_is_bounded() {
        let counter = QuotaCounter::new(CallQuota::new(2, Duration::from_secs(60)));
        let now = Instant::now();
        for _ in 0..2 {
            assert_eq!(counter.charge(&key(0), now), Ok(()));
        }
        for caller in 1..=2 * MAX_COUNTED {
            assert_eq!(counter.charge(&key(caller), now), Ok(()));
        }
        assert!(counter.full_at.lock().unwrap_or_else(PoisonError::into_inner).len() <= MAX_COUNTED);
        // A caller that used its whole quota is remembered.
        assert!(counter.charge(&key(0), now).is_err());
    }
}
