//! Authorization: required scopes, routes and implications.

use http::{Method, StatusCode};
use portcullis_metadata::Scopes;

use super::support::{METADATA_URL, Setup, With, pairs, request};
use crate::{
    GuardSettingsError,
    authorize::{ScopeEnforcer, ScopeImplications},
};

/// B3: missing scopes get 403, which names all needed scopes and the granted ones that the resource
/// mentions.
#[tokio::test]
async fn missing_scopes_are_named() {
    let mut setup = Setup::new().require("read write");
    setup.settings.metadata.scopes_supported =
        vec!["read".to_owned(), "write".to_owned(), "export".to_owned()];
    let answer = setup
        .send(request(Method::POST, "/mcp").bearer(&setup.token("export foreign read")))
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(
        answer.parameters(),
        pairs(&[
            ("error", "insufficient_scope"),
            ("realm", "test"),
            ("resource_metadata", METADATA_URL),
            ("scope", "export read write"),
        ])
    );
    assert_eq!(answer.header("cache-control"), Some("no-store"));

    let decision = setup.sink.only();
    assert_eq!(decision.code, Some("scope.insufficient"));
    assert_eq!(decision.subject.as_deref(), Some("alice"));
    assert_eq!(setup.inner.count(), 0);

    let answer = setup
        .send(request(Method::POST, "/mcp").bearer(&setup.token("write read")))
        .await;
    assert_eq!(answer.status, StatusCode::OK);
}

/// B3: challenges name a scope in the form in which it is requested, if the metadata lists only
/// that. Microsoft Entra ID writes the short form into tokens.
#[tokio::test]
async fn scopes_are_named_as_they_are_requested() {
    const LISTED: [&str; 2] = ["api://00001111-aaaa/read", "api://00001111-aaaa/tools"];
    let mut setup = Setup::new().require("tools");
    setup.settings.metadata.scopes_supported = LISTED.map(str::to_owned).to_vec();
    let answer = setup.send(request(Method::POST, "/mcp")).await;
    assert_eq!(answer.challenge().param("scope"), Some(LISTED[1]));
    let answer = setup
        .send(request(Method::POST, "/mcp").bearer(&setup.token("read foreign")))
        .await;
    assert_eq!(answer.status, StatusCode::FORBIDDEN);
    assert_eq!(
        answer.challenge().param("scope"),
        Some(LISTED.join(" ").as_str())
    );
    let answer = setup
        .send(request(Method::POST, "/mcp").bearer(&setup.token("tools")))
        .await;
    assert_eq!(answer.status, StatusCode::OK);
}

/// B3: expiry and audience are checked before scopes.
#[tokio::test]
async fn an_invalid_token_is_rejected_before_missing_scopes() {
    let setup = Setup::new().require("read");
    for token in [
        setup.test_issuer.token().expires_in(-60),
        setup.test_issuer.token().audience("https://other.example"),
    ] {
        let answer = setup
            .send(request(Method::POST, "/mcp").bearer(&token.scope("").sign()))
            .await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert_eq!(answer.challenge().param("error"), Some("invalid_token"));
    }
}

/// B9: all rules that match the method and path apply together.
#[tokio::test]
async fn routes_add_scopes() {
    let setup = Setup::new()
        .require("base")
        .route(&[], "/reports/**", "reports")
        .route(
            &[Method::POST, Method::DELETE],
            "/reports/*",
            "reports:write",
        )
        .route(&[Method::GET], "/secret", "secret");
    let send = async |method: Method, path: &str, scopes: &str| {
        let answer = setup
            .send(request(method, path).bearer(&setup.token(scopes)))
            .await;
        match answer.status {
            StatusCode::OK => None,
            status => {
                assert_eq!(status, StatusCode::FORBIDDEN);
                Some(answer.challenge().param("scope").unwrap().to_owned())
            }
        }
    };
    assert_eq!(send(Method::GET, "/", "base").await, None);
    assert_eq!(
        send(Method::GET, "/", "reports").await.as_deref(),
        Some("base reports")
    );
    assert_eq!(send(Method::GET, "/reports/7", "base reports").await, None);
    assert_eq!(
        send(Method::GET, "/reports/7", "base").await.as_deref(),
        Some("base reports")
    );
    assert_eq!(
        send(Method::POST, "/reports/7", "").await.as_deref(),
        Some("base reports reports:write")
    );
    assert_eq!(
        send(Method::POST, "/reports/7", "base reports reports:write").await,
        None
    );
    assert_eq!(
        send(Method::POST, "/reports/7/x", "base reports").await,
        None
    );

    // Spellings that servers take for the same path, and HEAD for GET.
    for path in ["/REPORTS/7", "/reports/7/", "/%72eports/7", "/reports"] {
        assert_eq!(
            send(Method::GET, path, "base").await.as_deref(),
            Some("base reports"),
            "{path}"
        );
    }
    assert_eq!(
        send(Method::HEAD, "/secret", "base").await.as_deref(),
        Some("base secret")
    );
    assert_eq!(send(Method::POST, "/secret", "base").await, None);
}

/// B9: a method that some servers treat as the listed one needs the same scopes.
#[tokio::test]
async fn methods_match_in_any_letter_case() {
    let setup = Setup::new()
        .route(&[Method::POST, "Purge".parse().unwrap()], "/admin", "admin")
        .route(&[Method::GET], "/secret", "secret");
    for (method, path) in [
        ("POST", "/admin"),
        ("post", "/admin"),
        ("Post", "/admin"),
        ("PURGE", "/admin"),
        ("get", "/secret"),
        ("head", "/secret"),
        ("Head", "/secret"),
    ] {
        let answer = setup
            .send(request(method.parse().unwrap(), path).bearer(&setup.token("")))
            .await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN, "{method} {path}");
    }
    assert_eq!(setup.inner.count(), 0);
}

/// B9: if there are route rules, an ambiguous path is rejected.
#[tokio::test]
async fn ambiguous_paths_are_rejected() {
    let setup = Setup::new().route(&[], "/admin/**", "admin");
    let token = setup.token("");
    for path in [
        "//admin/x",
        "/x/../admin/x",
        "/x/%2e%2e/admin",
        "/admin%2Fx",
        "/%2561dmin",
        "/admin;x/y",
    ] {
        let answer = setup.send(request(Method::GET, path).bearer(&token)).await;
        assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{path}");
        assert_eq!(
            setup.sink.all().last().unwrap().code,
            Some("path.ambiguous")
        );
    }
    assert_eq!(setup.inner.count(), 0);
    let without_rules = Setup::new();
    let answer = without_rules
        .send(request(Method::GET, "/a%2Fb").bearer(&without_rules.token("")))
        .await;
    assert_eq!(answer.status, StatusCode::OK);
}

/// B3: if the inner service enforces the required scopes, the guard names them and admits the
/// request.
#[tokio::test]
async fn the_inner_service_may_enforce_scopes() {
    let mut setup = Setup::new().require("base").route(&[], "/admin", "admin");
    setup.settings.scopes_enforced_by = ScopeEnforcer::Inner;
    let answer = setup
        .send(request(Method::POST, "/mcp").bearer(&setup.token("")))
        .await;
    assert_eq!(answer.status, StatusCode::OK);
    let answer = setup.send(request(Method::POST, "/mcp")).await;
    assert_eq!(answer.challenge().param("scope"), Some("base"));
    let answer = setup
        .send(request(Method::POST, "/admin").bearer(&setup.token("")))
        .await;
    assert_eq!(answer.challenge().param("scope"), Some("admin base"));
    let implications = ScopeImplications::new([("admin", Scopes::parse("base").unwrap())]).unwrap();
    setup.settings.scope_implications = implications.clone();
    assert_eq!(setup.resource().scope_implications(), &implications);
}

/// B7: a broad scope grants the scopes that it implies, for the resource and for routes, and a
/// challenge keeps it.
#[tokio::test]
async fn broad_scopes_grant_implied_ones() {
    let mut setup = Setup::new()
        .require("tools")
        .route(&[], "/reports/**", "reports");
    let scopes = |names| Scopes::parse(names).unwrap();
    setup.settings.scope_implications = ScopeImplications::new([
        ("admin", scopes("operator")),
        ("operator", scopes("tools reports")),
    ])
    .unwrap();
    for (path, granted, challenged) in [
        ("/", "admin", None),
        ("/reports/1", "admin", None),
        ("/reports/1", "operator", None),
        ("/reports/1", "tools", Some("reports tools")),
        ("/reports/1", "foreign reports", Some("reports tools")),
    ] {
        let answer = setup
            .send(request(Method::GET, path).bearer(&setup.token(granted)))
            .await;
        let challenge = (answer.status == StatusCode::FORBIDDEN).then(|| answer.challenge());
        let scope = challenge
            .as_ref()
            .map(|challenge| challenge.param("scope").unwrap());
        assert_eq!(scope, challenged, "{path} {granted}");
    }
    setup.settings.required_scopes = scopes("tools other");
    let answer = setup
        .send(request(Method::GET, "/").bearer(&setup.token("admin")))
        .await;
    assert_eq!(answer.challenge().param("scope"), Some("admin other tools"));

    setup.settings.scope_implications =
        ScopeImplications::new([("offline_access", scopes("tools"))]).unwrap();
    assert_eq!(
        setup.rejected(),
        GuardSettingsError::OfflineAccess("the implied scopes")
    );
}
