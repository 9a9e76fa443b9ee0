//! The steps at the authorization servers of a resource.

use std::sync::Arc;

use portcullis_discovery::{Discovery, FetchRequest};
use portcullis_metadata::{
    AuthorizationServerMetadata, BearerChallenge, Issuer, JwkSet, ProtectedResourceMetadata,
};
use url::Url;

use super::Examination;
use crate::{
    Finding, Hop, RequestSummary, ResponseSummary, Rule, Step, client_authentication, cors,
    issuer::{self, Place},
    keys, malformed, probe, scopes,
    search::Search,
    test_registration, text, time,
};

const SERVERS: Rule = Rule {
    id: "resource.authorization_servers",
    source: "RFC 9728 section 2",
};

/// The maximum number of authorization servers that are examined for one resource.
const MAX_SERVERS: usize = 4;

impl Examination<'_> {
    /// Examines the authorization servers, and returns the usable issuers with their keys.
    pub(super) async fn authorization_servers(
        &mut self,
        challenge: Option<&BearerChallenge>,
        metadata: &ProtectedResourceMetadata,
    ) -> Vec<(Issuer, JwkSet)> {
        let mut usable = Vec::new();
        let named = metadata.authorization_servers.len();
        if named > MAX_SERVERS {
            let mut step = Step::new("the authorization servers");
            let text = format!("the metadata names {named}; the first {MAX_SERVERS} are examined");
            step.findings.push(Finding::note(SERVERS, text));
            self.finish_step(step);
        }
        for issuer in metadata.authorization_servers.iter().take(MAX_SERVERS) {
            self.hop = Hop::AuthorizationServer(Some(text::quoted(issuer.as_str())));
            let Some(server) = self.authorization_server(issuer, challenge, metadata).await else {
                continue;
            };
            self.registration(&server).await;
            self.client_authentication(&server).await;
            usable.extend(self.keys(&server).await.map(|keys| (issuer.clone(), keys)));
        }
        usable
    }

    /// Finds and checks the metadata of an authorization server. `None` if clients find none.
    async fn authorization_server(
        &mut self,
        issuer: &Issuer,
        challenge: Option<&BearerChallenge>,
        metadata: &ProtectedResourceMetadata,
    ) -> Option<Box<AuthorizationServerMetadata>> {
        let mut earlier = Search::default();
        let discovery = Discovery::new(Arc::clone(&self.doctor.fetch), self.policy.clone());
        let mut search = discovery.search_authorization_server(issuer);
        while let Some(lookup) = search.next().await {
            let mut step = Step::new(format!(
                "the authorization server {}",
                text::quoted(issuer.as_str())
            ));
            let (url, is_last) = (lookup.url.clone(), lookup.is_last);
            let is_http = url.scheme() == "http";
            let explain = |error: &_| probe::failure(error, is_http, &self.doctor.setting_names);
            let Some(found) = probe::record_lookup(lookup, &mut step, explain) else {
                step.findings.extend(earlier.earlier(issuer::FOUND));
                self.finish_step(step);
                return None;
            };
            let response = found.response.clone();
            let place = Place {
                issuer,
                url: &url,
                is_last,
            };
            let server = issuer::check(&place, found, &mut earlier, &mut step.findings);
            if let Some(server) = &server {
                step.findings.extend(issuer::check_document(
                    server,
                    &self.policy,
                    self.assumed_pkce(),
                ));
                step.findings
                    .extend(malformed::check_document(&response.body));
                step.findings
                    .extend(scopes::check(challenge, metadata, server));
                step.findings
                    .extend(time::check(&response.headers, self.doctor.clock.now()));
            }
            self.finish_step(step);
            if let Some(server) = server {
                self.page_at_server(url, &server).await;
                return Some(server);
            }
        }
        None
    }

    /// The name of the setting that assumes PKCE, if it does.
    fn assumed_pkce(&self) -> Option<&'static str> {
        self.doctor
            .assume_pkce
            .then_some(self.doctor.setting_names.assume_pkce)
    }

    /// Registers a client, and deletes it.
    async fn registration(&mut self, server: &AuthorizationServerMetadata) {
        let request = Some(()).filter(|()| self.doctor.test_registration);
        let Some(request) = request.and_then(|()| test_registration::request(server, &self.policy))
        else {
            return;
        };
        let mut step = Step::new("a client registers");
        let response = self.send(request, &mut step).await;
        let names = &self.doctor.setting_names;
        let deletion = response.and_then(|response| {
            test_registration::check(server, &self.policy, &response, names, &mut step.findings)
        });
        self.finish_step(step);
        let Some(deletion) = deletion else { return };
        let mut step = Step::new("the client is deleted");
        // A failure is not a problem of other clients, which do not delete themselves.
        let request = deletion.request();
        step.request = Some(RequestSummary::from(&request));
        let response = self.doctor.fetch.fetch(request).await.ok();
        step.response = response.as_ref().map(ResponseSummary::from);
        step.findings
            .push(test_registration::check_deletion(response.as_ref()));
        self.finish_step(step);
    }

    /// Checks the response of the token endpoint to an unknown client. There is no step if it is
    /// not an OAuth error.
    async fn client_authentication(&mut self, server: &AuthorizationServerMetadata) {
        let Some(request) = client_authentication::request(server, &self.policy) else {
            return;
        };
        let mut step = Step::new("a client authenticates at the token endpoint");
        let Some(response) = self.send(request, &mut step).await else {
            return;
        };
        let Some(finding) = client_authentication::check(&response) else {
            return;
        };
        step.findings.push(finding);
        self.finish_step(step);
    }

    /// Fetches and checks the keys. `None` if there are none, or they cannot be used.
    async fn keys(&mut self, server: &AuthorizationServerMetadata) -> Option<JwkSet> {
        // Tokens of a server without keys can only be introspected (RFC 7662), which needs the
        // resource's credentials.
        let url = server.jwks_uri.clone()?;
        let mut step = Step::new(format!(
            "the keys of {}",
            text::quoted(server.issuer.as_str())
        ));
        let policy = self.policy.of(&url);
        let request = FetchRequest::get(url, policy);
        let response = self.send(request, &mut step).await;
        let keys = response.and_then(|response| keys::check(&response, &mut step.findings));
        self.finish_step(step);
        keys
    }

    /// Checks whether a page of another origin can read the metadata and use the token endpoint.
    async fn page_at_server(&mut self, metadata_url: Url, server: &AuthorizationServerMetadata) {
        let policy = self.policy.of(&metadata_url);
        self.page_step(
            "a web page reads the authorization server's metadata",
            FetchRequest::get(metadata_url, policy),
        )
        .await;
        let Some(endpoint) = &server.token_endpoint else {
            return;
        };
        let policy = self.policy.of(endpoint);
        if policy.check(endpoint).is_ok() {
            let request = client_authentication::public_request(endpoint, policy);
            self.page_step("a web page uses the token endpoint", request)
                .await;
        }
    }

    /// Sends a request as a web page does, and checks whether the page can read the response.
    async fn page_step(&mut self, title: &str, request: FetchRequest) {
        let mut step = Step::new(title);
        if let Some(response) = self.send(cors::from_page(request), &mut step).await {
            step.findings.push(cors::check_origin(&response.headers));
        }
        self.finish_step(step);
    }
}
