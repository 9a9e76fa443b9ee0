//! Servers that use a sign-in without `resource` to obtain tokens for other APIs.

use portcullis_scenarios::{Finished, Peer, Portcullis, Scratch};
use serde_json::json;

const PATH: &str = "/mcp";

/// Starts a server that requires `scope`, with these changes to its authorization server's
/// metadata.
async fn server(scope: &'static str, changes: serde_json::Value) -> Peer {
    Peer::start(move |request| {
        if request.is_for_resource_metadata(PATH) {
            let mut document = request.resource_metadata(&format!("{}{PATH}", request.base));
            document["scopes_supported"] = json!(scope.split(' ').collect::<Vec<_>>());
            return Some(request.json(document));
        }
        if request.is_for_server_metadata() {
            let mut document = request.server_metadata();
            for (name, value) in changes.as_object().into_iter().flatten() {
                document[name] = value.clone();
            }
            return Some(request.json(document));
        }
        None
    })
    .await
}

async fn login(peer: &Peer, store: &Scratch, more: &[&str]) -> Finished {
    let url = peer.url(PATH);
    Portcullis::run(
        &[
            &["login", &url, "--auto-consent", "--store", store.as_str()][..],
            more,
        ]
        .concat(),
    )
    .await
}

/// I1: a sign-in at the endpoints of Microsoft Entra ID or Google, with scopes of their APIs, is
/// rejected. No client is registered, and no browser opens.
#[tokio::test]
async fn scopes_of_other_apis() {
    let entra = "https://login.microsoftonline.com/common/oauth2/v2.0/authorize";
    let google = "https://accounts.google.com/o/oauth2/v2/auth";
    for (scope, endpoint) in [
        ("https://graph.microsoft.com/.default", entra),
        ("User.Read", entra),
        ("00000003-0000-0000-c000-000000000000/Mail.ReadWrite", entra),
        ("https://www.googleapis.com/auth/drive", google),
    ] {
        let peer = server(scope, json!({ "authorization_endpoint": endpoint })).await;
        let store = Scratch::path_for("store");
        let rejected = login(&peer, &store, &["--accept-unbound-token"]).await;
        assert_eq!(rejected.code, Some(1), "{scope}: {rejected:?}");
        assert!(
            rejected
                .stderr
                .contains("could use the token there in your name"),
            "{scope}: {rejected:?}"
        );
        assert!(peer.requests("/register").is_empty(), "{scope}");
        assert!(peer.requests("/token").is_empty(), "{scope}");
    }
}

/// I1: with `--no-resource`, scopes of known other APIs are rejected at every server, and any other
/// sign-in needs confirmation.
#[tokio::test]
async fn a_sign_in_without_resource() {
    let store = Scratch::path_for("store");
    let graph = server("https://graph.microsoft.com/User.Read", json!({})).await;
    let rejected = login(&graph, &store, &["--no-resource", "--accept-unbound-token"]).await;
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.stderr.contains("Microsoft Graph"), "{rejected:?}");
    assert!(graph.requests("/register").is_empty());
    assert!(graph.requests("/token").is_empty());

    let own = server("mcp:tools", json!({})).await;
    let rejected = login(&own, &store, &["--no-resource"]).await;
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert_eq!(rejected.stderr.lines().count(), 1, "{rejected:?}");
    assert!(
        rejected.stderr.contains("--accept-unbound-token"),
        "{rejected:?}"
    );
    assert!(rejected.stderr.contains("mcp:tools"), "{rejected:?}");
    assert!(own.requests("/register").is_empty());
    assert!(own.requests("/token").is_empty());

    let signed_in = login(&own, &store, &["--no-resource", "--accept-unbound-token"]).await;
    assert_eq!(signed_in.code, Some(0), "{signed_in:?}");
    assert!(!own.requests("/token")[0].form().contains_key("resource"));
    assert!(!own.requests("/authorize")[0].query.contains_key("resource"));
}

/// G7: `--assume-pkce` applies to servers that list no methods, not to those that list others.
#[tokio::test]
async fn pkce_is_assumed_only_without_a_list() {
    let store = Scratch::path_for("store");
    let plain = server(
        "mcp:tools",
        json!({ "code_challenge_methods_supported": ["plain"] }),
    )
    .await;
    let rejected = login(&plain, &store, &["--assume-pkce"]).await;
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.stderr.contains("PKCE"), "{rejected:?}");
    assert!(plain.requests("/register").is_empty());

    let unlisted = server(
        "mcp:tools",
        json!({ "code_challenge_methods_supported": null }),
    )
    .await;
    let rejected = login(&unlisted, &store, &[]).await;
    assert_eq!(rejected.code, Some(1), "{rejected:?}");
    assert!(rejected.stderr.contains("--assume-pkce"), "{rejected:?}");
    assert_eq!(
        login(&unlisted, &store, &["--assume-pkce"]).await.code,
        Some(0)
    );
}

/// I1, I2: parameters that determine who gets the code cannot be set.
#[tokio::test]
async fn reserved_parameters() {
    let peer = server("mcp:tools", json!({})).await;
    let store = Scratch::path_for("store");
    for parameter in [
        "redirect_uri=https://evil.example/",
        "state=x",
        "RESOURCE=x",
        "code_challenge_method=plain",
        "scope=x",
    ] {
        let rejected = login(&peer, &store, &["--authorize-param", parameter]).await;
        assert_eq!(rejected.code, Some(2), "{parameter}: {rejected:?}");
        assert!(
            rejected.stderr.contains("is a parameter of the protocol"),
            "{parameter}: {rejected:?}"
        );
    }
    assert!(peer.requests(PATH).is_empty());
    assert_eq!(
        login(
            &peer,
            &store,
            &["--authorize-param", "audience=https://api.example.com"]
        )
        .await
        .code,
        Some(0)
    );
    assert_eq!(
        peer.requests("/authorize")[0].query["audience"],
        "https://api.example.com"
    );
}
