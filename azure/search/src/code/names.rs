//! The versions of an index behind aliases.
//!
//! A folder has one file for each logical index. In a service, a logical index may be an index behind an alias
//! of its name, such as `hotels-v3` behind `hotels`, or the version of an index that another alias points to.

use std::collections::{BTreeMap, BTreeSet};

/// The indexes of a service by the names that a folder uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct IndexNames {
    /// The current index of each logical name.
    current: BTreeMap<String, String>,
    /// Other versions of an index, with their logical names.
    others: BTreeMap<String, String>,
    /// The index of each alias.
    aliases: BTreeMap<String, String>,
    /// All names of indexes and aliases.
    taken: BTreeSet<String>,
}

impl IndexNames {
    pub(crate) fn new(indexes: &[String], aliases: BTreeMap<String, String>) -> IndexNames {
        let mut families: BTreeMap<&str, Vec<&String>> = BTreeMap::new();
        for index in indexes {
            families.entry(without_version(index)).or_default().push(index);
        }
        let mut names = IndexNames {
            taken: indexes.iter().chain(aliases.keys()).cloned().collect(),
            aliases,
            ..IndexNames::default()
        };
        for (base, members) in families {
            let is_target = |index: &&&String| names.aliases.values().any(|target| target == **index);
            let targets: Vec<&String> = members.iter().filter(is_target).copied().collect();
            match targets.as_slice() {
                // One version is in use, and the name of the family is its own or that of its alias.
                [one] if *one == base || members.len() > 1 || names.aliases.contains_key(base) => {
                    names.current.insert(base.to_owned(), (*one).clone());
                    let others = members.iter().filter(|index| *index != one);
                    names.others.extend(others.map(|index| ((*index).clone(), base.to_owned())));
                }
                // Without an alias that decides, each index is its own.
                _ => names.current.extend(members.iter().map(|index| ((*index).clone(), (*index).clone()))),
            }
        }
        names
    }

    /// Returns the name that the folder has for an index or an alias.
    pub(crate) fn logical<'a>(&'a self, name: &'a str) -> &'a str {
        let index = self.aliases.get(name).map_or(name, String::as_str);
        let current = self.current.iter().find(|(_, physical)| *physical == index);
        current
            .map(|(logical, _)| logical.as_str())
            .or(self.others.get(index).map(String::as_str))
            .unwrap_or(name)
    }

    /// Returns the index of a logical name, if the service has one.
    pub(crate) fn physical(&self, logical: &str) -> Option<&str> {
        self.current.get(logical).map(String::as_str)
    }

    /// Whether an index is the current one of its logical name.
    pub(crate) fn is_current(&self, index: &str) -> bool {
        self.current.values().any(|current| current == index)
    }

    /// Returns the versions that are not in use, with their logical names.
    pub(crate) fn other_versions(&self) -> impl Iterator<Item = (&str, &str)> {
        self.others.iter().map(|(index, logical)| (index.as_str(), logical.as_str()))
    }

    /// Returns the aliases of an index.
    pub(crate) fn aliases_of(&self, index: &str) -> Vec<&str> {
        let aliases = self.aliases.iter().filter(|(_, target)| *target == index);
        aliases.map(|(alias, _)| alias.as_str()).collect()
    }

    /// Returns the index of an alias.
    pub(crate) fn target(&self, alias: &str) -> Option<&str> {
        self.aliases.get(alias).map(String::as_str)
    }

    /// Whether an alias has the name of its logical index, so that it has no file.
    pub(crate) fn is_implicit(&self, alias: &str) -> bool {
        self.current.get(alias).is_some_and(|index| self.target(alias) == Some(index))
    }

    /// Returns all names of indexes and aliases.
    pub(crate) fn taken(&self) -> &BTreeSet<String> {
        &self.taken
    }

    /// Returns the first version name of an index that is not in use.
    pub(crate) fn first_free(&self, logical: &str) -> String {
        let mut number = 1_u32;
        loop {
            let name = format!("{logical}-v{number}");
            if number == u32::MAX || !self.taken.contains(&name) {
                return name;
            }
            number += 1;
        }
    }
}

/// Returns `hotels` for `hotels-v3`, and other names as they are.
fn without_version(name: &str) -> &str {
    match name.rsplit_once("-v") {
        Some((base, version))
            if !base.is_empty()
                && !version.is_empty()
                && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            base
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(indexes: &[&str], aliases: &[(&str, &str)]) -> IndexNames {
        let indexes: Vec<String> = indexes.iter().map(|index| (*index).to_owned()).collect();
        let aliases = aliases.iter().map(|(alias, index)| ((*alias).to_owned(), (*index).to_owned()));
        IndexNames::new(&indexes, aliases.collect())
    }

    #[test]
    fn versions_behind_an_alias_of_their_name_are_one_index() {
        let names = names(&["hotels-v2", "hotels-v3"], &[("hotels", "hotels-v3")]);
        assert_eq!(names.physical("hotels"), Some("hotels-v3"));
        assert_eq!(names.logical("hotels-v3"), "hotels");
        assert_eq!(names.logical("hotels"), "hotels");
        assert!(names.is_implicit("hotels"));
        assert_eq!(names.other_versions().collect::<Vec<_>>(), [("hotels-v2", "hotels")]);
        assert_eq!(names.first_free("hotels"), "hotels-v1");
    }

    #[test]
    fn a_single_version_behind_its_alias_has_the_name_of_the_alias() {
        let names = names(&["hotels-v1"], &[("hotels", "hotels-v1")]);
        assert_eq!((names.physical("hotels"), names.logical("hotels-v1")), (Some("hotels-v1"), "hotels"));
    }

    #[test]
    fn another_alias_decides_between_an_index_and_its_version() {
        let names = names(&["docs", "docs-v2"], &[("docs-live", "docs-v2")]);
        assert_eq!(names.physical("docs"), Some("docs-v2"));
        assert!(!names.is_implicit("docs-live"));
        assert_eq!(names.logical("docs-v2"), "docs");
        assert_eq!(names.other_versions().collect::<Vec<_>>(), [("docs", "docs")]);
    }

    #[test]
    fn without_an_alias_every_index_is_its_own() {
        let single = names(&["docs", "docs-v2", "rev-vista"], &[]);
        for name in ["docs", "docs-v2", "rev-vista"] {
            assert_eq!((single.physical(name), single.logical(name)), (Some(name), name));
        }
        let two = IndexNames::new(
            &["a".to_owned(), "a-v2".to_owned()],
            BTreeMap::from([("x".to_owned(), "a".to_owned()), ("y".to_owned(), "a-v2".to_owned())]),
        );
        assert_eq!((two.physical("a"), two.physical("a-v2")), (Some("a"), Some("a-v2")));
    }
}
