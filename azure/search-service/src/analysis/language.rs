//! The predefined analyzers of Azure AI Search.

use std::sync::{Arc, OnceLock};

use frostem::Algorithm;

use super::analyzer::{Analyzer, TokenFilter};
use super::filters::cjk::CjkBigramTokenFilter;
use super::filters::folding::ScriptNormalization;
use super::filters::stem;
use super::filters::step::{FilterStep, TextTransform};
use super::filters::stop_words::StopWords;
use super::tokenizer::{TokenRunKind, Tokenizer};

/// Lucene's maximum token length.
pub(super) const LONGEST_WORD: usize = 255;

pub(super) const STANDARD: Tokenizer = Tokenizer::Standard { max: LONGEST_WORD, join_runs: true };

/// All predefined analyzer names of the REST API, and `standard`, an alias of `standard.lucene`.
pub(super) const NAMES: [&str; 94] = [
    "ar.lucene",
    "ar.microsoft",
    "bg.lucene",
    "bg.microsoft",
    "bn.microsoft",
    "ca.lucene",
    "ca.microsoft",
    "cs.lucene",
    "cs.microsoft",
    "da.lucene",
    "da.microsoft",
    "de.lucene",
    "de.microsoft",
    "el.lucene",
    "el.microsoft",
    "en.lucene",
    "en.microsoft",
    "es.lucene",
    "es.microsoft",
    "et.microsoft",
    "eu.lucene",
    "fa.lucene",
    "fi.lucene",
    "fi.microsoft",
    "fr.lucene",
    "fr.microsoft",
    "ga.lucene",
    "gl.lucene",
    "gu.microsoft",
    "he.microsoft",
    "hi.lucene",
    "hi.microsoft",
    "hr.microsoft",
    "hu.lucene",
    "hu.microsoft",
    "hy.lucene",
    "id.lucene",
    "id.microsoft",
    "is.microsoft",
    "it.lucene",
    "it.microsoft",
    "ja.lucene",
    "ja.microsoft",
    "keyword",
    "kn.microsoft",
    "ko.lucene",
    "ko.microsoft",
    "lt.microsoft",
    "lv.lucene",
    "lv.microsoft",
    "ml.microsoft",
    "mr.microsoft",
    "ms.microsoft",
    "nb.microsoft",
    "nl.lucene",
    "nl.microsoft",
    "no.lucene",
    "pa.microsoft",
    "pattern",
    "pl.lucene",
    "pl.microsoft",
    "pt-BR.lucene",
    "pt-BR.microsoft",
    "pt-PT.lucene",
    "pt-PT.microsoft",
    "ro.lucene",
    "ro.microsoft",
    "ru.lucene",
    "ru.microsoft",
    "simple",
    "sk.microsoft",
    "sl.microsoft",
    "sr-cyrillic.microsoft",
    "sr-latin.microsoft",
    "standard",
    "standard.lucene",
    "standardasciifolding.lucene",
    "stop",
    "sv.lucene",
    "sv.microsoft",
    "ta.microsoft",
    "te.microsoft",
    "th.lucene",
    "th.microsoft",
    "tr.lucene",
    "tr.microsoft",
    "uk.microsoft",
    "ur.microsoft",
    "vi.microsoft",
    "whitespace",
    "zh-Hans.lucene",
    "zh-Hans.microsoft",
    "zh-Hant.lucene",
    "zh-Hant.microsoft",
];

/// Returns the predefined analyzer with this name. Each one is built once, and copies share
/// its stop word lists.
pub(super) fn named(name: &str) -> Option<Analyzer> {
    static MADE: [OnceLock<Analyzer>; NAMES.len()] = [const { OnceLock::new() }; NAMES.len()];
    let made = MADE.get(NAMES.binary_search(&name).ok()?)?;
    if let Some(analyzer) = made.get() {
        return Some(analyzer.clone());
    }
    let analyzer = make(name)?;
    Some(made.get_or_init(|| analyzer).clone())
}

fn make(name: &str) -> Option<Analyzer> {
    let letters = Tokenizer::Runs { of: TokenRunKind::Letters, lower: true, max: LONGEST_WORD };
    let (tokenizer, filters): (_, Vec<TokenFilter>) = match name {
        "standard" | "standard.lucene" => (STANDARD, vec![TextTransform::Lower.into()]),
        "standardasciifolding.lucene" => {
            (STANDARD, vec![TextTransform::Lower.into(), TextTransform::Fold.into()])
        }
        "keyword" => (Tokenizer::Whole { max: usize::MAX }, vec![]),
        "pattern" => (super::parts::default_split()?, vec![TextTransform::Lower.into()]),
        "simple" => (letters, vec![]),
        "stop" => (letters, vec![stop("english")?]),
        "whitespace" => {
            (Tokenizer::Runs { of: TokenRunKind::NotSpace, lower: false, max: LONGEST_WORD }, vec![])
        }
        _ => {
            let (code, _) = name.split_once('.')?;
            (tokenizer_of(code), filters_of(code))
        }
    };
    Some(Analyzer::new(Vec::new(), tokenizer, filters))
}

fn tokenizer_of(code: &str) -> Tokenizer {
    Tokenizer::Standard { max: LONGEST_WORD, join_runs: code != "th" }
}

/// Returns the filters of a language. `code` is the part of one of [`NAMES`] before the dot.
pub(super) fn filters_of(code: &str) -> Vec<TokenFilter> {
    let lower = || TokenFilter::from(TextTransform::Lower);
    let script = |script| TokenFilter::from(TextTransform::Script(script));
    let plain = |language: &str, algorithm: Option<Algorithm>| {
        let mut filters = vec![lower()];
        filters.extend(stop(language));
        filters.extend(algorithm.map(stem::stem_filter));
        filters
    };
    let with_elision = |articles: &[&str], language: &str, algorithm: Algorithm| {
        let mut filters = vec![elision(articles)];
        filters.extend(plain(language, Some(algorithm)));
        filters
    };
    match code {
        "en" => {
            let mut filters = vec![TextTransform::Possessive.into()];
            filters.extend(plain("english", Some(Algorithm::Porter)));
            filters
        }
        "da" => plain("danish", Some(Algorithm::Danish)),
        "nl" => plain("dutch", Some(Algorithm::DutchPorter)),
        "fi" => plain("finnish", Some(Algorithm::Finnish)),
        "fr" => with_elision(&FRENCH_ARTICLES, "french", Algorithm::French),
        "it" => with_elision(&ITALIAN_ARTICLES, "italian", Algorithm::Italian),
        "ca" => with_elision(&["d", "l", "m", "n", "s", "t"], "catalan", Algorithm::Catalan),
        "ga" => {
            let mut filters = vec![elision(&["d", "m", "b"]), TextTransform::LowerIrish.into()];
            filters.extend(stop("irish"));
            filters.push(stem::stem_filter(Algorithm::Irish));
            filters
        }
        "de" => {
            let mut filters = plain("german", None);
            filters.extend([script(ScriptNormalization::German), stem::stem_filter(Algorithm::German)]);
            filters
        }
        "hu" => plain("hungarian", Some(Algorithm::Hungarian)),
        "no" | "nb" => plain("norwegian", Some(Algorithm::Norwegian)),
        "pt-BR" | "pt-PT" => plain("portuguese", Some(Algorithm::Portuguese)),
        "ro" => plain("romanian", Some(Algorithm::Romanian)),
        "ru" => plain("russian", Some(Algorithm::Russian)),
        "es" => plain("spanish", Some(Algorithm::Spanish)),
        "sv" => plain("swedish", Some(Algorithm::Swedish)),
        "tr" => {
            let mut filters = vec![TextTransform::Apostrophe.into(), TextTransform::LowerTurkish.into()];
            filters.extend(stop("turkish"));
            filters.push(stem::stem_filter(Algorithm::Turkish));
            filters
        }
        "el" => {
            let mut filters = vec![lower(), script(ScriptNormalization::Greek)];
            filters.extend(stop("greek"));
            filters.push(stem::stem_filter(Algorithm::Greek));
            filters
        }
        "ar" => {
            let mut filters = plain("arabic", None);
            filters.extend([script(ScriptNormalization::Arabic), stem::stem_filter(Algorithm::Arabic)]);
            filters
        }
        "fa" => {
            let mut filters = plain("persian", None);
            filters.extend([script(ScriptNormalization::Arabic), script(ScriptNormalization::Persian)]);
            filters
        }
        "hi" => {
            let mut filters = plain("hindi", None);
            filters.extend([
                script(ScriptNormalization::Indic),
                script(ScriptNormalization::Hindi),
                stem::stem_filter(Algorithm::Hindi),
            ]);
            filters
        }
        "hy" => plain("armenian", Some(Algorithm::Armenian)),
        "eu" => plain("basque", Some(Algorithm::Basque)),
        "bg" => plain("bulgarian", None),
        "cs" => plain("czech", Some(Algorithm::Czech)),
        "gl" => plain("galician", None),
        "id" | "ms" => plain("indonesian", (code == "id").then_some(Algorithm::Indonesian)),
        "lv" => plain("latvian", None),
        "pl" => plain("polish", Some(Algorithm::Polish)),
        "et" => plain("", Some(Algorithm::Estonian)),
        "lt" => plain("", Some(Algorithm::Lithuanian)),
        "ta" => plain("", Some(Algorithm::Tamil)),
        "sr-cyrillic" | "sr-latin" => plain("", Some(Algorithm::Serbian)),
        "zh-Hans" | "zh-Hant" | "ja" | "ko" => {
            vec![
                script(ScriptNormalization::CjkWidth),
                lower(),
                TokenFilter::stage(CjkBigramTokenFilter::new(Vec::new(), false, false)),
            ]
        }
        "th" => vec![lower(), TokenFilter::stage(CjkBigramTokenFilter::new(Vec::new(), false, true))],
        _ => vec![lower()],
    }
}

pub(super) const FRENCH_ARTICLES: [&str; 13] =
    ["l", "m", "t", "qu", "n", "s", "j", "d", "c", "jusqu", "quoiqu", "lorsqu", "puisqu"];

const ITALIAN_ARTICLES: [&str; 23] = [
    "c", "l", "all", "dall", "dell", "nell", "sull", "coll", "pell", "gl", "agl", "dagl", "degl", "negl",
    "sugl", "un", "m", "t", "s", "v", "d", "quell", "quest",
];

pub(super) fn elision(articles: &[&str]) -> TokenFilter {
    TextTransform::Elision(Arc::new(articles.iter().map(|&article| article.to_owned()).collect())).into()
}

pub(super) fn stop(language: &str) -> Option<TokenFilter> {
    StopWords::named(language).map(|words| FilterStep::Stop { words, ignore_case: false }.into())
}
