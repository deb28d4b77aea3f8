//! Groups errors and warnings of indexer runs by cause.

use std::collections::HashSet;

use super::checks::{FindingSeverity, IndexerFinding};
use crate::tools::indexer_runs::status::{ExecutionIssue, IndexerStatus};

/// Number of runs to examine. Older failures may be fixed by now.
const RUNS: usize = 5;
const MAX_CAUSES: usize = 20;
const MAX_KEYS: usize = 20;
const LONGEST_EXAMPLE: usize = 400;

/// Failures with the same cause.
pub(super) struct FailureCause {
    /// The message, with the parts that differ between items replaced.
    pattern: String,
    example: String,
    /// The step of the run in which it happened.
    place: Option<String>,
    count: usize,
    pub(super) keys: Vec<String>,
    /// Positions within the items, such as rows of a file.
    details: Vec<String>,
    pub(super) is_error: bool,
    since: FailureState,
}

/// State of an item after it failed, the most certain state first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FailureState {
    /// It failed in the last run.
    Failing,
    /// No run has read anything since, so it is still not indexed.
    Unread,
    /// Later runs read items without a failure, but do not report whether it was among them.
    Unsure,
}

/// Returns the causes of the last runs: errors first, then by frequency.
pub(super) fn group_by_cause(status: &IndexerStatus) -> Vec<FailureCause> {
    let mut causes: Vec<FailureCause> = Vec::new();
    let mut seen = HashSet::new();
    let mut items_seen = HashSet::new();
    let newest_first = status.last().into_iter().chain(status.history());
    let runs = newest_first.filter(|run| seen.insert(run.fingerprint()));
    let (mut since, mut looked_at) = (FailureState::Failing, 0);
    for run in runs {
        // After a reset every item is read again.
        if run.status() == "reset" || looked_at == RUNS {
            break;
        }
        let errors = run.errors().map(|item| (item, true));
        let items = errors.chain(run.warnings().map(|item| (item, false)));
        for (item, is_error) in items {
            // An item that fails in every run is counted once. Items without a key cannot be distinguished.
            let is_new = items_seen.insert((item.key(), item.message, is_error));
            // An item with a warning was indexed, so a later run without the warning resolves it.
            if since == FailureState::Failing || (is_new && (is_error || since == FailureState::Unread)) {
                add(&mut causes, item, is_error, since);
            }
        }
        let is_fine = run.status() == "success" && run.failed() == 0;
        // A successful run of reset documents has indexed the failed ones.
        if is_fine && run.processed() > 0 && run.is_retry() {
            break;
        }
        if is_fine && run.processed() > 0 {
            since = FailureState::Unsure;
        }
        since = since.max(FailureState::Unread);
        // Scheduled runs without work do not count towards the limit.
        looked_at += usize::from(run.processed() + run.failed() > 0 || !is_fine);
    }
    causes.sort_by_key(|cause| (!cause.is_error, cause.since, std::cmp::Reverse(cause.count)));
    causes.truncate(MAX_CAUSES);
    causes
}

fn add(causes: &mut Vec<FailureCause>, item: ExecutionIssue<'_>, is_error: bool, since: FailureState) {
    let pattern = pattern(item.message, item.key());
    let known = causes.iter_mut().find(|cause| cause.is_error == is_error && cause.pattern == pattern);
    let cause = match known {
        Some(cause) => cause,
        None => {
            causes.push(FailureCause {
                pattern,
                example: item.message.chars().take(LONGEST_EXAMPLE).collect(),
                place: item.name().map(str::to_owned),
                count: 0,
                keys: Vec::new(),
                details: Vec::new(),
                is_error,
                since,
            });
            match causes.last_mut() {
                Some(cause) => cause,
                None => return,
            }
        }
    };
    cause.count += 1;
    if let Some(key) = item.key()
        && cause.keys.len() < MAX_KEYS
        && !cause.keys.iter().any(|known| known == key)
    {
        cause.keys.push(key.to_owned());
    }
    if let Some(details) = item.details()
        && cause.details.len() < MAX_KEYS
        && !cause.details.iter().any(|known| known == details)
    {
        cause.details.push(details.chars().take(LONGEST_EXAMPLE).collect());
    }
}

impl FailureCause {
    pub(super) fn finding(&self) -> IndexerFinding {
        let weight = match (self.is_error, self.since) {
            (true, FailureState::Failing | FailureState::Unread) => FindingSeverity::Error,
            _ => FindingSeverity::Warning,
        };
        let earlier = match self.since {
            FailureState::Failing => "",
            FailureState::Unread => {
                " [in an earlier run, and not read again since: fix it, then use `retry`]"
            }
            FailureState::Unsure => {
                " [in an earlier run; later runs succeeded, but do not report whether they read it: check whether it \
                 is indexed, or use `retry`]"
            }
        };
        let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
        let place = self.place.as_deref().map(|place| format!(" in {place}")).unwrap_or_default();
        let finding = IndexerFinding::new(
            weight,
            format!("{} ({times}{place})", self.pattern),
            format!("{}{earlier}", self.example),
            fix(&self.example),
        )
        .with("count", self.count)
        .with("keys", self.keys.clone());
        match self.details.is_empty() {
            true => finding,
            false => finding.with("details", self.details.clone()),
        }
    }
}

/// Returns the fix for a message, by words that services use in it.
fn fix(message: &str) -> String {
    let lower = message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let fix = if has(&["document key", "invalid key", "key cannot be missing"]) {
        "map a member that every item has to the key field, with the mapping function base64Encode if it may contain \
         other characters than letters, digits, _, - and ="
    } else if has(&[
        "cannot become field",
        "cannot be converted",
        "does not match the expected type",
        "data type",
    ]) {
        "change the type of the field to fit the data (see planIndexChange), or map another member to it"
    } else if has(&["too large", "exceeds", "longer than", "32766"]) {
        "make the field not filterable, sortable and facetable if it contains long text, or shorten the content in the source"
    } else if has(&["unsupported content type", "no text could be", "content type"]) {
        "exclude such files with excludedFileNameExtensions, or set failOnUnsupportedContentType to false"
    } else if has(&["credential", "unauthorized", "forbidden", "access denied", "permission"]) {
        "give the service access to the data source: check its connection string, key or managed identity"
    } else if has(&["timeout", "timed out", "too many requests", "throttl", "unavailable"]) {
        "run it again later, or with a smaller batchSize or a schedule"
    } else if has(&["json", "parse", "malformed", "invalid character", "expected"]) {
        "correct the file, or set failOnUnprocessableDocument to false to skip such files; check parsingMode"
    } else if has(&["skill"]) {
        "check the inputs of the skill in the skillset, and its service"
    } else {
        "correct the named items in the source, then use `retry`"
    };
    fix.to_owned()
}

/// Replaces the key, quoted values and numbers in a message, so that messages of the same cause are equal.
fn pattern(message: &str, key: Option<&str>) -> String {
    let mut message = message.to_owned();
    // The key may be a URL while the message contains only the end of it.
    let names = key.into_iter().flat_map(|key| [key, key.rsplit('/').next().unwrap_or(key)]);
    for name in names.filter(|name| name.len() > 1) {
        message = message.replace(name, "{key}");
    }
    let mut out = String::with_capacity(message.len());
    let mut rest = message.chars().peekable();
    let mut before = ' ';
    while let Some(character) = rest.next() {
        let opens = matches!(character, '\'' | '"' | '`') && !before.is_alphanumeric();
        if opens && rest.clone().any(|later| later == character) {
            out.push_str("'…'");
            let _ = rest.by_ref().take_while(|later| *later != character).count();
            before = character;
            continue;
        }
        if character.is_ascii_digit() {
            while rest
                .next_if(|later| later.is_ascii_digit() || matches!(later, '.' | ',' | ':' | '-'))
                .is_some()
            {}
            out.push('#');
            before = '#';
            continue;
        }
        out.push(character);
        before = character;
    }
    // The text before a colon at the beginning is often the name of the item.
    let named = out.split_once(": ").filter(|(name, _)| !name.contains(' ') && name.contains('.'));
    let out = named.map(|(_, why)| format!("{{item}}: {why}")).unwrap_or(out);
    out.chars().take(LONGEST_EXAMPLE).collect()
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn messages_of_the_same_cause_have_the_same_pattern() {
        let one = pattern("The value 'a b' of field \"price\" at line 12 is no number; it's 3.5 off", None);
        let other = pattern("The value 'c' of field \"cost\" at line 7 is no number; it's 900 off", None);
        assert_eq!(one, other);
        assert_eq!(one, "The value '…' of field '…' at line # is no number; it's # off");
        let keyed = pattern("doc-17: cannot be read, doc-17", Some("doc-17"));
        assert_eq!(keyed, "{key}: cannot be read, {key}");
        let blob =
            |name: &str| pattern(&format!("{name}, line 1: bad"), Some(&format!("http://local/c/{name}")));
        assert_eq!(blob("a.json"), blob("b.json"));
        assert_eq!(pattern("a.json, line 3: bad", None), pattern("a.json, line 9: bad", None));
        assert_eq!(pattern("a.json: bad", None), pattern("b.json: bad", None));
    }

    #[test]
    fn an_open_quote_and_an_apostrophe_are_text() {
        assert_eq!(pattern("don't 'go", None), "don't 'go");
        assert_eq!(pattern("", None), "");
    }
}
