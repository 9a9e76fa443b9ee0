//! The JSON-RPC methods that clients send, by revision.

use crate::{Revision, Revisions};

/// A method of requests or notifications from client to server, and the revisions that define it.
struct ClientMethod {
    name: &'static str,
    /// The first revision; `None` means the oldest.
    first: Option<Revision>,
    /// The last revision; `None` means the newest.
    last: Option<Revision>,
}

/// The members of `ClientRequest` and `ClientNotification` in each revision's `schema.ts`, and for
/// 2026-07-28 those of the tasks extension (SEP-2663).
const CLIENT_METHODS: &[ClientMethod] = &[
    since_the_oldest("completion/complete"),
    legacy("initialize"),
    legacy("logging/setLevel"),
    since_the_oldest("notifications/cancelled"),
    legacy("notifications/initialized"),
    legacy("notifications/progress"),
    legacy("notifications/roots/list_changed"),
    between(
        "notifications/tasks/status",
        Revision::V2025_11_25,
        Revision::V2025_11_25,
    ),
    legacy("ping"),
    since_the_oldest("prompts/get"),
    since_the_oldest("prompts/list"),
    since_the_oldest("resources/list"),
    since_the_oldest("resources/read"),
    legacy("resources/subscribe"),
    since_the_oldest("resources/templates/list"),
    legacy("resources/unsubscribe"),
    since("server/discover", Revision::V2026_07_28),
    since("subscriptions/listen", Revision::V2026_07_28),
    since("tasks/cancel", Revision::V2025_11_25),
    since("tasks/get", Revision::V2025_11_25),
    between("tasks/list", Revision::V2025_11_25, Revision::V2025_11_25),
    between("tasks/result", Revision::V2025_11_25, Revision::V2025_11_25),
    since("tasks/update", Revision::V2026_07_28),
    since_the_oldest("tools/call"),
    since_the_oldest("tools/list"),
];

/// Returns the methods of client requests and notifications in at least one of these revisions,
/// sorted.
///
/// Methods that only servers send, and those of extensions other than tasks, are not included.
///
/// ```
/// use portcullis_mcp::{Revision, Revisions, client_methods};
///
/// let modern = Revisions::from_iter([Revision::V2026_07_28]);
/// assert!(client_methods(modern).any(|method| method == "tools/call"));
/// assert!(!client_methods(modern).any(|method| method == "initialize"));
/// ```
pub fn client_methods(revisions: Revisions) -> impl Iterator<Item = &'static str> {
    let is_defined = move |method: &&ClientMethod| {
        let within = |revision: Revision| {
            method.first.is_none_or(|first| first <= revision)
                && method.last.is_none_or(|last| revision <= last)
        };
        revisions.iter().any(within)
    };
    CLIENT_METHODS
        .iter()
        .filter(is_defined)
        .map(|method| method.name)
}

const fn since_the_oldest(name: &'static str) -> ClientMethod {
    ClientMethod {
        name,
        first: None,
        last: None,
    }
}

const fn legacy(name: &'static str) -> ClientMethod {
    ClientMethod {
        name,
        first: None,
        last: Some(Revision::V2025_11_25),
    }
}

const fn since(name: &'static str, first: Revision) -> ClientMethod {
    ClientMethod {
        name,
        first: Some(first),
        last: None,
    }
}

const fn between(name: &'static str, first: Revision, last: Revision) -> ClientMethod {
    ClientMethod {
        name,
        first: Some(first),
        last: Some(last),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVISIONS: [Revision; 4] = [
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];

    fn methods(revision: Revision) -> Vec<&'static str> {
        client_methods(Revisions::from_iter([revision])).collect()
    }

    /// B9: each revision has the methods that its schema gives to clients.
    #[test]
    fn each_revision_has_its_methods() {
        let counts = REVISIONS.map(|revision| methods(revision).len());
        assert_eq!(counts, [17, 17, 22, 14]);
        for (method, revisions) in [
            ("tools/call", [true, true, true, true]),
            ("initialize", [true, true, true, false]),
            ("resources/subscribe", [true, true, true, false]),
            ("tasks/get", [false, false, true, true]),
            ("tasks/result", [false, false, true, false]),
            ("subscriptions/listen", [false, false, false, true]),
            ("sampling/createMessage", [false, false, false, false]),
        ] {
            let found = REVISIONS.map(|revision| methods(revision).contains(&method));
            assert_eq!(found, revisions, "{method}");
        }
    }

    #[test]
    fn methods_are_sorted_and_unique() {
        let all: Vec<_> = client_methods(Revisions::ALL).collect();
        assert_eq!(all.len(), CLIENT_METHODS.len());
        assert!(all.is_sorted_by(|one, next| one < next), "{all:?}");
        assert_eq!(client_methods(Revisions::from_iter([])).count(), 0);
    }
}
