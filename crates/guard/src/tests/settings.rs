//! Invalid and unenforceable settings are rejected.

use portcullis_metadata::ResourceUri;

use super::support::Setup;
use crate::GuardSettingsError;

/// A1: the metadata must list an authorization server.
#[tokio::test]
async fn an_authorization_server_is_required() {
    let mut setup = Setup::new();
    setup.settings.metadata.authorization_servers.clear();
    assert_eq!(setup.rejected(), GuardSettingsError::NoAuthorizationServer);
}

/// A5: `offline_access` is rejected in every scope setting.
#[tokio::test]
async fn offline_access_is_rejected() {
    let mut supported = Setup::new();
    supported.settings.metadata.scopes_supported =
        vec!["read".to_owned(), "offline_access".to_owned()];
    assert_eq!(
        supported.rejected(),
        GuardSettingsError::OfflineAccess("scopes_supported")
    );
    let required = Setup::new().require("offline_access");
    assert_eq!(
        required.rejected(),
        GuardSettingsError::OfflineAccess("required_scopes")
    );
    let route = Setup::new().route(&[], "/x", "offline_access");
    assert_eq!(
        route.rejected(),
        GuardSettingsError::OfflineAccess("a route")
    );
}

/// A1: metadata and verifier must belong to the protected resource.
#[tokio::test]
async fn metadata_and_verifier_of_another_resource_are_rejected() {
    let other = || ResourceUri::parse("https://api.example.com/other").unwrap();
    let mut document = Setup::new();
    document.settings.metadata.resource = other();
    assert!(matches!(
        document.rejected(),
        GuardSettingsError::ResourceMismatch {
            part: "metadata",
            ..
        }
    ));
    let mut verifier = Setup::new();
    verifier.settings.resource = other();
    verifier.settings.metadata.resource = other();
    assert!(matches!(
        verifier.rejected(),
        GuardSettingsError::ResourceMismatch {
            part: "verifier",
            ..
        }
    ));
}

/// A2: metadata that announces sender-constrained tokens is rejected.
#[tokio::test]
async fn unenforced_metadata_is_rejected() {
    let mut algorithms = Setup::new();
    algorithms
        .settings
        .metadata
        .dpop_signing_alg_values_supported = vec!["ES256".to_owned()];
    assert_eq!(
        algorithms.rejected(),
        GuardSettingsError::NotEnforced("dpop_signing_alg_values_supported")
    );
    let mut dpop = Setup::new();
    dpop.settings.metadata.dpop_bound_access_tokens_required = Some(true);
    assert_eq!(
        dpop.rejected(),
        GuardSettingsError::NotEnforced("dpop_bound_access_tokens_required")
    );
    let mut mtls = Setup::new();
    mtls.settings
        .metadata
        .tls_client_certificate_bound_access_tokens = Some(true);
    assert_eq!(
        mtls.rejected(),
        GuardSettingsError::NotEnforced("tls_client_certificate_bound_access_tokens")
    );
    assert_eq!(mtls.rejected().code(), "settings.not_enforced");
}

#[tokio::test]
async fn invalid_settings_are_rejected() {
    let plain = Setup::at("http://api.example.com/mcp");
    assert_eq!(plain.rejected().code(), "settings.insecure_resource");
    for realm in ["", "line\nbreak", "\u{e9}", &"x".repeat(257)] {
        let mut setup = Setup::new();
        setup.settings.realm = realm.to_owned();
        assert_eq!(setup.rejected(), GuardSettingsError::Realm, "{realm:?}");
    }
    let mut scope = Setup::new();
    scope.settings.metadata.scopes_supported = vec!["two words".to_owned()];
    assert_eq!(
        scope.rejected(),
        GuardSettingsError::ScopeName("two words".to_owned())
    );
}
