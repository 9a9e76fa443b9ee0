//! [`EndpointBuilder`]: guard and endpoint with the defaults of `portcullis serve`.

mod error;

use std::{
    fmt,
    sync::{Arc, Weak},
    time::Duration,
};

use portcullis_guard::{GuardBuilder, GuardLayer, ProtectedResource};
use portcullis_mcp::header;
use portcullis_session::{SessionKey, SessionSettings, SessionStore};
use tokio::{
    runtime::Handle,
    time::{MissedTickBehavior, interval},
};

pub use self::error::EndpointBuilderError;
use crate::{
    layer::EndpointLayer, rules::MessageRule, service::Endpoint, settings::EndpointSettings,
    stream::StreamRegistry,
};

impl Endpoint<()> {
    /// Starts a builder for an MCP endpoint behind a guard. The resource of the guard's verifier is
    /// the endpoint.
    ///
    /// ```
    /// use portcullis_endpoint::Endpoint;
    /// use portcullis_guard::{Guard, Verifier};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let verifier = Verifier::builder("https://mcp.example.com/mcp").issuer("https://auth.example.com").build()?;
    /// let (guard, endpoint) = Endpoint::builder(Guard::builder(verifier).required_scopes("mcp:tools")).build()?;
    /// // For axum: Router::new().route_service("/mcp", endpoint.layer(HttpService::new(service))).layer(guard)
    /// # let _ = (guard, endpoint);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder(guard: GuardBuilder) -> EndpointBuilder {
        EndpointBuilder {
            guard,
            sessions: None,
            rules: Vec::new(),
            changes: Vec::new(),
        }
    }
}

/// Builds a [`GuardLayer`] and an [`EndpointLayer`] that belong together. [`Endpoint::builder`]
/// creates it.
///
/// Without further settings the endpoint behaves as in `portcullis serve`: it serves all revisions,
/// keeps sessions in memory under a random key, and ends event streams when their token expires.
/// `build` starts the tasks that end sessions and streams. They stop when both layers and their
/// services are dropped.
///
/// Unlike `serve`, the guard itself enforces the required scopes, so that other routes behind the
/// same guard need them too. The endpoint adds the scopes of its rules.
#[must_use = "a builder does nothing until `build` is called"]
pub struct EndpointBuilder {
    guard: GuardBuilder,
    sessions: Option<SessionStore>,
    rules: Vec<MessageRule>,
    changes: Vec<SettingsChange>,
}

type SettingsChange = Box<dyn FnOnce(&mut EndpointSettings) + Send>;

impl EndpointBuilder {
    /// Adds a rule for some messages. All rules that match apply together.
    pub fn rule(mut self, rule: MessageRule) -> Self {
        self.rules.push(rule);
        self
    }

    /// Sets where sessions are kept. Default: in memory, with the default [`SessionSettings`] and a
    /// random key.
    pub fn sessions(mut self, sessions: SessionStore) -> Self {
        self.sessions = Some(sessions);
        self
    }

    /// Changes any of the settings, for those that have no method here.
    pub fn configure(
        mut self,
        change: impl FnOnce(&mut EndpointSettings) + Send + 'static,
    ) -> Self {
        self.changes.push(Box::new(change));
        self
    }

    /// Builds the guard and the endpoint. Put the endpoint around the service, and the guard around
    /// the router: the guard also serves the metadata document, which is at another path than the
    /// endpoint.
    ///
    /// The guard's CORS methods become those of the endpoint, and its exposed headers are added.
    ///
    /// # Errors
    /// Fails if the guard or the endpoint cannot be built, if the operating system has no random
    /// bytes for the session key, or outside a tokio runtime.
    pub fn build(self) -> Result<(GuardLayer, EndpointLayer), EndpointBuilderError> {
        let runtime = Handle::try_current().map_err(|_| EndpointBuilderError::NoRuntime)?;
        let mut required_scopes = None;
        let mut clock = None;
        let guard = self.guard.configure(|settings| {
            let needed = EndpointSettings::cors(&header::SESSION);
            settings.cors.methods = needed.methods;
            settings.cors.exposed_headers.extend(needed.exposed_headers);
            required_scopes = Some(settings.required_scopes.clone());
            clock = Some(Arc::clone(&settings.clock));
        });
        // The settings were valid, so both are known now.
        let guard = guard.build()?;
        let clock = clock.unwrap_or_else(|| Arc::new(portcullis_metadata::SystemClock::new()));
        let sessions = match self.sessions {
            Some(sessions) => sessions,
            None => SessionStore::builder(SessionSettings::new(SessionKey::random()?))
                .clock(Arc::clone(&clock))
                .build(),
        };
        let mut settings = EndpointSettings::new(Arc::clone(guard.resource()), sessions);
        settings.required_scopes = required_scopes.unwrap_or_default();
        settings.rules = self.rules;
        settings.streams = StreamRegistry::new(clock, Arc::new(()));
        self.changes
            .into_iter()
            .for_each(|change| change(&mut settings));
        let resource = Arc::downgrade(guard.resource());
        // Those of the changed settings.
        let (streams, sessions) = (settings.streams.clone(), settings.sessions.clone());
        let endpoint = EndpointLayer::new(settings)?;
        let sweep_streams = move || _ = streams.sweep();
        let sweep_sessions = move || _ = sessions.sweep();
        runtime.spawn(sweep_every(
            StreamRegistry::SWEEP_INTERVAL,
            resource.clone(),
            sweep_streams,
        ));
        runtime.spawn(sweep_every(
            SessionStore::SWEEP_INTERVAL,
            resource,
            sweep_sessions,
        ));
        Ok((guard, endpoint))
    }
}

impl fmt::Debug for EndpointBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointBuilder")
            .field("rules", &self.rules)
            .finish_non_exhaustive()
    }
}

/// Calls `sweep` periodically until the resource is dropped.
async fn sweep_every(period: Duration, resource: Weak<ProtectedResource>, sweep: impl Fn()) {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while resource.strong_count() > 0 {
        ticks.tick().await;
        sweep();
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bytes::Bytes;
    use http::{Request, Response, StatusCode};
    use http_body_util::Full;
    use portcullis_guard::{Guard, Verifier};
    use portcullis_metadata::{ResourceUri, Scopes};
    use portcullis_session::{Owner, SessionTarget};
    use portcullis_testkit::{ManualClock, ScriptedFetch, TestIssuer};
    use tower::{Layer, ServiceExt, service_fn};

    use super::*;
    use crate::{AdmittedBody, HttpService, NameGlob};

    const RESOURCE: &str = "https://mcp.example.com/mcp";

    fn guard() -> (TestIssuer, GuardBuilder) {
        let issuer = TestIssuer::new("https://issuer.example").with_resource(RESOURCE);
        let fetch = ScriptedFetch::new();
        fetch.publish(&issuer);
        let issuer = issuer.with_clock(portcullis_metadata::SystemClock::new());
        let verifier = Verifier::builder(RESOURCE)
            .issuer("https://issuer.example")
            .fetch(Arc::new(fetch));
        (issuer, Guard::builder(verifier.build().unwrap()))
    }

    /// B7, E2: the required scopes of the guard and those of the endpoint's rules are enforced, and
    /// a session is opened.
    #[tokio::test]
    async fn scopes_are_enforced_and_sessions_opened() {
        let (issuer, guard) = guard();
        let mut rule = MessageRule::for_method(NameGlob::parse("tools/*").unwrap());
        rule.scopes = Scopes::parse("tools").unwrap();
        let (guard, endpoint) = Endpoint::builder(guard.required_scopes("mcp"))
            .rule(rule)
            .build()
            .unwrap();
        let inner = service_fn(async |_: Request<AdmittedBody>| {
            Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(
                r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            )))
        });
        let service = guard.layer(endpoint.layer(HttpService::new(inner)));
        let send = async |scope: &str, session: Option<&str>, method: &str| {
            let message =
                format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}"#);
            let token = issuer.token().scope(scope).sign();
            let mut request = Request::post("/mcp")
                .header("host", "mcp.example.com")
                .header("content-type", "application/json")
                .header("authorization", format!("Bearer {token}"));
            if let Some(session) = session {
                request = request.header("mcp-session-id", session);
            }
            let response = service
                .clone()
                .oneshot(request.body(Full::<Bytes>::from(message)).unwrap())
                .await
                .unwrap();
            let session = response
                .headers()
                .get("mcp-session-id")
                .map(|id| id.to_str().unwrap().to_owned());
            (response.status(), session)
        };
        assert_eq!(
            send("tools", None, "initialize").await.0,
            StatusCode::FORBIDDEN
        );

        let (status, session) = send("mcp", None, "initialize").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            send("mcp", session.as_deref(), "tools/list").await.0,
            StatusCode::FORBIDDEN
        );
        let (status, session) = send("mcp tools", None, "initialize").await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(
            send("mcp tools", session.as_deref(), "tools/list").await.0,
            StatusCode::OK
        );
    }

    /// The endpoint's own path cannot be public.
    #[tokio::test]
    async fn a_public_endpoint_does_not_build() {
        let (_, guard) = guard();
        assert!(
            Endpoint::builder(guard.clone().public_path("/healthz"))
                .build()
                .is_ok()
        );
        let error = Endpoint::builder(guard.clone().public_path("/mcp"))
            .build()
            .map(drop)
            .unwrap_err();
        assert_eq!(error.code(), "settings.public_endpoint");
        let error = Endpoint::builder(guard.realm(""))
            .build()
            .map(drop)
            .unwrap_err();
        assert_eq!(error.code(), "settings.realm");
    }

    /// E9: idle sessions end, also those of a store that `configure` has set.
    #[tokio::test(start_paused = true)]
    async fn idle_sessions_end_in_the_configured_store() {
        let clock = ManualClock::new();
        let store = || {
            let settings = SessionSettings::new(SessionKey::random().unwrap());
            let store = SessionStore::builder(settings)
                .clock(Arc::new(clock.clone()))
                .build();
            let target = SessionTarget::new(ResourceUri::parse(RESOURCE).unwrap(), "");
            let reservation = store
                .reserve(&target, Owner::Anonymous, &Scopes::empty())
                .unwrap();
            drop(reservation.open(Box::default(), None).unwrap());
            store
        };
        let (passed, configured) = (store(), store());
        let builders: [fn(EndpointBuilder, SessionStore) -> EndpointBuilder; 2] = [
            |builder, store| builder.sessions(store),
            |builder, store| builder.configure(|settings| settings.sessions = store),
        ];
        for (builder, store) in builders.into_iter().zip([passed, configured]) {
            assert_eq!(store.len(), 1);
            let _layers = builder(Endpoint::builder(guard().1), store.clone())
                .build()
                .unwrap();
            clock.advance(Duration::from_secs(3600));
            tokio::time::sleep(2 * SessionStore::SWEEP_INTERVAL).await;
            assert_eq!(store.len(), 0);
        }
    }

    /// L3: the tasks that end streams and sessions stop when the layers are dropped.
    #[tokio::test(start_paused = true)]
    async fn the_sweeps_stop_on_drop() {
        let (_, guard) = guard();
        let layers = Endpoint::builder(guard).build().unwrap();
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert!(
            tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks()
                > 0
        );
        drop(layers);
        tokio::time::sleep(Duration::from_secs(60)).await;
        assert_eq!(
            tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks(),
            0
        );
    }
}
