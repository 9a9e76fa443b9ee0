use std::borrow::Cow;

use super::ClaimsError;
use crate::{Scopes, UnixTime};

mod general;
mod plain;
mod reading;

use reading::{Found, Reading};

/// The claims of an access token, read in one pass and borrowed from the payload.
///
/// It takes what [`AccessTokenClaims::parse`](crate::AccessTokenClaims::parse) takes and refuses what that refuses, but
/// for malformed scope names, which [`scopes`](Self::scopes) refuses. Evidence of nothing: whoever made the payload may
/// have written anything into it.
#[derive(Clone, Debug, PartialEq)]
pub struct UnverifiedClaims<'p> {
    /// Who made the token.
    pub iss: Option<Cow<'p, str>>,
    /// Whom it speaks for.
    pub sub: Option<Cow<'p, str>>,
    /// When it ends.
    pub exp: Option<UnixTime>,
    /// When it begins.
    pub nbf: Option<UnixTime>,
    /// When it was made.
    pub iat: Option<UnixTime>,
    /// The client that it was given to.
    pub client_id: Option<Cow<'p, str>>,
    /// The authorized party: the client, as OpenID providers name it.
    pub azp: Option<Cow<'p, str>>,
    /// The token's identifier.
    pub jti: Option<Cow<'p, str>>,
    /// What kind of token its maker says it is; not the header member of that name.
    pub typ: Option<Cow<'p, str>>,
    /// Whether the token is bound to its sender (RFC 7800), in whatever form: `null` is one.
    pub has_cnf: bool,
    payload: &'p [u8],
    aud: Found<'p>,
    scope: Found<'p>,
    scp: Found<'p>,
    others: Vec<Cow<'p, str>>,
}

impl<'p> UnverifiedClaims<'p> {
    /// Reads the decoded payload of a token.
    ///
    /// # Errors
    /// When the payload is not one JSON object with each claim once, or when a claim that has a field has the wrong
    /// type or is no date.
    pub fn parse(payload: &'p [u8]) -> Result<Self, ClaimsError> {
        let text = str::from_utf8(payload).map_err(|_| ClaimsError::NotAnObject)?;
        match plain::read(text) {
            Some(reading) => Self::of(payload, reading),
            None => Self::of(payload, general::read(text)?),
        }
    }

    fn of(payload: &'p [u8], read: Reading<'p>) -> Result<Self, ClaimsError> {
        Ok(Self {
            payload,
            iss: read.iss.text("iss")?,
            sub: read.sub.text("sub")?,
            aud: read.aud.audience()?,
            exp: read.exp.date("exp")?,
            nbf: read.nbf.date("nbf")?,
            iat: read.iat.date("iat")?,
            client_id: read.client_id.text("client_id")?,
            azp: read.azp.text("azp")?,
            jti: read.jti.text("jti")?,
            typ: read.typ.text("typ")?,
            has_cnf: !matches!(read.cnf, Found::Nothing),
            scope: read.scope,
            scp: read.scp,
            others: read.others,
        })
    }

    /// For whom it is meant: the strings of `aud`, none where there is no such claim. Entries that are no strings are
    /// left out, so that they never match anything.
    pub fn audience(&self) -> Option<impl Iterator<Item = &str>> {
        (!matches!(self.aud, Found::Nothing)).then(|| self.aud.texts().iter().map(AsRef::as_ref))
    }

    /// Whether there is a claim of this name that has no field here.
    pub fn has_other(&self, name: &str) -> bool {
        self.others.iter().any(|other| other == name)
    }

    /// The payload that they were read from. Texts without escapes borrow from it.
    pub fn payload(&self) -> &'p [u8] {
        self.payload
    }

    /// The text of `scope`, in its absence of `scp`, as it stands there; none where it is a list, or absent.
    pub fn scope_text(&self) -> Option<&str> {
        match self.granted().1 {
            Found::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What the token allows, read like [`AccessTokenClaims::scope`](crate::AccessTokenClaims::scope).
    ///
    /// # Errors
    /// When the claim is no string and no array of strings, or has a malformed scope name.
    pub fn scopes(&self) -> Result<Scopes, ClaimsError> {
        let (claim, found) = self.granted();
        let scopes = match found {
            Found::Nothing => return Ok(Scopes::empty()),
            Found::Text(text) => Scopes::parse(text),
            Found::Entries { texts, others: false } => Scopes::from_names(texts.iter().map(AsRef::as_ref)),
            _ => return Err(ClaimsError::WrongType { claim }),
        };
        scopes.map_err(|_| ClaimsError::Scope { claim })
    }

    /// The claim that says what is granted: `scope`, in its absence `scp`.
    fn granted(&self) -> (&'static str, &Found<'p>) {
        if matches!(self.scope, Found::Nothing) { ("scp", &self.scp) } else { ("scope", &self.scope) }
    }
}
