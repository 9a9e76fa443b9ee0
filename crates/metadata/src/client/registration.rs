use std::fmt;

use crate::{
    authorization::OAuthError,
    client::ClientMetadata,
    json::{DocumentError, Members},
    secret::Secret,
    time::UnixTime,
};

/// A dynamic client registration request (RFC 7591 section 3.1). `Debug` does not print the
/// software statement.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClientRegistrationRequest {
    /// The client's metadata.
    pub metadata: ClientMetadata,
    /// A JWT with client metadata, signed by a third party. It is neither parsed nor verified.
    pub software_statement: Option<String>,
}

impl ClientRegistrationRequest {
    /// Parses a request body. Does not check URIs or combinations of members.
    ///
    /// # Errors
    /// Fails if the body is not a JSON object without duplicate members, or a known member has the
    /// wrong type.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut members = Members::parse(body)?;
        Ok(Self {
            software_statement: members.string("software_statement")?,
            metadata: ClientMetadata::from_members(members)?,
        })
    }

    /// Serializes the request body.
    pub fn to_json(&self) -> Vec<u8> {
        let Self {
            metadata,
            software_statement,
        } = self;
        let mut object = metadata.to_object();
        object.string("software_statement", software_statement.as_deref());
        object.into_json()
    }
}

impl fmt::Debug for ClientRegistrationRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let software_statement = self
            .software_statement
            .as_ref()
            .map(|_| format_args!("[redacted]"));
        f.debug_struct("ClientRegistrationRequest")
            .field("metadata", &self.metadata)
            .field("software_statement", &software_statement)
            .finish()
    }
}

/// A client information response (RFC 7591 section 3.2.1, RFC 7592 section 3).
///
/// `Debug` prints neither secrets nor the values of unknown members.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientRegistrationResponse {
    /// The client identifier at this authorization server.
    pub client_id: String,
    /// The client secret. Public clients have none.
    pub client_secret: Option<Secret>,
    /// When the client identifier was issued.
    pub client_id_issued_at: Option<UnixTime>,
    /// When the secret expires. `None` means never, which is 0 in the JSON document.
    pub client_secret_expires_at: Option<UnixTime>,
    /// The token with which the client reads, updates or deletes its registration (RFC 7592).
    pub registration_access_token: Option<Secret>,
    /// The URL of the client configuration endpoint (RFC 7592). It is neither parsed nor checked.
    pub registration_client_uri: Option<String>,
    /// The registered metadata, which may differ from the requested metadata.
    pub metadata: ClientMetadata,
}

impl ClientRegistrationResponse {
    /// Creates a response without dates and without the members of RFC 7592.
    pub fn new(
        client_id: impl Into<String>,
        client_secret: Option<Secret>,
        metadata: ClientMetadata,
    ) -> Self {
        Self {
            client_id: client_id.into(),
            client_secret,
            client_id_issued_at: None,
            client_secret_expires_at: None,
            registration_access_token: None,
            registration_client_uri: None,
            metadata,
        }
    }

    /// Parses the body of a successful response.
    ///
    /// # Errors
    /// Fails if the body is not a JSON object without duplicate members, `client_id` is missing or
    /// empty, or a known member has the wrong type or is not a valid date.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut members = Members::parse(body)?;
        Ok(Self {
            client_id: members.required_string("client_id")?,
            client_secret: members.string("client_secret")?.map(Secret::new),
            client_id_issued_at: members.numeric_date("client_id_issued_at")?,
            client_secret_expires_at: members
                .numeric_date("client_secret_expires_at")?
                .filter(|date| *date != UnixTime::default()),
            registration_access_token: members
                .string("registration_access_token")?
                .map(Secret::new),
            registration_client_uri: members.string("registration_client_uri")?,
            metadata: ClientMetadata::from_members(members)?,
        })
    }

    /// Serializes the response body, including the secrets.
    pub fn to_json(&self) -> Vec<u8> {
        let Self {
            client_id,
            client_secret,
            client_id_issued_at,
            client_secret_expires_at,
            registration_access_token,
            registration_client_uri,
            metadata,
        } = self;
        // RFC 7591 requires the date with every secret.
        let never = client_secret.as_ref().map(|_| UnixTime::default());
        let mut object = metadata.to_object();
        object.string("client_id", Some(client_id));
        object.string("client_secret", client_secret.as_ref().map(Secret::secret));
        object.numeric_date("client_id_issued_at", *client_id_issued_at);
        object.numeric_date(
            "client_secret_expires_at",
            client_secret_expires_at.or(never),
        );
        object.string(
            "registration_access_token",
            registration_access_token.as_ref().map(Secret::secret),
        );
        object.string(
            "registration_client_uri",
            registration_client_uri.as_deref(),
        );
        object.into_json()
    }

    /// Returns whether the client has a secret that has expired at `now`.
    pub fn secret_has_expired(&self, now: UnixTime) -> bool {
        self.client_secret.is_some() && self.client_secret_expires_at.is_some_and(|end| end <= now)
    }
}

impl fmt::Debug for ClientRegistrationResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientRegistrationResponse")
            .field("client_id", &self.client_id)
            .field("client_secret", &self.client_secret)
            .field("client_id_issued_at", &self.client_id_issued_at)
            .field("client_secret_expires_at", &self.client_secret_expires_at)
            .field("registration_access_token", &self.registration_access_token)
            .field("registration_client_uri", &self.registration_client_uri)
            .field("redirect_uris", &self.metadata.redirect_uris)
            .field(
                "token_endpoint_auth_method",
                &self.metadata.token_endpoint_auth_method,
            )
            .field("extra", &self.metadata.extra.keys())
            .finish_non_exhaustive()
    }
}

/// A client registration error (RFC 7591 section 3.2.2). `Display` explains the error code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistrationError(pub OAuthError);

impl RegistrationError {
    /// Parses the body of an error response.
    ///
    /// # Errors
    /// As [`OAuthError::parse`].
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        OAuthError::parse(body).map(Self)
    }

    /// Explains the error codes of RFC 7591, and `invalid_token` and `insufficient_scope` of RFC
    /// 6750. Returns `None` for any other code.
    pub fn explanation(&self) -> Option<&'static str> {
        match self.0.error.as_str() {
            "invalid_redirect_uri" => {
                Some("the authorization server does not accept a redirect URI of this client")
            }
            "invalid_client_metadata" => {
                Some("the authorization server does not accept this client's metadata")
            }
            "invalid_software_statement" => {
                Some("the authorization server cannot use the software statement")
            }
            "unapproved_software_statement" => {
                Some("the authorization server has not approved this client software")
            }
            "invalid_token" | "insufficient_scope" => {
                Some("the authorization server requires an initial access token for registration")
            }
            _ => None,
        }
    }
}

impl fmt::Display for RegistrationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.explanation() {
            Some(explanation) => write!(f, "{explanation} ({})", self.0),
            None => write!(
                f,
                "the authorization server refused to register this client ({})",
                self.0
            ),
        }
    }
}

impl std::error::Error for RegistrationError {}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*};
    use serde_json::{Value, json};

    use super::*;
    use crate::json::arbitrary;

    /// A request has the members that are set and no empty ones.
    #[test]
    fn a_request_is_serialized() {
        let metadata = ClientMetadata {
            client_name: Some("Name".into()),
            redirect_uris: vec!["http://127.0.0.1:1/callback".into()],
            grant_types: vec!["authorization_code".into(), "refresh_token".into()],
            response_types: vec!["code".into()],
            token_endpoint_auth_method: Some("none".into()),
            application_type: Some("native".into()),
            scope: Some("a b".into()),
            ..Default::default()
        };
        let request = ClientRegistrationRequest {
            metadata,
            software_statement: None,
        };
        let expected = json!({
            "client_name": "Name",
            "redirect_uris": ["http://127.0.0.1:1/callback"],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "scope": "a b",
        });
        assert_eq!(
            serde_json::from_slice::<Value>(&request.to_json()).unwrap(),
            expected
        );
    }

    /// Every member of RFC 7591 is parsed, and unknown members are kept.
    #[test]
    fn a_response_round_trips() {
        let body = json!({
            "client_id": "c", "client_secret": "hush", "client_id_issued_at": 5, "client_secret_expires_at": 10,
            "registration_access_token": "hush2", "registration_client_uri": "https://as.example/c",
            "redirect_uris": ["http://127.0.0.1/cb"], "token_endpoint_auth_method": "client_secret_basic",
            "grant_types": ["authorization_code"], "response_types": ["code"], "client_name": "N",
            "client_name#de": "M", "client_uri": "https://c.example", "logo_uri": "https://c.example/l",
            "scope": "a", "contacts": ["a@c.example"], "tos_uri": "https://c.example/t",
            "policy_uri": "https://c.example/p", "jwks_uri": "https://c.example/j", "jwks": {"keys": []},
            "software_id": "s", "software_version": "1", "application_type": "web",
            "require_pushed_authorization_requests": false, "empty": [],
        });
        let parsed = ClientRegistrationResponse::parse(body.to_string().as_bytes()).unwrap();
        assert_eq!(parsed.client_secret, Some(Secret::new("hush")));
        assert_eq!(parsed.metadata.extra.len(), 3);
        assert_eq!(
            serde_json::from_slice::<Value>(&parsed.to_json()).unwrap(),
            body
        );
        assert!(!format!("{parsed:?}").contains("hush"));
    }

    /// J2: `Debug` does not print the software statement.
    #[test]
    fn debug_does_not_print_the_software_statement() {
        let request =
            ClientRegistrationRequest::parse(br#"{"client_name":"N","software_statement":"hush"}"#)
                .unwrap();
        assert_eq!(request.software_statement.as_deref(), Some("hush"));
        let shown = format!("{request:?}");
        assert!(shown.contains("[redacted]"), "{shown}");
        assert!(!shown.contains("hush"), "{shown}");
    }

    /// 0 means that the secret does not expire.
    #[test]
    fn secrets_expire() {
        let response = |expires_at: u64| {
            let body = json!({"client_id": "c", "client_secret": "s", "client_secret_expires_at": expires_at});
            ClientRegistrationResponse::parse(body.to_string().as_bytes()).unwrap()
        };
        assert!(response(10).secret_has_expired(UnixTime::from_secs(10)));
        assert!(!response(10).secret_has_expired(UnixTime::from_secs(9)));
        assert!(!response(0).secret_has_expired(UnixTime::from_secs(9_999_999_999)));
        let written: Value = serde_json::from_slice(&response(0).to_json()).unwrap();
        assert_eq!(written["client_secret_expires_at"], 0);
    }

    #[test]
    fn malformed_responses_are_rejected() {
        for body in [
            "",
            "[]",
            "{}",
            r#"{"client_id":""}"#,
            r#"{"client_id":7}"#,
            r#"{"client_id":"a","client_secret":1}"#,
        ] {
            assert!(
                ClientRegistrationResponse::parse(body.as_bytes()).is_err(),
                "{body}"
            );
        }
    }

    /// Known codes are explained.
    #[test]
    fn errors_are_explained() {
        let shown = |body: &str| {
            RegistrationError::parse(body.as_bytes())
                .unwrap()
                .to_string()
        };
        assert_eq!(
            shown(r#"{"error":"invalid_redirect_uri","error_description":"no port"}"#),
            "the authorization server does not accept a redirect URI of this client (invalid_redirect_uri: no port)"
        );
        assert_eq!(
            shown(r#"{"error":"slow_down"}"#),
            "the authorization server refused to register this client (slow_down)"
        );
    }

    proptest! {
        /// Any request and response round-trips.
        #[test]
        fn requests_and_responses_round_trip(
            redirect_uris in prop::collection::vec(any::<String>(), 0..3),
            client_name: Option<String>,
            software_statement: Option<String>,
            client_id in ".{1,10}",
            secret: Option<String>,
            expires in option::of(1..100_000u64),
            extra in arbitrary::extra(),
        ) {
            let metadata = ClientMetadata { redirect_uris, client_name, extra, ..Default::default() };
            let request = ClientRegistrationRequest { metadata: metadata.clone(), software_statement };
            prop_assert_eq!(ClientRegistrationRequest::parse(&request.to_json()), Ok(request));
            let response = ClientRegistrationResponse {
                client_secret_expires_at: expires.map(UnixTime::from_secs),
                ..ClientRegistrationResponse::new(client_id, secret.map(Secret::new), metadata)
            };
            prop_assert_eq!(ClientRegistrationResponse::parse(&response.to_json()), Ok(response));
        }
    }
}
