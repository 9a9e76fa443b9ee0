mod bearer;
mod builder;
mod parser;

pub use bearer::BearerChallenge;
pub use builder::{BearerChallengeBuilder, BearerError};

/// The maximum total length of all `WWW-Authenticate` values, in bytes.
const MAX_BYTES: usize = 64 * 1024;
/// The maximum number of challenges in all values.
const MAX_CHALLENGES: usize = 32;
/// The maximum number of parameters in one challenge.
const MAX_PARAMETERS: usize = 64;

/// One authentication challenge (RFC 9110 section 11.3).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    scheme: String,
    credentials: Credentials,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Credentials {
    Token68(String),
    Parameters(Vec<(String, String)>),
}

/// Why `WWW-Authenticate` values are not a valid list of challenges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChallengeError {
    /// The values are longer than 64 KiB in total.
    #[error("the challenges are longer than 64 KiB")]
    TooLarge,
    /// There are more than 32 challenges.
    #[error("there are more than 32 challenges")]
    TooMany,
    /// A challenge has more than 64 parameters.
    #[error("a challenge has more than 64 parameters")]
    TooManyParameters,
    /// A challenge has a duplicate parameter.
    #[error("a challenge has a duplicate parameter")]
    DuplicateParameter,
    /// The values do not follow the grammar of RFC 9110 section 11.6.1.
    #[error("the challenges are malformed")]
    Malformed,
}

impl ChallengeError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::TooLarge => "challenge.too_large",
            Self::TooMany => "challenge.too_many",
            Self::TooManyParameters => "challenge.too_many_parameters",
            Self::DuplicateParameter => "challenge.duplicate_parameter",
            Self::Malformed => "challenge.malformed",
        }
    }
}

impl Challenge {
    /// Returns the authentication scheme as written. Schemes are case-insensitive; see
    /// [`is_scheme`](Self::is_scheme).
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns whether the scheme is `scheme`, in any letter case.
    pub fn is_scheme(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// Returns the token68 value, which a challenge may have instead of parameters.
    pub fn token68(&self) -> Option<&str> {
        match &self.credentials {
            Credentials::Token68(token68) => Some(token68),
            Credentials::Parameters(_) => None,
        }
    }

    /// Returns the value of a parameter, unquoted and unescaped. Parameter names are
    /// case-insensitive.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params()
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// Returns all parameters in order. Names are as written; values are unquoted and unescaped.
    pub fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        let parameters = match &self.credentials {
            Credentials::Token68(_) => &[],
            Credentials::Parameters(parameters) => parameters.as_slice(),
        };
        parameters
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Parses all `WWW-Authenticate` values of a response (RFC 9110 section 11.6.1).
///
/// The values form one comma-separated list, even if they are split over several field lines. In
/// quoted strings, bytes that are not UTF-8 become U+FFFD.
///
/// # Errors
/// Fails if the values do not follow the grammar, a challenge has a duplicate parameter, or the
/// values exceed 64 KiB, 32 challenges, or 64 parameters in one challenge.
pub fn parse_challenges<'a>(
    values: impl IntoIterator<Item = &'a [u8]>,
) -> Result<Vec<Challenge>, ChallengeError> {
    let mut parser = parser::Parser::default();
    for value in values {
        parser.parse_value(value)?;
    }
    Ok(parser.finish())
}

#[cfg(test)]
mod tests;
