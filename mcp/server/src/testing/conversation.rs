//! [`Conversation`]: the parser of the text format.

use std::path::Path;
use std::{fs, io};

use bindpost_mcp_protocol::Revision;
use serde_json::{Map, Value};

/// The names of all transports in the format. The first three are pipes.
const TRANSPORTS: [&str; 4] = ["memory", "stdio", "sse", "http"];
const PIPES: [&str; 3] = ["memory", "stdio", "sse"];

/// Sent and expected messages in the format that [the module](super) describes.
#[derive(Clone, Debug)]
pub struct Conversation {
    pub(super) file: String,
    shows: String,
    revisions: Vec<Revision>,
    transports: Vec<&'static str>,
    server: String,
    pub(super) client: Map<String, Value>,
    pub(super) raw: bool,
    pub(super) lines: Vec<ConversationLine>,
}

/// One step with its filter.
#[derive(Clone, Debug)]
pub(super) struct ConversationLine {
    pub(super) number: usize,
    only: LineFilter,
    pub(super) step: ConversationStep,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConversationStep {
    Send(String),
    Expect(String),
    ExpectInAnyOrder(String),
    ExpectNothing,
    Status(u16),
    EndInput,
}

/// The revisions and transports that a line applies to. An empty list means all.
#[derive(Clone, Debug, Default)]
struct LineFilter {
    revisions: Vec<Revision>,
    transports: Vec<&'static str>,
}

/// Why a text is not a conversation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {reason}")]
pub struct ConversationParseError {
    /// The name of the file.
    pub file: String,
    /// The line number, from 1.
    pub line: usize,
    /// What to change.
    pub reason: String,
}

impl Conversation {
    /// Parses a conversation. `file` is its name in failure reports.
    pub fn parse(file: impl Into<String>, text: &str) -> Result<Conversation, ConversationParseError> {
        let mut conversation = Conversation {
            file: file.into(),
            shows: String::new(),
            revisions: Vec::new(),
            transports: TRANSPORTS.to_vec(),
            server: String::new(),
            client: Map::new(),
            raw: false,
            lines: Vec::new(),
        };
        let file = conversation.file.clone();
        let at = |line: usize, reason: String| ConversationParseError { file: file.clone(), line, reason };
        for (number, line) in join_continuation_lines(text) {
            conversation.parse_line(number, &line).map_err(|reason| at(number, reason))?;
        }
        let missing = match &conversation {
            whole if whole.shows.is_empty() => "write in the first line what it shows: `# …`",
            whole if whole.revisions.is_empty() => "name the revisions: `revisions all`",
            whole if whole.lines.is_empty() => "it has no step: `--> {…}` or `<-- {…}`",
            _ => return Ok(conversation),
        };
        Err(at(1, missing.to_owned()))
    }

    /// Reads every `.txt` file of a folder, in the order of their names.
    pub fn read_all(folder: impl AsRef<Path>) -> io::Result<Vec<Conversation>> {
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder)? {
            paths.push(entry?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
        paths.sort();
        let read = |path: &std::path::PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Conversation::parse(name, &fs::read_to_string(path)?).map_err(io::Error::other)
        };
        paths.iter().map(read).collect()
    }

    /// Returns the name of the file.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// Returns the first line: the behaviour that the conversation shows.
    pub fn shows(&self) -> &str {
        &self.shows
    }

    /// Returns the revisions that the conversation runs for.
    pub fn revisions(&self) -> &[Revision] {
        &self.revisions
    }

    /// Returns whether the conversation runs over this transport.
    pub fn runs_over(&self, transport: &str) -> bool {
        self.transports.contains(&transport)
    }

    /// Returns the name of the server that should answer. Empty means the default server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the steps for one revision and transport.
    pub(super) fn steps(&self, revision: Revision, transport: &str) -> Vec<&ConversationLine> {
        self.lines.iter().filter(|line| line.only.matches(revision, transport)).collect()
    }

    fn parse_line(&mut self, number: usize, line: &str) -> Result<(), String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim();
        let step = match word {
            "#" if number == 1 => {
                self.shows = rest.to_owned();
                return Ok(());
            }
            word if word.starts_with('#') => return Ok(()),
            "-->" => ConversationStep::Send,
            "<--" => ConversationStep::Expect,
            "<~~" => ConversationStep::ExpectInAnyOrder,
            _ if line == "end of input" => {
                self.push(number, LineFilter::default(), ConversationStep::EndInput);
                return Ok(());
            }
            "http" => {
                let (only, status) = LineFilter::split_filter(rest);
                let status = status.parse().map_err(|_| format!("{status:?} is not a status"))?;
                self.push(number, only, ConversationStep::Status(status));
                return Ok(());
            }
            _ if !self.lines.is_empty() => return Err(format!("{word:?} is not a step")),
            _ => return self.parse_directive(word, rest),
        };
        let (only, message) = LineFilter::split_filter(rest);
        let step = match step(message.to_owned()) {
            ConversationStep::Expect(message) if message == "nothing" => ConversationStep::ExpectNothing,
            ConversationStep::Send(message) => ConversationStep::Send(message),
            step => {
                serde_json::from_str::<Value>(message).map_err(|error| format!("invalid JSON: {error}"))?;
                step
            }
        };
        self.push(number, only, step);
        Ok(())
    }

    fn push(&mut self, number: usize, only: LineFilter, step: ConversationStep) {
        self.lines.push(ConversationLine { number, only, step });
    }

    fn parse_directive(&mut self, word: &str, rest: &str) -> Result<(), String> {
        match word {
            "revisions" | "revision" => {
                for word in rest.split_whitespace() {
                    let named = parse_revisions(word).ok_or_else(|| format!("{word:?} names no revision"))?;
                    self.revisions.extend(named);
                }
                self.revisions.sort();
                self.revisions.dedup();
            }
            "transports" => {
                self.transports.clear();
                for word in rest.split_whitespace() {
                    let named =
                        parse_transports(word).ok_or_else(|| format!("{word:?} names no transport"))?;
                    self.transports.extend(named);
                }
            }
            "server" => self.server = rest.to_owned(),
            "client" => {
                self.client =
                    serde_json::from_str(rest).map_err(|error| format!("invalid capabilities: {error}"))?;
            }
            "raw" if rest.is_empty() => self.raw = true,
            _ => return Err(format!("{word:?} is neither a directive nor a step")),
        }
        Ok(())
    }
}

impl LineFilter {
    /// Splits `[legacy http] …` into the filter and the rest. A bracket with unknown words in it is JSON.
    fn split_filter(text: &str) -> (LineFilter, &str) {
        let unfiltered = (LineFilter::default(), text);
        let Some((words, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) else {
            return unfiltered;
        };
        let mut filter = LineFilter::default();
        for word in words.split_whitespace() {
            if let Some(named) = parse_revisions(word) {
                filter.revisions.extend(named);
            } else if let Some(named) = parse_transports(word) {
                filter.transports.extend(named);
            } else {
                return unfiltered;
            }
        }
        if filter.revisions.is_empty() && filter.transports.is_empty() {
            return unfiltered;
        }
        (filter, rest.trim_start())
    }

    fn matches(&self, revision: Revision, transport: &str) -> bool {
        (self.revisions.is_empty() || self.revisions.contains(&revision))
            && (self.transports.is_empty() || self.transports.contains(&transport))
    }
}

/// Returns the revisions that a word names.
fn parse_revisions(word: &str) -> Option<Vec<Revision>> {
    let all = Revision::ALL;
    let some = |filter: &dyn Fn(&Revision) -> bool| Some(all.into_iter().filter(filter).collect());
    match word {
        "all" => return Some(all.to_vec()),
        "legacy" => return some(&|revision| revision.has_handshake()),
        "modern" => return some(&|revision| !revision.has_handshake()),
        _ => {}
    }
    if let Some(oldest) = word.strip_suffix('+') {
        let oldest = Revision::parse(oldest)?;
        return some(&|revision| revision.index() >= oldest.index());
    }
    if let Some(newest) = word.strip_suffix('-') {
        let newest = Revision::parse(newest)?;
        return some(&|revision| revision.index() <= newest.index());
    }
    Revision::parse(word).map(|revision| vec![revision])
}

/// Returns the transports that a word names.
fn parse_transports(word: &str) -> Option<Vec<&'static str>> {
    if word == "pipes" {
        return Some(PIPES.to_vec());
    }
    TRANSPORTS.into_iter().find(|name| *name == word).map(|name| vec![name])
}

/// Returns the lines with their numbers, without empty lines. A line that starts with a space is joined to
/// the line before it.
fn join_continuation_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        match lines.last_mut() {
            Some((_, before)) if line.starts_with([' ', '\t']) && !line.trim().is_empty() => {
                before.push(' ');
                before.push_str(line.trim());
            }
            _ => lines.push((index + 1, line.trim_end().to_owned())),
        }
    }
    lines.retain(|(_, line)| !line.is_empty());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "# Shows how it is done.\nrevisions legacy 2026-07-28\n";

    fn parse(text: &str) -> Result<Conversation, ConversationParseError> {
        Conversation::parse("x.txt", text)
    }

    #[test]
    fn a_line_applies_to_the_revisions_and_transports_of_its_filter() {
        let text = format!(
            "{HEAD}--> [2025-03-26] [1]\n--> [1]\n<-- [2025-06-18+ http]\n  {{\"a\":\n 1}}\n<-- [pipes] nothing\n"
        );
        let conversation = parse(&text).unwrap();
        assert_eq!(conversation.revisions(), Revision::ALL);
        let steps = |revision, transport| -> Vec<(usize, ConversationStep)> {
            let steps = conversation.steps(revision, transport);
            steps.into_iter().map(|line| (line.number, line.step.clone())).collect()
        };
        assert_eq!(
            steps(Revision::V2025_03_26, "http"),
            [(3, ConversationStep::Send("[1]".into())), (4, ConversationStep::Send("[1]".into()))]
        );
        assert_eq!(
            steps(Revision::V2025_11_25, "http"),
            [(4, ConversationStep::Send("[1]".into())), (5, ConversationStep::Expect("{\"a\": 1}".into()))]
        );
        assert_eq!(
            steps(Revision::V2024_11_05, "stdio"),
            [(4, ConversationStep::Send("[1]".into())), (8, ConversationStep::ExpectNothing)]
        );
    }

    #[test]
    fn directives_configure_the_conversation() {
        let text =
            format!("{HEAD}transports memory stdio\nserver paged\nclient {{\"roots\":{{}}}}\nraw\n--> {{\n");
        let conversation = parse(&text).unwrap();
        assert_eq!(conversation.shows(), "Shows how it is done.");
        assert_eq!(conversation.server(), "paged");
        assert!(conversation.raw && conversation.client.contains_key("roots"));
        assert!(conversation.runs_over("stdio") && !conversation.runs_over("http"));
    }

    #[test]
    fn rejects_invalid_conversations() {
        for (text, line, reason) in [
            ("revisions all\n--> {}", 1, "what it shows"),
            ("# x\n--> {}", 1, "name the revisions"),
            ("# x\nrevisions all", 1, "no step"),
            ("# x\nrevisions 2025-01-01\n--> {}", 2, "names no revision"),
            ("# x\nrevisions all\ntransports pigeon\n--> {}", 3, "names no transport"),
            ("# x\nrevisions all\nclient 7\n--> {}", 3, "invalid capabilities"),
            ("# x\nrevisions all\n--> {}\n<-- {", 4, "invalid JSON"),
            ("# x\nrevisions all\n--> {}\nraw", 4, "not a step"),
            ("# x\nrevisions all\n<- {}", 3, "neither a directive nor a step"),
            ("# x\nrevisions all\n--> {}\nhttp four", 4, "not a status"),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}: {error}");
            assert!(error.to_string().contains(reason), "{text}: {error}");
        }
    }
}
