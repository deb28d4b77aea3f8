//! Inserts texts into a text.

use serde_json::{Map, Value};

/// Inserts items into a text, at the given character offsets or at its end.
pub(super) fn merge(
    main: Option<Value>,
    items: Option<Value>,
    offsets: Option<Value>,
    before: &str,
    after: &str,
) -> Result<Map<String, Value>, String> {
    let strings = |value: Option<Value>| match value {
        None => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![text]),
        Some(Value::Array(list)) => {
            let texts = list.into_iter().filter(|value| !value.is_null());
            texts
                .map(|value| value.as_str().map(str::to_owned).ok_or("An item to insert is not text."))
                .collect()
        }
        Some(_) => Err("The items to insert are not a list of texts."),
    };
    let main = match main {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(_) => return Err("The text to merge into is not text.".to_owned()),
    };
    let items: Vec<String> = strings(items)?;
    let length = main.chars().count();
    let mut wanted: Vec<(usize, usize)> = match offsets {
        Some(Value::Array(offsets)) if offsets.len() == items.len() => {
            let place = |offset: &Value| offset.as_u64().and_then(|at| usize::try_from(at).ok());
            offsets
                .iter()
                .enumerate()
                .map(|(at, offset)| (place(offset).unwrap_or(length).min(length), at))
                .collect()
        }
        Some(Value::Array(_)) => {
            return Err("The number of offsets differs from the number of items to insert.".to_owned());
        }
        _ => (0..items.len()).map(|at| (length, at)).collect(),
    };
    wanted.sort_unstable();
    let mut merged = String::with_capacity(main.len());
    let mut places = vec![Value::Null; items.len()];
    let mut written = 0;
    let mut next = wanted.into_iter().peekable();
    let mut characters = main.chars();
    for at in 0..=length {
        while let Some((_, item)) = next.next_if(|(offset, _)| *offset == at) {
            let Some(text) = items.get(item) else { continue };
            merged.push_str(before);
            written += before.chars().count();
            if let Some(place) = places.get_mut(item) {
                *place = Value::from(written);
            }
            merged.push_str(text);
            merged.push_str(after);
            written += text.chars().count() + after.chars().count();
        }
        if let Some(character) = characters.next() {
            merged.push(character);
            written += 1;
        }
    }
    Ok(Map::from_iter([
        ("mergedText".to_owned(), Value::from(merged)),
        ("mergedOffsets".to_owned(), Value::Array(places)),
    ]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn merges_at_offsets_and_at_the_end() {
        let merged = merge(
            Some(json!("The brown fox jumps over the dog")),
            Some(json!(["quick", "lazy"])),
            Some(json!([3, 28])),
            " ",
            "",
        )
        .unwrap();
        assert_eq!(merged["mergedText"], "The quick brown fox jumps over the lazy dog");
        assert_eq!(merged["mergedOffsets"], json!([4, 35]));
        let end = merge(Some(json!("a")), Some(json!(["b", "c"])), None, "<", ">").unwrap();
        assert_eq!(end["mergedText"], "a<b><c>");
    }
}
