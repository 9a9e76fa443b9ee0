//! Preconfigured clients of `portcullis idp`.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use portcullis_config::{SecretSource, parse_values, plan::file_content};
use portcullis_devidp::{ClientAuthentication, ClientSettings, GrantType};
use portcullis_metadata::{JwkSet, Scopes};
use serde::Deserialize;

/// Reads the file of `--clients`, and the files and environment variables that it names.
///
/// Whether the clients fit the server is checked when the server starts. Fails when the file cannot
/// be read, a value is invalid, or a secret or a key cannot be read. The error is one line with the
/// file, the line or the client, and what to write instead. It contains no value of a wrong type or
/// form, because that can be a secret; it names variables, files, keys and clients.
pub(super) fn read(path: &Path) -> anyhow::Result<Vec<ClientSettings>> {
    let shown = path.display();
    let bytes = file_content(path)
        .with_context(|| format!("--clients: the file {shown} cannot be read"))?;
    let text = String::from_utf8(bytes)
        .ok()
        .with_context(|| format!("--clients: the file {shown} is not UTF-8"))?;
    let file: ClientsFile = parse_values(path, &text).context("--clients")?;
    let client = |entry: ClientEntry| {
        let id = entry.id.clone();
        entry
            .settings()
            .with_context(|| format!("--clients: {shown}: the client {id:?}"))
    };
    file.client.into_iter().map(client).collect()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientsFile {
    client: Vec<ClientEntry>,
}

/// `[[client]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClientEntry {
    /// The client identifier.
    id: String,
    /// The name on the consent page. Default: none.
    name: Option<String>,
    /// The source of the client secret. Not with `jwks_file`.
    secret: Option<SecretSource>,
    /// A file with the client's public keys, a JWK set. Not with `secret`.
    jwks_file: Option<PathBuf>,
    /// Default: `client_secret_basic` with a secret, `private_key_jwt` with keys, otherwise `none`.
    auth_method: Option<AuthMethod>,
    /// Default: none.
    #[serde(default)]
    redirect_uris: Vec<String>,
    /// Default: `authorization_code` and `refresh_token` with redirect URIs, otherwise none.
    grant_types: Option<Vec<GrantTypeName>>,
    /// The scopes that the client may request. Default: all scopes of the server.
    scopes: Option<Vec<String>>,
    /// Whether the client may introspect tokens.
    #[serde(default)]
    introspect: bool,
    /// Where the client accepts logout tokens. Default: none.
    backchannel_logout_uri: Option<String>,
}

/// How a client authenticates (RFC 7591 section 2, `token_endpoint_auth_method`).
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum AuthMethod {
    None,
    ClientSecretBasic,
    ClientSecretPost,
    PrivateKeyJwt,
}

/// A grant type by its name in RFC 7591.
#[derive(Deserialize)]
#[serde(try_from = "String")]
struct GrantTypeName(GrantType);

impl TryFrom<String> for GrantTypeName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        GrantType::parse(&name).map(Self).ok_or_else(|| {
            let known = GrantType::ALL.map(GrantType::as_str).join(", ");
            format!("it is not a known grant type; write one of {known}")
        })
    }
}

impl ClientEntry {
    fn settings(self) -> anyhow::Result<ClientSettings> {
        let authentication = self.authentication()?;
        let grant_types = match self.grant_types {
            Some(names) => names
                .into_iter()
                .map(|GrantTypeName(grant)| grant)
                .collect(),
            None if self.redirect_uris.is_empty() => Vec::new(),
            None => vec![GrantType::AuthorizationCode, GrantType::RefreshToken],
        };
        let scopes = self
            .scopes
            .map(|names| Scopes::parse(&names.join(" ")))
            .transpose();
        Ok(ClientSettings {
            authentication,
            scopes: scopes.context("scopes")?,
            id: self.id,
            name: self.name,
            redirect_uris: self.redirect_uris,
            grant_types,
            may_introspect: self.introspect,
            backchannel_logout_uri: self.backchannel_logout_uri,
        })
    }

    fn authentication(&self) -> anyhow::Result<ClientAuthentication> {
        let implied = match (&self.secret, &self.jwks_file) {
            (None, None) => AuthMethod::None,
            (Some(secret), None) if self.auth_method.is_none() => {
                return Ok(ClientAuthentication::Secret(secret.read()?));
            }
            (Some(_), None) => AuthMethod::ClientSecretBasic,
            (None, Some(_)) => AuthMethod::PrivateKeyJwt,
            (Some(_), Some(_)) => bail!("it has both secret and jwks_file: remove one"),
        };
        Ok(
            match (
                self.auth_method.unwrap_or(implied),
                &self.secret,
                &self.jwks_file,
            ) {
                (AuthMethod::None, None, None) => ClientAuthentication::None,
                (AuthMethod::ClientSecretBasic, Some(secret), None) => {
                    ClientAuthentication::SecretBasic(secret.read()?)
                }
                (AuthMethod::ClientSecretPost, Some(secret), None) => {
                    ClientAuthentication::SecretPost(secret.read()?)
                }
                (AuthMethod::PrivateKeyJwt, None, Some(path)) => {
                    ClientAuthentication::PrivateKeyJwt(keys(path)?)
                }
                (AuthMethod::None, ..) => {
                    bail!("auth_method = \"none\" allows neither secret nor jwks_file")
                }
                (AuthMethod::ClientSecretBasic | AuthMethod::ClientSecretPost, ..) => {
                    bail!(
                        "its auth_method requires secret = {{ env = \"NAME\" }} or {{ file = \"/path\" }}, without jwks_file"
                    )
                }
                (AuthMethod::PrivateKeyJwt, ..) => {
                    bail!(
                        "auth_method = \"private_key_jwt\" requires jwks_file = \"/path\", without secret"
                    )
                }
            },
        )
    }
}

/// Reads the public keys of a client.
fn keys(path: &Path) -> anyhow::Result<JwkSet> {
    let shown = path.display();
    let text = file_content(path).with_context(|| format!("the file {shown} cannot be read"))?;
    JwkSet::parse(&text).with_context(|| {
        format!("the file {shown} is not a JWK set, {{\"keys\":[...]}} with public keys")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(text: &str) -> anyhow::Result<ClientSettings> {
        let mut file: ClientsFile = parse_values(Path::new("clients.toml"), text)?;
        file.client.remove(0).settings()
    }

    /// K1: defaults follow from the other keys.
    #[test]
    fn defaults_follow_from_the_other_keys() {
        let desktop =
            settings("[[client]]\nid = 'a'\nredirect_uris = ['http://127.0.0.1/callback']")
                .unwrap();
        assert!(matches!(desktop.authentication, ClientAuthentication::None));
        assert_eq!(
            desktop.grant_types,
            [GrantType::AuthorizationCode, GrantType::RefreshToken]
        );
        let bare = settings("[[client]]\nid = 'a'").unwrap();
        assert!(bare.grant_types.is_empty());
        assert!(!bare.may_introspect);
        assert!(bare.scopes.is_none());
        let uri = "http://127.0.0.1:3000/logout";
        let told = settings(&format!(
            "[[client]]\nid = 'a'\nbackchannel_logout_uri = '{uri}'"
        ));
        assert_eq!(told.unwrap().backchannel_logout_uri.as_deref(), Some(uri));
    }

    /// K1: all grant types are known by their names.
    #[test]
    fn grant_types_are_parsed() {
        for grant in GrantType::ALL {
            let client = settings(&format!(
                "[[client]]\nid = 'a'\ngrant_types = ['{}']",
                grant.as_str()
            ))
            .unwrap();
            assert_eq!(client.grant_types, [grant]);
        }
    }

    /// K1: values that contradict each other are rejected with the fix.
    #[test]
    fn contradictions_are_rejected_with_the_fix() {
        for (keys, fix) in [
            (
                "secret = { env = 'NO_SUCH_SECRET_AT_ALL' }",
                "NO_SUCH_SECRET_AT_ALL is not set",
            ),
            ("secret = { env = 'A' }\njwks_file = 'b'", "remove one"),
            ("auth_method = 'client_secret_basic'", "requires secret"),
            ("auth_method = 'client_secret_post'", "requires secret"),
            (
                "auth_method = 'client_secret_post'\njwks_file = 'b'",
                "without jwks_file",
            ),
            ("auth_method = 'private_key_jwt'", "requires jwks_file"),
            ("auth_method = 'none'\njwks_file = 'b'", "neither"),
            (
                "jwks_file = '/nowhere/keys'",
                "/nowhere/keys cannot be read",
            ),
        ] {
            let error = format!(
                "{:#}",
                settings(&format!("[[client]]\nid = 'a'\n{keys}")).unwrap_err()
            );
            assert!(error.contains(fix), "{keys}: {error}");
        }
    }

    /// J2, J6: an error has line and key, and never a secret that is in a wrong place.
    #[test]
    fn misplaced_secrets_are_not_printed() {
        for (keys, expected) in [
            (
                "id = ['hunter2']",
                "2: client[0].id is an array; expected a string",
            ),
            (
                "id = 'a'\nname = { hunter2 = 'hunter2' }",
                "3: client[0].name is a table; expected a string",
            ),
            (
                "id = 'a'\nsecret = 'hunter2'",
                "3: client[0].secret: a secret is not written into the configuration",
            ),
            (
                "id = 'a'\nsecret = ['hunter2']",
                "3: client[0].secret is an array; expected { env",
            ),
            (
                "id = 'a'\nsecret = { value = 'hunter2' }",
                "3: client[0].secret: a secret is not written into",
            ),
            (
                "id = 'a'\nsecret = { env = ['hunter2'] }",
                "3: client[0].secret.env is an array; expected a string",
            ),
            (
                "id = 'a'\njwks_file = ['hunter2']",
                "3: client[0].jwks_file is an array; expected a string",
            ),
            (
                "id = 'a'\nauth_method = 'hunter2'",
                "3: client[0].auth_method has an unknown value; write one of none, ",
            ),
            (
                "id = 'a'\nredirect_uris = 'hunter2'",
                "3: client[0].redirect_uris is a string; expected an array",
            ),
            (
                "id = 'a'\ngrant_types = 'hunter2'",
                "3: client[0].grant_types is a string; expected an array",
            ),
            (
                "id = 'a'\ngrant_types = ['hunter2']",
                "3: client[0].grant_types[0]: it is not a known grant type",
            ),
            (
                "id = 'a'\nscopes = 'hunter2'",
                "3: client[0].scopes is a string; expected an array",
            ),
            (
                "id = 'a'\nintrospect = 'hunter2'",
                "3: client[0].introspect is a string; expected true or false",
            ),
            (
                "id = 'a'\nsecert = 'hunter2'",
                "3: client[0].secert is not a known key; did you mean `secret`?",
            ),
            ("id = 'a'\nsecret = hunter2", "3: client[0].secret: "),
            (
                "id = 'a'\n[client.name]\nkey = 'hunter2'",
                "3: client[0].name is a table; expected a string",
            ),
        ] {
            let error = format!(
                "{:#}",
                settings(&format!("[[client]]\n{keys}")).unwrap_err()
            );
            assert!(
                error.starts_with(&format!("clients.toml:{expected}")),
                "{keys}: {error}"
            );
            assert!(!error.contains("hunter2"), "{keys}: {error}");
            assert!(!error.contains('\n'), "{keys}: {error}");
            assert!(
                !error.contains("[["),
                "another kind of table does not help: {error}"
            );
        }
    }
}
