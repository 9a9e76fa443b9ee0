//! What a new configuration ends: sessions and event streams that it does not admit.

use std::{collections::HashMap, sync::Arc};

use portcullis_endpoint::StreamRequest;
use portcullis_session::{EndReason, EndScope, Owner, Session, SessionTarget};

use super::{Resource, ServerState};
use crate::serve::sessions::upstream_end::{UpstreamSession, Upstreams};

/// Sessions that a new configuration has ended.
#[derive(Default)]
pub(in crate::serve) struct EndedSessions {
    pub(in crate::serve) count: usize,
    /// The sessions that must also be ended at their upstreams.
    pub(in crate::serve) at_upstreams: Vec<UpstreamSession>,
}

impl ServerState {
    /// Ends the sessions whose resource, upstream or issuer `former` has and this state does not.
    pub(in crate::serve) fn end_sessions_of(&self, former: &Self) -> EndedSessions {
        self.end_sessions(&former.upstreams(), || self.end_removed_scopes(former))
    }

    /// Ends all sessions of resources, upstreams and issuers that `former` has and this state does not, including those
    /// that are in no table and those on other replicas. They stay ended if the part is added again.
    fn end_removed_scopes(&self, former: &Self) {
        let sessions = &self.process.sessions;
        for resource in &former.resources {
            let uri = resource.resource.resource();
            match self.resource(uri) {
                None => drop(sessions.end_scope(EndScope::Resource(uri), EndReason::ResourceRemoved)),
                Some(current) if current.upstream.identity != resource.upstream.identity => {
                    let target = SessionTarget::new(uri.clone(), &resource.upstream.identity);
                    drop(sessions.end_scope(EndScope::Target(&target), EndReason::BackendRemoved));
                }
                Some(_) => {}
            }
        }
        for removed in former.issuers.iter().map(|configured| configured.issuer.issuer()) {
            if self.issuers.iter().all(|configured| configured.issuer.issuer() != removed) {
                drop(sessions.end_scope(EndScope::Issuer(removed.as_str()), EndReason::IssuerRemoved));
            }
        }
    }

    /// Ends sessions and streams that requests of a former configuration have opened since the change.
    pub(super) fn end_opened_since_reload(&self) {
        if self.former.iter().any(|former| former.strong_count() > 0) {
            // The change of the configuration did not end them at their upstreams.
            self.process.upstream_ends.add_all(self.end_sessions(&self.upstreams(), || {}).at_upstreams);
            self.end_streams();
        }
    }

    /// Ends the event streams whose requests this configuration does not admit. Returns their number.
    ///
    /// A stream whose issuer has changed ends, too: only the issuer's new settings and keys can verify its token.
    pub(in crate::serve) fn end_streams(&self) -> usize {
        self.process.streams.end_unless(|request| {
            let Some(current) = self.resource(request.resource.resource()) else { return false };
            Arc::ptr_eq(&current.resource, request.resource)
                || current.trusts_issuer_of(request) && current.layer.admits(request)
        })
    }

    /// Returns the clients that end sessions at the upstreams.
    pub(in crate::serve) fn upstreams(&self) -> Upstreams {
        let entry = |resource: &Arc<Resource>| {
            let upstream = &resource.upstream;
            (resource.resource.resource().clone(), (upstream.session_header.clone(), upstream.control.clone()))
        };
        self.resources.iter().map(entry).collect()
    }

    /// Ends the sessions that no request can use any more. `end_scopes` can end many of them together.
    fn end_sessions(&self, upstreams: &Upstreams, end_scopes: impl FnOnce()) -> EndedSessions {
        let resources: HashMap<&str, &Resource> =
            self.resources.iter().map(|resource| (resource.resource.resource().as_str(), &**resource)).collect();
        let reason = |session: &Session| match resources.get(session.resource().as_str()) {
            None => Some(EndReason::ResourceRemoved),
            Some(resource) if !resource.may_be_used_by(session) => Some(EndReason::IssuerRemoved),
            Some(resource) if session.target().upstream() != resource.upstream.identity => {
                Some(EndReason::BackendRemoved)
            }
            Some(_) => None,
        };
        let mut found = self.process.sessions.all();
        found.retain(|session| reason(session).is_some());
        end_scopes();
        let mut ended = EndedSessions::default();
        for session in found {
            if let Some(reason) = reason(&session) {
                drop(self.process.sessions.end(&session, reason));
            }
            ended.count += 1;
            if !session.backend_id().is_empty() {
                ended.at_upstreams.push(UpstreamSession::new(&session, upstreams));
            }
        }
        ended
    }
}

impl Resource {
    /// Returns whether tokens of the owner's issuer are accepted or, for an anonymous owner, none is required.
    fn may_be_used_by(&self, session: &Session) -> bool {
        match (session.owner(), &self.verifier) {
            (Owner::Anonymous, verifier) => verifier.is_none(),
            (Owner::Subject { .. } | Owner::Client { .. }, None) => false,
            (Owner::Subject { issuer, .. } | Owner::Client { issuer, .. }, Some(verifier)) => {
                verifier.issuers().iter().any(|trusted| trusted.issuer().as_str() == issuer)
            }
        }
    }

    /// Returns whether the request's issuer is one of this resource's, and has not changed since.
    fn trusts_issuer_of(&self, request: &StreamRequest<'_>) -> bool {
        let (Some(principal), Some(verifier)) = (request.principal, &self.verifier) else { return true };
        let former = request.resource.verifier().into_iter().flat_map(|former| former.issuers());
        let mut former = former.filter(|former| former.issuer() == principal.issuer());
        former.any(|former| verifier.issuers().iter().any(|current| Arc::ptr_eq(current, former)))
    }
}
