//! [`AuthorizeParameter`]: a parameter that the user adds to authorization requests.

use std::fmt;

/// A further parameter of authorization requests, such as `audience` or `login_hint`.
///
/// The parameters of the protocol and those that this client sets are reserved, because
/// `redirect_uri`, `state` and others decide who receives the code. Debug prints only the name.
#[derive(Clone, PartialEq, Eq)]
pub struct AuthorizeParameter {
    name: Box<str>,
    value: Box<str>,
}

/// Why a parameter cannot be added.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuthorizeParameterError {
    /// It does not have the form `KEY=VALUE`, with a key of 1 to 64 letters, digits, `-`, `_` and
    /// `.`.
    #[error("not of the form KEY=VALUE, such as audience=https://api.example.com")]
    Malformed,
    /// The value is longer than 2048 bytes or has control characters.
    #[error("the value of `{name}` is longer than 2048 bytes or has control characters")]
    Value {
        /// The parameter.
        name: Box<str>,
    },
    /// The protocol reserves the name, or another option sets it.
    #[error("`{name}` is a parameter of the protocol; it cannot be set")]
    Reserved {
        /// The parameter.
        name: Box<str>,
    },
}

/// Parameters of RFC 6749, RFC 7636, RFC 8707, RFC 9101, RFC 9126, RFC 9449, of response modes and
/// of OpenID Connect that decide who receives the code, or that this client sets.
const RESERVED: &[&str] = &[
    "response_type",
    "response_mode",
    "client_id",
    "client_secret",
    "client_assertion",
    "client_assertion_type",
    "redirect_uri",
    "scope",
    "state",
    "code",
    "code_challenge",
    "code_challenge_method",
    "code_verifier",
    "grant_type",
    "resource",
    "request",
    "request_uri",
    "registration",
    "dpop_jkt",
    "iss",
];
/// The maximum length of a name, in bytes.
const MAX_NAME: usize = 64;
/// The maximum length of a value, in bytes.
const MAX_VALUE: usize = 2048;

impl AuthorizeParameter {
    /// Parses `KEY=VALUE`. The value can be empty and can contain equals signs.
    ///
    /// # Errors
    /// Fails if the text has another form, or the parameter is reserved. Reserved names are
    /// compared case-insensitively.
    pub fn parse(text: &str) -> Result<Self, AuthorizeParameterError> {
        let (name, value) = text
            .split_once('=')
            .ok_or(AuthorizeParameterError::Malformed)?;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_plain) {
            return Err(AuthorizeParameterError::Malformed);
        }
        if RESERVED
            .iter()
            .any(|reserved| reserved.eq_ignore_ascii_case(name))
        {
            return Err(AuthorizeParameterError::Reserved { name: name.into() });
        }
        if value.len() > MAX_VALUE || value.chars().any(char::is_control) {
            return Err(AuthorizeParameterError::Value { name: name.into() });
        }
        Ok(Self {
            name: name.into(),
            value: value.into(),
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The value.
    pub fn value(&self) -> &str {
        &self.value
    }
}

/// Prints only the name, because the value can be personal.
impl fmt::Debug for AuthorizeParameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AuthorizeParameter")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_parsed() {
        for (text, name, value) in [
            ("access_type=offline", "access_type", "offline"),
            (
                "audience=https://api.example.com/?a=b",
                "audience",
                "https://api.example.com/?a=b",
            ),
            ("login_hint=", "login_hint", ""),
        ] {
            let parameter = AuthorizeParameter::parse(text).unwrap();
            assert_eq!(parameter.name(), name);
            assert_eq!(parameter.value(), value);
        }
        for text in [
            "",
            "a",
            "=b",
            "a b=c",
            "a&b=c",
            "\u{e4}=b",
            &format!("{}=b", "a".repeat(65)),
        ] {
            assert_eq!(
                AuthorizeParameter::parse(text),
                Err(AuthorizeParameterError::Malformed),
                "{text:?}"
            );
        }
        for text in ["a=\n".to_owned(), format!("a={}", "x".repeat(2049))] {
            assert!(matches!(
                AuthorizeParameter::parse(&text),
                Err(AuthorizeParameterError::Value { .. })
            ));
        }
    }

    /// I1, I2: reserved parameters cannot be replaced, in any letter case.
    #[test]
    fn reserved_parameters_are_rejected() {
        for name in RESERVED {
            for name in [(*name).to_owned(), name.to_uppercase()] {
                let parsed = AuthorizeParameter::parse(&format!("{name}=x"));
                assert!(
                    matches!(parsed, Err(AuthorizeParameterError::Reserved { .. })),
                    "{name}"
                );
            }
        }
    }

    /// J2: Debug prints no value.
    #[test]
    fn debug_prints_no_value() {
        let parameter = AuthorizeParameter::parse("login_hint=alice@example.com").unwrap();
        assert!(!format!("{parameter:?}").contains("alice"));
    }
}
