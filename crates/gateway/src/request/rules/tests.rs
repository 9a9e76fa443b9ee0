//! The headers that are forwarded, removed and added.

use portcullis_metadata::Scopes;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::{address::UpstreamAddress, request::identity::IdentitySource};

/// A decoded request.
pub(crate) struct Parsed {
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl From<&Request> for Parsed {
    fn from(request: &Request) -> Self {
        let encoded = String::from_utf8(request.to_vec()).unwrap();
        let (head, body) = encoded.split_once("\r\n\r\n").unwrap();
        let mut lines = head.split("\r\n");
        let line = lines.next().unwrap().to_owned();
        let mut headers = HeaderMap::new();
        for (name, value) in lines.map(|line| line.split_once(": ").unwrap()) {
            headers.append(name.parse::<HeaderName>().unwrap(), value.parse().unwrap());
        }
        Self {
            line,
            headers,
            body: Bytes::from(body.to_owned()),
        }
    }
}

fn parsed(rules: &ForwardingRules, inbound: InboundRequest<'_>) -> Parsed {
    Parsed::from(&rules.upstream_request(inbound, &target()))
}

fn target() -> Target {
    Target::new(
        UpstreamAddress::Tcp(Url::parse("http://upstream.internal:8000/mcp").unwrap()),
        None,
    )
    .unwrap()
}

fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in pairs {
        headers.append(
            HeaderName::from_bytes(name.as_bytes()).unwrap(),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    headers
}

/// A POST with these headers.
fn inbound(headers: HeaderMap) -> InboundRequest<'static> {
    InboundRequest {
        method: Method::POST,
        version: Version::HTTP_11,
        query: None,
        headers,
        body: Bytes::from_static(b"{}"),
        identity: None,
        request_id: HeaderValue::from_static("made-here"),
        client_address: Some("192.0.2.7".parse().unwrap()),
        trace: None,
    }
}

fn rules() -> ForwardingRules {
    rules_of(ForwardingSettings {
        identity_headers: IdentityHeader::defaults(),
        ..ForwardingSettings::default()
    })
}

fn rules_of(settings: ForwardingSettings<'_>) -> ForwardingRules {
    ForwardingRules::new(settings).unwrap()
}

fn with_identity(identity_headers: Vec<IdentityHeader>) -> ForwardingSettings<'static> {
    ForwardingSettings {
        identity_headers,
        ..ForwardingSettings::default()
    }
}

/// Returns which of these headers are forwarded, without those that are always added.
fn passed(rules: &ForwardingRules, pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    let request = parsed(rules, inbound(headers(pairs)));
    let is_added = |name: &str| {
        [
            "host",
            "x-request-id",
            "via",
            "content-length",
            "content-type",
        ]
        .contains(&name)
    };
    let mut passed: Vec<_> = request
        .headers
        .iter()
        .filter(|(name, _)| !is_added(name.as_str()))
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()))
        .collect();
    passed.sort();
    passed
}

/// L1: hop-by-hop headers, those that `Connection` names, and `Expect` are not forwarded.
#[test]
fn hop_by_hop_headers_are_removed() {
    let left = passed(
        &rules(),
        &[
            ("connection", "keep-alive, X-Mine"),
            ("connection", "x-other,,"),
            ("x-mine", "1"),
            ("x-other", "1"),
            ("keep-alive", "300"),
            ("proxy-connection", "keep-alive"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "websocket"),
            ("expect", "100-continue"),
            ("content-length", "99"),
            ("accept", "application/json"),
            ("mcp-session-id", "backend"),
            ("mcp-param-user_id", "7"),
        ],
    );
    let expected = [
        ("accept", "application/json"),
        ("mcp-param-user_id", "7"),
        ("mcp-session-id", "backend"),
    ];
    assert_eq!(
        left,
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

/// L2, C12: no credential of the caller is forwarded, and no header that a CGI-style server reads
/// as an identity header.
#[test]
fn credentials_and_forged_identity_are_removed() {
    let own = IdentityHeader::new(
        HeaderName::from_static("remote-user"),
        IdentitySource::Subject,
    );
    let rules = rules_of(with_identity(vec![own]));
    let forged = [
        ("authorization", "Bearer t"),
        ("proxy-authorization", "Basic x"),
        ("dpop", "proof"),
        ("cookie", "a=1"),
        ("remote-user", "root"),
        ("remote_user", "root"),
        ("x-portcullis-subject", "root"),
        ("x_portcullis_subject", "root"),
        ("X-Portcullis_Subject", "root"),
        ("x.portcullis.subject", "root"),
        ("x-portcullis~subject", "root"),
        ("remote'user", "root"),
        ("x-portcullis-unset", "root"),
        ("x_request_id", "forged"),
        ("mcp_session_id", "another"),
        ("forwarded", "for=127.0.0.1"),
        ("x-forwarded-for", "127.0.0.1"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-user", "root"),
        ("x_forwarded_for", "127.0.0.1"),
        ("x-real-ip", "127.0.0.1"),
    ];
    assert_eq!(passed(&rules, &forged), []);
}

/// F1: headers that name another path or method than the authorized one are removed.
#[test]
fn overrides_are_removed() {
    let overrides = [
        ("x-original-url", "/admin"),
        ("x-rewrite-url", "/admin"),
        ("x-original-uri", "/admin"),
        ("x-http-method-override", "DELETE"),
        ("x-http-method", "DELETE"),
        ("x-method-override", "DELETE"),
    ];
    assert_eq!(passed(&rules(), &overrides), []);
}

/// L8: a header that asserts the client is forwarded only if `forward_headers` lists it. An
/// identity header with its name has only the value from the token.
#[test]
fn client_assertions_are_removed() {
    let asserted = [
        ("x-user", "root"),
        ("cf-connecting-ip", "127.0.0.1"),
        ("x-auth-request-email", "root"),
        ("client-cert", ":AA==:"),
    ];
    assert_eq!(passed(&rules(), &asserted), []);

    let forward_headers = vec![
        HeaderName::from_static("x-user"),
        HeaderName::from_static("cf-connecting-ip"),
    ];
    let own = IdentityHeader::new(
        HeaderName::from_static("x-forwarded-user"),
        IdentitySource::Subject,
    );
    let rules = rules_of(ForwardingSettings {
        forward_headers,
        ..with_identity(vec![own])
    });
    let asserted = [
        &asserted[..],
        &[("x-forwarded-user", "root"), ("x_user", "root")],
    ]
    .concat();
    let expected = [("cf-connecting-ip", "127.0.0.1"), ("x-user", "root")];
    assert_eq!(
        passed(&rules, &asserted),
        expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
    );
}

/// F11: the upstream gets a fixed content type for the checked JSON, not that of the client.
#[test]
fn a_body_is_announced_as_json() {
    let spelled = [
        ("content-type", "application/json; charset*0=utf-7"),
        ("content-encoding", "gzip"),
    ];
    let request = parsed(&rules(), inbound(headers(&spelled)));
    let types: Vec<_> = request.headers.get_all("content-type").iter().collect();
    assert_eq!(types, ["application/json"]);
    assert!(!request.headers.contains_key("content-encoding"));
    let get = InboundRequest {
        method: Method::GET,
        body: Bytes::new(),
        ..inbound(headers(&spelled))
    };
    assert!(!parsed(&rules(), get).headers.contains_key("content-type"));
}

/// L2, OR2: cookies are forwarded only if configured, and never those of the broker.
#[test]
fn cookies_only_if_configured() {
    let allowing = rules_of(ForwardingSettings {
        forward_cookies: true,
        ..ForwardingSettings::default()
    });
    let cookies = [
        ("cookie", "a=1; __Host-portcullis-broker-form=2"),
        ("cookie", "portcullis-broker-form=2"),
    ];
    assert_eq!(
        passed(&allowing, &cookies),
        [("cookie".to_owned(), "a=1".to_owned())]
    );
}

/// L2: identity headers, the request id and the public address are added. They replace forged ones
/// and cannot be removed by `Connection`.
#[test]
fn added_headers() {
    let public = Url::parse("https://mcp.example.com/mcp").unwrap();
    let rules = rules_of(ForwardingSettings {
        public_url: Some(&public),
        ..with_identity(IdentityHeader::defaults())
    });
    let scopes = Scopes::parse("mcp:tools mcp:admin").unwrap();
    let identity = Identity {
        issuer: "https://auth.example.com",
        subject: Some("alice"),
        client: Some("app"),
        scopes: &scopes,
        claims: &Value::Null,
    };
    let forged = headers(&[
        (
            "connection",
            "x-portcullis-subject, x-request-id, host, via, x-forwarded-for, forwarded",
        ),
        ("x-portcullis-subject", "root"),
        ("x-request-id", "forged"),
        ("host", "evil.example"),
        ("x-forwarded-for", "127.0.0.1"),
    ]);
    let request = parsed(
        &rules,
        InboundRequest {
            identity: Some(identity),
            ..inbound(forged)
        },
    );
    let expected = [
        ("host", "upstream.internal:8000"),
        ("via", "1.1 portcullis"),
        ("x-request-id", "made-here"),
        ("x-portcullis-issuer", "https://auth.example.com"),
        ("x-portcullis-subject", "alice"),
        ("x-portcullis-client", "app"),
        ("x-portcullis-scope", "mcp:admin mcp:tools"),
        (
            "forwarded",
            r#"for=192.0.2.7;host="mcp.example.com";proto=https"#,
        ),
        ("x-forwarded-for", "192.0.2.7"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "mcp.example.com"),
        ("content-length", "2"),
        ("content-type", "application/json"),
    ];
    for (name, value) in expected {
        let values: Vec<_> = request.headers.get_all(name).iter().collect();
        assert_eq!(values, [value], "{name}");
    }
    assert_eq!(request.headers.len(), expected.len());
}

/// L2: a valid trace context is forwarded.
#[test]
fn trace_context() {
    let valid = [
        (
            "traceparent",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ),
        ("tracestate", "v=1"),
    ];
    assert_eq!(passed(&rules(), &valid).len(), 2);
    assert_eq!(
        passed(
            &rules(),
            &[("traceparent", "00-xyz"), ("tracestate", "v=1")]
        ),
        []
    );
}

/// L2: a client's trace headers are forwarded together, or as far as the gateway's own trace
/// continues them.
#[test]
fn trace_headers_follow_from_the_gateways_trace() {
    for (continues_client, has_valid_parent, traceparent, tracestate) in [
        (None, true, true, true),
        (None, false, false, false),
        (Some(true), true, false, true),
        (Some(false), true, false, false),
    ] {
        let forwards = |name| forwards_trace_header(name, continues_client, || has_valid_parent);
        let forwarded = (forwards("traceparent"), forwards("tracestate"));
        assert_eq!(
            forwarded,
            (traceparent, tracestate),
            "{continues_client:?} {has_valid_parent}"
        );
    }
}

/// `Via` has the version of the client's request (RFC 9110 section 7.6.3).
#[test]
fn via_has_the_inbound_version() {
    for (version, expected) in [
        (Version::HTTP_10, "1.0 portcullis"),
        (Version::HTTP_11, "1.1 portcullis"),
        (Version::HTTP_2, "2.0 portcullis"),
        (Version::HTTP_3, "3.0 portcullis"),
    ] {
        assert_eq!(via(version), expected);
    }
}

/// F9: a token in the query is removed. The rest of the query, the method and the body are
/// forwarded.
#[test]
fn query_method_and_body() {
    let asked = |query| {
        parsed(
            &rules(),
            InboundRequest {
                query: Some(query),
                ..inbound(HeaderMap::new())
            },
        )
    };
    let request = asked("a=1&access_token=secret");
    assert_eq!(request.line, "POST /mcp?a=1 HTTP/1.1");
    assert_eq!(request.body, "{}");
    assert_eq!(asked("access_token=secret").line, "POST /mcp HTTP/1.1");
}

/// L2: a header with another meaning cannot be configured as an identity header.
#[test]
fn identity_headers_are_validated() {
    for name in [
        "authorization",
        "host",
        "connection",
        "x-forwarded-for",
        "mcp-session-id",
        "x_user",
    ] {
        let name = HeaderName::from_static(name);
        let header = IdentityHeader::new(name.clone(), IdentitySource::Subject);
        let error = ForwardingRules::new(with_identity(vec![header])).err();
        assert_eq!(error, Some(UpstreamSettingsError::IdentityHeader(name)));
    }
    let header = IdentityHeader::new(HeaderName::from_static("x-user"), IdentitySource::Subject);
    let error = ForwardingRules::new(with_identity(vec![header.clone(), header.clone()])).err();
    assert_eq!(
        error,
        Some(UpstreamSettingsError::IdentityHeaderDuplicate(header.name))
    );
}

/// E1, L8: sessions need a header that reaches the upstream and that nothing overwrites.
#[test]
fn the_session_header_is_forwarded() {
    let with_session = |name, identity_headers| {
        ForwardingRules::new(ForwardingSettings {
            session_header: Some(HeaderName::from_static(name)),
            ..with_identity(identity_headers)
        })
        .err()
    };
    for name in ["mcp-session-id", "acme-session-id"] {
        assert_eq!(with_session(name, IdentityHeader::defaults()), None);
    }
    for name in [
        "x-mcp-session-id",
        "acme_mcp-session-id",
        "x-portcullis-session-id",
        "remote-session-id",
    ] {
        let removed = UpstreamSettingsError::SessionHeader(HeaderName::from_static(name));
        assert_eq!(with_session(name, Vec::new()), Some(removed));
    }
    let name = HeaderName::from_static("acme-session-id");
    let header = IdentityHeader::new(name.clone(), IdentitySource::Subject);
    assert_eq!(
        with_session("acme-session-id", vec![header]),
        Some(UpstreamSettingsError::IdentityHeader(name))
    );
}

/// Generates names that are decided first, similar ones, and others.
fn names() -> impl Strategy<Value = String> {
    let told_at_once = prop::sample::select(vec![
        "accept",
        "accept-encoding",
        "accept-language",
        "authorization",
        "content-length",
        "content-type",
        "host",
        "mcp-method",
        "mcp-name",
        "mcp-protocol-version",
        "mcp-session-id",
        "user-agent",
        "x-request-id",
    ]);
    prop_oneof![
        4 => told_at_once.clone().prop_map(str::to_owned),
        1 => (told_at_once, "[-_a]").prop_map(|(name, end)| name.to_owned() + &end),
        1 => "(x-portcullis-|x-forwarded-|mcp-param-|x-http-method|te|cookie|)[a-z_-]{1,12}",
    ]
}

proptest! {
    /// L2: names that are decided first have the same result as by the rule, for any identity
    /// headers.
    #[test]
    fn common_names_follow_the_rule(name in names(), identity in prop::collection::hash_set(names(), 0..4), cookies: bool) {
        let identity = identity.iter().filter(|name| may_carry_identity(name));
        let identity = identity.map(|name| IdentityHeader::new(name.parse().unwrap(), IdentitySource::Subject));
        let rules = rules_of(ForwardingSettings { forward_cookies: cookies, ..with_identity(identity.collect()) });
        prop_assert_eq!(rules.is_removed(&name), rules.is_removed_by_rule(&name), "{}", name);
    }
}
