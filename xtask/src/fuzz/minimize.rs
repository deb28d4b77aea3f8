//! Makes a finding smaller: pieces are taken away as long as it fails in the same way.

use std::time::{Duration, Instant};

use anyhow::Result;

use super::session::{FuzzFinding, FuzzSession};

/// How long it may take; a smaller input is convenient, not needed.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) fn minimize(session: &FuzzSession, finding: &mut FuzzFinding) -> Result<()> {
    let Some(ending) = session.run_input(&finding.input)? else {
        finding.failure.push_str("    (it does not fail by itself: earlier inputs or the time may matter)\n");
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

/// Takes away halves, then quarters, down to single bytes. `fails` says whether an input still fails, or nothing when
/// the time is over.
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
        // What could not go before may go now.
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
