//! Tokens, heads and bodies that are too large, on both HTTP versions.

use portcullis_scenarios::{
    Administration, Connection, Deployment, Http2, INITIALIZE, Request, call_message,
};
use serde_json::json;

const TOKEN_LIMIT: usize = 16 * 1024;

/// Returns a valid token of exactly this length.
fn token_of(deployment: &Deployment, length: usize) -> String {
    let bare = deployment.token();
    let signature = bare.sign().len() - bare.unsigned("RS256").len();
    // Three more characters in the payload make the token four characters longer. The header makes
    // up the difference.
    for header in 0..4 {
        let token = |payload: usize| {
            bare.clone()
                .header("x", "h".repeat(header))
                .claim("pad", "p".repeat(payload))
        };
        let guess = (length - signature - token(0).unsigned("RS256").len()) * 3 / 4;
        for payload in guess - 3..guess + 3 {
            if token(payload).unsigned("RS256").len() + signature == length {
                return token(payload).sign();
            }
        }
    }
    panic!("no token of {length} bytes");
}

/// C9: a token at the limit is accepted and one above it gets 401. The head limit permits both.
#[tokio::test]
async fn tokens_around_the_limit() {
    let deployment = Deployment::start().await;
    let mut http2 = Http2::connect(deployment.portcullis.address()).await;
    let at_limit = token_of(&deployment, TOKEN_LIMIT);
    deployment.assert_accepted("HTTP/1.1", &at_limit).await;

    let post = |token: &str| {
        Http2::post(Deployment::ENDPOINT).header("authorization", format!("Bearer {token}"))
    };
    let response = http2.send(post(&at_limit), INITIALIZE).await.unwrap();
    assert_eq!(response.status, 200, "HTTP/2: {response:?}");

    let before = deployment.upstream.count();
    for length in [TOKEN_LIMIT + 1, TOKEN_LIMIT + 2, TOKEN_LIMIT + 8 * 1024] {
        let token = format!("{at_limit}{}", "A".repeat(length - TOKEN_LIMIT));
        deployment
            .assert_rejected([("HTTP/1.1", token.clone(), "token.too_large")])
            .await;
        let response = http2.send(post(&token), INITIALIZE).await.unwrap();
        assert_eq!(
            response.assert_unauthorized(),
            Some("invalid_token"),
            "HTTP/2: {response:?}"
        );
        deployment
            .portcullis
            .assert_denied(&response, "token.too_large")
            .await;
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );
}

/// J1, L9: an access line has a bounded part of a long method and path, so that long requests do
/// not displace the lines of others.
#[tokio::test]
async fn access_lines_of_long_requests() {
    let deployment = Deployment::start().await;
    let long_path = format!("/{}", "p".repeat(20 << 10));
    let response = deployment.send(Request::new("GET", &long_path)).await;
    assert_eq!(response.status, 404, "{response:?}");
    let line = deployment.portcullis.access_line(&response).await;
    assert_eq!(
        line["http.path"],
        format!("/{}…", "p".repeat(255)),
        "{line}"
    );

    let response = deployment
        .send(Request::new(&"M".repeat(20 << 10), "/"))
        .await;
    let line = deployment.portcullis.access_line(&response).await;
    assert_eq!(
        line["http.method"],
        format!("{}…", "M".repeat(256)),
        "{line}"
    );
}

/// C9, F4: the head can have other fields in addition to the largest token.
#[tokio::test]
async fn other_fields_beside_the_largest_token() {
    let deployment = Deployment::start().await;
    let token = token_of(&deployment, TOKEN_LIMIT);
    let filling = "f".repeat(8 * 1024);
    let response = deployment
        .send(
            Request::post(Deployment::ENDPOINT, INITIALIZE)
                .bearer(&token)
                .header("X-Filling", &filling),
        )
        .await;
    assert_eq!(response.status, 200, "HTTP/1.1: {response:?}");
    let mut http2 = Http2::connect(deployment.portcullis.address()).await;
    let request = Http2::post(Deployment::ENDPOINT)
        .header("authorization", format!("Bearer {token}"))
        .header("x-filling", filling);
    let response = http2.send(request, INITIALIZE).await.unwrap();
    assert_eq!(response.status, 200, "HTTP/2: {response:?}");
}

/// F4: a head with too many bytes or fields gets 431 on both HTTP versions.
#[tokio::test]
async fn header_bombs() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let post = || Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&good);
    let one_large = post().header("X-Bomb", "b".repeat(40 * 1024));
    let many = |count: usize| {
        (0..count).fold(post(), |request, number| {
            request.header(&format!("x-{number}"), "v")
        })
    };
    for (case, request) in [
        ("one large field", one_large),
        ("101 fields more", many(101)),
        ("1000 fields more", many(1000)),
    ] {
        let response = deployment.send(request).await;
        assert_eq!(response.status, 431, "HTTP/1.1, {case}: {response:?}");
    }
    let http2_post =
        || Http2::post(Deployment::ENDPOINT).header("authorization", format!("Bearer {good}"));
    let many = |count: usize| {
        (0..count).fold(http2_post(), |request, number| {
            request.header(format!("x-{number}"), "v")
        })
    };
    let one_large = http2_post().header("x-bomb", "b".repeat(40 * 1024));
    for (case, request) in [
        ("one large field", one_large),
        ("101 fields more", many(101)),
        ("1000 fields more", many(1000)),
    ] {
        let mut http2 = Http2::connect(deployment.portcullis.address()).await;
        // Closing the connection immediately is also acceptable.
        if let Ok(response) = http2.send(request, INITIALIZE).await {
            assert_eq!(response.status, 431, "HTTP/2, {case}: {response:?}");
        }
    }
    assert!(
        deployment.upstream.recorded().is_empty(),
        "a request reached the upstream"
    );

    let few = (0..50).fold(post(), |request, number| {
        request.header(&format!("x-{number}"), "v")
    });
    assert_eq!(deployment.send(few).await.status, 200);
    let mut http2 = Http2::connect(deployment.portcullis.address()).await;
    let few = (0..50).fold(http2_post(), |request, number| {
        request.header(format!("x-{number}"), "v")
    });
    assert_eq!(http2.send(few, INITIALIZE).await.unwrap().status, 200);
}

/// F4: the maximum number of header fields is configurable.
#[tokio::test]
async fn a_configured_number_of_fields() {
    let deployment = Deployment::builder()
        .tables("[limits]\nmax_headers = 20")
        .start()
        .await;
    let good = deployment.good_token();
    let many = |count: usize| {
        let post = Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(&good);
        (0..count).fold(post, |request, number| {
            request.header(&format!("x-{number}"), "v")
        })
    };

    // Host, Content-Type, Accept, Authorization and Content-Length are five fields.
    assert_eq!(deployment.send(many(15)).await.status, 200);
    assert_eq!(deployment.send(many(16)).await.status, 431);
    let mut http2 = Http2::connect(deployment.portcullis.address()).await;
    let many = |count: usize| {
        let post =
            Http2::post(Deployment::ENDPOINT).header("authorization", format!("Bearer {good}"));
        (0..count).fold(post, |request, number| {
            request.header(format!("x-{number}"), "v")
        })
    };
    assert_eq!(http2.send(many(10), INITIALIZE).await.unwrap().status, 200);
    assert_eq!(http2.send(many(18), INITIALIZE).await.unwrap().status, 431);
}

/// F4: a body above the limit gets 413, with or without Content-Length, before any other check of
/// the message.
#[tokio::test]
async fn bodies_around_the_limit() {
    let deployment = Deployment::builder()
        .tables("[limits]\nmax_body = 4096")
        .start()
        .await;
    let good = deployment.good_token();
    let session = deployment.open_session(&good).await;
    let message = |length: usize| {
        let bare = call_message(1, "tools/list", &json!({ "x": "" })).len();
        call_message(1, "tools/list", &json!({ "x": "y".repeat(length - bare) }))
    };
    let post = |body: String| {
        Request::post(Deployment::ENDPOINT, body)
            .bearer(&good)
            .session(&session)
    };
    assert_eq!(
        deployment.send(post(message(4096))).await.status,
        200,
        "at the limit"
    );

    let before = deployment.upstream.count();
    let chunked = |body: &str| {
        let coded = body
            .as_bytes()
            .chunks(1000)
            .fold(Vec::new(), |mut coded, chunk| {
                coded.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                coded.extend_from_slice(chunk);
                coded.extend_from_slice(b"\r\n");
                coded
            });
        Request::post(Deployment::ENDPOINT, [&coded[..], b"0\r\n\r\n"].concat())
            .header("Transfer-Encoding", "chunked")
            .bearer(&good)
    };
    for (case, request) in [
        ("one byte too many", post(message(4097))),
        (
            "announced, not sent",
            Request::post(Deployment::ENDPOINT, "")
                .header("Content-Length", "999999999999")
                .bearer(&good),
        ),
        ("chunked", chunked(&message(4097)).session(&session)),
        (
            "without a session",
            Request::post(Deployment::ENDPOINT, message(5000)).bearer(&good),
        ),
        (
            "of another type",
            Request::new("POST", Deployment::ENDPOINT)
                .bearer(&good)
                .body(message(5000)),
        ),
    ] {
        let response = deployment.send(request).await;
        assert_eq!(response.status, 413, "{case}: {response:?}");
        deployment
            .portcullis
            .assert_denied(&response, "body.too_large")
            .await;
    }
    assert_eq!(
        deployment.upstream.count(),
        before,
        "a request reached the upstream"
    );

    let mut http2 = Http2::connect(deployment.portcullis.address()).await;
    let request =
        Http2::post(Deployment::ENDPOINT).header("authorization", format!("Bearer {good}"));
    assert_eq!(
        http2.send(request, message(5000)).await.unwrap().status,
        413
    );

    let response = deployment
        .send(Request::post(Deployment::ENDPOINT, message(5000)))
        .await;
    assert_eq!(
        response.assert_unauthorized(),
        None,
        "the bearer check comes first"
    );
}

/// F4: the default limit is 4 MiB.
#[tokio::test]
async fn the_default_limit() {
    let deployment = Deployment::start().await;
    let good = deployment.good_token();
    let fill = |length: usize| {
        let bare = call_message(1, "initialize", &json!({ "x": "" })).len();
        call_message(1, "initialize", &json!({ "x": "y".repeat(length - bare) }))
    };
    let post = |length: usize| Request::post(Deployment::ENDPOINT, fill(length)).bearer(&good);
    assert_eq!(deployment.send(post(4 << 20)).await.status, 200);
    assert_eq!(deployment.send(post((4 << 20) + 1)).await.status, 413);
}

/// F4: all bodies share one budget. While it is exhausted, larger bodies get 503 with
/// `Retry-After`.
#[tokio::test]
async fn the_shared_budget() {
    let administration = Administration::default();
    let limits = "[limits]\nmax_body = 4096\nbody_budget = 4096";
    let deployment = administration
        .of(Deployment::builder(), limits)
        .start()
        .await;
    let good = deployment.good_token();
    let large = call_message(1, "initialize", &json!({ "x": "y".repeat(3000) }));
    let post = || Request::post(Deployment::ENDPOINT, large.as_str()).bearer(&good);

    // A body counts from its first byte.
    let bytes = post().to_bytes();
    let (start, rest) = bytes.split_at(bytes.len() - 1);
    let mut first = Connection::open(deployment.portcullis.address()).await;
    first.write(start).await;
    administration
        .wait_for_metric("portcullis_body_budget_used_bytes", large.len() - 1)
        .await;

    let response = deployment.send(post()).await;
    assert_eq!(response.status, 503, "{response:?}");
    assert!(response.header("retry-after").is_some(), "{response:?}");
    deployment
        .portcullis
        .assert_denied(&response, "body.budget_spent")
        .await;
    assert_eq!(
        deployment.upstream.count(),
        0,
        "a request reached the upstream"
    );
    deployment.assert_accepted("a small body", &good).await;

    let response = first.exchange(rest).await;
    assert_eq!(response.status, 200, "{response:?}");
    assert_eq!(
        deployment.send(post()).await.status,
        200,
        "capacity is free again"
    );
}
