use std::{borrow::Cow, fmt};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor},
};

use crate::{Algorithm, JoseError};

/// A header has a handful of members; the bound keeps the search for repeated ones short.
const MAX_MEMBERS: usize = 64;

/// The protected header of a token (RFC 7515 section 4).
///
/// A value of this type has a supported `alg`, no member twice, no `crit`, no `b64` and no `enc`. Other
/// members are ignored, `jku`, `x5u`, `jwk` and `x5c` among them: keys never come from a token. It does not
/// judge `typ`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    alg: Algorithm,
    kid: Option<Box<str>>,
    typ: Option<Box<str>>,
}

impl Header {
    /// Reads a decoded header.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, JoseError> {
        let text = str::from_utf8(json).map_err(|_| JoseError::Header)?;
        let mut deserializer = serde_json::Deserializer::from_str(text);
        let mut members = Members::default();
        deserializer.deserialize_map(&mut members).map_err(|_| JoseError::Header)?;
        deserializer.end().map_err(|_| JoseError::Header)?;
        members.judge()
    }

    /// The signature algorithm.
    pub fn alg(&self) -> Algorithm {
        self.alg
    }

    /// The key identifier, any text.
    pub fn kid(&self) -> Option<&str> {
        self.kid.as_deref()
    }

    /// The media type that the token claims to be, as it was written.
    pub fn typ(&self) -> Option<&str> {
        self.typ.as_deref()
    }
}

/// What a header holds, before it is judged.
#[derive(Default)]
struct Members<'de> {
    alg: Option<Cow<'de, str>>,
    kid: Option<Box<str>>,
    typ: Option<Box<str>>,
    repeated: bool,
    extension: bool,
    encrypted: bool,
}

impl Members<'_> {
    fn judge(self) -> Result<Header, JoseError> {
        if self.repeated {
            return Err(JoseError::DuplicateMember);
        }
        if self.encrypted {
            return Err(JoseError::Encrypted);
        }
        if self.extension {
            return Err(JoseError::Extension);
        }
        let alg = self.alg.ok_or(JoseError::Header)?.parse()?;
        Ok(Header { alg, kid: self.kid, typ: self.typ })
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
        while let Some(name) = map.next_key_seed(Text)? {
            match &*name {
                "alg" => self.repeated |= self.alg.replace(map.next_value_seed(Text)?).is_some(),
                "kid" => self.repeated |= self.kid.replace(map.next_value_seed(Text)?.into()).is_some(),
                "typ" => self.repeated |= self.typ.replace(map.next_value_seed(Text)?.into()).is_some(),
                other => {
                    self.extension |= matches!(other, "crit" | "b64");
                    self.encrypted |= other == "enc";
                    map.next_value::<IgnoredAny>()?;
                    self.repeated |= others.contains(&name);
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

/// A JSON string, borrowed where it has no escapes.
struct Text;

impl<'de> DeserializeSeed<'de> for Text {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Text {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.into()))
    }
}
