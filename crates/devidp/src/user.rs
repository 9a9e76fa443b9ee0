const MAX_CHARS: usize = 64;

/// Whether a text can be a user name: 1 to 64 characters, no control characters, no space around it.
pub(crate) fn is_user_name(text: &str) -> bool {
    !text.is_empty() && text.chars().count() <= MAX_CHARS && text.trim() == text && !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_short_and_visible() {
        for good in ["alice", "Zoë Müller", &"a".repeat(64)] {
            assert!(is_user_name(good), "{good}");
        }
        for bad in ["", " alice", "alice ", "a\nb", "\u{7f}", &"a".repeat(65)] {
            assert!(!is_user_name(bad), "{bad}");
        }
    }
}
