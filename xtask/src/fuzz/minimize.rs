//! Minimizes a finding: removes pieces as long as it fails in the same way.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::session::{FuzzFinding, FuzzSession};

/// The time limit. A smaller input is convenient, but not necessary.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn minimize(session: &FuzzSession, finding: &mut FuzzFinding) -> Result<()> {
    let Some(ending) = session.run_input(&finding.input)? else {
        finding.failure.push_str("    (it does not fail alone: earlier inputs or the time may matter)\n");
        return Ok(());
    };
    let begin = Instant::now();
    let mut fails = |input: &[u8]| {
        if begin.elapsed() > PATIENCE {
            return Ok(None);
        }
        Ok(Some(session.run_input(input)?.is_some_and(|other| other.is_like(&ending))))
    };
    finding.input = smallest(std::mem::take(&mut finding.input), &mut fails)?;
    Ok(std::fs::write(&finding.file, &finding.input)?)
}

/// Removes halves, then quarters, down to single bytes. `fails` returns whether an input still fails, or
/// `None` when the time is over.
fn smallest(mut input: Vec<u8>, fails: &mut dyn FnMut(&[u8]) -> Result<Option<bool>>) -> Result<Vec<u8>> {
    let mut size = input.len().div_ceil(2);
    while size > 0 {
        let (mut at, before) = (0, input.len());
        while at < input.len() {
            let mut shorter = input.clone();
            shorter.drain(at..input.len().min(at + size));
            match fails(&shorter)? {
                Some(true) => input = shorter,
                Some(false) => at += size,
                None => return Ok(input),
            }
        }
        // Pieces that were necessary before may be removable now.
        if size > 1 || input.len() == before {
            size /= 2;
        }
    }
    Ok(input)
}

#[cfg(test)]
mod tests {
    use super::smallest;

    #[test]
    fn only_what_fails_is_left() {
        let mut fails = |input: &[u8]| {
            let at = |byte| input.iter().position(|other| *other == byte);
            Ok(Some(matches!((at(b'{'), at(b'}')), (Some(open), Some(close)) if open < close)))
        };
        assert_eq!(smallest(b"some { braces } around {}".to_vec(), &mut fails).unwrap(), b"{}");
        assert_eq!(smallest(b"{}".to_vec(), &mut fails).unwrap(), b"{}");
    }

    #[test]
    fn it_ends_when_the_time_is_over() {
        let mut answers = [Some(true), None].into_iter();
        let mut fails = |_: &[u8]| Ok(answers.next().flatten());
        assert_eq!(smallest(vec![0; 64], &mut fails).unwrap().len(), 32);
        assert_eq!(smallest(Vec::new(), &mut |_| Ok(Some(true))).unwrap(), b"");
    }
}
