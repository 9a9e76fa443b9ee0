//! What is requested first, and from the challenge to the metadata.

use super::*;

/// I1: a challenge from the caller is used: no request is sent to the resource, and the challenge's
/// scopes are requested.
#[tokio::test]
async fn a_challenge_of_the_caller_is_used() {
    let network = FetchFn::new(well_behaved);
    let user = ScriptedUser::consents();
    let elsewhere = format!(r#"Bearer resource_metadata="{PRM_URL}", scope="brought""#);
    let challenges = portcullis_metadata::parse_challenges([elsewhere.as_bytes()]).unwrap();
    let challenge = BearerChallenge::from_challenges(&challenges).unwrap();
    let authorizer = authorizer(&network, &user, AuthorizerSettings::default());
    let start = StartUrl::parse(RESOURCE).unwrap();
    let token = authorizer
        .answer_challenge(&start, Some(&challenge))
        .await
        .unwrap();
    assert_eq!(token.access_token().secret(), "hush");
    assert!(!token.is_dpop_bound());
    assert_eq!(query(&user.last_visit())["scope"], "brought");
    assert!(network.to(RESOURCE).is_empty());
}

/// G2: metadata of another resource ends the flow before a request to an authorization server.
#[tokio::test]
async fn metadata_of_another_resource_ends_the_flow() {
    let network = network_with(|request| {
        (request.url.as_str() == PRM_URL).then(|| Reply::json(200, prm("https://evil.example/mcp")))
    });
    let user = ScriptedUser::consents();
    assert_eq!(
        run(&network, &user).await.unwrap_err().code(),
        "discovery.resource_mismatch"
    );
    assert!(network.to(METADATA_URL).is_empty());
}

/// G7, G8: without S256 or the code flow, there is neither a registration nor an authorization
/// request.
#[tokio::test]
async fn an_unsupported_server_is_not_used() {
    let no_pkce = network_with_metadata(|document| {
        drop(
            document
                .as_object_mut()
                .unwrap()
                .remove("code_challenge_methods_supported"),
        )
    });
    let no_code = network_with_metadata(|document| {
        document["response_types_supported"] = serde_json::json!(["token"])
    });
    for (network, code) in [
        (no_pkce, "server.pkce_not_advertised"),
        (no_code, "server.no_code"),
    ] {
        let user = ScriptedUser::consents();
        assert_eq!(run(&network, &user).await.unwrap_err().code(), code);
        assert!(network.to(REGISTRATION_URL).is_empty());
        assert_eq!(user.visits(), 0);
    }
}

/// G6: URLs at the start URL's origin are fetched with the user's policy, all others with the peer
/// policy.
#[tokio::test]
async fn urls_of_other_origins_have_the_peer_policy() {
    let network = FetchFn::new(well_behaved);
    run(&network, &ScriptedUser::consents()).await.unwrap();
    for request in network.requests() {
        let is_own = request.url.origin() == Url::parse(RESOURCE).unwrap().origin();
        let expected = match is_own {
            true => UrlPolicy::StartOrigin,
            false => UrlPolicy::Peer {
                loopback_http: false,
                private_addresses: false,
            },
        };
        assert_eq!(request.policy, expected, "{}", request.url);
    }
}

/// G6: a resource on this machine can name plain http URLs on this machine; private addresses need
/// the setting.
#[tokio::test]
async fn a_resource_on_this_machine_can_name_others_there() {
    for (start, private_addresses, loopback_http) in [
        (RESOURCE, true, false),
        ("http://127.0.0.1:3000/mcp", false, true),
        ("http://localhost:3000/mcp", true, true),
    ] {
        let network = FetchFn::new(|request| {
            let named = r#"Bearer resource_metadata="https://other.example.com/meta""#;
            match request.url.path() {
                "/mcp" => Some(Reply::status(401).header(header::WWW_AUTHENTICATE, named)),
                _ => Some(Reply::status(404)),
            }
        });
        let settings = AuthorizerSettings {
            private_addresses,
            ..AuthorizerSettings::default()
        };
        let start = StartUrl::parse(start).unwrap();
        let rejected = authorizer(&network, &ScriptedUser::consents(), settings)
            .authorize(&start)
            .await;
        assert_eq!(rejected.unwrap_err().code(), "discovery.not_found");
        let policies: Vec<_> = network
            .requests()
            .into_iter()
            .map(|request| request.policy)
            .collect();
        let peer = UrlPolicy::Peer {
            loopback_http,
            private_addresses,
        };
        let own = UrlPolicy::StartOrigin;
        assert_eq!(policies, [own, peer, own, own]);
    }
}

/// A resource that rejects GET before it checks the token is probed with POST.
#[tokio::test]
async fn a_resource_that_rejects_get_is_probed_with_post() {
    let network = network_with(|request| {
        (request.url.as_str() == RESOURCE && request.method == Method::GET)
            .then(|| Reply::status(405))
    });
    assert!(run(&network, &ScriptedUser::consents()).await.is_ok());
}

/// I9: the first request follows redirects only within the start URL.
#[tokio::test]
async fn the_first_request_follows_redirects_within_the_resource() {
    let slash = format!("{RESOURCE}/");
    let follow = |location: &str, status| {
        let location = HeaderValue::from_str(location).unwrap();
        let network = network_with(move |request| match request.url.as_str() {
            RESOURCE => {
                Some(Reply::status(status).header(header::LOCATION, location.to_str().unwrap()))
            }
            url if url == format!("{RESOURCE}/") => Some(Reply::status(401)),
            _ => None,
        });
        async move { (run(&network, &ScriptedUser::consents()).await, network) }
    };
    for status in [307, 308] {
        let (result, network) = follow(&slash, status).await;
        result.unwrap();
        assert_eq!(network.to(&slash).len(), 1);
    }
    for (location, status) in [
        ("/other", 307),
        ("https://evil.example/mcp/", 308),
        (slash.as_str(), 302),
    ] {
        let (result, network) = follow(location, status).await;
        assert_eq!(
            result.unwrap_err().code(),
            "client.redirected",
            "{location}"
        );
        assert_eq!(
            network.requests().len(),
            2,
            "only GET and POST to the start URL"
        );
    }
}

/// GET may have a page, even if the messages of the same URL need a token.
#[tokio::test]
async fn the_challenge_can_be_that_of_post() {
    for status in [200, 404, 405, 501] {
        let network = network_with(move |request| {
            let is_page = request.method == Method::GET && request.url.as_str() == RESOURCE;
            is_page.then(|| Reply::status(status))
        });
        run(&network, &ScriptedUser::consents()).await.unwrap();
        let probes = network.to(RESOURCE);
        let ping: serde_json::Value = serde_json::from_slice(&probes[1].body).unwrap();
        assert_eq!(ping["method"], "ping");
        for probe in &probes[..2] {
            assert_eq!(
                probe.headers[header::ACCEPT],
                "application/json, text/event-stream"
            );
        }
    }
}

/// A resource without a challenge, a redirect and a failed connection are different errors.
#[tokio::test]
async fn a_resource_without_a_challenge() {
    for status in [200, 404, 500] {
        let network = FetchFn::new(move |_| Some(Reply::status(status)));
        assert_eq!(
            run(&network, &ScriptedUser::consents())
                .await
                .unwrap_err()
                .code(),
            "client.not_challenged"
        );
        let methods: Vec<_> = network
            .requests()
            .into_iter()
            .map(|request| request.method)
            .collect();
        assert_eq!(methods, [Method::GET, Method::POST], "{status}");
    }
    let network = FetchFn::new(|_| Some(Reply::status(302)));
    assert_eq!(
        run(&network, &ScriptedUser::consents())
            .await
            .unwrap_err()
            .code(),
        "client.redirected"
    );
    let down = FetchFn::new(|_| None);
    assert_eq!(
        run(&down, &ScriptedUser::consents())
            .await
            .unwrap_err()
            .code(),
        "fetch.connect"
    );
}

/// G1: after a 401 with a malformed challenge, or with another scheme, the well-known URLs are
/// used.
#[tokio::test]
async fn a_malformed_challenge_is_ignored() {
    for value in ["Bearer realm=\"", "Basic realm=\"a\""] {
        let network = network_with(move |request| {
            (request.url.as_str() == RESOURCE)
                .then(|| Reply::status(401).header(header::WWW_AUTHENTICATE, value))
        });
        assert!(
            run(&network, &ScriptedUser::consents()).await.is_ok(),
            "{value}"
        );
    }
}

/// With the setting, a resource without metadata is its own authorization server, which can have no
/// metadata either.
#[tokio::test]
async fn revision_2025_03_26_is_an_option() {
    const OWN: &str = "https://mcp.example.com";
    let start = StartUrl::parse(RESOURCE).unwrap();
    for publishes in [true, false] {
        let network = FetchFn::new(move |request| match request.url.as_str() {
            RESOURCE => Some(Reply::status(401)),
            "https://mcp.example.com/.well-known/oauth-authorization-server" if publishes => {
                Some(Reply::json(
                    200,
                    metadata()
                        .to_string()
                        .replace("https://auth.example.com", OWN),
                ))
            }
            "https://mcp.example.com/register" => Some(Reply::json(201, r#"{"client_id":"own"}"#)),
            "https://mcp.example.com/token" => Some(Reply::json(
                200,
                r#"{"access_token":"hush","token_type":"Bearer"}"#,
            )),
            _ => Some(Reply::status(404)),
        });
        let user = ScriptedUser::responds(|state| {
            format!("code=c&state={state}&iss=https://mcp.example.com")
        });
        let rejected = authorizer(&network, &user, AuthorizerSettings::default())
            .authorize(&start)
            .await;
        assert_eq!(rejected.unwrap_err().code(), "discovery.not_found");
        let settings = AuthorizerSettings {
            revision_2025_03_26: true,
            ..AuthorizerSettings::default()
        };
        let token = authorizer(&network, &user, settings)
            .authorize(&start)
            .await
            .unwrap();
        assert_eq!(token.issuer().as_str(), OWN);
        assert_eq!(token.resource().as_str(), RESOURCE);
        assert!(
            user.last_visit()
                .as_str()
                .starts_with("https://mcp.example.com/authorize?")
        );
        assert_eq!(query(&user.last_visit())["code_challenge_method"], "S256");
    }
}

/// An authorization server without metadata is accepted only with the setting, and only at the
/// resource's origin.
#[tokio::test]
async fn only_the_resources_own_server_needs_no_metadata() {
    const OWN: &str = "https://mcp.example.com";
    for (server, revision_2025_03_26, expected) in [
        (OWN, true, Ok(())),
        (OWN, false, Err("discovery.not_found")),
        (ISSUER, true, Err("discovery.not_found")),
        (ISSUER, false, Err("discovery.not_found")),
    ] {
        let network =
            FetchFn::new(
                move |request| match (request.url.path(), request.url.as_str()) {
                    (_, RESOURCE) => Some(Reply::challenge()),
                    (_, PRM_URL) => {
                        let mut document = prm(RESOURCE);
                        document["authorization_servers"] = serde_json::json!([server]);
                        Some(Reply::json(200, document))
                    }
                    ("/register", _) => Some(Reply::json(201, r#"{"client_id":"own"}"#)),
                    ("/token", _) => Some(Reply::json(
                        200,
                        r#"{"access_token":"hush","token_type":"Bearer"}"#,
                    )),
                    _ => Some(Reply::status(404)),
                },
            );
        let user =
            ScriptedUser::responds(move |state| format!("code=c&state={state}&iss={server}"));
        let settings = AuthorizerSettings {
            revision_2025_03_26,
            ..AuthorizerSettings::default()
        };
        let result = authorizer(&network, &user, settings)
            .authorize(&StartUrl::parse(RESOURCE).unwrap())
            .await;
        assert_eq!(
            result.map(drop).map_err(|error| error.code()),
            expected,
            "{server} {revision_2025_03_26}"
        );
    }
}
