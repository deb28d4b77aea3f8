//! The memory of one process during a soak test, and the check that it does not grow in the second half.

use anyhow::{Context, Result};
use serde_json::Value;

use crate::bench::median;

/// The maximum growth of the last quarter over the third: a ratio, and some MiB in addition.
const GROWTH: f64 = 0.05;
const SLACK: f64 = 4.0;
/// The number of medians of one series that are printed.
const SHOWN: usize = 12;

/// The resident memory in MiB, one sample per second.
pub(super) struct MemorySeries {
    process: String,
    samples: Vec<f64>,
}

impl MemorySeries {
    pub(super) fn parse(said: &Value) -> Result<Self> {
        let process = said["process"].as_str().context("a series without a name")?.to_owned();
        let samples = said["samples"].as_array().context("a series without samples")?;
        let samples = samples.iter().filter_map(|sample| Some(sample[1].as_f64()? / 1024.0));
        Ok(Self { process, samples: samples.collect() })
    }

    /// Returns the medians of equal parts of the time, and of the last two quarters.
    pub(super) fn print(&self) {
        let part = self.samples.len().div_ceil(SHOWN).max(1);
        let medians = self.samples.chunks(part).map(|part| format!("{:.0}", median(part.to_vec())));
        let (third, last) = self.quarters();
        println!(
            "  {:<8} {}  third quarter {third:.1}, last quarter {last:.1}",
            self.process,
            medians.collect::<Vec<_>>().join(" ")
        );
    }

    fn quarters(&self) -> (f64, f64) {
        let quarter = |number: usize| self.samples.len() * number / 4;
        let of = |from: usize, to: usize| median(self.samples.get(from..to).unwrap_or_default().to_vec());
        (of(quarter(2), quarter(3)), of(quarter(3), quarter(4)))
    }

    /// Returns an error message if memory grows.
    pub(super) fn complaint(&self) -> Option<String> {
        let (third, last) = self.quarters();
        let most = third * (1.0 + GROWTH) + SLACK;
        // Without samples the medians are NaN, which is also a failure.
        if last <= most {
            return None;
        }
        let process = &self.process;
        Some(format!(
            "{process} grows from {third:.1} MiB in the third quarter to {last:.1}, {most:.1} at most"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::MemorySeries;

    fn series(samples: &[f64]) -> MemorySeries {
        MemorySeries { process: "server".to_owned(), samples: samples.to_vec() }
    }

    #[test]
    fn memory_that_grows_in_the_first_half_is_flat_afterwards() {
        assert_eq!(series(&[10.0, 80.0, 100.0, 100.0, 101.0, 99.0, 108.0, 107.0]).complaint(), None);
    }

    #[test]
    fn memory_that_grows_in_the_second_half_is_told() {
        let complaint = series(&[10.0, 80.0, 100.0, 100.0, 101.0, 99.0, 110.0, 111.0]).complaint();
        let expected = "server grows from 100.0 MiB in the third quarter to 110.5, 109.0 at most";
        assert_eq!(complaint.as_deref(), Some(expected));
    }

    #[test]
    fn no_samples_are_no_flat_memory() {
        assert!(series(&[]).complaint().is_some());
    }
}
