//! Imitated providers: rejected parameters, omitted members and renamed claims.

mod entra;
mod github;
mod id_tokens;

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

/// K1: Google: opaque tokens, refresh tokens on request only, and a secret for every client.
#[tokio::test]
async fn google_needs_access_type() {
    let server = start(Provider::Google, |_| {}).await;
    let locations = [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ];
    let document = metadata(&server, &locations).await;
    absent(
        &document,
        &[
            "registration_endpoint",
            "introspection_endpoint",
            "client_id_metadata_document_supported",
        ],
    );
    assert_eq!(
        document["token_endpoint_auth_methods_supported"],
        json!(["client_secret_post", "client_secret_basic"])
    );

    let plain = sign_in(
        &server,
        &[
            ("scope", "mcp:tools offline_access"),
            ("resource", RESOURCE),
        ],
    )
    .await;
    absent(&plain.json(), &["refresh_token"]);
    let token = plain.text("access_token");
    assert!(token.starts_with("ya29."), "{token}");
    assert!(!token[5..].contains('.'), "{token}");

    let active = introspect(&server, &token).await;
    assert_eq!(active["active"], true);
    assert_eq!(active["sub"], "alice");
    absent(&active, &["aud"]);
    assert_eq!(
        introspect(&server, &format!("ya29.{}", "a".repeat(44))).await["active"],
        false
    );
    assert_eq!(introspect(&server, &token[5..]).await["active"], false);

    let offline = [("access_type", "offline")];
    absent(&sign_in(&server, &offline).await.json(), &["refresh_token"]);
    let consented = sign_in(
        &server,
        &[("access_type", "offline"), ("prompt", "consent")],
    )
    .await;
    let refresh_token = consented.text("refresh_token");
    let first = sign_in(
        &server,
        &[("access_type", "offline"), ("login_hint", "bob")],
    )
    .await;
    assert!(
        first.json().get("refresh_token").is_some(),
        "the first approval of this user"
    );

    for _ in 0..2 {
        let refreshed = refresh(&server, &refresh_token, None).await;
        assert_eq!(refreshed.status, StatusCode::OK);
        absent(&refreshed.json(), &["refresh_token"]);
    }

    let verifier = verifier();
    let code = authorize(&server, &verifier, &[("client_id", "public")])
        .await
        .redirect_parameter("code")
        .unwrap();
    let rejected = post(
        &server,
        "token",
        &[],
        &token_request("public", &code, &verifier),
    )
    .await;
    assert_eq!(&*rejected.error(), "invalid_request");
    assert_eq!(
        &*rejected.text("error_description"),
        "client_secret is missing."
    );
}

/// K1: GitHub: form-encoded responses, errors with status 200 and other names.
#[tokio::test]
async fn github_responds_in_its_own_format() {
    let server = start(Provider::GitHub, |settings| {
        settings.scopes = portcullis_metadata::Scopes::parse("repo gist").unwrap();
    })
    .await;
    assert!(server.issuer.ends_with("/login/oauth"));

    let document = metadata(
        &server,
        &["/.well-known/oauth-authorization-server/login/oauth"],
    )
    .await;
    absent(
        &document,
        &[
            "registration_endpoint",
            "introspection_endpoint",
            "revocation_endpoint",
        ],
    );
    assert_eq!(
        document["code_challenge_methods_supported"],
        json!(["S256"])
    );

    let verifier = verifier();
    let requested = [("scope", "repo gist"), ("resource", RESOURCE)];
    let exchange = async |headers: &[(&str, &str)]| {
        let code = authorize(&server, &verifier, &requested)
            .await
            .redirect_parameter("code")
            .unwrap();
        post(
            &server,
            "token",
            headers,
            &with_secret(&token_request("web", &code, &verifier)),
        )
        .await
    };
    let form = exchange(&[]).await;
    assert_eq!(
        form.header("content-type"),
        Some("application/x-www-form-urlencoded; charset=utf-8")
    );

    let pairs: std::collections::BTreeMap<_, _> = url::form_urlencoded::parse(form.body.as_bytes())
        .into_owned()
        .collect();
    assert!(pairs["access_token"].starts_with("gho_"), "{}", form.body);
    assert_eq!(&*pairs["token_type"], "bearer", "{}", form.body);
    assert_eq!(pairs.len(), 3, "{}", form.body);
    assert_eq!(&*pairs["scope"], "gist,repo", "{}", form.body);

    let json = exchange(&[("accept", "text/html, application/json;q=0.9")]).await;
    assert_eq!(
        json.header("content-type"),
        Some("application/json; charset=utf-8")
    );
    let members: Value = serde_json::from_str(&json.body).unwrap();
    absent(&members, &["expires_in", "refresh_token"]);
    let token = members["access_token"].as_str().unwrap();
    assert_eq!(introspect(&server, token).await["active"], true);

    for (client, code, secret, error) in [
        ("web", "wrong", SECRET, "bad_verification_code"),
        ("web", "wrong", "wrong", "incorrect_client_credentials"),
        ("public", "wrong", "", "incorrect_client_credentials"),
    ] {
        let request = changed(
            &token_request(client, code, &verifier),
            "client_secret",
            secret,
        );
        let response = post(
            &server,
            "token",
            &[("accept", "application/json")],
            &request,
        )
        .await;
        let members: Value = serde_json::from_str(&response.body).unwrap();
        assert_eq!(response.status, StatusCode::OK);
        assert_eq!(members["error"], json!(error));
    }
}

/// K1: Okta: a fixed audience, scopes as an array, and a registration endpoint that needs an API
/// token.
#[tokio::test]
async fn okta_renames_claims() {
    let server = start(Provider::Okta, |_| {}).await;
    let locations = [
        "/oauth2/default/.well-known/oauth-authorization-server",
        "/oauth2/default/.well-known/openid-configuration",
    ];
    let document = metadata(&server, &locations).await;
    assert_eq!(
        document["registration_endpoint"],
        format!("{}/register", server.issuer)
    );
    assert!(
        !document["scopes_supported"]
            .as_array()
            .unwrap()
            .contains(&json!("mcp:tools"))
    );

    let body = json!({ "redirect_uris": [REDIRECT] }).to_string();
    let rejected = server
        .send(Method::POST, &path(&server, "register"), &[JSON], &body)
        .await;
    assert_eq!(rejected.status, StatusCode::UNAUTHORIZED);
    assert_eq!(rejected.json()["errorCode"], "E0000011");

    let tokens = sign_in(&server, &[("scope", "mcp:tools"), ("resource", RESOURCE)]).await;
    let payload = claims(&tokens.text("access_token"));
    assert_eq!(payload["aud"], "api://default");
    assert_eq!(payload["scp"], json!(["mcp:tools"]));
    assert_eq!(payload["cid"], "web");
    assert_eq!(payload["uid"], "alice");
    assert_eq!(payload["ver"], 1);

    absent(&payload, &["scope", "azp", "client_id", "typ"]);
    let token = tokens.text("access_token");
    assert_eq!(introspect(&server, &token).await["active"], true);
    let revoked = post(
        &server,
        "revoke",
        &[],
        &with_secret(&[("client_id", "web"), ("token", &token)]),
    )
    .await;
    assert_eq!(revoked.status, StatusCode::OK);
    assert_eq!(introspect(&server, &token).await["active"], false);
}

/// K1: Auth0: `audience` selects the API. Without it, the token is opaque.
#[tokio::test]
async fn auth0_needs_an_audience() {
    let server = start(Provider::Auth0, |_| {}).await;
    assert_eq!(server.issuer, format!("http://{}/", server.address));
    let locations = [
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ];
    metadata(&server, &locations).await;
    let opaque = sign_in(&server, &[("resource", RESOURCE)])
        .await
        .text("access_token");
    assert!(!opaque.contains('.'), "{opaque}");
    assert_eq!(introspect(&server, &opaque).await["active"], true);

    let tokens = sign_in(
        &server,
        &[
            ("audience", RESOURCE),
            ("scope", "mcp:tools offline_access"),
        ],
    )
    .await;
    let payload = claims(&tokens.text("access_token"));
    assert_eq!(payload["aud"], json!(RESOURCE));
    assert_eq!(payload["permissions"], json!(["mcp:tools"]));
    assert_eq!(payload["azp"], "web");
    assert_eq!(payload["iss"], json!(server.issuer));

    absent(&payload, &["client_id"]);
    let body = json!({ "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "none" });
    assert_eq!(
        server.register_with(&body).await.status,
        StatusCode::CREATED
    );

    let tenant = start(Provider::Auth0, |settings| {
        settings.default_resource = Some(ResourceUri::parse(RESOURCE).unwrap());
    })
    .await;
    let long = authorize(&tenant, &verifier(), &[("audience", &"a".repeat(601))]).await;
    assert_eq!(
        long.redirect_parameter("error").as_deref(),
        Some("invalid_target"),
        "not the default audience"
    );
    let token = sign_in(&tenant, &[]).await.text("access_token");
    assert_eq!(
        claims(&token)["aud"],
        RESOURCE,
        "the tenant's default audience"
    );
}

/// K1: Keycloak: `resource` is ignored, and registrations with unknown members or scopes are
/// rejected.
#[tokio::test]
async fn keycloak_ignores_resource() {
    let server = start(Provider::Keycloak, |_| {}).await;
    let locations = [
        "/.well-known/oauth-authorization-server/realms/mcp",
        "/realms/mcp/.well-known/oauth-authorization-server",
        "/realms/mcp/.well-known/openid-configuration",
    ];
    let document = metadata(&server, &locations).await;
    assert_eq!(
        document["code_challenge_methods_supported"],
        json!(["plain", "S256"])
    );
    assert!(
        !document["token_endpoint_auth_methods_supported"]
            .as_array()
            .unwrap()
            .contains(&json!("none"))
    );

    let verifier = verifier();
    let response = authorize(&server, &verifier, &[("resource", RESOURCE)]).await;
    assert!(response.redirect_parameter("session_state").is_some());
    assert!(response.redirect_parameter("iss").is_some());

    let twice = format!("resource={}", "http%3A%2F%2F127.0.0.1%3A1%2F");
    let request = encoded(&authorization_request("web", verifier.challenge()));
    let duplicated = server
        .get(&format!("{}?{request}&{twice}", path(&server, "authorize")))
        .await;
    assert_eq!(
        duplicated.redirect_parameter("error").as_deref(),
        Some("invalid_request")
    );
    assert_eq!(
        duplicated
            .redirect_parameter("error_description")
            .as_deref(),
        Some("duplicated parameter")
    );

    let tokens = sign_in(&server, &[("resource", RESOURCE)]).await;
    assert!(
        tokens.json().get("refresh_token").is_some(),
        "without offline_access"
    );
    let payload = claims(&tokens.text("access_token"));
    absent(&payload, &["aud", "client_id"]);
    assert_eq!(payload["azp"], "web");
    assert_eq!(payload["preferred_username"], "alice");

    let register = async |extra: Value| {
        let mut body = json!({ "redirect_uris": [REDIRECT] });
        body.as_object_mut()
            .unwrap()
            .extend(extra.as_object().unwrap().clone());
        server
            .send(
                Method::POST,
                &path(&server, "register"),
                &[JSON],
                &body.to_string(),
            )
            .await
    };
    assert_eq!(
        register(json!({ "scope": "mcp:tools offline_access" }))
            .await
            .status,
        StatusCode::CREATED
    );

    let unknown = register(json!({ "resource": RESOURCE })).await;
    assert_eq!(unknown.status, StatusCode::BAD_REQUEST);
    let openid = register(json!({ "scope": "openid mcp:tools" })).await;
    assert_eq!(openid.status, StatusCode::FORBIDDEN);
    assert_eq!(&*openid.error(), "insufficient_scope");
}

/// K1: Authentik: the audience is the client without a scope mapping, and clients cannot register.
#[tokio::test]
async fn authentik_sets_the_client_as_audience() {
    let server = start(Provider::Authentik, |_| {}).await;
    assert!(
        server.issuer.ends_with("/application/o/mcp/"),
        "{}",
        server.issuer
    );
    let document = metadata(
        &server,
        &["/application/o/mcp/.well-known/openid-configuration"],
    )
    .await;
    absent(
        &document,
        &[
            "registration_endpoint",
            "client_id_metadata_document_supported",
        ],
    );
    absent(
        &document,
        &["authorization_response_iss_parameter_supported"],
    );
    assert!(
        document["scopes_supported"]
            .as_array()
            .unwrap()
            .contains(&json!("mcp:tools")),
        "{document}"
    );
    let registration = server
        .send(Method::POST, &path(&server, "register"), &[JSON], "{}")
        .await;
    assert_eq!(registration.error(), "access_denied");

    let verifier = verifier();
    let response = authorize(&server, &verifier, &[("resource", RESOURCE)]).await;
    assert!(response.redirect_parameter("code").is_some());
    assert_eq!(response.redirect_parameter("iss"), None);
    let token = sign_in(&server, &[("resource", RESOURCE)])
        .await
        .text("access_token");
    let payload = claims(&token);
    assert_eq!(payload["aud"], "web");
    assert_eq!(payload["azp"], "web");
    assert_eq!(payload["iss"], *server.issuer);
    assert_eq!(payload["scope"], "mcp:tools");
    absent(&payload, &["client_id", "jti", "typ"]);
    assert_eq!(introspect(&server, &token).await["active"], true);
    let revoked = post(
        &server,
        "revoke",
        &[],
        &with_secret(&[("client_id", "web"), ("token", &token)]),
    )
    .await;
    assert_eq!(revoked.status, StatusCode::OK);
    assert_eq!(introspect(&server, &token).await["active"], false);

    let mapped = start(Provider::Authentik, |settings| {
        settings.default_resource = Some(ResourceUri::parse(RESOURCE).unwrap());
    })
    .await;
    let token = sign_in(&mapped, &[("scope", "mcp:tools offline_access")]).await;
    assert_eq!(claims(&token.text("access_token"))["aud"], RESOURCE);
    assert!(token.json().get("refresh_token").is_some());
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
