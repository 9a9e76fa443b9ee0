//! What the readers of a payload find.

use std::{borrow::Cow, slice};

use crate::{ClaimsError, UnixTime, numeric_date};

/// So many names are compared with each other faster than sorted.
const FEW: usize = 24;

/// The claims as far as they were read, and what is wrong with them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Reading<'p> {
    /// What each [`Claim`] says, in their order.
    pub(super) known: [Found<'p>; Claim::COUNT],
    pub(super) others: Vec<Cow<'p, str>>,
}

/// A claim that has a field.
#[derive(Clone, Copy)]
pub(super) enum Claim {
    Iss,
    Sub,
    Aud,
    Exp,
    Nbf,
    Iat,
    Scope,
    Scp,
    ClientId,
    Azp,
    Jti,
    Typ,
    Cnf,
}

impl Claim {
    const COUNT: usize = Self::Cnf as usize + 1;

    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "iss" => Self::Iss,
            "sub" => Self::Sub,
            "aud" => Self::Aud,
            "exp" => Self::Exp,
            "nbf" => Self::Nbf,
            "iat" => Self::Iat,
            "scope" => Self::Scope,
            "scp" => Self::Scp,
            "client_id" => Self::ClientId,
            "azp" => Self::Azp,
            "jti" => Self::Jti,
            "typ" => Self::Typ,
            "cnf" => Self::Cnf,
            _ => return None,
        })
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
    pub(super) fn text(self, claim: &'static str) -> Result<Option<Cow<'p, str>>, ClaimsError> {
        match self {
            Self::Nothing => Ok(None),
            Self::Text(text) => Ok(Some(text)),
            _ => Err(ClaimsError::WrongType { claim }),
        }
    }

    pub(super) fn date(self, claim: &'static str) -> Result<Option<UnixTime>, ClaimsError> {
        let date = match self {
            Self::Nothing => return Ok(None),
            Self::Whole(secs) => numeric_date::from_whole(secs),
            Self::Fraction(secs) => numeric_date::from_fraction(secs),
            _ => None,
        };
        date.map(Some).ok_or(ClaimsError::Date { claim })
    }

    pub(super) fn audience(self) -> Result<Self, ClaimsError> {
        match self {
            found @ (Self::Nothing | Self::Text(_) | Self::Entries { .. }) => Ok(found),
            _ => Err(ClaimsError::WrongType { claim: "aud" }),
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
