//! Random requests: no panic, and no way to a host that was not registered.

use std::net::{IpAddr, Ipv4Addr};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, header};
use portcullis_broker::{BrokerSettings, IntrospectionClient};
use portcullis_metadata::{ResourceUri, Secret};
use proptest::{collection::vec, prelude::*, sample::select};
use url::Url;

use crate::support::{ISSUER, RESOURCE, Setup, text_of};

/// Names and values with a meaning, so that random requests get further.
const NAMES: [&str; 20] = [
    "client_id",
    "redirect_uri",
    "response_type",
    "state",
    "code_challenge",
    "code_challenge_method",
    "resource",
    "scope",
    "code",
    "iss",
    "error",
    "grant_type",
    "refresh_token",
    "code_verifier",
    "token",
    "request",
    "decision",
    "logout_token",
    "client_assertion",
    "client_assertion_type",
];
const VALUES: [&str; 18] = [
    "CLIENT",
    "http://127.0.0.1:4321/callback",
    "https://attacker.example/",
    "https://client.example/client.json",
    "code",
    "token",
    "S256",
    "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU",
    RESOURCE,
    "mcp:tools",
    "authorization_code",
    "refresh_token",
    "allow:idp",
    "deny",
    "access_denied",
    "e30.e30.e30",
    "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    "",
];
const PATHS: [&str; 10] = [
    "/oauth/authorize",
    "/oauth/consent",
    "/oauth/callback/idp",
    "/oauth/token",
    "/oauth/register",
    "/oauth/revoke",
    "/oauth/introspect",
    "/oauth/jwks",
    "/oauth/logout/idp",
    "/.well-known/oauth-authorization-server",
];

const CONTENT_TYPES: [&str; 3] = [
    "application/x-www-form-urlencoded",
    "application/json",
    "text/plain",
];

/// A request before it has the identifier of the client.
#[derive(Debug)]
struct Random {
    path: &'static str,
    is_post: bool,
    query: String,
    body: Vec<u8>,
    content_type: &'static str,
    cookies: Vec<u8>,
    credential: Vec<u8>,
    is_same_origin: bool,
}

/// Returns parameters, some of which are meaningful.
fn params() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => select(NAMES.as_slice()).prop_map(str::to_owned),
        1 => ".{0,10}",
    ];
    let value = prop_oneof![
        4 => select(VALUES.as_slice()).prop_map(str::to_owned),
        1 => ".{0,100}",
    ];
    vec((name, value), 0..12).prop_map(|pairs| {
        url::form_urlencoded::Serializer::new(String::new())
            .extend_pairs(pairs)
            .finish()
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let registration =
        (vec(select(VALUES.as_slice()), 0..4), ".{0,80}").prop_map(|(uris, name)| {
            let metadata = serde_json::json!({ "redirect_uris": uris, "client_name": name });
            metadata.to_string().into_bytes()
        });
    prop_oneof![
        4 => params().prop_map(String::into_bytes),
        1 => registration,
        1 => vec(any::<u8>(), 0..300),
    ]
}

fn requests() -> impl Strategy<Value = Random> {
    let query = prop_oneof![4 => params(), 1 => "[!-\"$-~]{0,200}"];
    (
        (select(PATHS.as_slice()), any::<bool>(), query, body()),
        select(CONTENT_TYPES.as_slice()),
        vec(any::<u8>(), 0..100),
        vec(any::<u8>(), 0..100),
        any::<bool>(),
    )
        .prop_map(
            |((path, is_post, query, body), content_type, cookies, credential, own)| Random {
                path,
                is_post,
                query,
                body,
                content_type,
                cookies,
                credential,
                is_same_origin: own,
            },
        )
}

impl Random {
    fn request(&self, client: &str) -> Option<Request<Bytes>> {
        let with_client = |text: &str| text.replace("CLIENT", client);
        let mut request = Request::new(Bytes::from(match std::str::from_utf8(&self.body) {
            Ok(text) => with_client(text).into_bytes(),
            Err(_) => self.body.clone(),
        }));
        let query = with_client(&self.query);
        *request.uri_mut() = format!("{}?{query}", self.path).parse().ok()?;
        *request.method_mut() = if self.is_post {
            Method::POST
        } else {
            Method::GET
        };
        let headers: &mut HeaderMap = request.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(self.content_type),
        );
        for (name, value) in [
            (header::COOKIE, self.cookies.as_slice()),
            (
                header::COOKIE,
                b"__Host-portcullis-broker-browser=AAAAAAAAAAAAAAAAAAAAAA",
            ),
            (header::AUTHORIZATION, self.credential.as_slice()),
        ] {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                headers.append(name, value);
            }
        }
        if self.is_same_origin {
            headers.insert(header::ORIGIN, HeaderValue::from_static(ISSUER));
        }
        Some(request)
    }
}

/// Returns where a response leads, if anywhere.
fn target(response: &Response<Bytes>) -> Option<Url> {
    let location = response.headers().get(header::LOCATION);
    if let Some(location) = location {
        return Some(Url::parse(location.to_str().unwrap()).unwrap());
    }
    let is_page = response.headers().get(header::CONTENT_TYPE);
    let is_page = is_page.is_some_and(|value| value.as_bytes().starts_with(b"text/html"));
    let is_continuing = is_page && text_of(response).contains("http-equiv");
    is_continuing.then(|| crate::support::continued(response))
}

fn introspected(settings: &mut BrokerSettings) {
    settings.introspection_clients.push(IntrospectionClient {
        id: "mcp".into(),
        secret: Secret::new("secret"),
        resource: ResourceUri::parse(RESOURCE).unwrap(),
    });
}

proptest! {
    /// AU2, TK6: random requests neither panic nor lead to a host that was not registered, and get
    /// no token.
    #[test]
    fn random_requests_lead_nowhere(requests in vec(requests(), 1..8)) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let setup = Setup::with(introspected);
            let client = setup.client().await;
            for random in &requests {
                let Some(request) = random.request(&client.id) else {
                    continue;
                };
                let address = IpAddr::from(Ipv4Addr::LOCALHOST);
                let response = setup.broker.handle(request, address).await;
                prop_assert!(response.status() != 500, "{random:?}");
                if let Some(target) = target(&response) {
                    prop_assert_eq!(target.host_str(), Some("127.0.0.1"), "{:?}", random);
                }
                let body = String::from_utf8_lossy(response.body());
                prop_assert!(!body.contains("access_token\":"), "{random:?}");
                prop_assert!(!body.contains("\"active\":true"), "{random:?}");
            }
            Ok(())
        })?;
    }
}
