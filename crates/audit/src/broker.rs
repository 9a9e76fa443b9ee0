use portcullis_metadata::UnixTime;
use portcullis_telemetry::{MAX_TEXT, json::JsonObject, truncated};

use crate::{key::PrincipalMembers, record::write_record};

/// What happened at the broker.
#[derive(Clone, Copy, Debug)]
pub struct BrokerAction<'a> {
    /// What happened.
    pub event: BrokerEvent,
    /// The issuer of the broker.
    pub issuer: &'a str,
    /// The user, if one has signed in.
    pub subject: Option<&'a str>,
    /// The client.
    pub client: Option<&'a str>,
    /// The identifier of the grant.
    pub grant: Option<&'a str>,
    /// The name of the provider.
    pub provider: Option<&'a str>,
}

/// What happened at the broker, with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BrokerEvent {
    /// A client registered.
    ClientRegistered,
    /// A user decided about a client.
    ConsentDecided {
        /// Whether the user approved.
        is_approved: bool,
    },
    /// A user signed in.
    SignedIn,
    /// An access token was issued.
    TokenIssued {
        /// Whether it was issued for a refresh token.
        is_refresh: bool,
    },
    /// A grant ended.
    GrantEnded {
        /// The reason code.
        reason: &'static str,
    },
    /// A sign-in at a provider failed, or the check of a user did.
    ProviderFailed {
        /// The reason code.
        code: &'static str,
    },
}

impl BrokerEvent {
    const fn name(self) -> &'static str {
        match self {
            Self::ClientRegistered => "broker.client_registered",
            Self::ConsentDecided { .. } => "broker.consent_decided",
            Self::SignedIn => "broker.signed_in",
            Self::TokenIssued { .. } => "broker.token_issued",
            Self::GrantEnded { .. } => "broker.grant_ended",
            Self::ProviderFailed { .. } => "broker.provider_failed",
        }
    }
}

pub(super) fn brokered(out: &mut Vec<u8>, time: UnixTime, action: &BrokerAction<'_>) {
    write_record(out, time, action.event.name(), |record| {
        add_action(record, action)
    });
}

fn add_action(record: &mut JsonObject<'_>, action: &BrokerAction<'_>) {
    let provider = action.provider.map(|name| truncated(name, MAX_TEXT));
    record.optional_text("provider.name", provider.as_deref());
    PrincipalMembers::add_given(Some(action.issuer), action.subject, action.client, record);
    let grant = action.grant.map(|grant| truncated(grant, MAX_TEXT));
    record.optional_text("grant.id", grant.as_deref());
    match action.event {
        BrokerEvent::ClientRegistered | BrokerEvent::SignedIn => {}
        BrokerEvent::ConsentDecided { is_approved } => {
            record.plain_text("decision", if is_approved { "allow" } else { "deny" });
        }
        BrokerEvent::TokenIssued { is_refresh } => {
            record.plain_text("token.kind", if is_refresh { "refresh" } else { "code" });
        }
        BrokerEvent::GrantEnded { reason } => record.plain_text("grant.reason", reason),
        BrokerEvent::ProviderFailed { code } => record.plain_text("fail.code", code),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const ACTION: BrokerAction<'_> = BrokerAction {
        event: BrokerEvent::SignedIn,
        issuer: "https://mcp.example",
        subject: None,
        client: Some("client"),
        grant: None,
        provider: None,
    };

    fn record(action: BrokerAction<'_>) -> Value {
        let mut out = Vec::new();
        brokered(&mut out, UnixTime::from_secs(1_800_000_000), &action);
        serde_json::from_slice(&out).unwrap()
    }

    /// J4: a record has who and what it is about.
    #[test]
    fn sign_ins_are_recorded() {
        let expected = json!({
            "timestamp": "2027-01-15T08:00:00.000Z", "event": "broker.signed_in", "provider.name": "entra",
            "principal.issuer": "https://mcp.example", "principal.subject": "user", "principal.client": "client",
            "grant.id": "grant",
        });
        let action = BrokerAction {
            subject: Some("user"),
            grant: Some("grant"),
            provider: Some("entra"),
            ..ACTION
        };
        assert_eq!(record(action), expected);
    }

    /// J4: a record has its result.
    #[test]
    fn results_are_recorded() {
        use BrokerEvent::*;
        for (event, name, member, value) in [
            (
                ConsentDecided { is_approved: false },
                "broker.consent_decided",
                "decision",
                "deny",
            ),
            (
                TokenIssued { is_refresh: true },
                "broker.token_issued",
                "token.kind",
                "refresh",
            ),
            (
                GrantEnded {
                    reason: "grant.revoked",
                },
                "broker.grant_ended",
                "grant.reason",
                "grant.revoked",
            ),
            (
                ProviderFailed {
                    code: "provider.down",
                },
                "broker.provider_failed",
                "fail.code",
                "provider.down",
            ),
        ] {
            let record = record(BrokerAction { event, ..ACTION });
            assert_eq!(record["event"], name);
            assert_eq!(record[member], value, "{record}");
        }
        let registered = record(BrokerAction {
            event: ClientRegistered,
            ..ACTION
        });
        assert_eq!(registered["event"], "broker.client_registered");
    }
}
