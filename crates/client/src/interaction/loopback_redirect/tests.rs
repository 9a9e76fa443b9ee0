use std::sync::{Arc, mpsc};

use portcullis_metadata::Secret;

use super::*;
use crate::authorization_request::tests::{request, state};

async fn visit(redirect_uri: &Url, target: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", redirect_uri.port().unwrap())).await.unwrap();
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

/// Visits the targets one after another, and returns the pages and what the interaction gave.
async fn answers(
    request: &AuthorizationRequest,
    targets: &[String],
) -> (Vec<String>, Result<RedirectParameters, InteractionError>) {
    let redirect = Arc::new(LoopbackRedirect::bind(|_| ()).await.unwrap());
    let uri = redirect.redirect_uri().clone();
    let visits = async {
        let mut pages = Vec::new();
        for target in targets {
            pages.push(visit(&uri, target).await);
        }
        pages
    };
    let (pages, given) = tokio::join!(visits, redirect.authorize(request));
    (pages, given)
}

/// The port listens before the browser opens, and the answer leads to a page that says so.
#[tokio::test]
async fn an_answer_is_taken_and_told() {
    let request = request(true);
    let (opened, seen) = mpsc::channel();
    let redirect = LoopbackRedirect::bind(move |url| opened.send(url.clone()).unwrap()).await.unwrap();
    let uri = redirect.redirect_uri().clone();
    // Connecting works already, before anybody waits for the answer.
    let early = TcpStream::connect(("127.0.0.1", uri.port().unwrap())).await.unwrap();
    let target = format!("/callback?code=c&state={}&iss=https://auth.example.com", state(&request));
    let (page, given) = tokio::join!(visit(&uri, &target), redirect.authorize(&request));
    drop(early);
    assert_eq!(seen.recv().unwrap(), *request.url());
    assert_eq!(given.unwrap().code, Some(Secret::new("c")));
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("<h1>Signed in</h1>"), "{page}");
    assert!(page.contains("Content-Security-Policy: default-src 'none'"));
}

/// What is not the answer is told so, and the wait goes on.
#[tokio::test]
async fn only_the_right_answer_is_taken() {
    let request = request(true);
    let state = state(&request);
    let targets = [
        "/favicon.ico".to_owned(),
        "/callback?code=a&state=other".to_owned(),
        "/callback?code=a&code=b".to_owned(),
        format!("/elsewhere?code=a&state={state}"),
        format!("/callback?code=right&state={state}&iss=https://auth.example.com"),
    ];
    let (pages, given) = answers(&request, &targets).await;
    let statuses: Vec<_> = pages.iter().map(|page| &page[9..12]).collect();
    assert_eq!(statuses, ["404", "400", "400", "404", "200"]);
    assert_eq!(given.unwrap().code, Some(Secret::new("right")));
}

/// A request without end is not read without end.
#[tokio::test]
async fn a_head_is_bounded() {
    for (before, read) in [(0, true), (2 * MAX_HEAD, false)] {
        let head = ["a".repeat(before).as_bytes(), b"GET / HTTP/1.1\r\n\r\n"].concat();
        let (mut near, mut far) = tokio::io::duplex(4 * MAX_HEAD);
        far.write_all(&head).await.unwrap();
        assert_eq!(read_head(&mut near).await, read.then_some(head));
    }
}

/// I2: an error of the server is shown as text; one that comes with another issuer is not shown at all.
#[tokio::test]
async fn an_error_is_shown_only_from_the_right_issuer() {
    let request = request(true);
    let error = format!("/callback?error=access_denied&error_description=%3Cb%3Ehush&state={}", state(&request));
    let (pages, given) = answers(&request, &[format!("{error}&iss=https://auth.example.com")]).await;
    assert!(pages[0].contains("access_denied: &lt;b&gt;hush"), "{}", pages[0]);
    assert_eq!(request.judge(&given.unwrap()).unwrap_err().code(), "redirect.denied");

    let (pages, given) = answers(&request, &[format!("{error}&iss=https://evil.example")]).await;
    assert!(pages[0].starts_with("HTTP/1.1 400") && !pages[0].contains("hush") && !pages[0].contains("evil"));
    assert_eq!(request.judge(&given.unwrap()).unwrap_err().code(), "response.issuer_mismatch");
}

/// After 5 min without an answer the wait ends.
#[tokio::test(start_paused = true)]
async fn nobody_waits_forever() {
    let redirect = LoopbackRedirect::bind(|_| ()).await.unwrap();
    let begun = tokio::time::Instant::now();
    let given = redirect.authorize(&request(true)).await;
    assert_eq!(given.unwrap_err().code(), "interaction.timed_out");
    assert_eq!(begun.elapsed().as_secs(), 300);
}
