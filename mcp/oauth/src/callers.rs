//! [`RecentCallers`]: which key signed the token of a caller, so that the caller's sessions can be
//! ended when the issuer revokes the key.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::key::Fingerprint;

/// The maximum number of callers. The oldest are removed. Their keys are then no longer checked.
const CAPACITY: usize = 10_000;

/// The most recent callers.
#[derive(Debug, Default)]
pub(crate) struct RecentCallers {
    kept: Mutex<CallerEntries>,
}

#[derive(Debug, Default)]
struct CallerEntries {
    callers: HashMap<String, IssuerKeyId>,
    /// The ids of `callers`, oldest first.
    order: VecDeque<String>,
}

/// The key that signed the last token of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IssuerKeyId {
    /// The index of the issuer.
    pub(crate) issuer: usize,
    pub(crate) key: Fingerprint,
}

impl RecentCallers {
    pub(crate) fn record(&self, caller: &str, vouched: IssuerKeyId) {
        let mut kept = self.kept();
        if let Some(known) = kept.callers.get_mut(caller) {
            *known = vouched;
            return;
        }
        kept.callers.insert(caller.to_owned(), vouched);
        kept.order.push_back(caller.to_owned());
        if kept.order.len() > CAPACITY
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.callers.remove(&oldest);
        }
    }

    pub(crate) fn find(&self, caller: &str) -> Option<IssuerKeyId> {
        self.kept().callers.get(caller).copied()
    }

    fn kept(&self) -> MutexGuard<'_, CallerEntries> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_callers_are_removed() {
        let callers = RecentCallers::default();
        let vouched = |issuer| IssuerKeyId { issuer, key: [0; 32] };
        for number in 0..=CAPACITY {
            callers.record(&number.to_string(), vouched(1));
            callers.record(&number.to_string(), vouched(2));
        }
        assert_eq!(callers.find("0"), None);
        assert_eq!(callers.find("1"), Some(vouched(2)));
        let kept = callers.kept();
        assert_eq!((kept.callers.len(), kept.order.len()), (CAPACITY, CAPACITY));
    }
}
