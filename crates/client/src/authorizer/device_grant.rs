//! The device authorization grant (RFC 8628).

use std::time::Duration;

use portcullis_discovery::ChainPolicy;
use portcullis_metadata::{
    Secret,
    authorization::{DeviceAuthorizationResponse, TokenResponse},
};
use tokio::time::{Instant, sleep, timeout_at};
use url::Url;

use super::{Authorizer, GrantContext};
use crate::{
    ClientCredentials, ClientError, DeviceAuthorization, Interaction, ResourceToken, StartUrl,
    server::Server, token::endpoint::TokenEndpoint,
};

/// The grant type (RFC 8628 section 3.4).
pub(crate) const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// The name of the endpoint, for errors.
const ENDPOINT: &str = "device authorization";
/// RFC 8628 section 3.2: the interval if the server names none.
const DEFAULT_INTERVAL_SECS: u64 = 5;
/// RFC 8628 section 3.5: the increase after `slow_down`.
const SLOW_DOWN: Duration = Duration::from_secs(5);
/// The maximum interval of requests, which also limits the server's.
const MAX_INTERVAL: Duration = Duration::from_secs(60);
/// The maximum length of a user code.
const MAX_USER_CODE: usize = 64;

/// A device authorization response.
struct Started {
    device_code: Secret,
    /// The interval of requests to the token endpoint.
    interval: Duration,
    shown: DeviceAuthorization,
}

impl Authorizer {
    /// Obtains a token while the user consents on any device.
    pub(super) async fn device_grant(
        &self,
        interaction: &dyn Interaction,
        start: &StartUrl,
        found: &GrantContext,
    ) -> Result<ResourceToken, ClientError> {
        let server = Server::from_metadata(&found.metadata, found.policy.clone())?;
        let Some(url) = &server.device_authorization_endpoint else {
            return Err(ClientError::DeviceFlowNotSupported {
                issuer: server.issuer,
            });
        };
        self.sign_in_limit.record()?;
        let registration =
            self.registration(found, start, interaction.redirect_uri(), Some(DEVICE_CODE));
        let client = self.client(interaction, &server, &registration).await?;
        let endpoint = TokenEndpoint {
            name: ENDPOINT,
            url,
            policy: server.policy.of(url),
            ..self.token_endpoint(&server)
        };
        let mut started = self
            .start_device(&endpoint, &client.credentials, found)
            .await;
        let mut credentials = client.credentials.clone();
        if let Err(ClientError::TokenRequest(error)) = &started
            && matches!(
                error.error.as_str(),
                "invalid_client" | "unauthorized_client"
            )
            && self.forget(&client, &registration).await?
        {
            credentials = self
                .client(interaction, &server, &registration)
                .await?
                .credentials;
            started = self.start_device(&endpoint, &credentials, found).await;
        }
        let started = started?;
        interaction.show_device_code(&started.shown);
        let response = self
            .poll(&self.token_endpoint(&server), &credentials, found, &started)
            .await?;
        self.resource_token(
            response,
            found,
            start,
            &server.issuer,
            Some(&credentials.client_id),
        )
    }

    /// Requests the codes (RFC 8628 section 3.1).
    async fn start_device(
        &self,
        endpoint: &TokenEndpoint<'_>,
        client: &ClientCredentials,
        found: &GrantContext,
    ) -> Result<Started, ClientError> {
        let scope = found.scopes.to_string();
        let mut fields = Vec::new();
        fields.extend(
            found
                .requested_resource()
                .map(|resource| ("resource", resource.as_str())),
        );
        fields.extend(
            found
                .profile
                .parameters
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        );
        if !scope.is_empty() {
            fields.push(("scope", &scope));
        }
        let answer = endpoint.send(Some(client), &fields, None).await?;
        if !answer.status.is_success() {
            return Err(endpoint.response_error(&answer));
        }
        parse(&answer.body, &found.policy).ok_or(ClientError::InvalidDeviceAuthorization)
    }

    /// Polls the token endpoint until the user decides (RFC 8628 section 3.5) or the code expires.
    async fn poll(
        &self,
        endpoint: &TokenEndpoint<'_>,
        client: &ClientCredentials,
        found: &GrantContext,
        started: &Started,
    ) -> Result<TokenResponse, ClientError> {
        let mut fields = vec![
            ("grant_type", DEVICE_CODE),
            ("device_code", started.device_code.secret()),
        ];
        fields.extend(
            found
                .requested_resource()
                .map(|resource| ("resource", resource.as_str())),
        );
        let end = Instant::now() + started.shown.expires_in;
        let mut interval = started.interval;
        let asking = async {
            loop {
                sleep(interval).await;
                match endpoint
                    .token(Some(client), &fields, found.binding.as_deref())
                    .await
                {
                    Err(ClientError::TokenRequest(error))
                        if error.error == "authorization_pending" => {}
                    Err(ClientError::TokenRequest(error)) if error.error == "slow_down" => {
                        interval = (interval + SLOW_DOWN).min(MAX_INTERVAL);
                    }
                    Err(ClientError::TokenRequest(error)) if error.error == "expired_token" => {
                        return Err(ClientError::DeviceCodeExpired);
                    }
                    // RFC 8628 section 3.5: back off after a network failure.
                    Err(ClientError::Endpoint { .. }) => {
                        interval = (interval * 2).min(MAX_INTERVAL)
                    }
                    other => return other,
                }
            }
        };
        timeout_at(end, asking)
            .await
            .unwrap_or(Err(ClientError::DeviceCodeExpired))
    }
}

/// Parses a device authorization response. `None` if it is malformed, its code cannot be shown
/// safely, or its page is not safe to open.
fn parse(body: &[u8], policy: &ChainPolicy) -> Option<Started> {
    let answer = DeviceAuthorizationResponse::parse(body).ok()?;
    let page = |text: &str| {
        Url::parse(text)
            .ok()
            .filter(|url| policy.of(url).check(url).is_ok())
    };
    let is_readable = |code: &str| {
        (1..=MAX_USER_CODE).contains(&code.len())
            && code
                .bytes()
                .all(|byte| byte == b' ' || byte.is_ascii_graphic())
    };
    if !is_readable(&answer.user_code) {
        return None;
    }
    let interval = Duration::from_secs(answer.interval.unwrap_or(DEFAULT_INTERVAL_SECS).max(1))
        .min(MAX_INTERVAL);
    Some(Started {
        device_code: answer.device_code,
        interval,
        shown: DeviceAuthorization {
            user_code: answer.user_code,
            verification_uri: page(&answer.verification_uri)?,
            verification_uri_complete: answer.verification_uri_complete.as_deref().and_then(page),
            expires_in: Duration::from_secs(answer.expires_in)
                .min(DeviceAuthorization::MAX_LIFETIME),
        },
    })
}

#[cfg(test)]
mod tests {
    use portcullis_discovery::UrlPolicy;
    use serde_json::json;

    use super::*;

    /// I3: a page that a browser must not open and a code that a terminal must not show are
    /// rejected.
    #[test]
    fn only_safe_answers_are_shown() {
        let policy = ChainPolicy::from(UrlPolicy::Peer {
            loopback_http: false,
            private_addresses: false,
        });
        let parsed = |name: &str, value: serde_json::Value| {
            let mut answer = json!({
                "device_code": "d", "user_code": "ABCD-EFGH", "verification_uri": "https://auth.example.com/device",
                "expires_in": 600,
            });
            answer[name] = value;
            parse(answer.to_string().as_bytes(), &policy)
        };
        let usual = parsed("extra", json!(1)).unwrap();
        assert_eq!(usual.interval.as_secs(), 5);
        assert_eq!(usual.shown.expires_in.as_secs(), 600);

        let long = parsed("expires_in", json!(u64::MAX)).unwrap();
        assert_eq!(long.shown.expires_in, DeviceAuthorization::MAX_LIFETIME);
        assert_eq!(
            parsed("interval", json!(u64::MAX)).unwrap().interval,
            MAX_INTERVAL
        );
        let unsafe_page = parsed("verification_uri_complete", json!("file:///etc/passwd")).unwrap();
        assert_eq!(unsafe_page.shown.verification_uri_complete, None);

        for (name, value) in [
            ("verification_uri", json!("http://auth.example.com/device")),
            ("verification_uri", json!("javascript:alert(1)")),
            ("verification_uri", json!("https://169.254.169.254/")),
            ("user_code", json!("\u{1b}[2J")),
            ("user_code", json!("")),
            ("user_code", json!("x".repeat(65))),
            ("device_code", json!("")),
            ("expires_in", json!(null)),
        ] {
            assert!(parsed(name, value.clone()).is_none(), "{name} {value}");
        }
    }
}
