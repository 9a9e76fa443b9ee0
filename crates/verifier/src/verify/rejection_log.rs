//! The log line of a rejected token: its claims beside the expected ones. It never contains the
//! token.

use std::fmt;

use portcullis_metadata::{EscapedText, IntrospectionResponse, UnverifiedClaims};

use super::Verifier;
use crate::error::VerifyError;

/// The maximum length of a claim in the log, in characters.
const MAX_CLAIM: usize = 256;
/// The maximum number of audiences in the log.
const MAX_AUDIENCES: usize = 8;

/// The claims of a token or of an introspection response, as far as they can be read.
#[derive(Default)]
pub(super) struct Claimed<'a> {
    issuer: Option<&'a str>,
    audience: Vec<&'a str>,
    scope: Option<String>,
}

impl<'a> Claimed<'a> {
    /// Returns the claims of a token. They are not verified.
    pub(super) fn of_token(claims: Option<&'a UnverifiedClaims<'_>>) -> Self {
        let Some(claims) = claims else {
            return Self::default();
        };
        Self {
            issuer: claims.iss(),
            audience: claims.audience().into_iter().flatten().collect(),
            scope: claims.scopes().ok().map(|scopes| scopes.to_string()),
        }
    }

    pub(super) fn of_response(response: &'a IntrospectionResponse) -> Self {
        Self {
            issuer: response.iss.as_deref(),
            audience: response
                .aud
                .iter()
                .flat_map(|audience| audience.iter())
                .collect(),
            scope: response.scope.as_ref().map(ToString::to_string),
        }
    }
}

/// Logs at level debug that a token is rejected, and only then calls `claimed`. A token that cannot
/// be verified now is not rejected.
pub(super) fn log<'a>(
    verifier: &Verifier,
    error: &VerifyError,
    claimed: impl FnOnce() -> Claimed<'a>,
) {
    if error.is_unavailable() || !tracing::event_enabled!(tracing::Level::DEBUG) {
        return;
    }
    let claimed = claimed();
    let issuers: Vec<&str> = verifier
        .issuers
        .iter()
        .map(|issuer| issuer.issuer().as_str())
        .collect();
    let resource = &verifier.settings.resource;
    let mut audiences = vec![resource.as_str()];
    for issuer in &verifier.issuers {
        let further = issuer.settings().audiences.iter();
        audiences.extend(
            further
                .filter(|further| further.resource == *resource)
                .map(|further| further.name.as_str()),
        );
    }
    tracing::debug!(
        deny.code = error.code(),
        token.issuer = claimed.issuer.map(escaped),
        issuer.expected = %List(&issuers),
        token.audience = %List(&claimed.audience),
        audience.expected = %List(&audiences),
        token.scope = claimed.scope.as_deref().map(escaped),
        "token rejected: {error}"
    );
}

/// Returns a claim as a field of a log line, escaped and bounded.
fn escaped(claim: &str) -> tracing::field::DisplayValue<EscapedText<'_>> {
    tracing::field::display(EscapedText::first(claim, MAX_CLAIM))
}

/// Prints texts of peers, escaped, bounded, and separated by spaces.
struct List<'a>(&'a [&'a str]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, text) in self.0.iter().take(MAX_AUDIENCES).enumerate() {
            let separator = if number > 0 { " " } else { "" };
            write!(f, "{separator}{}", EscapedText::first(text, MAX_CLAIM))?;
        }
        if self.0.len() > MAX_AUDIENCES {
            write!(f, " and {} more", self.0.len() - MAX_AUDIENCES)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fixture;

    /// Without the level debug, a rejected token costs the log no allocation, and its claims are
    /// not read.
    #[tokio::test]
    async fn a_line_is_built_only_for_the_log() {
        let fixture = Fixture::new();
        let claimed = || -> Claimed<'_> { panic!("the claims are read") };
        let counted =
            allocation_counter::measure(|| log(&fixture.verifier, &VerifyError::Expired, claimed));
        assert_eq!(counted.count_total, 0, "{counted:?}");
    }

    /// J8: claims are escaped and bounded.
    #[test]
    fn claims_are_bounded() {
        let many = ["a\u{202e}"; 20];
        let printed = List(&many).to_string();
        assert!(printed.starts_with(r"a\u{202e} a\u{202e} "), "{printed}");
        assert!(printed.ends_with(" and 12 more"), "{printed}");
        assert_eq!(
            List(&["é".repeat(1000).as_str()])
                .to_string()
                .chars()
                .count(),
            MAX_CLAIM
        );
        assert_eq!(List(&[]).to_string(), "");
    }
}
