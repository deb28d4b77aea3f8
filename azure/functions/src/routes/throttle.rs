//! [`RequestThrottle`]: how many requests run at the same time, and how many may wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The maximum number of requests that run or wait, unless `host.json` sets one.
const MOST_REQUESTS: usize = 10_000;

/// Limits the requests of an app. Requests beyond the first limit wait, and beyond the second one they are rejected.
#[derive(Debug)]
pub(crate) struct RequestThrottle {
    running: Option<Arc<Semaphore>>,
    outstanding: Arc<AtomicUsize>,
    most: usize,
}

/// The place of one request, until it is dropped.
#[derive(Debug)]
pub(crate) struct RequestPlace {
    outstanding: Arc<AtomicUsize>,
    _running: Option<OwnedSemaphorePermit>,
}

impl RequestThrottle {
    pub(crate) fn new(concurrent: Option<usize>, outstanding: Option<usize>) -> RequestThrottle {
        let running = concurrent.map(|most| Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))));
        RequestThrottle { running, outstanding: Arc::default(), most: outstanding.unwrap_or(MOST_REQUESTS) }
    }

    /// Waits until a request may run. Returns `None` if too many run or wait.
    pub(crate) async fn enter(&self) -> Option<RequestPlace> {
        let before = self.outstanding.fetch_add(1, Ordering::Relaxed);
        // From here on, dropping the place counts the request out, also if this future is dropped while it waits.
        let mut place = RequestPlace { outstanding: self.outstanding.clone(), _running: None };
        if before >= self.most {
            return None;
        }
        if let Some(running) = &self.running {
            place._running = Some(running.clone().acquire_owned().await.ok()?);
        }
        Some(place)
    }
}

impl Drop for RequestPlace {
    fn drop(&mut self) {
        self.outstanding.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn poll(
        entering: std::pin::Pin<&mut impl Future<Output = Option<RequestPlace>>>,
    ) -> Poll<Option<RequestPlace>> {
        entering.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn requests_wait_for_a_place_and_are_rejected_beyond_the_limit() {
        let throttle = RequestThrottle::new(Some(1), Some(2));
        let Poll::Ready(Some(first)) = poll(pin!(throttle.enter())) else { panic!("the first request runs") };
        let mut second = Box::pin(throttle.enter());
        assert!(poll(second.as_mut()).is_pending(), "the second request waits");
        assert!(matches!(poll(pin!(throttle.enter())), Poll::Ready(None)), "the third one is rejected");
        drop(first);
        assert!(matches!(poll(second.as_mut()), Poll::Ready(Some(_))));
    }

    #[test]
    fn a_request_whose_client_disconnects_while_it_waits_gives_up_its_place() {
        let throttle = RequestThrottle::new(Some(1), Some(2));
        let Poll::Ready(Some(_running)) = poll(pin!(throttle.enter())) else {
            panic!("the first request runs")
        };
        let mut waiting = Box::pin(throttle.enter());
        assert!(poll(waiting.as_mut()).is_pending());
        drop(waiting);
        assert!(poll(pin!(throttle.enter())).is_pending(), "there is room for another one");
    }
}
