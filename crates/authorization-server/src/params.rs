//! [`Params`]: query and form parameters.

use url::form_urlencoded;
use zeroize::Zeroizing;

/// The parameters of a query or a form body (RFC 6749 appendix B). Values may be secrets, so they
/// are wiped on drop and there is no `Debug`.
pub struct Params(Vec<(String, Zeroizing<String>)>);

/// A parameter occurs more than once, which RFC 6749 section 3.1 does not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a parameter occurs more than once")]
pub struct DuplicateParameter;

impl Params {
    /// Parses all parameters. A parameter without a value counts as missing (RFC 6749 section 3.1).
    pub fn parse(encoded: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(encoded).filter(|(_, value)| !value.is_empty());
        Self(
            pairs
                .map(|(name, value)| (name.into_owned(), Zeroizing::new(value.into_owned())))
                .collect(),
        )
    }

    /// Returns the parameter's value, if present.
    ///
    /// # Errors
    /// Fails when the parameter occurs more than once.
    pub fn get(&self, name: &str) -> Result<Option<&str>, DuplicateParameter> {
        let mut values = self
            .0
            .iter()
            .filter(|(other, _)| other == name)
            .map(|(_, value)| value.as_str());
        let first = values.next();
        if values.next().is_some() {
            Err(DuplicateParameter)
        } else {
            Ok(first)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded() {
        let params = Params::parse(b"a=b%20c+d&state=%26%3D");
        assert_eq!(params.get("a"), Ok(Some("b c d")));
        assert_eq!(params.get("state"), Ok(Some("&=")));
        assert_eq!(params.get("b"), Ok(None));
    }

    #[test]
    fn a_parameter_without_a_value_is_missing() {
        let params = Params::parse(b"a=&b&a=1");
        assert_eq!(params.get("a"), Ok(Some("1")));
        assert_eq!(params.get("b"), Ok(None));
    }

    #[test]
    fn a_duplicate_parameter_is_an_error() {
        assert_eq!(Params::parse(b"a=1&a=1").get("a"), Err(DuplicateParameter));
    }
}
