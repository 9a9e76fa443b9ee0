//! The pass over a message's text: which members are there, and their raw values.

use std::{borrow::Cow, cell::Cell, fmt, marker::PhantomData};

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{error::Category, value::RawValue};

use super::EnvelopeError;
use crate::meta;

/// Reads the members of a message that is no deeper than `max_depth`.
pub(super) fn read(text: &str, max_depth: usize) -> Result<Message<'_>, EnvelopeError> {
    let pass = Pass { max_depth, failure: Cell::new(None), wrong_type: Cell::new(EnvelopeError::NotJsonRpc) };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let read = Object::new(&pass).deserialize(&mut deserializer).and_then(|message| {
        deserializer.end()?;
        Ok(message)
    });
    read.map_err(|error| match (pass.failure.get(), error.classify()) {
        (Some(failure), _) => failure,
        (None, Category::Data) => pass.wrong_type.get(),
        (None, Category::Syntax | Category::Eof | Category::Io) => EnvelopeError::NotJson,
    })
}

/// The text of a JSON string; `None` for any other value, and for one that escapes half of a surrogate pair.
pub(super) fn text(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(raw.get()).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// The members of a JSON-RPC message.
#[derive(Default)]
pub(super) struct Message<'a> {
    pub(super) jsonrpc: Option<&'a RawValue>,
    pub(super) id: Option<&'a RawValue>,
    pub(super) method: Option<&'a RawValue>,
    pub(super) params: Option<Params<'a>>,
    pub(super) result: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
}

impl<'de> Members<'de> for Message<'de> {
    const DEPTH: usize = 1;
    const NAMES: &'static [&'static str] = &["jsonrpc", "id", "method", "params", "result", "error"];
    const IF_ARRAY: EnvelopeError = EnvelopeError::Batch;
    const IF_SCALAR: EnvelopeError = EnvelopeError::NotJsonRpc;

    fn take<A: MapAccess<'de>>(&mut self, pass: &Pass, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "jsonrpc" => pass.set(&mut self.jsonrpc, Self::value(pass, map)?),
            "id" => pass.set(&mut self.id, Self::value(pass, map)?),
            "method" => pass.set(&mut self.method, Self::value(pass, map)?),
            "params" => pass.set(&mut self.params, map.next_value_seed(Object::new(pass))?),
            "result" => pass.set(&mut self.result, Self::value(pass, map)?),
            _ => pass.set(&mut self.error, Self::value(pass, map)?),
        }
    }

    fn look_alike<E: serde::de::Error>(&mut self, pass: &Pass, _name: &str) -> Result<(), E> {
        Err(pass.fail(EnvelopeError::LookAlikeMember))
    }
}

/// The members of `params`.
#[derive(Default)]
pub(super) struct Params<'a> {
    pub(super) name: Option<&'a RawValue>,
    pub(super) uri: Option<&'a RawValue>,
    pub(super) protocol_version: Option<&'a RawValue>,
    pub(super) meta: Option<Meta<'a>>,
    /// A member that could be taken for `name`, `uri` or `protocolVersion`: wrong where the method reads these, and
    /// a parameter like others where it does not.
    pub(super) look_alike: bool,
}

impl<'de> Members<'de> for Params<'de> {
    const DEPTH: usize = 2;
    const NAMES: &'static [&'static str] = &["name", "uri", "protocolVersion", "_meta"];
    const IF_ARRAY: EnvelopeError = EnvelopeError::NotJsonRpc;
    const IF_SCALAR: EnvelopeError = EnvelopeError::NotJsonRpc;

    fn take<A: MapAccess<'de>>(&mut self, pass: &Pass, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            "name" => pass.set(&mut self.name, Self::value(pass, map)?),
            "uri" => pass.set(&mut self.uri, Self::value(pass, map)?),
            "protocolVersion" => pass.set(&mut self.protocol_version, Self::value(pass, map)?),
            _ => pass.set(&mut self.meta, map.next_value_seed(Object::new(pass))?),
        }
    }

    fn look_alike<E: serde::de::Error>(&mut self, pass: &Pass, name: &str) -> Result<(), E> {
        if name == "_meta" {
            return Err(pass.fail(EnvelopeError::LookAlikeMember));
        }
        self.look_alike = true;
        Ok(())
    }
}

/// The members of `params._meta`.
#[derive(Default)]
pub(super) struct Meta<'a> {
    pub(super) protocol_version: Option<&'a RawValue>,
    pub(super) client_capabilities: Option<&'a RawValue>,
}

impl<'de> Members<'de> for Meta<'de> {
    const DEPTH: usize = 3;
    const NAMES: &'static [&'static str] = &[meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES];
    const IF_ARRAY: EnvelopeError = EnvelopeError::InvalidParams;
    const IF_SCALAR: EnvelopeError = EnvelopeError::InvalidParams;

    fn take<A: MapAccess<'de>>(&mut self, pass: &Pass, name: &str, map: &mut A) -> Result<(), A::Error> {
        match name {
            meta::PROTOCOL_VERSION => pass.set(&mut self.protocol_version, Self::value(pass, map)?),
            _ => pass.set(&mut self.client_capabilities, Self::value(pass, map)?),
        }
    }

    fn look_alike<E: serde::de::Error>(&mut self, pass: &Pass, _name: &str) -> Result<(), E> {
        Err(pass.fail(EnvelopeError::LookAlikeMember))
    }
}

/// An object of the message of which some members are read. `null` in its place counts as an empty one, but
/// for the message itself.
trait Members<'de>: Default {
    /// How deep the object stands, the message being 1.
    const DEPTH: usize;
    const NAMES: &'static [&'static str];
    const IF_ARRAY: EnvelopeError;
    const IF_SCALAR: EnvelopeError;

    /// Takes the value of a member that `NAMES` has.
    fn take<A: MapAccess<'de>>(&mut self, pass: &Pass, name: &str, map: &mut A) -> Result<(), A::Error>;

    /// Judges a member that some readers would take for the one in `NAMES`.
    fn look_alike<E: serde::de::Error>(&mut self, pass: &Pass, name: &str) -> Result<(), E>;

    fn value<A: MapAccess<'de>>(pass: &Pass, map: &mut A) -> Result<&'de RawValue, A::Error> {
        let raw: &RawValue = map.next_value()?;
        pass.enter(Self::DEPTH + nesting(raw.get()))?;
        Ok(raw)
    }
}

/// What all visitors of one pass share. Failures have a place of their own, because serde's errors carry
/// nothing but text.
struct Pass {
    max_depth: usize,
    failure: Cell<Option<EnvelopeError>>,
    /// What a value of the wrong type means where the pass is now.
    wrong_type: Cell<EnvelopeError>,
}

impl Pass {
    fn fail<E: serde::de::Error>(&self, failure: EnvelopeError) -> E {
        self.failure.set(Some(failure));
        E::custom("")
    }

    fn enter<E: serde::de::Error>(&self, depth: usize) -> Result<(), E> {
        if depth > self.max_depth { Err(self.fail(EnvelopeError::TooDeep)) } else { Ok(()) }
    }

    fn set<T, E: serde::de::Error>(&self, slot: &mut Option<T>, value: T) -> Result<(), E> {
        match slot.replace(value) {
            None => Ok(()),
            Some(_) => Err(self.fail(EnvelopeError::DuplicateMember)),
        }
    }
}

/// Reads one object into its members.
struct Object<'p, T> {
    pass: &'p Pass,
    members: PhantomData<T>,
}

impl<'p, T> Object<'p, T> {
    fn new(pass: &'p Pass) -> Self {
        Self { pass, members: PhantomData }
    }
}

impl<'de, T: Members<'de>> DeserializeSeed<'de> for Object<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        let outside = self.pass.wrong_type.replace(T::IF_SCALAR);
        let pass = self.pass;
        let members = deserializer.deserialize_any(self)?;
        pass.wrong_type.set(outside);
        Ok(members)
    }
}

impl<'de, T: Members<'de>> Visitor<'de> for Object<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<T, E> {
        if T::DEPTH == 1 { Err(self.pass.fail(T::IF_SCALAR)) } else { Ok(T::default()) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        // Read to its end, so that what is not JSON is not called an array.
        while seq.next_element::<&RawValue>()?.is_some() {}
        Err(self.pass.fail(T::IF_ARRAY))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<T, A::Error> {
        let mut members = T::default();
        self.pass.enter(T::DEPTH)?;
        while let Some(key) = map.next_key_seed(Key(T::NAMES))? {
            match key {
                Name::Known(name) => members.take(self.pass, name, &mut map)?,
                Name::LookAlike(name) => {
                    members.look_alike(self.pass, name)?;
                    T::value(self.pass, &mut map)?;
                }
                Name::Other => {
                    T::value(self.pass, &mut map)?;
                }
            }
        }
        Ok(members)
    }
}

enum Name {
    Known(&'static str),
    LookAlike(&'static str),
    Other,
}

/// Reads a member's name and tells which of the known ones it is. Escapes are decoded before it is compared.
struct Key(&'static [&'static str]);

impl<'de> DeserializeSeed<'de> for Key {
    type Value = Name;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Name, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Key {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Name, E> {
        if let Some(known) = self.0.iter().copied().find(|known| name == *known) {
            return Ok(Name::Known(known));
        }
        let alike = self.0.iter().copied().find(|known| looks_alike(name, known));
        Ok(alike.map_or(Name::Other, Name::LookAlike))
    }
}

/// Whether two names are the same to readers that ignore letter case or end a text at a NUL. Go's take the long s
/// for the letter that it folds to, Java's the two Turkish letters; no known name has a k for the Kelvin sign.
fn looks_alike(name: &str, known: &str) -> bool {
    // Neither folding nor a NUL makes a text longer.
    if name.len() < known.len() {
        return false;
    }
    let fold = |c: char| match c {
        '\u{17F}' => 's',
        '\u{130}' | '\u{131}' => 'i',
        c => c.to_ascii_lowercase(),
    };
    name.chars().take_while(|c| *c != '\0').map(fold).eq(known.chars().map(fold))
}

/// How deep the arrays and objects of a JSON text nest; 0 for a scalar.
fn nesting(json: &str) -> usize {
    if !json.starts_with(['{', '[']) {
        return 0;
    }
    let (mut depth, mut deepest) = (0_usize, 0);
    let mut bytes = json.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                while let Some(byte) = bytes.next() {
                    match byte {
                        b'"' => break,
                        b'\\' => {
                            bytes.next();
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    deepest
}
