//! The report of a request by an administrator, for the log and the audit trail.

use portcullis_audit::{AdminAction, AdminPeer};
use portcullis_broker::GrantFilter;
use portcullis_session::LogHash;

use super::{
    request::{EndTarget, OwnerFilter},
    response::AdminError,
};
use crate::state::ServerState;

/// What a request asked for and did.
pub(super) struct Report {
    peer: AdminPeer,
    pub(super) action: &'static str,
    /// If it succeeds, the request is neither logged nor audited: there are many.
    pub(super) is_routine: bool,
    pub(super) session: Option<LogHash>,
    pub(super) owner: OwnerFilter,
    /// The grant that the request names.
    pub(super) grant: Option<String>,
    /// The provider that the request names.
    pub(super) provider: Option<String>,
    pub(super) note: Option<String>,
    pub(super) sessions_ended: Option<usize>,
    pub(super) streams_ended: Option<usize>,
    pub(super) grants_ended: Option<usize>,
    pub(super) tokens_dropped: Option<usize>,
}

impl Report {
    /// Returns the report of a request whose action is not known yet.
    pub(super) fn new(peer: AdminPeer) -> Self {
        Self {
            peer,
            action: "none",
            is_routine: false,
            session: None,
            owner: OwnerFilter::default(),
            grant: None,
            provider: None,
            note: None,
            sessions_ended: None,
            streams_ended: None,
            grants_ended: None,
            tokens_dropped: None,
        }
    }

    pub(super) fn set_target(&mut self, target: &EndTarget) {
        match target {
            EndTarget::Session(hash) => self.session = Some(*hash),
            EndTarget::Owners(owners) => self.owner = owners.filter(),
        }
    }

    /// Sets the grants that the request names.
    pub(super) fn set_grants(&mut self, filter: &GrantFilter) {
        let owned = |name: &Option<Box<str>>| name.as_deref().map(str::to_owned);
        self.grant = owned(&filter.id);
        self.provider = owned(&filter.provider);
        self.owner.subject = owned(&filter.subject);
        self.owner.client = owned(&filter.client_id);
    }

    /// Logs and audits the request.
    pub(super) fn finish(&self, state: &ServerState, error: Option<&AdminError>) {
        if self.is_routine && error.is_none() {
            return;
        }
        self.log(error);
        if let Some(audit) = &state.process().observers.audit {
            audit.administered(&AdminAction {
                name: self.action,
                code: error.map(|error| error.code),
                peer: self.peer,
                session: self.session,
                issuer: self.owner.issuer.as_deref(),
                subject: self.owner.subject.as_deref(),
                client: self.owner.client.as_deref(),
                grant: self.grant.as_deref(),
                provider: self.provider.as_deref(),
                note: self.note.as_deref(),
                sessions_ended: self.sessions_ended,
                streams_ended: self.streams_ended,
                grants_ended: self.grants_ended,
                tokens_dropped: self.tokens_dropped,
            });
        }
    }

    fn log(&self, error: Option<&AdminError>) {
        let (address, user) = match self.peer {
            AdminPeer::Unknown => (None, None),
            AdminPeer::Address(address) => (Some(tracing::field::display(address)), None),
            AdminPeer::User(user) => (None, Some(user)),
        };
        match error {
            None => tracing::info!(
                admin.action = self.action,
                client.address = address,
                client.uid = user,
                session = self.session.map(tracing::field::display),
                principal.issuer = self.owner.issuer,
                principal.subject = self.owner.subject,
                principal.client = self.owner.client,
                grant.id = self.grant,
                provider.name = self.provider,
                sessions.ended = self.sessions_ended,
                streams.ended = self.streams_ended,
                grants.ended = self.grants_ended,
                tokens.dropped = self.tokens_dropped,
                "action of an administrator"
            ),
            Some(error) => tracing::warn!(
                admin.action = self.action,
                client.address = address,
                client.uid = user,
                deny.code = error.code,
                http.status = error.status.as_u16(),
                "action of an administrator was not performed"
            ),
        }
    }
}
