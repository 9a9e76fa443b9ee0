//! Secrets in logs and `Debug`.

use std::{
    io,
    sync::{Arc, LazyLock},
    time::Duration,
};

use http::Method;
use parking_lot::Mutex;
use portcullis_testkit::{ManualClock, ScriptedFetch};
use tower_layer::Layer;
use tracing::Dispatch;

use super::support::{Inner, Setup, With, request};
use crate::{
    Guard, GuardFuture, GuardLayer, ProtectedResource, TracingSink,
    limit::{Rate, RateLimiter},
};

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// J1, J2: the log has the reason code and the request id, but no part of the token, proof, cookie
/// or query.
#[tokio::test]
async fn the_log_has_the_reason_and_no_secret() {
    // With one dispatcher, `tracing` would ask only the thread that first reaches an event whether
    // it is enabled, and that of another test would answer no.
    static SECOND: LazyLock<Dispatch> =
        LazyLock::new(|| Dispatch::new(tracing_subscriber::registry()));
    LazyLock::force(&SECOND);
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _default = tracing::subscriber::set_default(subscriber);
    let issuer = ScriptedFetch::new();
    let mut setup = Setup::fetching(&issuer).require("read");
    issuer.publish(&setup.test_issuer);
    setup.settings.sink = Arc::new(TracingSink);
    let good = setup.token("read");
    let poor = setup.token("");
    let mut ids = Vec::new();
    for bearer in [good.as_str(), &poor, "canary-opaque", "canary malformed"] {
        for query in ["q=canary-query", "access_token=canary-query"] {
            let request = request(Method::POST, &format!("/mcp?{query}"))
                .bearer(bearer)
                .with("dpop", "canary-proof")
                .with("cookie", "canary-cookie");
            ids.push(
                setup
                    .send(request)
                    .await
                    .header("x-request-id")
                    .unwrap()
                    .to_owned(),
            );
        }
    }
    let log = String::from_utf8(log.0.lock().clone()).unwrap();
    for id in ids {
        assert!(log.contains(&id), "{log}");
    }
    for code in [
        "scope.insufficient",
        "token.malformed",
        "bearer.malformed",
        "bearer.in_query",
    ] {
        assert!(log.contains(code), "{log}");
    }
    for secret in [
        "canary",
        &good[..30],
        good.rsplit('.').next().unwrap(),
        poor.rsplit('.').next().unwrap(),
    ] {
        assert!(!log.contains(secret), "{secret}: {log}");
    }
}

/// J3: no type of the guard shows a token in `Debug`.
#[tokio::test]
async fn debug_shows_no_token() {
    let setup = Setup::new();
    let token = setup.token("");
    setup
        .send(request(Method::POST, "/mcp").bearer(&token))
        .await;
    let seen = setup.inner.take_only();
    let layer = GuardLayer::new(setup.resource());
    let text = format!(
        "{seen:?} {:?} {:?} {layer:?}",
        super::support::caller(&seen),
        layer.layer(())
    );
    let signature = token.rsplit('.').next().unwrap();
    assert!(!text.contains(signature), "{text}");
    assert!(!text.contains(&token[..30]), "{text}");
}

/// `Debug` of a resource shows its URL; `Debug` of a limiter shows no counter.
#[tokio::test]
async fn debug_names_the_resource() {
    let resource = Setup::new().resource();
    assert_eq!(
        format!("{resource:?}"),
        format!(
            "ProtectedResource {{ resource: {:?}, .. }}",
            resource.resource()
        )
    );
    let rate = Rate::new(1, Duration::from_secs(1)).unwrap();
    let limiter = RateLimiter::new(rate, 16, Arc::new(ManualClock::new()));
    limiter.check_address(Some([192, 0, 2, 1].into())).unwrap();
    assert_eq!(format!("{limiter:?}"), "RateLimiter { .. }");
}

fn sendable<T: Send>() {}

/// Public types are `Send`.
#[test]
fn public_types_are_send() {
    sendable::<Guard<Inner>>();
    sendable::<GuardFuture<Inner, (), String>>();
    sendable::<Arc<ProtectedResource>>();
}
