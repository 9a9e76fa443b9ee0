//! The ends of sessions and event streams that a new configuration does not admit.

use std::{collections::HashMap, sync::Arc};

use portcullis_endpoint::StreamRequest;
use portcullis_session::{EndReason, EndScope, EndTicket, EndedScope, Session, SessionTarget};

use super::{Resource, ServerState};
use crate::sessions::{unrecorded, upstreams::SessionUpstream};

/// Sessions that a new configuration has ended.
#[derive(Default)]
pub(crate) struct EndedSessions {
    pub(crate) sessions: Vec<Arc<Session>>,
    /// The tickets complete when the ends are recorded.
    tickets: Vec<EndTicket>,
}

impl ServerState {
    /// Ends the sessions whose resource, upstream or issuer the `previous` state has and this one
    /// does not, including those of other processes. They stay ended if the part is added again.
    pub(crate) fn end_sessions_of(&self, previous: &Self) -> EndedSessions {
        self.end_sessions(|| self.end_removed_scopes(previous))
    }

    /// Tells the upstreams of ended sessions, and reports the ends that cannot be recorded.
    pub(crate) fn finish_ends(&self, ended: EndedSessions) {
        self.process.upstream_ends.add_all(&ended.sessions);
        unrecorded::report_later(ended.tickets, self.process.observers.audit.clone());
    }

    fn end_removed_scopes(&self, previous: &Self) -> EndedSessions {
        let mut ended = EndedSessions::default();
        let mut end = |scope: EndScope<'_>, reason| {
            ended.add_scope(self.process.sessions.end_scope(scope, reason))
        };
        let has_issuer = |issuer: &str| {
            self.issuers
                .iter()
                .any(|current| current.issuer.issuer().as_str() == issuer)
        };
        for resource in &previous.resources {
            let uri = resource.protected.resource();
            let Some(current) = self.resource(uri) else {
                end(EndScope::Resource(uri), EndReason::ResourceRemoved);
                continue;
            };
            if current.upstream.identity != resource.upstream.identity {
                let target = SessionTarget::new(uri.clone(), &resource.upstream.identity);
                end(EndScope::Target(&target), EndReason::BackendRemoved);
            }
            // The sessions of issuers that are not configured any more end below, at all resources
            // together.
            let removed = |issuer: &Option<&str>| {
                !current.accepts_owners_of(*issuer) && issuer.is_none_or(has_issuer)
            };
            for issuer in resource.owner_issuers().filter(removed) {
                end(
                    EndScope::ResourceIssuer {
                        resource: uri,
                        issuer,
                    },
                    EndReason::IssuerRemoved,
                );
            }
        }
        for removed in previous
            .issuers
            .iter()
            .map(|configured| configured.issuer.issuer())
        {
            if !has_issuer(removed.as_str()) {
                end(EndScope::Issuer(removed.as_str()), EndReason::IssuerRemoved);
            }
        }
        ended
    }

    /// Ends sessions and streams that requests of earlier configurations have opened since the
    /// reload.
    pub(super) fn end_opened_since_reload(&self) {
        if self.replaced.is_settled() {
            return;
        }
        // This comes before the search: a request that ends in the meantime may have opened a
        // session.
        let is_unused = self.replaced.in_use().next().is_none();
        self.finish_ends(self.end_sessions(EndedSessions::default));
        self.end_streams();
        if is_unused {
            self.process.upstream_ends.forget_former_upstreams();
            self.replaced.set_settled();
        }
    }

    /// Ends the event streams whose requests this configuration does not admit. Returns their
    /// number.
    ///
    /// A stream whose issuer has changed ends, too: only the issuer's new settings and keys can
    /// verify its token.
    pub(crate) fn end_streams(&self) -> usize {
        self.process.streams.end_unless(|request| {
            let Some(current) = self.resource(request.resource.resource()) else {
                return false;
            };
            Arc::ptr_eq(&current.protected, request.resource)
                || current.trusts_issuer_of(request) && current.layer.admits(request)
        })
    }

    /// Returns the upstreams at which the sessions of this configuration end.
    pub(crate) fn upstreams(&self) -> HashMap<SessionTarget, SessionUpstream> {
        let entry = |resource: &Arc<Resource>| {
            let target = SessionTarget::new(
                resource.protected.resource().clone(),
                &resource.upstream.identity,
            );
            Some((target, resource.upstream.control.clone()?))
        };
        self.resources.iter().filter_map(entry).collect()
    }

    /// Ends the sessions that no request can use any more. `end_scopes` can end many of them
    /// together.
    fn end_sessions(&self, end_scopes: impl FnOnce() -> EndedSessions) -> EndedSessions {
        let resources: HashMap<&str, &Resource> = self
            .resources
            .iter()
            .map(|resource| (resource.protected.resource().as_str(), &**resource))
            .collect();
        let reason = |session: &Session| match resources.get(session.resource().as_str()) {
            None => Some(EndReason::ResourceRemoved),
            Some(resource) if !resource.accepts_owners_of(session.owner().issuer()) => {
                Some(EndReason::IssuerRemoved)
            }
            Some(resource) if session.target().upstream() != resource.upstream.identity => {
                Some(EndReason::BackendRemoved)
            }
            Some(_) => None,
        };
        let mut ended = end_scopes();
        for session in self.process.sessions.all() {
            if let Some(ticket) =
                reason(&session).and_then(|reason| self.process.sessions.end(&session, reason))
            {
                ended.tickets.push(ticket);
                ended.sessions.push(session);
            }
        }
        ended
    }
}

impl EndedSessions {
    fn add_scope(&mut self, ended: EndedScope) {
        self.tickets.push(ended.ticket);
        self.sessions.extend(ended.sessions);
    }
}

impl Resource {
    /// Returns whether tokens of this issuer are accepted; without one, whether no token is
    /// required.
    fn accepts_owners_of(&self, issuer: Option<&str>) -> bool {
        self.owner_issuers().any(|accepted| accepted == issuer)
    }

    /// Returns the issuers of the owners of sessions: those of the resource, or none without
    /// authorization.
    fn owner_issuers(&self) -> impl Iterator<Item = Option<&str>> {
        let issuers = self
            .verifier
            .as_ref()
            .map_or(&[][..], |verifier| verifier.issuers());
        let none = self.verifier.is_none().then_some(None);
        issuers
            .iter()
            .map(|trusted| Some(trusted.issuer().as_str()))
            .chain(none)
    }

    /// Returns whether the request's issuer is one of this resource's, and has not changed since.
    fn trusts_issuer_of(&self, request: &StreamRequest<'_>) -> bool {
        let (Some(principal), Some(verifier)) = (request.principal, &self.verifier) else {
            return true;
        };
        let admitted_by = request
            .resource
            .verifier()
            .into_iter()
            .flat_map(|verifier| verifier.issuers());
        let mut admitted_by = admitted_by.filter(|issuer| issuer.issuer() == principal.issuer());
        admitted_by.any(|issuer| {
            verifier
                .issuers()
                .iter()
                .any(|current| Arc::ptr_eq(current, issuer))
        })
    }
}
