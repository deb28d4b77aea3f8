//! Tokens → a tree without types, each part with its position.
//!
//! `not` binds tighter than comparisons, as in OData: `not rating gt 5` negates `rating`. Trees are bounded in depth,
//! so that neither reading, checking, evaluating nor dropping them can exhaust the stack.

use std::borrow::Cow;
use std::mem;

use super::ast::Operator;
use super::lexer::{Lexeme, Lexer, Token};
use super::problem::{Problem, quoted};

/// Parentheses, lambdas and `not` within each other.
pub(super) const DEEPEST: usize = 100;
/// Comparisons, calls and the like in one filter.
pub(super) const MOST_CLAUSES: usize = 3000;
/// No index has fields so deep, and no function so many arguments.
const LONGEST_LIST: usize = 20;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expression<'a> {
    /// Bytes from the start of the text.
    pub(super) at: usize,
    pub(super) kind: Kind<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Kind<'a> {
    Or(Vec<Expression<'a>>),
    And(Vec<Expression<'a>>),
    Not(Box<Expression<'a>>),
    Compare {
        left: Box<Expression<'a>>,
        operator: Operator,
        right: Box<Expression<'a>>,
    },
    Constant(Constant<'a>),
    Path(Vec<Name<'a>>),
    /// `path/any(…)`, `path/all(…)`.
    Collection {
        path: Vec<Name<'a>>,
        all: bool,
        lambda: Option<Lambda<'a>>,
    },
    Call {
        function: &'a str,
        arguments: Vec<Expression<'a>>,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Constant<'a> {
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
pub(super) struct Name<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Lambda<'a> {
    pub(super) variable: Name<'a>,
    pub(super) body: Box<Expression<'a>>,
}

pub(super) fn filter(text: &str) -> Result<Expression<'_>, Problem> {
    let mut parser = Parser::new(text)?;
    let expression = parser.either()?;
    match &parser.ahead.token {
        Token::End => Ok(expression),
        Token::Close => Err(Problem::new(parser.ahead.at, "This ')' closes nothing.")),
        other => Err(Problem::new(parser.ahead.at, no_operator(other))),
    }
}

/// Also reads the clauses of `$orderby`, which share its paths and calls.
pub(super) struct Parser<'a> {
    lexer: Lexer<'a>,
    pub(super) ahead: Lexeme<'a>,
    depth: usize,
    clauses: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a str) -> Result<Self, Problem> {
        let mut lexer = Lexer::new(text);
        let ahead = lexer.next()?;
        Ok(Self { lexer, ahead, depth: 0, clauses: 0 })
    }

    pub(super) fn advance(&mut self) -> Result<Lexeme<'a>, Problem> {
        let next = self.lexer.next()?;
        Ok(mem::replace(&mut self.ahead, next))
    }

    /// Takes the token when it is the next one.
    pub(super) fn take(&mut self, token: &Token<'_>) -> Result<bool, Problem> {
        let is_next = self.ahead.token == *token;
        if is_next {
            self.advance()?;
        }
        Ok(is_next)
    }

    fn either(&mut self) -> Result<Expression<'a>, Problem> {
        let at = self.ahead.at;
        let first = self.both()?;
        if self.ahead.token != Token::Word("or") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take(&Token::Word("or"))? {
            parts.push(self.both()?);
        }
        Ok(Expression { at, kind: Kind::Or(parts) })
    }

    fn both(&mut self) -> Result<Expression<'a>, Problem> {
        let at = self.ahead.at;
        let first = self.comparison()?;
        if self.ahead.token != Token::Word("and") {
            return Ok(first);
        }
        let mut parts = vec![first];
        while self.take(&Token::Word("and"))? {
            parts.push(self.comparison()?);
        }
        Ok(Expression { at, kind: Kind::And(parts) })
    }

    fn comparison(&mut self) -> Result<Expression<'a>, Problem> {
        let at = self.ahead.at;
        let left = self.operand()?;
        let Some(operator) = operator(&self.ahead.token) else { return Ok(left) };
        self.advance()?;
        // Both sides are counted, but a comparison is one clause.
        self.clauses = self.clauses.saturating_sub(1);
        let right = self.operand()?;
        Ok(Expression { at, kind: Kind::Compare { left: Box::new(left), operator, right: Box::new(right) } })
    }

    fn operand(&mut self) -> Result<Expression<'a>, Problem> {
        let at = self.ahead.at;
        match &self.ahead.token {
            Token::Open => {
                self.descend(at)?;
                self.advance()?;
                let inner = self.either()?;
                self.close(at)?;
                self.depth -= 1;
                Ok(inner)
            }
            Token::Word("not") => {
                self.descend(at)?;
                self.advance()?;
                let inner = self.operand()?;
                self.depth -= 1;
                Ok(Expression { at, kind: Kind::Not(Box::new(inner)) })
            }
            _ => {
                self.clauses += 1;
                if self.clauses > MOST_CLAUSES {
                    return Err(Problem::new(
                        at,
                        format!(
                            "The filter has too many clauses; {MOST_CLAUSES} are possible. A list of values is one \
                             clause when written as search.in(field, 'a,b,c')."
                        ),
                    ));
                }
                self.simple()
            }
        }
    }

    /// A constant, a path, a call, or `any` and `all`.
    pub(super) fn simple(&mut self) -> Result<Expression<'a>, Problem> {
        let Token::Word(word) = self.ahead.token else { return self.constant() };
        let at = self.ahead.at;
        if let Some(constant) = named_constant(word) {
            self.advance()?;
            return Ok(Expression { at, kind: Kind::Constant(constant) });
        }
        self.advance()?;
        let mut path = vec![Name { at, text: word }];
        if self.ahead.token == Token::Open {
            let arguments = self.arguments()?;
            return Ok(Expression { at, kind: Kind::Call { function: word, arguments } });
        }
        while self.take(&Token::Slash)? {
            let Lexeme { at: place, token } = self.advance()?;
            let Token::Word(text) = token else {
                return Err(Problem::new(
                    place,
                    format!("Expected a field after '/', found {}.", token.describe()),
                ));
            };
            if matches!(text, "any" | "all") && self.ahead.token == Token::Open {
                let lambda = self.lambda(text)?;
                return Ok(Expression { at, kind: Kind::Collection { path, all: text == "all", lambda } });
            }
            if path.len() == LONGEST_LIST {
                return Err(Problem::new(place, "The path is too long: no field lies so deep."));
            }
            path.push(Name { at: place, text });
        }
        if self.ahead.token == Token::Open {
            let last = path.last().map_or("", |name| name.text);
            return Err(Problem::new(
                self.ahead.at,
                format!("'{}' cannot be called on a field; only 'any' and 'all' can.", quoted(last)),
            ));
        }
        Ok(Expression { at, kind: Kind::Path(path) })
    }

    fn constant(&mut self) -> Result<Expression<'a>, Problem> {
        let Lexeme { at, token } = self.advance()?;
        let constant = match token {
            Token::String(text) => Constant::String(text),
            Token::Geography(text) => Constant::Geography(text),
            Token::Integer(number) => Constant::Integer(number),
            Token::Double(number) => Constant::Double(number),
            Token::Date(date) => Constant::Date(date),
            other => {
                let found = other.describe();
                let message = format!("Expected a field, a constant or a function, found {found}.");
                return Err(Problem::new(at, message));
            }
        };
        Ok(Expression { at, kind: Kind::Constant(constant) })
    }

    /// The arguments of a call are fields and constants, never calls.
    fn arguments(&mut self) -> Result<Vec<Expression<'a>>, Problem> {
        let open = self.advance()?.at;
        let mut arguments = Vec::new();
        if self.take(&Token::Close)? {
            return Ok(arguments);
        }
        loop {
            let argument = self.simple_argument()?;
            if arguments.len() == LONGEST_LIST {
                return Err(Problem::new(argument.at, "The call has too many arguments."));
            }
            arguments.push(argument);
            if !self.take(&Token::Comma)? {
                self.close(open)?;
                return Ok(arguments);
            }
        }
    }

    fn simple_argument(&mut self) -> Result<Expression<'a>, Problem> {
        let at = self.ahead.at;
        // A call within a call would descend without being counted.
        self.descend(at)?;
        let argument = self.simple()?;
        self.depth -= 1;
        match argument.kind {
            Kind::Path(_) | Kind::Constant(_) => Ok(argument),
            _ => Err(Problem::new(at, "The arguments of a function are fields and constants.")),
        }
    }

    fn lambda(&mut self, word: &str) -> Result<Option<Lambda<'a>>, Problem> {
        let open = self.advance()?.at;
        self.descend(open)?;
        if self.take(&Token::Close)? {
            self.depth -= 1;
            return Ok(None);
        }
        let Lexeme { at, token } = self.advance()?;
        let variable = match token {
            Token::Word(text) if !text.contains('.') && named_constant(text).is_none() && text != "not" => {
                Name { at, text }
            }
            other => {
                let found = other.describe();
                let message =
                    format!("Expected a range variable, as in {word}(x: x eq 'value'), found {found}.");
                return Err(Problem::new(at, message));
            }
        };
        if !self.take(&Token::Colon)? {
            let name = quoted(variable.text);
            return Err(Problem::new(
                self.ahead.at,
                format!(
                    "Expected ':' after the range variable '{name}', as in {word}({name}: {name} eq 'value')."
                ),
            ));
        }
        let body = Box::new(self.either()?);
        self.close(open)?;
        self.depth -= 1;
        Ok(Some(Lambda { variable, body }))
    }

    fn close(&mut self, open: usize) -> Result<(), Problem> {
        if self.take(&Token::Close)? {
            return Ok(());
        }
        match &self.ahead.token {
            Token::End => Err(Problem::new(open, "This '(' is never closed.")),
            Token::Comma => Err(Problem::new(self.ahead.at, "A ',' separates arguments of functions only.")),
            other => Err(Problem::new(self.ahead.at, no_operator(other))),
        }
    }

    fn descend(&mut self, at: usize) -> Result<(), Problem> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(Problem::new(
                at,
                format!("The expression is nested too deep; {DEEPEST} levels are possible."),
            ));
        }
        Ok(())
    }
}

fn operator(token: &Token<'_>) -> Option<Operator> {
    let Token::Word(word) = token else { return None };
    Some(match *word {
        "eq" => Operator::Equal,
        "ne" => Operator::NotEqual,
        "lt" => Operator::Less,
        "le" => Operator::LessOrEqual,
        "gt" => Operator::Greater,
        "ge" => Operator::GreaterOrEqual,
        _ => return None,
    })
}

fn named_constant(word: &str) -> Option<Constant<'static>> {
    Some(match word {
        "null" => Constant::Null,
        "true" => Constant::Boolean(true),
        "false" => Constant::Boolean(false),
        "NaN" => Constant::Double(f64::NAN),
        "INF" => Constant::Double(f64::INFINITY),
        _ => return None,
    })
}

fn no_operator(found: &Token<'_>) -> String {
    const ALL: &str = "'and', 'or', 'eq', 'ne', 'gt', 'lt', 'ge', 'le'";
    if let Token::Word(word) = found {
        let lower = word.to_ascii_lowercase();
        if matches!(lower.as_str(), "and" | "or" | "eq" | "ne" | "gt" | "lt" | "ge" | "le") && lower != **word
        {
            return format!("Operators are written in lower case: '{lower}', not '{word}'.");
        }
        if lower == "in" {
            return "There is no operator 'in'. Write search.in(field, 'a,b,c').".to_owned();
        }
        if operator(found).is_some() {
            return format!("Comparisons cannot be chained with '{word}'; join them by 'and'.");
        }
    }
    format!("Expected an operator ({ALL}), found {}.", found.describe())
}
