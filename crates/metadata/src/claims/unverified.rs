use std::{borrow::Cow, fmt, mem, slice};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};

use super::{ClaimsError, plain::Plain};
use crate::{Scopes, UnixTime, numeric_date};

/// So many names are compared with each other faster than sorted.
const FEW: usize = 24;

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
        Plain::read(text).map_or_else(|| Reading::of(text), Ok)?.judge(payload)
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

/// The claims as far as they were read, and what is wrong with them.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Reading<'p> {
    pub(super) known: [Found<'p>; Claim::COUNT],
    pub(super) others: Vec<Cow<'p, str>>,
}

impl<'p> Reading<'p> {
    /// The general reader: of any JSON text.
    pub(super) fn of(text: &'p str) -> Result<Self, ClaimsError> {
        let mut reading = Self::default();
        let mut deserializer = serde_json::Deserializer::from_str(text);
        deserializer.deserialize_map(&mut reading).map_err(|_| ClaimsError::NotAnObject)?;
        deserializer.end().map_err(|_| ClaimsError::NotAnObject)?;
        Ok(reading)
    }

    fn judge(mut self, payload: &'p [u8]) -> Result<UnverifiedClaims<'p>, ClaimsError> {
        Ok(UnverifiedClaims {
            payload,
            iss: self.text(Claim::Iss, "iss")?,
            sub: self.text(Claim::Sub, "sub")?,
            aud: self.audience()?,
            exp: self.date(Claim::Exp, "exp")?,
            nbf: self.date(Claim::Nbf, "nbf")?,
            iat: self.date(Claim::Iat, "iat")?,
            client_id: self.text(Claim::ClientId, "client_id")?,
            azp: self.text(Claim::Azp, "azp")?,
            jti: self.text(Claim::Jti, "jti")?,
            typ: self.text(Claim::Typ, "typ")?,
            has_cnf: !matches!(self.take(Claim::Cnf), Found::Nothing),
            scope: self.take(Claim::Scope),
            scp: self.take(Claim::Scp),
            others: self.others,
        })
    }

    fn take(&mut self, claim: Claim) -> Found<'p> {
        mem::take(&mut self.known[claim as usize])
    }

    fn text(&mut self, claim: Claim, name: &'static str) -> Result<Option<Cow<'p, str>>, ClaimsError> {
        match self.take(claim) {
            Found::Nothing => Ok(None),
            Found::Text(text) => Ok(Some(text)),
            _ => Err(ClaimsError::WrongType { claim: name }),
        }
    }

    fn date(&mut self, claim: Claim, name: &'static str) -> Result<Option<UnixTime>, ClaimsError> {
        let date = match self.take(claim) {
            Found::Nothing => return Ok(None),
            Found::Whole(secs) => numeric_date::from_whole(secs),
            Found::Fraction(secs) => numeric_date::from_fraction(secs),
            _ => None,
        };
        date.map(Some).ok_or(ClaimsError::Date { claim: name })
    }

    fn audience(&mut self) -> Result<Found<'p>, ClaimsError> {
        match self.take(Claim::Aud) {
            found @ (Found::Nothing | Found::Text(_) | Found::Entries { .. }) => Ok(found),
            _ => Err(ClaimsError::WrongType { claim: "aud" }),
        }
    }
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

impl<'p> Visitor<'p> for &mut Reading<'p> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with each member once")
    }

    fn visit_map<A: MapAccess<'p>>(self, mut map: A) -> Result<(), A::Error> {
        let mut name = Found::Nothing;
        while map.next_key_seed(Value { into: Some(&mut name) })?.is_some() {
            let Found::Text(name) = &mut name else { return Err(A::Error::custom("a name is a string")) };
            if let Some(claim) = Claim::of(name) {
                let found = &mut self.known[claim as usize];
                if !matches!(found, Found::Nothing) {
                    return Err(A::Error::custom("a claim twice"));
                }
                map.next_value_seed(Value { into: Some(found) })?;
            } else {
                map.next_value_seed(Value { into: None })?;
                self.others.push(mem::take(name));
            }
        }
        if has_repetition(&mut self.others) { Err(A::Error::custom("a claim twice")) } else { Ok(()) }
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
    fn texts(&self) -> &[Cow<'p, str>] {
        match self {
            Self::Text(text) => slice::from_ref(text),
            Self::Entries { texts, .. } => texts,
            _ => &[],
        }
    }
}

/// Reads any JSON value as strictly as one that is kept would be: its escapes, its numbers and its depth.
pub(super) struct Value<'f, 'p> {
    /// Where what was found goes, if anybody wants to know.
    pub(super) into: Option<&'f mut Found<'p>>,
}

impl<'p> Value<'_, 'p> {
    fn found<E>(self, found: Found<'p>) -> Result<(), E> {
        if let Some(into) = self.into {
            *into = found;
        }
        Ok(())
    }
}

impl<'p> DeserializeSeed<'p> for Value<'_, 'p> {
    type Value = ();

    fn deserialize<D: Deserializer<'p>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'p> Visitor<'p> for Value<'_, 'p> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'p str) -> Result<(), E> {
        self.found(Found::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.found(Found::Text(Cow::Owned(text.into())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.found(Found::Whole(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.found(u64::try_from(number).map_or(Found::Other, Found::Whole))
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.found(Found::Fraction(number))
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.found(Found::Other)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.found(Found::Other)
    }

    fn visit_seq<A: SeqAccess<'p>>(self, mut entries: A) -> Result<(), A::Error> {
        let Some(into) = self.into else {
            while entries.next_element_seed(Value { into: None })?.is_some() {}
            return Ok(());
        };
        let (mut texts, mut others, mut entry) = (Vec::new(), false, Found::Nothing);
        while entries.next_element_seed(Value { into: Some(&mut entry) })?.is_some() {
            match mem::take(&mut entry) {
                Found::Text(text) => texts.push(text),
                _ => others = true,
            }
        }
        *into = Found::Entries { texts, others };
        Ok(())
    }

    fn visit_map<A: MapAccess<'p>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_key_seed(Value { into: None })?.is_some() {
            members.next_value_seed(Value { into: None })?;
        }
        self.found(Found::Other)
    }
}
