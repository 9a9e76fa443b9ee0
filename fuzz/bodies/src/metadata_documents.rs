//! Feeds input to the parsers of metadata documents, claims and keys.

use portcullis_metadata::{
    AccessTokenClaims, AuthorizationServerMetadata, IntrospectionResponse, JwkSet,
    ProtectedResourceMetadata,
    authorization::{OAuthError, TokenResponse},
    client::{
        ClientIdMetadataDocument, ClientIdUrl, ClientRegistrationRequest,
        ClientRegistrationResponse, RegistrationError,
    },
    unverified_issuer,
};
use serde_json::Value;

/// Parses a JSON document with every parser. An accepted document does not change when it is
/// written and parsed again.
pub fn metadata_documents(data: &[u8]) {
    // A fraction may lose its last bit each time that it is parsed.
    if serde_json::from_slice(data).is_ok_and(|value: Value| has_fraction(&value)) {
        read_all(data);
        return;
    }
    assert_stable(
        data,
        ProtectedResourceMetadata::parse,
        ProtectedResourceMetadata::to_json,
    );
    assert_stable(
        data,
        AuthorizationServerMetadata::parse,
        AuthorizationServerMetadata::to_json,
    );
    assert_stable(data, JwkSet::parse, JwkSet::to_json);
    assert_stable(
        data,
        ClientRegistrationRequest::parse,
        ClientRegistrationRequest::to_json,
    );
    assert_stable(
        data,
        ClientRegistrationResponse::parse,
        ClientRegistrationResponse::to_json,
    );
    assert_stable(data, TokenResponse::parse, TokenResponse::to_json);
    assert_stable(
        data,
        IntrospectionResponse::parse,
        IntrospectionResponse::to_json,
    );
    assert_stable(data, OAuthError::parse, OAuthError::to_json);
    if let Some(client_id) = client_id(data) {
        assert_stable(
            data,
            |document| ClientIdMetadataDocument::parse(document, &client_id),
            |document| document.to_json(),
        );
    }
    if let Ok(claims) = AccessTokenClaims::parse(data) {
        assert_eq!(unverified_issuer(data), Ok(claims.iss));
    }
    let _ = RegistrationError::parse(data).map(|error| error.to_string());
}

/// Parses a document without comparing it.
fn read_all(data: &[u8]) {
    let _ = ProtectedResourceMetadata::parse(data);
    let _ = AuthorizationServerMetadata::parse(data);
    let _ = JwkSet::parse(data);
    let _ = ClientRegistrationRequest::parse(data);
    let _ = ClientRegistrationResponse::parse(data);
    let _ = TokenResponse::parse(data);
    let _ = IntrospectionResponse::parse(data);
    let _ = AccessTokenClaims::parse(data);
}

/// Asserts that an accepted document is the same after it was written and parsed again.
fn assert_stable<T, E: std::fmt::Debug>(
    data: &[u8],
    parse: impl Fn(&[u8]) -> Result<T, E>,
    write: impl Fn(&T) -> Vec<u8>,
) {
    let Ok(parsed) = parse(data) else { return };
    let written = write(&parsed);
    match parse(&written) {
        Ok(again) => assert_eq!(
            String::from_utf8_lossy(&write(&again)),
            String::from_utf8_lossy(&written)
        ),
        Err(error) => panic!("the written document cannot be parsed: {error:?}"),
    }
}

fn client_id(data: &[u8]) -> Option<ClientIdUrl> {
    let document: Value = serde_json::from_slice(data).ok()?;
    ClientIdUrl::parse_or_loopback_http(document.get("client_id")?.as_str()?).ok()
}

fn has_fraction(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(entries) => entries.iter().any(has_fraction),
        Value::Object(members) => members.values().any(has_fraction),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}
