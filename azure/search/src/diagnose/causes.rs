//! Errors and warnings of runs, grouped by what causes them.

use std::collections::HashSet;

use super::checks::{FindingSeverity, IndexerFinding};
use crate::indexer_runs::status::{ExecutionIssue, IndexerStatus};

/// As many runs as are looked at; what was wrong long ago may be right by now.
const RUNS: usize = 5;
const MOST_CAUSES: usize = 20;
const MOST_KEYS: usize = 20;
const LONGEST_EXAMPLE: usize = 400;

/// What happened to one item or to many.
pub(super) struct FailureCause {
    /// The message without what differs between items.
    pattern: String,
    example: String,
    /// The part of the run that it happened in.
    place: Option<String>,
    count: usize,
    pub(super) keys: Vec<String>,
    /// Where in the items, such as the rows of a file.
    details: Vec<String>,
    pub(super) is_error: bool,
    since: FailureState,
}

/// What is known of an item after it failed; the better known comes first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FailureState {
    /// It failed in the last run.
    Failing,
    /// No run read anything since, so it is still not indexed.
    Unread,
    /// Later runs read items without a failure and do not say whether it was among them.
    Unsure,
}

/// The causes in the last runs, errors first, the most frequent first.
pub(super) fn group_by_cause(status: &IndexerStatus) -> Vec<FailureCause> {
    let mut causes: Vec<FailureCause> = Vec::new();
    let mut seen = HashSet::new();
    let mut items_seen = HashSet::new();
    let newest_first = status.last().into_iter().chain(status.history());
    let runs = newest_first.filter(|run| seen.insert(run.fingerprint()));
    let (mut since, mut looked_at) = (FailureState::Failing, 0);
    for run in runs {
        // Everything was read again after it, or will be by the next run.
        if run.status() == "reset" || looked_at == RUNS {
            break;
        }
        let errors = run.errors().map(|item| (item, true));
        let items = errors.chain(run.warnings().map(|item| (item, false)));
        for (item, is_error) in items {
            // An item that fails in every run is one item. Without a key nothing tells it from others.
            let is_new = items_seen.insert((item.key(), item.message, is_error));
            // What was only warned of was indexed all the same; a later run without a warning is the end of it.
            if since == FailureState::Failing || (is_new && (is_error || since == FailureState::Unread)) {
                add(&mut causes, item, is_error, since);
            }
        }
        let is_fine = run.status() == "success" && run.failed() == 0;
        // A run of what was reset took what had failed, and all went well.
        if is_fine && run.processed() > 0 && run.is_retry() {
            break;
        }
        if is_fine && run.processed() > 0 {
            since = FailureState::Unsure;
        }
        since = since.max(FailureState::Unread);
        // A schedule makes many runs that find nothing to do; they push no failure out of sight.
        looked_at += usize::from(run.processed() + run.failed() > 0 || !is_fine);
    }
    causes.sort_by_key(|cause| (!cause.is_error, cause.since, std::cmp::Reverse(cause.count)));
    causes.truncate(MOST_CAUSES);
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
        && cause.keys.len() < MOST_KEYS
        && !cause.keys.iter().any(|known| known == key)
    {
        cause.keys.push(key.to_owned());
    }
    if let Some(details) = item.details()
        && cause.details.len() < MOST_KEYS
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
                " [in an earlier run, and not read again since: use `retry` once it is mended]"
            }
            FailureState::Unsure => {
                " [in an earlier run; later runs went well, but do not say whether they read it: look whether it is \
                 there, or use `retry`]"
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

/// What to do about a message, by the words that services use.
fn fix(message: &str) -> String {
    let lower = message.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let fix = if has(&["document key", "invalid key", "key cannot be missing"]) {
        "map something that every item has to the key field, with the mapping function base64Encode when it may hold \
         other characters than letters, digits, _, - and ="
    } else if has(&[
        "cannot become field",
        "cannot be converted",
        "does not match the expected type",
        "data type",
    ]) {
        "make the type of the field fit the data (planIndexChange tells what that takes), or map another member to it"
    } else if has(&["too large", "exceeds", "longer than", "32766"]) {
        "make the field not filterable, sortable and facetable if it holds long text, or cut the content in the source"
    } else if has(&["unsupported content type", "no text could be", "content type"]) {
        "leave such files out with excludedFileNameExtensions, or set failOnUnsupportedContentType to false"
    } else if has(&["credential", "unauthorized", "forbidden", "access denied", "permission"]) {
        "give the service access to the data source: check its connection string, key or managed identity"
    } else if has(&["timeout", "timed out", "too many requests", "throttl", "unavailable"]) {
        "run it again later, or with a smaller batchSize or a schedule"
    } else if has(&["json", "parse", "malformed", "invalid character", "expected"]) {
        "correct the file, or set failOnUnprocessableDocument to false to pass over such files; check parsingMode"
    } else if has(&["skill"]) {
        "check the inputs of the skill in the skillset, and its service"
    } else {
        "correct the named items in the source, then use `retry`"
    };
    fix.to_owned()
}

/// A message with its key, its quoted values and its numbers replaced, so that the same trouble looks the same.
fn pattern(message: &str, key: Option<&str>) -> String {
    let mut message = message.to_owned();
    // The key may be an address, and the message name only the end of it.
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
    // What stands before a colon at the beginning is often the name of the item.
    let named = out.split_once(": ").filter(|(name, _)| !name.contains(' ') && name.contains('.'));
    let out = named.map(|(_, why)| format!("{{item}}: {why}")).unwrap_or(out);
    out.chars().take(LONGEST_EXAMPLE).collect()
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn the_same_trouble_looks_the_same() {
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
