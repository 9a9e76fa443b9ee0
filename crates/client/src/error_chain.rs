//! [`error_chain`]: an error with its causes.

use std::error::Error;

/// Returns an error's message and those of its causes, separated by colons. A message that the text
/// already ends with is not repeated.
///
/// Does not escape the messages: [`EscapedText`](portcullis_metadata::EscapedText) does, for those
/// that quote a peer.
pub fn error_chain(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        next = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("{text}")]
    struct Failure {
        text: &'static str,
        source: Option<Box<Self>>,
    }

    fn failure(texts: &[&'static str]) -> Failure {
        let (text, causes) = texts.split_first().unwrap();
        Failure {
            text,
            source: (!causes.is_empty()).then(|| Box::new(failure(causes))),
        }
    }

    #[test]
    fn each_cause_is_named_once() {
        assert_eq!(error_chain(&failure(&["a"])), "a");
        assert_eq!(error_chain(&failure(&["a", "b", "c"])), "a: b: c");
        assert_eq!(error_chain(&failure(&["a: b", "b", "c"])), "a: b: c");
    }
}
