//! Names of tools, accepted by all clients and the same at every start.

use std::collections::HashSet;

use sha2::{Digest as _, Sha256};

/// The maximum length that all clients accept.
const LONGEST: usize = 64;

/// Gives each operation a unique name.
#[derive(Debug, Default)]
pub(crate) struct ToolNames {
    taken: HashSet<String>,
}

impl ToolNames {
    /// Returns the tool name for an operation id. It is the id itself where possible.
    pub(crate) fn unique_name(&mut self, id: &str) -> String {
        let mut plain = String::with_capacity(id.len());
        for character in id.chars() {
            match character {
                'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' => plain.push(character),
                _ if plain.ends_with('_') => {}
                _ => plain.push('_'),
            }
        }
        let plain = plain.trim_matches('_');
        let fits = !plain.is_empty() && plain.len() <= LONGEST;
        let mut name = if fits { plain.to_owned() } else { hashed(plain, id, 0) };
        let mut round = 0;
        while !self.taken.insert(name.clone()) {
            name = hashed(plain, id, round);
            round += 1;
        }
        name
    }
}

/// Returns the beginning of a name and a hash of the whole id.
fn hashed(plain: &str, id: &str, round: u32) -> String {
    let mut hash = Sha256::new();
    hash.update(id.as_bytes());
    if round > 0 {
        hash.update(round.to_be_bytes());
    }
    let hash: String = hash.finalize().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    let head = plain.get(..plain.len().min(LONGEST - 9)).unwrap_or_default().trim_end_matches(['_', '-']);
    let head = if head.is_empty() { "operation" } else { head };
    format!("{head}_{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_valid_unique_and_stable() {
        let ids = [
            "listPets",
            "list pets",
            "list/pets",
            "",
            "日本",
            "listPets",
            &"a".repeat(64),
            &"a".repeat(65),
            &format!("{}b", "a".repeat(64)),
        ];
        let name_all = || {
            let mut names = ToolNames::default();
            ids.map(|id| names.unique_name(id))
        };
        let names = name_all();
        assert_eq!(names, name_all());
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), ids.len(), "{names:?}");
        assert_eq!((names[0].as_str(), names[1].as_str()), ("listPets", "list_pets"));
        for name in &names {
            let valid = |b: u8| b.is_ascii_alphanumeric() || b"_-".contains(&b);
            assert!((1..=64).contains(&name.len()) && name.bytes().all(valid), "{name}");
        }
    }
}
