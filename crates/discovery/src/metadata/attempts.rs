use std::fmt;

use http::StatusCode;

use crate::fetch::ResponseExcerpt;

/// The failed attempts of a search, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attempts(Vec<Attempt>);

/// A failed attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The URL, or a description of an invalid one.
    pub place: String,
    /// Why it failed.
    pub outcome: AttemptOutcome,
    /// The response, if there is one.
    pub response: Option<Box<ResponseExcerpt>>,
}

/// Why an attempt failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// The response has this status.
    #[error("status {0}")]
    Status(StatusCode),
    /// The response is not JSON.
    #[error("not JSON")]
    NotJson,
    /// The URL is not an absolute URL.
    #[error("not an absolute URL")]
    NotAUrl,
}

impl Attempts {
    /// Adds a failed attempt.
    pub(super) fn add(
        &mut self,
        place: String,
        outcome: AttemptOutcome,
        response: Option<ResponseExcerpt>,
    ) {
        self.0.push(Attempt {
            place,
            outcome,
            response: response.map(Box::new),
        });
    }

    /// Returns whether no attempt has failed yet.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the attempts in order.
    pub fn iter(&self) -> impl Iterator<Item = &Attempt> {
        self.0.iter()
    }
}

/// Writes every URL with its outcome and response. A response that repeats the one before it is not
/// shown again.
impl fmt::Display for Attempts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = None;
        for (
            index,
            Attempt {
                place,
                outcome,
                response,
            },
        ) in self.0.iter().enumerate()
        {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{place} ({outcome}")?;
            match response {
                // Most servers have one page for everything that they do not have.
                Some(response) if shown == Some(response) => f.write_str(", the same response")?,
                Some(response) => write!(f, ", {response}")?,
                None => {}
            }
            f.write_str(")")?;
            shown = response.as_ref();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::SentSecrets;
    use http::HeaderMap;

    use super::*;

    #[test]
    fn a_repeated_response_is_shown_once() {
        let page = |text: &str| {
            Some(ResponseExcerpt::new(
                &HeaderMap::new(),
                text.as_bytes(),
                &SentSecrets::default(),
            ))
        };
        let mut attempts = Attempts::default();
        assert!(attempts.is_empty());
        attempts.add("a".into(), AttemptOutcome::NotAUrl, None);
        attempts.add(
            "b".into(),
            AttemptOutcome::Status(StatusCode::NOT_FOUND),
            page("no"),
        );
        attempts.add(
            "c".into(),
            AttemptOutcome::Status(StatusCode::GONE),
            page("no"),
        );
        attempts.add("d".into(), AttemptOutcome::NotJson, page("other"));
        assert_eq!(
            attempts.to_string(),
            "a (not an absolute URL), b (status 404 Not Found, no content type, body: no), \
             c (status 410 Gone, the same response), d (not JSON, no content type, body: other)"
        );
    }
}
