//! Graceful shutdown: the first trigger lets running requests finish, the second one ends immediately.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// The signal to stop, for the listener and for streams that never end by themselves.
#[derive(Clone, Debug)]
pub struct Drain {
    shared: Arc<DrainState>,
}

/// The trigger of a [`Drain`].
///
/// Dropping it does not start the drain. Without a trigger a drain never begins.
#[derive(Clone, Debug)]
pub struct DrainTrigger {
    shared: Arc<DrainState>,
}

#[derive(Debug)]
struct DrainState {
    stage: AtomicU8,
    changed: Notify,
}

/// The drain has not begun.
const SERVING: u8 = 0;
/// Triggered once: running requests may finish.
const DRAINING: u8 = 1;
/// Triggered twice: end immediately.
const ENDING: u8 = 2;

impl Drain {
    /// Returns a drain that has not begun, and its trigger.
    pub fn new() -> (DrainTrigger, Self) {
        let shared = Arc::new(DrainState { stage: AtomicU8::new(SERVING), changed: Notify::new() });
        (DrainTrigger { shared: shared.clone() }, Self { shared })
    }

    /// Returns whether the drain has begun. It is one atomic load, so it can be called for every request.
    pub fn has_begun(&self) -> bool {
        self.shared.stage.load(Ordering::Acquire) >= DRAINING
    }

    /// Waits until the drain begins.
    pub fn begun(&self) -> impl Future<Output = ()> + Send + use<> {
        self.reached(DRAINING)
    }

    /// Waits until the drain is triggered a second time.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.reached(ENDING)
    }

    fn reached(&self, stage: u8) -> impl Future<Output = ()> + Send + use<> {
        let shared = self.shared.clone();
        async move {
            loop {
                // Created before the stage is read, so that no change is missed.
                let changed = shared.changed.notified();
                if shared.stage.load(Ordering::Acquire) >= stage {
                    return;
                }
                changed.await;
            }
        }
    }
}

impl DrainTrigger {
    /// Triggers the drain. The first call begins it, the second ends it, and further calls have no effect.
    pub fn pull(&self) {
        let next = |stage| (stage < ENDING).then_some(stage + 1);
        if self.shared.stage.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok() {
            self.shared.changed.notify_waiters();
        }
    }
}

/// Triggers the drain at SIGTERM or SIGINT, again at the second signal, and returns.
///
/// From the first poll on, these signals no longer end the process by themselves. Fails if no signal
/// handler can be installed.
#[cfg(unix)]
pub async fn drain_on_signal(trigger: DrainTrigger) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    for message in ["draining; a second signal ends immediately", "ending immediately"] {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, message);
        trigger.pull();
    }
    Ok(())
}

/// Triggers the drain at Ctrl-C, again at the second one, and returns.
#[cfg(not(unix))]
pub async fn drain_on_signal(trigger: DrainTrigger) -> io::Result<()> {
    for message in ["draining; a second Ctrl-C ends immediately", "ending immediately"] {
        tokio::signal::ctrl_c().await?;
        tracing::info!(message);
        trigger.pull();
    }
    Ok(())
}
