//! Parses a payload into [`ParsedClaims`].

use std::{borrow::Cow, fmt, mem};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};

use super::parsed::{ClaimValue, ParsedClaims};
use crate::claims::error::ClaimsError;

/// Parses the claims. Fails if the payload is not a JSON object without duplicate members.
pub(super) fn parse(json: &str) -> Result<ParsedClaims<'_>, ClaimsError> {
    let mut claims = ParsedClaims::default();
    let mut deserializer = serde_json::Deserializer::from_str(json);
    deserializer
        .deserialize_map(&mut claims)
        .map_err(|_| ClaimsError::NotAnObject)?;
    deserializer.end().map_err(|_| ClaimsError::NotAnObject)?;
    Ok(claims)
}

impl<'p> Visitor<'p> for &mut ParsedClaims<'p> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object without duplicate members")
    }

    fn visit_map<A: MapAccess<'p>>(self, mut map: A) -> Result<(), A::Error> {
        let mut name = ClaimValue::Missing;
        while map
            .next_key_seed(ValueSeed {
                target: Some(&mut name),
            })?
            .is_some()
        {
            let ClaimValue::String(name) = &mut name else {
                return Err(A::Error::custom("a name is not a string"));
            };
            if let Some(field) = self.field_mut(name) {
                if !field.is_missing() {
                    return Err(A::Error::custom("duplicate claim"));
                }
                map.next_value_seed(ValueSeed {
                    target: Some(field),
                })?;
            } else {
                map.next_value_seed(ValueSeed { target: None })?;
                if !self.others.insert(mem::take(name)) {
                    return Err(A::Error::custom("duplicate claim"));
                }
            }
        }
        Ok(())
    }
}

/// Deserializes a JSON value. A value that is not kept is checked as strictly as one that is kept:
/// its escapes, numbers and depth.
struct ValueSeed<'f, 'p> {
    /// Where to store the value, or `None` to discard it.
    target: Option<&'f mut ClaimValue<'p>>,
}

impl<'p> ValueSeed<'_, 'p> {
    fn store<E>(self, value: ClaimValue<'p>) -> Result<(), E> {
        if let Some(target) = self.target {
            *target = value;
        }
        Ok(())
    }
}

impl<'p> DeserializeSeed<'p> for ValueSeed<'_, 'p> {
    type Value = ();

    fn deserialize<D: Deserializer<'p>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'p> Visitor<'p> for ValueSeed<'_, 'p> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E>(self, string: &'p str) -> Result<(), E> {
        self.store(ClaimValue::String(Cow::Borrowed(string)))
    }

    fn visit_str<E>(self, string: &str) -> Result<(), E> {
        self.store(ClaimValue::String(Cow::Owned(string.into())))
    }

    fn visit_u64<E>(self, number: u64) -> Result<(), E> {
        self.store(ClaimValue::Integer(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<(), E> {
        self.store(u64::try_from(number).map_or(ClaimValue::Other, ClaimValue::Integer))
    }

    fn visit_f64<E>(self, number: f64) -> Result<(), E> {
        self.store(ClaimValue::Float(number))
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        self.store(ClaimValue::Other)
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.store(ClaimValue::Other)
    }

    fn visit_seq<A: SeqAccess<'p>>(self, mut entries: A) -> Result<(), A::Error> {
        let Some(target) = self.target else {
            while entries
                .next_element_seed(ValueSeed { target: None })?
                .is_some()
            {}
            return Ok(());
        };
        let mut strings = Vec::new();
        let mut has_others = false;
        let mut entry = ClaimValue::Missing;
        while entries
            .next_element_seed(ValueSeed {
                target: Some(&mut entry),
            })?
            .is_some()
        {
            match mem::take(&mut entry) {
                ClaimValue::String(string) => strings.push(string),
                _ => has_others = true,
            }
        }
        *target = ClaimValue::Array {
            strings,
            has_others,
        };
        Ok(())
    }

    fn visit_map<A: MapAccess<'p>>(self, mut members: A) -> Result<(), A::Error> {
        while members.next_key_seed(ValueSeed { target: None })?.is_some() {
            members.next_value_seed(ValueSeed { target: None })?;
        }
        self.store(ClaimValue::Other)
    }
}
