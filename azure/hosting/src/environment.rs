//! The environment of the process. No other file of this crate reads it.

/// Returns the value of a variable, if it is set and not empty. Invalid Unicode is replaced, so that errors
/// report an invalid value instead of a missing one.
pub fn variable(name: &str) -> Option<String> {
    let value = std::env::var_os(name)?.to_string_lossy().into_owned();
    (!value.is_empty()).then_some(value)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    #[test]
    fn only_this_file_reads_the_environment() {
        // In two parts, so that the search does not find this line.
        let reading = concat!("env", "::");
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let reads = fs::read_to_string(&path).unwrap().contains(reading);
                assert_eq!(reads, path.ends_with("environment.rs"), "{path:?}");
            }
        }
    }

    #[test]
    fn an_unset_variable_is_none() {
        assert_eq!(super::variable("BINDPOST_NO_SUCH_VARIABLE"), None);
        assert!(super::variable("PATH").is_some());
    }
}
