//! The parser of `WWW-Authenticate` values.

use super::{Challenge, ChallengeError, Credentials, MAX_BYTES, MAX_CHALLENGES, MAX_PARAMETERS};

/// Parses one or more field values that form one list of challenges.
#[derive(Default)]
pub(super) struct Parser {
    challenges: Vec<Challenge>,
    bytes: usize,
}

impl Parser {
    /// Returns the challenges of all values.
    pub(super) fn finish(self) -> Vec<Challenge> {
        self.challenges
    }

    /// Parses one field value. Commas separate both challenges and parameters: an element that
    /// starts with `name =` is a parameter of the preceding challenge; any other element starts a
    /// new challenge.
    pub(super) fn parse_value(&mut self, value: &[u8]) -> Result<(), ChallengeError> {
        self.bytes = self.bytes.saturating_add(value.len());
        if self.bytes > MAX_BYTES {
            return Err(ChallengeError::TooLarge);
        }
        let mut cursor = Cursor { rest: value };
        loop {
            cursor.skip(|byte| is_space(byte) || byte == b',');
            if cursor.rest.is_empty() {
                return Ok(());
            }
            let name = cursor.token()?;
            if cursor.skip_equals_sign() {
                self.add_parameter(name, &mut cursor)?;
            } else {
                self.begin_challenge(name, &mut cursor)?;
            }
            if !cursor.at_element_end() {
                return Err(ChallengeError::Malformed);
            }
        }
    }

    /// Parses what follows a scheme: a token68, the first parameter, or nothing.
    fn begin_challenge(
        &mut self,
        scheme: &str,
        cursor: &mut Cursor<'_>,
    ) -> Result<(), ChallengeError> {
        if self.challenges.len() == MAX_CHALLENGES {
            return Err(ChallengeError::TooMany);
        }
        let token68 = cursor.token68();
        let has_parameter = token68.is_none() && !cursor.at_element_end();
        let credentials = match token68 {
            Some(token68) => Credentials::Token68(token68.to_owned()),
            None => Credentials::Parameters(Vec::new()),
        };
        self.challenges.push(Challenge {
            scheme: scheme.to_owned(),
            credentials,
        });
        if has_parameter {
            let name = cursor.token()?;
            if !cursor.skip_equals_sign() {
                return Err(ChallengeError::Malformed);
            }
            self.add_parameter(name, cursor)?;
        }
        Ok(())
    }

    /// Parses the value after `name =` and adds the parameter to the current challenge.
    fn add_parameter(&mut self, name: &str, cursor: &mut Cursor<'_>) -> Result<(), ChallengeError> {
        let Some(Challenge {
            credentials: Credentials::Parameters(parameters),
            ..
        }) = self.challenges.last_mut()
        else {
            return Err(ChallengeError::Malformed);
        };
        if parameters
            .iter()
            .any(|(other, _)| other.eq_ignore_ascii_case(name))
        {
            return Err(ChallengeError::DuplicateParameter);
        }
        if parameters.len() == MAX_PARAMETERS {
            return Err(ChallengeError::TooManyParameters);
        }
        let value = if cursor.rest.first() == Some(&b'"') {
            cursor.quoted_string()?
        } else {
            cursor.token()?.to_owned()
        };
        parameters.push((name.to_owned(), value));
        Ok(())
    }
}

/// A position in a field value.
struct Cursor<'a> {
    /// The input that is not consumed yet.
    rest: &'a [u8],
}

impl<'a> Cursor<'a> {
    fn skip(&mut self, matches: impl Fn(u8) -> bool) {
        let end = self
            .rest
            .iter()
            .position(|byte| !matches(*byte))
            .unwrap_or(self.rest.len());
        self.rest = &self.rest[end..];
    }

    /// Parses a token (RFC 9110 section 5.6.2).
    fn token(&mut self) -> Result<&'a str, ChallengeError> {
        let end = self
            .rest
            .iter()
            .position(|byte| !is_token_byte(*byte))
            .unwrap_or(self.rest.len());
        let (token, rest) = self.rest.split_at(end);
        self.rest = rest;
        match std::str::from_utf8(token) {
            Ok(token) if !token.is_empty() => Ok(token),
            _ => Err(ChallengeError::Malformed),
        }
    }

    /// Skips an equals sign and the optional whitespace around it. Consumes nothing if there is
    /// none.
    fn skip_equals_sign(&mut self) -> bool {
        let before = self.rest;
        self.skip(is_space);
        if let Some(rest) = self.rest.strip_prefix(b"=") {
            self.rest = rest;
            self.skip(is_space);
            return true;
        }
        self.rest = before;
        false
    }

    /// Parses whitespace and a token68 (RFC 9110 section 11.2) up to the end of the element.
    /// Returns `None` if there is none, and then consumes only the whitespace.
    fn token68(&mut self) -> Option<&'a str> {
        let scheme_end = self.rest.len();
        self.skip(is_space);
        let before = self.rest;
        self.skip(is_token68_byte);
        let letters = before.len() - self.rest.len();
        self.skip(|byte| byte == b'=');
        let token68 = &before[..before.len() - self.rest.len()];
        if before.len() < scheme_end && letters > 0 && self.at_element_end() {
            return std::str::from_utf8(token68).ok();
        }
        self.rest = before;
        None
    }

    /// Parses a quoted string (RFC 9110 section 5.6.4). `rest` starts with the opening quote.
    fn quoted_string(&mut self) -> Result<String, ChallengeError> {
        let mut text = Vec::new();
        let mut bytes = self.rest.iter().copied().enumerate().skip(1);
        while let Some((position, byte)) = bytes.next() {
            match byte {
                b'"' => {
                    self.rest = &self.rest[position + 1..];
                    return Ok(String::from_utf8_lossy(&text).into_owned());
                }
                b'\\' => {
                    let (_, escaped) = bytes.next().ok_or(ChallengeError::Malformed)?;
                    text.push(check_text_byte(escaped)?);
                }
                byte => text.push(check_text_byte(byte)?),
            }
        }
        Err(ChallengeError::Malformed)
    }

    /// Skips whitespace and returns whether a comma or the end follows.
    fn at_element_end(&mut self) -> bool {
        self.skip(is_space);
        matches!(self.rest.first(), None | Some(b','))
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn is_token68_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~+/".contains(&byte)
}

/// Accepts tab, space, visible ASCII and all bytes above ASCII.
fn check_text_byte(byte: u8) -> Result<u8, ChallengeError> {
    if byte == b'\t' || (byte >= b' ' && byte != 0x7F) {
        Ok(byte)
    } else {
        Err(ChallengeError::Malformed)
    }
}
