//! Servers that repeat what the client sent, in every encoding, in every response that becomes an
//! error.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};
use http::{Response, StatusCode, header};
use portcullis_scenarios::{Finished, Peer, PeerRequest, PeerResponse, Portcullis, Scratch};
use serde_json::json;
use url::{Url, form_urlencoded};

/// Secrets without digits, which do not look like tokens. Each encoding changes them.
const TOKEN: &str = "acc/ess+tok~en";
const CLIENT_SECRET: &str = "cli ent/se+cr=et";
const CODE: &str = "co/de+val~ue";
const HEADER: &str = "key/val\"ue";

fn encodings(secret: &str) -> Vec<String> {
    let hexadecimal = |upper: bool| -> String {
        secret
            .bytes()
            .map(|byte| {
                if upper {
                    format!("%{byte:02X}")
                } else {
                    format!("%{byte:02x}")
                }
            })
            .collect()
    };
    let form: String = form_urlencoded::byte_serialize(secret.as_bytes()).collect();
    let json = json!(secret).to_string();
    let mut all = vec![
        secret.to_owned(),
        hexadecimal(true),
        hexadecimal(false),
        form.clone(),
        json.trim_matches('"').replace('/', "\\/"),
        secret
            .encode_utf16()
            .map(|unit| format!("\\u{unit:04x}"))
            .collect(),
    ];
    for engine in [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD] {
        all.extend(
            [
                secret.to_owned(),
                format!("me:{secret}"),
                format!("me:{form}"),
            ]
            .map(|text| engine.encode(text)),
        );
    }
    all.sort();
    all.dedup();
    all
}

fn text(status: StatusCode, body: &str) -> PeerResponse {
    let response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, "text/plain");
    response.body(body.to_owned()).unwrap()
}

fn rpc_error(request: &PeerRequest, status: StatusCode, message: &str) -> PeerResponse {
    let error = json!({ "code": -32000, "message": message, "data": [{ "sent": message }] });
    let mut response =
        request.json(json!({ "jsonrpc": "2.0", "id": request.message()["id"], "error": error }));
    *response.status_mut() = status;
    response
}

/// The responses of an endpoint that become errors.
const RESPONSES: [fn(&PeerRequest, &str) -> PeerResponse; 7] = [
    |_, repeated| text(StatusCode::BAD_REQUEST, &format!("rejected: {repeated}.")),
    |_, repeated| text(StatusCode::OK, &format!("<html>{repeated}")),
    |_, repeated| {
        text(
            StatusCode::BAD_GATEWAY,
            &format!("{}{repeated}", "x ".repeat(95)),
        )
    },
    |request, repeated| rpc_error(request, StatusCode::OK, &format!("rejected: {repeated}.")),
    |request, repeated| rpc_error(request, StatusCode::BAD_REQUEST, repeated),
    |_, repeated| {
        let scope = repeated.replace([' ', '"', '\\'], "-");
        let mut response = text(StatusCode::FORBIDDEN, "");
        let challenge = format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\"");
        response
            .headers_mut()
            .insert(header::WWW_AUTHENTICATE, challenge.parse().unwrap());
        response
    },
    |request, repeated| {
        let mut response = text(StatusCode::TEMPORARY_REDIRECT, "");
        let path: String = repeated.replace([' ', '"', '\\'], "-");
        let location = format!("{}/elsewhere/{path}", request.base);
        response
            .headers_mut()
            .insert(header::LOCATION, location.parse().unwrap());
        response
    },
];

/// Asserts that a failed command printed neither the secret nor its encoding.
fn assert_silent(finished: &Finished, secret: &str, repeated: &str) {
    let output = format!("{}{}", finished.stdout, finished.stderr);
    let is_error = finished.code == Some(1) || output.contains("\"error\"");
    assert!(is_error, "{repeated}: {finished:?}");
    for text in [secret, repeated] {
        assert!(!output.contains(text), "{text} ({repeated}): {finished:?}");
        // JSON on standard output escapes the text once more.
        let escaped = json!(text).to_string();
        assert!(
            !output.contains(escaped.trim_matches('"')),
            "{escaped} ({repeated}): {finished:?}"
        );
    }
}

/// J2: the errors of `call` do not repeat the access token, whatever the resource's response is.
#[tokio::test]
async fn the_token_is_not_repeated() {
    for respond in RESPONSES {
        for repeated in encodings(TOKEN) {
            let sent = repeated.clone();
            let peer = Peer::start(move |request| {
                let is_sent = request.authorization.as_deref() == Some(&format!("Bearer {TOKEN}"));
                (is_sent && request.path == "/mcp").then(|| respond(request, &sent))
            });
            let url = peer.await.url("/mcp");
            let environment = [
                ("PORTCULLIS_TOKEN", TOKEN),
                ("PORTCULLIS_LOG", "portcullis=debug"),
            ];
            let finished = Portcullis::run_with(&["call", &url, "tools/list"], &environment).await;
            assert_silent(&finished, TOKEN, &repeated);
        }
    }
}

/// J2: the beginning of a long message before the result has no part of the token, where it is cut
/// within it.
#[tokio::test]
async fn a_shortened_message_has_no_part_of_the_token() {
    let peer = Peer::start(|request| {
        if request.path != "/mcp" || request.authorization.is_none() {
            return None;
        }
        let before = r#"{"jsonrpc":"2.0","method":"notifications/message","params":[""#;
        // The first 1,000 characters are shown.
        let filler = "x".repeat(1_000 - before.len() - TOKEN.len() / 2);
        let notification = format!("{before}{filler}{TOKEN}{}\"]}}", "y".repeat(70_000));
        let result = json!({ "jsonrpc": "2.0", "id": request.message()["id"], "result": {} });
        let response = Response::builder().header(header::CONTENT_TYPE, "text/event-stream");
        Some(
            response
                .body(format!("data: {notification}\n\ndata: {result}\n\n"))
                .unwrap(),
        )
    });
    let url = peer.await.url("/mcp");
    let arguments = ["call", &url, "tools/list", "--modern"];
    let finished = Portcullis::run_with(&arguments, &[("PORTCULLIS_TOKEN", TOKEN)]).await;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stderr.contains("(a message of "), "{finished:?}");
    assert!(!finished.stderr.contains(&TOKEN[..4]), "{finished:?}");
}

/// J2: neither does the report of `doctor --login`.
#[tokio::test]
async fn the_report_does_not_repeat_the_token() {
    for respond in RESPONSES {
        for repeated in encodings(TOKEN) {
            let sent = repeated.clone();
            let peer = Peer::start(move |request| match request.path.as_str() {
                "/token" => {
                    Some(request.json(json!({ "access_token": TOKEN, "token_type": "Bearer" })))
                }
                "/mcp" if request.authorization.is_some() => Some(respond(request, &sent)),
                _ => None,
            })
            .await;
            let (url, store) = (peer.url("/mcp"), Scratch::path_for("store"));
            let options = [
                "--login",
                "--auto-consent",
                "--no-registration",
                "--store",
                store.as_str(),
            ];
            let finished = Portcullis::run(&[&["doctor", &url][..], &options].concat()).await;
            assert!(
                finished.stdout.contains("a client opens a session"),
                "{finished:?}"
            );
            assert_silent(&finished, TOKEN, &repeated);
        }
    }
}

/// J2: neither standard output nor the log of `connect` repeats the value of a header.
#[tokio::test]
async fn the_value_of_a_header_is_not_repeated() {
    let header = format!("X-Api-Key: {HEADER}");
    for respond in RESPONSES
        .into_iter()
        .enumerate()
        .filter(|(index, _)| *index != 3)
        .map(|(_, respond)| respond)
    {
        for repeated in encodings(HEADER) {
            let sent = repeated.clone();
            let peer = Peer::start(move |request| Some(respond(request, &sent))).await;
            let url = peer.url("/mcp");
            let message =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
            let store = Scratch::path_for("store");
            let options = [
                "--header",
                &header,
                "--auto-consent",
                "--store",
                store.as_str(),
                "--transport",
                "http",
            ];
            let finished =
                Portcullis::run_bridge(&[&["connect", &url][..], &options].concat(), &[], &message)
                    .await;
            assert_silent(&finished, HEADER, &repeated);
        }
    }
}

/// J2: `login` repeats neither the client secret nor the code that it sent to the token endpoint.
#[tokio::test]
async fn the_client_secret_and_the_code_are_not_repeated() {
    let secret_file = Scratch::file("secret", CLIENT_SECRET);
    for (secret, method) in [
        (CLIENT_SECRET, "client_secret_post"),
        (CLIENT_SECRET, "client_secret_basic"),
        (CODE, "none"),
    ] {
        for repeated in encodings(secret) {
            for is_oauth_error in [true, false] {
                let sent = repeated.clone();
                let peer = Peer::start(move |request| match request.path.as_str() {
                    _ if request.is_for_server_metadata() => {
                        let mut metadata = request.server_metadata();
                        metadata["token_endpoint_auth_methods_supported"] = json!([method]);
                        Some(request.json(metadata))
                    }
                    "/authorize" => Some(grant(request)),
                    "/token" if is_oauth_error => {
                        let error = json!({ "error": "invalid_grant", "error_description": sent, "error_uri": sent });
                        let mut response = request.json(error);
                        *response.status_mut() = StatusCode::BAD_REQUEST;
                        Some(response)
                    }
                    "/token" => Some(text(StatusCode::INTERNAL_SERVER_ERROR, &format!("failed: {sent}"))),
                    _ => None,
                })
                .await;
                let (url, store) = (peer.url("/mcp"), Scratch::path_for("store"));
                let client = [
                    "--client-id",
                    "me",
                    "--client-secret-file",
                    secret_file.as_str(),
                ];
                let client = if method == "none" {
                    &client[..2]
                } else {
                    &client
                };
                let options = ["--auto-consent", "--store", store.as_str()];
                let finished =
                    Portcullis::run(&[&["login", &url][..], &options, client].concat()).await;
                assert!(!peer.requests("/token").is_empty(), "{finished:?}");
                assert_silent(&finished, secret, &repeated);
                assert!(finished.stderr.contains("[removed]"), "{finished:?}");
            }
        }
    }
}

/// The redirect of a user who consents, with the code of this test.
fn grant(request: &PeerRequest) -> PeerResponse {
    let mut target = Url::parse(&request.query["redirect_uri"]).unwrap();
    let state = &request.query["state"];
    target
        .query_pairs_mut()
        .append_pair("code", CODE)
        .append_pair("state", state)
        .append_pair("iss", &request.base);
    let mut response = text(StatusCode::FOUND, "");
    response
        .headers_mut()
        .insert(header::LOCATION, target.as_str().parse().unwrap());
    response
}
