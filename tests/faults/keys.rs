//! Faults of an issuer's JWK set: an invalid set is rejected, the last valid one remains in use,
//! and a new valid one is used as soon as it is published.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use http::Response;
use parking_lot::Mutex;
use portcullis_metadata::SystemClock;
use portcullis_scenarios::{
    ChannelBody, Deployment, INITIALIZE, RecordedRequest, Request, ResponseBody, TIMEOUT, Upstream,
};
use portcullis_testkit::TestIssuer;
use tokio::{sync::mpsc::UnboundedSender, task::JoinSet, time::timeout};

const JSON: (&str, &str) = ("content-type", "application/json");

/// The response to a request for the keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    Good,
    /// The valid set with another content type.
    AsText,
    Unavailable,
    Html,
    Redirected,
    Endless,
    Stalled,
    /// 10,000 valid keys, which exceed the size limit.
    TooMany,
    /// The valid key and 9,999 invalid ones, within the size limit.
    TooManySmall,
    /// The valid key and a published symmetric key.
    OneBad,
    Empty,
}

/// An issuer that publishes its keys with a fault.
struct FaultyIssuer {
    test_issuer: Arc<TestIssuer>,
    keys: Arc<Mutex<Keys>>,
    hits: Arc<AtomicUsize>,
}

impl FaultyIssuer {
    /// Starts an issuer that publishes its keys in this way.
    async fn start(keys: Keys) -> Self {
        let test_issuer = Arc::new(OnceLock::<Arc<TestIssuer>>::new());
        let keys = Arc::new(Mutex::new(keys));
        let hits = Arc::new(AtomicUsize::new(0));
        let senders = Mutex::new(Vec::new());
        let known = Arc::clone(&test_issuer);
        let published = Arc::clone(&keys);
        let counted = Arc::clone(&hits);
        let script = move |request: &RecordedRequest| {
            let test_issuer = known.get()?;
            if request.target == test_issuer.metadata_url().path() {
                return Some(Upstream::response(
                    200,
                    &[JSON],
                    test_issuer.metadata_json(),
                ));
            }
            if request.target != test_issuer.endpoint("jwks").path() {
                return Some(Upstream::response(
                    if request.target == "/moved" { 200 } else { 404 },
                    &[JSON],
                    test_issuer.jwks_json(),
                ));
            }
            counted.fetch_add(1, Ordering::SeqCst);
            Some(response(test_issuer, *published.lock(), &senders))
        };
        let server = Upstream::scripted(script).await;
        let made = TestIssuer::new(&server.origin())
            .with_resource(Deployment::RESOURCE)
            .with_clock(SystemClock::new());
        let test_issuer = Arc::clone(test_issuer.get_or_init(|| Arc::new(made)));
        Self {
            test_issuer,
            keys,
            hits,
        }
    }

    /// Publishes the keys in this way from now on.
    fn publish(&self, keys: Keys) {
        *self.keys.lock() = keys;
    }

    fn hits(&self) -> usize {
        self.hits.load(Ordering::SeqCst)
    }

    async fn deployment(&self, cooldown: &str) -> Deployment {
        let name = self.test_issuer.issuer().as_str();
        let table =
            format!("[[issuer]]\nissuer = \"{name}\"\njwks = {{ cooldown = \"{cooldown}\" }}");
        Deployment::builder()
            .tables(table)
            .resource(format!("issuers = [\"{name}\"]"))
            .start()
            .await
    }
}

/// Returns the response to a request for the keys. A body that does not end is kept open by its
/// sender.
fn response(
    test_issuer: &TestIssuer,
    keys: Keys,
    senders: &Mutex<Vec<UnboundedSender<Bytes>>>,
) -> Response<ResponseBody> {
    match keys {
        Keys::Good => Upstream::response(200, &[JSON], test_issuer.jwks_json()),
        Keys::AsText => Upstream::response(
            200,
            &[("content-type", "text/plain")],
            test_issuer.jwks_json(),
        ),
        Keys::Unavailable => Upstream::response(503, &[JSON], test_issuer.jwks_json()),
        Keys::Html => {
            Upstream::response(200, &[("content-type", "text/html")], "<html>keys</html>")
        }
        Keys::Redirected => Upstream::response(
            302,
            &[JSON, ("location", "/moved")],
            test_issuer.jwks_json(),
        ),
        Keys::Endless | Keys::Stalled => {
            let (sender, body) = ChannelBody::new();
            sender.send("{\"keys\":[".into()).unwrap();
            for _ in 0..if keys == Keys::Endless { 64 } else { 0 } {
                sender.send(vec![b' '; 8 << 10].into()).unwrap();
            }
            senders.lock().push(sender);
            Upstream::streaming(200, &[JSON], body)
        }
        Keys::TooMany => {
            let set: serde_json::Value = serde_json::from_str(&test_issuer.jwks_json()).unwrap();
            let one = set["keys"][0].to_string();
            let all = (0..10_000)
                .map(|number| one.replace("\"kid\":\"", &format!("\"kid\":\"{number}-")));
            let all = [one.clone()]
                .into_iter()
                .chain(all)
                .collect::<Vec<_>>()
                .join(",");
            Upstream::response(200, &[JSON], format!("{{\"keys\":[{all}]}}"))
        }
        Keys::TooManySmall => {
            let small = format!("{}]}}", ",{\"kty\":\"EC\"}".repeat(9_999));
            let set = test_issuer
                .jwks_json()
                .trim_end()
                .trim_end_matches("]}")
                .to_owned()
                + &small;
            assert!(set.len() < 256 << 10);
            assert!(serde_json::from_str::<serde_json::Value>(&set).is_ok());
            Upstream::response(200, &[JSON], set)
        }
        Keys::OneBad => {
            let bad = r#"{"keys":[{"kty":"oct","k":"aHVzaA","kid":"shared"},"#;
            Upstream::response(
                200,
                &[JSON],
                test_issuer.jwks_json().replacen("{\"keys\":[", bad, 1),
            )
        }
        Keys::Empty => Upstream::response(200, &[JSON], "{}"),
    }
}

const FAULTS: [Keys; 8] = [
    Keys::Unavailable,
    Keys::Html,
    Keys::Redirected,
    Keys::Endless,
    Keys::Stalled,
    Keys::TooMany,
    Keys::TooManySmall,
    Keys::Empty,
];

/// Sends a token until it is accepted.
async fn until_accepted(deployment: &Deployment, token: &str, case: &str) {
    let tried = async {
        while deployment.try_token(token).await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    timeout(TIMEOUT, tried)
        .await
        .unwrap_or_else(|_| panic!("{case}: the token is not accepted"));
}

/// Runs a scenario for each fault concurrently.
async fn for_each<F>(faults: impl IntoIterator<Item = Keys>, scenario: impl Fn(Keys) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut running = JoinSet::new();
    for fault in faults {
        running.spawn(scenario(fault));
    }
    while let Some(ended) = running.join_next().await {
        if let Err(error) = ended {
            std::panic::resume_unwind(error.into_panic());
        }
    }
}

/// B2, C10: an invalid key set is rejected at startup. Tokens get 401 without `error` and with
/// `Retry-After` until a valid one is published.
#[tokio::test]
async fn at_startup() {
    for_each(FAULTS, |fault| async move {
        let issuer = FaultyIssuer::start(fault).await;
        let deployment = issuer.deployment("1s").await;
        let token = issuer.test_issuer.token().sign();
        let response = deployment.try_token(&token).await;
        assert_eq!(
            response.assert_unauthorized(),
            None,
            "{fault:?}: {response:?}"
        );
        let seconds = response
            .header("retry-after")
            .and_then(|value| value.parse::<u32>().ok());
        assert!(
            seconds.is_some_and(|seconds| seconds > 0),
            "{fault:?}: {response:?}"
        );
        deployment
            .portcullis
            .assert_denied(&response, "issuer.unavailable")
            .await;
        let line = deployment
            .portcullis
            .logged("cannot fetch issuer keys", |line| line["level"] == "WARN")
            .await;
        assert!(line["issuer.failure"].is_string(), "{fault:?}: {line}");
        assert_eq!(
            deployment.send(Request::new("GET", "/readyz")).await.status,
            503,
            "{fault:?}"
        );

        issuer.publish(Keys::Good);
        until_accepted(&deployment, &token, &format!("{fault:?}")).await;
        assert_eq!(
            deployment.send(Request::new("GET", "/readyz")).await.status,
            200,
            "{fault:?}"
        );
    })
    .await;
}

/// C10: fetched keys remain in use during every fault, also for uncached tokens. The first token of
/// a new key is accepted when the new keys are published.
#[tokio::test]
async fn after_startup() {
    for_each(FAULTS, |fault| async move {
        let issuer = FaultyIssuer::start(Keys::Good).await;
        let deployment = issuer.deployment("1s").await;
        let old = issuer.test_issuer.key();
        until_accepted(
            &deployment,
            &issuer.test_issuer.token().sign(),
            &format!("{fault:?}, at first"),
        )
        .await;

        issuer.publish(fault);
        issuer.test_issuer.rotate();
        let new = issuer.test_issuer.token().sign();
        // The token is not accepted while the keys are fetched.
        let response = deployment.try_token(&new).await;
        assert_eq!(response.status, 401, "{fault:?}: {response:?}");
        deployment
            .portcullis
            .logged("cannot fetch issuer keys", |line| line["level"] == "WARN")
            .await;
        for number in 0..3 {
            let token = issuer
                .test_issuer
                .token()
                .claim("number", number)
                .signed_by(Arc::clone(&old))
                .sign();
            deployment
                .assert_accepted(&format!("{fault:?}: the old key"), &token)
                .await;
        }
        issuer.publish(Keys::Good);
        until_accepted(&deployment, &new, &format!("{fault:?}, at last")).await;
        let token = issuer
            .test_issuer
            .token()
            .claim("number", 9)
            .signed_by(old)
            .sign();
        deployment
            .assert_rejected([(
                format!("{fault:?}: the withdrawn key"),
                token,
                "token.key_unknown",
            )])
            .await;
    })
    .await;
}

/// C10: a set of 10,000 keys is rejected, even if the token's key is the first of them. The log has
/// the reason.
#[tokio::test]
async fn ten_thousand_keys() {
    for (keys, failure) in [
        (Keys::TooMany, "fetch.too_large"),
        (Keys::TooManySmall, "keys.too_many"),
    ] {
        let issuer = FaultyIssuer::start(keys).await;
        let deployment = issuer.deployment("10m").await;
        let response = deployment
            .try_token(&issuer.test_issuer.token().sign())
            .await;
        assert_eq!(
            response.assert_unauthorized(),
            None,
            "{keys:?}: {response:?}"
        );
        let line = deployment
            .portcullis
            .logged("cannot fetch issuer keys", |line| line["level"] == "WARN")
            .await;
        assert_eq!(line["issuer.failure"], failure, "{keys:?}: {line}");
        let ready = deployment.send(Request::new("GET", "/readyz")).await;
        assert_eq!(ready.status, 503, "{keys:?}: {ready:?}");
    }
}

/// C10: an invalid key does not affect the others. The log names it without its value.
#[tokio::test]
async fn one_invalid_key() {
    let issuer = FaultyIssuer::start(Keys::OneBad).await;
    let deployment = issuer.deployment("30s").await;
    until_accepted(
        &deployment,
        &issuer.test_issuer.token().sign(),
        "beside a bad one",
    )
    .await;
    let line = deployment
        .portcullis
        .logged("a published key is rejected", |line| {
            line["level"] == "WARN"
        })
        .await;
    assert_eq!(line["key.id"], "shared", "{line}");
    assert_eq!(line["key.failure"], "jwk.symmetric", "{line}");
    assert!(!deployment.portcullis.log().contains("aHVzaA"));
}

/// C10: a valid set is accepted with any `Content-Type`: many issuers send another one.
#[tokio::test]
async fn another_content_type() {
    let issuer = FaultyIssuer::start(Keys::AsText).await;
    let deployment = issuer.deployment("30s").await;
    until_accepted(&deployment, &issuer.test_issuer.token().sign(), "as text").await;
}

/// C10: a flood of tokens with unknown keys from many clients causes one fetch per cooldown. Valid
/// tokens are accepted meanwhile.
#[tokio::test]
async fn a_flood_of_unknown_keys() {
    let issuer = FaultyIssuer::start(Keys::Good).await;
    let deployment = issuer.deployment("10m").await;
    let good = issuer.test_issuer.token().sign();
    until_accepted(&deployment, &good, "at first").await;
    assert_eq!(issuer.hits(), 1);

    let mut flood = JoinSet::new();
    for client in 0..20 {
        let tokens: Vec<_> = (0..10)
            .map(|number| {
                issuer
                    .test_issuer
                    .token()
                    .kid(&format!("unknown-{client}-{number}"))
                    .sign()
            })
            .collect();
        let address = deployment.portcullis.address();
        flood.spawn(async move {
            for token in tokens {
                let response = Request::post(Deployment::ENDPOINT, INITIALIZE)
                    .bearer(&token)
                    .send(address)
                    .await;
                assert_eq!(response.status, 401, "{response:?}");
            }
        });
    }
    while let Some(ended) = flood.join_next().await {
        ended.unwrap();
    }
    assert_eq!(issuer.hits(), 2, "one fetch for 200 tokens of 20 clients");
    deployment
        .assert_accepted(
            "meanwhile",
            &issuer.test_issuer.token().claim("number", 1).sign(),
        )
        .await;
}

/// C10: after the cooldown, the first token of a new key is accepted, regardless of previous
/// unknown keys.
#[tokio::test]
async fn a_new_key_after_a_flood() {
    let issuer = FaultyIssuer::start(Keys::Good).await;
    let deployment = issuer.deployment("1s").await;
    until_accepted(&deployment, &issuer.test_issuer.token().sign(), "at first").await;
    for number in 0..20 {
        deployment
            .try_token(
                &issuer
                    .test_issuer
                    .token()
                    .kid(&format!("unknown-{number}"))
                    .sign(),
            )
            .await;
    }
    issuer.test_issuer.rotate();
    until_accepted(
        &deployment,
        &issuer.test_issuer.token().sign(),
        "the new key",
    )
    .await;
}
