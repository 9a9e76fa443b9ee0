//! Feeds input to the challenge parser.

use portcullis_metadata::{
    BearerChallenge, BearerChallengeBuilder, BearerError, Challenge, Scopes, parse_challenges,
};
use url::Url;

/// The maximum length of a header value that the parser reads.
const MAX_HEADER: usize = 64 * 1024;

/// Parses each line as one `WWW-Authenticate` value. Parsed challenges do not change when they are
/// written and parsed again. The builder returns exactly one challenge with the given parameters.
pub fn challenge(data: &[u8]) {
    if let Ok(challenges) = parse_challenges(data.split(|byte| *byte == b'\n')) {
        let _ = BearerChallenge::from_challenges(&challenges);
        let written = challenges.iter().map(write).collect::<Vec<_>>().join(", ");
        // Writing adds quotes and separators, which may make a large input longer than the parser's
        // limit.
        if written.len() <= MAX_HEADER {
            assert_eq!(parse_challenges([written.as_bytes()]), Ok(challenges));
        }
    }
    build_from(&String::from_utf8_lossy(data));
}

/// Returns the challenge as a header value.
fn write(challenge: &Challenge) -> String {
    if let Some(text) = challenge.token68() {
        return format!("{} {text}", challenge.scheme());
    }
    let quote = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"");
    let parameters: Vec<String> = challenge
        .params()
        .map(|(name, value)| format!("{name}=\"{}\"", quote(value)))
        .collect();
    format!("{} {}", challenge.scheme(), parameters.join(", "))
}

/// Builds a challenge from this text, and parses it.
fn build_from(text: &str) {
    let Ok(mut metadata) = Url::parse("https://mcp.example/") else {
        return;
    };
    metadata.set_path(text);
    metadata.set_query(Some(text));
    let scope = Scopes::parse(text).unwrap_or_default();
    let value = BearerChallengeBuilder::new(text, &metadata)
        .scope(&scope)
        .error(BearerError::InvalidToken, text)
        .build();
    if value.len() > MAX_HEADER {
        return;
    }
    let read = parse_challenges([value.as_bytes()]);
    let Ok([challenge]) = read.as_deref() else {
        panic!("one challenge was built: {read:?}")
    };
    let names = challenge
        .params()
        .map(|(name, _)| name)
        .filter(|name| *name != "scope");
    assert!(names.eq(["realm", "resource_metadata", "error", "error_description"]));
    assert_eq!(
        challenge.param("resource_metadata"),
        Some(metadata.as_str())
    );
    assert_eq!(
        challenge.param("scope").map(Scopes::parse),
        (!scope.is_empty()).then_some(Ok(scope))
    );
}
