//! Reads the objects of a message in one pass.

use super::{
    error::EnvelopeError,
    objects::{Field, Message, Object, RejectedMessage, ResultMembers},
    scanner::Scanner,
};

/// Reads a message. Its nesting depth must be at most `max_depth`.
pub(super) fn read_message(text: &str, max_depth: usize) -> Result<Message<'_>, EnvelopeError> {
    let mut reader = Reader {
        scanner: Scanner::new(text),
        max_depth,
    };
    if reader.scanner.peek_token() != Some(b'{') {
        // The whole text is read, so that invalid JSON is reported as such.
        let value = reader.scanner.value(usize::MAX)?;
        reader.scanner.end()?;
        return Err(if value.starts_with('[') {
            EnvelopeError::Batch
        } else {
            EnvelopeError::NotJsonRpc
        });
    }
    let message = reader.object()?;
    reader.scanner.end()?;
    Ok(message)
}

/// Reads the `id` of a request that is rejected for another reason. Returns `None` unless the text
/// is one JSON object with a method and exactly one `id`, and without a look-alike of it.
pub(super) fn read_id(text: &str) -> Option<&str> {
    let mut reader = Reader {
        scanner: Scanner::new(text),
        max_depth: usize::MAX,
    };
    let message: RejectedMessage<'_> = reader.object().ok()?;
    message
        .id
        .filter(|_| message.has_method && reader.scanner.end().is_ok())
}

/// Reads an object in a message that was read before.
pub(super) fn read_nested<'a, T: Object<'a>>(
    value: &'a str,
    max_depth: usize,
) -> Result<T, EnvelopeError> {
    Reader {
        scanner: Scanner::new(value),
        max_depth,
    }
    .object()
}

/// Calls `f` for each element of an array in a message that was read before. `null` is read as an
/// empty array.
pub(super) fn for_each_element<'a>(
    value: &'a str,
    mut f: impl FnMut(&'a str) -> Result<(), EnvelopeError>,
) -> Result<(), EnvelopeError> {
    if value == "null" {
        return Ok(());
    }
    let mut scanner = Scanner::new(value);
    if !scanner.take(b'[') {
        return Err(EnvelopeError::InvalidParams);
    }
    if scanner.take(b']') {
        return Ok(());
    }
    loop {
        f(scanner.value(usize::MAX)?)?;
        if !scanner.take(b',') {
            return Ok(());
        }
    }
}

/// A position in a message, and the limit for its depth.
struct Reader<'a> {
    scanner: Scanner<'a>,
    max_depth: usize,
}

impl<'a> Reader<'a> {
    fn object<T: Object<'a>>(&mut self) -> Result<T, EnvelopeError> {
        if !self.scanner.take(b'{') {
            return self.null();
        }
        if T::DEPTH > self.max_depth {
            return Err(EnvelopeError::TooDeep);
        }
        let mut object = T::default();
        if self.scanner.take(b'}') {
            return Ok(object);
        }
        loop {
            self.member(&mut object)?;
            if !self.scanner.take(b',') {
                return if self.scanner.take(b'}') {
                    Ok(object)
                } else {
                    Err(EnvelopeError::NotJson)
                };
            }
        }
    }

    /// Reads `null` as an empty object. Any other value is an error of `T`, unless it is invalid
    /// JSON.
    fn null<T: Object<'a>>(&mut self) -> Result<T, EnvelopeError> {
        match self.scanner.value(usize::MAX)? {
            "null" => Ok(T::default()),
            _ => Err(T::IF_NO_OBJECT),
        }
    }

    /// Reads a name and its value, and stores the value if the member is read.
    fn member<T: Object<'a>>(&mut self, object: &mut T) -> Result<(), EnvelopeError> {
        let name = self.scanner.name()?;
        match object.field(&name) {
            Some(Field::Value(field)) => set(field, self.value::<T>()?),
            Some(Field::Params(field)) => set(field, self.object()?),
            Some(Field::Result(field)) => set(field, self.result()?),
            Some(Field::Meta(field)) => set(field, self.object()?),
            Some(Field::Presence(field)) => {
                *field = true;
                self.value::<T>().map(drop)
            }
            None => {
                if let Some(member) = T::MEMBERS.iter().find(|member| looks_alike(&name, member)) {
                    object.receive_look_alike(member)?;
                }
                self.value::<T>().map(drop)
            }
        }
    }

    /// Reads the value of a member of `T`. Returns it as written.
    fn value<T: Object<'a>>(&mut self) -> Result<&'a str, EnvelopeError> {
        self.scanner.value(self.max_depth.saturating_sub(T::DEPTH))
    }

    /// Reads the value of `result`, which can have any type.
    fn result(&mut self) -> Result<ResultMembers<'a>, EnvelopeError> {
        if self.scanner.peek_token() == Some(b'{') {
            return self.object();
        }
        self.value::<Message<'a>>()
            .map(|_| ResultMembers::default())
    }
}

/// Sets the field of a member that must not be repeated.
fn set<T>(field: &mut Option<T>, value: T) -> Result<(), EnvelopeError> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => Err(EnvelopeError::DuplicateMember),
    }
}

/// Returns whether some parsers take a name for that of a member: those that ignore letter case,
/// and those that end a string at a NUL. With Unicode simple case folding, the long s and the
/// Kelvin sign fold to ASCII letters. Java also folds the two Turkish letters.
fn looks_alike(name: &str, member: &str) -> bool {
    // Neither folding nor a NUL makes a string longer.
    if name.len() < member.len() {
        return false;
    }
    let fold = |c: char| match c {
        '\u{17F}' => 's',
        '\u{212A}' => 'k',
        '\u{130}' | '\u{131}' => 'i',
        c => c.to_ascii_lowercase(),
    };
    name.chars()
        .take_while(|c| *c != '\0')
        .map(fold)
        .eq(member.chars().map(fold))
}
