//! Configured clients obtain tokens; invalid ones are rejected at the start.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::{Method, StatusCode};
use portcullis_devidp::{
    ClientAuthentication, ClientSettings, ClientSettingsError, DevIdp, DevIdpError, DevIdpSettings,
    GrantType,
};
use portcullis_metadata::{JwkSet, Scopes, Secret};

use crate::support::*;

fn machine() -> ClientSettings {
    let machine = ClientSettings::with_secret("machine", Secret::new("hush"));
    ClientSettings {
        grant_types: vec![GrantType::ClientCredentials],
        ..machine
    }
}

/// K1: a configured client obtains a token within its own redirect URIs, scopes and grant types.
#[tokio::test]
async fn a_configured_client_obtains_a_token() {
    let desktop = ClientSettings {
        name: Some("Desktop".to_owned()),
        redirect_uris: vec!["http://127.0.0.1/callback".to_owned()],
        grant_types: vec![GrantType::AuthorizationCode],
        scopes: Some(Scopes::parse("mcp:tools").unwrap()),
        ..ClientSettings::public("desktop")
    };
    let server = Server::start(|settings| {
        settings.auto_consent = true;
        settings.scopes = Scopes::parse("mcp:tools mcp:admin").unwrap();
        settings.clients = vec![desktop, machine()];
    })
    .await;
    let verifier = verifier();
    let parameters = changed(
        &authorization_request("desktop", verifier.challenge()),
        "scope",
        "mcp:admin mcp:tools",
    );
    let code = server
        .authorize(&parameters)
        .await
        .redirect_parameter("code")
        .unwrap();
    let response = server
        .token(&token_request("desktop", &code, &verifier))
        .await;
    assert_eq!(
        response.text("scope"),
        "mcp:tools",
        "no more than the client may ask for"
    );

    let other = server
        .authorize(&changed(
            &parameters,
            "redirect_uri",
            "http://127.0.0.1:4321/other",
        ))
        .await;
    assert_eq!(other.status, StatusCode::BAD_REQUEST);
    assert_eq!(other.location(), None);
    let machine = server
        .authorize(&authorization_request("machine", verifier.challenge()))
        .await;
    assert_eq!(
        machine.status,
        StatusCode::BAD_REQUEST,
        "it has no redirect URI"
    );
    assert_eq!(machine.location(), None, "it has no redirect URI");
}

/// A client with a secret and no method may present it in the header or in the body.
#[tokio::test]
async fn a_secret_without_a_method_is_accepted_both_ways() {
    let client = ClientSettings {
        authentication: ClientAuthentication::Secret(Secret::new("hush")),
        ..machine()
    };
    let server = Server::start(|settings| settings.clients = vec![client]).await;
    let form = [
        ("grant_type", "client_credentials"),
        ("resource", RESOURCE),
        ("scope", "mcp:tools"),
    ];
    for (secret, status) in [
        ("hush", StatusCode::OK),
        ("other", StatusCode::UNAUTHORIZED),
    ] {
        let basic = format!("Basic {}", STANDARD.encode(format!("machine:{secret}")));
        let header = [FORM, ("authorization", basic.as_str())];
        let in_header = encoded(&form);
        let response = server.send(Method::POST, "/token", &header, &in_header);
        assert_eq!(response.await.status, status);
        let mut body = form.to_vec();
        body.extend([("client_id", "machine"), ("client_secret", secret)]);
        let in_body = encoded(&body);
        let response = server.send(Method::POST, "/token", &[FORM], &in_body);
        assert_eq!(response.await.status, status);
    }
}

/// K1: the client credentials grant requires the registered authentication method and issues no
/// refresh token.
#[tokio::test]
async fn client_credentials_issue_a_token_for_the_client() {
    let post = ClientSettings {
        id: "poster".to_owned(),
        authentication: ClientAuthentication::SecretPost(Secret::new("hush")),
        ..machine()
    };
    let scopeless = ClientSettings {
        id: "scopeless".to_owned(),
        scopes: Some(Scopes::empty()),
        ..post.clone()
    };
    let server =
        Server::start(|settings| settings.clients = vec![machine(), post, scopeless]).await;
    let form = [
        ("grant_type", "client_credentials"),
        ("resource", RESOURCE),
        ("scope", "mcp:tools offline_access"),
    ];
    let send = async |authorization: Option<&str>, form: &[(&str, &str)]| {
        let headers: Vec<_> = [FORM]
            .into_iter()
            .chain(authorization.map(|value| ("authorization", value)))
            .collect();
        server
            .send(Method::POST, "/token", &headers, &encoded(form))
            .await
    };
    let right = format!("Basic {}", STANDARD.encode("machine:hush"));
    let response = send(Some(&right), &form).await;
    assert_eq!(response.status, StatusCode::OK, "{}", response.body);
    assert!(response.json().get("refresh_token").is_none());
    assert_eq!(response.text("scope"), "mcp:tools");

    let claims = claims(&response.text("access_token"));
    assert_eq!(claims["sub"], "machine");
    assert_eq!(claims["client_id"], "machine");
    assert_eq!(claims["aud"], RESOURCE);

    let posted = [
        &form[..],
        &[("client_id", "poster"), ("client_secret", "hush")],
    ]
    .concat();
    assert_eq!(send(None, &posted).await.status, StatusCode::OK);
    let wrong = format!("Basic {}", STANDARD.encode("machine:wrong"));
    assert_eq!(send(Some(&wrong), &form).await.error(), "invalid_client");
    assert_eq!(
        send(None, &changed(&posted, "client_secret", None))
            .await
            .error(),
        "invalid_client"
    );
    assert_eq!(
        send(None, &changed(&posted, "resource", None))
            .await
            .error(),
        "invalid_target"
    );
    assert_eq!(
        send(None, &changed(&posted, "scope", "mcp:admin"))
            .await
            .error(),
        "invalid_scope"
    );

    let scopeless = changed(&changed(&posted, "client_id", "scopeless"), "scope", None);
    assert_eq!(
        send(None, &scopeless).await.error(),
        "invalid_scope",
        "it may have no scope"
    );

    let public = server.register().await;
    let response = send(None, &[&form[..], &[("client_id", &public)]].concat()).await;
    assert_eq!(response.error(), "unauthorized_client");
}

/// K1: an invalid client is rejected at start, with the fix.
#[tokio::test]
async fn invalid_clients_are_rejected_at_start() {
    let base = || ClientSettings::public("a");
    let keyless = ClientAuthentication::PrivateKeyJwt(JwkSet::default());
    for (client, problem, message) in [
        (
            ClientSettings {
                id: String::new(),
                ..base()
            },
            ClientSettingsError::NoId,
            "name one",
        ),
        (
            ClientSettings::with_secret("a", Secret::new("")),
            ClientSettingsError::EmptySecret,
            "empty",
        ),
        (
            ClientSettings {
                authentication: keyless,
                ..base()
            },
            ClientSettingsError::NoKey,
            "public key",
        ),
        (
            ClientSettings {
                grant_types: vec![GrantType::AuthorizationCode],
                ..base()
            },
            ClientSettingsError::NoRedirectUri,
            "http://127.0.0.1/callback",
        ),
        (
            ClientSettings {
                backchannel_logout_uri: Some("http://client.example/logout".to_owned()),
                ..base()
            },
            ClientSettingsError::LogoutUri {
                uri: "http://client.example/logout".to_owned(),
            },
            "must be https",
        ),
        (
            ClientSettings {
                grant_types: vec![GrantType::ClientCredentials],
                ..base()
            },
            ClientSettingsError::PublicMachine,
            "give it a secret or keys",
        ),
        (
            ClientSettings {
                may_introspect: true,
                ..base()
            },
            ClientSettingsError::PublicResource,
            "give it a secret or keys",
        ),
        (
            ClientSettings {
                scopes: Some(Scopes::parse("mcp:admin").unwrap()),
                ..base()
            },
            ClientSettingsError::Scope {
                scope: "mcp:admin".to_owned(),
            },
            "add it there or remove it here",
        ),
    ] {
        let settings = DevIdpSettings {
            clients: vec![client],
            ..DevIdpSettings::default()
        };
        let error = DevIdp::bind(settings).await.unwrap_err();
        assert_eq!(error.code(), "devidp.client");
        assert!(error.to_string().contains(message), "{error}");
        assert!(
            matches!(error, DevIdpError::Client { problem: found, .. } if found == problem),
            "{problem:?}"
        );
    }
    for uri in ["http://client.example/", "nothing"] {
        let client = ClientSettings {
            redirect_uris: vec![uri.to_owned()],
            ..base()
        };
        let error = DevIdp::bind(DevIdpSettings {
            clients: vec![client],
            ..DevIdpSettings::default()
        })
        .await
        .unwrap_err();
        assert!(error.to_string().contains(uri), "{error}");
    }
    let twice = DevIdpSettings {
        clients: vec![base(), base()],
        ..DevIdpSettings::default()
    };
    assert!(
        DevIdp::bind(twice)
            .await
            .unwrap_err()
            .to_string()
            .contains("rename one")
    );
}
