//! Patterns over the terms of a column: prefixes, wildcards, regular expressions and fuzzy words.
//!
//! Patterns are not analyzed, only lower-cased. Every matching term has the same score. The automaton of
//! a pattern is built once and shared by all fields and the highlighter.

use std::fmt;
use std::sync::Arc;

use bindpost_azure_search_model::ApiError;
use bindpost_azure_search_model::syntax::tree::WildcardPiece;
use tantivy::Term;
use tantivy::query::{AutomatonWeight, DfaWrapper, EnableScoring, FuzzyTermQuery, Query, Weight};
use tantivy::schema::Field as Column;
use tantivy_fst::{Automaton, Regex};

use super::expression::{self, ANY_LETTER};
use crate::budget::Budget;

/// The maximum size of a pattern in automaton steps. `.` has about 45 steps.
const MAX_STEPS: usize = 1_500;
/// The maximum size of all patterns of a search text.
const MAX_ALL_STEPS: usize = 6_000;
/// The maximum number of letters in all fuzzy words of a search text. Fuzzy words need memory for
/// each letter.
const MAX_FUZZY_LETTERS: usize = 1_000;
const MAX_FUZZY_WORD: usize = 100;

/// A set of terms. It is cheap to clone.
#[derive(Clone)]
pub enum TermPattern {
    Prefix(Arc<PrefixAutomaton>),
    /// A regular expression or a wildcard pattern.
    Regex(Arc<Regex>),
    Fuzzy(Arc<DfaWrapper>),
}

impl TermPattern {
    pub fn prefix(text: &str) -> Self {
        Self::exact_prefix(&text.to_lowercase())
    }

    /// Matches terms that start with exactly this text.
    pub(crate) fn exact_prefix(text: &str) -> Self {
        Self::Prefix(Arc::new(PrefixAutomaton(text.as_bytes().to_vec())))
    }

    pub fn matches(&self, term: &str) -> bool {
        match self {
            Self::Prefix(prefix) => term.as_bytes().starts_with(&prefix.0),
            Self::Regex(regex) => accepts(&**regex, term),
            Self::Fuzzy(fuzzy) => accepts(&**fuzzy, term),
        }
    }
}

impl fmt::Debug for TermPattern {
    // The automata would print thousands of lines.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(prefix) => write!(f, "Prefix({:?})", String::from_utf8_lossy(&prefix.0)),
            Self::Regex(_) => f.write_str("Regex"),
            Self::Fuzzy(_) => f.write_str("Fuzzy"),
        }
    }
}

fn accepts<A: Automaton>(automaton: &A, term: &str) -> bool {
    let mut state = automaton.start();
    for byte in term.bytes() {
        if !automaton.can_match(&state) {
            return false;
        }
        state = automaton.accept(&state, byte);
    }
    automaton.is_match(&state)
}

/// Matches everything that starts with these bytes.
pub struct PrefixAutomaton(Vec<u8>);

impl Automaton for PrefixAutomaton {
    /// The number of matched bytes, or `None` after a mismatch.
    type State = Option<usize>;

    fn start(&self) -> Self::State {
        Some(0)
    }

    fn is_match(&self, state: &Self::State) -> bool {
        *state == Some(self.0.len())
    }

    fn can_match(&self, state: &Self::State) -> bool {
        state.is_some()
    }

    fn will_always_match(&self, state: &Self::State) -> bool {
        self.is_match(state)
    }

    fn accept(&self, state: &Self::State, byte: u8) -> Self::State {
        let met = (*state)?;
        match self.0.get(met) {
            None => Some(met),
            Some(&expected) => (expected == byte).then_some(met + 1),
        }
    }
}

/// Matches documents that have a term of the pattern in a column.
#[derive(Debug, Clone)]
pub(crate) struct PatternQuery {
    column: Column,
    pattern: TermPattern,
    budget: Budget,
}

impl PatternQuery {
    pub(crate) fn new(column: Column, pattern: TermPattern, budget: &Budget) -> Self {
        Self { column, pattern, budget: budget.clone() }
    }
}

impl Query for PatternQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(match &self.pattern {
            TermPattern::Prefix(prefix) => weight(self.column, prefix, &self.budget),
            TermPattern::Regex(regex) => weight(self.column, regex, &self.budget),
            TermPattern::Fuzzy(fuzzy) => weight(self.column, fuzzy, &self.budget),
        })
    }
}

fn weight<A>(column: Column, automaton: &Arc<A>, budget: &Budget) -> Box<dyn Weight>
where
    A: Automaton<State: Clone> + Send + Sync + 'static,
{
    let watched = BudgetedAutomaton { automaton: Arc::clone(automaton), budget: budget.clone() };
    Box::new(AutomatonWeight::<BudgetedAutomaton<A>>::new(column, watched))
}

/// Wraps an automaton and checks the budget with every byte of the dictionary that it reads.
struct BudgetedAutomaton<A> {
    automaton: Arc<A>,
    budget: Budget,
}

impl<A: Automaton> Automaton for BudgetedAutomaton<A> {
    type State = A::State;

    fn start(&self) -> A::State {
        self.automaton.start()
    }

    fn is_match(&self, state: &A::State) -> bool {
        self.automaton.is_match(state)
    }

    fn can_match(&self, state: &A::State) -> bool {
        self.automaton.can_match(state)
    }

    fn will_always_match(&self, state: &A::State) -> bool {
        self.automaton.will_always_match(state)
    }

    fn accept(&self, state: &A::State, byte: u8) -> A::State {
        self.budget.check();
        self.automaton.accept(state, byte)
    }
}

/// Builds the patterns of one search text and limits their size.
#[derive(Debug, Default)]
pub(super) struct PatternBuilder {
    steps: usize,
    letters: usize,
}

impl PatternBuilder {
    pub(super) fn wildcard(&mut self, pieces: &[WildcardPiece]) -> Result<TermPattern, ApiError> {
        let mut written = String::new();
        let mut shown = String::new();
        let mut steps = 0;
        for piece in pieces {
            match piece {
                WildcardPiece::Text(text) => {
                    let text = text.to_lowercase();
                    steps += text.len();
                    written.push_str(&regex::escape(&text));
                    shown.push_str(&text);
                }
                WildcardPiece::Any => {
                    steps += ANY_LETTER + 2;
                    written.push_str("(?s:.)*");
                    shown.push('*');
                }
                WildcardPiece::One => {
                    steps += ANY_LETTER;
                    written.push_str("(?s:.)");
                    shown.push('?');
                }
            }
        }
        self.compile(&written, steps, &shown)
    }

    pub(super) fn regex(&mut self, expression: &str) -> Result<TermPattern, ApiError> {
        let shown = format!("/{expression}/");
        let (written, steps) =
            expression::translate(expression, MAX_STEPS).map_err(|reason| refuse(&shown, &reason))?;
        self.compile(&written, steps, &shown)
    }

    pub(super) fn fuzzy(&mut self, text: &str, distance: u8) -> Result<TermPattern, ApiError> {
        let letters = text.chars().count();
        self.letters += letters;
        if letters > MAX_FUZZY_WORD || self.letters > MAX_FUZZY_LETTERS {
            let reason = format!(
                "a fuzzy word has at most {MAX_FUZZY_WORD} letters, and all of them together {MAX_FUZZY_LETTERS}"
            );
            return Err(refuse(&format!("{text}~"), &reason));
        }
        // The automaton uses only the text of the term, so any column will do.
        let word = Term::from_field_text(Column::from_field_id(0), text);
        let fuzzy = FuzzyTermQuery::new(word, distance.min(2), true).automaton();
        let fuzzy = fuzzy.map_err(|error| ApiError::internal("making a fuzzy word's automaton", error))?;
        Ok(TermPattern::Fuzzy(Arc::new(fuzzy)))
    }

    fn compile(&mut self, written: &str, steps: usize, shown: &str) -> Result<TermPattern, ApiError> {
        self.steps += steps;
        if steps > MAX_STEPS || self.steps > MAX_ALL_STEPS {
            return Err(refuse(
                shown,
                "it is too large, alone or together with the other patterns of the search text. Simplify it",
            ));
        }
        // The syntax is generated and valid. Only the number of states can be too large.
        let regex = Regex::new(written)
            .map_err(|_| refuse(shown, "it is too complex for an automaton. Simplify it"))?;
        Ok(TermPattern::Regex(Arc::new(regex)))
    }
}

fn refuse(shown: &str, reason: &str) -> ApiError {
    let shown: String = shown.chars().take(100).collect();
    ApiError::parameter("search", format!("The pattern `{shown}` cannot be searched: {reason}."))
}
