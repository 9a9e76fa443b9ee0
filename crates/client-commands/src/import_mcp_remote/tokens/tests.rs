//! Tests of the migration of mcp-remote's tokens.

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::import_mcp_remote::{
    jsonc::Document,
    rewrite::{Replacement, Rewrite},
};

const URL: &str = "https://mcp.example.com/mcp";

/// The folder of mcp-remote, and a store beside it.
struct Folders(TempDir);

impl Folders {
    fn new() -> Self {
        let folders = Self(tempfile::tempdir().unwrap());
        fs::create_dir(folders.0.path().join(FOLDER)).unwrap();
        folders
    }

    /// The migration of a server with these further arguments.
    fn migration(&self, arguments: &[&str]) -> Migration {
        let store = self.0.path().join("store");
        let replacement = Replacement {
            program: "portcullis",
            store: Some(&store),
            is_store_chosen: true,
        };
        let arguments = [&["mcp-remote", URL], arguments].concat();
        let environment = json!({ "MCP_REMOTE_CONFIG_DIR": self.0.path() });
        let server = json!({ "command": "npx", "args": arguments, "env": environment });
        let text = json!({ "mcpServers": { "a": server } }).to_string();
        Rewrite::of(&text, &Document::parse(&text).unwrap(), &replacement)
            .servers
            .remove(0)
            .result
            .unwrap()
    }

    fn path(&self, migration: &Migration, name: &str) -> PathBuf {
        self.0
            .path()
            .join(FOLDER)
            .join(format!("{}_{name}", migration.session.as_str()))
    }

    /// Stores a token of a registered client as mcp-remote does, with these further members.
    fn sign_in(&self, migration: &Migration, access_token: &str, members: Value) {
        let issuer = "https://auth.example.com";
        let mut tokens =
            json!({ "access_token": access_token, "token_type": "Bearer", "issuer": issuer });
        tokens
            .as_object_mut()
            .unwrap()
            .extend(members.as_object().unwrap().clone());
        let redirect_uris = ["http://localhost:3334/oauth/callback"];
        let client =
            json!({ "client_id": "client", "issuer": issuer, "redirect_uris": redirect_uris });
        fs::write(self.path(migration, "tokens.json"), tokens.to_string()).unwrap();
        fs::write(self.path(migration, "client_info.json"), client.to_string()).unwrap();
    }

    /// The names of mcp-remote's files, without the identifier of the server.
    fn names(&self) -> Vec<String> {
        let names = fs::read_dir(self.0.path().join(FOLDER)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names
            .map(|name| name.split_once('_').unwrap().1.to_owned())
            .collect();
        names.sort();
        names
    }

    /// The access tokens in the store.
    fn stored(&self) -> Vec<String> {
        let store = CredentialStore::in_directory(self.0.path().join("store"));
        let tokens = store.tokens(&StartUrl::parse(URL).unwrap()).unwrap();
        tokens
            .iter()
            .map(|token| token.access_token().secret().to_owned())
            .collect()
    }
}

fn found(migration: &Migration) -> StoredToken {
    StoredToken::find(migration).unwrap().unwrap()
}

/// I9: the resource is that of the sign-in, which can be without one.
#[test]
fn the_resource_is_that_of_the_sign_in() {
    let tenant = "https://mcp.example.com/tenant";
    for (arguments, resource, is_unbound) in [
        (&[][..], URL, false),
        (&["--resource", tenant], tenant, false),
        (&["--resource", " "], URL, true),
        (&["--disable-resource-parameter"], URL, true),
        (
            &["--disable-resource-parameter", "--resource", tenant],
            URL,
            true,
        ),
    ] {
        let folders = Folders::new();
        let migration = folders.migration(arguments);
        folders.sign_in(&migration, "first", json!({}));
        let token = found(&migration).token;
        assert_eq!(
            (token.resource.as_str(), token.is_unbound),
            (resource, is_unbound),
            "{arguments:?}"
        );
    }
}

/// An expired token is found only if it can be refreshed. The expiry is in milliseconds.
#[test]
fn an_expired_token_needs_a_refresh_token() {
    let folders = Folders::new();
    let migration = folders.migration(&[]);
    let now = SystemClock::new().now();
    let hour = Duration::from_secs(3600);
    let [past, future] = [now.saturating_sub(hour), now.saturating_add(hour)];
    let token = |members: Value| {
        folders.sign_in(&migration, "first", members);
        StoredToken::find(&migration).map(|found| found.map(|found| found.token))
    };
    let valid = token(json!({ "expires_at": future.as_millis() }))
        .unwrap()
        .unwrap();
    assert_eq!(valid.expires.unwrap().as_secs(), future.as_secs());
    assert!(
        token(json!({ "expires_at": past.as_millis() }))
            .unwrap()
            .is_none()
    );
    assert!(
        token(json!({ "expires_at": past.as_millis(), "refresh_token": "r" }))
            .unwrap()
            .is_some()
    );
    assert!(token(json!({})).unwrap().unwrap().expires.is_none());
    for invalid in [json!(-1), json!(1e300), json!("2030-01-01")] {
        assert!(
            token(json!({ "expires_at": invalid, "refresh_token": "r" })).is_err(),
            "{invalid}"
        );
    }
}

#[tokio::test]
async fn a_token_moves_with_its_client() {
    let folders = Folders::new();
    let migration = folders.migration(&[]);
    folders.sign_in(&migration, "first", json!({}));
    assert!(found(&migration).take().await.unwrap());
    assert_eq!(folders.stored(), ["first"]);
    assert!(folders.names().is_empty());
    assert!(StoredToken::find(&migration).unwrap().is_none());

    folders.sign_in(&migration, "second", json!({}));
    assert!(!found(&migration).take().await.unwrap());
    assert_eq!(folders.stored(), ["first"]);
    assert_eq!(folders.names(), ["client_info.json", "tokens.json"]);
}

/// A run that ended before or after the import is continued.
#[tokio::test]
async fn an_interrupted_move_is_continued() {
    let folders = Folders::new();
    let migration = folders.migration(&[]);
    let claim = || {
        folders.sign_in(&migration, "first", json!({}));
        fs::rename(
            folders.path(&migration, "tokens.json"),
            folders.path(&migration, "tokens.json.moving"),
        )
        .unwrap();
    };
    for moment in ["before the import", "after the import"] {
        claim();
        assert!(found(&migration).take().await.unwrap(), "{moment}");
        assert_eq!(folders.stored(), ["first"], "{moment}");
        assert!(folders.names().is_empty(), "{moment}");
    }
}

/// A token that mcp-remote replaces before the move is neither moved nor lost.
#[tokio::test]
async fn a_token_that_has_changed_is_not_moved() {
    let folders = Folders::new();
    let migration = folders.migration(&[]);
    folders.sign_in(&migration, "first", json!({}));
    let first = found(&migration);
    folders.sign_in(&migration, "second", json!({}));
    assert!(
        first
            .take()
            .await
            .unwrap_err()
            .to_string()
            .contains("has changed meanwhile")
    );
    assert!(folders.stored().is_empty());
    assert_eq!(folders.names(), ["client_info.json", "tokens.json"]);
    assert!(found(&migration).take().await.unwrap());
    assert_eq!(folders.stored(), ["second"]);
}
