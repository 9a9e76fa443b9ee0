//! Only the expected redirect is accepted, once, until a timeout.

use std::{io::ErrorKind, sync::mpsc};

use portcullis_metadata::Secret;
use portcullis_testkit::ReservedPort;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::*;
use crate::authorization::request::tests::{request, state};

async fn visit(redirect_uri: &Url, target: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", redirect_uri.port().unwrap()))
        .await
        .unwrap();
    stream
        .write_all(format!("GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    page
}

/// Visits the targets one after another. Returns the pages and the result of the interaction.
async fn visit_all(
    request: &AuthorizationRequest,
    targets: &[String],
) -> (Vec<String>, Result<RedirectParameters, InteractionError>) {
    let redirect = LoopbackRedirect::bind(|_| ()).await.unwrap();
    let uri = redirect.redirect_uri().clone();
    let visits = async {
        let mut pages = Vec::new();
        for target in targets {
            pages.push(visit(&uri, target).await);
        }
        pages
    };
    let (pages, result) = tokio::join!(visits, redirect.authorize(request));
    (pages, result)
}

/// I3: the port listens before the browser opens, and a successful redirect gets a page that
/// confirms it.
#[tokio::test]
async fn a_redirect_is_accepted_and_confirmed() {
    let request = request(true);
    let (opened, seen) = mpsc::channel();
    let redirect = LoopbackRedirect::bind(move |url| opened.send(url.clone()).unwrap())
        .await
        .unwrap();
    let uri = redirect.redirect_uri().clone();

    // Connections are accepted before `authorize` is called.
    let early = TcpStream::connect(("127.0.0.1", uri.port().unwrap()))
        .await
        .unwrap();
    let target = format!(
        "/callback?code=c&state={}&iss=https://auth.example.com",
        state(&request)
    );
    let (page, result) = tokio::join!(visit(&uri, &target), redirect.authorize(&request));
    drop(early);
    assert_eq!(seen.recv().unwrap().port(), uri.port());
    assert_eq!(result.unwrap().code, Some(Secret::new("c")));
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("<h1>Access granted</h1>"), "{page}");
    assert!(page.contains("Content-Security-Policy: default-src 'none'"));
}

type SignIn = JoinHandle<Result<RedirectParameters, InteractionError>>;

/// A sign-in, and the path of its one-time address.
async fn started(request: AuthorizationRequest) -> (SignIn, Url) {
    started_at(0, request).await
}

/// As [`started`], on this port.
async fn started_at(port: u16, request: AuthorizationRequest) -> (SignIn, Url) {
    let (opened, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let redirect = LoopbackRedirect::bind_to(port, move |url| opened.send(url.clone()).unwrap())
        .await
        .unwrap();
    let sign_in = tokio::spawn(async move { redirect.authorize(&request).await });
    (sign_in, seen.recv().await.unwrap())
}

/// I3: the browser's command line has neither `state` nor the challenge. Its address redirects to
/// the authorization URL.
#[tokio::test]
async fn a_browser_opens_a_one_time_address() {
    let request = request(true);
    let state = state(&request);
    let location = format!("\r\nLocation: {}\r\n", request.url());
    let (sign_in, address) = started(request).await;
    assert!(!address.as_str().contains(&state));
    assert_eq!(address.query(), None);

    let missed = visit(&address, "/sign-in/other").await;
    assert!(missed.starts_with("HTTP/1.1 404"), "{missed}");
    let page = visit(&address, address.path()).await;
    assert!(
        page.starts_with("HTTP/1.1 302 Found\r\n") && page.contains(&location),
        "{page}"
    );
    assert!(page.contains("Cache-Control: no-store"), "{page}");
    let target = format!("/callback?code=c&state={state}&iss=https://auth.example.com");
    assert!(visit(&address, &target).await.contains("Access granted"));
    assert_eq!(sign_in.await.unwrap().unwrap().code, Some(Secret::new("c")));
}

/// I3: a second request for the address ends the sign-in. A later redirect is not accepted.
#[tokio::test]
async fn a_second_request_for_the_address_ends_the_sign_in() {
    let port = ReservedPort::new();
    let (sign_in, address) = started_at(port.port(), request(true)).await;
    visit(&address, address.path()).await;
    let second = visit(&address, address.path()).await;
    assert!(
        second.starts_with("HTTP/1.1 409") && second.contains("opened before"),
        "{second}"
    );
    assert_eq!(
        sign_in.await.unwrap().unwrap_err().code(),
        "interaction.opened_twice"
    );
    let refused = TcpStream::connect(port.address()).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
}

/// I3: silent connections keep no browser out: the oldest is closed for a new one.
#[tokio::test]
async fn silent_connections_are_replaced() {
    let request = request(true);
    let target = format!(
        "/callback?code=c&state={}&iss=https://auth.example.com",
        state(&request)
    );
    let (sign_in, address) = started(request).await;
    let mut silent = Vec::new();
    for _ in 0..400 {
        silent.push(
            TcpStream::connect(("127.0.0.1", address.port().unwrap()))
                .await
                .unwrap(),
        );
    }
    let begun = tokio::time::Instant::now();
    assert!(visit(&address, &target).await.contains("Access granted"));
    assert!(
        begun.elapsed() < Duration::from_secs(20),
        "before all silent ones time out"
    );
    assert!(sign_in.await.unwrap().is_ok());
    let mut rest = String::new();
    assert_eq!(
        silent[0]
            .read_to_string(&mut rest)
            .await
            .unwrap_or_default(),
        0
    );
}

/// I3: other requests get an error page, and the wait continues.
#[tokio::test]
async fn only_the_expected_redirect_is_accepted() {
    let request = request(true);
    let state = state(&request);
    let targets = [
        "/favicon.ico".to_owned(),
        "/callback?code=a&state=other".to_owned(),
        "/callback?code=a&code=b".to_owned(),
        format!("/elsewhere?code=a&state={state}"),
        format!("/callback?code=right&state={state}&iss=https://auth.example.com"),
    ];
    let (pages, result) = visit_all(&request, &targets).await;
    let statuses: Vec<_> = pages.iter().map(|page| &page[9..12]).collect();
    assert_eq!(statuses, ["404", "400", "400", "404", "200"]);
    assert_eq!(result.unwrap().code, Some(Secret::new("right")));
}

/// I2: the page shows an error of the server as text. An error with another `iss` is not shown.
#[tokio::test]
async fn only_errors_of_the_expected_issuer_are_shown() {
    let request = request(true);
    let error = format!(
        "/callback?error=access_denied&error_description=%3Cb%3Ehush&state={}",
        state(&request)
    );
    let (pages, result) =
        visit_all(&request, &[format!("{error}&iss=https://auth.example.com")]).await;
    assert!(
        pages[0].contains("access_denied: &lt;b&gt;hush"),
        "{}",
        pages[0]
    );
    assert_eq!(
        request
            .validate_response(&result.unwrap())
            .unwrap_err()
            .code(),
        "redirect.denied"
    );

    let (pages, result) = visit_all(&request, &[format!("{error}&iss=https://evil.example")]).await;
    assert!(pages[0].starts_with("HTTP/1.1 400"));
    assert!(!pages[0].contains("hush"));
    assert!(!pages[0].contains("evil"));
    assert_eq!(
        request
            .validate_response(&result.unwrap())
            .unwrap_err()
            .code(),
        "response.issuer_mismatch"
    );
}

/// I3: the wait ends after 5 min without a redirect.
#[tokio::test(start_paused = true)]
async fn the_wait_times_out() {
    let redirect = LoopbackRedirect::bind(|_| ()).await.unwrap();
    let begun = tokio::time::Instant::now();
    let result = redirect.authorize(&request(true)).await;
    assert_eq!(result.unwrap_err().code(), "interaction.timed_out");
    assert_eq!(begun.elapsed().as_secs(), 300);
}

/// I3: one redirect is accepted. The same redirect again, or another one, gets 409.
#[tokio::test]
async fn a_redirect_is_accepted_once() {
    let request = request(true);
    let redirect = LoopbackRedirect::bind(|_| ()).await.unwrap();
    let uri = redirect.redirect_uri().clone();
    let target = format!(
        "/callback?code=c&state={}&iss=https://auth.example.com",
        state(&request)
    );
    let (page, result) = tokio::join!(visit(&uri, &target), redirect.authorize(&request));
    assert!(page.contains("Access granted"));
    assert!(result.is_ok());
    for target in [target.as_str(), "/callback?code=d&state=other"] {
        let page = visit(&uri, target).await;
        assert!(page.starts_with("HTTP/1.1 409"), "{page}");
        assert!(page.contains("No sign-in is in progress"), "{page}");
    }
}

/// I3: the redirect URL of a browser on another machine can be pasted. After invalid input, the
/// user is asked again with the reason.
#[tokio::test]
async fn a_redirect_can_be_pasted() {
    let request = request(true);
    let (sender, reasons) = mpsc::channel();
    let input = Arc::new(parking_lot::Mutex::new((sender, Vec::<String>::new())));
    let lines = input.clone();
    let redirect = LoopbackRedirect::bind(|_| ())
        .await
        .unwrap()
        .with_pasted_input(move |wrong| {
            let mut input = input.lock();
            input.0.send(wrong.map(|wrong| wrong.code())).unwrap();
            let line = input.1.pop();
            Box::pin(async { line })
        });
    let uri = redirect.redirect_uri().clone();
    let query = format!(
        "?code=pasted&iss=https://auth.example.com&state={}",
        state(&request)
    );
    lines.lock().1 = vec![
        // Some servers and browsers append a fragment.
        format!(" {uri}{query}#_=_\n"),
        format!("{uri}?code=c&state=other"),
        format!("https://evil.example/callback{query}"),
        uri.to_string(),
        "what?".into(),
    ];
    let result = redirect.authorize(&request).await.unwrap();
    assert_eq!(result.code, Some(Secret::new("pasted")));

    let elsewhere = Some("redirect.elsewhere");
    assert_eq!(
        reasons.try_iter().collect::<Vec<_>>(),
        [
            None,
            elsewhere,
            elsewhere,
            elsewhere,
            Some("redirect.state")
        ]
    );
}

/// I3: after the end of the input, a redirect in the browser is accepted.
#[tokio::test]
async fn the_end_of_the_input_does_not_end_the_wait() {
    let request = request(true);
    let redirect = LoopbackRedirect::bind(|_| ())
        .await
        .unwrap()
        .with_pasted_input(|_| Box::pin(async { None }));
    let uri = redirect.redirect_uri().clone();
    let target = format!(
        "/callback?code=c&state={}&iss=https://auth.example.com",
        state(&request)
    );
    let (_, result) = tokio::join!(visit(&uri, &target), redirect.authorize(&request));
    assert_eq!(result.unwrap().code, Some(Secret::new("c")));
}

/// The port is released on drop.
#[tokio::test]
async fn the_port_is_released_on_drop() {
    let port = ReservedPort::new();
    let bind = || LoopbackRedirect::bind_to(port.port(), |_| ());
    let redirect = bind().await.unwrap();
    assert!(format!("{redirect:?}").contains(&port.port().to_string()));
    assert!(bind().await.is_err());
    drop(redirect);
    tokio::task::yield_now().await;
    assert!(bind().await.is_ok());
}

/// Each resource has a fixed port, and gets another one if that is in use.
#[tokio::test]
async fn each_resource_has_a_fixed_port() {
    let start = StartUrl::parse("https://port-of-its-own.example/mcp").unwrap();
    let first = LoopbackRedirect::bind_for(&start, |_| ()).await.unwrap();
    let second = LoopbackRedirect::bind_for(&start, |_| ()).await.unwrap();
    assert_eq!(
        first.redirect_uri().port(),
        Some(LoopbackRedirect::port_for(&start))
    );
    assert_ne!(second.redirect_uri(), first.redirect_uri());

    let mut any = first.redirect_uri().clone();
    any.set_port(None).unwrap();
    assert_eq!(any.as_str(), LoopbackRedirect::ANY_PORT);
    assert!((20_000..32_000).contains(&LoopbackRedirect::port_for(&start)));

    // The port is the same in all versions, because registrations contain it.
    let other = StartUrl::parse("https://another-port.example/mcp").unwrap();
    assert_eq!(LoopbackRedirect::port_for(&start), 21_537);
    assert_eq!(LoopbackRedirect::port_for(&other), 30_393);

    let taken = LoopbackRedirect::bind_to(LoopbackRedirect::port_for(&start), |_| ()).await;
    assert_eq!(taken.unwrap_err().code(), "interaction.listen");
}

/// I3: a registered path on `localhost` is served on both loopback addresses. The default path is
/// not.
#[tokio::test]
async fn a_registered_redirect_uri_is_served() {
    let request = request(true);
    let address = RedirectAddress::default()
        .with_host("localhost")
        .unwrap()
        .with_path("/oauth/callback")
        .unwrap();
    let redirect = LoopbackRedirect::bind_at(address, |_| ()).await.unwrap();
    let uri = redirect.redirect_uri().clone();
    assert_eq!(uri.host_str(), Some("localhost"));
    assert_eq!(uri.path(), "/oauth/callback");

    let query = format!(
        "code=c&state={}&iss=https://auth.example.com",
        state(&request)
    );
    let visits = async {
        assert!(
            visit(&uri, &format!("/callback?{query}"))
                .await
                .starts_with("HTTP/1.1 404")
        );
        if let Ok(mut stream) = TcpStream::connect(("::1", uri.port().unwrap())).await {
            stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
            let mut page = String::new();
            stream.read_to_string(&mut page).await.unwrap();
            assert!(page.starts_with("HTTP/1.1 404"), "{page}");
        }
        visit(&uri, &format!("/oauth/callback?{query}")).await
    };
    let (page, result) = tokio::join!(visits, redirect.authorize(&request));
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    assert!(result.is_ok());
}

/// H3: after a minute without a redirect, the delay notice is called once, and the wait continues.
#[tokio::test(start_paused = true)]
async fn a_long_wait_causes_a_notice() {
    let (sender, notices) = mpsc::channel();
    let redirect = LoopbackRedirect::bind(|_| ()).await.unwrap();
    let redirect =
        redirect.with_delay_notice(move || sender.send(tokio::time::Instant::now()).unwrap());
    let before = tokio::time::Instant::now();
    let request = request(true);
    assert!(matches!(
        redirect.authorize(&request).await,
        Err(InteractionError::TimedOut)
    ));
    assert_eq!(before.elapsed(), LoopbackRedirect::TIMEOUT);
    let times: Vec<_> = notices.try_iter().collect();
    assert_eq!(
        times.iter().map(|time| *time - before).collect::<Vec<_>>(),
        [LoopbackRedirect::DELAY]
    );
}
