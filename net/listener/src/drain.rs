//! How a listener is told to stop: once to finish what it has begun, twice to end at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// What everyone watches who has to stop in time: the listener, and streams that never end by themselves.
#[derive(Clone, Debug)]
pub struct Drain {
    shared: Arc<DrainState>,
}

/// What starts a [`Drain`].
///
/// Dropping it does not: without a trigger the drain just never begins.
#[derive(Clone, Debug)]
pub struct DrainTrigger {
    shared: Arc<DrainState>,
}

#[derive(Debug)]
struct DrainState {
    stage: AtomicU8,
    changed: Notify,
}

/// Nobody has pulled the trigger.
const SERVING: u8 = 0;
/// Pulled once: what has begun may finish.
const DRAINING: u8 = 1;
/// Pulled twice: nothing is waited for.
const ENDING: u8 = 2;

impl Drain {
    /// A drain that has not begun, and its trigger.
    pub fn new() -> (DrainTrigger, Self) {
        let shared = Arc::new(DrainState { stage: AtomicU8::new(SERVING), changed: Notify::new() });
        (DrainTrigger { shared: shared.clone() }, Self { shared })
    }

    /// Whether the trigger was pulled. One atomic load, so it may be asked for every request.
    pub fn has_begun(&self) -> bool {
        self.shared.stage.load(Ordering::Acquire) >= DRAINING
    }

    /// Waits until the trigger is pulled.
    pub fn begun(&self) -> impl Future<Output = ()> + Send + use<> {
        self.reached(DRAINING)
    }

    /// Waits until the trigger is pulled a second time.
    pub fn ended(&self) -> impl Future<Output = ()> + Send + use<> {
        self.reached(ENDING)
    }

    fn reached(&self, stage: u8) -> impl Future<Output = ()> + Send + use<> {
        let shared = self.shared.clone();
        async move {
            loop {
                // Created before the look at the stage, so that no change falls between the two.
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
    /// The first pull begins the drain, the second ends it; more change nothing.
    pub fn pull(&self) {
        let next = |stage| (stage < ENDING).then_some(stage + 1);
        if self.shared.stage.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok() {
            self.shared.changed.notify_waiters();
        }
    }
}

/// Pulls the trigger at SIGTERM or SIGINT, once more at the second one, and returns.
///
/// From the first poll on, these signals no longer end the process by themselves. Fails if they cannot be
/// watched.
#[cfg(unix)]
pub async fn drain_on_signal(trigger: DrainTrigger) -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};

    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    for message in ["draining; a second signal ends at once", "ending at once"] {
        let name = tokio::select! {
            _ = terminate.recv() => "SIGTERM",
            _ = interrupt.recv() => "SIGINT",
        };
        tracing::info!(signal = name, message);
        trigger.pull();
    }
    Ok(())
}

/// Pulls the trigger at Ctrl-C, once more at the second one, and returns.
#[cfg(not(unix))]
pub async fn drain_on_signal(trigger: DrainTrigger) -> io::Result<()> {
    for message in ["draining; a second Ctrl-C ends at once", "ending at once"] {
        tokio::signal::ctrl_c().await?;
        tracing::info!(message);
        trigger.pull();
    }
    Ok(())
}
