//! The metadata of an issuer (RFC 8414): its place, its issuer, its endpoints, its scopes.

use http::HeaderMap;
use portcullis_discovery::{Discovery, LookupContent, LookupResponse, UrlPolicy};
use portcullis_metadata::AuthorizationServerMetadata;

use super::{Examination, TIMEOUT, absent_metadata, clock, document, request};
use crate::{
    Finding, Step, describe_response,
    issuer::{DOCUMENT, FOUND, IDENTITY},
};

impl Examination<'_> {
    /// Finds the metadata as the server and its clients do, and checks it. Returns it if it is that
    /// of the issuer.
    pub(super) async fn metadata(&mut self) -> Option<Box<AuthorizationServerMetadata>> {
        let issuer = self.issuer;
        let mut absent = Vec::new();
        let discovery = Discovery::new(self.fetch.clone(), UrlPolicy::Operator).timeout(TIMEOUT);
        let mut search = discovery.search_authorization_server(&issuer.settings.issuer);
        while let Some(lookup) = search.next().await {
            let mut step = Step::new(format!("the metadata of {}", issuer.key));
            let (url, is_last) = (lookup.url.clone(), lookup.is_last);
            let found = request::record_lookup(lookup, issuer.key, &mut step);
            let mut usable = None;
            match found {
                None => {}
                Some(LookupResponse {
                    content: LookupContent::Document(metadata),
                    response,
                    ..
                }) => {
                    usable = self.check_found(metadata, &response.headers, &mut step);
                }
                Some(LookupResponse {
                    content: LookupContent::Malformed(error),
                    ..
                }) => {
                    let fix = "correct that member at the issuer";
                    step.findings
                        .push(Finding::problem(DOCUMENT, error.to_string(), fix));
                }
                Some(LookupResponse {
                    content: LookupContent::Absent,
                    response,
                    ..
                }) => {
                    absent.push((url, response));
                    if is_last {
                        step.findings
                            .push(absent_metadata::finding(issuer, self.fetch, &absent).await);
                    }
                }
                Some(LookupResponse { response, .. }) => {
                    let text = format!("the issuer answers {}", describe_response(&response));
                    step.findings
                        .push(Finding::problem(FOUND, text, "see the issuer's log"));
                }
            }
            self.finish_step(step);
            if usable.is_some() {
                return usable;
            }
        }
        None
    }

    /// Checks the metadata. Returns it if it is that of the issuer.
    fn check_found(
        &self,
        metadata: Box<AuthorizationServerMetadata>,
        headers: &HeaderMap,
        step: &mut Step,
    ) -> Option<Box<AuthorizationServerMetadata>> {
        let settings = &self.issuer.settings;
        if metadata.issuer != settings.issuer {
            step.findings
                .push(document::other_issuer(self.issuer, &metadata.issuer));
            return None;
        }
        step.findings
            .push(Finding::met(IDENTITY, "the metadata is of this issuer"));
        document::check(self.issuer, &metadata, &mut step.findings);
        step.findings
            .extend(clock::check(headers, self.clock.now(), settings.leeway));
        Some(metadata)
    }
}
