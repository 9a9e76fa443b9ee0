/// The maximum length of a user name in characters.
const MAX_CHARS: usize = 64;

/// Returns whether a string is a valid user name: 1 to 64 characters without control characters and
/// surrounding spaces.
pub(crate) fn is_user_name(name: &str) -> bool {
    !name.is_empty()
        && name.chars().count() <= MAX_CHARS
        && name.trim() == name
        && !name.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_names_are_validated() {
        for valid in ["alice", "Zoë Müller", &"a".repeat(64)] {
            assert!(is_user_name(valid), "{valid}");
        }
        for invalid in ["", " alice", "alice ", "a\nb", "\u{7f}", &"a".repeat(65)] {
            assert!(!is_user_name(invalid), "{invalid}");
        }
    }
}
