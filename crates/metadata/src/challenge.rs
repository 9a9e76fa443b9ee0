mod bearer;
mod builder;
mod parser;

pub use bearer::BearerChallenge;
pub use builder::{BearerChallengeBuilder, BearerError};

/// The most bytes that all `WWW-Authenticate` values together may have.
const MAX_BYTES: usize = 64 * 1024;
/// The most challenges that all values together may hold.
const MAX_CHALLENGES: usize = 32;
/// The most parameters of one challenge.
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

/// Why `WWW-Authenticate` values are not a list of challenges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChallengeError {
    /// The values are longer than 64 KiB together.
    #[error("the challenges are longer than 64 KiB")]
    TooLarge,
    /// There are more than 32 challenges.
    #[error("there are more than 32 challenges")]
    TooMany,
    /// A challenge has more than 64 parameters.
    #[error("a challenge has more than 64 parameters")]
    TooManyParameters,
    /// A challenge has a parameter twice.
    #[error("a challenge has a parameter twice")]
    DuplicateParameter,
    /// The values do not follow the grammar of RFC 9110 section 11.6.1.
    #[error("the challenges are malformed")]
    Malformed,
}

impl ChallengeError {
    /// A stable code for logs and tests.
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
    /// The authentication scheme as it was written. Compare it without regard to letter case.
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Whether the scheme is `scheme`, in any letter case.
    pub fn is_scheme(&self, scheme: &str) -> bool {
        self.scheme.eq_ignore_ascii_case(scheme)
    }

    /// The token68 text of a challenge that has one in place of parameters.
    pub fn token68(&self) -> Option<&str> {
        match &self.credentials {
            Credentials::Token68(text) => Some(text),
            Credentials::Parameters(_) => None,
        }
    }

    /// The value of a parameter, without quotes and escapes. Names are compared without regard to letter
    /// case.
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params().find(|(held, _)| held.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// All parameters in order: names as written, values without quotes and escapes.
    pub fn params(&self) -> impl Iterator<Item = (&str, &str)> {
        let parameters = match &self.credentials {
            Credentials::Token68(_) => &[],
            Credentials::Parameters(parameters) => parameters.as_slice(),
        };
        parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// Reads all `WWW-Authenticate` values of one response (RFC 9110 section 11.6.1).
///
/// The values count as one comma-separated list, however they are split over header lines. Bytes of a
/// quoted string that are not UTF-8 become U+FFFD.
///
/// # Errors
/// When the values do not follow the grammar, a challenge has a parameter twice, or there are more than
/// 64 KiB, 32 challenges, or 64 parameters of one challenge.
pub fn parse_challenges<'a>(values: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Challenge>, ChallengeError> {
    let mut parser = parser::Parser::default();
    for value in values {
        parser.value(value)?;
    }
    Ok(parser.finish())
}

#[cfg(test)]
mod tests;
