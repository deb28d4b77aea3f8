//! Phonetic codes of English words.

/// The supported encoders of `phonetic`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PhoneticEncoder {
    Metaphone,
    Soundex,
    RefinedSoundex,
}

impl PhoneticEncoder {
    /// Returns the code. It is empty for a text without letters from A to Z.
    pub(crate) fn encode(self, text: &str) -> String {
        let letters = || text.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_uppercase());
        let Some(first) = letters().next() else { return String::new() };
        let mut code = String::from(first);
        match self {
            Self::Metaphone => return MetaphoneEncoder::encode(letters().collect()),
            Self::Soundex => {
                let mut last = soundex(first);
                for letter in letters().skip(1) {
                    let digit = soundex(letter);
                    // H and W do not separate two letters of the same sound. Vowels do.
                    if matches!(letter, 'H' | 'W') {
                        continue;
                    }
                    if digit != '0' && digit != last {
                        code.push(digit);
                        if code.len() == 4 {
                            break;
                        }
                    }
                    last = digit;
                }
                while code.len() < 4 {
                    code.push('0');
                }
            }
            Self::RefinedSoundex => {
                let mut last = None;
                for letter in letters() {
                    let digit = refined(letter);
                    if last != Some(digit) {
                        code.push(digit);
                        last = Some(digit);
                    }
                }
            }
        }
        code
    }
}

/// Lawrence Philips' Metaphone, limited to four characters as in Lucene.
struct MetaphoneEncoder {
    letters: Vec<char>,
    code: String,
}

impl MetaphoneEncoder {
    const LONGEST: usize = 4;

    fn encode(letters: Vec<char>) -> String {
        let mut letters = letters;
        match letters.as_slice() {
            [single] => return single.to_string(),
            // The first of these letters is silent.
            ['A', 'E', ..] | ['G' | 'K' | 'P', 'N', ..] | ['W', 'R', ..] => _ = letters.remove(0),
            ['W', 'H', ..] => _ = letters.remove(1),
            ['X', ..] => letters.splice(..1, ['S']).for_each(drop),
            _ => {}
        }
        let mut metaphone = Self { letters, code: String::new() };
        let mut at = 0;
        while at < metaphone.letters.len() && metaphone.code.len() < Self::LONGEST {
            at += metaphone.step(at);
        }
        metaphone.code.truncate(Self::LONGEST);
        metaphone.code
    }

    fn is(&self, at: usize, one_of: &str) -> bool {
        self.letters.get(at).is_some_and(|letter| one_of.contains(*letter))
    }

    fn before(&self, at: usize, one_of: &str) -> bool {
        at.checked_sub(1).is_some_and(|before| self.is(before, one_of))
    }

    /// Appends the code of the letter at this index, if any. Returns how many letters it consumed.
    fn step(&mut self, at: usize) -> usize {
        const FRONT: &str = "EIY";
        const VOWELS: &str = "AEIOU";
        let Some(&letter) = self.letters.get(at) else { return 1 };
        if letter != 'C' && at.checked_sub(1).and_then(|before| self.letters.get(before)) == Some(&letter) {
            return 1;
        }
        let next = |one_of| self.is(at + 1, one_of);
        let after_next = |one_of| self.is(at + 2, one_of);
        let last = at + 1 >= self.letters.len();
        let sign = match letter {
            'A' | 'E' | 'I' | 'O' | 'U' if at > 0 => "",
            'B' if last && self.before(at, "M") => "",
            'C' if self.before(at, "S") && next(FRONT) => "",
            'C' if next("I") && after_next("A") => "X",
            'C' if next(FRONT) => "S",
            'C' if next("H") && (self.before(at, "S") || (at == 0 && after_next(VOWELS))) => "K",
            'C' if next("H") => "X",
            'D' if next("G") && after_next(FRONT) => {
                self.code.push('J');
                return 3;
            }
            'D' => "T",
            'G' if next("H") && !after_next(VOWELS) => "",
            'G' if at > 0 && next("N") => "",
            'G' if next(FRONT) && !self.before(at, "G") => "J",
            'H' if self.before(at, "CSPTG") || !next(VOWELS) => "",
            'K' if self.before(at, "C") => "",
            'C' | 'G' | 'K' | 'Q' => "K",
            'P' if next("H") => "F",
            'S' if next("H") || (next("I") && after_next("OA")) => "X",
            'T' if next("I") && after_next("OA") => "X",
            'T' if next("C") && after_next("H") => "",
            'T' if next("H") => "0",
            'V' => "F",
            'W' | 'Y' if !next(VOWELS) => "",
            'X' => "KS",
            'Z' => "S",
            _ => {
                self.code.push(letter);
                return 1;
            }
        };
        self.code.push_str(sign);
        1
    }
}

fn soundex(letter: char) -> char {
    match letter {
        'B' | 'F' | 'P' | 'V' => '1',
        'C' | 'G' | 'J' | 'K' | 'Q' | 'S' | 'X' | 'Z' => '2',
        'D' | 'T' => '3',
        'L' => '4',
        'M' | 'N' => '5',
        'R' => '6',
        _ => '0',
    }
}

fn refined(letter: char) -> char {
    match letter {
        'B' | 'P' => '1',
        'F' | 'V' => '2',
        'C' | 'K' | 'S' => '3',
        'G' | 'J' => '4',
        'Q' | 'X' | 'Z' => '5',
        'D' | 'T' => '6',
        'L' => '7',
        'M' | 'N' => '8',
        'R' => '9',
        _ => '0',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_sound_alike_have_one_code() {
        for (word, code) in [
            ("Robert", "R163"),
            ("Rupert", "R163"),
            ("Ashcraft", "A261"),
            ("Tymczak", "T522"),
            ("Pfister", "P236"),
            ("a", "A000"),
            ("東", ""),
        ] {
            assert_eq!(PhoneticEncoder::Soundex.encode(word), code, "{word}");
        }
        for (word, code) in [
            ("The", "0"),
            ("quick", "KK"),
            ("brown", "BRN"),
            ("fox", "FKS"),
            ("jumped", "JMPT"),
            ("over", "OFR"),
            ("lazy", "LS"),
            ("dogs", "TKS"),
            ("howl", "HL"),
            ("testing", "TSTN"),
            ("knight", "NT"),
            ("night", "NT"),
            ("Thumb", "0M"),
            ("physics", "FSKS"),
            ("a", "A"),
            ("edge", "EJ"),
            ("school", "SKL"),
            ("nation", "NXN"),
        ] {
            assert_eq!(PhoneticEncoder::Metaphone.encode(word), code, "{word}");
        }
        assert_eq!(PhoneticEncoder::RefinedSoundex.encode("testing"), "T6036084");
    }
}
