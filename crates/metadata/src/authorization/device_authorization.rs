//! [`DeviceAuthorizationResponse`]: a successful response of a device authorization endpoint.

use std::fmt;

use serde_json::{Map, Value};

use crate::{
    json::{DocumentError, Members, ObjectBuilder},
    secret::Secret,
};

/// A device authorization response (RFC 8628 section 3.2). `Debug` does not print the device code.
#[derive(Clone, PartialEq, Eq)]
pub struct DeviceAuthorizationResponse {
    /// The code with which the client polls the token endpoint.
    pub device_code: Secret,
    /// The code that the user enters or compares.
    pub user_code: String,
    /// The URL of the page for the user. It is neither parsed nor checked.
    pub verification_uri: String,
    /// The same with the user code. It is neither parsed nor checked.
    pub verification_uri_complete: Option<String>,
    /// The lifetime of both codes in seconds.
    pub expires_in: u64,
    /// The minimum time between two polls in seconds. `None` means 5.
    pub interval: Option<u64>,
}

impl DeviceAuthorizationResponse {
    /// Parses the body of a successful response. Unknown members are ignored. `verification_url` is
    /// accepted for `verification_uri`, as Google sends it.
    ///
    /// # Errors
    /// Fails if the body is not a JSON object without duplicate members, a code, the URL or
    /// `expires_in` is missing or empty, a number is negative, or a known member has the wrong
    /// type.
    pub fn parse(body: &[u8]) -> Result<Self, DocumentError> {
        let mut members = Members::parse(body)?;
        let is_of_google =
            members.contains("verification_url") && !members.contains("verification_uri");
        let verification_uri = if is_of_google {
            "verification_url"
        } else {
            "verification_uri"
        };
        Ok(Self {
            device_code: Secret::new(members.required_string("device_code")?),
            user_code: members.required_string("user_code")?,
            verification_uri: members.required_string(verification_uri)?,
            verification_uri_complete: members.string("verification_uri_complete")?,
            expires_in: members
                .seconds("expires_in")?
                .ok_or(DocumentError::Missing {
                    member: "expires_in",
                })?,
            interval: members.seconds("interval")?,
        })
    }

    /// Serializes the response body, including the device code.
    pub fn to_json(&self) -> Vec<u8> {
        let Self {
            device_code,
            user_code,
            verification_uri,
            verification_uri_complete,
            expires_in,
            interval,
        } = self;
        let mut object = ObjectBuilder::new(&Map::new());
        object.string("device_code", Some(device_code.secret()));
        object.string("user_code", Some(user_code));
        object.string("verification_uri", Some(verification_uri));
        object.string(
            "verification_uri_complete",
            verification_uri_complete.as_deref(),
        );
        object.value("expires_in", Some(Value::from(*expires_in)));
        object.value("interval", interval.map(Value::from));
        object.into_json()
    }
}

impl fmt::Debug for DeviceAuthorizationResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceAuthorizationResponse")
            .field("device_code", &self.device_code)
            .field("user_code", &self.user_code)
            .field("verification_uri", &self.verification_uri)
            .field("expires_in", &self.expires_in)
            .field("interval", &self.interval)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*};
    use serde_json::json;

    use super::*;

    fn parse(body: &Value) -> Result<DeviceAuthorizationResponse, DocumentError> {
        DeviceAuthorizationResponse::parse(body.to_string().as_bytes())
    }

    fn response() -> Value {
        json!({
            "device_code": "hush", "user_code": "BCDF-GHJK", "verification_uri": "https://as.example/device",
            "verification_uri_complete": "https://as.example/device?user_code=BCDF-GHJK", "expires_in": 600, "interval": 5,
        })
    }

    #[test]
    fn a_response_is_parsed() {
        let parsed = parse(&response()).unwrap();
        assert_eq!(parsed.device_code.secret(), "hush");
        assert_eq!(&*parsed.user_code, "BCDF-GHJK");
        assert_eq!(parsed.expires_in, 600);
        assert_eq!(parsed.interval, Some(5));
        assert!(!format!("{parsed:?}").contains("hush"));
        let google = json!({"device_code": "a", "user_code": "b", "verification_url": "https://as.example/", "expires_in": 1});
        assert_eq!(
            parse(&google).unwrap().verification_uri,
            "https://as.example/"
        );
    }

    #[test]
    fn durations_of_any_length_are_parsed() {
        for (value, expected) in [
            (json!(u64::MAX), u64::MAX),
            (json!(1e30), u64::MAX),
            (json!(59.9), 59),
            (json!(0), 0),
        ] {
            let mut body = response();
            body["expires_in"] = value;
            assert_eq!(parse(&body).unwrap().expires_in, expected);
        }
    }

    #[test]
    fn malformed_responses_are_rejected() {
        for (member, value, error) in [
            ("device_code", json!(null), "`device_code` is missing"),
            ("device_code", json!(""), "`device_code` is empty"),
            ("user_code", json!(1), "`user_code` is not a string"),
            (
                "verification_uri",
                json!(null),
                "`verification_uri` is missing",
            ),
            ("verification_uri", json!(""), "`verification_uri` is empty"),
            ("expires_in", json!(null), "`expires_in` is missing"),
            (
                "expires_in",
                json!(-1),
                "`expires_in` is not a non-negative number",
            ),
            (
                "interval",
                json!("5"),
                "`interval` is not a non-negative number",
            ),
        ] {
            let mut body = response();
            body[member] = value;
            assert_eq!(parse(&body).unwrap_err().to_string(), error, "{body}");
        }
        let without_uri = parse(&json!({"device_code": "a", "user_code": "b", "expires_in": 1}));
        assert_eq!(
            without_uri,
            Err(DocumentError::Missing {
                member: "verification_uri"
            })
        );
        assert_eq!(
            DeviceAuthorizationResponse::parse(b"user_code=a"),
            Err(DocumentError::NotJson)
        );
    }

    proptest! {
        /// Any response round-trips.
        #[test]
        fn responses_round_trip(
            device_code in "[ -~]{1,20}",
            user_code in "[A-Z-]{1,9}",
            complete in option::of("[a-z]{1,9}"),
            expires_in in 0..1_000_000u64,
            interval in option::of(0..1000u64),
        ) {
            let built = DeviceAuthorizationResponse {
                device_code: Secret::new(device_code),
                user_code,
                verification_uri: "https://as.example/device".to_owned(),
                verification_uri_complete: complete,
                expires_in,
                interval,
            };
            prop_assert_eq!(DeviceAuthorizationResponse::parse(&built.to_json()), Ok(built));
        }
    }
}
