//! [`FunctionDoc`]: what the docstring of a Python function says about its tool: a description and parameters.
//!
//! The styles of Google, NumPy and Sphinx are known.

/// The content of a docstring.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FunctionDoc {
    /// The text before the first section.
    pub(super) description: String,
    pub(super) parameters: Vec<DocumentedParameter>,
}

/// A parameter that a docstring describes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DocumentedParameter {
    pub(super) name: String,
    /// The type of JSON Schema, if the docstring names one.
    pub(super) kind: Option<&'static str>,
    pub(super) is_required: bool,
    pub(super) description: String,
}

/// The titles of sections with parameters, and of other sections.
const PARAMETERS: [&str; 7] =
    ["args", "arguments", "parameters", "params", "query", "query parameters", "query params"];
const OTHERS: [&str; 10] = [
    "returns",
    "return",
    "yields",
    "raises",
    "example",
    "examples",
    "note",
    "notes",
    "see also",
    "references",
];
/// The maximum number of parameters.
const MOST: usize = 50;

/// Where the next line belongs.
enum DocSection {
    Description,
    /// A list of parameters. The number is the indentation of its entries, once it is known.
    Parameters(Option<usize>),
    Ignored,
}

impl FunctionDoc {
    pub(super) fn parse(text: &str) -> FunctionDoc {
        let mut doc = FunctionDoc::default();
        let mut section = DocSection::Description;
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let indent = line.len() - line.trim_start().len();
            let line = line.trim();
            let is_underlined = lines.peek().is_some_and(|next| is_underline(next.trim()));
            if let Some(title) = title_of(line, is_underlined).filter(|_| indent == 0) {
                section = match PARAMETERS.contains(&title.as_str()) {
                    true => DocSection::Parameters(None),
                    false => DocSection::Ignored,
                };
                if is_underlined {
                    lines.next();
                }
            } else if let Some(field) = line.strip_prefix(':').filter(|_| indent == 0) {
                doc.read_field(field);
                section = DocSection::Ignored;
            } else {
                match &mut section {
                    DocSection::Description => push_words(&mut doc.description, line),
                    DocSection::Parameters(_) if line.is_empty() => {}
                    DocSection::Parameters(first) => {
                        let first = *first.get_or_insert(indent);
                        match doc.parameters.last_mut() {
                            Some(last) if indent > first => push_words(&mut last.description, line),
                            _ => doc.read_entry(line),
                        }
                    }
                    DocSection::Ignored => {}
                }
            }
        }
        doc
    }

    /// Reads `name (int, optional): words` or `name : int`.
    fn read_entry(&mut self, line: &str) {
        let (head, words) = line.split_once(':').unwrap_or((line, ""));
        let (name, hint) = match head.split_once('(') {
            Some((name, hint)) => (name, hint.trim_end().trim_end_matches(')')),
            None => (head, ""),
        };
        let name = name.trim();
        // In the style of NumPy, the type comes after a blank and a colon, and nothing else.
        match hint.is_empty() && head.ends_with(' ') {
            true => self.add(name, words, ""),
            false => self.add(name, hint, words),
        }
    }

    /// Reads `param int name: words` or `type name: int`.
    fn read_field(&mut self, field: &str) {
        let Some((head, words)) = field.split_once(':') else { return };
        let head: Vec<&str> = head.split_whitespace().collect();
        match head.as_slice() {
            ["param" | "parameter" | "arg" | "argument", hint @ .., name] => {
                self.add(name, &hint.join(" "), words)
            }
            ["type", name] => {
                if let Some(known) = self.parameters.iter_mut().find(|known| known.name == *name) {
                    known.kind = kind_of(words);
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, name: &str, hint: &str, words: &str) {
        let is_name = !name.is_empty()
            && name.chars().all(|sign| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-' | '.' | '$'));
        let is_known = self.parameters.iter().any(|known| known.name == name);
        if !is_name || is_known || self.parameters.len() >= MOST {
            return;
        }
        self.parameters.push(DocumentedParameter {
            name: name.to_owned(),
            kind: kind_of(hint),
            is_required: hint.split(',').any(|part| part.trim() == "required"),
            description: words.trim().to_owned(),
        });
    }
}

/// Returns the title of a section in lower case, if the line is one.
fn title_of(line: &str, is_underlined: bool) -> Option<String> {
    let title = match line.strip_suffix(':') {
        Some(title) => title,
        None if is_underlined => line,
        None => return None,
    };
    let title = title.trim().to_ascii_lowercase();
    (PARAMETERS.contains(&title.as_str()) || OTHERS.contains(&title.as_str())).then_some(title)
}

fn is_underline(line: &str) -> bool {
    line.len() >= 3 && line.bytes().all(|byte| byte == b'-')
}

/// Returns the type of JSON Schema for a type of Python, such as `int` or `Optional[int]`.
fn kind_of(hint: &str) -> Option<&'static str> {
    let hint = hint.split(',').next().unwrap_or_default().trim().to_ascii_lowercase();
    let hint = hint.strip_prefix("optional[").unwrap_or(&hint).trim_end_matches(']');
    let hint = hint.split('|').next().unwrap_or_default().trim();
    match hint {
        "str" | "string" => Some("string"),
        "int" | "integer" => Some("integer"),
        "float" | "number" | "decimal" => Some("number"),
        "bool" | "boolean" => Some("boolean"),
        _ => None,
    }
}

fn push_words(text: &mut String, words: &str) {
    if !text.is_empty() && !words.is_empty() {
        text.push(' ');
    }
    text.push_str(words);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(
        name: &str,
        kind: Option<&'static str>,
        is_required: bool,
        words: &str,
    ) -> DocumentedParameter {
        DocumentedParameter { name: name.to_owned(), kind, is_required, description: words.to_owned() }
    }

    #[test]
    fn every_style_of_docstrings_is_read() {
        let expected = FunctionDoc {
            description: "Returns orders. Only open ones.".to_owned(),
            parameters: vec![
                parameter("most", Some("integer"), false, "How many, at most."),
                parameter("state", None, false, "Which."),
            ],
        };
        for text in [
            "Returns orders.\n\nOnly open ones.\n\nArgs:\n    most (int, optional): How many,\n        at most.\n    state: Which.\n\nReturns:\n    JSON: it has items.",
            "Returns orders.\nOnly open ones.\n\nQuery parameters:\n  most (Optional[int]): How many, at most.\n  state: Which.\nRaises:\n  ValueError: never",
            "Returns orders. Only open ones.\n\nParameters\n----------\nmost : int\n    How many, at most.\nstate\n    Which.\n\nReturns\n-------\nstr\n    JSON",
            "Returns orders. Only open ones.\n\n:param most: How many, at most.\n:type most: int\n:param state: Which.\n:returns: JSON",
            "Returns orders. Only open ones.\n\n:param int most: How many, at most.\n:param state: Which.",
        ] {
            assert_eq!(FunctionDoc::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn required_parameters_and_texts_with_colons_are_kept_apart() {
        let doc = FunctionDoc::parse(
            "Note: this is text: all of it.\n\nArgs:\n  id (str, required): The id: exactly.\n  a b: no",
        );
        assert_eq!(doc.description, "Note: this is text: all of it.");
        assert_eq!(doc.parameters, [parameter("id", Some("string"), true, "The id: exactly.")]);
        assert_eq!(FunctionDoc::parse(""), FunctionDoc::default());
        let many: String = (0..1000).map(|number| format!("  p{number}: x\n")).collect();
        assert_eq!(FunctionDoc::parse(&format!("Args:\n{many}")).parameters.len(), MOST);
    }
}
