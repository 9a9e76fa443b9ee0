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
    payload: &'p [u8],
    read: Reading<'p>,
}

impl<'p> UnverifiedClaims<'p> {
    /// Reads the decoded payload of a token.
    ///
    /// # Errors
    /// When the payload is not one JSON object with each claim once, or when a claim that is told here has the wrong
    /// type or is no date.
    pub fn parse(payload: &'p [u8]) -> Result<Self, ClaimsError> {
        let text = str::from_utf8(payload).map_err(|_| ClaimsError::NotAnObject)?;
        // Read in its place: so many fields are not moved about for nothing.
        let mut claims = Self { payload, read: Reading::default() };
        if plain::read_into(&mut claims.read, text).is_none() {
            claims.read = general::read(text)?;
        }
        claims.read.check_types()?;
        Ok(claims)
    }

    /// Who made the token.
    pub fn iss(&self) -> Option<&str> {
        self.read.iss.text()
    }

    /// Whom it speaks for.
    pub fn sub(&self) -> Option<&str> {
        self.read.sub.text()
    }

    /// When it ends.
    pub fn exp(&self) -> Option<UnixTime> {
        self.read.exp.date()
    }

    /// When it begins.
    pub fn nbf(&self) -> Option<UnixTime> {
        self.read.nbf.date()
    }

    /// When it was made.
    pub fn iat(&self) -> Option<UnixTime> {
        self.read.iat.date()
    }

    /// The client that it was given to.
    pub fn client_id(&self) -> Option<&str> {
        self.read.client_id.text()
    }

    /// The authorized party: the client, as OpenID providers name it.
    pub fn azp(&self) -> Option<&str> {
        self.read.azp.text()
    }

    /// The token's identifier.
    pub fn jti(&self) -> Option<&str> {
        self.read.jti.text()
    }

    /// What kind of token its maker says it is; not the header member of that name.
    pub fn typ(&self) -> Option<&str> {
        self.read.typ.text()
    }

    /// Whether the token is bound to its sender (RFC 7800), in whatever form: `null` is one.
    pub fn has_cnf(&self) -> bool {
        !matches!(self.read.cnf, Found::Nothing)
    }

    /// For whom it is meant: the strings of `aud`, none where there is no such claim. Entries that are no strings are
    /// left out, so that they never match anything.
    pub fn audience(&self) -> Option<impl Iterator<Item = &str>> {
        (!matches!(self.read.aud, Found::Nothing)).then(|| self.read.aud.texts().iter().map(AsRef::as_ref))
    }

    /// Whether there is a claim of this name that is not told here.
    pub fn has_other(&self, name: &str) -> bool {
        self.read.others.iter().any(|other| other == name)
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
        if matches!(self.read.scope, Found::Nothing) { ("scp", &self.read.scp) } else { ("scope", &self.read.scope) }
    }
}
