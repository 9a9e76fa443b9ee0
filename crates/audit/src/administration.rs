use portcullis_metadata::UnixTime;
use portcullis_session::LogHash;
use portcullis_telemetry::{Effect, MAX_TEXT, json::JsonObject, truncated};

use crate::{key::PrincipalMembers, record::write_record};

/// A request to the listener for administrators, and its result.
#[derive(Clone, Copy, Debug, Default)]
pub struct AdminAction<'a> {
    /// The action, such as `sessions.end`; `none` if the request was rejected before it was known.
    pub name: &'static str,
    /// The reason code of a rejection or failure.
    pub code: Option<&'static str>,
    /// The client: an address, or the user id of a process at the unix socket.
    pub peer: AdminPeer,
    /// The session that the request names.
    pub session: Option<LogHash>,
    /// The issuer that the request names.
    pub issuer: Option<&'a str>,
    /// The subject that the request names.
    pub subject: Option<&'a str>,
    /// The client that the request names.
    pub client: Option<&'a str>,
    /// The grant of the broker that the request names.
    pub grant: Option<&'a str>,
    /// The provider of the broker that the request names.
    pub provider: Option<&'a str>,
    /// The administrator's note.
    pub note: Option<&'a str>,
    /// The number of sessions that ended.
    pub sessions_ended: Option<usize>,
    /// The number of event streams that ended.
    pub streams_ended: Option<usize>,
    /// The number of grants of the broker that ended.
    pub grants_ended: Option<usize>,
    /// The number of cached tokens that were dropped.
    pub tokens_dropped: Option<usize>,
}

/// The client of a request to the listener for administrators.
#[derive(Clone, Copy, Debug, Default)]
pub enum AdminPeer {
    /// A client at a unix socket whose user is not known.
    #[default]
    Unknown,
    /// The address of the client.
    Address(std::net::IpAddr),
    /// The user id of a client at a unix socket.
    User(u32),
}

pub(super) fn administered(out: &mut Vec<u8>, time: UnixTime, action: &AdminAction<'_>) {
    write_record(out, time, "administration", |record| {
        add_action(record, action)
    });
}

fn add_action(record: &mut JsonObject<'_>, action: &AdminAction<'_>) {
    record.plain_text("admin.action", action.name);
    let effect = Effect::of(action.code);
    record.plain_text("decision", effect.as_str());
    match effect {
        Effect::Allow => {}
        Effect::Deny => record.optional_text("deny.code", action.code),
        Effect::Fail => record.optional_text("fail.code", action.code),
    }
    match action.peer {
        AdminPeer::Unknown => {}
        AdminPeer::Address(address) => record.display("client.address", address),
        AdminPeer::User(user) => record.number("client.uid", user),
    }
    if let Some(session) = action.session {
        record.display("session", session);
    }
    PrincipalMembers::add_given(action.issuer, action.subject, action.client, record);
    let texts = [
        ("grant.id", action.grant),
        ("provider.name", action.provider),
        ("admin.note", action.note),
    ];
    for (name, text) in texts {
        record.optional_text(name, text.map(|text| truncated(text, MAX_TEXT)).as_deref());
    }
    let counts = [
        ("sessions.ended", action.sessions_ended),
        ("streams.ended", action.streams_ended),
        ("grants.ended", action.grants_ended),
        ("tokens.dropped", action.tokens_dropped),
    ];
    for (name, count) in counts
        .into_iter()
        .filter_map(|(name, count)| Some((name, count?)))
    {
        record.number(name, count);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn record(action: AdminAction<'_>) -> Value {
        let mut out = Vec::new();
        administered(&mut out, UnixTime::from_secs(1_800_000_000), &action);
        serde_json::from_slice(&out).unwrap()
    }

    /// J4: the record of an action has its target, its client, its result and the administrator's
    /// note.
    #[test]
    fn actions_are_recorded() {
        let action = AdminAction {
            name: "sessions.end",
            peer: AdminPeer::User(1000),
            issuer: Some("https://issuer.example"),
            subject: Some("alice\u{202e}"),
            note: Some("left the company"),
            sessions_ended: Some(3),
            streams_ended: Some(0),
            ..AdminAction::default()
        };
        let expected = json!({
            "timestamp": "2027-01-15T08:00:00.000Z", "event": "administration", "admin.action": "sessions.end",
            "decision": "allow", "client.uid": 1000, "principal.issuer": "https://issuer.example",
            "principal.subject": "alice\u{202e}", "admin.note": "left the company", "sessions.ended": 3, "streams.ended": 0,
        });
        assert_eq!(record(action), expected);

        let peer = AdminPeer::Address([127, 0, 0, 1].into());
        let refused = record(AdminAction {
            name: "none",
            code: Some("admin.token_invalid"),
            peer,
            ..AdminAction::default()
        });
        assert_eq!(refused["decision"], "deny");
        assert_eq!(refused["deny.code"], "admin.token_invalid");
        assert_eq!(refused["client.address"], "127.0.0.1");

        let failed = record(AdminAction {
            name: "sessions.end",
            code: Some("server.shutdown"),
            ..AdminAction::default()
        });
        assert_eq!(failed["decision"], "fail");
        assert_eq!(failed["fail.code"], "server.shutdown");
    }

    /// J4: the end of grants has the grant or the provider that was named.
    #[test]
    fn ends_of_grants_are_recorded() {
        let recorded = record(AdminAction {
            name: "grants.end",
            grant: Some("grant"),
            provider: Some("entra"),
            grants_ended: Some(2),
            ..AdminAction::default()
        });
        assert_eq!(recorded["grant.id"], "grant");
        assert_eq!(recorded["provider.name"], "entra");
        assert_eq!(recorded["grants.ended"], 2);
    }

    /// J4: a long note is truncated.
    #[test]
    fn notes_are_bounded() {
        let note = "x".repeat(10_000);
        let record = record(AdminAction {
            note: Some(&note),
            ..AdminAction::default()
        });
        assert!(record["admin.note"].as_str().unwrap().len() < 300);
    }
}
