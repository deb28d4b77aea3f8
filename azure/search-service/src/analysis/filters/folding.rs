//! Changes of single characters: case, ASCII folding, and Lucene's script normalizations.

use std::sync::LazyLock;

use tantivy::tokenizer::{AsciiFoldingFilter, RawTokenizer, TextAnalyzer, TokenStream as _};

/// A named script normalization of Lucene.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScriptNormalization {
    Arabic,
    German,
    Hindi,
    Indic,
    Persian,
    /// Replaces `ae`, `oe` and similar spellings by the Nordic letters.
    ScandinavianNormal,
    /// Replaces Nordic letters by `a` and `o`.
    ScandinavianFolding,
    Sorani,
    /// Replaces half-width Katakana by full-width Katakana, and full-width ASCII by ASCII.
    CjkWidth,
    /// Removes accents and uses one form of sigma.
    Greek,
}

/// Converts to lower case character by character, as Lucene does. One character never becomes two.
pub(crate) fn lower(text: &mut String) {
    if text.is_ascii() {
        text.make_ascii_lowercase();
    } else if text.chars().any(|c| lower_char(c) != c) {
        *text = text.chars().map(lower_char).collect();
    }
}

fn lower_char(c: char) -> char {
    if c.is_ascii() { c.to_ascii_lowercase() } else { c.to_lowercase().next().unwrap_or(c) }
}

pub(crate) fn upper(text: &mut String) {
    if text.is_ascii() {
        text.make_ascii_uppercase();
        return;
    }
    *text = text
        .chars()
        .map(|c| {
            let mut upper = c.to_uppercase();
            match (upper.next(), upper.next()) {
                (Some(one), None) => one,
                _ => c,
            }
        })
        .collect();
}

/// Converts to lower case by the Turkish rules for dotted and dotless `i`.
pub(crate) fn lower_turkish(text: &mut String) {
    if text.contains(['I', 'İ', '\u{307}']) {
        *text = text.replace("I\u{307}", "i").replace('I', "ı").replace('İ', "i").replace("i\u{307}", "i");
    }
    lower(text);
}

/// Converts to lower case by the Irish rules: a `t` or `n` before a capital vowel gets a hyphen.
pub(crate) fn lower_irish(text: &mut String) {
    let mut chars = text.chars();
    if let (Some(first @ ('n' | 't')), Some('A' | 'E' | 'I' | 'O' | 'U' | 'Á' | 'É' | 'Í' | 'Ó' | 'Ú')) =
        (chars.next(), chars.next())
    {
        let rest = text.get(1..).unwrap_or_default();
        *text = format!("{first}-{rest}");
    }
    lower(text);
}

/// Replaces letters, digits and symbols beyond ASCII by their ASCII equivalents, where they exist.
/// Returns whether the text changed.
pub(crate) fn fold(text: &mut String) -> bool {
    if text.is_ascii() {
        return false;
    }
    let mut folded = String::with_capacity(text.len());
    let mut changed = false;
    for c in text.chars() {
        match ascii_of(c) {
            Some(ascii) => {
                folded.push_str(ascii);
                changed = true;
            }
            None => folded.push(c),
        }
    }
    if changed {
        *text = folded;
    }
    changed
}

fn ascii_of(c: char) -> Option<&'static str> {
    /// The folding table of tantivy. Its filter only converts whole texts, so the table is built once
    /// by converting every character.
    static TABLE: LazyLock<Vec<(char, String)>> = LazyLock::new(|| {
        let known = || ('\u{a0}'..='\u{2fff}').chain('\u{a700}'..='\u{a7ff}').chain('\u{fb00}'..='\u{ffff}');
        let mut all = String::new();
        for c in known() {
            all.push(c);
            all.push('\n');
        }
        let mut analyzer = TextAnalyzer::builder(RawTokenizer::default()).filter(AsciiFoldingFilter).build();
        let mut stream = analyzer.token_stream(&all);
        let folded = stream.next().map(|token| token.text.clone()).unwrap_or_default();
        known()
            .zip(folded.lines())
            .filter(|(c, to)| !to.starts_with(*c))
            .map(|(c, to)| (c, to.to_owned()))
            .collect()
    });
    if c.is_ascii() {
        return None;
    }
    let table = &*TABLE;
    let index = table.binary_search_by_key(&c, |(known, _)| *known).ok()?;
    table.get(index).map(|(_, ascii)| ascii.as_str())
}

impl ScriptNormalization {
    pub(crate) fn apply(self, text: &mut String) {
        if text.is_ascii()
            && !matches!(self, Self::German | Self::ScandinavianNormal | Self::ScandinavianFolding)
        {
            return;
        }
        *text = match self {
            Self::German => german(text),
            Self::ScandinavianNormal => scandinavian(text, |c| match c {
                'ä' => 'æ',
                'Ä' => 'Æ',
                'ö' => 'ø',
                'Ö' => 'Ø',
                other => other,
            }),
            Self::ScandinavianFolding => scandinavian(text, |c| match c {
                'å' | 'ä' | 'æ' => 'a',
                'Å' | 'Ä' | 'Æ' => 'A',
                'ö' | 'ø' => 'o',
                'Ö' | 'Ø' => 'O',
                other => other,
            }),
            Self::Arabic => text.chars().filter_map(arabic).collect(),
            Self::Persian => text.chars().filter_map(persian).collect(),
            Self::Sorani => text.chars().filter_map(sorani).collect(),
            Self::Hindi => text.chars().filter_map(hindi).collect(),
            Self::Indic => text.chars().filter(|c| !matches!(c, '\u{200c}' | '\u{200d}')).collect(),
            Self::Greek => text.chars().map(greek).collect(),
            Self::CjkWidth => cjk_width(text),
        };
    }
}

/// Replaces `ß` by `ss`, umlauts by their base vowels, `ae` by `a`, `oe` by `o`, and `ue` by `u` unless
/// it follows `q` or a vowel.
fn german(text: &str) -> String {
    #[derive(PartialEq)]
    enum PrecedingLetter {
        /// A vowel that forms an umlaut with a following `e`.
        Umlaut,
        /// A letter after which `u` does not form an umlaut: another vowel or `q`.
        Vowel,
        Else,
    }
    let mut output = String::with_capacity(text.len());
    let mut before = PrecedingLetter::Else;
    for c in text.chars() {
        if c == 'e' && before == PrecedingLetter::Umlaut {
            before = PrecedingLetter::Vowel;
            continue;
        }
        before = match c {
            'a' | 'o' => PrecedingLetter::Umlaut,
            'u' if before == PrecedingLetter::Else => PrecedingLetter::Umlaut,
            'e' | 'i' | 'q' | 'u' | 'y' | 'ä' | 'ö' | 'ü' => PrecedingLetter::Vowel,
            _ => PrecedingLetter::Else,
        };
        match c {
            'ä' => output.push('a'),
            'ö' => output.push('o'),
            'ü' => output.push('u'),
            'ß' => output.push_str("ss"),
            other => output.push(other),
        }
    }
    output
}

fn scandinavian(text: &str, one: fn(char) -> char) -> String {
    let mut output = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let second = chars.peek().copied().unwrap_or_default();
        let joined = match (c, second) {
            ('a', 'a' | 'A' | 'o' | 'O') => Some('å'),
            ('A', 'a' | 'A' | 'o' | 'O') => Some('Å'),
            ('a', 'e' | 'E') => Some('æ'),
            ('A', 'e' | 'E') => Some('Æ'),
            ('o', 'e' | 'E' | 'o' | 'O') => Some('ø'),
            ('O', 'e' | 'E' | 'o' | 'O') => Some('Ø'),
            _ => None,
        };
        if joined.is_some() {
            chars.next();
        }
        output.push(one(joined.unwrap_or(c)));
    }
    output
}

fn arabic(c: char) -> Option<char> {
    match c {
        'آ' | 'أ' | 'إ' => Some('ا'),
        'ى' => Some('ي'),
        'ة' => Some('ه'),
        // Tatweel and the short vowel marks.
        '\u{640}' | '\u{64b}'..='\u{652}' => None,
        other => Some(other),
    }
}

fn persian(c: char) -> Option<char> {
    match c {
        'ی' | 'ے' => Some('ي'),
        'ک' => Some('ك'),
        '\u{6c0}' | '\u{6c1}' => Some('ه'),
        '\u{654}' => None,
        other => Some(other),
    }
}

fn sorani(c: char) -> Option<char> {
    match c {
        'ي' | 'ى' => Some('ی'),
        'ك' => Some('ک'),
        'ه' | 'ة' => Some('ە'),
        'ھ' => Some('ه'),
        '\u{640}' | '\u{64b}'..='\u{652}' | '\u{200c}' => None,
        other => Some(other),
    }
}

fn hindi(c: char) -> Option<char> {
    match c {
        'ँ' => Some('ं'),
        // Nukta, virama, and the marks that join or separate letters.
        '\u{93c}' | '\u{94d}' | '\u{200c}' | '\u{200d}' => None,
        '\u{929}' => Some('\u{928}'),
        '\u{931}' => Some('\u{930}'),
        '\u{934}' => Some('\u{933}'),
        '\u{958}' => Some('\u{915}'),
        '\u{959}' => Some('\u{916}'),
        '\u{95a}' => Some('\u{917}'),
        '\u{95b}' => Some('\u{91c}'),
        '\u{95c}' => Some('\u{921}'),
        '\u{95d}' => Some('\u{922}'),
        '\u{95e}' => Some('\u{92b}'),
        '\u{95f}' => Some('\u{92f}'),
        // Long vowels become short.
        '\u{906}' => Some('\u{905}'),
        '\u{908}' => Some('\u{907}'),
        '\u{90a}' => Some('\u{909}'),
        '\u{940}' => Some('\u{93f}'),
        '\u{942}' => Some('\u{941}'),
        other => Some(other),
    }
}

fn greek(c: char) -> char {
    match c {
        'ς' => 'σ',
        'ά' => 'α',
        'έ' => 'ε',
        'ή' => 'η',
        'ί' | 'ϊ' | 'ΐ' => 'ι',
        'ό' => 'ο',
        'ύ' | 'ϋ' | 'ΰ' => 'υ',
        'ώ' => 'ω',
        other => other,
    }
}

/// The full-width forms of half-width Katakana, from U+FF65 on.
const KATAKANA: [char; 59] = [
    '・', 'ヲ', 'ァ', 'ィ', 'ゥ', 'ェ', 'ォ', 'ャ', 'ュ', 'ョ', 'ッ', 'ー', 'ア', 'イ', 'ウ', 'エ', 'オ',
    'カ', 'キ', 'ク', 'ケ', 'コ', 'サ', 'シ', 'ス', 'セ', 'ソ', 'タ', 'チ', 'ツ', 'テ', 'ト', 'ナ', 'ニ',
    'ヌ', 'ネ', 'ノ', 'ハ', 'ヒ', 'フ', 'ヘ', 'ホ', 'マ', 'ミ', 'ム', 'メ', 'モ', 'ヤ', 'ユ', 'ヨ', 'ラ',
    'リ', 'ル', 'レ', 'ロ', 'ワ', 'ン', '\u{3099}', '\u{309a}',
];

fn cjk_width(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '！'..='～' => output.push(char::from_u32(c as u32 - 0xfee0).unwrap_or(c)),
            // A letter and the voicing mark after it become one full-width letter.
            '\u{ff9e}' | '\u{ff9f}' => {
                let step = if c == '\u{ff9e}' { 1 } else { 2 };
                match output.pop() {
                    Some('ウ') if step == 1 => output.push('ヴ'),
                    Some(base @ ('カ'..='ト' | 'ハ'..='ホ')) => {
                        output.push(char::from_u32(base as u32 + step).unwrap_or(base));
                    }
                    before => output.extend(before.into_iter().chain([c])),
                }
            }
            '\u{ff65}'..='\u{ff9d}' => {
                let index = c as usize - 0xff65;
                output.push(KATAKANA.get(index).copied().unwrap_or(c));
            }
            other => output.push(other),
        }
    }
    output
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(change: impl Fn(&mut String), text: &str) -> String {
        let mut text = text.to_owned();
        change(&mut text);
        text
    }

    #[test]
    fn case_changes_character_by_character() {
        assert_eq!(after(lower, "ÀΣ ΟΔΟΣ İ K"), "àσ οδοσ i k");
        assert_eq!(after(upper, "straße é"), "STRAßE É");
        assert_eq!(after(lower_turkish, "DIŞ İÇ"), "dış iç");
        assert_eq!(after(lower_irish, "nAthair"), "n-athair");
    }

    #[test]
    fn folding_gives_ascii_equivalents() {
        let folded = |text| after(|text| _ = fold(text), text);
        assert_eq!(folded("Café Ærø Straße ﬁn ①"), "Cafe AEro Strasse fin 1");
        assert_eq!(folded("Łódź Đà Nẵng"), "Lodz Da Nang");
        assert_eq!(folded("東京 привет"), "東京 привет");
    }

    #[test]
    fn scripts_are_normalized() {
        for (script, text, expected) in [
            (
                ScriptNormalization::German,
                "weißbier äpfel aepfel quelle neue fuer",
                "weissbier apfel apfel quelle neue fur",
            ),
            (ScriptNormalization::ScandinavianNormal, "blaabaer räksmörgås", "blåbær ræksmørgås"),
            (ScriptNormalization::ScandinavianFolding, "blaabaer räksmörgås", "blabar raksmorgas"),
            (ScriptNormalization::Arabic, "أحمدُ مكتبة", "احمد مكتبه"),
            (ScriptNormalization::Persian, "کی", "كي"),
            (ScriptNormalization::Greek, "οδός", "οδοσ"),
            (ScriptNormalization::CjkWidth, "Ｔｅｓｔ ｶﾞﾊﾟｱ", "Test ガパア"),
            (ScriptNormalization::Hindi, "हिन्दी", "हिनदि"),
        ] {
            assert_eq!(after(|text| script.apply(text), text), expected, "{script:?}");
        }
    }
}
