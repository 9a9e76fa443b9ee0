//! Accepted and rejected hosts and origins.

use http::{HeaderMap, HeaderName, HeaderValue, Version};
use proptest::prelude::*;
use url::Url;

use super::{OriginPolicy, OriginPolicyError, OriginRejection, authority::Authority};

fn policy(base: &str) -> OriginPolicy {
    OriginPolicy::for_base_url(&Url::parse(base).unwrap()).unwrap()
}

fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &str)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_str(value).unwrap(),
        )
    };
    pairs.iter().map(pair).collect()
}

fn http1(policy: &OriginPolicy, pairs: &[(&'static str, &str)]) -> Result<(), OriginRejection> {
    policy.check(Version::HTTP_11, &"/mcp".parse().unwrap(), &headers(pairs))
}

fn http2(
    policy: &OriginPolicy,
    uri: &str,
    pairs: &[(&'static str, &str)],
) -> Result<(), OriginRejection> {
    policy.check(Version::HTTP_2, &uri.parse().unwrap(), &headers(pairs))
}

/// F3: a host is printed with its port, and is cut.
#[test]
fn hosts_are_printed() {
    let printed = |text: &str| Authority::parse(text).unwrap().to_string();
    for host in ["mcp.example:8080", "mcp.example", "[::1]:3000"] {
        assert_eq!(printed(host), host);
    }
    let long = "a".repeat(60_000);
    assert_eq!(
        printed(&format!("{long}:80")),
        format!("{}:80", &long[..253])
    );
}

/// F3: on loopback, only loopback hosts are accepted, on any port.
#[test]
fn loopback_accepts_loopback_hosts_only() {
    let policy = policy("http://127.0.0.1:3000");
    for host in [
        "127.0.0.1:3000",
        "127.9.9.9",
        "localhost",
        "LOCALHOST:1",
        "a.localhost:80",
        "[::1]:3000",
        "[::1]",
    ] {
        assert_eq!(http1(&policy, &[("host", host)]), Ok(()), "{host}");
    }
    for host in [
        "evil.example",
        "127.0.0.1.evil.example",
        "localhost.evil.example",
        "notlocalhost",
        "10.0.0.1:3000",
        "0.0.0.0",
        "127.1",
        "[::]",
        "[::ffff:127.0.0.1]",
        "localhost.",
    ] {
        assert_eq!(
            http1(&policy, &[("host", host)]),
            Err(OriginRejection::HostNotAllowed),
            "{host}"
        );
    }
}

/// F3: on loopback, only loopback origins are accepted; `null` is rejected.
#[test]
fn loopback_accepts_loopback_origins_only() {
    let policy = policy("http://localhost:3000");
    let check = |origin| http1(&policy, &[("host", "localhost:3000"), ("origin", origin)]);
    for origin in [
        "http://localhost",
        "http://localhost:5173",
        "https://127.0.0.1:8443",
        "http://[::1]:9",
    ] {
        assert_eq!(check(origin), Ok(()), "{origin}");
    }
    for origin in [
        "null",
        "",
        "http://evil.example",
        "http://localhost.evil.example",
        "http://evil.example#localhost",
        "http://localhost@evil.example",
        "http://evil.example/localhost",
        "http://localhost/",
        "file://localhost",
        "chrome-extension://localhost",
        "http://",
        "localhost",
    ] {
        assert_eq!(
            check(origin),
            Err(OriginRejection::OriginNotAllowed),
            "{origin}"
        );
    }
}

/// F3: settings add hosts and origins to those of loopback.
#[test]
fn settings_add_to_loopback() {
    let policy = policy("http://127.0.0.1:3000");
    let policy = policy
        .allow_host("dev.example:3000")
        .unwrap()
        .allow_origin("https://app.example")
        .unwrap();
    assert_eq!(
        http1(
            &policy,
            &[
                ("host", "Dev.example:3000"),
                ("origin", "https://app.example")
            ]
        ),
        Ok(())
    );
    assert_eq!(
        http1(
            &policy,
            &[("host", "localhost"), ("origin", "https://app.example:443")]
        ),
        Ok(())
    );
    assert_eq!(
        http1(&policy, &[("host", "dev.example:3001")]),
        Err(OriginRejection::HostNotAllowed)
    );

    for origin in [
        "http://app.example",
        "http://app.example:443",
        "https://app.example:444",
        "https://app.example:80",
        "https://app.example.evil",
        "null",
    ] {
        let rejected = http1(&policy, &[("host", "localhost"), ("origin", origin)]);
        assert_eq!(rejected, Err(OriginRejection::OriginNotAllowed), "{origin}");
    }
}

/// F3: elsewhere any host and origin is accepted unless a list restricts them.
#[test]
fn elsewhere_everything_is_accepted_unless_restricted() {
    let open = policy("https://api.example.com/mcp");
    for origin in ["https://evil.example", "null", "rubbish"] {
        assert_eq!(
            http1(&open, &[("host", "any.example:1"), ("origin", origin)]),
            Ok(()),
            "{origin}"
        );
    }
    let narrowed = open
        .allow_origin("https://app.example")
        .unwrap()
        .allow_host("alias.example")
        .unwrap();
    for host in ["api.example.com", "API.example.com:8443", "alias.example:1"] {
        assert_eq!(
            http1(
                &narrowed,
                &[("host", host), ("origin", "https://APP.example")]
            ),
            Ok(()),
            "{host}"
        );
        assert_eq!(http1(&narrowed, &[("host", host)]), Ok(()), "{host}");
    }
    assert_eq!(
        http1(&narrowed, &[("host", "any.example")]),
        Err(OriginRejection::HostNotAllowed)
    );

    for origin in [
        "https://evil.example",
        "null",
        "http://localhost",
        "https://api.example.com",
    ] {
        let rejected = http1(&narrowed, &[("host", "alias.example"), ("origin", origin)]);
        assert_eq!(rejected, Err(OriginRejection::OriginNotAllowed), "{origin}");
    }
}

/// F2, F3: an empty list accepts no page, and accepts requests without `Origin`.
#[test]
fn an_empty_list_of_origins_accepts_no_page() {
    let closed = policy("https://api.example.com").only_listed_origins();
    assert!(!closed.allows_any_origin());
    for origin in ["https://app.example", "https://api.example.com", "null"] {
        let rejected = http1(&closed, &[("host", "api.example.com"), ("origin", origin)]);
        assert_eq!(rejected, Err(OriginRejection::OriginNotAllowed), "{origin}");
    }
    assert_eq!(http1(&closed, &[("host", "api.example.com")]), Ok(()));
    let local = policy("http://localhost:3000").only_listed_origins();
    assert_eq!(
        http1(
            &local,
            &[("host", "localhost"), ("origin", "http://localhost:5173")]
        ),
        Ok(())
    );
}

/// F3: a listed host with the default port matches a `Host` without a port.
#[test]
fn a_listed_default_port_may_be_omitted() {
    for (base, port, other) in [
        ("https://api.example.com", 443, 80),
        ("http://127.0.0.1", 80, 443),
    ] {
        let listed = policy(base)
            .allow_host(&format!("alias.example:{port}"))
            .unwrap();
        for host in ["alias.example".to_owned(), format!("Alias.example:{port}")] {
            assert_eq!(http1(&listed, &[("host", &host)]), Ok(()), "{base} {host}");
        }
        let rejected = http1(&listed, &[("host", &format!("alias.example:{other}"))]);
        assert_eq!(rejected, Err(OriginRejection::HostNotAllowed), "{base}");
    }
}

/// F3: every policy requires exactly one well-formed host.
#[test]
fn one_well_formed_host() {
    let open = policy("https://api.example.com");
    assert_eq!(http1(&open, &[]), Err(OriginRejection::HostMissing));
    assert_eq!(
        http1(&open, &[("host", "a"), ("host", "a")]),
        Err(OriginRejection::HostRepeated)
    );
    for host in [
        "", "a b", "a,b", "u@a", "a:b", "a:70000", "a:+80", "a:1:2", "[::1", "[zz]", "[::1]x",
        "a/b", "a?b", ":80",
    ] {
        assert_eq!(
            http1(&open, &[("host", host)]),
            Err(OriginRejection::HostMalformed),
            "{host}"
        );
    }
    let twice = [
        ("host", "a"),
        ("origin", "https://x"),
        ("origin", "https://x"),
    ];
    assert_eq!(http1(&open, &twice), Err(OriginRejection::OriginRepeated));
    let old = open.check(Version::HTTP_10, &"/".parse().unwrap(), &HeaderMap::new());
    assert_eq!(old, Err(OriginRejection::HostMissing));
}

/// F3: on HTTP/2, `Host` and `:authority` agree or the request is rejected.
#[test]
fn host_and_authority_agree() {
    let open = policy("https://api.example.com");
    assert_eq!(http2(&open, "https://api.example.com/mcp", &[]), Ok(()));
    assert_eq!(
        http2(
            &open,
            "https://api.example.com/mcp",
            &[("host", "API.example.com:443")]
        ),
        Ok(())
    );
    for host in ["evil.example", "api.example.com:444", "localhost"] {
        let rejected = http2(&open, "https://api.example.com/mcp", &[("host", host)]);
        assert_eq!(rejected, Err(OriginRejection::HostDisagrees), "{host}");
    }
    assert_eq!(http2(&open, "/mcp", &[]), Err(OriginRejection::HostMissing));
    assert_eq!(
        http2(&open, "https://u@api.example.com/", &[]),
        Err(OriginRejection::HostMalformed)
    );
    let local = policy("http://localhost:3000");
    let rebound = http2(&local, "http://evil.example:3000/mcp", &[]);
    assert_eq!(rebound, Err(OriginRejection::HostNotAllowed));
}

/// F3: an absolute target on HTTP/1.1 must agree with `Host`.
#[test]
fn absolute_target_agrees_with_host() {
    let local = policy("http://localhost:3000");
    let target = "http://evil.example/mcp".parse().unwrap();
    let check = |host| local.check(Version::HTTP_11, &target, &headers(&[("host", host)]));
    assert_eq!(check("localhost:3000"), Err(OriginRejection::HostDisagrees));
    assert_eq!(check("evil.example"), Err(OriginRejection::HostNotAllowed));
    let own = "http://localhost:3000/mcp".parse().unwrap();
    let alone = |version| local.check(version, &own, &HeaderMap::new());
    assert_eq!(alone(Version::HTTP_11), Err(OriginRejection::HostMissing));
    assert_eq!(alone(Version::HTTP_10), Ok(()));
    assert_eq!(alone(Version::HTTP_2), Ok(()));
}

#[test]
fn invalid_hosts_and_origins_are_rejected() {
    let open = || policy("https://api.example.com");
    for host in ["", "https://a", "a/b", "a:b", "*", "*.a"] {
        let rejected = open().allow_host(host).unwrap_err();
        assert_eq!(rejected, OriginPolicyError::Host(host.to_owned()));
    }
    for origin in [
        "null",
        "*",
        "app.example",
        "://app.example",
        "1https://app.example",
        "+https://app.example",
        "ht tp://app.example",
        "https://app.example/",
        "https://",
        "https://a b",
        "https://*.a",
    ] {
        let rejected = open().allow_origin(origin).unwrap_err();
        assert_eq!(rejected, OriginPolicyError::Origin(origin.to_owned()));
        assert_eq!(rejected.code(), "settings.allowed_origins");
    }
}

proptest! {
    #[test]
    fn no_header_panics(host in prop::collection::vec(any::<u8>(), 0..40), origin in prop::collection::vec(any::<u8>(), 0..40)) {
        let mut headers = HeaderMap::new();
        for (name, bytes) in [("host", host), ("origin", origin)] {
            if let Ok(value) = HeaderValue::from_bytes(&bytes) {
                headers.insert(name, value);
            }
        }
        for base in ["http://localhost:1", "https://a.example"] {
            let _ = policy(base).check(Version::HTTP_11, &"/".parse().unwrap(), &headers);
        }
    }
}
