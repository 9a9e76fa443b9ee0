//! [`Doctor`]: runs the examination.

use std::sync::Arc;

use http::{HeaderValue, StatusCode, header::ACCEPT};
use portcullis_discovery::{ChainPolicy, Fetch, FetchRequest, FetchResponse, UrlPolicy};
use portcullis_metadata::{
    AccessToken, BearerChallenge, Clock, ProtectedResourceMetadata, SystemClock,
    protected_resource_urls, syntax::is_https_or_loopback_http,
};
use serde_json::Value;
use url::Url;

use crate::{
    ConfiguredIssuer, Finding, Hop, Report, Rule, SettingNames, Step, challenge, configured_issuer,
    cors, probe,
    resource::{self, Lookup, Place},
    search::Search,
    text, time,
    token::Chain,
};

const HTTPS: Rule = Rule {
    id: "resource.https",
    source: "RFC 9728 section 2",
};
/// Examines the authorization chain of protected resources. See the [crate documentation](crate).
#[derive(Clone)]
pub struct Doctor {
    fetch: Arc<dyn Fetch>,
    clock: Arc<dyn Clock>,
    private_addresses: bool,
    assume_pkce: bool,
    test_registration: bool,
    setting_names: SettingNames,
    version: &'static str,
}

impl Doctor {
    /// Creates a doctor. The origin of the resource's URL is trusted as the user's own; other URLs
    /// that a server names are subject to [`ChainPolicy::started_at`].
    pub fn new(fetch: Arc<dyn Fetch>) -> Self {
        Self {
            fetch,
            clock: Arc::new(SystemClock::new()),
            private_addresses: false,
            assume_pkce: false,
            test_registration: false,
            setting_names: SettingNames::default(),
            version: env!("CARGO_PKG_VERSION"),
        }
    }

    /// Sets the clock to which those of servers are compared. Default: the system's.
    #[must_use]
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = clock;
        self
    }

    /// Sets whether servers may name private addresses, as in a company network. Default `false`.
    #[must_use]
    pub fn allow_private_addresses(mut self, allow: bool) -> Self {
        self.private_addresses = allow;
        self
    }

    /// Sets whether PKCE is assumed where the metadata of an authorization server has no list of
    /// methods. Default `false`.
    #[must_use]
    pub fn assume_pkce(mut self, assume: bool) -> Self {
        self.assume_pkce = assume;
        self
    }

    /// Sets whether a client is registered at each authorization server that has a registration
    /// endpoint, and deleted at once (RFC 7592). Where clients cannot be deleted, it remains, and a
    /// finding says so. Default `false`.
    #[must_use]
    pub fn test_registration(mut self, test: bool) -> Self {
        self.test_registration = test;
        self
    }

    /// Sets how fixes name the settings. Default: their names in Rust.
    #[must_use]
    pub fn setting_names(mut self, names: SettingNames) -> Self {
        self.setting_names = names;
        self
    }

    /// Sets the version that the first message to a resource names. Default: that of this crate.
    #[must_use]
    pub fn version(mut self, version: &'static str) -> Self {
        self.version = version;
        self
    }

    /// Checks the chain of the resource at `url`. It calls `on_step` after each step.
    ///
    /// It sends at most a few dozen requests, each bounded in time and size. A step that prevents
    /// the next ones is the last.
    ///
    /// With a token, further steps check the token's claims, and its result in a guard that is
    /// configured as the chain states. The token is not sent anywhere. `examine` needs a tokio
    /// runtime.
    pub async fn examine(
        &self,
        url: &Url,
        token: Option<&AccessToken>,
        on_step: &mut (dyn FnMut(&Step) + Send),
    ) -> Report {
        let mut examination = Examination {
            doctor: self,
            url,
            policy: ChainPolicy::started_at(url, self.private_addresses),
            report: Report {
                resource: text::url(url),
                steps: Vec::new(),
            },
            hop: Hop::Resource,
            is_answered: false,
            on_step,
        };
        examination.run(token).await;
        examination.report
    }

    /// Checks an issuer as the server that trusts it uses it: its metadata, its keys, and whether
    /// its introspection endpoint accepts the server's client, which gets a made-up token. It calls
    /// `on_step` after each step.
    ///
    /// The issuer's URL is trusted as the operator's own, and the clock difference is compared with
    /// the issuer's leeway.
    pub async fn examine_issuer(
        &self,
        issuer: &ConfiguredIssuer<'_>,
        on_step: &mut (dyn FnMut(&Step) + Send),
    ) -> Vec<Step> {
        configured_issuer::examine(issuer, &self.fetch, &*self.clock, on_step).await
    }
}

impl std::fmt::Debug for Doctor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doctor")
            .field("private_addresses", &self.private_addresses)
            .finish_non_exhaustive()
    }
}

/// The resource has no response, so the examination ends. The report has the reason.
struct NoResponse;

/// An examination in progress.
struct Examination<'a> {
    doctor: &'a Doctor,
    url: &'a Url,
    policy: ChainPolicy,
    report: Report,
    /// The hop that the next steps examine.
    hop: Hop,
    /// Whether the URL answers requests. Web pages cannot use another one, which has its own fix.
    is_answered: bool,
    on_step: &'a mut (dyn FnMut(&Step) + Send),
}

impl Examination<'_> {
    /// Performs the steps in order, up to one that prevents the next ones.
    async fn run(&mut self, token: Option<&AccessToken>) {
        let Ok(challenge) = self.challenge().await else {
            return;
        };
        let Some((from, metadata)) = self.metadata(challenge.as_ref()).await else {
            return;
        };
        if self.is_answered {
            self.check_web_page(from).await;
        }
        let keys = self
            .authorization_servers(challenge.as_ref(), &metadata)
            .await;
        if let Some(token) = token {
            self.hop = Hop::Token;
            let needed = challenge
                .and_then(|challenge| challenge.scope)
                .unwrap_or_default();
            let chain = Chain {
                metadata,
                needed,
                keys,
            };
            for step in chain
                .explain(token, &self.doctor.fetch, &self.doctor.clock)
                .await
            {
                self.finish_step(step);
            }
        }
    }

    /// Returns the challenge, if there is a valid one. Fails when the resource cannot be reached,
    /// and when its URL is neither https nor http to loopback.
    async fn challenge(&mut self) -> Result<Option<BearerChallenge>, NoResponse> {
        let mut step = Step::new("a request without a token");
        if !is_https_or_loopback_http(self.url) {
            let fix = "serve the resource over https: anyone on the network can read a token over plain http";
            step.findings.push(Finding::problem(
                HTTPS,
                "the URL is neither https nor http to loopback",
                fix,
            ));
            self.finish_step(step);
            return Err(NoResponse);
        }
        let Some(response) = self.send(self.initialize_request(), &mut step).await else {
            self.finish_step(step);
            return Err(NoResponse);
        };
        self.is_answered =
            response.status == StatusCode::UNAUTHORIZED || response.status.is_success();
        let challenge = challenge::check(self.url, &response, &mut step.findings);
        step.findings
            .extend(time::check(&response.headers, self.doctor.clock.now()));
        self.finish_step(step);
        Ok(challenge)
    }

    /// The first request of an MCP client, without a token. Resources without MCP reject it too.
    fn initialize_request(&self) -> FetchRequest {
        let version = Value::from(self.doctor.version);
        let message = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"portcullis-doctor","version":{version}}}}}}}"#
        );
        FetchRequest::post_json(self.url.clone(), message, UrlPolicy::StartOrigin).header(
            ACCEPT,
            HeaderValue::from_static("application/json, text/event-stream"),
        )
    }

    /// Checks what a page of another origin can do, from the preflight to the metadata at `from`.
    async fn check_web_page(&mut self, from: Url) {
        self.hop = Hop::Resource;
        let mut step = Step::new("a browser checks whether a web page may send a token");
        let request = cors::preflight(self.url, UrlPolicy::StartOrigin);
        if let Some(response) = self.send(request, &mut step).await {
            step.findings.extend(cors::check_preflight(&response));
        }
        self.finish_step(step);

        let mut step = Step::new("a web page reads the challenge");
        if let Some(response) = self
            .send(cors::from_page(self.initialize_request()), &mut step)
            .await
        {
            step.findings
                .extend(cors::check_challenge(&response.headers));
        }
        self.finish_step(step);

        self.hop = Hop::Metadata;
        let mut step = Step::new("a web page reads the metadata");
        let policy = self.policy.of(&from);
        let request = cors::from_page(FetchRequest::get(from, policy));
        if let Some(response) = self.send(request, &mut step).await {
            step.findings.push(cors::check_origin(&response.headers));
        }
        self.finish_step(step);
    }

    /// Returns the metadata that a client finds first, and its URL.
    async fn metadata(
        &mut self,
        challenge: Option<&BearerChallenge>,
    ) -> Option<(Url, ProtectedResourceMetadata)> {
        self.hop = Hop::Metadata;
        let mut found = None;
        let mut search = Search::default();
        let places = self.places(challenge);
        let last = places.len().saturating_sub(1);
        for (index, (place, url)) in places.into_iter().enumerate() {
            let mut step = Step::new(place.title());
            let request = FetchRequest::get(url.clone(), self.policy.of(&url));
            let lookup = Lookup {
                place,
                url: &url,
                is_needed: found.is_none(),
                is_last: index == last,
            };
            let metadata = match self.send(request, &mut step).await {
                Some(response) => resource::check(
                    &lookup,
                    self.url,
                    &response,
                    &mut search,
                    &mut step.findings,
                ),
                None => {
                    resource::explain_unreachable(&lookup, self.url, &mut step.findings);
                    step.findings.extend(search.earlier(resource::FOUND));
                    None
                }
            };
            // A client that has found the document does not request the other URLs.
            let ends_search = found.is_none() && step.has_problem();
            self.finish_step(step);
            if ends_search {
                return None;
            }
            found = found.or(metadata.map(|metadata| (url, metadata)));
        }
        found
    }

    /// The URLs at which clients look, in their order, each once. Clients try the origin's URL if
    /// the others have no document.
    fn places(&self, challenge: Option<&BearerChallenge>) -> Vec<(Place, Url)> {
        let named = challenge
            .and_then(|challenge| Url::parse(challenge.resource_metadata.as_deref()?).ok());
        let mut places = Vec::with_capacity(3);
        places.extend(named.clone().map(|url| (Place::Challenge, url)));
        let well_known = protected_resource_urls(self.url);
        let forms = if well_known.len() == 1 {
            &[Place::Root][..]
        } else {
            &[Place::Path, Place::Root][..]
        };
        places.extend(
            forms
                .iter()
                .copied()
                .zip(well_known)
                .filter(|(_, url)| Some(url) != named.as_ref()),
        );
        places
    }

    /// Sends a request, and records request and response in the step. Without a response, the step
    /// gets the reason.
    async fn send(&self, request: FetchRequest, step: &mut Step) -> Option<FetchResponse> {
        let is_http = request.url.scheme() == "http";
        let names = &self.doctor.setting_names;
        probe::send(&*self.doctor.fetch, request, step, |error| {
            probe::failure(error, is_http, names)
        })
        .await
    }

    /// Reports a step of the current hop and adds it to the report.
    fn finish_step(&mut self, step: Step) {
        let step = step.at_hop(self.hop.clone());
        (self.on_step)(&step);
        self.report.steps.push(step);
    }
}

mod authorization_server;
#[cfg(test)]
mod tests;
