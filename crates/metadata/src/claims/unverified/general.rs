//! Reads any payload that is a JSON object.

use std::{borrow::Cow, fmt, mem};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};

use super::reading::{Found, Reading, has_repetition};
use crate::ClaimsError;

/// # Errors
/// When it is no JSON object with each member once.
pub(super) fn read(text: &str) -> Result<Reading<'_>, ClaimsError> {
    let mut reading = Reading::default();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_map(&mut reading).map_err(|_| ClaimsError::NotAnObject)?;
    deserializer.end().map_err(|_| ClaimsError::NotAnObject)?;
    Ok(reading)
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
            if let Some(found) = self.field(name) {
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
