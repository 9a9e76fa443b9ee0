//! Authorization servers whose metadata and registrations contain URLs that the client must not
//! use.

use http::Response;
use portcullis_scenarios::{Finished, Peer, PeerRequest, PeerResponse, Portcullis, Scratch};
use serde_json::{Value, json};

async fn login(
    script: impl Fn(&PeerRequest) -> Option<PeerResponse> + Send + Sync + 'static,
) -> (Peer, Finished) {
    let peer = Peer::start(script).await;
    let store = Scratch::path_for("store");
    let url = peer.url("/mcp");
    let arguments = ["login", &url, "--auto-consent", "--store", store.as_str()];
    (peer, run_briefly(&arguments).await)
}

/// Runs a command, which is killed after 10 s of computing. How long it waits for a processor does
/// not count.
async fn run_briefly(arguments: &[&str]) -> Finished {
    Portcullis::run_limited(arguments, "-t 10", "").await
}

/// Changes one member of the authorization server's metadata.
fn metadata_with(
    member: &'static str,
    value: Value,
) -> impl Fn(&PeerRequest) -> Option<PeerResponse> + Send + Sync {
    move |request| {
        let mut metadata = request.server_metadata();
        metadata[member] = value.clone();
        request
            .is_for_server_metadata()
            .then(|| request.json(metadata))
    }
}

/// A sign-in at a valid server succeeds.
#[tokio::test]
async fn a_valid_server_is_accepted() {
    let (peer, finished) = login(|_| None).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(peer.requests("/token").len(), 1);
}

/// G9: one `http` endpoint anywhere in the metadata prevents registration and sign-in.
#[tokio::test]
async fn an_http_endpoint_is_rejected_before_sign_in() {
    const ELSEWHERE: &str = "http://auth.example.com/x";
    for member in [
        "authorization_endpoint",
        "token_endpoint",
        "registration_endpoint",
        "introspection_endpoint",
        "revocation_endpoint",
        "pushed_authorization_request_endpoint",
        "device_authorization_endpoint",
        "userinfo_endpoint",
        "jwks_uri",
    ] {
        let (peer, finished) = login(metadata_with(member, json!(ELSEWHERE))).await;
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
        assert!(
            finished
                .stderr
                .contains(&format!("insecure {member}: {ELSEWHERE}")),
            "{finished:?}"
        );
        for path in ["/register", "/authorize", "/token"] {
            assert!(peer.requests(path).is_empty(), "{member} {path}");
        }
    }
    let aliases = json!({ "token_endpoint": ELSEWHERE });
    assert_eq!(
        login(metadata_with("mtls_endpoint_aliases", aliases))
            .await
            .1
            .code,
        Some(1)
    );

    // Pages for users are not endpoints.
    assert_eq!(
        login(metadata_with("op_tos_uri", json!(ELSEWHERE)))
            .await
            .1
            .code,
        Some(0)
    );
}

/// H4: a registration with other redirect URIs is rejected before the browser opens.
#[tokio::test]
async fn a_registration_without_the_redirect_uri_is_rejected() {
    for redirects in [
        json!([]),
        json!(["https://evil.example/callback"]),
        json!(["http://localhost/callback"]),
    ] {
        let response = json!({ "client_id": "me", "redirect_uris": redirects });
        let (peer, finished) =
            login(move |request| (request.path == "/register").then(|| request.json(&response)))
                .await;
        assert_eq!(finished.code, Some(1), "{finished:?}");
        assert_eq!(finished.stderr.lines().count(), 1, "{finished:?}");
        assert!(
            finished
                .stderr
                .contains("did not register the redirect URI"),
            "{finished:?}"
        );
        assert!(peer.requests("/authorize").is_empty(), "{redirects}");
        assert!(peer.requests("/token").is_empty(), "{redirects}");
    }
    let (_, finished) = login(|request| {
        (request.path == "/register").then(|| request.json(r#"{"client_id":"me"}"#))
    })
    .await;
    assert_eq!(
        finished.code,
        Some(0),
        "a response without redirect URIs is accepted: {finished:?}"
    );
}

/// H4, G9: `doctor` warns about a resource that is only a prefix, and reports insecure endpoints.
#[tokio::test]
async fn doctor_reports_it() {
    let peer = Peer::start(|request| {
        let broad = request.resource_metadata(&request.base);
        request
            .is_for_resource_metadata("/mcp")
            .then(|| request.json(broad))
    });
    let finished = Portcullis::run(&["doctor", &peer.await.url("/mcp")]).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(
        finished.stdout.contains("also valid for the other paths"),
        "{finished:?}"
    );

    let peer = Peer::start(metadata_with(
        "introspection_endpoint",
        json!("http://auth.example.com/x"),
    ))
    .await;
    let finished = Portcullis::run(&["doctor", &peer.url("/mcp")]).await;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert!(
        finished
            .stdout
            .contains("neither https nor http to loopback: introspection_endpoint"),
        "{finished:?}"
    );
}

/// G9: metadata with more than 1,000 scopes or 32 authorization servers is rejected, and the error
/// names the limit.
#[tokio::test]
async fn crowded_metadata_is_rejected() {
    let scopes: Vec<String> = (0..20_000).map(|number| format!("s{number}")).collect();
    let limit = "scopes_supported in the metadata has 20000 entries; at most 1000 are accepted";
    let (peer, finished) = login(metadata_with("scopes_supported", json!(scopes))).await;
    assert!(finished.stderr.contains(limit), "{finished:?}");
    assert!(peer.requests("/register").is_empty());

    let resource_with = |member: &'static str, value: Value| {
        login(move |request| {
            let mut metadata = request.resource_metadata(&format!("{}/mcp", request.base));
            metadata[member] = value.clone();
            request
                .is_for_resource_metadata("/mcp")
                .then(|| request.json(metadata))
        })
    };
    let (_, finished) = resource_with("scopes_supported", json!(scopes)).await;
    assert!(finished.stderr.contains(limit), "{finished:?}");
    assert_eq!(
        resource_with("scopes_supported", json!(scopes[..1_000]))
            .await
            .1
            .code,
        Some(0)
    );

    let issuers: Vec<String> = (0..33)
        .map(|number| format!("https://auth{number}.example"))
        .collect();
    let (_, finished) = resource_with("authorization_servers", json!(issuers)).await;
    let limit = "authorization_servers in the metadata has 33 entries; at most 32 are accepted";
    assert!(finished.stderr.contains(limit), "{finished:?}");
}

/// Many different names of scopes.
fn crowd(prefix: char, count: u32) -> Vec<String> {
    (0..count)
        .map(|number| format!("{prefix}{number:04x}"))
        .collect()
}

fn challenge(scopes: &str) -> PeerResponse {
    let response = Response::builder().status(401);
    response
        .header("www-authenticate", format!("Bearer scope=\"{scopes}\""))
        .body(String::new())
        .unwrap()
}

/// G9: tens of thousands of scopes in a challenge, a registration and a token response do not stop
/// the client: they count as none.
#[tokio::test]
async fn crowded_responses_take_no_time() {
    // As many as the limits of a challenge and of a response permit.
    let challenged = crowd('a', 10_000).join(" ");
    let [registered, granted] = ['b', 'c'].map(|prefix| crowd(prefix, 40_000).join(" "));
    let (peer, finished) = login(move |request| match request.path.as_str() {
        "/mcp" => Some(challenge(&challenged)),
        "/register" => Some(request.json(json!({ "client_id": "me", "scope": registered }))),
        "/token" => Some(
            request.json(json!({ "access_token": "t", "token_type": "Bearer", "scope": granted })),
        ),
        _ => None,
    })
    .await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("not stated"), "{finished:?}");
    assert!(!peer.requests("/authorize")[0].query.contains_key("scope"));
}

/// G9: neither do they stop `doctor`.
#[tokio::test]
async fn doctor_compares_crowded_lists() {
    let [required, supported] = ['a', 'b'].map(|prefix| json!(crowd(prefix, 28_000)));
    let peer = Peer::start(move |request| {
        let mut metadata = request.resource_metadata(&format!("{}/mcp", request.base));
        metadata["scopes_supported"] = required.clone();
        let response = request
            .is_for_resource_metadata("/mcp")
            .then(|| request.json(metadata));
        response.or_else(|| metadata_with("scopes_supported", supported.clone())(request))
    })
    .await;
    let finished = run_briefly(&["doctor", &peer.url("/mcp"), "--no-registration"]).await;
    assert!(
        finished.stdout.contains("the server does not list: a0000"),
        "{:.2000}",
        finished.stdout
    );
}
