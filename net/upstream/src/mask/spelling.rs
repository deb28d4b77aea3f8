//! Recognises a text in every encoding that software uses: plain, escaped as in JSON and JavaScript,
//! percent-encoded, and as an HTML or XML entity. Characters can be encoded differently, and encodings
//! can be nested.
//!
//! Nothing is decoded. Each character is matched at all positions where the characters before it may end,
//! so the time is linear in the length of the text.

use std::cell::RefCell;

/// The maximum nesting of encodings: `%25252f`, `&amp;amp;#47;`.
const MOST_LAYERS: usize = 4;
/// The maximum number of backslashes before one character. Each of four layers of JSON doubles them.
const MOST_BACKSLASHES: usize = 16;
/// The maximum number of digits of a number, with leading zeros.
const MOST_DIGITS: usize = 8;

/// A text to recognise.
pub(super) struct SecretPattern {
    letters: Vec<char>,
    /// Whether the text is base64, in either of its alphabets.
    is_base64: bool,
    /// Whether the characters before and after the text contain some of its bits, as in base64.
    beside: (bool, bool),
    begins_with_backslash: bool,
    /// The bytes with which the text may begin, and those that may follow a plain first character.
    starts: [bool; 256],
    seconds: [bool; 256],
}

impl SecretPattern {
    pub(super) fn new(text: &str) -> SecretPattern {
        SecretPattern::build(text, false, (false, false))
    }

    pub(super) fn in_base64(text: &str, beside: (bool, bool)) -> SecretPattern {
        SecretPattern::build(text, true, beside)
    }

    fn build(text: &str, is_base64: bool, beside: (bool, bool)) -> SecretPattern {
        let letters: Vec<char> = text.chars().collect();
        let beginnings = |letter: Option<&char>| {
            let mut table = [false; 256];
            let Some(letter) = letter else { return table };
            let mut set = |byte: u8| {
                if let Some(place) = table.get_mut(usize::from(byte)) {
                    *place = true;
                }
            };
            b"%\\&".iter().copied().for_each(&mut set);
            if *letter == ' ' {
                set(b'+');
            }
            for letter in alike(*letter, is_base64) {
                set(letter.encode_utf8(&mut [0; 4]).as_bytes().first().copied().unwrap_or_default());
            }
            table
        };
        let starts = beginnings(letters.first());
        let mut seconds = beginnings(letters.get(1));
        for (byte, place) in seconds.iter_mut().enumerate() {
            // An invisible character may be in between.
            *place |= !(0x20..0x7f).contains(&byte);
        }
        let begins_with_backslash = letters.first() == Some(&'\\');
        SecretPattern { letters, is_base64, beside, begins_with_backslash, starts, seconds }
    }

    /// Returns the number of characters.
    pub(super) fn len(&self) -> usize {
        self.letters.len()
    }

    /// Returns the end of a match that begins at `at`. `from` is the start of the search.
    pub(super) fn end_at(&self, text: &[u8], from: usize, at: usize) -> Option<usize> {
        thread_local! {
            static PLACES: RefCell<(Vec<usize>, Vec<usize>)> = const { RefCell::new((Vec::new(), Vec::new())) };
        }
        let has = |table: &[bool; 256], at: usize| {
            text.get(at).is_some_and(|byte| table.get(usize::from(*byte)).copied().unwrap_or_default())
        };
        if !has(&self.starts, at) {
            return None;
        }
        // A match that begins within a run of backslashes also begins with the run, or near its end if
        // the run is long.
        let in_run = |at: usize| text.get(at) == Some(&b'\\');
        let is_inside = in_run(at) && at > from && at.checked_sub(1).is_some_and(in_run);
        if is_inside
            && (in_run(at + MOST_BACKSLASHES) || backslashes(text, at) < MOST_BACKSLASHES)
            && !self.begins_with_backslash
        {
            return None;
        }
        let is_plain = text.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric());
        if is_plain && !has(&self.seconds, at + 1) {
            return None;
        }
        PLACES.with_borrow_mut(|(places, next)| {
            places.clear();
            places.push(at);
            for (index, letter) in self.letters.iter().enumerate() {
                next.clear();
                for place in places.iter().copied() {
                    self.letter_at(text, place, *letter, next);
                    let visible = if index > 0 { skip_invisible(text, place) } else { place };
                    if visible != place {
                        self.letter_at(text, visible, *letter, next);
                    }
                }
                if next.is_empty() {
                    return None;
                }
                next.sort_unstable();
                next.dedup();
                std::mem::swap(places, next);
            }
            let end = places.last().copied()?;
            Some(if self.is_base64 { self.end_in_base64(text, end) } else { end })
        })
    }

    /// Adds all positions where this character may end.
    fn letter_at(&self, text: &[u8], at: usize, letter: char, ends: &mut Vec<usize>) {
        for letter in alike(letter, self.is_base64) {
            push_spelled_ends(text, at, letter, ends);
        }
    }

    /// Returns the start of a match, not before `from`.
    pub(super) fn start(&self, text: &[u8], from: usize, at: usize) -> usize {
        let before = at.checked_sub(1).filter(|before| self.beside.0 && *before >= from);
        before.filter(|before| is_base64(text, *before)).unwrap_or(at)
    }

    /// Returns the end of a match, with the character that shares bits with the next byte
    /// and with the padding.
    fn end_in_base64(&self, text: &[u8], end: usize) -> usize {
        let mut end = end + usize::from(self.beside.1 && is_base64(text, end));
        while text.get(end) == Some(&b'=') {
            end += 1;
        }
        end
    }
}

fn is_base64(text: &[u8], at: usize) -> bool {
    text.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte))
}

/// Returns the character and its equivalent in the other base64 alphabet.
fn alike(letter: char, is_base64: bool) -> impl Iterator<Item = char> {
    let other = match letter {
        '+' => Some('-'),
        '/' => Some('_'),
        _ => None,
    };
    std::iter::once(letter).chain(other.filter(|_| is_base64))
}

/// Adds all positions where a character ends that is written here in any encoding.
fn push_spelled_ends(text: &[u8], at: usize, letter: char, ends: &mut Vec<usize>) {
    let mut buffer = [0; 4];
    let bytes = letter.encode_utf8(&mut buffer).as_bytes();
    let Some(rest) = text.get(at..) else { return };
    if rest.starts_with(bytes) {
        ends.push(at + bytes.len());
    }
    match rest.first() {
        Some(b'+') if letter == ' ' => ends.push(at + 1),
        Some(b'%') => push_percent_encoded_ends(text, at, bytes, letter, ends),
        Some(b'\\') => push_escaped_ends(text, at, bytes, letter, ends),
        Some(b'&') => push_entity_ends(text, at, letter, ends),
        _ => {}
    }
}

/// Matches `%2B`, `%2b`, `%252B`, and `%u002B` as written by old JavaScript.
fn push_percent_encoded_ends(text: &[u8], at: usize, bytes: &[u8], letter: char, ends: &mut Vec<usize>) {
    let Some((first, others)) = bytes.split_first() else { return ends.push(at) };
    if text.get(at) != Some(&b'%') {
        return;
    }
    let mut digits = at + 1;
    for _ in 0..=MOST_LAYERS {
        if hexadecimal(text, digits, 2) == Some(u32::from(*first)) {
            match others {
                [] => ends.push(digits + 2),
                _ => push_percent_encoded_ends(text, digits + 2, others, letter, ends),
            }
        }
        let unit = text.get(digits).filter(|byte| byte.eq_ignore_ascii_case(&b'u'));
        if unit.is_some() && hexadecimal(text, digits + 1, 4) == Some(u32::from(letter)) {
            ends.push(digits + 5);
        }
        match text.get(digits..digits + 2) {
            Some(b"25") => digits += 2,
            _ => break,
        }
    }
}

/// Matches `\u002B`, `\x2b`, `\/`, `\n`, with more backslashes for JSON within JSON.
fn push_escaped_ends(text: &[u8], at: usize, bytes: &[u8], letter: char, ends: &mut Vec<usize>) {
    let run = backslashes(text, at);
    if letter == '\\' {
        ends.extend([2, 4, 8, 16].into_iter().filter(|count| *count <= run).map(|count| at + count));
    }
    let behind = at + run;
    let Some(kind) = text.get(behind) else { return };
    if text.get(behind..).is_some_and(|rest| rest.starts_with(bytes)) {
        ends.push(behind + bytes.len());
    }
    let stands_for = match kind {
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'0' => '\0',
        b'x' if hexadecimal(text, behind + 1, 2) == Some(u32::from(letter)) => return ends.push(behind + 3),
        b'u' | b'U' => return push_code_point_ends(text, behind + 1, letter, ends),
        _ => return,
    };
    if stands_for == letter {
        ends.push(behind + 1);
    }
}

/// Matches `002B`, `{2B}`, and two of them for a UTF-16 surrogate pair.
fn push_code_point_ends(text: &[u8], at: usize, letter: char, ends: &mut Vec<usize>) {
    if text.get(at) == Some(&b'{') {
        if let Some((number, end)) = number(text, at + 1, 16)
            && number == u32::from(letter)
            && text.get(end) == Some(&b'}')
        {
            ends.push(end + 1);
        }
        return;
    }
    let mut units = [0; 2];
    let mut at = at;
    for (index, unit) in letter.encode_utf16(&mut units).iter().enumerate() {
        if index > 0 {
            let run = backslashes(text, at);
            match text.get(at + run) {
                Some(b'u' | b'U') if run > 0 => at += run + 1,
                _ => return,
            }
        }
        if hexadecimal(text, at, 4) != Some(u32::from(*unit)) {
            return;
        }
        at += 4;
    }
    ends.push(at);
}

/// Matches `&#43;`, `&#x2b;`, `&plus;`, `&amp;#43;`, with or without the semicolon.
fn push_entity_ends(text: &[u8], at: usize, letter: char, ends: &mut Vec<usize>) {
    let mut at = at + 1;
    for _ in 0..=MOST_LAYERS {
        let Some(rest) = text.get(at..) else { return };
        let mut with_semicolon = |end: usize| {
            ends.push(end + usize::from(text.get(end) == Some(&b';')));
        };
        if let Some(b'#') = rest.first() {
            let is_hexadecimal = rest.get(1).is_some_and(|byte| byte.eq_ignore_ascii_case(&b'x'));
            let read = if is_hexadecimal { number(text, at + 2, 16) } else { number(text, at + 1, 10) };
            if let Some((_, end)) = read.filter(|(number, _)| *number == u32::from(letter)) {
                with_semicolon(end);
            }
        }
        for name in names(letter).iter().filter(|name| rest.starts_with(name.as_bytes())) {
            with_semicolon(at + name.len());
        }
        match rest.starts_with(b"amp;") {
            true => at += 4,
            false => return,
        }
    }
}

/// Returns the HTML entity names of an ASCII character.
fn names(letter: char) -> &'static [&'static str] {
    match letter {
        '\t' => &["Tab"],
        '\n' => &["NewLine"],
        ' ' => &["nbsp"],
        '!' => &["excl"],
        '"' => &["quot", "QUOT"],
        '#' => &["num"],
        '$' => &["dollar"],
        '%' => &["percnt"],
        '&' => &["amp", "AMP"],
        '\'' => &["apos"],
        '(' => &["lpar"],
        ')' => &["rpar"],
        '*' => &["ast", "midast"],
        '+' => &["plus"],
        ',' => &["comma"],
        '.' => &["period"],
        '/' => &["sol"],
        ':' => &["colon"],
        ';' => &["semi"],
        '<' => &["lt", "LT"],
        '=' => &["equals"],
        '>' => &["gt", "GT"],
        '?' => &["quest"],
        '@' => &["commat"],
        '[' => &["lsqb", "lbrack"],
        '\\' => &["bsol"],
        ']' => &["rsqb", "rbrack"],
        '^' => &["Hat"],
        '_' => &["lowbar", "UnderBar"],
        '`' => &["grave"],
        '{' => &["lcub", "lbrace"],
        '|' => &["vert", "verbar", "VerticalLine"],
        '}' => &["rcub", "rbrace"],
        _ => &[],
    }
}

/// Returns the number of backslashes at this position.
fn backslashes(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default().iter();
    rest.take(MOST_BACKSLASHES).take_while(|byte| **byte == b'\\').count()
}

/// Parses exactly this many hexadecimal digits.
fn hexadecimal(text: &[u8], at: usize, digits: usize) -> Option<u32> {
    let digits = text.get(at..at + digits)?.iter();
    digits
        .map(|digit| char::from(*digit).to_digit(16))
        .try_fold(0, |number, digit| Some(number * 16 + digit?))
}

/// Parses a number and returns it with its end.
fn number(text: &[u8], at: usize, radix: u32) -> Option<(u32, usize)> {
    let digits = text.get(at..)?.iter().map_while(|digit| char::from(*digit).to_digit(radix));
    let (mut number, mut end) = (0_u32, at);
    for digit in digits.take(MOST_DIGITS) {
        number = number.checked_mul(radix)?.checked_add(digit)?;
        end += 1;
    }
    (end > at).then_some((number, end))
}

/// Skips control characters and invisible characters.
fn skip_invisible(text: &[u8], at: usize) -> usize {
    let mut at = at;
    while let Some(rest) = text.get(at..) {
        let length = match rest {
            [0..=0x1f | 0x7f, ..] => 1,
            [first @ 0xc2..=0xf4, ..] => {
                let length = if *first < 0xe0 {
                    2
                } else if *first < 0xf0 {
                    3
                } else {
                    4
                };
                let letter = rest.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok());
                match letter.and_then(|letter| letter.chars().next()) {
                    Some(letter) if is_invisible(letter) => length,
                    _ => break,
                }
            }
            _ => break,
        };
        at += length;
    }
    at
}

/// Returns whether a character is invisible.
pub fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}
