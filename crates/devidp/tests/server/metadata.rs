//! The metadata document, the JWK set and the page at the issuer's address.

use http::{Method, StatusCode};
use portcullis_metadata::{AuthorizationServerMetadata, Issuer, authorization_server_urls};

use crate::support::*;

fn paths(server: &Server) -> Vec<String> {
    let issuer = Issuer::parse(&server.issuer).unwrap();
    authorization_server_urls(&issuer)
        .iter()
        .map(|url| url.path().to_owned())
        .collect()
}

/// K1: the metadata is correct at every URL, with and without an issuer path.
#[tokio::test]
async fn metadata_is_served_at_every_well_known_url() {
    for (issuer_path, places) in [("", 2), ("/realms/dev", 3)] {
        let server = Server::start(|settings| settings.issuer_path = issuer_path.to_owned()).await;
        assert_eq!(
            server.issuer,
            format!("http://{}{issuer_path}", server.address)
        );
        let paths = paths(&server);
        assert_eq!(paths.len(), places);
        for path in paths {
            let response = server.get(&path).await;
            assert_eq!(response.status, StatusCode::OK, "{path}");
            assert_eq!(response.header("cache-control"), Some("no-cache"), "{path}");
            let metadata = AuthorizationServerMetadata::parse(response.body.as_bytes()).unwrap();
            let at = |name: &str| Some(format!("{}/{name}", server.issuer));
            assert_eq!(metadata.issuer.as_str(), server.issuer);
            assert_eq!(
                metadata.authorization_endpoint.map(String::from),
                at("authorize")
            );
            assert_eq!(metadata.token_endpoint.map(String::from), at("token"));
            assert_eq!(
                metadata.registration_endpoint.map(String::from),
                at("register")
            );
            assert_eq!(metadata.jwks_uri.map(String::from), at("jwks"));
            assert_eq!(metadata.response_types_supported, ["code"]);
            assert_eq!(
                metadata.grant_types_supported.unwrap(),
                [
                    "authorization_code",
                    "refresh_token",
                    "urn:ietf:params:oauth:grant-type:device_code",
                    "client_credentials"
                ]
            );
            assert_eq!(
                metadata.scopes_supported.unwrap(),
                ["mcp:tools", "offline_access"]
            );
            assert_eq!(metadata.code_challenge_methods_supported.unwrap(), ["S256"]);
            assert_eq!(
                metadata.token_endpoint_auth_methods_supported.unwrap(),
                [
                    "none",
                    "client_secret_basic",
                    "client_secret_post",
                    "private_key_jwt"
                ]
            );
            assert!(metadata.authorization_response_iss_parameter_supported);
            assert_eq!(
                metadata.introspection_endpoint.map(String::from),
                at("introspect")
            );
            assert_eq!(
                metadata
                    .introspection_endpoint_auth_methods_supported
                    .unwrap(),
                [
                    "client_secret_basic",
                    "client_secret_post",
                    "private_key_jwt"
                ]
            );
            assert_eq!(metadata.revocation_endpoint.map(String::from), at("revoke"));
            assert_eq!(
                metadata.revocation_endpoint_auth_methods_supported.unwrap(),
                [
                    "none",
                    "client_secret_basic",
                    "client_secret_post",
                    "private_key_jwt"
                ]
            );
            assert_eq!(metadata.extra["subject_types_supported"][0], "public");
        }
        assert_eq!(
            server.get(&format!("{issuer_path}/jwks")).await.status,
            StatusCode::OK
        );
    }
}

/// K1: RS256 and ES256 keys are published without private members.
#[tokio::test]
async fn both_keys_are_published() {
    let server = Server::start(|_| {}).await;
    let response = server.get("/jwks").await;
    let jwks = response.json();
    let keys = jwks["keys"].as_array().unwrap();
    assert_eq!(
        keys.iter()
            .map(|key| key["alg"].as_str().unwrap())
            .collect::<Vec<_>>(),
        ["RS256", "ES256"]
    );
    for key in keys {
        assert_eq!(key["use"], "sig");
        assert!(key["kid"].is_string());
        for private in ["d", "p", "q", "dp", "dq", "qi"] {
            assert!(key.get(private).is_none());
        }
    }
}

/// K2: the page at the issuer's address states that the server is for development.
#[tokio::test]
async fn the_home_page_identifies_the_server() {
    let server = Server::start(|settings| settings.issuer_path = "/dev".to_owned()).await;
    for path in ["/dev", "/dev/"] {
        let page = server.get(path).await;
        assert_eq!(page.status, StatusCode::OK);
        assert!(page.body.contains("For development"));
        assert!(
            page.body
                .contains("href=\"/.well-known/oauth-authorization-server/dev\"")
        );
    }
}

#[tokio::test]
async fn cross_origin_scripts_may_use_client_endpoints() {
    let server = Server::start(|_| {}).await;
    for (path, methods) in [
        ("/.well-known/oauth-authorization-server", "GET, HEAD"),
        ("/jwks", "GET, HEAD"),
        ("/register", "POST"),
        ("/register/a-client", "GET, PUT, DELETE"),
        ("/device_authorization", "POST"),
        ("/token", "POST"),
        ("/revoke", "POST"),
        ("/userinfo", "GET, POST"),
    ] {
        let origin = ("origin", "https://app.example");
        let response = server.send(Method::OPTIONS, path, &[origin], "").await;
        assert_eq!(response.status, StatusCode::NO_CONTENT, "{path}");
        assert_eq!(response.header("access-control-allow-origin"), Some("*"));
        assert_eq!(
            response.header("access-control-allow-methods"),
            Some(methods)
        );
        assert_eq!(
            response.header("access-control-allow-headers"),
            Some("*, authorization")
        );
        let response = server.send(Method::POST, path, &[origin], "").await;
        assert_eq!(
            response.header("access-control-allow-origin"),
            Some("*"),
            "also on errors: {path}"
        );
    }
    for path in [
        "/authorize",
        "/authorize/consent",
        "/authorize/device",
        "/device",
        "/introspect",
        "/",
    ] {
        let response = server.send(Method::OPTIONS, path, &[], "").await;
        assert_eq!(response.status, StatusCode::METHOD_NOT_ALLOWED, "{path}");
        assert_eq!(response.header("access-control-allow-origin"), None);
    }
}

#[tokio::test]
async fn head_responses_have_no_body() {
    let server = Server::start(|_| {}).await;
    let response = server.send(Method::HEAD, "/jwks", &[], "").await;
    assert_eq!(response.status, StatusCode::OK);
    assert_eq!(&*response.body, "");
    assert!(
        response
            .header("content-length")
            .unwrap()
            .parse::<usize>()
            .unwrap()
            > 400
    );
}
