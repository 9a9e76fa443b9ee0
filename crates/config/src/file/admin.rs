//! `[admin]`: the listener for administrators.

use std::{borrow::Cow, fmt, net::SocketAddr, path::PathBuf};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Tls;
use crate::{SecretSource, shown_url};

/// The environment variable of the token, unless another source is configured.
pub const ADMIN_TOKEN_VARIABLE: &str = "PORTCULLIS_ADMIN_TOKEN";

/// `[admin]`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Admin {
    /// Where the listener for administrators is.
    #[schemars(example = "127.0.0.1:9900")]
    pub listen: AdminListen,
    /// The token of administrators. Default: the environment variable `PORTCULLIS_ADMIN_TOKEN`.
    #[serde(default = "default_token")]
    pub token: SecretSource,
    /// A token that allows only to read the metrics. Default: the token of administrators is
    /// needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics_token: Option<SecretSource>,
    /// Further names in `Host` under which clients reach the listener.
    #[schemars(example = ["admin.example.com"])]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_hosts: Vec<String>,
    /// The certificate and key of the listener. Required on other addresses than loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

/// The place of the listener: an address and port, or a unix socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminListen {
    /// An address and port.
    Tcp(SocketAddr),
    /// The path of a unix socket.
    Unix(PathBuf),
}

fn default_token() -> SecretSource {
    SecretSource::Env(ADMIN_TOKEN_VARIABLE.to_owned())
}

impl fmt::Display for AdminListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl JsonSchema for AdminListen {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "AdminListen".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "title": "address or unix socket", "type": "string", "pattern": "^(unix:/.+|.+:[0-9]+)$" })
    }
}

impl Serialize for AdminListen {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AdminListen {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(_) => Err(de::Error::custom(format!(
                "{:?} has no absolute path; write \"unix:/run/portcullis/admin.sock\"",
                shown_url(&text)
            ))),
            None => text.parse().map(Self::Tcp).map_err(|_| {
                de::Error::custom(format!(
                    "{:?} is neither an address with a port nor a unix socket; write \"127.0.0.1:9900\" or \
                     \"unix:/run/portcullis/admin.sock\"",
                    shown_url(&text)
                ))
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AdminListen, String> {
        serde_json::from_value(text.into()).map_err(|error| error.to_string())
    }

    /// E12: the listener is at an address or a unix socket, and an error shows both forms.
    #[test]
    fn both_forms_are_read() {
        for text in ["127.0.0.1:9900", "[::1]:9900", "unix:/run/admin.sock"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        for text in [
            "9900",
            "localhost:9900",
            "/run/admin.sock",
            "unix:admin.sock",
            "unix:",
            "",
        ] {
            assert!(
                read(text)
                    .unwrap_err()
                    .contains("unix:/run/portcullis/admin.sock"),
                "{text}"
            );
        }
    }
}
