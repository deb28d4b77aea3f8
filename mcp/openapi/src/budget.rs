//! How much of an answer fits: whole items, never half of one.

use serde_json::Value;

/// How many of the items, from the first on, fit into so many bytes of JSON; one at least, if there is any.
pub fn count_fitting(items: &[Value], bytes: usize) -> usize {
    let mut left = bytes;
    let fit = items.iter().take_while(|item| {
        // One more for the comma.
        let size = item.to_string().len() + 1;
        let fits = size <= left;
        left = left.saturating_sub(size);
        fits
    });
    fit.count().max(usize::from(!items.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn whole_items_and_at_least_one() {
        let items = [json!("aaaa"), json!("bbbb"), json!("cccc")];
        assert_eq!(count_fitting(&items, 21), 3);
        assert_eq!(count_fitting(&items, 20), 2);
        assert_eq!(count_fitting(&items, 1), 1);
        assert_eq!(count_fitting(&[], 10), 0);
    }
}
