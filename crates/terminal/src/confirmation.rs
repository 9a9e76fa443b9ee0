//! [`is_yes`]: the user's answer to a question.

/// Whether the answer to a question with `[y/N]` is yes.
pub fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H4: anything but a plain yes is a no.
    #[test]
    fn only_a_yes_accepts() {
        for (answer, expected) in [
            ("y\n", true),
            ("YES \r\n", true),
            ("\n", false),
            ("n\n", false),
            ("yy\n", false),
            ("", false),
        ] {
            assert_eq!(is_yes(answer), expected, "{answer:?}");
        }
    }
}
