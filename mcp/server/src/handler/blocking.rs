//! Progress and log messages of functions that block, such as `#[tool(blocking)]`.
//!
//! They cannot `.await`. When the client reads slowly, these methods block their thread until it has read.

use bindpost_mcp_protocol::lifecycle::LogLevel;
use serde_json::Value;

use crate::handler::context::Context;
use crate::handler::progress::ProgressMeter;

/// The items of a loop in a function that blocks. Created by [`Context::track_blocking`].
#[derive(Debug)]
pub struct BlockingTrackedItems<'a, I> {
    items: I,
    meter: ProgressMeter<'a>,
}

impl Context {
    /// Like [`progress`](Context::progress), for functions that block. In an async function, use `progress`.
    ///
    /// ```
    /// use bindpost_mcp_server::Context;
    ///
    /// // With the attribute: #[tool(blocking)]
    /// fn index(parts: Vec<String>, context: Context) -> usize {
    ///     for (done, part) in parts.iter().enumerate() {
    ///         context.progress_blocking(done as f64, Some(parts.len() as f64), Some(part));
    ///         // A long computation.
    ///     }
    ///     parts.len()
    /// }
    /// ```
    pub fn progress_blocking(&self, progress: f64, total: Option<f64>, message: Option<&str>) {
        if let Some(message) = self.progress_message(progress, total, message) {
            self.call().send_blocking(message);
        }
    }

    /// Reports the progress of a loop like [`track`](Context::track), for functions that block.
    ///
    /// ```
    /// use bindpost_mcp_server::Context;
    ///
    /// fn sum(numbers: Vec<u64>, context: Context) -> u64 {
    ///     context.track_blocking(&numbers).sum()
    /// }
    /// ```
    pub fn track_blocking<I: IntoIterator>(&self, items: I) -> BlockingTrackedItems<'_, I::IntoIter> {
        let items = items.into_iter();
        BlockingTrackedItems { meter: ProgressMeter::new(self, items.size_hint()), items }
    }

    /// Like [`log`](Context::log), for functions that block.
    pub fn log_blocking(&self, level: LogLevel, logger: Option<&str>, data: impl Into<Value>) {
        if let Some(message) = self.log_message(level, logger, data) {
            self.call().send_blocking(message);
        }
    }

    /// Like [`debug`](Context::debug), for functions that block.
    pub fn debug_blocking(&self, data: impl Into<Value>) {
        self.log_blocking(LogLevel::Debug, None, data);
    }

    /// Like [`info`](Context::info), for functions that block.
    pub fn info_blocking(&self, data: impl Into<Value>) {
        self.log_blocking(LogLevel::Info, None, data);
    }

    /// Like [`warning`](Context::warning), for functions that block.
    pub fn warning_blocking(&self, data: impl Into<Value>) {
        self.log_blocking(LogLevel::Warning, None, data);
    }

    /// Like [`error`](Context::error), for functions that block.
    pub fn error_blocking(&self, data: impl Into<Value>) {
        self.log_blocking(LogLevel::Error, None, data);
    }
}

impl<I: Iterator> Iterator for BlockingTrackedItems<'_, I> {
    type Item = I::Item;

    /// Returns the next item, after reporting that those before are done.
    fn next(&mut self) -> Option<I::Item> {
        let item = self.items.next();
        self.meter.step_blocking(item.is_some());
        item
    }
}
