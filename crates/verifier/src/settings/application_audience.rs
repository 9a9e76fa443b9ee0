//! [`ApplicationAudience`]: an authorization server's own name for a protected resource.

use std::fmt;

use portcullis_metadata::syntax::is_uuid;

/// A provider's own name for the protected resource in `aud`: a UUID or an `api://` URI.
///
/// Microsoft Entra ID writes the application's client ID into `aud`, or its application ID URI, and
/// never the resource URL
/// (<https://learn.microsoft.com/en-us/entra/identity-platform/access-token-claims-reference>). A
/// UUID matches without regard to letter case (RFC 9562 section 4), a URI only if it is identical.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplicationAudience(Box<str>);

/// Why a string is not an application's name: it is neither a UUID nor an `api://` URI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an application's audience must be a UUID or an `api://` URI")]
#[non_exhaustive]
pub struct ApplicationAudienceError;

impl ApplicationAudience {
    /// Parses a UUID in its 36-character form, or an `api://` URI without query and fragment.
    ///
    /// # Errors
    /// Fails for every other string, in particular generic words.
    pub fn parse(text: &str) -> Result<Self, ApplicationAudienceError> {
        if is_uuid(text) || is_api_uri(text) {
            Ok(Self(text.into()))
        } else {
            Err(ApplicationAudienceError)
        }
    }

    /// Returns the name as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether an `aud` entry is this name.
    pub(crate) fn matches(&self, audience: &str) -> bool {
        let is_identical = *self.0 == *audience;
        is_identical || (is_uuid(&self.0) && self.0.eq_ignore_ascii_case(audience))
    }
}

impl fmt::Display for ApplicationAudience {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether a text is an `api://` URI with a name and without query and fragment.
fn is_api_uri(text: &str) -> bool {
    let is_allowed =
        |byte: u8| byte.is_ascii_alphanumeric() || b"-._~/:@!$&'()*+,;=%".contains(&byte);
    text.strip_prefix("api://").is_some_and(|name| {
        !name.is_empty() && !name.starts_with('/') && name.bytes().all(is_allowed)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "11112222-bbbb-3333-cccc-4444dddd5555";

    /// C6: a UUID and an `api://` URI are names of an application; a generic word is not.
    #[test]
    fn only_uuids_and_api_uris_are_names() {
        for text in [
            UUID,
            "api://11112222-bbbb-3333-cccc-4444dddd5555",
            "api://contoso.com/mcp",
            "api://default",
        ] {
            assert_eq!(ApplicationAudience::parse(text).unwrap().as_str(), text);
        }
        for text in [
            "",
            "api",
            "account",
            "default",
            "*",
            "api:",
            "api://",
            "api:///mcp",
            "API://mcp",
            "api://a b",
            "api://a?b",
            "api://a#b",
            "api://a\\b",
            "api://\u{e4}",
            "https://mcp.example.com",
            "11112222bbbb3333cccc4444dddd5555",
            "{11112222-bbbb-3333-cccc-4444dddd5555}",
            "urn:uuid:11112222-bbbb-3333-cccc-4444dddd5555",
            "11112222-bbbb-3333-cccc-4444dddd555g",
            "11112222-bbbb-3333-cccc-4444dddd5555 ",
            "1111222-2bbbb-3333-cccc-4444dddd5555",
            "------------------------------------",
        ] {
            assert!(ApplicationAudience::parse(text).is_err(), "{text:?}");
        }
    }

    /// C6: letter case counts in a URI and not in a UUID; prefixes and slashes always count.
    #[test]
    fn names_are_compared() {
        let uuid = ApplicationAudience::parse(UUID).unwrap();
        assert!(uuid.matches(UUID));
        assert!(uuid.matches(&UUID.to_uppercase()));
        let uri = ApplicationAudience::parse("api://contoso/mcp").unwrap();
        assert!(uri.matches("api://contoso/mcp"));
        for other in [
            "api://contoso/MCP",
            "api://contoso/mcp/",
            "api://contoso",
            "contoso/mcp",
            "",
        ] {
            assert!(!uri.matches(other), "{other}");
        }
        let prefixed = format!("api://{UUID}");
        assert!(!uuid.matches(&prefixed));
        assert!(!uuid.matches(&format!("{UUID}/")));
    }
}
