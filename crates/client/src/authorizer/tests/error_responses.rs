//! The errors for unusable responses show the response.

use portcullis_metadata::Secret;
use serde_json::json;

use super::*;
use crate::registration::{ClientAuthentication, ClientCredentials};

async fn error_text(
    url: &'static str,
    reply: impl Fn(&FetchRequest) -> Reply + Send + Sync + 'static,
) -> String {
    let network =
        network_with(move |request| (request.url.as_str() == url).then(|| reply(request)));
    let error = run(&network, &ScriptedUser::consents()).await.unwrap_err();
    match std::error::Error::source(&error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// The message has the status, the content type, the target of a redirect and the beginning of the
/// body.
#[tokio::test]
async fn errors_show_the_response() {
    let page =
        |status| Reply::json(status, "<h1>Blocked</h1>").header(header::CONTENT_TYPE, "text/html");
    for url in [RESOURCE, METADATA_URL, REGISTRATION_URL, TOKEN_URL] {
        // After another status than 5xx, the search for metadata continues elsewhere.
        let statuses: &[u16] = if url == METADATA_URL {
            &[500]
        } else {
            &[403, 500]
        };
        for &status in statuses {
            let text = error_text(url, move |_| page(status)).await;
            assert!(text.contains(&status.to_string()), "{url} {text}");
            assert!(
                text.contains("content type text/html, body: Blocked"),
                "{url} {text}"
            );
        }
        if url == METADATA_URL {
            continue;
        }
        let text = error_text(url, move |_| {
            page(302).header(header::LOCATION, "https://sso.example/?code=x")
        })
        .await;
        assert!(text.contains("https://sso.example/"), "{url} {text}");
        assert!(!text.contains("code=x"), "{url} {text}");
    }
}

/// J2: a server that repeats the code, or issues a token in an unexpected response, does not put it
/// into the error.
#[tokio::test]
async fn errors_show_no_secrets() {
    let text = error_text(TOKEN_URL, |request| {
        let form = form(request);
        Reply::json(
            500,
            format!("failed for {} and {}", form["code"], form["code_verifier"]),
        )
    })
    .await;
    assert!(
        text.contains("body: failed for [removed] and [removed]"),
        "{text}"
    );
    let text = error_text(TOKEN_URL, |request| {
        let description = format!("the code {} is unknown", form(request)["code"]);
        Reply::json(
            400,
            json!({ "error": "invalid_grant", "error_description": description }),
        )
    })
    .await;
    assert!(
        text.ends_with("invalid_grant: the code [removed] is unknown"),
        "{text}"
    );
    for status in [200, 201] {
        let text = error_text(TOKEN_URL, move |_| {
            Reply::json(status, "access_token=hush&token_type=bearer")
        })
        .await;
        assert!(!text.contains("hush"), "{text}");
    }
}

/// J2: a secret that is a part of an error code does not change the codes that decide what happens
/// next.
#[tokio::test]
async fn a_short_secret_changes_no_known_code() {
    for (code, shown) in [
        ("invalid_grant", "invalid_grant: a [removed]"),
        ("no_grant", "no_[removed]: a [removed]"),
    ] {
        let network = network_with(move |request| {
            let error = json!({ "error": code, "error_description": "a grant" });
            (request.url.as_str() == TOKEN_URL).then(|| Reply::json(400, error))
        });
        let authentication = ClientAuthentication::Secret(Secret::new("grant"));
        let issuer = Issuer::parse(ISSUER).unwrap();
        let credentials = vec![ClientCredentials {
            issuer,
            client_id: "mine".into(),
            authentication,
        }];
        let settings = AuthorizerSettings {
            credentials,
            ..AuthorizerSettings::default()
        };
        let authorizer = authorizer(&network, &ScriptedUser::consents(), settings);
        let error = authorizer
            .authorize(&StartUrl::parse(RESOURCE).unwrap())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.ends_with(shown), "{error}");
    }
}
