//! What the readers of a payload find.

use std::{borrow::Cow, slice};

use crate::{ClaimsError, UnixTime, numeric_date};

/// So many names are compared with each other faster than sorted.
const FEW: usize = 24;

/// The claims as far as they were read, and the names of those that have no field.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading<'p> {
    pub(super) iss: Found<'p>,
    pub(super) sub: Found<'p>,
    pub(super) aud: Found<'p>,
    pub(super) exp: Found<'p>,
    pub(super) nbf: Found<'p>,
    pub(super) iat: Found<'p>,
    pub(super) scope: Found<'p>,
    pub(super) scp: Found<'p>,
    pub(super) client_id: Found<'p>,
    pub(super) azp: Found<'p>,
    pub(super) jti: Found<'p>,
    pub(super) typ: Found<'p>,
    pub(super) cnf: Found<'p>,
    pub(super) others: Vec<Cow<'p, str>>,
}

impl<'p> Reading<'p> {
    /// The field of a claim that has one.
    pub(super) fn field(&mut self, claim: &str) -> Option<&mut Found<'p>> {
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
            "cnf" => &mut self.cnf,
            _ => return None,
        })
    }

    /// Whether every claim that is there is of the type that it has to be.
    pub(super) fn check_types(&self) -> Result<(), ClaimsError> {
        let texts = [
            (&self.iss, "iss"),
            (&self.sub, "sub"),
            (&self.client_id, "client_id"),
            (&self.azp, "azp"),
            (&self.jti, "jti"),
            (&self.typ, "typ"),
        ];
        for (found, claim) in texts {
            if !matches!(found, Found::Nothing | Found::Text(_)) {
                return Err(ClaimsError::WrongType { claim });
            }
        }
        for (found, claim) in [(&self.exp, "exp"), (&self.nbf, "nbf"), (&self.iat, "iat")] {
            if !matches!(found, Found::Nothing) && found.date().is_none() {
                return Err(ClaimsError::Date { claim });
            }
        }
        match self.aud {
            Found::Nothing | Found::Text(_) | Found::Entries { .. } => Ok(()),
            _ => Err(ClaimsError::WrongType { claim: "aud" }),
        }
    }
}

/// Whether a name occurs twice. Few names are compared as they stand; many are sorted, so that no payload makes this
/// take long.
pub(super) fn has_repetition(names: &mut [Cow<'_, str>]) -> bool {
    if names.len() > FEW {
        names.sort_unstable();
        return names.windows(2).any(|pair| pair[0] == pair[1]);
    }
    names.iter().enumerate().any(|(position, name)| names[..position].contains(name))
}

/// What stands in a claim.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Found<'p> {
    /// There is no such claim.
    #[default]
    Nothing,
    Text(Cow<'p, str>),
    /// An array: its strings, and whether it has other entries.
    Entries {
        texts: Vec<Cow<'p, str>>,
        others: bool,
    },
    Whole(u64),
    Fraction(f64),
    Other,
}

impl<'p> Found<'p> {
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn date(&self) -> Option<UnixTime> {
        match *self {
            Self::Whole(secs) => numeric_date::from_whole(secs),
            Self::Fraction(secs) => numeric_date::from_fraction(secs),
            _ => None,
        }
    }

    pub(super) fn texts(&self) -> &[Cow<'p, str>] {
        match self {
            Self::Text(text) => slice::from_ref(text),
            Self::Entries { texts, .. } => texts,
            _ => &[],
        }
    }
}
