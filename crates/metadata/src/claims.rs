use serde::Deserialize;
use serde_json::{Map, Value};

use crate::{Audience, DocumentError, Scopes, UnixTime, json::Members};

mod unverified;

pub use unverified::UnverifiedClaims;

/// The claims of an access token (RFC 9068 section 2.2, RFC 7519 section 4.1), with their types checked
/// and nothing else: no date is judged, no issuer and no audience compared.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessTokenClaims {
    /// Who made the token.
    pub iss: Option<String>,
    /// Whom it speaks for.
    pub sub: Option<String>,
    /// For whom it is meant.
    pub aud: Option<Audience>,
    /// When it ends.
    pub exp: Option<UnixTime>,
    /// When it begins.
    pub nbf: Option<UnixTime>,
    /// When it was made.
    pub iat: Option<UnixTime>,
    /// What it allows: `scope`, or `scp` where there is no `scope`; each a string of names separated by
    /// spaces, or an array of names. Empty when neither is there.
    pub scope: Scopes,
    /// The client that it was given to.
    pub client_id: Option<String>,
    /// The authorized party: the client, as OpenID providers name it.
    pub azp: Option<String>,
    /// The token's identifier.
    pub jti: Option<String>,
    /// What kind of token its maker says it is; not the header member of that name.
    pub typ: Option<String>,
    /// How the token is bound to its sender (RFC 7800), in whatever form.
    pub cnf: Option<Value>,
    /// All other claims.
    pub extra: Map<String, Value>,
}

/// Why a token's payload is no set of access token claims. It never repeats what the token says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimsError {
    /// The payload is not one JSON object with each claim once.
    #[error("the payload is not a JSON object with each claim once")]
    NotAnObject,
    /// A claim has the wrong JSON type; `null` is one for each claim.
    #[error("the claim `{claim}` has the wrong type")]
    WrongType {
        /// The claim at fault.
        claim: &'static str,
    },
    /// A date is negative, not finite or later than the year 9999.
    #[error("the claim `{claim}` is not a date")]
    Date {
        /// The claim at fault.
        claim: &'static str,
    },
    /// A scope name has a character that RFC 6749 section 3.3 does not allow.
    #[error("the claim `{claim}` has a malformed scope name")]
    Scope {
        /// The claim at fault.
        claim: &'static str,
    },
}

impl ClaimsError {
    /// A stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAnObject => "claims.not_an_object",
            Self::WrongType { .. } => "claims.type",
            Self::Date { .. } => "claims.date",
            Self::Scope { .. } => "claims.scope",
        }
    }
}

/// The claims with a field that is named as they are, but for `cnf`.
const FIELDS: [&str; 10] = ["iss", "sub", "aud", "exp", "nbf", "iat", "client_id", "azp", "jti", "typ"];

impl AccessTokenClaims {
    /// Reads the decoded payload of a token.
    ///
    /// # Errors
    /// When the payload is not one JSON object with each claim once, or when a claim that has a field has
    /// the wrong type, is no date, or has a malformed scope name.
    pub fn parse(payload: &[u8]) -> Result<Self, ClaimsError> {
        let claims = UnverifiedClaims::parse(payload)?;
        let scope = claims.scopes()?;
        let mut extra: Map<String, Value> = serde_json::from_slice(payload).map_err(|_| ClaimsError::NotAnObject)?;
        extra.retain(|name, _| !FIELDS.contains(&name.as_str()));
        // The one that was not read is a claim like any other.
        if extra.remove("scope").is_none() {
            extra.remove("scp");
        }
        let owned = |text: Option<&str>| text.map(str::to_owned);
        Ok(Self {
            aud: claims.audience().map(Audience::new),
            iss: owned(claims.iss()),
            sub: owned(claims.sub()),
            exp: claims.exp(),
            nbf: claims.nbf(),
            iat: claims.iat(),
            scope,
            client_id: owned(claims.client_id()),
            azp: owned(claims.azp()),
            jti: owned(claims.jti()),
            typ: owned(claims.typ()),
            cnf: extra.remove("cnf"),
            extra,
        })
    }
}

/// Reads nothing but `iss` of a payload whose signature nobody has checked yet, to find out whose keys
/// to check it with. Evidence of nothing.
///
/// # Errors
/// When the payload is no JSON object, or `iss` is there twice or is no string.
pub fn unverified_issuer(payload: &[u8]) -> Result<Option<String>, ClaimsError> {
    #[derive(Deserialize)]
    struct Peek {
        iss: Option<String>,
    }

    // Serde would read an array as a struct, too.
    if payload.trim_ascii_start().first() != Some(&b'{') {
        return Err(ClaimsError::NotAnObject);
    }
    let peek: Peek = serde_json::from_slice(payload).map_err(|error| {
        if error.is_data() { ClaimsError::WrongType { claim: "iss" } } else { ClaimsError::NotAnObject }
    })?;
    Ok(peek.iss)
}

pub(crate) fn audience(members: &mut Members) -> Result<Option<Audience>, DocumentError> {
    let expected = DocumentError::WrongType { member: "aud", expected: "a string or an array" };
    members.value("aud").map(|value| Audience::from_value(&value).ok_or(expected)).transpose()
}

/// The scopes that a document names; none when it names no scopes, which is not the same as an empty list. `null` has the
/// wrong type: it could mean either.
pub(crate) fn scope(members: &mut Members) -> Result<Option<Scopes>, DocumentError> {
    let Some(member) = ["scope", "scp"].into_iter().find(|member| members.contains(member)) else { return Ok(None) };
    let wrong_type = DocumentError::WrongType { member, expected: "a string or an array of strings" };
    let scopes = match members.value(member) {
        Some(Value::String(text)) => Scopes::parse(&text),
        Some(Value::Array(entries)) => {
            let names: Option<Vec<&str>> = entries.iter().map(Value::as_str).collect();
            Scopes::from_names(names.ok_or(wrong_type)?)
        }
        None | Some(_) => return Err(wrong_type),
    };
    scopes.map(Some).map_err(|_| DocumentError::Malformed { member })
}

#[cfg(test)]
mod tests;
