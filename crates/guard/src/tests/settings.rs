use portcullis_metadata::ResourceUri;

use super::support::Setup;
use crate::GuardSettingsError;

/// A1: a document without an authorization server is refused.
#[tokio::test]
async fn an_authorization_server_is_needed() {
    let mut setup = Setup::new();
    setup.settings.metadata.authorization_servers.clear();
    assert_eq!(setup.refused(), GuardSettingsError::NoAuthorizationServer);
}

/// A5: `offline_access` is refused wherever it could be served or challenged.
#[tokio::test]
async fn offline_access_is_refused() {
    let mut supported = Setup::new();
    supported.settings.metadata.scopes_supported = vec!["read".to_owned(), "offline_access".to_owned()];
    assert_eq!(supported.refused(), GuardSettingsError::OfflineAccess("scopes_supported"));
    let required = Setup::new().require("offline_access");
    assert_eq!(required.refused(), GuardSettingsError::OfflineAccess("required_scopes"));
    let route = Setup::new().route(&[], "/x", "offline_access");
    assert_eq!(route.refused(), GuardSettingsError::OfflineAccess("a route"));
}

/// A1: document and verifier have to be for the resource that the guard protects.
#[tokio::test]
async fn parts_for_another_resource_are_refused() {
    let other = || ResourceUri::parse("https://api.example.com/other").unwrap();
    let mut document = Setup::new();
    document.settings.metadata.resource = other();
    assert!(matches!(document.refused(), GuardSettingsError::ResourceMismatch { part: "metadata", .. }));
    let mut verifier = Setup::new();
    verifier.settings.resource = other();
    verifier.settings.metadata.resource = other();
    assert!(matches!(verifier.refused(), GuardSettingsError::ResourceMismatch { part: "verifier", .. }));
}

/// A2: members by which tokens would be bound to their sender are not announced.
#[tokio::test]
async fn what_is_not_enforced_is_not_announced() {
    let mut dpop = Setup::new();
    dpop.settings.metadata.dpop_signing_alg_values_supported = vec!["ES256".to_owned()];
    assert_eq!(dpop.refused().code(), "settings.not_enforced");
    let mut mtls = Setup::new();
    mtls.settings.metadata.tls_client_certificate_bound_access_tokens = Some(true);
    assert_eq!(mtls.refused().code(), "settings.not_enforced");
}

#[tokio::test]
async fn other_settings_that_cannot_be_used() {
    let plain = Setup::at("http://api.example.com/mcp");
    assert_eq!(plain.refused().code(), "settings.insecure_resource");
    for realm in ["", "line\nbreak", "\u{e9}", &"x".repeat(257)] {
        let mut setup = Setup::new();
        setup.settings.realm = realm.to_owned();
        assert_eq!(setup.refused(), GuardSettingsError::Realm, "{realm:?}");
    }
    let mut scope = Setup::new();
    scope.settings.metadata.scopes_supported = vec!["two words".to_owned()];
    assert_eq!(scope.refused(), GuardSettingsError::ScopeName("two words".to_owned()));
}
