//! [`Statement`]: what a token's claims or an introspection response state about the token.

use portcullis_metadata::{
    ClaimsError, IntrospectionResponse, ResourceUri, UnixTime, UnverifiedClaims,
};
use serde_json::Value;

use crate::settings::{AudienceName, IssuerSettings};

/// Claims that only other token types have: ID tokens (OpenID Connect Core 3.3.2.11) and security
/// events (RFC 8417).
const FOREIGN_CLAIMS: [&str; 4] = ["at_hash", "c_hash", "s_hash", "events"];
/// The client in access tokens of Microsoft Entra ID, version 1.0.
const APPLICATION_ID: &str = "appid";

/// The part of a token's claims or of an introspection response that is validated. It is not
/// validated yet.
pub(crate) struct Statement<'a> {
    pub(crate) iss: Option<&'a str>,
    /// The claim, not the header member.
    pub(crate) typ: Option<&'a str>,
    /// The claim `token_use`.
    pub(crate) token_use: Option<&'a str>,
    /// Whether there is a claim that only other token types have.
    pub(crate) has_foreign_claim: bool,
    /// Whether there is `cnf`, which binds the token to a key of its sender (RFC 7800).
    pub(crate) has_cnf: bool,
    /// The best match among the entries of the audience, or `None` if there is no audience.
    pub(crate) audience: Option<AudienceMatch>,
    /// Whether there is a claim that an ID token with the same audience lacks: scopes, `azp` or
    /// `appid`.
    pub(crate) has_access_claim: bool,
    pub(crate) exp: Option<UnixTime>,
    pub(crate) nbf: Option<UnixTime>,
    pub(crate) iat: Option<UnixTime>,
}

/// What an entry of an audience names. A later variant is a better match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AudienceMatch {
    /// Something else.
    Other,
    /// The resource, by the issuer's own name for it.
    Application,
    /// The resource, by one of its URLs.
    Resource,
}

impl<'a> Statement<'a> {
    /// Returns what the claims of a token state.
    pub(crate) fn of_token(
        claims: &'a UnverifiedClaims<'_>,
        settings: &IssuerSettings,
        resource: &ResourceUri,
    ) -> Self {
        let audience = claims.audience();
        Self {
            iss: claims.iss(),
            typ: claims.typ(),
            token_use: claims.token_use(),
            has_foreign_claim: FOREIGN_CLAIMS
                .iter()
                .any(|name| claims.contains_unknown_claim(name)),
            has_cnf: claims.has_cnf(),
            audience: audience.map(|entries| match_audience(entries, settings, resource)),
            has_access_claim: claims.azp().is_some_and(|azp| !azp.is_empty())
                || claims.contains_unknown_claim(APPLICATION_ID)
                || claims.has_scope(),
            exp: claims.exp(),
            nbf: claims.nbf(),
            iat: claims.iat(),
        }
    }

    /// Returns what an introspection response states. Fails if `typ` or `token_use` is not a
    /// string.
    pub(crate) fn of_response(
        response: &'a IntrospectionResponse,
        settings: &IssuerSettings,
        resource: &ResourceUri,
    ) -> Result<Self, ClaimsError> {
        let audience = response.aud.as_ref();
        Ok(Self {
            iss: response.iss.as_deref(),
            typ: string_member(response, "typ")?,
            token_use: string_member(response, "token_use")?,
            has_foreign_claim: FOREIGN_CLAIMS
                .iter()
                .any(|name| response.extra.contains_key(*name)),
            has_cnf: response.cnf.is_some(),
            audience: audience.map(|entries| match_audience(entries.iter(), settings, resource)),
            has_access_claim: response.azp.as_ref().is_some_and(|azp| !azp.is_empty())
                || response.extra.contains_key(APPLICATION_ID)
                || response
                    .scope
                    .as_ref()
                    .is_some_and(|scopes| !scopes.is_empty()),
            exp: response.exp,
            nbf: response.nbf,
            iat: response.iat,
        })
    }
}

/// Returns a member that is a string, if it is there.
fn string_member<'a>(
    response: &'a IntrospectionResponse,
    claim: &'static str,
) -> Result<Option<&'a str>, ClaimsError> {
    match response.extra.get(claim) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ClaimsError::WrongType { claim }),
    }
}

/// Returns the best match among the entries of an audience.
fn match_audience<'e>(
    entries: impl Iterator<Item = &'e str>,
    settings: &IssuerSettings,
    resource: &ResourceUri,
) -> AudienceMatch {
    let names = || {
        settings
            .audiences
            .iter()
            .filter(|further| further.resource == *resource)
            .map(|further| &further.name)
    };
    let entries = entries.map(|entry| {
        if resource.matches_audience(entry) {
            return AudienceMatch::Resource;
        }
        let matches = names()
            .filter(|name| name.matches(entry))
            .map(|name| match name {
                AudienceName::Url(_) => AudienceMatch::Resource,
                AudienceName::Application(_) => AudienceMatch::Application,
            });
        matches.max().unwrap_or(AudienceMatch::Other)
    });
    entries.max().unwrap_or(AudienceMatch::Other)
}
