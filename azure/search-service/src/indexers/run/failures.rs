//! Failures of single items: they are recorded, counted, and compared with the limits of the indexer.

use super::pass::{IndexerPass, RunStopReason};
use crate::indexers::parse::{ParseFailure, ParseFailureReason};
use crate::indexers::source::Blob;
use crate::indexers::status::ItemError;

impl IndexerPass<'_> {
    pub(super) fn record_unreadable(
        &mut self,
        blob: &Blob,
        failure: ParseFailure,
    ) -> Result<(), RunStopReason> {
        let place = match failure.line {
            Some(line) => format!("{}, line {line}", blob.name),
            None => blob.name.clone(),
        };
        let excused = failure.reason == ParseFailureReason::Malformed
            || failure.reason == ParseFailureReason::Oversized;
        if excused && self.job.indexer.parsing.fail_on_unprocessable == Some(false) {
            self.run.add_processed(1);
            let message = format!("{place}: {}", failure.message);
            self.run.add_warning(
                Some(self.source.address(&blob.name)),
                message,
                Some(self.extraction()),
                Some(place),
            );
            return Ok(());
        }
        let status = if failure.reason == ParseFailureReason::Unreadable { 503 } else { 400 };
        let message = format!("{place}: {}", failure.message);
        self.fail_item(self.source.address(&blob.name), message, status, self.extraction(), Some(place))
    }

    /// Records an item that failed before it became an action.
    pub(super) fn fail_item(
        &mut self,
        key: String,
        message: String,
        status: u16,
        name: String,
        details: Option<String>,
    ) -> Result<(), RunStopReason> {
        self.run.add_processed(1);
        if let Some(open) = self.open.last_mut() {
            open.failed = true;
        }
        match self.record_failure(key, message, status, name, details) {
            None => Ok(()),
            Some(message) => {
                // Items that were read before the failure are still indexed.
                self.flush()?;
                Err(RunStopReason::Message(message))
            }
        }
    }

    pub(super) fn record_failure(
        &mut self,
        key: String,
        message: String,
        status_code: u16,
        name: String,
        details: Option<String>,
    ) -> Option<String> {
        let shown = message.clone();
        let error = ItemError {
            key: Some(key),
            error_message: message,
            status_code,
            name: Some(name),
            details,
            documentation_link: None,
        };
        let total = self.run.add_failure(error);
        self.failed_in_batch += 1;
        let indexer = &self.job.indexer;
        let over = |most: Option<u64>, count: u64| most.filter(|most| count > *most);
        if let Some(most) = over(indexer.max_failed_items, total) {
            return Some(format!(
                "The run ended because {total} items failed and 'maxFailedItems' is {most}. {shown}"
            ));
        }
        let most = over(indexer.max_failed_items_per_batch, self.failed_in_batch)?;
        let count = self.failed_in_batch;
        Some(format!(
            "The run ended because {count} items of one batch failed and 'maxFailedItemsPerBatch' is {most}. {shown}"
        ))
    }

    pub(super) fn warn(&self, blob: &Blob, message: String, name: String) {
        self.run.add_warning(
            Some(self.source.address(&blob.name)),
            message,
            Some(name),
            Some(blob.name.clone()),
        );
    }

    pub(super) fn extraction(&self) -> String {
        format!("DocumentExtraction.{}.{}", self.job.source.kind, self.job.source.name)
    }
}
