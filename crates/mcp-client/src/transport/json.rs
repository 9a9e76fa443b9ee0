//! Reads parts of JSON text without building values: a message of the server can consist of
//! millions of tiny values, each of which would take many times its text.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Parses an object into a structure of borrowed members. `None` for another type, and for
/// duplicates of these members.
pub fn object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    // serde also deserializes structures from arrays.
    raw.get()
        .starts_with('{')
        .then(|| serde_json::from_str(raw.get()).ok())?
}

/// Parses a string of at most `max` bytes of JSON text. `None` for another type, longer text and
/// unpaired surrogates.
pub fn string(raw: &RawValue, max: usize) -> Option<String> {
    (raw.get().len() <= max && raw.get().starts_with('"'))
        .then(|| serde_json::from_str(raw.get()).ok())?
}

/// Returns the last member of an object with this name. `None` if there is none, and for another
/// type.
pub(crate) fn member<'a>(object: &'a RawValue, name: &str) -> Option<&'a RawValue> {
    struct Member<'n>(&'n str);
    impl<'de> Visitor<'de> for Member<'_> {
        type Value = Option<&'de RawValue>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
            let mut found = None;
            while let Some(Name(name)) = members.next_key()? {
                let value = members.next_value()?;
                if name.as_deref() == Some(self.0) {
                    found = Some(value);
                }
            }
            Ok(found)
        }
    }
    serde_json::Deserializer::from_str(object.get())
        .deserialize_map(Member(name))
        .ok()?
}

/// The maximum length of a name of a member, in bytes.
const MAX_NAME: usize = 4096;

/// The name of a member. `None` if it is longer than [`MAX_NAME`].
pub(crate) struct Name<'a>(pub(crate) Option<Cow<'a, str>>);

impl<'de> Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }
            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Self::Value, E> {
                Ok(Name(
                    Some(Cow::Borrowed(name)).filter(|name| name.len() <= MAX_NAME),
                ))
            }
            fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
                Ok(Name(
                    (name.len() <= MAX_NAME).then(|| Cow::Owned(name.to_owned())),
                ))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}

/// The items of an array in valid JSON text, one by one.
pub(crate) struct Items<'a> {
    text: &'a [u8],
    position: usize,
}

/// Returns the items of an array. `None` for another type.
pub(crate) fn items(raw: &RawValue) -> Option<Items<'_>> {
    raw.get().starts_with('[').then(|| Items {
        text: raw.get().as_bytes(),
        position: 1,
    })
}

impl<'a> Iterator for Items<'a> {
    type Item = &'a RawValue;

    fn next(&mut self) -> Option<Self::Item> {
        next_item(self.text, &mut self.position)
    }
}

/// Returns the item of an array at or after this position, and moves the position behind it.
fn next_item<'a>(text: &'a [u8], position: &mut usize) -> Option<&'a RawValue> {
    let is_between = |byte: &u8| matches!(byte, b',' | b' ' | b'\t' | b'\r' | b'\n');
    let between = text[*position..]
        .iter()
        .take_while(|byte| is_between(byte))
        .count();
    let rest = &text[*position + between..];
    if rest.first().is_none_or(|byte| *byte == b']') {
        return None;
    }
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter();
    let item = values.next()?.ok()?;
    *position += between + values.byte_offset();
    Some(item)
}

/// The JSON texts of the messages that arrived together: one, or those of a batch, which servers of
/// 2025-03-26 can send.
#[derive(Clone)]
pub struct MessageTexts(Texts);

#[derive(Clone)]
enum Texts {
    /// One message, until it is returned.
    One(Option<Bytes>),
    /// An array of messages, and the position of the next one.
    Batch { text: Bytes, position: usize },
}

impl MessageTexts {
    /// Splits JSON text. `None` for an array that is not JSON; the text of one message is not
    /// parsed.
    pub fn split(text: Bytes) -> Option<Self> {
        let before = text
            .iter()
            .take_while(|byte| byte.is_ascii_whitespace())
            .count();
        if text.get(before) != Some(&b'[') {
            return Some(Self(Texts::One(Some(text))));
        }
        serde_json::from_slice::<&RawValue>(&text).ok()?;
        Some(Self(Texts::Batch {
            text,
            position: before + 1,
        }))
    }
}

impl Iterator for MessageTexts {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        match &mut self.0 {
            Texts::One(text) => text.take(),
            Texts::Batch { text, position } => {
                let item = next_item(text, position)?.get().as_bytes();
                // A short message that waits must not keep the memory of the whole batch.
                let is_most = item.len() > text.len() / 2;
                Some(if is_most {
                    text.slice_ref(item)
                } else {
                    Bytes::copy_from_slice(item)
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn items_are_returned_one_by_one() {
        let list = raw(" [ 1 ,\"a,]\", {\"b\":[2,3]},[],null , -1.5e3\n,true] ");
        let found: Vec<_> = items(list).unwrap().map(RawValue::get).collect();
        assert_eq!(
            found,
            [
                "1",
                "\"a,]\"",
                "{\"b\":[2,3]}",
                "[]",
                "null",
                "-1.5e3",
                "true"
            ]
        );
        assert_eq!(items(raw("[]")).unwrap().count(), 0);
        assert!(items(raw("{}")).is_none());
    }

    #[test]
    fn strings_and_members_are_bounded() {
        assert_eq!(string(raw(r#""\u00e4b""#), 9).as_deref(), Some("äb"));
        for (text, max) in [(r#""abc""#, 4), ("1", 9), (r#""\ud800""#, 99), ("[]", 9)] {
            assert_eq!(string(raw(text), max), None, "{text}");
        }
        let object = raw(r#"{"a":1,"\u0062":[2],"a":3}"#);
        assert_eq!(
            member(object, "a").unwrap().get(),
            "3",
            "the last one counts"
        );
        assert_eq!(member(object, "b").unwrap().get(), "[2]");
        assert!(member(object, "c").is_none());
        assert!(member(raw("[1]"), "a").is_none());
        let long = "x".repeat(MAX_NAME + 1);
        assert!(member(raw(&format!("{{\"{long}\":1}}")), &long).is_none());
    }

    #[test]
    fn a_short_message_does_not_keep_its_batch() {
        let batch = Bytes::from(format!("[1,\"{}\"]", "x".repeat(100)));
        let texts: Vec<_> = MessageTexts::split(batch.clone()).unwrap().collect();
        let within = |text: &Bytes| batch.as_ptr_range().contains(&text.as_ptr());
        assert_eq!(texts.iter().map(within).collect::<Vec<_>>(), [false, true]);
        assert!(MessageTexts::split(Bytes::from_static(b"[1")).is_none());
    }

    #[test]
    fn depth_does_not_use_the_stack() {
        let deep = "[".repeat(2_000_000) + &"]".repeat(2_000_000);
        let texts: Vec<_> = MessageTexts::split(Bytes::from(format!("[{deep},{deep}]")))
            .unwrap()
            .collect();
        assert_eq!(texts.len(), 2);
        assert!(texts.iter().all(|text| *text == deep));
    }

    proptest! {
        #[test]
        fn items_are_those_of_the_array(values in proptest::collection::vec(any::<(String, i64, bool)>(), 0..8)) {
            let list = json!(values);
            let text = serde_json::to_string_pretty(&list).unwrap();
            let found: Vec<Value> =
                items(raw(&text)).unwrap().map(|item| serde_json::from_str(item.get()).unwrap()).collect();
            prop_assert_eq!(found, list.as_array().unwrap().clone());
        }
    }
}
