use url::form_urlencoded;
use zeroize::Zeroizing;

/// The parameters of a query or a form body (RFC 6749 appendix B). Values may be secrets: they are wiped
/// when dropped, and there is no `Debug`.
pub(crate) struct Params(Vec<(String, Zeroizing<String>)>);

/// A parameter that may come once came more often (RFC 6749 section 3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Repeated;

impl Params {
    /// Reads all pairs. A parameter without a value counts as absent (RFC 6749 section 3.1).
    pub(crate) fn parse(encoded: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(encoded).filter(|(_, value)| !value.is_empty());
        Self(pairs.map(|(name, value)| (name.into_owned(), Zeroizing::new(value.into_owned()))).collect())
    }

    /// The parameter's value, where it is present.
    pub(crate) fn one(&self, name: &str) -> Result<Option<&str>, Repeated> {
        let mut values = self.0.iter().filter(|(held, _)| held == name).map(|(_, value)| value.as_str());
        let first = values.next();
        if values.next().is_some() { Err(Repeated) } else { Ok(first) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_encoded_values() {
        let params = Params::parse(b"a=b%20c+d&state=%26%3D");
        assert_eq!(params.one("a"), Ok(Some("b c d")));
        assert_eq!(params.one("state"), Ok(Some("&=")));
        assert_eq!(params.one("b"), Ok(None));
    }

    #[test]
    fn a_parameter_without_value_is_absent() {
        let params = Params::parse(b"a=&b&a=1");
        assert_eq!(params.one("a"), Ok(Some("1")));
        assert_eq!(params.one("b"), Ok(None));
    }

    #[test]
    fn a_repeated_parameter_is_told() {
        assert_eq!(Params::parse(b"a=1&a=1").one("a"), Err(Repeated));
    }
}
