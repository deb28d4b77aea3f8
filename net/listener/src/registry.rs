//! The list of open connections, its limits, and the sweep over it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::MissedTickBehavior;

use super::ConnectionLimits;
use super::connection::{ConnectionSignal, ConnectionState, EvictionRank, SweepClock, TickLimits};

pub(super) struct ConnectionRegistry {
    clock: Arc<SweepClock>,
    is_secure: bool,
    patience: TickLimits,
    most: usize,
    most_per_address: Option<usize>,
    open: Mutex<OpenConnections>,
    emptied: Notify,
}

#[derive(Default)]
struct OpenConnections {
    connections: HashMap<u64, Arc<ConnectionState>>,
    /// The number of connections, without those that were ordered to close.
    counted: usize,
    /// The number per network. It is kept only if there is a limit for it.
    per_address: HashMap<IpAddr, usize>,
    next: u64,
    refused: u64,
    gave_way: u64,
}

impl OpenConnections {
    fn count_of(&self, network: IpAddr) -> usize {
        self.per_address.get(&network).copied().unwrap_or_default()
    }

    /// Removes a connection from the counts, once.
    fn uncount(&mut self, connection: &ConnectionState) {
        if !connection.uncount() {
            return;
        }
        self.counted -= 1;
        let Some(network) = connection.address().map(network) else { return };
        if let Some(count) = self.per_address.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.per_address.remove(&network);
            }
        }
    }

    /// Orders the first connection in the closing order to close, of this network or of all. Returns
    /// `false` if all of them have a complete request.
    fn evict_one(&mut self, of: Option<IpAddr>) -> bool {
        let is_of = |connection: &ConnectionState| {
            of.is_none_or(|of| connection.address().is_some_and(|address| network(address) == of))
        };
        let candidates = self.connections.iter().filter(|(_, c)| c.is_counted() && is_of(c));
        let ranked = candidates.filter_map(|(number, c)| Some((c.eviction_rank()?, *number, c)));
        let Some(((kind, _), _, chosen)) = ranked.min_by_key(|(rank, number, _)| (*rank, *number)) else {
            return false;
        };
        let chosen = chosen.clone();
        // A request in transit to an idle connection still gets its response.
        chosen.signal(if kind == EvictionRank::Idle {
            ConnectionSignal::Finish
        } else {
            ConnectionSignal::Cut
        });
        self.uncount(&chosen);
        self.gave_way += 1;
        true
    }
}

/// A connection's slot in the registry. It is released on drop.
pub(super) struct ConnectionSlot {
    registry: Arc<ConnectionRegistry>,
    connection: Arc<ConnectionState>,
    number: u64,
}

impl ConnectionRegistry {
    pub(super) fn new(limits: &ConnectionLimits, is_secure: bool) -> Self {
        let ticks = |limit: Duration| {
            let ticks = limit.as_nanos().div_ceil(limits.sweep.as_nanos().max(1));
            u32::try_from(ticks).unwrap_or(u32::MAX)
        };
        Self {
            clock: Arc::new(SweepClock::new()),
            is_secure,
            patience: TickLimits {
                header_read: ticks(limits.header_read),
                keep_alive_idle: ticks(limits.keep_alive_idle),
                blocked_write: ticks(limits.blocked_write),
            },
            most: limits.connections,
            most_per_address: limits.connections_per_address,
            open: Mutex::default(),
            emptied: Notify::new(),
        }
    }

    /// Returns a slot for a new connection of a client with this address, if it has one. At a limit, a
    /// connection without a complete request is closed. Returns `None` if there is no such connection.
    pub(super) fn admit(self: &Arc<Self>, address: Option<SocketAddr>) -> Option<ConnectionSlot> {
        let mut open = self.lock_open();
        // Without an address there is nothing to distinguish clients by, so only the total is limited.
        let limited = self.most_per_address.zip(address.map(network));
        if limited
            .is_some_and(|(most, network)| open.count_of(network) >= most && !open.evict_one(Some(network)))
            || open.counted >= self.most && !open.evict_one(None)
        {
            open.refused += 1;
            return None;
        }
        open.counted += 1;
        if let Some((_, network)) = limited {
            *open.per_address.entry(network).or_default() += 1;
        }
        let number = open.next;
        open.next += 1;
        let connection = Arc::new(ConnectionState::new(address, self.is_secure, self.clock.clone()));
        open.connections.insert(number, connection.clone());
        Some(ConnectionSlot { registry: self.clone(), connection, number })
    }

    pub(super) fn signal_all(&self, word: ConnectionSignal) {
        for connection in self.lock_open().connections.values() {
            connection.signal(word);
        }
    }

    /// Waits until no connection is open. Supports one waiter at a time.
    pub(super) async fn wait_until_empty(&self) {
        while !self.lock_open().connections.is_empty() {
            self.emptied.notified().await;
        }
    }

    /// Advances the clock and applies the time limits, forever.
    pub(super) async fn sweep(&self, every: Duration) -> Infallible {
        let mut ticks = tokio::time::interval(every.max(Duration::from_millis(1)));
        // After a stall, clients get more time instead of a burst of ticks.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let now = self.clock.tick();
            let mut open = self.lock_open();
            for connection in open.connections.values() {
                connection.enforce_limits(now, &self.patience);
            }
            let refused = std::mem::take(&mut open.refused);
            let gave_way = std::mem::take(&mut open.gave_way);
            if refused + gave_way > 0 {
                tracing::warn!(refused, gave_way, open = open.connections.len(), "too many connections");
            }
        }
    }

    fn lock_open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    pub(super) fn connection(&self) -> &Arc<ConnectionState> {
        &self.connection
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut open = self.registry.lock_open();
        open.connections.remove(&self.number);
        open.uncount(&self.connection);
        if open.connections.is_empty() {
            self.registry.emptied.notify_one();
        }
    }
}

/// Returns the network of an address for the limits: a client with an IPv6 address usually has a
/// whole /64 network.
fn network(address: SocketAddr) -> IpAddr {
    match address.ip().to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)).into(),
        address => address,
    }
}
