//! What differs between the kinds, and their settings.

use std::sync::Arc;

use http::header;
use portcullis_jose::Algorithm;
use portcullis_metadata::{Issuer, Secret};
use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};
use serde_json::json;
use tokio::runtime::Handle;

use crate::{
    IdentityProvider, ProviderKind, ProviderSettings, ProviderSettingsError,
    testing::{CLIENT, Fixture, NONCE, SECRET, parameter, tokens},
};

/// Returns why settings are refused.
pub(super) fn settings_error(
    kind: ProviderKind,
    issuer: &str,
    change: impl FnOnce(&mut ProviderSettings),
) -> Option<ProviderSettingsError> {
    let issuer = Issuer::parse(issuer).unwrap();
    let mut settings = ProviderSettings::new("idp", kind, issuer, CLIENT, Secret::new(SECRET));
    change(&mut settings);
    let network = Arc::new(ScriptedFetch::new());
    let clock = Arc::new(ManualClock::new());
    IdentityProvider::new(settings, network, clock, Handle::current()).err()
}

const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";

fn issuer_of(kind: ProviderKind) -> String {
    match kind {
        ProviderKind::Entra => format!("https://login.microsoftonline.com/{TENANT}/v2.0"),
        ProviderKind::Google => "https://accounts.google.com".to_owned(),
        ProviderKind::GitHub => "https://github.com".to_owned(),
        ProviderKind::Auth0 => "https://tenant.auth0.com/".to_owned(),
        _ => "https://idp.example/realm".to_owned(),
    }
}

/// Each kind asks for a refresh token in the way that its provider wants.
#[tokio::test]
async fn each_kind_requests_offline_access() {
    for (kind, scope, access_type) in [
        (
            ProviderKind::Entra,
            "openid profile email offline_access",
            None,
        ),
        (
            ProviderKind::Google,
            "openid profile email",
            Some("offline"),
        ),
        (
            ProviderKind::Okta,
            "openid profile email offline_access",
            None,
        ),
        (
            ProviderKind::Auth0,
            "openid profile email offline_access",
            None,
        ),
        (
            ProviderKind::Keycloak,
            "openid profile email offline_access",
            None,
        ),
        (ProviderKind::Cognito, "openid profile email", None),
        (
            ProviderKind::Oidc,
            "openid profile email offline_access",
            None,
        ),
    ] {
        let fixture = Fixture::new(kind, &issuer_of(kind));
        if kind != ProviderKind::Oidc {
            // These support PKCE whether or not their metadata lists it.
            fixture.publish(json!({ "code_challenge_methods_supported": null }));
        }
        let url = fixture.authorization_url().await;
        assert_eq!(parameter(&url, "scope").as_deref(), Some(scope), "{kind:?}");
        assert_eq!(
            parameter(&url, "access_type").as_deref(),
            access_type,
            "{kind:?}"
        );
        let prompt = matches!(kind, ProviderKind::Google | ProviderKind::Oidc).then_some("consent");
        assert_eq!(parameter(&url, "prompt").as_deref(), prompt, "{kind:?}");
        assert!(parameter(&url, "code_challenge").is_some(), "{kind:?}");
        assert_eq!(parameter(&url, "nonce").as_deref(), Some(NONCE), "{kind:?}");
    }
}

/// A provider is asked for consent only where `offline_access` depends on it.
#[tokio::test]
async fn consent_is_prompted_for_offline_access_alone() {
    let fixture = Fixture::new(ProviderKind::Oidc, "https://idp.example/realm");
    fixture.publish(json!({ "scopes_supported": ["openid", "email"] }));
    let url = fixture.authorization_url().await;
    assert_eq!(parameter(&url, "prompt"), None);
    let scopes: [Box<str>; 2] = ["openid".into(), "offline_access".into()];
    let fixture = Fixture::with(
        ProviderKind::Oidc,
        "https://idp.example/realm",
        |settings| {
            settings.scopes = scopes.to_vec();
        },
    );
    let url = fixture.authorization_url().await;
    assert_eq!(parameter(&url, "prompt").as_deref(), Some("consent"));
}

/// The default scopes are those that are requested.
#[tokio::test]
async fn default_scopes_are_requested() {
    for kind in ProviderKind::ALL {
        let url = Fixture::new(kind, &issuer_of(kind))
            .authorization_url()
            .await;
        let requested = parameter(&url, "scope").unwrap_or_default();
        assert_eq!(requested, kind.default_scopes().join(" "), "{kind:?}");
    }
}

/// Every OpenID kind signs a user in by the ID token alone, except where the user API completes it.
#[tokio::test]
async fn each_kind_signs_a_user_in() {
    for kind in ProviderKind::ALL {
        if kind == ProviderKind::GitHub {
            continue;
        }
        let fixture = Fixture::new(kind, &issuer_of(kind));
        let token = fixture
            .id_token()
            .claim("tid", TENANT)
            .claim("oid", "object-1");
        fixture.answer_with(&token);
        let user = json!({ "sub": "alice", "email": "a@example.com" }).to_string();
        fixture
            .network
            .serve(fixture.endpoint("userinfo"), 200, user);
        let identity = fixture.sign_in().await.unwrap();
        assert_eq!(&*identity.provider_subject, "alice", "{kind:?}");
        let asks = matches!(kind, ProviderKind::Okta | ProviderKind::Oidc);
        assert_eq!(identity.claims.contains_key("email"), asks, "{kind:?}");
    }
}

/// Google: the organization is a claim, and not a part of the subject.
#[tokio::test]
async fn the_hosted_domain_is_a_claim() {
    let fixture = Fixture::new(ProviderKind::Google, "https://accounts.google.com");
    fixture.answer_with(&fixture.id_token().claim("hd", "example.com"));
    let with_domain = fixture.sign_in().await.unwrap();
    assert_eq!(with_domain.claims["hd"], "example.com");
    fixture.answer_with(&fixture.id_token());
    let without = fixture.sign_in().await.unwrap();
    assert_eq!(without.subject, with_domain.subject);
    fixture.answer_with(&fixture.id_token().subject("bob"));
    assert_ne!(fixture.sign_in().await.unwrap().subject, without.subject);
}

/// PR4: the same identifiers at another provider are another user.
#[tokio::test]
async fn users_of_two_providers_differ() {
    let mut subjects = Vec::new();
    for (issuer, name) in [
        ("https://one.example", "idp"),
        ("https://two.example", "idp"),
        ("https://one.example", "other"),
    ] {
        let fixture = Fixture::with(ProviderKind::Keycloak, issuer, |settings| {
            settings.name = name.into();
        });
        fixture.answer_with(&fixture.id_token());
        subjects.push(fixture.sign_in().await.unwrap().subject);
    }
    subjects.sort();
    subjects.dedup();
    assert_eq!(subjects.len(), 3);
}

/// Tokens are revoked only where that does not end other sign-ins of the user.
#[tokio::test]
async fn tokens_are_revoked_where_it_is_safe() {
    for kind in ProviderKind::ALL {
        if kind == ProviderKind::GitHub {
            continue;
        }
        let fixture = Fixture::new(kind, &issuer_of(kind));
        let revocation = fixture.endpoint("revoke");
        fixture.network.serve(&revocation, 200, "");
        fixture
            .provider
            .revoke(&tokens(Some("at"), Some("rt")))
            .await
            .unwrap();
        let is_safe = matches!(
            kind,
            ProviderKind::Okta | ProviderKind::Cognito | ProviderKind::Oidc
        );
        assert_eq!(
            fixture.network.hits(&revocation),
            usize::from(is_safe),
            "{kind:?}"
        );
        if is_safe {
            assert_eq!(fixture.sent(&revocation, "token").as_deref(), Some("rt"));
            let has_header = fixture
                .last_request(&revocation)
                .headers
                .contains_key(header::AUTHORIZATION);
            assert_eq!(has_header, kind == ProviderKind::Cognito, "{kind:?}");
            let client = fixture.sent(&revocation, "client_id");
            assert_eq!(client.is_none(), has_header, "{kind:?}");
        }
    }
}

#[tokio::test]
async fn unusable_settings_are_refused() {
    use ProviderSettingsError as Error;
    let oidc = |change: fn(&mut ProviderSettings)| {
        settings_error(ProviderKind::Oidc, "https://idp.example", change)
    };
    assert_eq!(oidc(|_| ()), None);
    assert_eq!(oidc(|s| s.name = "".into()), Some(Error::Name));
    assert_eq!(oidc(|s| s.name = "a_b".into()), Some(Error::Name));
    assert_eq!(oidc(|s| s.name = "A".into()), Some(Error::Name));
    assert_eq!(oidc(|s| s.name = "a".repeat(33).into()), Some(Error::Name));
    assert_eq!(oidc(|s| s.client_id = "".into()), Some(Error::Credentials));
    assert_eq!(
        oidc(|s| s.client_secret = Secret::new("")),
        Some(Error::Credentials)
    );
    assert_eq!(oidc(|s| s.scopes = vec!["a b".into()]), Some(Error::Scope));
    assert_eq!(
        oidc(|s| s.scopes = vec!["email".into()]),
        Some(Error::NoOpenIdScope)
    );
    assert_eq!(
        oidc(|s| s.tenants = vec![TENANT.into()]),
        Some(Error::TenantsNotSupported)
    );
}

/// PR3: ID tokens are verified with the algorithms of the kind.
#[tokio::test]
async fn other_algorithms_are_refused() {
    for (kind, is_accepted) in [(ProviderKind::Keycloak, true), (ProviderKind::Okta, false)] {
        let fixture = Fixture::new(kind, &issuer_of(kind));
        let key = fixture.test_issuer.key_for(Algorithm::Es256);
        let keys = TestIssuer::jwks_of(&[&*key]);
        fixture.network.serve(fixture.endpoint("jwks"), 200, keys);
        let user = json!({ "sub": "alice" }).to_string();
        fixture
            .network
            .serve(fixture.endpoint("userinfo"), 200, user);
        let rejection = fixture.rejection(&fixture.id_token().signed_by(key)).await;
        let expected = (!is_accepted).then_some("provider.id_token_invalid");
        assert_eq!(rejection, expected, "{kind:?}");
    }
}
