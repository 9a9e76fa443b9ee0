use std::fmt;

use url::Url;

use crate::{
    client::ClientMetadata,
    identifier::{is_https_or_loopback_http, uri},
    json::{DocumentError, Members},
};

/// A client identifier that is the URL of a client ID metadata document
/// (draft-ietf-oauth-client-id-metadata-document section 3).
///
/// The string is kept unchanged and compared byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ClientIdUrl {
    text: String,
    url: Url,
}

/// A client ID metadata document (draft-ietf-oauth-client-id-metadata-document section 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientIdMetadataDocument {
    /// The URL at which the document is served.
    pub client_id: ClientIdUrl,
    /// The client's metadata.
    pub metadata: ClientMetadata,
}

/// Why a client identifier or its document is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClientDocumentError {
    /// The identifier is not an absolute URL in visible ASCII.
    #[error("the client identifier is not an absolute URL")]
    NotAUrl,
    /// The identifier is not an `https` URL.
    #[error("the client identifier is not an https URL")]
    InsecureScheme,
    /// The identifier has no path, or only `/`.
    #[error("the client identifier has no path")]
    NoPath,
    /// The identifier's path has a `.` or `..` segment, possibly percent-encoded.
    #[error("the client identifier's path has a dot segment")]
    DotSegment,
    /// The identifier has a fragment.
    #[error("the client identifier has a fragment")]
    Fragment,
    /// The identifier contains a user name or password.
    #[error("the client identifier contains user information")]
    UserInformation,
    /// The document is not valid client metadata.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The document's `client_id` is not the URL from which it was fetched.
    #[error("the document's `client_id` is not the URL of the document")]
    OtherClient,
    /// The document has a client secret, or an authentication method that needs one. A published
    /// document cannot contain a secret.
    #[error("the document requires a client secret")]
    SharedSecret,
}

impl ClientDocumentError {
    /// Returns a stable code for logs and tests.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotAUrl => "client_id.not_a_url",
            Self::InsecureScheme => "client_id.insecure_scheme",
            Self::NoPath => "client_id.no_path",
            Self::DotSegment => "client_id.dot_segment",
            Self::Fragment => "client_id.fragment",
            Self::UserInformation => "client_id.user_information",
            Self::Document(error) => error.code(),
            Self::OtherClient => "client_document.other_client",
            Self::SharedSecret => "client_document.shared_secret",
        }
    }
}

impl ClientIdUrl {
    /// Parses a client identifier. A port and a query are allowed.
    ///
    /// # Errors
    /// Fails if the string is not an absolute `https` URL with a path, or has a dot segment, a
    /// fragment or user information.
    pub fn parse(text: &str) -> Result<Self, ClientDocumentError> {
        Self::parse_with(text, |url| url.scheme() == "https")
    }

    /// Like [`parse`](Self::parse), but also accepts `http` URLs with a loopback host. For
    /// development.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_or_loopback_http(text: &str) -> Result<Self, ClientDocumentError> {
        Self::parse_with(text, is_https_or_loopback_http)
    }

    /// Returns the identifier exactly as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the parsed URL, for fetching the document.
    pub fn url(&self) -> &Url {
        &self.url
    }

    fn parse_with(
        text: &str,
        is_secure: impl Fn(&Url) -> bool,
    ) -> Result<Self, ClientDocumentError> {
        let url = uri::parse(text).map_err(|_| ClientDocumentError::NotAUrl)?;
        if !is_secure(&url) {
            return Err(ClientDocumentError::InsecureScheme);
        }
        if url.fragment().is_some() {
            return Err(ClientDocumentError::Fragment);
        }
        if uri::has_user_information(text) {
            return Err(ClientDocumentError::UserInformation);
        }
        let path = uri::path(text);
        if path.len() < 2 {
            return Err(ClientDocumentError::NoPath);
        }
        if path.split('/').any(is_dot_segment) {
            return Err(ClientDocumentError::DotSegment);
        }
        Ok(Self {
            text: text.to_owned(),
            url,
        })
    }
}

impl fmt::Display for ClientIdUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl ClientIdMetadataDocument {
    /// Parses the document that was fetched from `client_id`. Does not check the redirect URIs.
    /// Accepts a document without `token_endpoint_auth_method`, which RFC 7591 reads as
    /// `client_secret_basic`: such a client has no secret.
    ///
    /// # Errors
    /// Fails if the document is not a JSON object without duplicate members, a known member has the
    /// wrong type, `client_id` is missing or not identical to the URL, the name or the redirect
    /// URIs are missing, or the document requires a client secret.
    pub fn parse(document: &[u8], client_id: &ClientIdUrl) -> Result<Self, ClientDocumentError> {
        let mut members = Members::parse(document)?;
        if members.required_string("client_id")? != client_id.as_str() {
            return Err(ClientDocumentError::OtherClient);
        }
        if members.contains("client_secret") || members.contains("client_secret_expires_at") {
            return Err(ClientDocumentError::SharedSecret);
        }
        let metadata = ClientMetadata::from_members(members)?;
        if metadata.client_name.is_none() {
            return Err(DocumentError::Missing {
                member: "client_name",
            }
            .into());
        }
        if metadata.redirect_uris.is_empty() {
            return Err(DocumentError::Missing {
                member: "redirect_uris",
            }
            .into());
        }
        if metadata
            .token_endpoint_auth_method
            .as_deref()
            .is_some_and(|method| method.starts_with("client_secret_"))
        {
            return Err(ClientDocumentError::SharedSecret);
        }
        Ok(Self {
            client_id: client_id.clone(),
            metadata,
        })
    }

    /// Serializes the document to serve at [`client_id`](Self::client_id).
    pub fn to_json(&self) -> Vec<u8> {
        let mut object = self.metadata.to_object();
        object.string("client_id", Some(self.client_id.as_str()));
        object.into_json()
    }
}

fn is_dot_segment(segment: &str) -> bool {
    let decoded = segment.to_ascii_lowercase().replace("%2e", ".");
    decoded == "." || decoded == ".."
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::json::arbitrary;

    const URL: &str = "https://client.example/oauth/client.json";

    fn document() -> Value {
        json!({"client_id": URL, "client_name": "Name", "redirect_uris": ["http://127.0.0.1/callback"], "x": 1})
    }

    fn parse(document: &Value) -> Result<ClientIdMetadataDocument, ClientDocumentError> {
        ClientIdMetadataDocument::parse(
            document.to_string().as_bytes(),
            &ClientIdUrl::parse(URL).unwrap(),
        )
    }

    /// The draft's rules for client identifier URLs are enforced.
    #[test]
    fn invalid_identifiers_are_rejected() {
        for text in [
            URL,
            "https://client.example:8443/a?b",
            "https://client.example/a/...",
            "https://client.example/.a",
        ] {
            assert_eq!(ClientIdUrl::parse(text).unwrap().as_str(), text);
        }
        for (text, code) in [
            ("client", "client_id.not_a_url"),
            ("https:client.example/a", "client_id.not_a_url"),
            ("https://client.example/a b", "client_id.not_a_url"),
            ("http://client.example/a", "client_id.insecure_scheme"),
            ("http://127.0.0.1/a", "client_id.insecure_scheme"),
            ("https://client.example", "client_id.no_path"),
            ("https://client.example/", "client_id.no_path"),
            ("https://client.example/?a", "client_id.no_path"),
            ("https://client.example/a/../b", "client_id.dot_segment"),
            ("https://client.example/./b", "client_id.dot_segment"),
            ("https://client.example/a/%2E%2e/b", "client_id.dot_segment"),
            ("https://client.example/a/.%2e", "client_id.dot_segment"),
            ("https://client.example/a#b", "client_id.fragment"),
            ("https://client.example/a#", "client_id.fragment"),
            ("https://u:p@client.example/a", "client_id.user_information"),
            ("https://@client.example/a", "client_id.user_information"),
        ] {
            assert_eq!(ClientIdUrl::parse(text).unwrap_err().code(), code, "{text}");
        }
    }

    /// `parse_or_loopback_http` accepts `http` with a loopback host only.
    #[test]
    fn loopback_http_is_optional() {
        assert!(ClientIdUrl::parse_or_loopback_http("http://127.0.0.1:9000/a").is_ok());
        assert!(ClientIdUrl::parse_or_loopback_http("http://client.example/a").is_err());
    }

    /// The document names its own URL byte for byte and has all required members.
    #[test]
    fn invalid_documents_are_rejected() {
        let parsed = parse(&document()).unwrap();
        assert_eq!(parsed.metadata.client_name.as_deref(), Some("Name"));
        assert_eq!(
            serde_json::from_slice::<Value>(&parsed.to_json()).unwrap(),
            document()
        );
        for (member, value, code) in [
            (
                "client_id",
                json!("https://client.example:443/oauth/client.json"),
                "client_document.other_client",
            ),
            (
                "client_id",
                json!("https://other.example/oauth/client.json"),
                "client_document.other_client",
            ),
            ("client_id", json!(null), "document.member_missing"),
            ("client_name", json!(null), "document.member_missing"),
            ("redirect_uris", json!([]), "document.member_missing"),
            (
                "redirect_uris",
                json!("http://127.0.0.1/callback"),
                "document.member_type",
            ),
            (
                "client_secret",
                json!("hush"),
                "client_document.shared_secret",
            ),
            (
                "client_secret_expires_at",
                json!(0),
                "client_document.shared_secret",
            ),
            (
                "token_endpoint_auth_method",
                json!("client_secret_basic"),
                "client_document.shared_secret",
            ),
            (
                "token_endpoint_auth_method",
                json!("client_secret_jwt"),
                "client_document.shared_secret",
            ),
        ] {
            let mut document = document();
            document[member] = value;
            assert_eq!(parse(&document).unwrap_err().code(), code, "{document}");
        }
    }

    proptest! {
        /// Any document round-trips.
        #[test]
        fn documents_round_trip(name: String, redirect_uris in arbitrary::entries(), extra in arbitrary::extra()) {
            let client_id = ClientIdUrl::parse(URL).unwrap();
            let metadata = ClientMetadata { client_name: Some(name), redirect_uris, extra, ..Default::default() };
            let built = ClientIdMetadataDocument { client_id: client_id.clone(), metadata };
            prop_assert_eq!(ClientIdMetadataDocument::parse(&built.to_json(), &client_id), Ok(built));
        }

        #[test]
        fn no_identifier_panics(text in "(https?://)?[a-z.:@/?#%2eE\\[\\] ä]{0,30}") {
            let _ = ClientIdUrl::parse_or_loopback_http(&text);
        }
    }
}
