//! [`UnverifiedClaims`]: claims borrowed from a payload whose signature may not be verified.

mod json_parser;
mod parsed;

use crate::{claims::error::ClaimsError, identifier::Scopes, time::UnixTime};
use parsed::{ClaimValue, ParsedClaims};

/// The claims of a JWT access token, parsed in one pass and borrowed from the payload.
///
/// The claims prove nothing before the signature is verified: anyone can write a payload.
///
/// [`parse`](Self::parse) accepts the same payloads as
/// [`AccessTokenClaims::parse`](crate::AccessTokenClaims::parse), except that malformed scopes are
/// reported by [`scopes`](Self::scopes).
#[derive(Clone, Debug, PartialEq)]
pub struct UnverifiedClaims<'p> {
    parsed: ParsedClaims<'p>,
}

impl<'p> UnverifiedClaims<'p> {
    /// Parses the decoded payload of a token.
    ///
    /// # Errors
    /// Fails if the payload is not a JSON object without duplicate claims, or a claim that has a
    /// method here has the wrong type or is not a valid date.
    pub fn parse(payload: &'p [u8]) -> Result<Self, ClaimsError> {
        let json = str::from_utf8(payload).map_err(|_| ClaimsError::NotAnObject)?;
        let parsed = json_parser::parse(json)?;
        parsed.check_types()?;
        Ok(Self { parsed })
    }

    /// Returns the issuer.
    pub fn iss(&self) -> Option<&str> {
        self.parsed.iss.as_str()
    }

    /// Returns the subject.
    pub fn sub(&self) -> Option<&str> {
        self.parsed.sub.as_str()
    }

    /// Returns the expiration time.
    pub fn exp(&self) -> Option<UnixTime> {
        self.parsed.exp.as_date()
    }

    /// Returns the time before which the token is not valid.
    pub fn nbf(&self) -> Option<UnixTime> {
        self.parsed.nbf.as_date()
    }

    /// Returns the time of issue.
    pub fn iat(&self) -> Option<UnixTime> {
        self.parsed.iat.as_date()
    }

    /// Returns the client to which the token was issued.
    pub fn client_id(&self) -> Option<&str> {
        self.parsed.client_id.as_str()
    }

    /// Returns the authorized party: the client in tokens of OpenID providers.
    pub fn azp(&self) -> Option<&str> {
        self.parsed.azp.as_str()
    }

    /// Returns the token identifier.
    pub fn jti(&self) -> Option<&str> {
        self.parsed.jti.as_str()
    }

    /// Returns the token type as a claim. This is not the `typ` of the JWS header.
    pub fn typ(&self) -> Option<&str> {
        self.parsed.typ.as_str()
    }

    /// Returns `token_use`, by which Amazon Cognito distinguishes access tokens from ID tokens.
    pub fn token_use(&self) -> Option<&str> {
        self.parsed.token_use.as_str()
    }

    /// Returns whether the payload has a confirmation claim (RFC 7800) of any type, including
    /// `null`.
    pub fn has_cnf(&self) -> bool {
        !self.parsed.cnf.is_missing()
    }

    /// Returns the strings of `aud`, or `None` if the claim is missing. Array entries that are not
    /// strings are dropped, so they never match a resource.
    pub fn audience(&self) -> Option<impl Iterator<Item = &str>> {
        (!self.parsed.aud.is_missing()).then(|| self.parsed.aud.strings().iter().map(AsRef::as_ref))
    }

    /// Returns whether the payload has a claim with this name that has no method here.
    pub fn contains_unknown_claim(&self, name: &str) -> bool {
        self.parsed.others.contains(name)
    }

    /// Returns the granted scopes, parsed like
    /// [`AccessTokenClaims::scope`](crate::AccessTokenClaims::scope).
    ///
    /// # Errors
    /// Fails if the claim is neither a string nor an array of strings, or has a malformed scope
    /// name.
    pub fn scopes(&self) -> Result<Scopes, ClaimsError> {
        let (claim, value) = self.scope_claim();
        let scopes = match value {
            ClaimValue::Missing => return Ok(Scopes::empty()),
            ClaimValue::String(names) => Scopes::parse(names),
            ClaimValue::Array {
                strings,
                has_others: false,
            } => Scopes::from_names(strings.iter().map(AsRef::as_ref)),
            _ => return Err(ClaimsError::WrongType { claim }),
        };
        scopes.map_err(|_| ClaimsError::Scope { claim })
    }

    /// Returns whether the claim with the scopes has any text, well-formed or not.
    pub fn has_scope(&self) -> bool {
        match self.scope_claim().1 {
            ClaimValue::String(names) => !names.trim().is_empty(),
            ClaimValue::Array { strings, .. } => strings.iter().any(|name| !name.trim().is_empty()),
            _ => false,
        }
    }

    /// Returns the name and value of the claim with the scopes: `scope` or, if it is missing,
    /// `scp`.
    fn scope_claim(&self) -> (&'static str, &ClaimValue<'p>) {
        if self.parsed.scope.is_missing() {
            ("scp", &self.parsed.scp)
        } else {
            ("scope", &self.parsed.scope)
        }
    }
}
