//! Encodes the name of a blob as a file name of the embedded store: unique, and readable where possible.
//!
//! Lower-case letters, digits, dashes, underscores and inner dots are kept. An upper-case letter becomes `+`
//! and its lower-case form. Anything else becomes `%` and two hexadecimal digits per byte. So
//! `Reports/2026 a.json` is the file `+reports%2f2026%20a.json`. File systems that ignore case or normalize
//! Unicode cannot confuse two names, and no name is a path, a hidden file or a Windows device.

use sha2::{Digest, Sha256};

/// The prefix of temporary files. No blob file starts with a dot.
pub(crate) const TEMPORARY: &str = ".tmp-";

/// The maximum length of a file name, below the 143 bytes that encrypting file systems allow.
const MAX_LENGTH: usize = 140;
/// How many bytes of a long name are kept. The rest is `~` and 64 digits.
const KEPT: usize = MAX_LENGTH - 65;

/// Returns the file name of a container or blob name. A long name is shortened and ends in its SHA-256.
pub(crate) fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    let device = is_device(name);
    for (index, byte) in name.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' if index > 0 => encoded.push(char::from(byte)),
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' if !device => encoded.push(char::from(byte)),
            b'A'..=b'Z' => {
                encoded.push('+');
                encoded.push(char::from(byte.to_ascii_lowercase()));
            }
            _ => encoded.push_str(&format!("%{byte:02x}")),
        }
    }
    if encoded.len() > MAX_LENGTH {
        let digest: String =
            Sha256::digest(name.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
        encoded.truncate(KEPT);
        encoded.push('~');
        encoded.push_str(&digest);
    }
    encoded
}

/// Returns whether Windows treats a file of this name, with any extension, as a device.
fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default();
    match stem.len() {
        3 => ["con", "prn", "aux", "nul"].contains(&stem),
        4 => {
            (stem.starts_with("com") || stem.starts_with("lpt"))
                && stem.ends_with(|c: char| c.is_ascii_digit())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    /// Decodes a short file name, which shows that the encoding is reversible.
    fn decode(file: &str) -> String {
        let mut bytes = Vec::new();
        let mut rest = file.bytes();
        while let Some(byte) = rest.next() {
            match byte {
                b'+' => bytes.push(rest.next().unwrap().to_ascii_uppercase()),
                b'%' => {
                    let digits = [rest.next().unwrap(), rest.next().unwrap()];
                    bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).unwrap(), 16).unwrap());
                }
                other => bytes.push(other),
            }
        }
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn names_stay_readable() {
        for (name, file) in [
            ("b.json", "b.json"),
            ("Reports/2026 a.json", "+reports%2f2026%20a.json"),
            ("../x", "%2e.%2fx"),
            ("%2e%2e", "%252e%252e"),
            (".hidden", "%2ehidden"),
            ("con", "%63on"),
            ("nul.txt", "%6eul.txt"),
            ("com1.a.b", "%63om1.a.b"),
            ("console", "console"),
            ("Con", "+con"),
            ("~", "%7e"),
            ("+a", "%2ba"),
            ("é", "%c3%a9"),
        ] {
            assert_eq!(encode(name), file);
            assert_eq!(decode(file), name);
        }
    }

    #[test]
    fn no_two_names_share_a_file_and_no_file_is_a_path() {
        let parts = [
            "a", "A", "+", "%", "/", ".", "..", "~", "\\", " ", "é", "e\u{301}", "%2f", "con", ":", "*", "\0",
        ];
        let mut names: Vec<String> = parts.iter().map(|part| part.to_string()).collect();
        for first in parts {
            for second in parts {
                for third in parts {
                    names.push(format!("{first}{second}{third}"));
                }
            }
        }
        for length in 130..=1024 {
            names.push("b".repeat(length));
            names.push("B".repeat(length));
            names.push(format!("{}c", "b".repeat(length)));
        }
        let mut files = HashMap::new();
        for name in names {
            let file = encode(&name);
            assert!(file.len() <= MAX_LENGTH && !file.is_empty(), "{file}");
            assert!(!file.starts_with('.') && !file.starts_with(TEMPORARY), "{file}");
            assert!(!file.contains(['/', '\\', '\0', ':', '*', ' ']), "{file}");
            assert_eq!(file, file.to_lowercase(), "two files must not differ only in case");
            if let Some(other) = files.insert(file.clone(), name.clone()) {
                assert_eq!(other, name, "both are {file}");
            }
        }
    }
}
