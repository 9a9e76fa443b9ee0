//! [`is_uuid`]: recognizes UUIDs.

/// Returns whether a string is a UUID in its 36-character form (RFC 9562 section 4), in any letter
/// case.
pub fn is_uuid(text: &str) -> bool {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    let is_group = |(group, length): (&str, usize)| {
        group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    text.len() == 36
        && text.split('-').count() == GROUPS.len()
        && text.split('-').zip(GROUPS).all(is_group)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C6: only the 36-character form is a UUID.
    #[test]
    fn uuids_are_recognized() {
        for text in [
            "11112222-bbbb-3333-cccc-4444dddd5555",
            "11112222-BBBB-3333-CCCC-4444DDDD5555",
        ] {
            assert!(is_uuid(text), "{text}");
        }
        for text in [
            "",
            "11112222bbbb3333cccc4444dddd5555",
            "{11112222-bbbb-3333-cccc-4444dddd5555}",
            "urn:uuid:11112222-bbbb-3333-cccc-4444dddd5555",
            "11112222-bbbb-3333-cccc-4444dddd555g",
            "11112222-bbbb-3333-cccc-4444dddd5555 ",
            "1111222-2bbbb-3333-cccc-4444dddd5555",
            "------------------------------------",
        ] {
            assert!(!is_uuid(text), "{text:?}");
        }
    }
}
