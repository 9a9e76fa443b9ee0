//! [`ParsedClaims`]: the claims of a parsed payload.

use std::{borrow::Cow, collections::HashSet, slice};

use crate::{
    claims::error::ClaimsError,
    time::{UnixTime, numeric_date},
};

/// The claims that have a field, and the names of all other claims.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ParsedClaims<'p> {
    pub(super) iss: ClaimValue<'p>,
    pub(super) sub: ClaimValue<'p>,
    pub(super) aud: ClaimValue<'p>,
    pub(super) exp: ClaimValue<'p>,
    pub(super) nbf: ClaimValue<'p>,
    pub(super) iat: ClaimValue<'p>,
    pub(super) scope: ClaimValue<'p>,
    pub(super) scp: ClaimValue<'p>,
    pub(super) client_id: ClaimValue<'p>,
    pub(super) azp: ClaimValue<'p>,
    pub(super) jti: ClaimValue<'p>,
    pub(super) typ: ClaimValue<'p>,
    pub(super) token_use: ClaimValue<'p>,
    pub(super) cnf: ClaimValue<'p>,
    /// The names of the claims without a field, to find repeated ones.
    pub(super) others: HashSet<Cow<'p, str>>,
}

impl<'p> ParsedClaims<'p> {
    /// Returns the field for a claim, or `None` if it has no field.
    pub(super) fn field_mut(&mut self, claim: &str) -> Option<&mut ClaimValue<'p>> {
        Some(match claim {
            "iss" => &mut self.iss,
            "sub" => &mut self.sub,
            "aud" => &mut self.aud,
            "exp" => &mut self.exp,
            "nbf" => &mut self.nbf,
            "iat" => &mut self.iat,
            "scope" => &mut self.scope,
            "scp" => &mut self.scp,
            "client_id" => &mut self.client_id,
            "azp" => &mut self.azp,
            "jti" => &mut self.jti,
            "typ" => &mut self.typ,
            "token_use" => &mut self.token_use,
            "cnf" => &mut self.cnf,
            _ => return None,
        })
    }

    /// Checks that each claim is missing or has the right type. Fails at the first claim of another
    /// type.
    pub(super) fn check_types(&self) -> Result<(), ClaimsError> {
        // The values of `scope`, `scp` and `cnf` have several types, which the caller checks.
        let Self {
            iss,
            sub,
            aud,
            exp,
            nbf,
            iat,
            scope: _,
            scp: _,
            client_id,
            azp,
            jti,
            typ,
            token_use,
            cnf: _,
            others: _,
        } = self;
        let strings = [
            (iss, "iss"),
            (sub, "sub"),
            (client_id, "client_id"),
            (azp, "azp"),
            (jti, "jti"),
            (typ, "typ"),
            (token_use, "token_use"),
        ];
        for (value, claim) in strings {
            if !matches!(value, ClaimValue::Missing | ClaimValue::String(_)) {
                return Err(ClaimsError::WrongType { claim });
            }
        }
        for (value, claim) in [(exp, "exp"), (nbf, "nbf"), (iat, "iat")] {
            if !value.is_missing() && value.as_date().is_none() {
                return Err(ClaimsError::Date { claim });
            }
        }
        match aud {
            ClaimValue::Missing | ClaimValue::String(_) | ClaimValue::Array { .. } => Ok(()),
            _ => Err(ClaimsError::WrongType { claim: "aud" }),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum ClaimValue<'p> {
    /// The payload does not have the claim.
    #[default]
    Missing,
    String(Cow<'p, str>),
    /// An array: its strings, and whether it has entries of other types.
    Array {
        strings: Vec<Cow<'p, str>>,
        has_others: bool,
    },
    Integer(u64),
    Float(f64),
    /// A value of another type, or a negative integer.
    Other,
}

impl<'p> ClaimValue<'p> {
    /// Returns whether the payload does not have the claim.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, Self::Missing)
    }

    /// Returns the string; `None` for any other value.
    pub(super) fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(string) => Some(string),
            _ => None,
        }
    }

    /// Returns the point in time that a number of seconds names; `None` for any other value, and
    /// for a number that names none.
    pub(super) fn as_date(&self) -> Option<UnixTime> {
        match *self {
            Self::Integer(secs) => numeric_date::from_integer(secs),
            Self::Float(secs) => numeric_date::from_float(secs),
            _ => None,
        }
    }

    /// Returns the string or the strings of an array.
    pub(super) fn strings(&self) -> &[Cow<'p, str>] {
        match self {
            Self::String(string) => slice::from_ref(string),
            Self::Array { strings, .. } => strings,
            _ => &[],
        }
    }
}
