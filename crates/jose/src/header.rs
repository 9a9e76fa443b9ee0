use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};

use crate::{algorithm::Algorithm, error::JoseError};

/// The maximum number of members. It bounds the time of the search for duplicates.
const MAX_MEMBERS: usize = 64;

/// The protected header of a token (RFC 7515 section 4).
///
/// A header has a supported `alg` and no duplicate member, `crit`, `b64` or `enc`. All other
/// members are ignored, including `jku`, `x5u`, `jwk` and `x5c`, because keys never come from a
/// token. The value of `typ` is not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    alg: Algorithm,
    kid: Option<Box<str>>,
    typ: Option<Box<str>>,
}

impl Header {
    /// Parses a decoded header. Fails if it is not a JSON object of at most 64 members, has a
    /// duplicate member, or is not of a token that this crate can verify.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, JoseError> {
        let json = str::from_utf8(json).map_err(|_| JoseError::MalformedHeader)?;
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let mut members = Members::default();
        deserializer
            .deserialize_map(&mut members)
            .map_err(|_| JoseError::MalformedHeader)?;
        deserializer.end().map_err(|_| JoseError::MalformedHeader)?;
        members.validate()
    }

    /// Returns the signature algorithm.
    pub fn alg(&self) -> Algorithm {
        self.alg
    }

    /// Returns the key identifier, if any. It can be any string.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// Returns the token's media type as written, if any.
    pub fn typ(&self) -> Option<&str> {
        self.typ.as_deref()
    }
}

/// The members of a header that is not validated yet.
#[derive(Default)]
struct Members<'de> {
    alg: Option<Cow<'de, str>>,
    kid: Option<Box<str>>,
    typ: Option<Box<str>>,
    has_duplicate: bool,
    has_extension: bool,
    is_encrypted: bool,
}

impl Members<'_> {
    fn validate(self) -> Result<Header, JoseError> {
        if self.has_duplicate {
            return Err(JoseError::DuplicateMember);
        }
        if self.is_encrypted {
            return Err(JoseError::Encrypted);
        }
        if self.has_extension {
            return Err(JoseError::UnsupportedExtension);
        }
        let alg = self.alg.ok_or(JoseError::MalformedHeader)?.parse()?;
        Ok(Header {
            alg,
            kid: self.kid,
            typ: self.typ,
        })
    }
}

impl<'de> Visitor<'de> for &mut Members<'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut count = 0;
        let mut others = Vec::new();
        while let Some(name) = map.next_key_seed(StringSeed)? {
            match &*name {
                "alg" => {
                    self.has_duplicate |=
                        self.alg.replace(map.next_value_seed(StringSeed)?).is_some()
                }
                "kid" => {
                    self.has_duplicate |= self
                        .kid
                        .replace(map.next_value_seed(StringSeed)?.into())
                        .is_some()
                }
                "typ" => {
                    self.has_duplicate |= self
                        .typ
                        .replace(map.next_value_seed(StringSeed)?.into())
                        .is_some()
                }
                other => {
                    self.has_extension |= matches!(other, "crit" | "b64");
                    self.is_encrypted |= other == "enc";
                    map.next_value::<IgnoredAny>()?;
                    self.has_duplicate |= others.contains(&name);
                    others.push(name);
                }
            }
            count += 1;
            if count > MAX_MEMBERS {
                return Err(A::Error::custom("too many members"));
            }
        }
        Ok(())
    }
}

/// Deserializes a JSON string. The result is borrowed if the string has no escapes.
struct StringSeed;

impl<'de> DeserializeSeed<'de> for StringSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for StringSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, string: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(string))
    }

    fn visit_str<E>(self, string: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(string.into()))
    }
}
