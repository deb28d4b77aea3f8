//! Cuts lists to a byte budget, by whole items.

use serde_json::Value;

/// Returns how many items, from the first on, fit into this many bytes of JSON. Returns at least one,
/// unless the list is empty.
pub fn count_fitting(items: &[Value], bytes: usize) -> usize {
    let mut left = bytes;
    let fit = items.iter().take_while(|item| {
        // The extra byte is for the comma.
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
