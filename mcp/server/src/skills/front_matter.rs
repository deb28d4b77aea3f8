//! [`FrontMatter`]: the YAML header of a `SKILL.md`, as the JSON object that clients compare it with.

use serde_json::{Map, Value};

use super::MANIFEST;

/// The header of a `SKILL.md`. It has a valid name and a description.
#[derive(Debug)]
pub(super) struct FrontMatter {
    pub(super) members: Map<String, Value>,
    pub(super) name: String,
    pub(super) description: String,
}

/// The Agent Skills specification limits descriptions to this number of characters.
const MAX_DESCRIPTION: usize = 1024;
/// Clients are told that these keys of `metadata` are for extensions of the protocol.
const RESERVED: &str = "io.modelcontextprotocol/";

impl FrontMatter {
    /// Parses and checks the header. `folder` is the last segment of the skill's path. Returns all mistakes.
    pub(super) fn parse(content: &[u8], folder: &str) -> Result<FrontMatter, Vec<String>> {
        let Ok(text) = std::str::from_utf8(content) else {
            return Err(vec![format!("{MANIFEST} is not UTF-8; save it as UTF-8")]);
        };
        let members = parse_members(text).map_err(|mistake| vec![mistake])?;
        let mut mistakes = Vec::new();
        let mut text = |member: &str, example: &str| match members.get(member) {
            Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
            Some(Value::String(_)) | None => {
                mistakes.push(format!("the header has no `{member}`; add a line like `{member}: {example}`"));
                String::new()
            }
            Some(other) => {
                mistakes.push(format!("`{member}` is {other} and not a text; put it in quotes"));
                String::new()
            }
        };
        let name = text("name", folder);
        let description = text("description", "How to refund an order");
        if !name.is_empty() {
            mistakes.extend(name_mistake(&name));
            if name != folder {
                mistakes.push(format!(
                    "the name in the header is {name:?}, but the folder is {folder:?}; rename one of them"
                ));
            }
        }
        let length = description.chars().count();
        if length > MAX_DESCRIPTION {
            mistakes.push(format!(
                "the description has {length} characters; shorten it to {MAX_DESCRIPTION} or fewer"
            ));
        }
        if let Some(Value::Object(metadata)) = members.get("metadata") {
            mistakes.extend(metadata.keys().filter(|key| key.starts_with(RESERVED)).map(|key| {
                format!("the key {key:?} of `metadata` is reserved for extensions of MCP; rename it")
            }));
        }
        if mistakes.is_empty() { Ok(FrontMatter { members, name, description }) } else { Err(mistakes) }
    }
}

/// Returns what is wrong with the name of a skill.
fn name_mistake(name: &str) -> Option<String> {
    let fits = name.len() <= 64
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        && !name.starts_with('-')
        && !name.ends_with('-')
        && !name.contains("--");
    (!fits).then(|| {
        format!(
            "the name {name:?} is invalid; use 1 to 64 lower-case letters, digits and single hyphens between them"
        )
    })
}

/// Parses the lines between the first two lines `---`.
fn parse_members(text: &str) -> Result<Map<String, Value>, String> {
    let missing = || {
        format!(
            "{MANIFEST} does not begin with a header; its first line is `---`, then follow `name: …` and \
             `description: …`, then another line `---`"
        )
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n').ok_or_else(missing)?;
    if first.trim_end() != "---" {
        return Err(missing());
    }
    let mut length = 0;
    let mut is_closed = false;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            is_closed = true;
            break;
        }
        length += line.len();
    }
    if !is_closed {
        return Err("the header is not closed; add a line `---` after it".to_owned());
    }
    let header = rest.get(..length).unwrap_or_default();
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 100_000,
            max_nodes: 50_000,
            max_depth: 32,
            flow_nesting_limit: 32,
            max_total_scalar_bytes: 1024 * 1024,
            max_documents: 1,
            max_inclusion_depth: 0,
        },
        // Hosts parse the header by the rules of YAML 1.2, where `yes` is a text.
        strict_booleans: true,
        no_schema: false,
        with_snippet: false,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
    };
    match serde_saphyr::from_str_with_options::<Value>(header, options) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err("the header is not a list of lines like `name: refunds`".to_owned()),
        Err(error) => {
            // The first line of the header is the second one of the file.
            let line = error.location().map(|place| format!("line {}: ", place.line() + 1));
            Err(format!(
                "{}the header is not valid YAML: {error}; put texts with a colon in quotes",
                line.unwrap_or_default()
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mistakes(text: &str) -> String {
        FrontMatter::parse(text.as_bytes(), "refunds").unwrap_err().join("\n")
    }

    #[test]
    fn keeps_every_member_as_json() {
        let text = "\u{feff}---\r\nname: refunds\r\ndescription: >\r\n  How to\r\n  refund\r\nlicense: MIT\r\n\
            metadata: {version: \"1.0\", stable: true, tries: 3, day: 2026-07-28, on: yes}\r\n---\r\n# Text\r\n";
        let header = FrontMatter::parse(text.as_bytes(), "refunds").unwrap();
        assert_eq!(
            Value::Object(header.members),
            json!({"name": "refunds", "description": "How to refund\n", "license": "MIT", "metadata":
                {"version": "1.0", "stable": true, "tries": 3, "day": "2026-07-28", "on": "yes"}})
        );
        let only_header = "---\nname: refunds\ndescription: x\n---";
        assert!(FrontMatter::parse(only_header.as_bytes(), "refunds").is_ok());
    }

    #[test]
    fn rejects_a_header_that_is_missing_open_or_not_yaml() {
        for (text, expected) in [
            ("", "does not begin with a header"),
            ("# Refunds\n---\n", "does not begin with a header"),
            ("---\nname: refunds\n", "is not closed"),
            ("---\n- a\n---\n", "not a list of lines"),
            ("---\n---\n", "not a list of lines"),
            ("---\nname: refunds\ndescription: a: b\n---\n", "line 3: the header is not valid YAML"),
            ("---\nname: a\nname: b\ndescription: x\n---\n", "line 3: the header is not valid YAML"),
        ] {
            let mistakes = mistakes(text);
            assert!(mistakes.contains(expected), "{text:?}: {mistakes}");
        }
        assert!(FrontMatter::parse(b"---\nname: \xff\n---\n", "x").unwrap_err()[0].contains("not UTF-8"));
    }

    #[test]
    fn names_every_mistake_of_the_members() {
        assert_eq!(
            mistakes("---\nname: 7\nmetadata: {io.modelcontextprotocol/x: 1}\n---\n"),
            "`name` is 7 and not a text; put it in quotes\n\
             the header has no `description`; add a line like `description: How to refund an order`\n\
             the key \"io.modelcontextprotocol/x\" of `metadata` is reserved for extensions of MCP; rename it"
        );
        let mistakes = mistakes("---\nname: Refund--All\ndescription: x\n---\n");
        assert!(mistakes.contains("the name \"Refund--All\" is invalid"), "{mistakes}");
        assert!(mistakes.contains("but the folder is \"refunds\""), "{mistakes}");
    }

    #[test]
    fn an_alias_bomb_is_rejected() {
        let mut header = String::from("---\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for step in 1..12 {
            let before = step - 1;
            let list = vec![format!("*a{before}"); 10].join(", ");
            header.push_str(&format!("a{step}: &a{step} [{list}]\n"));
        }
        header.push_str("---\n");
        assert!(mistakes(&header).contains("not valid YAML"));
    }
}
