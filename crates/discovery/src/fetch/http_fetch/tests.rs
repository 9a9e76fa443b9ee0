//! The fetcher keeps its limits, follows no redirect and contacts no forbidden address.

use std::time::Duration;

use http::StatusCode;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, sink},
    net::{TcpListener, TcpSocket, TcpStream},
};

use super::*;
use crate::UrlPolicy;

const LOOPBACK_PEER: UrlPolicy = UrlPolicy::Peer {
    loopback_http: true,
    private_addresses: false,
};
const PEER: UrlPolicy = UrlPolicy::Peer {
    loopback_http: false,
    private_addresses: false,
};

/// Starts a server on loopback that responds with `answer`, followed by `more` repeatedly.
async fn server(answer: &'static [u8], more: &'static [u8]) -> Url {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!(
        "http://{}/start?secret=1",
        listener.local_addr().unwrap()
    ))
    .unwrap();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            tokio::spawn(async move {
                read_head(&mut socket).await?;
                socket.write_all(answer).await?;
                while !more.is_empty() {
                    socket.write_all(more).await?;
                }
                // Stays open until the other side closes the connection.
                socket.read_u8().await
            });
        }
    });
    url
}

async fn read_head(socket: &mut TcpStream) -> std::io::Result<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(socket.read_u8().await?);
    }
    Ok(String::from_utf8(head).unwrap())
}

/// Responds to the next request, and returns the head of the request.
async fn respond(listener: &TcpListener, answer: &[u8]) -> String {
    let (mut socket, _) = listener.accept().await.unwrap();
    let head = read_head(&mut socket).await.unwrap();
    socket.write_all(answer).await.unwrap();
    head
}

async fn assert_not_contacted(listener: &TcpListener) {
    // A zero timeout would end before the runtime looks for new connections.
    let connection = timeout(Duration::from_millis(10), listener.accept()).await;
    assert!(connection.is_err(), "a connection was opened");
}

/// A fetcher without a proxy, even if the environment has one.
fn fetcher() -> HttpFetch {
    HttpFetch {
        proxies: Proxies::none(),
        ..HttpFetch::new(FetchSettings::default()).unwrap()
    }
}

async fn get(url: &Url, policy: UrlPolicy) -> Result<FetchResponse, FetchError> {
    fetcher()
        .fetch(FetchRequest::get(url.clone(), policy))
        .await
}

#[tokio::test]
async fn a_response_with_any_status_is_read() {
    let url = server(
        b"HTTP/1.1 503 Down\r\ncontent-length: 2\r\nx-a: b\r\n\r\nhi",
        b"",
    )
    .await;
    let answer = get(&url, LOOPBACK_PEER).await.unwrap();
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(*answer.body, b"hi"[..]);
    assert_eq!(answer.headers["x-a"], "b");
}

/// G6: redirects are not followed.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let url = server(
        b"HTTP/1.1 302 Found\r\nlocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
        b"",
    )
    .await;
    let answer = get(&url, UrlPolicy::Operator).await.unwrap();
    assert_eq!(answer.status, StatusCode::FOUND);
    assert_eq!(answer.headers["location"], "/elsewhere");
}

/// G6: a body without an end is cancelled at the limit.
#[tokio::test]
async fn an_endless_body_is_cancelled_at_the_limit() {
    let url = server(b"HTTP/1.1 200 OK\r\n\r\n", &[b'x'; 4096]).await;
    let error = get(&url, LOOPBACK_PEER).await.unwrap_err();
    assert!(
        matches!(
            error,
            FetchError::TooLarge {
                limit: FetchRequest::MAX_BODY
            }
        ),
        "{error}"
    );
}

/// G6: a body with a `Content-Length` above the limit is not read.
#[tokio::test]
async fn a_large_content_length_is_rejected_immediately() {
    let url = server(b"HTTP/1.1 200 OK\r\ncontent-length: 262145\r\n\r\n", b"").await;
    assert_eq!(
        get(&url, LOOPBACK_PEER).await.unwrap_err().code(),
        "fetch.too_large"
    );
}

/// G6: the deadline covers the body.
#[tokio::test]
async fn a_stalled_body_ends_at_the_deadline() {
    let url = server(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", b"").await;
    let mut request = FetchRequest::get(url, LOOPBACK_PEER);
    request.timeout = Duration::from_millis(50);
    assert!(matches!(
        fetcher().fetch(request).await,
        Err(FetchError::Timeout)
    ));
}

/// G6: the request offers no content coding, and the body of a response that has one is returned as
/// received.
#[tokio::test]
async fn content_codings_are_not_offered() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/", listener.local_addr().unwrap())).unwrap();
    let coded =
        b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\n\x1f\x8b\x08\x00";
    let (answer, head) = tokio::join!(get(&url, LOOPBACK_PEER), respond(&listener, coded));
    assert_eq!(&*answer.unwrap().body, b"\x1f\x8b\x08\x00");
    assert!(
        !head.to_ascii_lowercase().contains("accept-encoding"),
        "{head}"
    );
}

#[tokio::test]
async fn an_open_response_is_read_in_chunks() {
    let url = server(b"HTTP/1.1 200 OK\r\n\r\nfirst", b"").await;
    let mut answer = fetcher()
        .open(FetchRequest::get(url, LOOPBACK_PEER))
        .await
        .unwrap();
    assert_eq!(answer.status, StatusCode::OK);
    // The piece arrives although the server has not ended the body.
    assert_eq!(&*answer.body.next().await.unwrap().unwrap(), b"first");
}

/// G6: a URL with a forbidden scheme or host is rejected without a connection.
#[tokio::test]
async fn forbidden_urls_are_not_contacted() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    for (origin, code) in [
        ("http://127.0.0.1", "fetch.refused.scheme"),
        ("https://127.0.0.1", "fetch.refused.address"),
        ("https://localhost", "fetch.refused.address"),
    ] {
        let url = Url::parse(&format!("{origin}:{port}/")).unwrap();
        assert_eq!(get(&url, PEER).await.unwrap_err().code(), code, "{url}");
    }
    assert_not_contacted(&listener).await;
}

/// G6: a peer's name that resolves only to forbidden addresses is rejected without a connection.
/// The operator's names are not restricted.
#[tokio::test]
async fn names_are_checked_by_their_addresses() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let mut fetch = fetcher();
    fetch.lookup = |name| {
        let addresses: &[&str] = match name.as_str() {
            // The trailing dot hides this name from the check of the URL.
            "loopback.example" | "localhost." => &["127.0.0.1", "::1"],
            "private.example" => &["10.0.0.1", "192.168.0.1", "fd00::1", "100.64.0.1"],
            "cloud.example" => &["169.254.169.254", "fd00:ec2::254"],
            "mapped.example" => &["::ffff:127.0.0.1", "64:ff9b::7f00:1"],
            _ => &[],
        };
        let found = addresses
            .iter()
            .map(|address| std::net::SocketAddr::new(address.parse().unwrap(), 0))
            .collect();
        Box::pin(async move { Ok(found) })
    };
    let code_of = async |name: &str, policy: UrlPolicy| {
        let url = Url::parse(&format!("https://{name}:{port}/")).unwrap();
        fetch
            .fetch(FetchRequest::get(url, policy))
            .await
            .unwrap_err()
            .code()
    };
    for policy in [PEER, LOOPBACK_PEER] {
        for name in [
            "loopback.example",
            "localhost.",
            "private.example",
            "cloud.example",
            "mapped.example",
        ] {
            assert_eq!(
                code_of(name, policy).await,
                "fetch.refused.address",
                "{name}"
            );
        }
        assert_eq!(code_of("nothing.example", policy).await, "fetch.resolve");
    }
    assert_not_contacted(&listener).await;

    // The listener closes the operator's connection before a handshake.
    let close = async { drop(listener.accept().await.unwrap()) };
    let (code, ()) = tokio::join!(code_of("loopback.example", UrlPolicy::Operator), close);
    assert!(
        matches!(code, "fetch.connect" | "fetch.tls" | "fetch.interrupted"),
        "{code}"
    );
}

/// A server that speaks http on the port of an https URL is recognized.
#[tokio::test]
async fn http_on_a_tls_port_is_recognized() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("https://{}/", listener.local_addr().unwrap())).unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await?;
        socket.read_u8().await?;
        socket
            .write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
            .await?;
        // A connection that is closed with unread bytes is reset, and the response can be lost.
        copy(&mut socket, &mut sink()).await
    });
    let error = fetcher()
        .fetch(FetchRequest::get(url, LOOPBACK_PEER))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "fetch.not_tls", "{error:?}");
}

#[tokio::test]
async fn errors_name_the_failed_step() {
    // The socket has the port and does not listen, so that no other test can get it.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let closed = Url::parse(&format!(
        "http://{}/?secret=1",
        socket.local_addr().unwrap()
    ))
    .unwrap();
    let error = get(&closed, UrlPolicy::Operator).await.unwrap_err();
    assert_eq!(error.code(), "fetch.connect");
    assert!(!format!("{error:?}").contains("secret"));

    let garbage = server(b"no http at all\r\n\r\n", b"").await;
    assert_eq!(
        get(&garbage, UrlPolicy::Operator).await.unwrap_err().code(),
        "fetch.interrupted"
    );
}

#[test]
fn invalid_settings_are_rejected() {
    let error_of = |settings| match HttpFetch::new(settings).unwrap_err() {
        FetchError::Settings(error) => error,
        other => panic!("{other}"),
    };
    let missing = FetchSettings {
        ca_file: Some("/nonexistent/ca.pem".into()),
        ..FetchSettings::default()
    };
    assert!(matches!(
        error_of(missing),
        FetchSettingsError::CaFileUnreadable { .. }
    ));

    let no_pem = FetchSettings {
        ca_file: Some(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").into()),
        ..FetchSettings::default()
    };
    assert!(matches!(
        error_of(no_pem),
        FetchSettingsError::CaFileInvalid { .. }
    ));

    let large = std::env::temp_dir().join(format!("portcullis-ca-file-{}", std::process::id()));
    let file = std::fs::File::create(&large).unwrap();
    let error_at = |length| {
        file.set_len(length).unwrap();
        error_of(FetchSettings {
            ca_file: Some(large.clone()),
            ..FetchSettings::default()
        })
    };
    assert!(matches!(
        error_at(4 << 20),
        FetchSettingsError::CaFileInvalid { .. }
    ));
    let error = error_at((4 << 20) + 1);
    assert!(matches!(error, FetchSettingsError::CaFileTooLarge { .. }));
    assert_eq!(
        error.to_string(),
        format!("the CA file {} has more than 4 MiB", large.display())
    );
    std::fs::remove_file(&large).unwrap();
    #[cfg(unix)]
    {
        let endless = FetchSettings {
            ca_file: Some("/dev/zero".into()),
            ..FetchSettings::default()
        };
        assert!(matches!(
            error_of(endless),
            FetchSettingsError::CaFileTooLarge { .. }
        ));
    }

    let proxy = FetchSettings {
        proxy: Some(Url::parse("socks5://proxy").unwrap()),
        ..FetchSettings::default()
    };
    assert!(matches!(error_of(proxy), FetchSettingsError::Proxy));
    let agent = FetchSettings {
        user_agent: Some("a\r\nb".into()),
        ..FetchSettings::default()
    };
    assert!(matches!(error_of(agent), FetchSettingsError::UserAgent));
}

/// J2, J3: `Debug` of the settings and the fetcher does not print the proxy's credentials.
#[tokio::test]
async fn debug_prints_no_proxy_credentials() {
    let proxy = Url::parse("http://canary-user:canary-password@127.0.0.1:9/?canary-query").unwrap();
    let settings = FetchSettings {
        proxy: Some(proxy),
        ..FetchSettings::default()
    };
    let shown_settings = format!("{settings:?}");
    let fetch = HttpFetch::new(settings).unwrap();
    let request = FetchRequest::get(
        Url::parse("https://auth.example.com/").unwrap(),
        UrlPolicy::Operator,
    );
    let error = fetch.fetch(request).await.unwrap_err();
    // The client exists, and its own `Debug` output has the credentials.
    assert!(
        fetch.clients[PoolKey::Proxied {
            trusts_ca_file: true
        }
        .index()]
        .get()
        .is_some()
    );
    let shown = format!("{shown_settings} {fetch:?} {error:?} {error}");
    assert!(!shown.contains("canary"), "{shown}");
    assert!(
        shown_settings.contains("http://127.0.0.1:9/"),
        "{shown_settings}"
    );
}

/// G6: the proxy resolves the names. A peer's private names and all of its literal addresses are
/// rejected without a connection to the proxy, and loopback is contacted directly. A refusal of the
/// proxy is reported as such.
#[tokio::test]
async fn a_proxy_resolves_the_names() {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = FetchSettings {
        proxy: Some(Url::parse(&format!("http://{}", proxy.local_addr().unwrap())).unwrap()),
        ..FetchSettings::default()
    };
    let mut fetch = HttpFetch::new(settings).unwrap();
    fetch.lookup = |name| panic!("{name} is resolved here");
    let code_of = async |url: &str, policy: UrlPolicy| {
        fetch
            .fetch(FetchRequest::get(Url::parse(url).unwrap(), policy))
            .await
            .unwrap_err()
            .code()
    };
    for host in [
        "10.0.0.1",
        "9.9.9.9",
        "2130706433.",
        "auth.internal",
        "intranet",
        "a.local",
        "localhost.",
    ] {
        let code = code_of(&format!("https://{host}/"), PEER).await;
        assert!(
            matches!(code, "fetch.refused.private_name" | "fetch.refused.address"),
            "{host} {code}"
        );
    }
    assert_not_contacted(&proxy).await;

    for (policy, host) in [
        (PEER, "auth.example.com"),
        (UrlPolicy::StartOrigin, "10.0.0.1"),
        (UrlPolicy::Operator, "mcp"),
    ] {
        let refuse = respond(
            &proxy,
            b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
        );
        let url = format!("https://{host}/");
        let (code, head) = tokio::join!(code_of(&url, policy), refuse);
        assert_eq!(code, "fetch.proxy");
        assert!(
            head.starts_with(&format!("CONNECT {host}:443 HTTP/1.1\r\n")),
            "{head}"
        );
    }

    let local = server(b"HTTP/1.1 204 No Content\r\n\r\n", b"").await;
    let answer = fetch
        .fetch(FetchRequest::get(local, LOOPBACK_PEER))
        .await
        .unwrap();
    assert_eq!(answer.status, StatusCode::NO_CONTENT);
}
