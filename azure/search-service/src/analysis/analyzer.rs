//! An analyzer: character filters, a tokenizer and token filters, as one tokenizer of tantivy.

use std::collections::VecDeque;
use std::sync::Arc;

use tantivy::tokenizer::{Token, TokenStream};

use super::char_filter::{CharFilter, Edited, most_output};
use super::stage::Stage;
use super::step::{Shape, Step, Term};
use super::tokenizer::{Source, Tokenizer};

/// One token filter.
#[derive(Clone)]
pub(super) enum Filter {
    /// At most one word for a word. Analyzers of only these give words without keeping any.
    Step(Step),
    /// Starts a filter that keeps words.
    Stage(Arc<dyn Fn() -> Box<dyn Stage> + Send + Sync>),
}

impl Filter {
    pub(super) fn stage<S: Stage + Clone + Send + Sync + 'static>(stage: S) -> Self {
        Self::Stage(Arc::new(move || Box::new(stage.clone())))
    }
}

impl From<Shape> for Filter {
    fn from(shape: Shape) -> Self {
        Self::Step(Step::Shape(shape))
    }
}

impl From<Step> for Filter {
    fn from(step: Step) -> Self {
        Self::Step(step)
    }
}

#[derive(Clone)]
pub(super) struct Analyzer {
    char_filters: Vec<CharFilter>,
    tokenizer: Tokenizer,
    filters: Vec<Filter>,
    /// The text after each character filter: a stream reads the last one.
    edited: Vec<Edited>,
}

impl Analyzer {
    pub(super) fn new(char_filters: Vec<CharFilter>, tokenizer: Tokenizer, filters: Vec<Filter>) -> Self {
        Self { char_filters, tokenizer, filters, edited: Vec::new() }
    }
}

impl tantivy::tokenizer::Tokenizer for Analyzer {
    type TokenStream<'a> = Stream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> Stream<'a> {
        self.edited.clear();
        for filter in &self.char_filters {
            let input = self.edited.last().map_or(text, |edited| edited.text.as_str());
            // The limit is that of the text as it came: filters in a row do not multiply it.
            let edited = filter.apply(input, most_output(text.len()));
            self.edited.push(edited);
        }
        let cut = self.edited.last().map_or(text, |edited| edited.text.as_str());
        let source = Input { source: self.tokenizer.source(cut), edited: &self.edited, original: text };
        let filters = if self.filters.iter().all(|filter| matches!(filter, Filter::Step(_))) {
            Filters::Steps(&mut self.filters)
        } else {
            Filters::Stages(self.filters.iter_mut().map(Running::new).collect())
        };
        Stream { input: source, filters, term: Term::default() }
    }
}

/// An analyzer at work on one text.
pub(super) struct Stream<'a> {
    input: Input<'a>,
    filters: Filters<'a>,
    term: Term,
}

enum Filters<'a> {
    Steps(&'a mut [Filter]),
    Stages(Vec<Running<'a>>),
}

enum Running<'a> {
    Step(&'a mut Step),
    Stage { stage: Box<dyn Stage>, ready: VecDeque<Term>, finished: bool },
}

impl<'a> Running<'a> {
    fn new(filter: &'a mut Filter) -> Self {
        match filter {
            Filter::Step(step) => Self::Step(step),
            Filter::Stage(start) => Self::Stage { stage: start(), ready: VecDeque::new(), finished: false },
        }
    }
}

/// The words of the tokenizer, with their places in the text as it was given.
struct Input<'a> {
    source: Source<'a>,
    edited: &'a [Edited],
    original: &'a str,
}

impl Input<'_> {
    fn next(&mut self, term: &mut Term) -> bool {
        if !self.source.next(term) {
            return false;
        }
        let token = &mut term.token;
        for edited in self.edited.iter().rev() {
            token.offset_from = edited.start(token.offset_from);
            token.offset_to = edited.end(token.offset_to).max(token.offset_from);
        }
        true
    }
}

impl TokenStream for Stream<'_> {
    fn advance(&mut self) -> bool {
        match &mut self.filters {
            Filters::Steps(filters) => 'words: loop {
                if !self.input.next(&mut self.term) {
                    return false;
                }
                for filter in filters.iter_mut() {
                    if let Filter::Step(step) = filter
                        && !step.apply(&mut self.term)
                    {
                        continue 'words;
                    }
                }
                // Nobody can search for nothing.
                if !self.term.token.text.is_empty() {
                    return true;
                }
            },
            Filters::Stages(stages) => loop {
                if !pull(stages, &mut self.input, &mut self.term) {
                    return false;
                }
                if !self.term.token.text.is_empty() {
                    return true;
                }
            },
        }
    }

    fn token(&self) -> &Token {
        &self.term.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.term.token
    }
}

/// The next word after the last of these filters. Recursion is as deep as an analyzer has filters, which is limited.
fn pull(stages: &mut [Running<'_>], input: &mut Input<'_>, term: &mut Term) -> bool {
    let Some((last, before)) = stages.split_last_mut() else { return input.next(term) };
    match last {
        Running::Step(step) => loop {
            if !pull(before, input, term) {
                return false;
            }
            if step.apply(term) {
                return true;
            }
        },
        Running::Stage { stage, ready, finished } => loop {
            if ready.is_empty() {
                stage.more(ready);
            }
            if let Some(next) = ready.pop_front() {
                *term = next;
                return true;
            }
            if *finished {
                return false;
            }
            let mut next = Term::default();
            if !stage.is_closed() && pull(before, input, &mut next) {
                stage.push(next, input.original, ready);
            } else {
                *finished = true;
                stage.finish(ready);
            }
        },
    }
}
