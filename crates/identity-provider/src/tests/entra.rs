//! The sign-in at Microsoft Entra ID.

use portcullis_testkit::{TestIssuer, TokenBuilder};
use serde_json::json;

use crate::{
    OmittedClaim, ProviderError, ProviderKind, ProviderSettings, ProviderSettingsError,
    testing::{CLIENT, Fixture, NONCE, tokens},
    tests::kinds::settings_error,
};

const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";
const OTHER: &str = "11112222-bbbb-3333-cccc-4444dddd5555";
const FOREIGN: &str = "99998888-7777-6666-5555-444433332222";

fn issuer(tenant: &str) -> String {
    format!("https://login.microsoftonline.com/{tenant}/v2.0")
}

fn fixture() -> Fixture {
    Fixture::new(ProviderKind::Entra, &issuer(TENANT))
}

/// A provider for two tenants, with endpoints of the form that Entra has.
fn two_tenants() -> (Fixture, TestIssuer) {
    let fixture = Fixture::with(ProviderKind::Entra, &issuer(TENANT), |settings| {
        settings.tenants = vec![TENANT.into(), OTHER.into()];
    });
    let endpoint = |name| format!("https://login.microsoftonline.com/{TENANT}/oauth2/v2.0/{name}");
    fixture.publish(json!({
        "authorization_endpoint": endpoint("authorize"), "token_endpoint": endpoint("token"),
    }));
    let other = TestIssuer::new(&issuer(OTHER)).with_clock(fixture.clock.clone());
    fixture.network.publish(&other);
    (fixture, other)
}

fn user_of(test_issuer: &TestIssuer, tenant: &str) -> TokenBuilder {
    let token = test_issuer.token().typ("JWT").audience(CLIENT);
    token
        .without("client_id")
        .claim("nonce", NONCE)
        .claim("tid", tenant)
        .claim("oid", "object-1")
}

/// Lets the endpoint for all organizations answer with an ID token.
fn answer(fixture: &Fixture, token: &TokenBuilder) {
    let body = json!({ "access_token": "at", "token_type": "Bearer", "id_token": token.sign() });
    let url = "https://login.microsoftonline.com/organizations/oauth2/v2.0/token";
    fixture.network.serve(url, 200, body.to_string());
}

/// PR4: the object identifies the user, not `sub`, the e-mail address or the user name.
#[tokio::test]
async fn a_user_is_identified_by_tenant_and_object() {
    let fixture = fixture();
    let token = user_of(&fixture.test_issuer, TENANT);
    fixture.answer_with(&token);
    let identity = fixture.sign_in().await.unwrap();
    fixture.answer_with(
        &token
            .clone()
            .subject("another-pairwise-subject")
            .claim("email", "other@example.com")
            .claim("preferred_username", "other"),
    );
    let same = fixture.sign_in().await.unwrap();
    assert_eq!(same.subject, identity.subject);
    assert_eq!(&*same.provider_subject, "another-pairwise-subject");
    let other = token
        .claim("oid", "object-2")
        .claim("email", "other@example.com");
    fixture.answer_with(&other);
    assert_ne!(fixture.sign_in().await.unwrap().subject, identity.subject);
}

#[tokio::test]
async fn tokens_without_object_or_of_another_tenant_are_refused() {
    let fixture = fixture();
    let token = user_of(&fixture.test_issuer, TENANT);
    let invalid = Some("provider.id_token_invalid");
    let tenant = Some("provider.tenant_not_allowed");
    for (token, code) in [
        (token.clone().without("oid"), invalid),
        (token.clone().claim("oid", ""), invalid),
        (token.clone().claim("oid", 5), invalid),
        (token.clone().issuer(&issuer(OTHER)), invalid),
        (token.clone().without("tid"), tenant),
        (token.claim("tid", OTHER), tenant),
    ] {
        assert_eq!(fixture.rejection(&token).await, code, "{token:?}");
    }
}

/// ST6: with several tenants, users of the listed ones sign in, each with the keys of its own.
#[tokio::test]
async fn users_of_listed_tenants_sign_in() {
    let (fixture, other) = two_tenants();
    let url = fixture.authorization_url().await;
    assert_eq!(url.path(), "/organizations/oauth2/v2.0/authorize");
    answer(&fixture, &user_of(&fixture.test_issuer, TENANT));
    let first = fixture.sign_in().await.unwrap();
    answer(&fixture, &user_of(&other, OTHER));
    let second = fixture.sign_in().await.unwrap();
    // The same object in another tenant is another user.
    assert_ne!(first.subject, second.subject);
}

/// ST6, PR3: users of other tenants do not sign in, and one tenant cannot speak for another.
#[tokio::test]
async fn users_of_other_tenants_are_refused() {
    let (fixture, other) = two_tenants();
    let foreign = TestIssuer::new(&issuer(FOREIGN)).with_clock(fixture.clock.clone());
    fixture.network.publish(&foreign);
    let tenant = "provider.tenant_not_allowed";
    let invalid = "provider.id_token_invalid";
    for (token, code) in [
        (user_of(&foreign, FOREIGN), tenant),
        (user_of(&foreign, TENANT), tenant),
        (user_of(&foreign, TENANT).issuer(&issuer(TENANT)), invalid),
        (user_of(&other, TENANT), tenant),
        (user_of(&other, TENANT).issuer(&issuer(TENANT)), invalid),
        (user_of(&other, OTHER).without("iss"), tenant),
        (user_of(&other, OTHER).raw_payload("[]"), invalid),
    ] {
        answer(&fixture, &token);
        let error = fixture.sign_in().await.unwrap_err();
        assert_eq!(error.code(), code, "{token:?}");
    }
    assert_eq!(fixture.network.hits(foreign.endpoint("jwks")), 0);
}

/// PR6: a rule that needs groups fails if Entra left them out, in either form.
#[tokio::test]
async fn omitted_groups_are_marked() {
    let fixture = fixture();
    let token = user_of(&fixture.test_issuer, TENANT);
    for token in [
        token
            .clone()
            .claim("_claim_names", json!({ "groups": "src1" }))
            .claim(
                "_claim_sources",
                json!({ "src1": { "endpoint": "https://graph.example/getMemberObjects" } }),
            ),
        token.clone().claim("hasgroups", true),
        token.clone().claim("hasgroups", "true"),
        token
            .clone()
            .claim("hasgroups", true)
            .claim("groups", json!(["a"])),
    ] {
        fixture.answer_with(&token);
        let identity = fixture.sign_in().await.unwrap();
        assert_eq!(identity.claim("groups"), Err(OmittedClaim), "{token:?}");
        assert_eq!(identity.claim("/groups/0"), Err(OmittedClaim));
        for name in ["groups", "_claim_names", "_claim_sources", "hasgroups"] {
            assert!(!identity.claims.contains_key(name), "{name}");
        }
    }
    fixture.answer_with(
        &token
            .clone()
            .claim("hasgroups", false)
            .claim("groups", json!(["a"])),
    );
    let identity = fixture.sign_in().await.unwrap();
    assert_eq!(identity.claim("/groups/0"), Ok(Some(&json!("a"))));
    assert_eq!(identity.claim("roles"), Ok(None));
    fixture.answer_with(&token.claim("_claim_names", "groups"));
    let error = fixture.sign_in().await.unwrap_err();
    assert_eq!(error.code(), "provider.response_invalid");
}

/// A refresh repeats the scopes, and the user API is never asked: it does not know the object.
#[tokio::test]
async fn a_refresh_repeats_the_scopes() {
    let fixture = fixture();
    fixture.answer_with(&user_of(&fixture.test_issuer, TENANT).without("nonce"));
    let stored = tokens(Some("at-0"), Some("rt-0"));
    let response = fixture.provider.refresh(&stored).await.unwrap();
    let scope = fixture.sent(&fixture.endpoint("token"), "scope");
    assert_eq!(
        scope.as_deref(),
        Some("openid profile email offline_access")
    );
    assert!(fixture.provider.identify(&response, None).await.is_ok());
    assert_eq!(
        fixture.provider.check_with_access_token(&stored).await,
        Ok(None)
    );
    fixture.answer(200, json!({ "access_token": "at", "token_type": "Bearer" }));
    let response = fixture.provider.refresh(&stored).await.unwrap();
    let error = fixture
        .provider
        .identify(&response, None)
        .await
        .unwrap_err();
    assert_eq!(error, ProviderError::ResponseInvalid("id_token.missing"));
    assert!(error.is_temporary());
    assert_eq!(fixture.network.hits(fixture.endpoint("userinfo")), 0);
}

/// ST6: only the identifiers of tenants are accepted, so that `common` is not.
#[tokio::test]
async fn tenants_must_be_identifiers() {
    use ProviderSettingsError as Error;
    let of = |issuer: &str, tenants: &[&str]| {
        let tenants = tenants.iter().map(|tenant| Box::from(*tenant)).collect();
        settings_error(ProviderKind::Entra, issuer, |settings| {
            settings.tenants = tenants
        })
    };
    assert_eq!(of(&issuer(TENANT), &[]), None);
    assert_eq!(of(&issuer(TENANT), &[TENANT, OTHER]), None);
    for tenant in ["common", "organizations", "contoso.onmicrosoft.com"] {
        assert_eq!(
            of(&issuer(tenant), &[]),
            Some(Error::EntraIssuer),
            "{tenant}"
        );
        assert_eq!(
            of(&issuer(TENANT), &[TENANT, tenant]),
            Some(Error::Tenant),
            "{tenant}"
        );
    }
    assert_eq!(
        of(&issuer(TENANT), &[OTHER]),
        Some(Error::IssuerTenantNotListed)
    );
    let many = vec![TENANT; ProviderSettings::MAX_TENANTS + 1];
    assert_eq!(of(&issuer(TENANT), &many), Some(Error::TooManyTenants));
}
