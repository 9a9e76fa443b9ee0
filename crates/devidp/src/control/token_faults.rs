//! [`TokenFault`]: faults of ID tokens and logout tokens.

use std::time::Duration;

use portcullis_metadata::UnixTime;
use serde_json::{Map, Value, json};

/// A fault of an ID token or a logout token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenFault {
    /// `aud` is another client.
    WrongAudience,
    /// `azp` is another client.
    WrongAuthorizedParty,
    /// `nonce` is another one. A logout token must have none (OpenID Connect Back-Channel Logout
    /// section 2.4).
    WrongNonce,
    /// `nonce` is missing.
    NoNonce,
    /// `sub` is another user.
    WrongSubject,
    /// The token expired an hour ago.
    Expired,
    /// The algorithm is `none`, and there is no signature (RFC 7518 section 3.6).
    AlgNone,
    /// The signature is not valid, and `kid` is not that of a published key.
    UnknownKey,
    /// The signature is not valid, and `kid` is that of a published key.
    WrongSignature,
    /// `groups` is replaced by a reference, as in Entra ID for a user with more than 200 groups.
    GroupsOverage,
    /// The response has no token.
    NoToken,
}

const OTHER_CLIENT: &str = "another-client";
const HOUR: Duration = Duration::from_secs(3600);

impl TokenFault {
    const ALL: [Self; 11] = [
        Self::WrongAudience,
        Self::WrongAuthorizedParty,
        Self::WrongNonce,
        Self::NoNonce,
        Self::WrongSubject,
        Self::Expired,
        Self::AlgNone,
        Self::UnknownKey,
        Self::WrongSignature,
        Self::GroupsOverage,
        Self::NoToken,
    ];

    /// Parses the name that the admin endpoint uses.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|fault| fault.as_str() == name)
    }

    /// Returns the name that the admin endpoint uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::WrongAudience => "wrong_audience",
            Self::WrongAuthorizedParty => "wrong_azp",
            Self::WrongNonce => "wrong_nonce",
            Self::NoNonce => "no_nonce",
            Self::WrongSubject => "wrong_subject",
            Self::Expired => "expired",
            Self::AlgNone => "alg_none",
            Self::UnknownKey => "unknown_key",
            Self::WrongSignature => "wrong_signature",
            Self::GroupsOverage => "groups_overage",
            Self::NoToken => "no_token",
        }
    }

    /// Changes the claims of a token, if the fault is in them.
    pub(crate) fn change_claims(self, claims: &mut Map<String, Value>, now: UnixTime) {
        let mut set = |name: &str, value| claims.insert(name.to_owned(), value);
        match self {
            Self::WrongAudience => drop(set("aud", json!(OTHER_CLIENT))),
            Self::WrongAuthorizedParty => drop(set("azp", json!(OTHER_CLIENT))),
            Self::WrongNonce => drop(set("nonce", json!("another-nonce"))),
            Self::NoNonce => drop(claims.remove("nonce")),
            Self::WrongSubject => drop(set("sub", json!("another-user"))),
            Self::Expired => {
                set("exp", json!(now.as_secs().saturating_sub(HOUR.as_secs())));
                set(
                    "iat",
                    json!(now.as_secs().saturating_sub(2 * HOUR.as_secs())),
                );
            }
            Self::GroupsOverage => {
                let user = claims.get("oid").or_else(|| claims.get("sub"));
                let user = user.and_then(Value::as_str).unwrap_or_default();
                let endpoint =
                    format!("https://graph.microsoft.com/v1.0/users/{user}/getMemberObjects");
                claims.remove("groups");
                let sources = json!({ "src1": { "endpoint": endpoint } });
                claims.insert("_claim_names".to_owned(), json!({ "groups": "src1" }));
                claims.insert("_claim_sources".to_owned(), sources);
            }
            Self::AlgNone | Self::UnknownKey | Self::WrongSignature | Self::NoToken => {}
        }
    }
}
