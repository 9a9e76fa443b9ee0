//! Tokens that an administrator drops, or that introspection finds inactive, at one replica.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use portcullis_scenarios::{
    Administration, ChannelBody, Connection, Deployment, DeploymentBuilder, HttpResponse,
    INITIALIZE, Redis, Request, Scratch, Upstream, wait_for_state, wait_until_ready,
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc::UnboundedSender,
    time::{sleep, timeout},
};

use super::deployment::Replicas;

const TOKEN: &str = "opaque-canary-token";
const JSON: (&str, &str) = ("content-type", "application/json");
/// The maximum time of a message between replicas, on a loaded machine. Tokens are cached for
/// longer.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(15);

/// An issuer whose tokens are introspected.
struct Issuer {
    server: Upstream,
    is_active: Arc<AtomicBool>,
    /// The body of the next response to an introspection, if the test sends it.
    held: Arc<Mutex<Option<ChannelBody>>>,
    secret: Scratch,
}

impl Issuer {
    /// Starts an issuer whose tokens become inactive when the test says so.
    async fn start() -> Self {
        let is_active = Arc::new(AtomicBool::new(true));
        let held = Arc::<Mutex<Option<ChannelBody>>>::default();
        let (answer, next) = (Arc::clone(&is_active), Arc::clone(&held));
        let server = Upstream::scripted(move |request| {
            let origin = format!("http://{}", request.header("host").unwrap());
            let is_probe = String::from_utf8_lossy(&request.body).contains("portcullis-probe-");
            let is_introspection = request.target == "/introspect";
            if is_introspection
                && !is_probe
                && let Some(held) = next.lock().take()
            {
                return Some(Upstream::streaming(200, &[JSON], held));
            }
            let body = match request.target.as_str() {
                "/introspect" => introspection(answer.load(Ordering::SeqCst) && !is_probe),
                _ => json!({ "issuer": origin, "introspection_endpoint": format!("{origin}/introspect") }),
            };
            Some(Upstream::response(200, &[JSON], body.to_string()))
        })
        .await;
        Self {
            server,
            is_active,
            held,
            secret: Scratch::file("secret", "hush"),
        }
    }

    /// Lets the test send the next response.
    fn hold_next(&self) -> UnboundedSender<Bytes> {
        let (sender, body) = ChannelBody::new();
        *self.held.lock() = Some(body);
        sender
    }

    /// Waits until the request came whose response the test sends.
    async fn holds(&self) {
        while self.held.lock().is_some() {
            sleep(Duration::from_millis(5)).await;
        }
    }

    fn deployment(&self) -> DeploymentBuilder {
        Deployment::builder().resource(format!(
            "issuers = [\"{}\"]\n{}",
            self.server.origin(),
            Deployment::SCOPED
        ))
    }

    /// Returns the table, which follows `[shared]`.
    fn table(&self) -> String {
        let name = self.server.origin();
        let secret = self.secret.as_str();
        format!(
            "[[issuer]]\nissuer = \"{name}\"\nvalidate = \"introspection\"\nclient_id = \"portcullis\"\n\
             client_secret = {{ file = \"{secret}\" }}"
        )
    }

    /// Starts two replicas at which the token is cached.
    async fn replicas(&self, redis: &Redis) -> Replicas {
        let replicas = Replicas::with(redis, 2, "", &self.table(), self.deployment()).await;
        for number in 0..2 {
            assert_eq!(initialize(&replicas, number).await.status, 200);
        }
        replicas
    }

    fn revoke(&self) {
        self.is_active.store(false, Ordering::SeqCst);
    }

    fn drop_tokens(&self) -> Request {
        let body = json!({ "issuer": self.server.origin() }).to_string();
        Request::post("/v1/tokens/drop", body).bearer(Administration::TOKEN)
    }
}

/// Returns the response to an introspection.
fn introspection(is_active: bool) -> Value {
    json!({ "active": is_active, "aud": Deployment::RESOURCE, "client_id": "editor", "sub": "alice", "scope": "mcp:tools" })
}

fn request() -> Request {
    Request::post(Deployment::ENDPOINT, INITIALIZE).bearer(TOKEN)
}

async fn initialize(replicas: &Replicas, number: usize) -> HttpResponse {
    request().send(replicas.replica(number).address()).await
}

/// Waits until a replica rejects the token.
async fn wait_until_rejected(replicas: &Replicas, number: usize) {
    let started = Instant::now();
    while initialize(replicas, number).await.status != 401 {
        assert!(
            started.elapsed() < MESSAGE_TIMEOUT,
            "the replica still accepts the token"
        );
        sleep(Duration::from_millis(5)).await;
    }
}

/// C11, E13: an issuer's cached tokens are dropped at all replicas before the action is confirmed.
#[tokio::test]
async fn tokens_are_dropped_at_all() {
    let (Some(redis), issuer) = (Redis::start().await, Issuer::start().await) else {
        return;
    };
    let replicas = issuer.replicas(&redis).await;
    issuer.revoke();
    assert_eq!(
        initialize(&replicas, 1).await.status,
        200,
        "the token is cached"
    );
    let (status, dropped) = replicas.administrations[0].send(issuer.drop_tokens()).await;
    assert_eq!(status, 200, "{dropped}");
    assert_eq!(dropped["tokens_dropped"], 1, "{dropped}");
    let response = initialize(&replicas, 1).await;
    assert_eq!(response.status, 401, "{response:?}");
    replicas
        .replica(1)
        .assert_denied(&response, "token.inactive")
        .await;
    replicas
        .replica(1)
        .logged("dropped at another replica", |_| true)
        .await;
}

/// C11, E13: without Redis, a drop takes effect at its replica and is not confirmed. The other
/// replica learns of it when Redis is back, even without its data.
#[tokio::test]
async fn a_drop_without_redis_is_not_confirmed() {
    let (Some(mut redis), issuer) = (Redis::start().await, Issuer::start().await) else {
        return;
    };
    let replicas = issuer.replicas(&redis).await;
    redis.kill().await;
    for replica in replicas.all() {
        wait_for_state(replica, "unreachable").await;
    }
    let (status, refused) = replicas.administrations[0].send(issuer.drop_tokens()).await;
    assert_eq!(status, 503, "{refused}");
    assert_eq!(
        refused["error"]["code"], "admin.drop_not_shared",
        "{refused}"
    );
    let finished = replicas.administrations[0]
        .run(&["drop-tokens", "--issuer", &issuer.server.origin()])
        .await;
    assert_eq!(finished.code, Some(3), "{finished:?}");
    redis.restart_empty().await;
    replicas
        .replica(1)
        .logged("dropped at another replica", |_| true)
        .await;
}

/// D2, E13: a token that one replica finds inactive is introspected again by the others at once,
/// although they have it cached.
#[tokio::test]
async fn an_inactive_token_is_known_to_all() {
    let (Some(redis), issuer) = (Redis::start().await, Issuer::start().await) else {
        return;
    };
    let mut replicas = issuer.replicas(&redis).await;
    let fresh = replicas.add().await;
    wait_until_ready(replicas.replica(fresh)).await;
    issuer.revoke();
    assert_eq!(
        initialize(&replicas, 0).await.status,
        200,
        "the token is cached"
    );
    assert_eq!(initialize(&replicas, fresh).await.status, 401);
    wait_until_rejected(&replicas, 0).await;
    wait_until_rejected(&replicas, 1).await;
}

/// D2, E13: a replica that was disconnected introspects all tokens again.
#[tokio::test]
async fn a_missed_message_has_no_effect() {
    let (Some(mut redis), issuer) = (Redis::start().await, Issuer::start().await) else {
        return;
    };
    let replicas = issuer.replicas(&redis).await;
    redis.kill().await;
    wait_for_state(replicas.replica(0), "unreachable").await;
    issuer.revoke();
    assert_eq!(
        initialize(&replicas, 0).await.status,
        200,
        "the token is cached"
    );
    redis.restart_empty().await;
    wait_until_rejected(&replicas, 0).await;
}

/// D2, E13: a request that arrives after another replica found its token inactive, or had its
/// issuer's tokens dropped, does not get the response to an introspection that began before.
#[tokio::test]
async fn an_introspection_from_before_a_message_is_not_joined() {
    let (Some(redis), issuer) = (Redis::start().await, Issuer::start().await) else {
        return;
    };
    for by_administrator in [false, true] {
        issuer.is_active.store(true, Ordering::SeqCst);
        let replicas = Replicas::with(&redis, 2, "", &issuer.table(), issuer.deployment()).await;
        let first_response = issuer.hold_next();
        let mut first = Connection::open(replicas.replica(0).address()).await;
        first.write(&request().to_bytes()).await;
        issuer.holds().await;
        issuer.revoke();
        if by_administrator {
            assert_eq!(
                replicas.administrations[1]
                    .send(issuer.drop_tokens())
                    .await
                    .0,
                200
            );
        } else {
            assert_eq!(initialize(&replicas, 1).await.status, 401);
        }
        // Until the message has come, further requests wait for the first response.
        let rejected = async {
            loop {
                if let Ok(response) =
                    timeout(Duration::from_millis(100), initialize(&replicas, 0)).await
                {
                    return response;
                }
            }
        };
        let rejected = timeout(Duration::from_secs(3), rejected)
            .await
            .expect("another introspection");
        replicas
            .replica(0)
            .assert_denied(&rejected, "token.inactive")
            .await;
        first_response
            .send(Bytes::from(introspection(true).to_string()))
            .unwrap();
        drop(first_response);
        assert_eq!(
            first.response().await.unwrap().status,
            200,
            "it arrived before"
        );
        assert_eq!(
            initialize(&replicas, 0).await.status,
            401,
            "it is not cached"
        );
    }
}
