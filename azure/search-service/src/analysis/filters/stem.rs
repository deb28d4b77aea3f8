//! Maps the stemmer names of Azure AI Search to Snowball stemmers.

use frostem::{Algorithm, Stemmer};

use super::step::{FilterStep, TextTransform};
use crate::analysis::analyzer::TokenFilter;

/// Returns the stemmer for a language name of the `snowball` and `stemmer` filters. Returns `None` if
/// this service has no stemmer for it. Unknown names are rejected earlier.
pub(crate) fn named(language: &str) -> Option<TokenFilter> {
    let algorithm = match language {
        "arabic" => Algorithm::Arabic,
        "armenian" => Algorithm::Armenian,
        "basque" => Algorithm::Basque,
        "catalan" => Algorithm::Catalan,
        "czech" => Algorithm::Czech,
        "danish" => Algorithm::Danish,
        "dutch" => Algorithm::DutchPorter,
        "dutchKp" | "kp" => Algorithm::Dutch,
        "porter2" | "lightEnglish" => Algorithm::English,
        "english" | "porter" => Algorithm::Porter,
        "lovins" => Algorithm::Lovins,
        "finnish" | "lightFinnish" => Algorithm::Finnish,
        "french" | "lightFrench" | "minimalFrench" => Algorithm::French,
        "german" | "german2" | "lightGerman" | "minimalGerman" => Algorithm::German,
        "greek" => Algorithm::Greek,
        "hindi" => Algorithm::Hindi,
        "hungarian" | "lightHungarian" => Algorithm::Hungarian,
        "indonesian" => Algorithm::Indonesian,
        "irish" => Algorithm::Irish,
        "italian" | "lightItalian" => Algorithm::Italian,
        "norwegian" | "lightNorwegian" | "minimalNorwegian" => Algorithm::Norwegian,
        "portuguese" | "brazilian" | "lightPortuguese" | "minimalPortuguese" | "portugueseRslp" => {
            Algorithm::Portuguese
        }
        "romanian" => Algorithm::Romanian,
        "russian" | "lightRussian" => Algorithm::Russian,
        "spanish" | "lightSpanish" => Algorithm::Spanish,
        "swedish" | "lightSwedish" => Algorithm::Swedish,
        "turkish" => Algorithm::Turkish,
        "possessiveEnglish" => return Some(TextTransform::Possessive.into()),
        _ => return None,
    };
    Some(stem_filter(algorithm))
}

pub(crate) fn stem_filter(algorithm: Algorithm) -> TokenFilter {
    FilterStep::Stem(Stemmer::new(algorithm)).into()
}

pub(crate) const SNOWBALL: [&str; 22] = [
    "armenian",
    "basque",
    "catalan",
    "danish",
    "dutch",
    "english",
    "finnish",
    "french",
    "german",
    "german2",
    "hungarian",
    "italian",
    "kp",
    "lovins",
    "norwegian",
    "porter",
    "portuguese",
    "romanian",
    "russian",
    "spanish",
    "swedish",
    "turkish",
];

pub(crate) const STEMMER: [&str; 54] = [
    "arabic",
    "armenian",
    "basque",
    "brazilian",
    "bulgarian",
    "catalan",
    "czech",
    "danish",
    "dutch",
    "dutchKp",
    "english",
    "lightEnglish",
    "minimalEnglish",
    "possessiveEnglish",
    "porter2",
    "lovins",
    "finnish",
    "lightFinnish",
    "french",
    "lightFrench",
    "minimalFrench",
    "galician",
    "minimalGalician",
    "german",
    "german2",
    "lightGerman",
    "minimalGerman",
    "greek",
    "hindi",
    "hungarian",
    "lightHungarian",
    "indonesian",
    "irish",
    "italian",
    "lightItalian",
    "sorani",
    "latvian",
    "norwegian",
    "lightNorwegian",
    "minimalNorwegian",
    "lightNynorsk",
    "minimalNynorsk",
    "portuguese",
    "lightPortuguese",
    "minimalPortuguese",
    "portugueseRslp",
    "romanian",
    "russian",
    "lightRussian",
    "spanish",
    "lightSpanish",
    "swedish",
    "lightSwedish",
    "turkish",
];
