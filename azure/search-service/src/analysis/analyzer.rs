//! Analyzers. An analyzer combines character filters, a tokenizer and token filters into
//! one tantivy tokenizer.

use std::collections::VecDeque;
use std::sync::Arc;

use tantivy::tokenizer::{Token, TokenStream};

use super::char_filter::{CharFilter, EditedText, max_output};
use super::filters::stage::FilterStage;
use super::filters::step::{AnalysisToken, FilterStep, TextTransform};
use super::tokenizer::{RunningTokenizer, Tokenizer};

/// One token filter.
#[derive(Clone)]
pub(super) enum TokenFilter {
    /// Produces at most one token for each input token. An analyzer with only such filters buffers no tokens.
    Step(FilterStep),
    /// Creates a filter that buffers tokens.
    Stage(Arc<dyn Fn() -> Box<dyn FilterStage> + Send + Sync>),
}

impl TokenFilter {
    pub(super) fn stage<S: FilterStage + Clone + Send + Sync + 'static>(stage: S) -> Self {
        Self::Stage(Arc::new(move || Box::new(stage.clone())))
    }
}

impl From<TextTransform> for TokenFilter {
    fn from(shape: TextTransform) -> Self {
        Self::Step(FilterStep::Shape(shape))
    }
}

impl From<FilterStep> for TokenFilter {
    fn from(step: FilterStep) -> Self {
        Self::Step(step)
    }
}

#[derive(Clone)]
pub(super) struct Analyzer {
    char_filters: Vec<CharFilter>,
    tokenizer: Tokenizer,
    filters: Vec<TokenFilter>,
    /// The text after each character filter. The token stream reads the last one.
    edited: Vec<EditedText>,
}

impl Analyzer {
    pub(super) fn new(
        char_filters: Vec<CharFilter>,
        tokenizer: Tokenizer,
        filters: Vec<TokenFilter>,
    ) -> Self {
        Self { char_filters, tokenizer, filters, edited: Vec::new() }
    }
}

impl tantivy::tokenizer::Tokenizer for Analyzer {
    type TokenStream<'a> = AnalyzerTokenStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> AnalyzerTokenStream<'a> {
        self.edited.clear();
        for filter in &self.char_filters {
            let input = self.edited.last().map_or(text, |edited| edited.text.as_str());
            // The limit depends on the length of the original text, so that several filters in a row do
            // not multiply it.
            let edited = filter.apply(input, max_output(text.len()));
            self.edited.push(edited);
        }
        let cut = self.edited.last().map_or(text, |edited| edited.text.as_str());
        let source =
            OffsetCorrectedTokens { source: self.tokenizer.start(cut), edited: &self.edited, original: text };
        let filters = if self.filters.iter().all(|filter| matches!(filter, TokenFilter::Step(_))) {
            TokenFilterChain::Steps(&mut self.filters)
        } else {
            TokenFilterChain::Stages(self.filters.iter_mut().map(RunningTokenFilter::new).collect())
        };
        AnalyzerTokenStream { input: source, filters, term: AnalysisToken::default() }
    }
}

/// The token stream of an analyzer for one text.
pub(super) struct AnalyzerTokenStream<'a> {
    input: OffsetCorrectedTokens<'a>,
    filters: TokenFilterChain<'a>,
    term: AnalysisToken,
}

enum TokenFilterChain<'a> {
    Steps(&'a mut [TokenFilter]),
    Stages(Vec<RunningTokenFilter<'a>>),
}

enum RunningTokenFilter<'a> {
    Step(&'a mut FilterStep),
    Stage { stage: Box<dyn FilterStage>, ready: VecDeque<AnalysisToken>, finished: bool },
}

impl<'a> RunningTokenFilter<'a> {
    fn new(filter: &'a mut TokenFilter) -> Self {
        match filter {
            TokenFilter::Step(step) => Self::Step(step),
            TokenFilter::Stage(start) => {
                Self::Stage { stage: start(), ready: VecDeque::new(), finished: false }
            }
        }
    }
}

/// The tokens of the tokenizer, with their offsets mapped back to the original text.
struct OffsetCorrectedTokens<'a> {
    source: RunningTokenizer<'a>,
    edited: &'a [EditedText],
    original: &'a str,
}

impl OffsetCorrectedTokens<'_> {
    fn next(&mut self, term: &mut AnalysisToken) -> bool {
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

impl TokenStream for AnalyzerTokenStream<'_> {
    fn advance(&mut self) -> bool {
        match &mut self.filters {
            TokenFilterChain::Steps(filters) => 'words: loop {
                if !self.input.next(&mut self.term) {
                    return false;
                }
                for filter in filters.iter_mut() {
                    if let TokenFilter::Step(step) = filter
                        && !step.apply(&mut self.term)
                    {
                        continue 'words;
                    }
                }
                // No query can match an empty token.
                if !self.term.token.text.is_empty() {
                    return true;
                }
            },
            TokenFilterChain::Stages(stages) => loop {
                if !next_token(stages, &mut self.input, &mut self.term) {
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

/// Reads the next token that leaves the last of these filters. Returns false at the end. The recursion
/// depth is the number of filters of the analyzer, which is limited.
fn next_token(
    stages: &mut [RunningTokenFilter<'_>],
    input: &mut OffsetCorrectedTokens<'_>,
    term: &mut AnalysisToken,
) -> bool {
    let Some((last, before)) = stages.split_last_mut() else { return input.next(term) };
    match last {
        RunningTokenFilter::Step(step) => loop {
            if !next_token(before, input, term) {
                return false;
            }
            if step.apply(term) {
                return true;
            }
        },
        RunningTokenFilter::Stage { stage, ready, finished } => loop {
            if ready.is_empty() {
                stage.emit_pending(ready);
            }
            if let Some(next) = ready.pop_front() {
                *term = next;
                return true;
            }
            if *finished {
                return false;
            }
            let mut next = AnalysisToken::default();
            if !stage.is_closed() && next_token(before, input, &mut next) {
                stage.push(next, input.original, ready);
            } else {
                *finished = true;
                stage.finish(ready);
            }
        },
    }
}
