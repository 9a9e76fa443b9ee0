//! ID tokens and user information as each provider has them.

use portcullis_devidp::{Provider, UserSettings};
use serde_json::{Value, json};

use crate::{sign_in::*, support::*};

const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";

/// Starts a server that imitates a provider, with a user who has groups.
async fn start(provider: Provider, claims: Value) -> Server {
    app_server(|settings| {
        settings.provider = Some(provider);
        settings.users = vec![UserSettings {
            name: "alice".to_owned(),
            claims: claims.as_object().unwrap().clone(),
        }];
    })
    .await
}

/// Returns the claims of the ID token and those of the userinfo endpoint for a sign-in.
async fn user(server: &Server, scope: &str) -> (Value, Value) {
    let response = sign_in(server, &[("scope", scope), ("nonce", "n")]).await;
    let claims = id_token(server, &response).await;
    let token = format!("Bearer {}", response.text("access_token"));
    let info = server
        .send(
            http::Method::GET,
            &server.path("userinfo"),
            &[("authorization", &token)],
            "",
        )
        .await
        .json();
    assert_eq!(claims["sub"], info["sub"]);
    assert_eq!(claims["aud"], APP);
    assert_eq!(claims["nonce"], "n");
    (claims, info)
}

fn absent(value: &Value, members: &[&str]) {
    for member in members {
        assert_eq!(value.get(member), None, "{member}: {value}");
    }
}

/// K1: Entra ID: the tenant, the object, and groups by identifier.
#[tokio::test]
async fn entra_identifies_tenant_object_and_groups() {
    let admins = "0a1b2c3d-0000-4444-8888-0123456789ab";
    for provider in [Provider::Entra, Provider::EntraV1] {
        let server = start(provider, json!({ "groups": [admins, "staff"] })).await;
        let (claims, info) = user(&server, "openid profile email").await;
        assert_eq!(
            claims["iss"],
            format!("http://{}/{TENANT}/v2.0", server.address)
        );
        assert_eq!(claims["tid"], TENANT);
        assert_eq!(claims["ver"], "2.0");
        assert_eq!(claims["nbf"], claims["iat"]);
        assert_eq!(claims["preferred_username"], "alice");
        assert_eq!(claims["email"], "alice@example.com");
        assert_eq!(claims["oid"].as_str().unwrap().len(), TENANT.len());
        assert_eq!(claims["groups"][0], admins);
        assert_eq!(claims["groups"][1].as_str().unwrap().len(), TENANT.len());
        absent(&claims, &["auth_time", "at_hash", "email_verified", "azp"]);
        absent(&info, &["groups", "oid", "tid", "preferred_username"]);

        let (claims, _) = user(&server, "openid").await;
        assert_eq!(claims["tid"], TENANT);
        absent(&claims, &["oid", "name", "preferred_username", "email"]);
    }
}

/// K1: Entra ID: a user of another tenant has its issuer.
#[tokio::test]
async fn entra_names_the_tenant_in_the_issuer() {
    let other = "11112222-0000-cccc-1111-dddd2222eeee";
    let server = start(
        Provider::Entra,
        json!({ "tid": other, "oid": "the-object" }),
    )
    .await;
    let (claims, _) = user(&server, "openid profile").await;
    assert_eq!(claims["tid"], other);
    assert_eq!(claims["oid"], "the-object");
    assert_eq!(
        claims["iss"],
        format!("http://{}/{other}/v2.0", server.address)
    );
}

/// K1: Google: `hd` for users of Google Workspace, and `azp`.
#[tokio::test]
async fn google_names_the_hosted_domain() {
    for (email, domain) in [
        ("alice@corp.example", json!("corp.example")),
        ("alice@gmail.com", Value::Null),
    ] {
        let server = start(
            Provider::Google,
            json!({ "email": email, "groups": ["staff"] }),
        )
        .await;
        let (claims, info) = user(&server, "openid email").await;
        assert_eq!(claims["hd"], domain);
        assert_eq!(info["hd"], domain);
        assert_eq!(claims["azp"], APP);
        assert_eq!(claims["email"], email);
        assert_eq!(claims["email_verified"], true);
        absent(
            &claims,
            &["auth_time", "sid", "groups", "preferred_username"],
        );
        absent(&info, &["groups", "azp"]);
    }
}

/// K1: Okta, Auth0, Keycloak and Authentik add and omit their own claims.
#[tokio::test]
async fn other_providers_have_their_own_claims() {
    let acr = "goauthentik.io/providers/oauth2/default";
    for (provider, present, missing) in [
        (
            Provider::Okta,
            json!({ "ver": 1, "amr": ["pwd"], "preferred_username": "alice", "email": "alice@example.com" }),
            &["azp", "email_verified"][..],
        ),
        (
            Provider::Auth0,
            json!({ "nickname": "alice", "email_verified": true }),
            &["azp", "auth_time", "at_hash", "preferred_username"],
        ),
        (
            Provider::Keycloak,
            json!({ "typ": "ID", "azp": APP, "acr": "1", "preferred_username": "alice" }),
            &[],
        ),
        (
            Provider::Authentik,
            json!({ "acr": acr, "amr": ["pwd"], "preferred_username": "alice" }),
            &["azp", "uid"],
        ),
    ] {
        let server = start(provider, json!({ "groups": ["staff"] })).await;
        let (claims, info) = user(&server, "openid profile email").await;
        for (name, value) in present.as_object().unwrap() {
            assert_eq!(claims[name], *value, "{provider:?}: {name}");
        }
        absent(&claims, missing);
        assert_eq!(claims["iss"], server.issuer);
        assert_eq!(claims["groups"], json!(["staff"]), "{provider:?}");
        assert_eq!(info["email_verified"], true, "{provider:?}");
    }
}

/// K1: Cognito: its own names in each place, and a refresh token that stays valid.
#[tokio::test]
async fn cognito_has_its_own_names() {
    let server = start(Provider::Cognito, json!({ "groups": ["staff"] })).await;
    assert!(server.issuer.ends_with("/us-west-2_example"));
    let (claims, info) = user(&server, "openid email").await;
    assert_eq!(claims["token_use"], "id");
    assert_eq!(claims["cognito:username"], "alice");
    assert_eq!(claims["cognito:groups"], json!(["staff"]));
    assert_eq!(claims["email_verified"], true);
    absent(&claims, &["groups", "sid", "azp"]);
    assert_eq!(info["username"], "alice");
    assert_eq!(info["email_verified"], "true");
    absent(&info, &["groups", "cognito:groups"]);

    let response = sign_in(&server, &[("scope", "openid")]).await;
    let access = self::claims(&response.text("access_token"));
    assert_eq!(access["token_use"], "access");
    assert_eq!(access["client_id"], APP);
    assert_eq!(access["username"], "alice");
    absent(&access, &["azp", "aud", "typ"]);

    let refresh_token = response.text("refresh_token");
    for _ in 0..2 {
        let request = [
            ("grant_type", "refresh_token"),
            ("refresh_token", &*refresh_token),
        ];
        let refreshed = app_token(&server, &request).await;
        absent(&refreshed.json(), &["refresh_token"]);
        assert_eq!(id_token(&server, &refreshed).await["token_use"], "id");
    }
}
