//! Preconfigured clients of `portcullis idp`.

use std::{fs, path::Path, path::PathBuf};

use anyhow::{Context as _, anyhow, bail};
use portcullis_devidp::{ClientAuthentication, ClientSettings, GrantType};
use portcullis_metadata::{JwkSet, Scopes};
use serde::Deserialize;

use crate::config::SecretSource;

/// Reads the file of `--clients`.
///
/// # Errors
/// The error is one line with the file, the line or the client, and what to write instead.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<ClientSettings>> {
    let shown = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("--clients: the file {shown} cannot be read"))?;
    let file: ClientsFile = toml::from_str(&text).map_err(|error| {
        let line =
            error.span().and_then(|span| text.get(..span.start)).map_or(1, |before| 1 + before.matches('\n').count());
        let message = error.message().replace('\n', "; ");
        anyhow!("--clients: {shown}, line {line}: {message}")
    })?;
    let client = |entry: ClientEntry| {
        let id = entry.id.clone();
        entry.settings().with_context(|| format!("--clients: {shown}: the client {id:?}"))
    };
    file.client.into_iter().map(client).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientsFile {
    client: Vec<ClientEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientEntry {
    id: String,
    name: Option<String>,
    secret: Option<SecretSource>,
    jwks_file: Option<PathBuf>,
    auth_method: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    grant_types: Option<Vec<String>>,
    scopes: Option<Vec<String>>,
    #[serde(default)]
    introspect: bool,
}

impl ClientEntry {
    fn settings(self) -> anyhow::Result<ClientSettings> {
        let grant_types = match &self.grant_types {
            Some(names) => names.iter().map(|name| grant_type(name)).collect::<anyhow::Result<_>>()?,
            None if self.redirect_uris.is_empty() => Vec::new(),
            None => vec![GrantType::AuthorizationCode, GrantType::RefreshToken],
        };
        let scopes = self.scopes.as_ref().map(|names| Scopes::parse(&names.join(" "))).transpose();
        Ok(ClientSettings {
            authentication: self.authentication()?,
            scopes: scopes.context("scopes")?,
            id: self.id,
            name: self.name,
            redirect_uris: self.redirect_uris,
            grant_types,
            may_introspect: self.introspect,
        })
    }

    fn authentication(&self) -> anyhow::Result<ClientAuthentication> {
        let implied = match (&self.secret, &self.jwks_file) {
            (None, None) => "none",
            (Some(_), None) => "client_secret_basic",
            (None, Some(_)) => "private_key_jwt",
            (Some(_), Some(_)) => bail!("it has both secret and jwks_file: remove one"),
        };
        let method = self.auth_method.as_deref().unwrap_or(implied);
        match (method, &self.secret, &self.jwks_file) {
            ("none", None, None) => Ok(ClientAuthentication::None),
            ("client_secret_basic", Some(secret), None) => Ok(ClientAuthentication::SecretBasic(secret.read()?)),
            ("client_secret_post", Some(secret), None) => Ok(ClientAuthentication::SecretPost(secret.read()?)),
            ("private_key_jwt", None, Some(path)) => Ok(ClientAuthentication::PrivateKeyJwt(keys(path)?)),
            ("client_secret_basic" | "client_secret_post", ..) => {
                bail!(
                    "auth_method {method:?} requires secret = {{ env = \"NAME\" }} or {{ file = \"/path\" }}, without jwks_file"
                )
            }
            ("private_key_jwt", ..) => {
                bail!("auth_method \"private_key_jwt\" requires jwks_file = \"/path\", without secret")
            }
            ("none", ..) => bail!("auth_method \"none\" allows neither secret nor jwks_file"),
            _ => bail!(
                "auth_method must be none, client_secret_basic, client_secret_post or private_key_jwt, not {method:?}"
            ),
        }
    }
}

fn grant_type(name: &str) -> anyhow::Result<GrantType> {
    GrantType::parse(name).ok_or_else(|| {
        anyhow!("grant_types can have authorization_code, refresh_token, client_credentials and urn:ietf:params:oauth:grant-type:device_code, not {name:?}")
    })
}

fn keys(path: &Path) -> anyhow::Result<JwkSet> {
    let shown = path.display();
    let text = fs::read(path).with_context(|| format!("the file {shown} cannot be read"))?;
    JwkSet::parse(&text)
        .with_context(|| format!("the file {shown} is not a JWK set, {{\"keys\":[...]}} with public keys"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str) -> anyhow::Result<ClientSettings> {
        let mut file: ClientsFile = toml::from_str(text).map_err(|error| anyhow!(error.message().to_owned()))?;
        file.client.remove(0).settings()
    }

    /// K1: defaults follow from the other members.
    #[test]
    fn defaults_follow_from_what_is_there() {
        let desktop = entry("[[client]]\nid = \"a\"\nredirect_uris = [\"http://127.0.0.1/callback\"]").unwrap();
        assert!(matches!(desktop.authentication, ClientAuthentication::None));
        assert_eq!(desktop.grant_types, [GrantType::AuthorizationCode, GrantType::RefreshToken]);
        let bare = entry("[[client]]\nid = \"a\"").unwrap();
        assert!(bare.grant_types.is_empty() && !bare.may_introspect && bare.scopes.is_none());
    }

    /// J6: a literal secret is rejected without repeating it, and so are members that contradict each other.
    #[test]
    fn contradictions_are_rejected_with_the_fix() {
        for (text, says) in [
            ("secret = \"hunter2\"", "{ env = \"NAME\" }"),
            ("secret = { env = \"NO_SUCH_SECRET_AT_ALL\" }", "NO_SUCH_SECRET_AT_ALL is not set"),
            ("secret = { env = \"A\" }\njwks_file = \"b\"", "remove one"),
            ("auth_method = \"client_secret_post\"", "requires secret"),
            ("auth_method = \"private_key_jwt\"", "requires jwks_file"),
            ("auth_method = \"none\"\njwks_file = \"b\"", "neither"),
            ("auth_method = \"tls\"", "not \"tls\""),
            ("jwks_file = \"/nowhere/keys\"", "/nowhere/keys cannot be read"),
            ("grant_types = [\"password\"]", "not \"password\""),
            ("secrets = 1", "secrets"),
        ] {
            let error = format!("{:#}", entry(&format!("[[client]]\nid = \"a\"\n{text}")).err().unwrap());
            assert!(error.contains(says) && !error.contains("hunter2"), "{text}: {error}");
        }
    }
}
