//! Splits text into pages or sentences.

use bindpost_azure_search_model::ApiError;
use serde_json::{Map, Value};
use unicode_segmentation::UnicodeSegmentation;

use crate::indexers::definition::IndexerObject;

#[derive(Debug)]
pub(super) struct TextSplitter {
    /// `None` splits into sentences.
    pages: Option<PageSplitter>,
}

#[derive(Debug)]
struct PageSplitter {
    longest: usize,
    overlap: usize,
    /// The maximum number of pages. 0 means no limit.
    most: usize,
}

impl TextSplitter {
    pub(super) fn parse(given: &IndexerObject<'_>) -> Result<Self, ApiError> {
        let modes = [("pages", true), ("sentences", false)];
        if !given.choice("textSplitMode", &modes)?.unwrap_or(true) {
            return Ok(Self { pages: None });
        }
        let longest = given.integer_in("maximumPageLength", 300..=50_000)?.unwrap_or(5_000);
        let overlap = given.integer_in("pageOverlapLength", 0..=longest / 2)?.unwrap_or(0);
        let most = given.integer_in("maximumPagesToTake", 0..=usize::MAX)?.unwrap_or(0);
        Ok(Self { pages: Some(PageSplitter { longest, overlap, most }) })
    }

    pub(super) fn split(&self, text: &str) -> Map<String, Value> {
        let pieces = match &self.pages {
            Some(pages) => pages.split(text),
            None => text.split_sentence_bound_indices().map(|(at, piece)| (at, at + piece.len())).collect(),
        };
        let (mut texts, mut offsets, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        let (mut counted, mut characters) = (0, 0);
        for (start, end) in pieces {
            let piece = text.get(start..end).unwrap_or("");
            // Starts are ascending, so each character is counted once.
            characters += text.get(counted..start).unwrap_or("").chars().count();
            counted = start;
            texts.push(Value::from(piece));
            offsets.push(Value::from(characters));
            lengths.push(Value::from(piece.chars().count()));
        }
        let positions = (1..=texts.len()).map(Value::from).collect();
        [("textItems", texts), ("offsets", offsets), ("lengths", lengths), ("ordinalPositions", positions)]
            .into_iter()
            .map(|(name, list)| (name.to_owned(), Value::Array(list)))
            .collect()
    }
}

impl PageSplitter {
    /// Returns the byte ranges of pages. A page ends with a sentence if possible, otherwise with a word.
    fn split(&self, text: &str) -> Vec<(usize, usize)> {
        let mut pages = Vec::new();
        let (mut start, mut last_end) = (0, 0);
        while last_end < text.len() && (self.most == 0 || pages.len() < self.most) {
            let rest = text.get(start..).unwrap_or("");
            let end = match rest.char_indices().nth(self.longest) {
                None => text.len(),
                Some((window, _)) => {
                    let window = rest.get(..window).unwrap_or(rest);
                    // Each page must end after the previous one. Otherwise the loop would not end.
                    let fresh = |at: &usize| start + *at > last_end;
                    let sentence =
                        window.split_sentence_bound_indices().map(|(at, _)| at).filter(fresh).last();
                    let word = || {
                        let blank = window.rfind(char::is_whitespace)?;
                        let width = window.get(blank..)?.chars().next()?.len_utf8();
                        Some(blank + width).filter(fresh)
                    };
                    start + sentence.or_else(word).unwrap_or(window.len())
                }
            };
            pages.push((start, end));
            last_end = end;
            let back = text.get(start..end).unwrap_or("").char_indices().rev();
            start = match self.overlap.checked_sub(1).and_then(|last| back.map(|(at, _)| at).nth(last)) {
                Some(at) => start + at.max(1),
                None => end,
            };
            while !text.is_char_boundary(start) {
                start += 1;
            }
        }
        pages
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(text: &str, longest: usize, overlap: usize, most: usize) -> Map<String, Value> {
        TextSplitter { pages: Some(PageSplitter { longest, overlap, most }) }.split(text)
    }

    #[test]
    fn pages_end_with_sentences_then_words_then_anywhere() {
        let text = "One is. Two is. Three is.";
        assert_eq!(pages(text, 17, 0, 0)["textItems"], serde_json::json!(["One is. Two is. ", "Three is."]));
        assert_eq!(
            pages("alpha beta gamma", 12, 0, 0)["textItems"],
            serde_json::json!(["alpha beta ", "gamma"])
        );
        assert_eq!(pages("äääää", 2, 0, 0)["textItems"], serde_json::json!(["ää", "ää", "ä"]));
    }

    #[test]
    fn pages_overlap_and_have_offsets() {
        let split = pages("äbcdefghij", 4, 2, 0);
        assert_eq!(split["textItems"], serde_json::json!(["äbcd", "cdef", "efgh", "ghij"]));
        assert_eq!(split["offsets"], serde_json::json!([0, 2, 4, 6]));
        assert_eq!(split["lengths"], serde_json::json!([4, 4, 4, 4]));
        assert_eq!(pages("äbcdefghij", 4, 2, 2)["ordinalPositions"], serde_json::json!([1, 2]));
        assert_eq!(pages("", 4, 0, 0)["textItems"], serde_json::json!([]));
    }

    proptest::proptest! {
        #[test]
        fn pages_cover_the_text_and_stay_short(text in "[a-zäß .\n]{0,200}", longest in 2_usize..20, overlap in 0_usize..10) {
            let overlap = overlap.min(longest / 2);
            let found = PageSplitter { longest, overlap, most: 0 }.split(&text);
            let mut covered = 0;
            for (start, end) in found {
                assert!(start <= covered && end > covered);
                assert!(text[start..end].chars().count() <= longest);
                covered = end;
            }
            assert_eq!(covered, text.len());
        }
    }
}
