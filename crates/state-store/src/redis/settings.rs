//! [`RedisSettings`]: where Redis or Valkey is, and how to log in.

use std::fmt;

use portcullis_metadata::Secret;
use redis::{Client, IntoConnectionInfo as _, ProtocolVersion, TlsCertificates};

use crate::Retention;

/// Where Redis or Valkey is, and what the journal keeps there. [`new`](Self::new) sets the
/// defaults, and each field can be changed afterwards. `Debug` prints only the prefix: the URL can
/// contain a password.
#[derive(Clone)]
#[non_exhaustive]
pub struct RedisSettings {
    /// `redis://` or `rediss://` with the host, and optionally port, user and database.
    pub url: String,
    /// The password. Default: none.
    pub password: Option<Secret>,
    /// The PEM text of the certificates that the server's certificate is checked against. Default:
    /// those of the system.
    pub root_certificates: Option<Vec<u8>>,
    /// The first part of all keys and channels. Deployments with different prefixes can share a
    /// server.
    pub prefix: String,
    /// How long records matter.
    pub retention: Retention,
}

/// The address of Redis or the certificates cannot be used. The message does not contain the
/// address, which can have a password.
#[derive(Debug, thiserror::Error)]
#[error("the address or the certificates of Redis cannot be used")]
pub struct RedisSettingsError;

impl RedisSettings {
    /// Returns settings without a password, with the system's certificates.
    pub fn new(url: impl Into<String>, prefix: impl Into<String>, retention: Retention) -> Self {
        Self {
            url: url.into(),
            password: None,
            root_certificates: None,
            prefix: prefix.into(),
            retention,
        }
    }

    /// Returns a client that has not connected, with RESP3, in which the server pushes messages on
    /// the connection of the commands. Fails if the URL or the certificates cannot be parsed. Does
    /// not resolve the host.
    pub(crate) fn client(&self) -> Result<Client, RedisSettingsError> {
        let info = self
            .url
            .as_str()
            .into_connection_info()
            .map_err(|_| RedisSettingsError)?;
        let mut login = info
            .redis_settings()
            .clone()
            .set_protocol(ProtocolVersion::RESP3);
        if let Some(password) = &self.password {
            login = login.set_password(password.secret());
        }
        let info = info.set_redis_settings(login);
        let client = match self.root_certificates.clone() {
            None => Client::open(info),
            certificates => Client::build_with_tls(
                info,
                TlsCertificates {
                    client_tls: None,
                    root_cert: certificates,
                },
            ),
        };
        client.map_err(|_| RedisSettingsError)
    }
}

impl fmt::Debug for RedisSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisSettings")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn settings(url: &str) -> RedisSettings {
        let time = Duration::from_secs(100);
        RedisSettings::new(
            url,
            "test",
            Retention {
                lifetime: time,
                idle_timeout: time,
            },
        )
    }

    #[test]
    fn usable_addresses_are_accepted() {
        for url in [
            "redis://127.0.0.1",
            "redis://user@[::1]:7000/2",
            "rediss://redis.example.com",
        ] {
            assert!(settings(url).client().is_ok(), "{url}");
        }
    }

    #[test]
    fn unusable_addresses_are_rejected() {
        for url in ["", "http://127.0.0.1", "redis://", "127.0.0.1:6379"] {
            assert!(settings(url).client().is_err(), "{url}");
        }
    }

    #[test]
    fn unusable_certificates_are_rejected() {
        let mut settings = settings("rediss://127.0.0.1");
        settings.root_certificates =
            Some(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec());
        assert!(settings.client().is_err());
    }

    /// E13: neither the settings nor the error show a password.
    #[test]
    fn debug_shows_no_password() {
        let mut settings = settings("redis://user:hunter2@127.0.0.1");
        settings.password = Some(Secret::new("hunter2"));
        assert_eq!(
            format!("{settings:?}"),
            r#"RedisSettings { prefix: "test", .. }"#
        );
    }
}
