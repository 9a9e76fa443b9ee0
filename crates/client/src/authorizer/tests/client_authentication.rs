//! The client uses a method that the token endpoint lists, and tries the other one once.

use portcullis_metadata::Secret;

use super::*;
use crate::registration::{ClientAuthentication, ClientCredentials, TokenAuthMethod};

const BOTH: &[&str] = &["client_secret_basic", "client_secret_post"];
const REGISTERED: &str =
    r#"{"client_id":"c","client_secret":"s","token_endpoint_auth_method":"client_secret_basic"}"#;

/// A server that lists these methods, registers clients for basic, and grants a token if `accepts`.
fn server(
    listed: &'static [&'static str],
    accepts: fn(&FetchRequest) -> bool,
    error: &'static str,
) -> Arc<FetchFn> {
    network_with(move |request| match request.url.as_str() {
        METADATA_URL => {
            let mut document = metadata();
            document["token_endpoint_auth_methods_supported"] = listed.into();
            Some(Reply::json(200, document))
        }
        REGISTRATION_URL => Some(Reply::json(201, REGISTERED)),
        TOKEN_URL if !accepts(request) => {
            Some(Reply::json(401, format!(r#"{{"error":"{error}"}}"#)))
        }
        _ => None,
    })
}

fn is_post(request: &FetchRequest) -> bool {
    form(request).contains_key("client_secret")
        && !request.headers.contains_key(header::AUTHORIZATION)
}

fn is_only_basic(request: &FetchRequest) -> bool {
    !form(request).contains_key("client_id") && request.headers.contains_key(header::AUTHORIZATION)
}

fn is_basic(request: &FetchRequest) -> bool {
    form(request).contains_key("client_id") && request.headers.contains_key(header::AUTHORIZATION)
}

/// I4: after the server rejects the client, the secret is sent once by the other method that it
/// lists.
#[tokio::test]
async fn the_other_listed_method_is_tried_once() {
    for error in ["invalid_client", "unauthorized_client"] {
        let network = server(BOTH, is_post, error);
        run(&network, &ScriptedUser::consents()).await.unwrap();
        let sent = network.to(TOKEN_URL);
        assert_eq!(sent.iter().map(is_basic).collect::<Vec<_>>(), [true, false]);
        // The second request uses the same code.
        assert_eq!(form(&sent[0])["code"], form(&sent[1])["code"]);
    }
    let network = server(&["client_secret_basic"], is_post, "unauthorized_client");
    assert_eq!(
        run(&network, &ScriptedUser::consents())
            .await
            .unwrap_err()
            .code(),
        "client.token"
    );
    assert!(
        network
            .to(TOKEN_URL)
            .iter()
            .all(|sent| !form(sent).contains_key("client_secret"))
    );

    let network = server(BOTH, |_| false, "unauthorized_client");
    assert_eq!(
        run(&network, &ScriptedUser::consents())
            .await
            .unwrap_err()
            .code(),
        "client.token"
    );
    assert_eq!(network.to(TOKEN_URL).len(), 3);
}

/// I4: after the other listed method, basic is also tried without `client_id` in the body.
#[tokio::test]
async fn basic_is_also_tried_without_the_client_in_the_body() {
    for (listed, requests) in [(&["client_secret_basic"][..], 2), (BOTH, 3)] {
        let network = server(listed, is_only_basic, "invalid_client");
        run(&network, &ScriptedUser::consents()).await.unwrap();
        assert_eq!(network.to(TOKEN_URL).len(), requests);
    }
}

/// I4: the user's choice is registered and used, and no other method is tried.
#[tokio::test]
async fn the_users_choice_is_exact() {
    const ALL: &[&str] = &["none", "client_secret_basic", "client_secret_post"];
    let start = StartUrl::parse(RESOURCE).unwrap();
    for (chosen, accepts, rejected) in [
        (
            TokenAuthMethod::ClientSecretPost,
            is_post as fn(&FetchRequest) -> bool,
            1,
        ),
        (TokenAuthMethod::ClientSecretBasic, is_basic, 2),
    ] {
        let settings = AuthorizerSettings {
            token_auth_method: Some(chosen),
            ..AuthorizerSettings::default()
        };
        let network = server(ALL, accepts, "invalid_client");
        authorizer(&network, &ScriptedUser::consents(), settings.clone())
            .authorize(&start)
            .await
            .unwrap();
        assert_eq!(network.to(TOKEN_URL).len(), 1);
        let sent: serde_json::Value =
            serde_json::from_slice(&network.to(REGISTRATION_URL)[0].body).unwrap();
        assert_eq!(sent["token_endpoint_auth_method"], chosen.name());

        let issuer = Issuer::parse(ISSUER).unwrap();
        let authentication = ClientAuthentication::Secret(Secret::new("s"));
        let credentials = vec![ClientCredentials {
            issuer,
            client_id: "mine".into(),
            authentication,
        }];
        let network = server(ALL, |_| false, "unauthorized_client");
        let settings = AuthorizerSettings {
            credentials,
            ..settings
        };
        authorizer(&network, &ScriptedUser::consents(), settings)
            .authorize(&start)
            .await
            .unwrap_err();
        let sent = network.to(TOKEN_URL);
        assert_eq!(sent.len(), rejected);
        assert!(accepts(&sent[0]));
        let has_header =
            |request: &FetchRequest| request.headers.contains_key(header::AUTHORIZATION);
        assert!(
            sent.iter()
                .all(|request| has_header(request) == has_header(&sent[0]))
        );
    }
}

/// I4: a registration without the secret that the chosen method needs is replaced.
#[tokio::test]
async fn a_registration_must_support_the_chosen_method() {
    let start = StartUrl::parse(RESOURCE).unwrap();
    let network = FetchFn::new(well_behaved);
    let settings = AuthorizerSettings::default();
    for (chosen, registrations) in [
        (None, 1),
        (Some(TokenAuthMethod::None), 1),
        (Some(TokenAuthMethod::ClientSecretPost), 2),
    ] {
        let settings = AuthorizerSettings {
            token_auth_method: chosen,
            ..settings.clone()
        };
        authorizer(&network, &ScriptedUser::consents(), settings)
            .authorize(&start)
            .await
            .unwrap();
        assert_eq!(
            network.to(REGISTRATION_URL).len(),
            registrations,
            "{chosen:?}"
        );
    }
}
