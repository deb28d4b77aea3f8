//! Parses tokens into an untyped tree. Each node has its position in the text.
//!
//! `not` binds tighter than comparisons, as in OData: `not rating gt 5` negates `rating`. The depth of
//! trees is limited, so that parsing, checking, evaluating and dropping them cannot exhaust the stack.

use std::borrow::Cow;
use std::mem;

use super::ast::ComparisonOperator;
use super::lexer::{OdataLexeme, OdataLexer, OdataToken};
use super::problem::{OdataError, quoted};

/// The maximum nesting depth of parentheses, lambdas and `not`.
pub(super) const DEEPEST: usize = 100;
/// The maximum number of clauses in one filter, such as comparisons and calls.
pub(super) const MOST_CLAUSES: usize = 3000;
/// The maximum length of a path or argument list. No field is nested that deep, and no function has
/// that many arguments.
const LONGEST_LIST: usize = 20;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct OdataExpression<'a> {
    /// The byte offset in the text.
    pub(super) at: usize,
    pub(super) kind: OdataExpressionKind<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum OdataExpressionKind<'a> {
    Or(Vec<OdataExpression<'a>>),
    And(Vec<OdataExpression<'a>>),
    Not(Box<OdataExpression<'a>>),
    Compare {
        left: Box<OdataExpression<'a>>,
        operator: ComparisonOperator,
        right: Box<OdataExpression<'a>>,
    },
    Constant(OdataConstant<'a>),
    Path(Vec<OdataIdentifier<'a>>),
    /// `path/any(…)` or `path/all(…)`.
    Collection {
        path: Vec<OdataIdentifier<'a>>,
        all: bool,
        lambda: Option<LambdaExpression<'a>>,
    },
    Call {
        function: &'a str,
        arguments: Vec<OdataExpression<'a>>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum OdataConstant<'a> {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    String(Cow<'a, str>),
    /// Milliseconds since 1970, UTC.
    Date(i64),
    Geography(Cow<'a, str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OdataIdentifier<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct LambdaExpression<'a> {
    pub(super) variable: OdataIdentifier<'a>,
    pub(super) body: Box<OdataExpression<'a>>,
}

pub(super) fn parse_expression(text: &str) -> Result<OdataExpression<'_>, OdataError> {
    let mut parser = OdataParser::new(text)?;
    let expression = parser.parse_or()?;
    match &parser.ahead.token {
        OdataToken::End => Ok(expression),
        OdataToken::Close => Err(OdataError::new(parser.ahead.at, "This ')' has no matching '('.")),
        other => Err(OdataError::new(parser.ahead.at, no_operator(other))),
    }
}

/// The parser of filters. It also parses the clauses of `$orderby`, which have the same paths and calls.
pub(super) struct OdataParser<'a> {
    lexer: OdataLexer<'a>,
    pub(super) ahead: OdataLexeme<'a>,
    depth: usize,
    clauses: usize,
}

impl<'a> OdataParser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, OdataError> {
        let mut lexer = OdataLexer::new(text);
        let ahead = lexer.next()?;
        Ok(Self { lexer, ahead, depth: 0, clauses: 0 })
    }

    pub(super) fn advance(&mut self) -> Result<OdataLexeme<'a>, OdataError> {
        let next = self.lexer.next()?;
        Ok(mem::replace(&mut self.ahead, next))
    }

    /// Consumes the next token if it is this one. Returns whether it was.
    pub(super) fn advance_if(&mut self, token: &OdataToken<'_>) -> Result<bool, OdataError> {
        let is_next = self.ahead.token == *token;
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn parse_or(&mut self) -> Result<OdataExpression<'a>, OdataError> {
        let at = self.ahead.at;
        let first = self.parse_and()?;
        if self.ahead.token != OdataToken::Word("or") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.advance_if(&OdataToken::Word("or"))? {
            parts.push(self.parse_and()?);
        }
        Ok(OdataExpression { at, kind: OdataExpressionKind::Or(parts) })
    }

    fn parse_and(&mut self) -> Result<OdataExpression<'a>, OdataError> {
        let at = self.ahead.at;
        let first = self.comparison()?;
        if self.ahead.token != OdataToken::Word("and") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.advance_if(&OdataToken::Word("and"))? {
            parts.push(self.comparison()?);
        }
        Ok(OdataExpression { at, kind: OdataExpressionKind::And(parts) })
    }

    fn comparison(&mut self) -> Result<OdataExpression<'a>, OdataError> {
        let at = self.ahead.at;
        let left = self.operand()?;
        let Some(operator) = operator(&self.ahead.token) else { return Ok(left) };
        self.advance()?;
        // Both sides were counted, but a comparison is one clause.
        self.clauses = self.clauses.saturating_sub(1);
        let right = self.operand()?;
        Ok(OdataExpression {
            at,
            kind: OdataExpressionKind::Compare { left: Box::new(left), operator, right: Box::new(right) },
        })
    }

    fn operand(&mut self) -> Result<OdataExpression<'a>, OdataError> {
        let at = self.ahead.at;
        match &self.ahead.token {
            OdataToken::Open => {
                self.descend(at)?;
                self.advance()?;
                let inner = self.parse_or()?;
                self.close(at)?;
                self.depth -= 1;
                Ok(inner)
            }
            OdataToken::Word("not") => {
                self.descend(at)?;
                self.advance()?;
                let inner = self.operand()?;
                self.depth -= 1;
                Ok(OdataExpression { at, kind: OdataExpressionKind::Not(Box::new(inner)) })
            }
            _ => {
                self.clauses += 1;
                if self.clauses > MOST_CLAUSES {
                    return Err(OdataError::new(
                        at,
                        format!(
                            "The filter has too many clauses. The maximum is {MOST_CLAUSES}. A list of values is one \
                             clause when written as search.in(field, 'a,b,c')."
                        ),
                    ));
                }
                self.parse_primary()
            }
        }
    }

    /// Parses a constant, a path, a call, or `any` or `all`.
    pub(super) fn parse_primary(&mut self) -> Result<OdataExpression<'a>, OdataError> {
        let OdataToken::Word(word) = self.ahead.token else { return self.constant() };
        let at = self.ahead.at;
        if let Some(constant) = named_constant(word) {
            self.advance()?;
            return Ok(OdataExpression { at, kind: OdataExpressionKind::Constant(constant) });
        }
        self.advance()?;
        let mut path = vec![OdataIdentifier { at, text: word }];
        if self.ahead.token == OdataToken::Open {
            let arguments = self.arguments()?;
            return Ok(OdataExpression { at, kind: OdataExpressionKind::Call { function: word, arguments } });
        }
        while self.advance_if(&OdataToken::Slash)? {
            let OdataLexeme { at: place, token } = self.advance()?;
            let OdataToken::Word(text) = token else {
                return Err(OdataError::new(
                    place,
                    format!("Expected a field after '/', found {}.", token.describe()),
                ));
            };
            if matches!(text, "any" | "all") && self.ahead.token == OdataToken::Open {
                let lambda = self.lambda(text)?;
                return Ok(OdataExpression {
                    at,
                    kind: OdataExpressionKind::Collection { path, all: text == "all", lambda },
                });
            }
            if path.len() == LONGEST_LIST {
                return Err(OdataError::new(place, "The path is too long. No field is nested that deep."));
            }
            path.push(OdataIdentifier { at: place, text });
        }
        if self.ahead.token == OdataToken::Open {
            let last = path.last().map_or("", |name| name.text);
            return Err(OdataError::new(
                self.ahead.at,
                format!("'{}' cannot be called on a field. Only 'any' and 'all' can.", quoted(last)),
            ));
        }
        Ok(OdataExpression { at, kind: OdataExpressionKind::Path(path) })
    }

    fn constant(&mut self) -> Result<OdataExpression<'a>, OdataError> {
        let OdataLexeme { at, token } = self.advance()?;
        let constant = match token {
            OdataToken::String(text) => OdataConstant::String(text),
            OdataToken::Geography(text) => OdataConstant::Geography(text),
            OdataToken::Integer(number) => OdataConstant::Integer(number),
            OdataToken::Double(number) => OdataConstant::Double(number),
            OdataToken::Date(date) => OdataConstant::Date(date),
            other => {
                let found = other.describe();
                let message = format!("Expected a field, a constant or a function, found {found}.");
                return Err(OdataError::new(at, message));
            }
        };
        Ok(OdataExpression { at, kind: OdataExpressionKind::Constant(constant) })
    }

    /// Parses the arguments of a call: fields and constants, but not calls.
    fn arguments(&mut self) -> Result<Vec<OdataExpression<'a>>, OdataError> {
        let open = self.advance()?.at;
        let mut arguments = Vec::new();
        if self.advance_if(&OdataToken::Close)? {
            return Ok(arguments);
        }
        loop {
            let argument = self.simple_argument()?;
            if arguments.len() == LONGEST_LIST {
                return Err(OdataError::new(argument.at, "The call has too many arguments."));
            }
            arguments.push(argument);
            if !self.advance_if(&OdataToken::Comma)? {
                self.close(open)?;
                return Ok(arguments);
            }
        }
    }

    fn simple_argument(&mut self) -> Result<OdataExpression<'a>, OdataError> {
        let at = self.ahead.at;
        // A nested call would recurse without being counted.
        self.descend(at)?;
        let argument = self.parse_primary()?;
        self.depth -= 1;
        match argument.kind {
            OdataExpressionKind::Path(_) | OdataExpressionKind::Constant(_) => Ok(argument),
            _ => Err(OdataError::new(at, "The arguments of a function must be fields and constants.")),
        }
    }

    fn lambda(&mut self, word: &str) -> Result<Option<LambdaExpression<'a>>, OdataError> {
        let open = self.advance()?.at;
        self.descend(open)?;
        if self.advance_if(&OdataToken::Close)? {
            self.depth -= 1;
            return Ok(None);
        }
        let OdataLexeme { at, token } = self.advance()?;
        let variable = match token {
            OdataToken::Word(text)
                if !text.contains('.') && named_constant(text).is_none() && text != "not" =>
            {
                OdataIdentifier { at, text }
            }
            other => {
                let found = other.describe();
                let message =
                    format!("Expected a range variable, as in {word}(x: x eq 'value'), found {found}.");
                return Err(OdataError::new(at, message));
            }
        };
        if !self.advance_if(&OdataToken::Colon)? {
            let name = quoted(variable.text);
            return Err(OdataError::new(
                self.ahead.at,
                format!(
                    "Expected ':' after the range variable '{name}', as in {word}({name}: {name} eq 'value')."
                ),
            ));
        }
        let body = Box::new(self.parse_or()?);
        self.close(open)?;
        self.depth -= 1;
        Ok(Some(LambdaExpression { variable, body }))
    }

    fn close(&mut self, open: usize) -> Result<(), OdataError> {
        if self.advance_if(&OdataToken::Close)? {
            return Ok(());
        }
        match &self.ahead.token {
            OdataToken::End => Err(OdataError::new(open, "This '(' is never closed.")),
            OdataToken::Comma => {
                Err(OdataError::new(self.ahead.at, "A ',' separates arguments of functions only."))
            }
            other => Err(OdataError::new(self.ahead.at, no_operator(other))),
        }
    }

    fn descend(&mut self, at: usize) -> Result<(), OdataError> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(OdataError::new(
                at,
                format!("The expression is nested too deep. The maximum is {DEEPEST} levels."),
            ));
        }
        Ok(())
    }
}

fn operator(token: &OdataToken<'_>) -> Option<ComparisonOperator> {
    let OdataToken::Word(word) = token else { return None };
    Some(match *word {
        "eq" => ComparisonOperator::Equal,
        "ne" => ComparisonOperator::NotEqual,
        "lt" => ComparisonOperator::Less,
        "le" => ComparisonOperator::LessOrEqual,
        "gt" => ComparisonOperator::Greater,
        "ge" => ComparisonOperator::GreaterOrEqual,
        _ => return None,
    })
}

fn named_constant(word: &str) -> Option<OdataConstant<'static>> {
    Some(match word {
        "null" => OdataConstant::Null,
        "true" => OdataConstant::Boolean(true),
        "false" => OdataConstant::Boolean(false),
        "NaN" => OdataConstant::Double(f64::NAN),
        "INF" => OdataConstant::Double(f64::INFINITY),
        _ => return None,
    })
}

fn no_operator(found: &OdataToken<'_>) -> String {
    const ALL: &str = "'and', 'or', 'eq', 'ne', 'gt', 'lt', 'ge', 'le'";
    if let OdataToken::Word(word) = found {
        let lower = word.to_ascii_lowercase();
        if matches!(lower.as_str(), "and" | "or" | "eq" | "ne" | "gt" | "lt" | "ge" | "le") && lower != **word
        {
            return format!("Operators are written in lower case: '{lower}', not '{word}'.");
        }
        if lower == "in" {
            return "There is no operator 'in'. Write search.in(field, 'a,b,c').".to_owned();
        }
        if operator(found).is_some() {
            return format!("Comparisons cannot be chained with '{word}'. Join them by 'and'.");
        }
    }
    format!("Expected an operator ({ALL}), found {}.", found.describe())
}
