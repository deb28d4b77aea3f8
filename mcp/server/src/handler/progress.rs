//! Progress of a loop: [`Context::track`] and [`Context::track_stream`].

use std::pin::Pin;
use std::time::{Duration, Instant};

use futures_util::{Stream, StreamExt as _};

use crate::handler::context::Context;

/// The minimum time between two reports, so that a fast loop does not flood the client.
const REPORT_INTERVAL: Duration = Duration::from_millis(100);

/// The items of a loop. Asking for the next one reports that those before are done.
///
/// The first and the last report are always sent, others at most ten times a second.
#[derive(Debug)]
pub struct TrackedItems<'a, I> {
    items: I,
    meter: ProgressMeter<'a>,
}

/// The items of a stream, with the reports of [`TrackedItems`].
#[derive(Debug)]
pub struct TrackedStream<'a, S> {
    items: Pin<Box<S>>,
    meter: ProgressMeter<'a>,
}

impl Context {
    /// Reports the progress of a loop to the client, if it asked for progress. The total is known if the
    /// iterator knows its length.
    ///
    /// ```
    /// use bindpost_mcp_server::Context;
    ///
    /// async fn import(context: Context) -> String {
    ///     let mut bytes = 0;
    ///     let mut files = context.track(["a.csv", "b.csv", "c.csv"]);
    ///     while let Some(file) = files.next().await {
    ///         bytes += file.len();
    ///     }
    ///     format!("imported {bytes} bytes")
    /// }
    /// ```
    pub fn track<I: IntoIterator>(&self, items: I) -> TrackedItems<'_, I::IntoIter> {
        let items = items.into_iter();
        TrackedItems { meter: ProgressMeter::new(self, items.size_hint()), items }
    }

    /// Reports the progress of a loop over a stream, like [`Context::track`].
    pub fn track_stream<S: Stream>(&self, items: S) -> TrackedStream<'_, S> {
        TrackedStream { meter: ProgressMeter::new(self, items.size_hint()), items: Box::pin(items) }
    }
}

impl<I: Iterator> TrackedItems<'_, I> {
    /// Returns the next item, after reporting that those before are done.
    pub async fn next(&mut self) -> Option<I::Item> {
        let item = self.items.next();
        self.meter.step(item.is_some()).await;
        item
    }
}

impl<S: Stream> TrackedStream<'_, S> {
    /// Returns the next item, after reporting that those before are done.
    pub async fn next(&mut self) -> Option<S::Item> {
        // Reports before it waits, because the next item may take long.
        self.meter.report(false).await;
        let item = self.items.next().await;
        self.meter.step(item.is_some()).await;
        item
    }
}

/// Counts the items of a loop and reports them.
#[derive(Debug)]
pub(crate) struct ProgressMeter<'a> {
    context: &'a Context,
    begun: usize,
    total: Option<usize>,
    reported: Option<(usize, Instant)>,
}

impl<'a> ProgressMeter<'a> {
    pub(crate) fn new(context: &'a Context, (least, most): (usize, Option<usize>)) -> ProgressMeter<'a> {
        ProgressMeter { context, begun: 0, total: most.filter(|most| *most == least), reported: None }
    }

    /// Goes on to the next item, or to the end.
    async fn step(&mut self, has_next: bool) {
        self.report(!has_next).await;
        self.begun += usize::from(has_next);
    }

    /// Goes on like [`step`](ProgressMeter::step), on a thread that may block.
    pub(crate) fn step_blocking(&mut self, has_next: bool) {
        if let Some((done, total)) = self.due_report(!has_next) {
            self.context.progress_blocking(done, total, None);
        }
        self.begun += usize::from(has_next);
    }

    /// Reports that all items that were begun are done.
    async fn report(&mut self, is_last: bool) {
        if let Some((done, total)) = self.due_report(is_last) {
            self.context.progress(done, total, None).await;
        }
    }

    /// Returns the progress and the total if they should be reported now.
    fn due_report(&mut self, is_last: bool) -> Option<(f64, Option<f64>)> {
        let is_due = match self.reported {
            None => true,
            Some((done, at)) => done < self.begun && (is_last || at.elapsed() >= REPORT_INTERVAL),
        };
        if self.begun == 0 || !is_due {
            return None;
        }
        self.reported = Some((self.begun, Instant::now()));
        Some((self.begun as f64, self.total.map(|total| total as f64)))
    }
}
