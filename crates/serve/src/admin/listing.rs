use portcullis_endpoint::StreamRegistry;
use portcullis_session::{ListedSession, Owner, Session};
use portcullis_telemetry::timestamp;

use super::request::{ListRequest, OwnerFilter};
use crate::administration::{SessionEntry, SessionList};

use crate::state::ServerState;

/// Returns one page of the sessions in the table of this process.
pub(super) fn list(state: &ServerState, request: &ListRequest) -> SessionList {
    let sessions = &state.process().sessions;
    let is_listed = |session: &Session| {
        request
            .session
            .is_none_or(|hash| session.log_hash() == hash)
            && request
                .resource
                .as_deref()
                .is_none_or(|resource| session.resource().as_str() == resource)
            && request.owner.matches(session.owner())
    };
    let page = sessions.list(is_listed, request.after, request.limit);
    let last = page
        .sessions
        .last()
        .map(|listed| listed.session.log_hash().to_string());
    SessionList {
        next: last.filter(|_| page.has_more),
        sessions: page.sessions.iter().map(entry).collect(),
        total: sessions.len(),
    }
}

fn entry(listed: &ListedSession) -> SessionEntry {
    let session = &listed.session;
    let owner = session.owner();
    SessionEntry {
        session: session.log_hash().to_string(),
        resource: session.resource().as_str().to_owned(),
        issuer: owner.issuer().map(str::to_owned),
        subject: owner.subject().map(str::to_owned),
        client: owner.client().map(str::to_owned),
        created: timestamp(session.created()).to_string(),
        age_seconds: listed.age.as_secs(),
        unused_seconds: listed.unused_for.as_secs(),
        in_use: listed.is_in_use,
        streams: StreamRegistry::of_session(session),
        adopted: session.is_adopted(),
        protocol_version: session.protocol_version().map(str::to_owned),
    }
}

impl OwnerFilter {
    /// Returns whether an owner has the names of this filter.
    pub(super) fn matches(&self, owner: Owner<'_>) -> bool {
        self.matches_names(owner.issuer(), owner.subject(), owner.client())
    }

    pub(super) fn matches_names(
        &self,
        issuer: Option<&str>,
        subject: Option<&str>,
        client: Option<&str>,
    ) -> bool {
        let is = |wanted: &Option<String>, name: Option<&str>| {
            wanted.is_none() || wanted.as_deref() == name
        };
        is(&self.issuer, issuer) && is(&self.subject, subject) && is(&self.client, client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E7: a filter compares exactly, and a client's own session has no subject.
    #[test]
    fn filters_compare_exactly() {
        let alice = Owner::Subject {
            issuer: "https://i",
            subject: "alice",
            client: Some("app"),
        };
        let client = Owner::Client {
            issuer: "https://i",
            client: "app",
        };
        let filter = |issuer: &str, subject: &str, client: &str| {
            let name = |name: &str| (!name.is_empty()).then(|| name.to_owned());
            OwnerFilter {
                issuer: name(issuer),
                subject: name(subject),
                client: name(client),
            }
        };
        for (filter, expected) in [
            (filter("", "", ""), [true, true, true]),
            (filter("", "alice", ""), [true, false, false]),
            (filter("", "", "app"), [true, true, false]),
            (filter("https://i", "alice", "app"), [true, false, false]),
            (filter("https://i/", "alice", ""), [false; 3]),
            (filter("", "Alice", ""), [false; 3]),
            (filter("", "app", ""), [false; 3]),
        ] {
            assert_eq!(
                [alice, client, Owner::Anonymous].map(|owner| filter.matches(owner)),
                expected,
                "{filter:?}"
            );
        }
    }
}
