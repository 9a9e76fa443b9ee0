//! The check of the settings.

use super::{DevIdpSettings, Registration};
use crate::{authorize::user::is_user_name, error::DevIdpError, token::extra_claims, users};

/// The maximum lifetime of a refresh token: 30 days.
const MAX_REFRESH_SECONDS: u64 = 30 * 24 * 60 * 60;

impl DevIdpSettings {
    /// Validates the settings. Does not check whether the port is free.
    pub(crate) fn check(&self) -> Result<(), DevIdpError> {
        if !self.listen.ip().is_loopback() {
            return Err(DevIdpError::NotLoopback {
                address: self.listen,
            });
        }
        if !is_issuer_path(&self.issuer_path) {
            return Err(DevIdpError::IssuerPath {
                path: self.issuer_path.clone(),
            });
        }
        if !is_user_name(&self.user) {
            return Err(DevIdpError::User {
                user: self.user.clone(),
            });
        }
        if self.scopes.contains("openid") {
            return Err(DevIdpError::OpenIdScope);
        }
        if self.scopes.is_empty() {
            return Err(DevIdpError::NoScopes);
        }
        let seconds = self.access_token_lifetime.as_secs();
        if !(1..=3600).contains(&seconds) {
            return Err(DevIdpError::TokenLifetime { seconds });
        }
        if self.max_clients == 0 {
            return Err(DevIdpError::MaxClientsZero);
        }
        let seconds = self.refresh_token_lifetime.as_secs();
        if !(1..=MAX_REFRESH_SECONDS).contains(&seconds) {
            return Err(DevIdpError::RefreshTokenLifetime { seconds });
        }
        users::check(&self.users)?;
        extra_claims::check(&self.extra_claims, self.provider)?;
        if matches!(&self.registration, Registration::WithToken(token) if token.secret().is_empty())
        {
            return Err(DevIdpError::InitialAccessToken);
        }
        Ok(())
    }
}

fn is_issuer_path(path: &str) -> bool {
    let is_segment = |segment: &str| {
        let is_allowed =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
        !matches!(segment, "" | "." | ".." | ".well-known") && segment.bytes().all(is_allowed)
    };
    match path.strip_prefix('/') {
        Some(segments) => path.len() <= 200 && segments.split('/').all(is_segment),
        None => path.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use portcullis_metadata::{Scopes, Secret};
    use serde_json::Map;

    use super::*;
    use crate::Provider;

    fn code(settings: DevIdpSettings) -> Option<&'static str> {
        settings.check().err().map(|error| error.code())
    }

    #[test]
    fn the_defaults_are_valid() {
        assert_eq!(code(DevIdpSettings::default()), None);
    }

    /// Only loopback addresses are accepted, and the error names the fix.
    #[test]
    fn only_loopback_addresses_are_accepted() {
        for loopback in ["127.0.0.1:9000", "127.1.2.3:0", "[::1]:9000"] {
            let listen = loopback.parse().unwrap();
            assert_eq!(
                code(DevIdpSettings {
                    listen,
                    ..DevIdpSettings::default()
                }),
                None,
                "{loopback}"
            );
        }
        for reachable in [
            "0.0.0.0:9000",
            "192.168.1.1:9000",
            "[::]:9000",
            "[::ffff:127.0.0.1]:9000",
            "8.8.8.8:9000",
        ] {
            let listen = reachable.parse().unwrap();
            let error = DevIdpSettings {
                listen,
                ..DevIdpSettings::default()
            }
            .check()
            .unwrap_err();
            assert_eq!(error.code(), "devidp.not_loopback", "{reachable}");
            assert!(
                error
                    .to_string()
                    .contains("use 127.0.0.1:9000 or [::1]:9000"),
                "{error}"
            );
        }
    }

    #[test]
    fn issuer_paths_are_validated() {
        for good in ["", "/dev", "/realms/dev-1_a.b~c"] {
            let settings = DevIdpSettings {
                issuer_path: good.to_owned(),
                ..DevIdpSettings::default()
            };
            assert_eq!(code(settings), None, "{good}");
        }
        for bad in [
            "/",
            "dev",
            "/dev/",
            "//dev",
            "/a/../b",
            "/.",
            "/a b",
            "/a?b",
            "/a%2Fb",
            "/.well-known/x",
            "/é",
        ] {
            let settings = DevIdpSettings {
                issuer_path: bad.to_owned(),
                ..DevIdpSettings::default()
            };
            assert_eq!(code(settings), Some("devidp.issuer_path"), "{bad}");
        }
    }

    #[test]
    fn other_settings_are_validated() {
        let scopes = |text| Scopes::parse(text).unwrap();
        let base = DevIdpSettings::default;
        for (name, value, expected) in [
            ("groups", "[\"a\"]".to_owned(), None),
            ("iss", "1".to_owned(), Some("devidp.claim")),
            ("typ", "1".to_owned(), Some("devidp.claim")),
            ("", "1".to_owned(), Some("devidp.claim")),
            (
                "groups",
                format!("\"{}\"", "a".repeat(5000)),
                Some("devidp.claims_too_large"),
            ),
        ] {
            let extra_claims = [(name.to_owned(), serde_json::from_str(&value).unwrap())]
                .into_iter()
                .collect();
            assert_eq!(
                code(DevIdpSettings {
                    extra_claims,
                    ..base()
                }),
                expected,
                "{name}"
            );
        }
        assert_eq!(
            code(DevIdpSettings {
                scopes: scopes("openid a"),
                ..base()
            }),
            Some("devidp.openid_scope")
        );
        assert_eq!(
            code(DevIdpSettings {
                scopes: scopes(""),
                ..base()
            }),
            Some("devidp.no_scopes")
        );
        assert_eq!(
            code(DevIdpSettings {
                user: String::new(),
                ..base()
            }),
            Some("devidp.user")
        );
        assert_eq!(
            code(DevIdpSettings {
                max_clients: 0,
                ..base()
            }),
            Some("devidp.no_room_for_clients")
        );

        let registration = Registration::WithToken(Secret::new(""));
        assert_eq!(
            code(DevIdpSettings {
                registration,
                ..base()
            }),
            Some("devidp.initial_access_token")
        );
    }

    #[test]
    fn lifetimes_are_bounded() {
        let day = 24 * 60 * 60;
        for (seconds, expected) in [
            (0, Some("devidp.refresh_token_lifetime")),
            (1, None),
            (30 * day, None),
            (30 * day + 1, Some("devidp.refresh_token_lifetime")),
        ] {
            let refresh_token_lifetime = Duration::from_secs(seconds);
            let settings = DevIdpSettings {
                refresh_token_lifetime,
                ..DevIdpSettings::default()
            };
            assert_eq!(code(settings), expected, "{seconds}");
        }
        for (seconds, expected) in [
            (0, Some("devidp.token_lifetime")),
            (1, None),
            (3600, None),
            (3601, Some("devidp.token_lifetime")),
        ] {
            let access_token_lifetime = Duration::from_secs(seconds);
            let settings = DevIdpSettings {
                access_token_lifetime,
                ..DevIdpSettings::default()
            };
            assert_eq!(code(settings), expected, "{seconds}");
        }
    }

    /// `uid` is the identifier of a token only at Authentik, where another value would hide it from
    /// revocation.
    #[test]
    fn the_token_identifier_of_a_provider_cannot_be_set() {
        for (provider, expected) in [
            (Some(Provider::Authentik), Some("devidp.claim")),
            (Some(Provider::Okta), None),
            (None, None),
        ] {
            let extra_claims = Map::from_iter([("uid".to_owned(), "00u1".into())]);
            let settings = DevIdpSettings {
                provider,
                extra_claims,
                ..DevIdpSettings::default()
            };
            assert_eq!(code(settings), expected, "{provider:?}");
        }
    }
}
