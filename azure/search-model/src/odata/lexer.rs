//! Splits an expression into tokens.

use std::borrow::Cow;

use super::date;
use super::problem::{OdataError, quoted};

#[derive(Debug, Clone, PartialEq)]
pub(super) enum OdataToken<'a> {
    /// A name, an operator or a function. Functions contain a dot.
    Word(&'a str),
    String(Cow<'a, str>),
    /// The text between the quotes of `geography'…'`.
    Geography(Cow<'a, str>),
    Integer(i64),
    Double(f64),
    /// Milliseconds since 1970, UTC.
    Date(i64),
    Open,
    Close,
    Comma,
    Colon,
    Slash,
    End,
}

impl OdataToken<'_> {
    /// Describes the token for an error message.
    pub(super) fn describe(&self) -> String {
        match self {
            Self::Word(word) => format!("'{}'", quoted(word)),
            Self::String(text) => format!("the text '{}'", quoted(text)),
            Self::Geography(_) => "a geography constant".to_owned(),
            Self::Integer(number) => format!("the number {number}"),
            Self::Double(number) => format!("the number {number}"),
            Self::Date(_) => "a date".to_owned(),
            Self::Open => "'('".to_owned(),
            Self::Close => "')'".to_owned(),
            Self::Comma => "','".to_owned(),
            Self::Colon => "':'".to_owned(),
            Self::Slash => "'/'".to_owned(),
            Self::End => "the end of the expression".to_owned(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct OdataLexeme<'a> {
    /// The byte offset in the text.
    pub(super) at: usize,
    pub(super) token: OdataToken<'a>,
}

pub(super) struct OdataLexer<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> OdataLexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next token. After the last one it returns `End` repeatedly.
    pub(super) fn next(&mut self) -> Result<OdataLexeme<'a>, OdataError> {
        self.skip(self.rest().len() - self.rest().trim_start().len());
        let at = self.at;
        let rest = self.rest();
        let Some(first) = rest.chars().next() else { return Ok(OdataLexeme { at, token: OdataToken::End }) };
        let token = match first {
            '(' => self.sign(OdataToken::Open),
            ')' => self.sign(OdataToken::Close),
            ',' => self.sign(OdataToken::Comma),
            ':' => self.sign(OdataToken::Colon),
            '/' => self.sign(OdataToken::Slash),
            '\'' => OdataToken::String(self.string()?),
            '0'..='9' | '+' | '-' => self.number()?,
            'a'..='z' | 'A'..='Z' | '_' => self.word()?,
            other => return Err(OdataError::new(at, unexpected(other))),
        };
        Ok(OdataLexeme { at, token })
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip(&mut self, bytes: usize) {
        self.at += bytes;
    }

    fn sign(&mut self, token: OdataToken<'a>) -> OdataToken<'a> {
        self.skip(1);
        token
    }

    /// Consumes the characters that belong to a word or number.
    fn run(&mut self, belongs: fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character| !belongs(character)).unwrap_or(rest.len());
        self.skip(end);
        rest.get(..end).unwrap_or_default()
    }

    fn word(&mut self) -> Result<OdataToken<'a>, OdataError> {
        let at = self.at;
        let word = self.run(|character| character.is_ascii_alphanumeric() || matches!(character, '_' | '.'));
        if !self.rest().starts_with('\'') {
            return Ok(OdataToken::Word(word));
        }
        if word == "geography" {
            return Ok(OdataToken::Geography(self.string()?));
        }
        let word = quoted(word);
        Err(OdataError::new(
            at,
            format!(
                "'{word}' is not allowed before a quote. Only geography'…' has a prefix. Write texts 'like this' \
                 and dates without quotes."
            ),
        ))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, OdataError> {
        let at = self.at;
        self.skip(1);
        let body = self.rest();
        let (mut escaped, mut from) = (false, 0);
        while let Some(quote) = body.get(from..).and_then(|rest| rest.find('\'')) {
            let end = from + quote;
            if body.get(end + 1..).is_some_and(|rest| rest.starts_with('\'')) {
                escaped = true;
                from = end + 2;
                continue;
            }
            self.skip(end + 1);
            let body = body.get(..end).unwrap_or_default();
            return Ok(if escaped { body.replace("''", "'").into() } else { body.into() });
        }
        Err(OdataError::new(
            at,
            "The text that starts here has no closing quote. A quote inside a text is doubled: 'it''s'.",
        ))
    }

    fn number(&mut self) -> Result<OdataToken<'a>, OdataError> {
        let at = self.at;
        let run = self.run(|character| {
            character.is_ascii_alphanumeric() || matches!(character, '.' | '_' | ':' | '+' | '-')
        });
        if is_dated(run) {
            return date::parse_explained(run)
                .map(OdataToken::Date)
                .map_err(|message| OdataError::new(at, message));
        }
        if run == "-INF" {
            return Ok(OdataToken::Double(f64::NEG_INFINITY));
        }
        if let Ok(integer) = run.parse() {
            return Ok(OdataToken::Integer(integer));
        }
        let numeric = run.chars().all(|character| character.is_ascii_digit() || ".eE+-".contains(character));
        match run.parse::<f64>() {
            Ok(double) if numeric && double.is_finite() => Ok(OdataToken::Double(double)),
            Ok(_) if numeric => Err(OdataError::new(at, format!("The number {} is too large.", quoted(run)))),
            _ => {
                let run = quoted(run);
                Err(OdataError::new(
                    at,
                    format!("'{run}' is not a number. Texts are put in single quotes: '{run}'."),
                ))
            }
        }
    }
}

/// Whether this is a date such as `2024-…`. No number has a sign right after four digits.
fn is_dated(run: &str) -> bool {
    let mut bytes = run.bytes();
    bytes.by_ref().take(4).filter(u8::is_ascii_digit).count() == 4 && bytes.next() == Some(b'-')
}

fn unexpected(character: char) -> String {
    let hint = match character {
        '"' | '’' | '‘' | '`' => "Texts are put in single quotes: 'like this'.",
        '=' => "Equality is written 'eq'.",
        '<' | '>' => "Comparisons are written 'lt', 'le', 'gt', 'ge'.",
        '!' => "Negation is written 'not', inequality 'ne'.",
        '&' | '|' => "Conditions are joined by 'and' and 'or'.",
        _ => "Expected a field, a constant or a function.",
    };
    format!("The character '{}' has no meaning here. {hint}", character.escape_debug())
}
