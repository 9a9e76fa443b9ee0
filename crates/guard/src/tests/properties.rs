//! Properties of arbitrary requests, and of challenges with arbitrary settings.

use http::{HeaderValue, Method, Request};
use proptest::{collection::btree_set, prelude::*};
use tokio::runtime::{Builder, Runtime};

use super::support::{METADATA_PATH, METADATA_URL, Setup, With, pairs, request};

const NAMES: [&str; 9] = [
    "authorization",
    "host",
    "origin",
    "if-none-match",
    "access-control-request-method",
    "access-control-request-headers",
    "x-request-id",
    "dpop",
    "cookie",
];

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..40),
        "[Bb]earer [ -~]{0,40}".prop_map(String::into_bytes),
        "[a-z.:/]{0,20}".prop_map(String::into_bytes),
    ]
}

/// Any request, often one for the protected path.
fn any_request() -> impl Strategy<Value = Request<()>> {
    let method = prop::sample::select(vec!["GET", "HEAD", "POST", "OPTIONS", "X"]);
    let path = prop_oneof![
        Just("/mcp".to_owned()),
        "(/[a-z%.;]{0,8}){1,4}(\\?[a-z_=&%]{0,20})?",
        Just(METADATA_PATH.to_owned()),
        Just("/mcp?access_token=x".to_owned()),
        Just("*".to_owned()),
    ];
    let headers = prop::collection::vec((prop::sample::select(NAMES.to_vec()), value()), 0..6);
    (method, path, headers).prop_filter_map("a request", |(method, path, headers)| {
        let mut built = request(Method::from_bytes(method.as_bytes()).ok()?, "/");
        *built.uri_mut() = path.parse().ok()?;
        for (name, value) in headers {
            built
                .headers_mut()
                .append(name, HeaderValue::from_bytes(&value).ok()?);
        }
        Some(built)
    })
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().unwrap()
}

/// B1, B4, J1: no request panics, none is admitted without a token, each has one decision, and a
/// 401 has exactly the expected parameters.
#[test]
fn arbitrary_requests() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let setup = Setup::new().require("read");
    proptest!(|(request in any_request())| {
        let answer = runtime.block_on(setup.send(request));
        let id = answer.headers["x-request-id"].to_str().unwrap();
        prop_assert_eq!(setup.sink.take().into_iter().map(|decision| decision.id).collect::<Vec<_>>(), [id]);
        prop_assert_eq!(setup.inner.count(), 0);
        prop_assert_eq!(answer.headers.get_all("x-request-id").iter().count(), 1);
        if answer.status == 401 {
            let parameters = answer.parameters();
            let error = answer.challenge().param("error").map(str::to_owned);
            let mut expected = pairs(&[("realm", "test"), ("resource_metadata", METADATA_URL), ("scope", "read")]);
            if let Some(error) = error {
                prop_assert!(matches!(error.as_str(), "invalid_request" | "invalid_token"));
                expected.insert(0, ("error".to_owned(), error));
            }
            prop_assert_eq!(parameters, expected);
        } else {
            prop_assert!(!answer.headers.contains_key("www-authenticate"));
        }
    });
}

/// B4: every valid realm and all scopes can be parsed from the challenge.
#[test]
fn challenges_parse_back() {
    let runtime = runtime();
    let _entered = runtime.enter();
    let any_scopes = || btree_set("[!#-\\[\\]-~]{1,12}", 1..4);
    proptest!(ProptestConfig::with_cases(64), |(realm in "[ -~]{1,40}", scopes in any_scopes())| {
        let text = scopes.iter().map(String::as_str).collect::<Vec<_>>().join(" ");
        let mut setup = Setup::new().require(&text);
        setup.settings.realm = realm.clone();
        let answer = runtime.block_on(setup.send(request(Method::POST, "/mcp")));
        let expected = [("realm", realm.as_str()), ("resource_metadata", METADATA_URL), ("scope", &text)];
        prop_assert_eq!(answer.parameters(), pairs(&expected));
        let answer = runtime.block_on(setup.send(request(Method::POST, "/mcp").bearer(&setup.token(""))));
        prop_assert_eq!(answer.status, 403);
        let challenge = answer.challenge();
        prop_assert_eq!(challenge.param("scope"), Some(text.as_str()));
        prop_assert_eq!(challenge.param("realm"), Some(realm.as_str()));
    });
}
