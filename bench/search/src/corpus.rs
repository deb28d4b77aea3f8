//! Documents and queries, made up: the same ones for the same numbers, on every machine.
use std::fmt::Write as _;

/// Words are drawn by Zipf's law from so many.
const VOCABULARY: usize = 30_000;
/// The most frequent words are those that no analyzer of English keeps.
const STOP_WORDS: [&str; 12] =
    ["the", "of", "and", "to", "a", "in", "is", "that", "it", "for", "was", "with"];
const BODY_WORDS: u64 = 100;
const CATEGORIES: u64 = 20;
const TAGS: u64 = 200;

pub const FIELDS: &str = r#"[
    {"name":"id","type":"Edm.String","key":true},
    {"name":"title","type":"Edm.String","searchable":true,"filterable":false,"sortable":false,"facetable":false,"analyzer":"en.lucene"},
    {"name":"body","type":"Edm.String","searchable":true,"filterable":false,"sortable":false,"facetable":false,"analyzer":"en.lucene"},
    {"name":"category","type":"Edm.String","searchable":false,"filterable":true,"facetable":true},
    {"name":"tags","type":"Collection(Edm.String)","searchable":false,"filterable":true,"facetable":true},
    {"name":"price","type":"Edm.Double","filterable":true,"sortable":true,"facetable":true},
    {"name":"rating","type":"Edm.Int32","filterable":true,"sortable":true,"facetable":true},
    {"name":"published","type":"Edm.DateTimeOffset","filterable":true,"sortable":true,"facetable":true},
    {"name":"inStock","type":"Edm.Boolean","filterable":true,"facetable":true}
]"#;

pub struct Corpus {
    words: Vec<String>,
    /// How probable it is to draw a word or one before it.
    cumulated: Vec<f64>,
}

pub struct Document {
    pub id: String,
    pub title: String,
    pub body: String,
    pub category: String,
    pub tags: Vec<String>,
    pub price: f64,
    pub rating: i64,
    /// Seconds since 1970.
    pub published: i64,
    pub in_stock: bool,
}

pub struct Query {
    pub words: String,
    pub category: String,
    /// Documents below it are wanted.
    pub price: f64,
}

impl Corpus {
    pub fn new() -> Self {
        let mut random = Random(1);
        let mut words: Vec<String> = STOP_WORDS.iter().map(|&word| word.to_owned()).collect();
        let mut known: std::collections::HashSet<String> = words.iter().cloned().collect();
        while words.len() < VOCABULARY {
            let word = random.word();
            if known.insert(word.clone()) {
                words.push(word);
            }
        }
        let mut sum = 0.0;
        let mut cumulated: Vec<f64> = (1..=VOCABULARY)
            .map(|rank| {
                sum += 1.0 / rank as f64;
                sum
            })
            .collect();
        cumulated.iter_mut().for_each(|chance| *chance /= sum);
        Self { words, cumulated }
    }

    pub fn document(&self, number: usize) -> Document {
        let mut random = Random::of(2, number);
        let title = self.text(&mut random, 6, 3);
        let body = self.text(&mut random, BODY_WORDS - 20, 41);
        Document {
            id: format!("doc-{number:08}"),
            title,
            body,
            category: format!("category {}", random.below(CATEGORIES)),
            tags: (0..random.below(4)).map(|_| format!("tag-{}", random.below(TAGS))).collect(),
            price: random.below(20_000) as f64 / 100.0,
            rating: 1 + random.below(5) as i64,
            published: 1_500_000_000 + random.below(200_000_000) as i64,
            in_stock: random.below(4) > 0,
        }
    }

    pub fn query(&self, number: usize) -> Query {
        let mut random = Random::of(3, number);
        let mut words = String::new();
        for at in 0..2 + random.below(2) {
            if at > 0 {
                words.push(' ');
            }
            // Frequent words and rare ones, but neither stop words nor those that hardly any document has.
            let rank = 20.0 * 250_f64.powf(random.chance());
            words += &self.words[rank as usize];
        }
        Query {
            words,
            category: format!("category {}", random.below(CATEGORIES)),
            price: 20.0 + random.below(160) as f64,
        }
    }

    /// From `least` words up to `spread - 1` more.
    fn text(&self, random: &mut Random, least: u64, spread: u64) -> String {
        let mut text = String::new();
        for at in 0..least + random.below(spread) {
            if at > 0 {
                text.push_str(if random.below(12) == 0 { ". " } else { " " });
            }
            let chance = random.chance();
            let rank = self.cumulated.partition_point(|&cumulated| cumulated < chance);
            text += &self.words[rank.min(VOCABULARY - 1)];
        }
        text
    }
}

impl Document {
    pub fn json(&self) -> String {
        let mut json = format!(
            r#"{{"id":"{}","title":"{}","body":"{}","category":"{}","tags":["#,
            self.id, self.title, self.body, self.category
        );
        for (at, tag) in self.tags.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let _ = write!(json, r#"{comma}"{tag}""#);
        }
        let _ = write!(
            json,
            r#"],"price":{},"rating":{},"published":"{}","inStock":{}}}"#,
            self.price,
            self.rating,
            date(self.published),
            self.in_stock
        );
        json
    }
}

impl Query {
    /// The body of a search request for it.
    pub fn json(&self) -> String {
        format!(
            r#"{{"search":"{}","filter":"category eq '{}' and price lt {:?}","top":10}}"#,
            self.words, self.category, self.price
        )
    }
}

/// As RFC 3339 has it. The days of the civil calendar are counted from March.
fn date(seconds: i64) -> String {
    let (days, second) = (seconds / 86_400 + 719_468, seconds % 86_400);
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn of(kind: u64, number: usize) -> Self {
        let mut random = Self((kind << 48) + number as u64);
        Self(random.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    /// From 0 to 1.
    fn chance(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn word(&mut self) -> String {
        const STARTS: [&str; 16] =
            ["b", "c", "d", "f", "g", "l", "m", "n", "p", "r", "s", "t", "v", "st", "tr", "ch"];
        const VOWELS: [&str; 7] = ["a", "e", "i", "o", "u", "ea", "ou"];
        const ENDS: [&str; 12] = ["", "", "n", "r", "st", "ing", "ed", "s", "ly", "tion", "ment", "er"];
        let mut word = String::new();
        for _ in 0..1 + self.below(2) {
            word += STARTS[self.below(16) as usize];
            word += VOWELS[self.below(7) as usize];
        }
        word + ENDS[self.below(12) as usize]
    }
}
