//! Tests of the loopback redirect.

use std::sync::{Arc, mpsc};

use portcullis_metadata::Secret;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;
use crate::authorization::request::tests::{request, state};

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

/// I3: the port listens before the browser opens, and the answer leads to a page that says so.
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
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.contains("<h1>Access granted</h1>"), "{page}");
    assert!(page.contains("Content-Security-Policy: default-src 'none'"));
}

/// I3: what is not the answer is told so, and the wait goes on.
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

/// I2: an error of the server is shown as text; one that comes with another issuer is not shown at all.
#[tokio::test]
async fn an_error_is_shown_only_from_the_right_issuer() {
    let request = request(true);
    let error = format!("/callback?error=access_denied&error_description=%3Cb%3Ehush&state={}", state(&request));
    let (pages, given) = answers(&request, &[format!("{error}&iss=https://auth.example.com")]).await;
    assert!(pages[0].contains("access_denied: &lt;b&gt;hush"), "{}", pages[0]);
    assert_eq!(request.validate_response(&given.unwrap()).unwrap_err().code(), "redirect.denied");

    let (pages, given) = answers(&request, &[format!("{error}&iss=https://evil.example")]).await;
    assert!(pages[0].starts_with("HTTP/1.1 400") && !pages[0].contains("hush") && !pages[0].contains("evil"));
    assert_eq!(request.validate_response(&given.unwrap()).unwrap_err().code(), "response.issuer_mismatch");
}

/// I3: after 5 min without an answer the wait ends.
#[tokio::test(start_paused = true)]
async fn nobody_waits_forever() {
    let redirect = LoopbackRedirect::bind(|_| ()).await.unwrap();
    let begun = tokio::time::Instant::now();
    let given = redirect.authorize(&request(true)).await;
    assert_eq!(given.unwrap_err().code(), "interaction.timed_out");
    assert_eq!(begun.elapsed().as_secs(), 300);
}

/// I3: one answer is taken; the same redirect again, and another one, are told that nobody waits.
#[tokio::test]
async fn an_answer_is_taken_once() {
    let request = request(true);
    let redirect = LoopbackRedirect::bind(|_| ()).await.unwrap();
    let uri = redirect.redirect_uri().clone();
    let target = format!("/callback?code=c&state={}&iss=https://auth.example.com", state(&request));
    let (page, given) = tokio::join!(visit(&uri, &target), redirect.authorize(&request));
    assert!(page.contains("Access granted") && given.is_ok());
    for target in [target.as_str(), "/callback?code=d&state=other"] {
        let page = visit(&uri, target).await;
        assert!(page.starts_with("HTTP/1.1 409") && page.contains("No sign-in is in progress"), "{page}");
    }
}

/// I3: the address that a browser elsewhere ended at can be pasted; what is no answer is asked for again with the
/// reason.
#[tokio::test]
async fn an_answer_can_be_pasted() {
    let request = request(true);
    let (asked, reasons) = mpsc::channel();
    let asked = std::sync::Mutex::new((asked, Vec::<String>::new()));
    let asked = Arc::new(asked);
    let lines = asked.clone();
    let redirect = LoopbackRedirect::bind(|_| ()).await.unwrap().with_pasted_input(move |wrong| {
        let mut asked = asked.lock().unwrap();
        asked.0.send(wrong.map(|wrong| wrong.code())).unwrap();
        let line = asked.1.pop();
        Box::pin(async { line })
    });
    let uri = redirect.redirect_uri().clone();
    let answer = format!("?code=pasted&iss=https://auth.example.com&state={}", state(&request));
    lines.lock().unwrap().1 = vec![
        // Some servers and browsers leave a fragment behind.
        format!(" {uri}{answer}#_=_\n"),
        format!("{uri}?code=c&state=other"),
        format!("https://evil.example/callback{answer}"),
        uri.to_string(),
        "what?".into(),
    ];
    let given = redirect.authorize(&request).await.unwrap();
    assert_eq!(given.code, Some(Secret::new("pasted")));
    let elsewhere = Some("redirect.elsewhere");
    assert_eq!(reasons.try_iter().collect::<Vec<_>>(), [None, elsewhere, elsewhere, elsewhere, Some("redirect.state")]);
}

/// I3: who stops pasting can still answer in the browser.
#[tokio::test]
async fn the_end_of_pasting_is_not_the_end() {
    let request = request(true);
    let redirect = LoopbackRedirect::bind(|_| ()).await.unwrap().with_pasted_input(|_| Box::pin(async { None }));
    let uri = redirect.redirect_uri().clone();
    let target = format!("/callback?code=c&state={}&iss=https://auth.example.com", state(&request));
    let (_, given) = tokio::join!(visit(&uri, &target), redirect.authorize(&request));
    assert_eq!(given.unwrap().code, Some(Secret::new("c")));
}

/// The port is free again when nobody is to sign in any more.
#[tokio::test]
async fn the_port_is_given_back() {
    let redirect = LoopbackRedirect::bind(|_| ()).await.unwrap();
    let port = redirect.redirect_uri().port().unwrap();
    assert!(format!("{redirect:?}").contains(&port.to_string()));
    drop(redirect);
    tokio::task::yield_now().await;
    assert!(LoopbackRedirect::bind_to(port, |_| ()).await.is_ok());
}

/// A resource has a port of its own, and another one where that is taken.
#[tokio::test]
async fn a_resource_has_a_port_of_its_own() {
    let start = StartUrl::parse("https://port-of-its-own.example/mcp").unwrap();
    let first = LoopbackRedirect::bind_for(&start, |_| ()).await.unwrap();
    let second = LoopbackRedirect::bind_for(&start, |_| ()).await.unwrap();
    assert_eq!(first.redirect_uri().port(), Some(port_of(&start)));
    assert_ne!(second.redirect_uri(), first.redirect_uri());
    let mut any = first.redirect_uri().clone();
    any.set_port(None).unwrap();
    assert_eq!(any.as_str(), LoopbackRedirect::ANY_PORT);
    assert!((20_000..32_000).contains(&port_of(&start)));
    assert_eq!(LoopbackRedirect::port_for(&start), port_of(&start));
    // Registrations name it: it is the same in all versions.
    let other = StartUrl::parse("https://another-port.example/mcp").unwrap();
    assert_eq!((port_of(&start), port_of(&other)), (21_537, 30_393));
    let taken = LoopbackRedirect::bind_to(port_of(&start), |_| ()).await;
    assert_eq!(taken.unwrap_err().code(), "interaction.listen");
}

/// I3: a registered path and `localhost` are served on both loopback addresses; the default path is not.
#[tokio::test]
async fn a_registered_redirect_is_served() {
    let request = request(true);
    let address = RedirectAddress::default().with_host("localhost").unwrap().with_path("/oauth/callback").unwrap();
    let redirect = LoopbackRedirect::bind_at(address, |_| ()).await.unwrap();
    let uri = redirect.redirect_uri().clone();
    assert_eq!((uri.host_str(), uri.path()), (Some("localhost"), "/oauth/callback"));
    let query = format!("code=c&state={}&iss=https://auth.example.com", state(&request));
    let visits = async {
        assert!(visit(&uri, &format!("/callback?{query}")).await.starts_with("HTTP/1.1 404"));
        if let Ok(mut stream) = TcpStream::connect(("::1", uri.port().unwrap())).await {
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).await.unwrap();
            assert!(page.starts_with("HTTP/1.1 404"), "{page}");
        }
        visit(&uri, &format!("/oauth/callback?{query}")).await
    };
    let (page, given) = tokio::join!(visits, redirect.authorize(&request));
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    assert!(given.is_ok());
}

/// H3: after a minute without an answer the user is told what to do, once, and the wait continues.
#[tokio::test(start_paused = true)]
async fn a_long_wait_is_explained() {
    let (told, heard) = mpsc::channel();
    let redirect = LoopbackRedirect::bind(|_| ()).await.unwrap();
    let redirect = redirect.with_delay_notice(move || told.send(tokio::time::Instant::now()).unwrap());
    let before = tokio::time::Instant::now();
    let request = request(true);
    assert!(matches!(redirect.authorize(&request).await, Err(InteractionError::TimedOut)));
    assert_eq!(before.elapsed(), LoopbackRedirect::TIMEOUT);
    let times: Vec<_> = heard.try_iter().collect();
    assert_eq!(times.iter().map(|time| *time - before).collect::<Vec<_>>(), [LoopbackRedirect::DELAY]);
}
