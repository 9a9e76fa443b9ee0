//! Imitated providers: rejected parameters, omitted members and renamed claims.

mod auth0;
mod authentik;
mod entra;
mod github;
mod github_responses;
mod google;
mod id_tokens;
mod keycloak;
mod okta;

use http::{Method, StatusCode};
use portcullis_devidp::{ClientSettings, DevIdpSettings, GrantType, Provider};
use portcullis_metadata::{AuthorizationServerMetadata, ResourceUri, Secret};
use serde_json::{Value, json};

use crate::support::*;

const API: &str = "00001111-aaaa-2222-bbbb-3333cccc4444";
const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";
const SECRET: &str = "hush";

/// Starts an imitation with automatic consent, admin endpoints, and the clients `public` and `web`,
/// which has a secret.
async fn start(provider: Provider, change: impl FnOnce(&mut DevIdpSettings)) -> Server {
    Server::start(|settings| {
        settings.provider = Some(provider);
        (settings.auto_consent, settings.admin) = (true, true);
        let mut web = ClientSettings::with_secret("web", Secret::new(SECRET));
        web.authentication =
            portcullis_devidp::ClientAuthentication::SecretPost(Secret::new(SECRET));
        web.may_introspect = true;
        settings.clients = vec![ClientSettings::public("public"), web];
        for client in &mut settings.clients {
            client.redirect_uris = vec![REDIRECT.to_owned()];
            client.grant_types = vec![GrantType::AuthorizationCode, GrantType::RefreshToken];
        }
        change(settings);
    })
    .await
}

/// Returns the path of an endpoint below the issuer.
fn path(server: &Server, name: &str) -> String {
    let origin = format!("http://{}", server.address);
    format!(
        "{}/{name}",
        server
            .issuer
            .strip_prefix(&origin)
            .unwrap()
            .trim_end_matches('/')
    )
}

async fn authorize(server: &Server, verifier: &Pkce, parameters: &[(&str, &str)]) -> Response {
    let client = parameters
        .iter()
        .find(|(name, _)| *name == "client_id")
        .map_or("web", |(_, value)| value);
    let mut request = changed(
        &authorization_request(client, verifier.challenge()),
        "resource",
        None,
    );
    for (name, value) in parameters {
        request = changed(&request, name, (!value.is_empty()).then_some(*value));
    }
    server
        .get(&format!(
            "{}?{}",
            path(server, "authorize"),
            encoded(&request)
        ))
        .await
}

async fn post(
    server: &Server,
    name: &str,
    headers: &[(&str, &str)],
    form: &[(&str, &str)],
) -> Response {
    let headers: Vec<_> = [FORM].into_iter().chain(headers.iter().copied()).collect();
    server
        .send(Method::POST, &path(server, name), &headers, &encoded(form))
        .await
}

/// Signs in as `web` and returns the token response.
async fn sign_in(server: &Server, parameters: &[(&str, &str)]) -> Response {
    let verifier = verifier();
    let response = authorize(server, &verifier, parameters).await;
    let code = response
        .redirect_parameter("code")
        .unwrap_or_else(|| panic!("{:?} {}", response.location(), response.body));
    let request = changed(&token_request("web", &code, &verifier), "resource", None);
    post(
        server,
        "token",
        &[("accept", "application/json")],
        &with_secret(&request),
    )
    .await
}

fn with_secret<'a>(form: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    form.iter()
        .copied()
        .chain([("client_secret", SECRET)])
        .collect()
}

async fn refresh(server: &Server, token: &str, scope: Option<&str>) -> Response {
    let mut form = vec![
        ("grant_type", "refresh_token"),
        ("client_id", "web"),
        ("refresh_token", token),
    ];
    form.extend(scope.map(|scope| ("scope", scope)));
    post(server, "token", &[], &with_secret(&form)).await
}

async fn introspect(server: &Server, token: &str) -> Value {
    post(
        server,
        "introspect",
        &[],
        &with_secret(&[("client_id", "web"), ("token", token)]),
    )
    .await
    .json()
}

/// Returns the metadata. It must be served exactly at these paths.
async fn metadata(server: &Server, served: &[&str]) -> Value {
    let issuer = path(server, "");
    let issuer = issuer.trim_end_matches('/');
    let all = [
        format!("/.well-known/oauth-authorization-server{issuer}"),
        format!("{issuer}/.well-known/oauth-authorization-server"),
        format!("/.well-known/openid-configuration{issuer}"),
        format!("{issuer}/.well-known/openid-configuration"),
    ];
    let mut found = Value::Null;
    for location in &all {
        let response = server.get(location).await;
        let is_served = served.iter().any(|expected| location == expected);
        assert_eq!(response.status == StatusCode::OK, is_served, "{location}");
        if is_served {
            found = response.json();
        }
    }
    AuthorizationServerMetadata::parse(found.to_string().as_bytes()).unwrap();
    assert_eq!(found["issuer"], *server.issuer);
    found
}

fn absent(value: &Value, members: &[&str]) {
    for member in members {
        assert!(value.get(member).is_none(), "{member}: {value}");
    }
}

/// The page at the issuer's address links to a metadata document that is served.
#[tokio::test]
async fn the_home_page_links_to_the_metadata() {
    for provider in Provider::ALL {
        let server = start(provider, |_| {}).await;
        let page = server.get(&path(&server, "")).await;
        let (_, rest) = page.body.split_once("href=\"").unwrap();
        let (link, _) = rest.split_once('"').unwrap();
        assert_eq!(
            server.get(link).await.json()["issuer"],
            *server.issuer,
            "{provider:?}"
        );
    }
}

/// K1: further claims are in every token, and in introspection responses.
#[tokio::test]
async fn further_claims_are_added() {
    for provider in [
        Provider::Entra,
        Provider::Okta,
        Provider::Auth0,
        Provider::Keycloak,
        Provider::Authentik,
    ] {
        let server = start(provider, |settings| {
            settings.default_resource = Some(ResourceUri::parse(RESOURCE).unwrap());
            settings.extra_claims = json!({ "groups": ["a", "b"], "permissions": ["x"] })
                .as_object()
                .unwrap()
                .clone();
        })
        .await;
        let scope = format!("api://{API}/mcp:tools");
        let scope = if provider == Provider::Entra {
            &*scope
        } else {
            "mcp:tools"
        };
        let token = sign_in(&server, &[("scope", scope)])
            .await
            .text("access_token");
        let payload = claims(&token);
        assert_eq!(payload["groups"], json!(["a", "b"]), "{provider:?}");
        assert_eq!(payload["permissions"], json!(["x"]), "{provider:?}");
        assert_eq!(
            introspect(&server, &token).await["groups"],
            json!(["a", "b"])
        );
    }
}

/// K1: an issuer path from the settings replaces that of the provider.
#[tokio::test]
async fn the_issuer_path_can_be_chosen() {
    let server = start(Provider::Keycloak, |settings| {
        settings.issuer_path = "/realms/dev".to_owned()
    })
    .await;
    assert!(server.issuer.ends_with("/realms/dev"));
    let server = start(Provider::Authentik, |settings| {
        settings.issuer_path = "/application/o/dev".to_owned()
    })
    .await;
    assert!(server.issuer.ends_with("/application/o/dev/"));
    let server = start(Provider::Auth0, |settings| {
        settings.issuer_path = "/tenant".to_owned()
    })
    .await;
    assert!(server.issuer.ends_with("/tenant"), "{}", server.issuer);
    let server = start(Provider::Auth0, |_| ()).await;
    assert_eq!(server.issuer, format!("http://{}/", server.address));
}
