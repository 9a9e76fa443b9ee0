//! The pass over a message's text: which members are there, and their values as they stand there.

use std::borrow::Cow;

use super::{EnvelopeError, scanner::Scanner};
use crate::meta;

/// Reads the members of a message that is no deeper than `max_depth`.
pub(super) fn read(text: &str, max_depth: usize) -> Result<Message<'_>, EnvelopeError> {
    let mut pass = Pass { scanner: Scanner::new(text), max_depth };
    let message = pass.object()?;
    if pass.scanner.next().is_some() { Err(EnvelopeError::NotJson) } else { Ok(message) }
}

/// Reads an object that stands in a message that was read before, as deep as `T` says. `null` counts as an empty one.
pub(super) fn nested<'a, T: Members<'a>>(value: &'a str, max_depth: usize) -> Result<T, EnvelopeError> {
    Pass { scanner: Scanner::new(value), max_depth }.object()
}

/// Passes each element of an array that stands in a message that was read before. `null` counts as an empty one.
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

/// Reads the `id` of a message with a method that is refused for another reason. `None` unless the text is one JSON object
/// with exactly one `id` and nothing that some readers would take for a second one.
pub(super) fn read_id(text: &str) -> Option<&str> {
    let mut pass = Pass { scanner: Scanner::new(text), max_depth: usize::MAX };
    if pass.scanner.next() != Some(b'{') {
        return None;
    }
    let identity: Identity<'_> = pass.object().ok()?;
    identity.id.filter(|_| identity.has_method && pass.scanner.next().is_none())
}

/// The text of a JSON string; `None` for any other value, and for one that escapes half of a surrogate pair.
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
    pub(super) result: Option<Outcome<'a>>,
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
                let outcome = if pass.scanner.next() == Some(b'{') { pass.object()? } else { pass.other::<Self, _>()? };
                set(&mut self.result, outcome)
            }
            "error" => set(&mut self.error, pass.value::<Self>()?),
            _ => Ok(false),
        }
    }

    fn look_alike(&mut self, _name: &'static str) -> Result<(), EnvelopeError> {
        Err(EnvelopeError::LookAlikeMember)
    }
}

/// What tells who waits for the answer to a message.
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

/// The members of `result`; those of an empty object for any other value.
#[derive(Default)]
pub(super) struct Outcome<'a> {
    pub(super) meta: Option<Meta<'a>>,
}

impl<'a> Members<'a> for Outcome<'a> {
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

/// The members of `params`. Objects that only some methods have are left as they are written.
#[derive(Default)]
pub(super) struct Params<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) uri: Option<&'a str>,
    pub(super) task_id: Option<&'a str>,
    pub(super) reference: Option<&'a str>,
    pub(super) notifications: Option<&'a str>,
    pub(super) protocol_version: Option<&'a str>,
    pub(super) meta: Option<Meta<'a>>,
    /// One bit for each of `NAMES` that another member could be taken for: wrong where the method reads that one, and a
    /// parameter like others where it does not.
    look_alikes: u8,
}

impl Params<'_> {
    /// Whether a member could be taken for this one of `NAMES`.
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

/// An object whose members that are read are texts, all of them names.
macro_rules! texts {
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

texts! {
    /// The members of `params.ref` of `completion/complete`.
    Reference at 3: "name" => name, "uri" => uri
}
texts! {
    /// The members of `params.notifications` of `subscriptions/listen`.
    SubscriptionFilter at 3: "resourceSubscriptions" => resource_subscriptions
}
texts! {
    /// The members of `io.modelcontextprotocol/related-task` in `_meta`.
    RelatedTask at 4: "taskId" => task_id
}

/// An object of the message of which some members are read. `null` in its place counts as an empty one.
pub(super) trait Members<'a>: Default {
    /// How deep the object stands, the message being 1.
    const DEPTH: usize;
    const NAMES: &'static [&'static str];
    const IF_ARRAY: EnvelopeError;
    const IF_SCALAR: EnvelopeError;

    /// Takes the value of a member that `NAMES` has. Whether it is one of these.
    fn take(&mut self, name: &str, pass: &mut Pass<'a>) -> Result<bool, EnvelopeError>;

    /// Judges a member that some readers would take for the one in `NAMES`.
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

    /// A member's value, as it stands there.
    fn value<T: Members<'a>>(&mut self) -> Result<&'a str, EnvelopeError> {
        self.scanner.value(self.max_depth.saturating_sub(T::DEPTH))
    }

    /// Passes over a value that is not an object, where one may stand.
    fn other<T: Members<'a>, O: Default>(&mut self) -> Result<O, EnvelopeError> {
        self.value::<T>().map(|_| O::default())
    }

    /// What else stands where an object should. It is read to its end, so that what is not JSON is not called an array.
    fn no_object<T: Members<'a>>(&mut self) -> Result<T, EnvelopeError> {
        let value = self.scanner.value(usize::MAX)?;
        if value == "null" {
            return Ok(T::default());
        }
        Err(if value.starts_with('[') { T::IF_ARRAY } else { T::IF_SCALAR })
    }
}

/// Takes a value that must come once.
fn set<T>(slot: &mut Option<T>, value: T) -> Result<bool, EnvelopeError> {
    match slot.replace(value) {
        None => Ok(true),
        Some(_) => Err(EnvelopeError::DuplicateMember),
    }
}

/// Whether two names are the same to readers that ignore letter case or end a text at a NUL. Under Unicode simple case folding
/// two characters beyond ASCII fold to an ASCII letter: the long s and the Kelvin sign. Java folds the two Turkish letters, too.
fn looks_alike(name: &str, known: &str) -> bool {
    // Neither folding nor a NUL makes a text longer.
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
