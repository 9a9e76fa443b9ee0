//! What the broker stores.

use portcullis_authorization_server::{AuthorizationCode, Grant};
use portcullis_identity_provider::ProviderTokens;
use portcullis_metadata::{Scopes, Secret, UnixTime, authorization::PkceChallenge};
use portcullis_state_store::records::Table;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::observer::{EndReason, GrantOwner};

/// The registered clients, by their identifiers.
pub(crate) const CLIENTS: Table = Table("broker_clients");
/// The registered clients that were never used, by the time of their registration.
pub(crate) const UNUSED_CLIENTS: Table = Table("broker_unused_clients");
/// The clients with a metadata document, by a hash of its URL.
pub(crate) const DOCUMENTS: Table = Table("broker_documents");
/// The authorization codes, by the hash of each.
pub(crate) const CODES: Table = Table("broker_codes");
/// The grants, by their identifiers, each with its line of refresh tokens.
pub(crate) const GRANTS: Table = Table("broker_grants");
/// The grants of a user, by a hash of the subject and the identifier of the grant.
pub(crate) const GRANTS_OF_USERS: Table = Table("broker_grants_of_users");
/// The sign-ins at a provider, by the identifiers of their grants.
pub(crate) const SIGN_INS: Table = Table("broker_sign_ins");
/// The grants of a session or user at a provider, by a hash of it and the identifier of the grant.
pub(crate) const GRANTS_OF_SIGN_INS: Table = Table("broker_grants_of_sign_ins");
/// What ended before its access tokens expire, by `sid` or `jti`.
pub(crate) const ENDS: Table = Table("broker_ends");
/// The same ends for other replicas, by the time of each, as 8 bytes in big-endian order, and `sid`
/// or `jti`.
pub(crate) const ENDS_BY_TIME: Table = Table("broker_ends_by_time");
/// The assertions that were used, by a hash of issuer and `jti`.
pub(crate) const ASSERTIONS: Table = Table("broker_assertions");
/// The logout tokens that were used, by a hash of provider and `jti`.
pub(crate) const LOGOUT_TOKENS: Table = Table("broker_logout_tokens");

/// An authorization code.
#[derive(Serialize, Deserialize)]
pub(crate) struct CodeRecord {
    pub(crate) grant_id: Box<str>,
    pub(crate) grant: GrantTerms,
    pub(crate) redirect_uri: Box<str>,
    pub(crate) challenge: Box<str>,
    pub(crate) is_refreshable: bool,
    /// Whether the code was exchanged.
    pub(crate) is_used: bool,
}

/// What a user approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrantTerms {
    pub(crate) client_id: Box<str>,
    pub(crate) subject: Box<str>,
    /// Seconds since 1970, as all times here.
    pub(crate) auth_time: u64,
    pub(crate) scopes: Box<str>,
    pub(crate) audience: Option<Box<str>>,
}

/// A grant that has begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct GrantRecord {
    pub(crate) terms: GrantTerms,
    pub(crate) begun: u64,
    pub(crate) last_used: u64,
    /// The generation of the current refresh token. `None` if there are none.
    pub(crate) generation: Option<u64>,
    /// The replaced refresh tokens that are still answered, oldest first.
    pub(crate) rotations: Vec<RotationRecord>,
}

/// A refresh token that was replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RotationRecord {
    /// The generation of the replaced token.
    pub(crate) generation: u64,
    pub(crate) at: u64,
    /// The epoch of the key of the successor.
    pub(crate) epoch: u8,
}

/// The sign-in of a user at a provider, on which a grant depends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct SignInRecord {
    /// The name of the provider.
    pub(crate) provider: Box<str>,
    pub(crate) provider_subject: Box<str>,
    pub(crate) provider_session: Option<Box<str>>,
    access_token: Option<TokenText>,
    access_token_expires: Option<u64>,
    refresh_token: Option<TokenText>,
    /// When the provider identified the user the last time.
    pub(crate) checked: u64,
    /// Until when a process checks the user.
    pub(crate) lease: Option<u64>,
    /// The scopes that the user may have now.
    pub(crate) scopes: Box<str>,
    /// The claims for access tokens.
    pub(crate) claims: Map<String, Value>,
    /// Whether the rules were applied to the claims of an ID token.
    pub(crate) has_id_token: bool,
}

/// A token of a provider. It is wiped on drop, and `Debug` does not print it.
#[derive(Clone)]
struct TokenText(Secret);

/// The end of a grant or of an access token.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct EndRecord {
    pub(crate) at: u64,
}

/// The end of a grant or of an access token, as it is told to other replicas.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SharedEndRecord {
    /// `None` if only an access token ended.
    pub(crate) grant: Option<SharedGrantEnd>,
}

/// The end of a grant.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct SharedGrantEnd {
    /// `None` if no token was issued.
    pub(crate) owner: Option<OwnerRecord>,
    pub(crate) reason: EndReason,
}

/// To which user and client a grant belongs.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct OwnerRecord {
    pub(crate) subject: Box<str>,
    pub(crate) client_id: Box<str>,
}

impl CodeRecord {
    pub(crate) fn new(code: &AuthorizationCode) -> Self {
        Self {
            grant_id: code.grant.id.clone(),
            grant: GrantTerms::new(&code.grant),
            redirect_uri: code.redirect_uri.clone(),
            challenge: code.challenge.as_str().into(),
            is_refreshable: code.is_refreshable,
            is_used: false,
        }
    }

    /// Returns the code. `None` if the record is not one that this version wrote.
    pub(crate) fn code(&self) -> Option<AuthorizationCode> {
        Some(AuthorizationCode {
            grant: self.grant.grant(&self.grant_id)?,
            redirect_uri: self.redirect_uri.clone(),
            challenge: PkceChallenge::parse(&self.challenge).ok()?,
            key: None,
            is_refreshable: self.is_refreshable,
        })
    }
}

impl OwnerRecord {
    pub(crate) fn owner(&self) -> GrantOwner<'_> {
        GrantOwner {
            subject: &self.subject,
            client_id: &self.client_id,
        }
    }
}

impl GrantTerms {
    pub(crate) fn new(grant: &Grant) -> Self {
        Self {
            client_id: grant.client_id.clone(),
            subject: grant.subject.clone(),
            auth_time: grant.auth_time.as_secs(),
            scopes: grant.scopes.as_str().into(),
            audience: grant.audience.clone(),
        }
    }

    /// Returns the grant with this identifier. `None` if the scopes are malformed.
    pub(crate) fn grant(&self, id: &str) -> Option<Grant> {
        Some(Grant {
            id: id.into(),
            client_id: self.client_id.clone(),
            subject: self.subject.clone(),
            auth_time: UnixTime::from_secs(self.auth_time),
            scopes: Scopes::parse(&self.scopes).ok()?,
            audience: self.audience.clone(),
            key: None,
        })
    }
}

impl SignInRecord {
    /// Returns the record of a user whom the provider has just identified.
    pub(crate) fn new(
        provider: &str,
        identity: &portcullis_identity_provider::Identity,
        tokens: &ProviderTokens,
        access: &crate::access::Access,
        now: UnixTime,
    ) -> Self {
        let mut record = Self {
            provider: provider.into(),
            provider_subject: identity.provider_subject.clone(),
            provider_session: identity.provider_session.clone(),
            access_token: None,
            access_token_expires: None,
            refresh_token: None,
            checked: now.as_secs(),
            lease: None,
            scopes: access.scopes.as_str().into(),
            claims: access.claims.clone(),
            has_id_token: identity.has_id_token,
        };
        record.set_tokens(tokens);
        record
    }

    pub(crate) fn tokens(&self) -> ProviderTokens {
        let secret = |text: &Option<TokenText>| text.as_ref().map(|text| text.0.clone());
        ProviderTokens {
            access_token: secret(&self.access_token),
            access_token_expires: self.access_token_expires.map(UnixTime::from_secs),
            refresh_token: secret(&self.refresh_token),
        }
    }

    pub(crate) fn set_tokens(&mut self, tokens: &ProviderTokens) {
        self.access_token = tokens.access_token.clone().map(TokenText);
        self.access_token_expires = tokens.access_token_expires.map(UnixTime::as_secs);
        self.refresh_token = tokens.refresh_token.clone().map(TokenText);
    }
}

impl std::fmt::Debug for TokenText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for TokenText {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.secret().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for TokenText {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self(Secret::new(text)))
    }
}
