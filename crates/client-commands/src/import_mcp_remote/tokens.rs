//! The tokens that mcp-remote stored, and their migration to this program's store.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use portcullis_client::{
    StartUrl,
    store::{CredentialStore, ImportedToken},
};
use portcullis_files::{ConfigFile, sync_parent};
use portcullis_metadata::{
    AccessToken, Clock as _, Issuer, ResourceUri, Scopes, Secret, SystemClock, UnixTime,
    client::ClientRegistrationResponse,
};
use serde::Deserialize;
use serde_json::Value;
use url::Url;
use zeroize::Zeroizing;

use super::migration::Migration;
use crate::mcp_remote::session::{SessionId, omits_resource, resource as requested_resource};

/// The folder of the storage format that mcp-remote 0.15.1 uses.
const FOLDER: &str = "mcp-remote-v1";

/// A stored token that can be moved.
pub(super) struct StoredToken {
    /// The file that mcp-remote reads.
    path: PathBuf,
    /// The file during the move: mcp-remote does not find it, and the next run continues with it.
    claimed: PathBuf,
    /// The text that was read.
    text: Zeroizing<String>,
    /// Whether it was read from the file of an interrupted run.
    is_claimed: bool,
    /// The file of its registered client.
    client: Option<PathBuf>,
    store: PathBuf,
    token: ImportedToken,
}

/// The members that are used.
#[derive(Deserialize)]
struct Tokens {
    access_token: String,
    token_type: String,
    refresh_token: Option<String>,
    /// Milliseconds since the epoch.
    expires_at: Option<f64>,
    scope: Option<String>,
    requested_scope: Option<String>,
    issuer: Option<String>,
}

impl StoredToken {
    /// Finds the token of a server. None if mcp-remote stored none, or it has expired and cannot be
    /// refreshed. The error explains why a token is not migrated.
    pub(super) fn find(migration: &Migration) -> anyhow::Result<Option<Self>> {
        let Some(directory) = directory(migration.mcp_remote_directory.clone()) else {
            return Ok(None);
        };
        let file = |name: &str| directory.join(format!("{}_{name}", migration.session.as_str()));
        let path = file("tokens.json");
        let claimed = file("tokens.json.moving");
        // A new sign-in by mcp-remote takes precedence over the file of an interrupted run.
        let (text, is_claimed) = match read(&path)? {
            Some(file) => (file.text, false),
            None => match read(&claimed)? {
                Some(file) => (file.text, true),
                None => return Ok(None),
            },
        };
        let tokens: Tokens = serde_json::from_str(&text)
            .ok()
            .context("the file of its token is invalid")?;
        ensure!(
            !migration.arguments.has("--use-id-token")
                && tokens.token_type.eq_ignore_ascii_case("bearer"),
            "it is not a bearer access token"
        );
        let issuer = tokens
            .issuer
            .context("the file of its token does not name the issuer")?;
        let issuer = Issuer::parse(&issuer)
            .ok()
            .context("the issuer in the file of its token is not valid")?;
        let store = migration
            .store
            .clone()
            .context("there is no store; name one with --store")?;
        let (client_id, registration) = match &migration.client_id {
            Some(client_id) => (client_id.clone(), None),
            None => registered(&file("client_info.json"), &issuer)?,
        };
        let start = StartUrl::parse(migration.arguments.url())?;
        let resource = requested_resource(&migration.arguments).unwrap_or(start.url().as_str());
        let resource = ResourceUri::parse(resource)
            .ok()
            .context("its resource is not valid")?;
        ensure!(
            resource.url().origin() == start.url().origin(),
            "its token is for a resource of another origin"
        );
        let mut token = ImportedToken::new(
            start,
            resource,
            issuer,
            client_id,
            AccessToken::new(tokens.access_token.as_str()),
        );
        let now = SystemClock::new().now();
        token.refresh_token = tokens
            .refresh_token
            .filter(|token| !token.is_empty())
            .map(Secret::new);
        token.requested = scopes(tokens.requested_scope.as_deref()).unwrap_or_else(Scopes::empty);
        token.granted = scopes(tokens.scope.as_deref());
        token.obtained = now;
        token.is_unbound = omits_resource(&migration.arguments);
        token.expires = tokens.expires_at.map(expiry).transpose()?;
        if tokens.access_token.is_empty()
            || (token.refresh_token.is_none() && token.expires.is_some_and(|it| it <= now))
        {
            return Ok(None);
        }
        let client = registration.is_some().then(|| file("client_info.json"));
        token.registration = registration;
        Ok(Some(Self {
            path,
            claimed,
            text,
            is_claimed,
            client,
            store,
            token,
        }))
    }

    /// The authorization server that issued it.
    pub(super) fn issuer(&self) -> &Issuer {
        &self.token.issuer
    }

    /// The store that it moves to.
    pub(super) fn store(&self) -> &Path {
        &self.store
    }

    /// Moves the token. It is deleted from mcp-remote's files, because two programs that use one
    /// rotating refresh token end each other's sign-in. Returns false if mcp-remote keeps its
    /// token, because the store has another one. Fails when a file has changed since it was read,
    /// or cannot be written or removed. The token is not lost: either mcp-remote still has it, or
    /// the next run continues the move.
    pub(super) async fn take(self) -> anyhow::Result<bool> {
        let store = CredentialStore::in_directory(&self.store);
        if !store.tokens(&self.token.start)?.is_empty() {
            // After an interrupted run, the store has this token or a later one.
            if self.is_claimed {
                remove_files(&self.claimed, self.client.as_deref())?;
            }
            return Ok(self.is_claimed);
        }
        if !self.is_claimed {
            self.claim()?;
        }
        let Self {
            path,
            claimed,
            is_claimed,
            client,
            token,
            ..
        } = self;
        let imported = store.import(token).await;
        if !matches!(imported, Ok(true)) {
            if !is_claimed {
                restore(&claimed, &path);
            }
            return Ok(imported?);
        }
        remove_files(&claimed, client.as_deref())?;
        Ok(true)
    }

    /// Renames the file, so that mcp-remote does not find it.
    fn claim(&self) -> anyhow::Result<()> {
        let Self {
            path,
            claimed,
            text,
            ..
        } = self;
        fs::rename(path, claimed).with_context(|| format!("{} cannot be moved", path.display()))?;
        sync_parent(path)?;
        if read(claimed)?.is_none_or(|file| *file.text != **text) {
            restore(claimed, path);
            bail!(
                "{} has changed meanwhile; run the command again",
                path.display()
            );
        }
        Ok(())
    }
}

/// Returns the token to mcp-remote, unless mcp-remote has stored a newer one.
fn restore(claimed: &Path, path: &Path) {
    // A link replaces no file. Where there are no links, the next run continues with the claimed
    // file.
    if fs::hard_link(claimed, path).is_ok() {
        let _ = fs::remove_file(claimed);
    }
}

/// Deletes the files of a token that the store has.
fn remove_files(claimed: &Path, client: Option<&Path>) -> anyhow::Result<()> {
    for path in [Some(claimed), client].into_iter().flatten() {
        fs::remove_file(path)
            .with_context(|| format!("{} cannot be removed; remove it", path.display()))?;
    }
    Ok(())
}

/// The identifier of a dynamically registered client, with its redirect URI and registration.
type Registration = (String, Option<(Url, ClientRegistrationResponse)>);

fn registered(path: &Path, issuer: &Issuer) -> anyhow::Result<Registration> {
    let file = read(path)?.context("its client is not stored")?;
    let value: Value = serde_json::from_str(&file.text)
        .ok()
        .context("the file of its client is invalid")?;
    let named = value.get("issuer").and_then(Value::as_str);
    ensure!(
        named == Some(issuer.as_str()),
        "the file of its client does not name the issuer of the token"
    );
    let redirect = value
        .get("redirect_uris")
        .and_then(|uris| uris.get(0))
        .and_then(Value::as_str);
    let redirect = redirect
        .and_then(|uri| Url::parse(uri).ok())
        .context("its client has no redirect URI")?;
    let response = ClientRegistrationResponse::parse(file.text.as_bytes())
        .ok()
        .context("the file of its client is invalid")?;
    Ok((response.client_id.clone(), Some((redirect, response))))
}

/// Reads a file that other users cannot change. Errors do not contain its text.
fn read(path: &Path) -> anyhow::Result<Option<ConfigFile>> {
    let Some(file) = ConfigFile::read(path).with_context(|| path.display().to_string())? else {
        return Ok(None);
    };
    ensure!(
        !file.is_writable_by_others(),
        "{}: others can write it",
        path.display()
    );
    Ok(Some(file))
}

impl Migration {
    /// The authorization server at which mcp-remote used the client that was registered by hand.
    pub(super) fn recorded_issuer(&self) -> Option<Issuer> {
        self.client_id
            .as_ref()
            .and_then(|_| recorded_issuer(&self.session, self.mcp_remote_directory.clone()))
    }
}

/// The issuer of the token that mcp-remote has stored for a sign-in, even if the token has expired.
/// None if there is no token, or its file cannot be used. `directory` is the value of
/// `MCP_REMOTE_CONFIG_DIR`, if the environment has another.
pub(crate) fn recorded_issuer(session: &SessionId, directory: Option<PathBuf>) -> Option<Issuer> {
    let file = self::directory(directory)?.join(format!("{}_tokens.json", session.as_str()));
    let tokens: Tokens = serde_json::from_str(&read(&file).ok()??.text).ok()?;
    Issuer::parse(&tokens.issuer?).ok()
}

fn directory(chosen: Option<PathBuf>) -> Option<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let base = chosen.or_else(|| variable("MCP_REMOTE_CONFIG_DIR"));
    base.or_else(|| variable("HOME").map(|home| home.join(".mcp-auth")))
        .map(|base| base.join(FOLDER))
}

fn scopes(text: Option<&str>) -> Option<Scopes> {
    text.and_then(|text| Scopes::parse(text).ok())
}

/// Converts milliseconds since the epoch, rounded down to seconds.
fn expiry(millis: f64) -> anyhow::Result<UnixTime> {
    let since_epoch = Duration::try_from_secs_f64(millis / 1000.0);
    Ok(UnixTime::from_secs(
        since_epoch
            .ok()
            .context("the expiry in the file of its token is not valid")?
            .as_secs(),
    ))
}

#[cfg(test)]
mod tests;
