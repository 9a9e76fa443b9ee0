//! The members of a message, with their values as written.

use std::borrow::Cow;

use super::{EnvelopeError, scanner::Scanner};
use crate::meta;

/// Reads the members of a message with a depth of at most `max_depth`.
pub(super) fn read(text: &str, max_depth: usize) -> Result<Message<'_>, EnvelopeError> {
    let mut pass = Pass { scanner: Scanner::new(text), max_depth };
    let message = pass.object()?;
    if pass.scanner.next().is_some() { Err(EnvelopeError::NotJson) } else { Ok(message) }
}

/// Reads an object of a message that was read before, at the depth of `T`. `null` is read as an empty object.
pub(super) fn nested<'a, T: Members<'a>>(value: &'a str, max_depth: usize) -> Result<T, EnvelopeError> {
    Pass { scanner: Scanner::new(value), max_depth }.object()
}

/// Calls `element` for each element of an array of a message that was read before. `null` is read as an empty array.
pub(super) fn each_element<'a>(
    value: &'a str,
    mut element: impl FnMut(&'a str) -> Result<(), EnvelopeError>,
) -> Result<(), EnvelopeError> {
    let mut scanner = Scanner::new(value);
    if value == "null" {
        return Ok(());
    }
    if !scanner.take(b'[') {
        return Err(EnvelopeError::InvalidParams);
    }
    if scanner.take(b']') {
        return Ok(());
    }
    loop {
        element(scanner.value(usize::MAX)?)?;
        if !scanner.take(b',') {
            return Ok(());
        }
    }
}

/// Reads the `id` of a message with a method that is rejected for another reason. `None` unless the text is one JSON object
/// with exactly one `id` and no member that some parsers would read as a second one.
pub(super) fn read_id(text: &str) -> Option<&str> {
    let mut pass = Pass { scanner: Scanner::new(text), max_depth: usize::MAX };
    if pass.scanner.next() != Some(b'{') {
        return None;
    }
    let identity: Identity<'_> = pass.object().ok()?;
    identity.id.filter(|_| identity.has_method && pass.scanner.next().is_none())
}

/// Returns the decoded text of a JSON string; `None` for any other value, and for an unpaired surrogate.
pub(super) fn text(value: &str) -> Option<Cow<'_, str>> {
    let inner = value.strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') { serde_json::from_str(value).ok().map(Cow::Owned) } else { Some(Cow::Borrowed(inner)) }
}

/// The members of a JSON-RPC message.
#[derive(Default)]
pub(super) struct Message<'a> {
    pub(super) jsonrpc: Option<&'a str>,
    pub(super) id: Option<&'a str>,
    pub(super) method: Option<&'a str>,
    pub(super) params: Option<Params<'a>>,
    pub(super) result: Option<ResultMembers<'a>>,
    pub(super) error: Option<&'a str>,
}

impl<'a> Members<'a> for Message<'a> {
    const DEPTH: usize = 1;
    const NAMES: &'static [&'static str] = &["jsonrpc", "id", "method", "params", "result", "error"];
    const IF_ARRAY: EnvelopeError = EnvelopeError::Batch;
    const IF_SCALAR: EnvelopeError = EnvelopeError::NotJsonRpc;

    fn take(&mut self, name: &str, pass: &mut Pass<'a>) -> Result<bool, EnvelopeError> {
        match name {
            "jsonrpc" => set(&mut self.jsonrpc, pass.value::<Self>()?),
            "id" => set(&mut self.id, pass.value::<Self>()?),
            "method" => set(&mut self.method, pass.value::<Self>()?),
            "params" => set(&mut self.params, pass.object()?),
            "result" => {
                let result = if pass.scanner.next() == Some(b'{') { pass.object()? } else { pass.other::<Self, _>()? };
                set(&mut self.result, result)
            }
            "error" => set(&mut self.error, pass.value::<Self>()?),
            _ => Ok(false),
        }
    }

    fn look_alike(&mut self, _name: &'static str) -> Result<(), EnvelopeError> {
        Err(EnvelopeError::LookAlikeMember)
    }
}

/// The members that identify a request.
#[derive(Default)]
struct Identity<'a> {
    id: Option<&'a str>,
    has_method: bool,
}

impl<'a> Members<'a> for Identity<'a> {
    const DEPTH: usize = 1;
    const NAMES: &'static [&'static str] = &["id"];
    const IF_ARRAY: EnvelopeError = EnvelopeError::Batch;
    const IF_SCALAR: EnvelopeError = EnvelopeError::NotJsonRpc;

    fn take(&mut self, name: &str, pass: &mut Pass<'a>) -> Result<bool, EnvelopeError> {
        match name {
            "id" => set(&mut self.id, pass.value::<Self>()?),
            "method" => {
                self.has_method = true;
                pass.value::<Self>().map(|_| true)
            }
            _ => Ok(false),
        }
    }

    fn look_alike(&mut self, _name: &'static str) -> Result<(), EnvelopeError> {
        Err(EnvelopeError::LookAlikeMember)
    }
}

/// The members of `result`. A value that is not an object has none.
#[derive(Default)]
pub(super) struct ResultMembers<'a> {
    pub(super) meta: Option<Meta<'a>>,
}

impl<'a> Members<'a> for ResultMembers<'a> {
    const DEPTH: usize = 2;
    const NAMES: &'static [&'static str] = &["_meta"];
    const IF_ARRAY: EnvelopeError = EnvelopeError::NotJsonRpc;
    const IF_SCALAR: EnvelopeError = EnvelopeError::NotJsonRpc;

    fn take(&mut self, name: &str, pass: &mut Pass<'a>) -> Result<bool, EnvelopeError> {
        match name {
            "_meta" => set(&mut self.meta, pass.object()?),
            _ => Ok(false),
        }
    }

    fn look_alike(&mut self, _name: &'static str) -> Result<(), EnvelopeError> {
        Err(EnvelopeError::LookAlikeMember)
    }
}

/// The members of `params`. Objects that only some methods have are kept as written.
#[derive(Default)]
pub(super) struct Params<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) uri: Option<&'a str>,
    pub(super) task_id: Option<&'a str>,
    pub(super) reference: Option<&'a str>,
    pub(super) notifications: Option<&'a str>,
    pub(super) protocol_version: Option<&'a str>,
    pub(super) meta: Option<Meta<'a>>,
    /// One bit for each of `NAMES` that another member resembles. This is an error only if the method reads that member.
    look_alikes: u8,
}

impl Params<'_> {
    /// Returns whether a member resembles this one of `NAMES`.
    pub(super) fn has_look_alike(&self, name: &str) -> bool {
        self.look_alikes & Self::bit(name) != 0
    }

    fn bit(name: &str) -> u8 {
        Self::NAMES.iter().position(|known| *known == name).map_or(0, |position| 1 << position)
    }
}

impl<'a> Members<'a> for Params<'a> {
    const DEPTH: usize = 2;
    const NAMES: &'static [&'static str] =
        &["name", "uri", "taskId", "ref", "notifications", "protocolVersion", "_meta"];
    const IF_ARRAY: EnvelopeError = EnvelopeError::NotJsonRpc;
    const IF_SCALAR: EnvelopeError = EnvelopeError::NotJsonRpc;

    fn take(&mut self, name: &str, pass: &mut Pass<'a>) -> Result<bool, EnvelopeError> {
        match name {
            "name" => set(&mut self.name, pass.value::<Self>()?),
            "uri" => set(&mut self.uri, pass.value::<Self>()?),
            "taskId" => set(&mut self.task_id, pass.value::<Self>()?),
            "ref" => set(&mut self.reference, pass.value::<Self>()?),
            "notifications" => set(&mut self.notifications, pass.value::<Self>()?),
            "protocolVersion" => set(&mut self.protocol_version, pass.value::<Self>()?),
            "_meta" => set(&mut self.meta, pass.object()?),
            _ => Ok(false),
        }
    }

    fn look_alike(&mut self, name: &'static str) -> Result<(), EnvelopeError> {
        if name == "_meta" {
            return Err(EnvelopeError::LookAlikeMember);
        }
        self.look_alikes |= Self::bit(name);
        Ok(())
    }
}

/// The members of `params._meta`.
#[derive(Default)]
pub(super) struct Meta<'a> {
    pub(super) protocol_version: Option<&'a str>,
    pub(super) client_capabilities: Option<&'a str>,
    pub(super) related_task: Option<&'a str>,
}

impl<'a> Members<'a> for Meta<'a> {
    const DEPTH: usize = 3;
    const NAMES: &'static [&'static str] = &[meta::PROTOCOL_VERSION, meta::CLIENT_CAPABILITIES, meta::RELATED_TASK];
    const IF_ARRAY: EnvelopeError = EnvelopeError::InvalidParams;
    const IF_SCALAR: EnvelopeError = EnvelopeError::InvalidParams;

    fn take(&mut self, name: &str, pass: &mut Pass<'a>) -> Result<bool, EnvelopeError> {
        match name {
            meta::PROTOCOL_VERSION => set(&mut self.protocol_version, pass.value::<Self>()?),
            meta::CLIENT_CAPABILITIES => set(&mut self.client_capabilities, pass.value::<Self>()?),
            meta::RELATED_TASK => set(&mut self.related_task, pass.value::<Self>()?),
            _ => Ok(false),
        }
    }

    fn look_alike(&mut self, _name: &'static str) -> Result<(), EnvelopeError> {
        Err(EnvelopeError::LookAlikeMember)
    }
}

/// Defines an object whose members are names.
macro_rules! names_object {
    ($(#[$doc:meta])* $object:ident at $depth:literal: $($name:literal => $field:ident),+) => {
        $(#[$doc])*
        #[derive(Default)]
        pub(super) struct $object<'a> {
            $(pub(super) $field: Option<&'a str>,)+
        }

        impl<'a> Members<'a> for $object<'a> {
            const DEPTH: usize = $depth;
            const NAMES: &'static [&'static str] = &[$($name),+];
            const IF_ARRAY: EnvelopeError = EnvelopeError::InvalidParams;
            const IF_SCALAR: EnvelopeError = EnvelopeError::InvalidParams;

            fn take(&mut self, name: &str, pass: &mut Pass<'a>) -> Result<bool, EnvelopeError> {
                match name {
                    $($name => set(&mut self.$field, pass.value::<Self>()?),)+
                    _ => Ok(false),
                }
            }

            fn look_alike(&mut self, _name: &'static str) -> Result<(), EnvelopeError> {
                Err(EnvelopeError::LookAlikeMember)
            }
        }
    };
}

names_object! {
    /// The members of `params.ref` of `completion/complete`.
    Reference at 3: "name" => name, "uri" => uri
}
names_object! {
    /// The members of `params.notifications` of `subscriptions/listen`.
    SubscriptionFilter at 3: "resourceSubscriptions" => resource_subscriptions
}
names_object! {
    /// The members of `io.modelcontextprotocol/related-task` in `_meta`.
    RelatedTask at 4: "taskId" => task_id
}

/// An object of which some members are read. `null` is read as an empty object.
pub(super) trait Members<'a>: Default {
    /// The depth of the object. The message has depth 1.
    const DEPTH: usize;
    const NAMES: &'static [&'static str];
    const IF_ARRAY: EnvelopeError;
    const IF_SCALAR: EnvelopeError;

    /// Reads the value of a member. Returns false if `NAMES` does not contain it.
    fn take(&mut self, name: &str, pass: &mut Pass<'a>) -> Result<bool, EnvelopeError>;

    /// Handles a member that some parsers would read as the one in `NAMES`.
    fn look_alike(&mut self, name: &'static str) -> Result<(), EnvelopeError>;
}

pub(super) struct Pass<'a> {
    scanner: Scanner<'a>,
    max_depth: usize,
}

impl<'a> Pass<'a> {
    /// Reads one object into its members.
    fn object<T: Members<'a>>(&mut self) -> Result<T, EnvelopeError> {
        let mut members = T::default();
        if !self.scanner.take(b'{') {
            return self.no_object();
        }
        if T::DEPTH > self.max_depth {
            return Err(EnvelopeError::TooDeep);
        }
        if self.scanner.take(b'}') {
            return Ok(members);
        }
        loop {
            self.member(&mut members)?;
            if !self.scanner.take(b',') {
                return if self.scanner.take(b'}') { Ok(members) } else { Err(EnvelopeError::NotJson) };
            }
        }
    }

    fn member<T: Members<'a>>(&mut self, members: &mut T) -> Result<(), EnvelopeError> {
        let name = self.scanner.name()?;
        if members.take(&name, self)? {
            return Ok(());
        }
        if let Some(known) = T::NAMES.iter().find(|known| looks_alike(&name, known)) {
            members.look_alike(known)?;
        }
        self.value::<T>().map(drop)
    }

    /// Reads a member's value as written.
    fn value<T: Members<'a>>(&mut self) -> Result<&'a str, EnvelopeError> {
        self.scanner.value(self.max_depth.saturating_sub(T::DEPTH))
    }

    /// Skips a value that may be, but is not, an object.
    fn other<T: Members<'a>, O: Default>(&mut self) -> Result<O, EnvelopeError> {
        self.value::<T>().map(|_| O::default())
    }

    /// Reads a value other than an object. It is read to its end, so that invalid JSON is reported as such.
    fn no_object<T: Members<'a>>(&mut self) -> Result<T, EnvelopeError> {
        let value = self.scanner.value(usize::MAX)?;
        if value == "null" {
            return Ok(T::default());
        }
        Err(if value.starts_with('[') { T::IF_ARRAY } else { T::IF_SCALAR })
    }
}

/// Sets a value that must not be repeated.
fn set<T>(slot: &mut Option<T>, value: T) -> Result<bool, EnvelopeError> {
    match slot.replace(value) {
        None => Ok(true),
        Some(_) => Err(EnvelopeError::DuplicateMember),
    }
}

/// Returns whether two names are equal for parsers that ignore letter case or end a string at a NUL. With Unicode simple case
/// folding, the long s and the Kelvin sign fold to ASCII letters. Java also folds the two Turkish letters.
fn looks_alike(name: &str, known: &str) -> bool {
    // Neither folding nor a NUL makes a string longer.
    if name.len() < known.len() {
        return false;
    }
    let fold = |c: char| match c {
        '\u{17F}' => 's',
        '\u{212A}' => 'k',
        '\u{130}' | '\u{131}' => 'i',
        c => c.to_ascii_lowercase(),
    };
    name.chars().take_while(|c| *c != '\0').map(fold).eq(known.chars().map(fold))
}
