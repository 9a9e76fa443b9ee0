use serde_json::value::RawValue;

use crate::transport::json::items;

/// Appends `whole` to `filtered` without those items of `array`, a part of it, that `keep` rejects.
/// The rest is copied unchanged. Appends nothing and returns false if nothing is rejected, or the
/// part is not an array.
pub(super) fn filter_array(
    whole: &RawValue,
    array: &RawValue,
    filtered: &mut String,
    mut keep: impl FnMut(&RawValue) -> bool,
) -> bool {
    let Some(all) = items(array) else {
        return false;
    };
    let (whole, array) = (whole.get(), array.get());
    let start = offset(whole, array);
    let mut is_filtered = false;
    let mut any_kept = false;
    // The end of the kept items before the first rejected one.
    let mut kept_end = start + 1;
    for item in all {
        let item_text = item.get();
        match (keep(item), is_filtered) {
            (true, false) => kept_end = offset(whole, item_text) + item_text.len(),
            (true, true) => {
                if any_kept {
                    filtered.push(',');
                }
                filtered.push_str(item_text);
            }
            (false, false) => {
                filtered.reserve_exact(whole.len() + 1);
                filtered.push_str(&whole[..kept_end]);
                is_filtered = true;
                continue;
            }
            (false, true) => continue,
        }
        any_kept = true;
    }
    if is_filtered {
        filtered.push(']');
        filtered.push_str(&whole[start + array.len()..]);
    }
    is_filtered
}

/// The position of a part in the whole text.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    proptest! {
        #[test]
        fn the_rejected_items_are_removed(numbers in proptest::collection::vec(0_u8..4, 0..8), spaced in any::<bool>()) {
            let value = json!({ "a": [1], "b": numbers, "c": "d" });
            let text = if spaced { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let whole: &RawValue = serde_json::from_str(&text).unwrap();
            let array = crate::transport::json::member(whole, "b").unwrap();
            let mut filtered = String::new();
            let is_filtered = filter_array(whole, array, &mut filtered, |item| item.get() != "0");
            prop_assert_eq!(is_filtered, numbers.contains(&0));
            let kept: Vec<_> = numbers.into_iter().filter(|number| *number != 0).collect();
            let left = if is_filtered { filtered } else { text };
            prop_assert_eq!(serde_json::from_str::<Value>(&left).unwrap(), json!({ "a": [1], "b": kept, "c": "d" }));
        }
    }
}
