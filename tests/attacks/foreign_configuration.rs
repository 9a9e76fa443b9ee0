//! Hostile files for `portcullis import-mcp-remote`: invalid configurations, and tokens of an
//! unknown issuer.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    process::Command,
};

use portcullis_scenarios::{Finished, Portcullis, Scratch};
use serde_json::json;

const SERVER: &str =
    r#"{"mcpServers":{"a":{"command":"npx","args":["mcp-remote","https://a.example/mcp"]}}}"#;

async fn import(folder: &Scratch, name: &str) -> Finished {
    let path = format!("{}/{name}", folder.as_str());
    let state = format!("{}/state", folder.as_str());
    let variables = [
        ("HOME", folder.as_str()),
        ("XDG_STATE_HOME", state.as_str()),
    ];
    Portcullis::run_with(&["import-mcp-remote", &path, "--write"], &variables).await
}

/// J2: an invalid configuration is rejected, not changed and not printed.
#[tokio::test]
async fn hostile_configurations_are_rejected() {
    let folder = Scratch::folder("hostile");
    let path = |name: &str| folder.path().join(name);
    fs::write(path("target.json"), SERVER).unwrap();
    symlink(path("target.json"), path("link.json")).unwrap();
    symlink(path("nothing"), path("dangling.json")).unwrap();
    fs::create_dir(path("folder.json")).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(path("pipe.json"))
            .status()
            .unwrap()
            .success()
    );

    fs::write(path("huge.json"), " ".repeat(4 * 1024 * 1024 + 1)).unwrap();
    fs::write(path("invalid.json"), "{\"mcpServers\": {\"a\": hush}}").unwrap();
    fs::write(path("deep.json"), "[".repeat(1_000_000)).unwrap();
    fs::write(path("binary.json"), [0xff, 0xfe, 0x00]).unwrap();
    for (name, expected) in [
        ("link.json", "symbolic link"),
        ("dangling.json", "symbolic link"),
        ("folder.json", "not a file"),
        ("pipe.json", "not a file"),
        ("huge.json", "larger than 4 MiB"),
        ("invalid.json", "line 1, column 22"),
        ("deep.json", "nested too deep"),
        ("binary.json", "not UTF-8"),
        ("missing.json", "does not exist"),
    ] {
        let rejected = import(&folder, name).await;
        assert_eq!(rejected.code, Some(1), "{name}: {rejected:?}");
        assert_eq!(rejected.stdout, "", "{name}: {rejected:?}");
        assert!(rejected.stderr.contains(expected), "{name}: {rejected:?}");
        assert!(!rejected.stderr.contains("hush"), "{name}: {rejected:?}");
    }
    assert_eq!(fs::read_to_string(path("target.json")).unwrap(), SERVER);
    assert!(
        fs::read_dir(folder.path()).unwrap().all(|entry| !entry
            .unwrap()
            .path()
            .to_string_lossy()
            .contains("backup"))
    );
}

/// I9, H3: a token is not imported if its file does not identify the issuer, another program could
/// have written it, or its client belongs to another issuer.
#[tokio::test]
async fn tokens_of_an_unknown_issuer_are_not_imported() {
    // The MD5 of the URL.
    const ID: &str = "aa5b24b0ba3994ba0c496692c23aa9e7";
    let complete = json!({
        "access_token": "hush", "token_type": "Bearer", "refresh_token": "hush-too", "issuer": "https://as.example",
    });
    let client = json!({ "client_id": "c", "redirect_uris": ["http://localhost:1/oauth/callback"], "issuer": "https://as.example" });
    let with = |value: &serde_json::Value, member: &str, new: serde_json::Value| {
        let mut value = value.clone();
        value[member] = new;
        value
    };
    for (tokens, client, mode) in [
        (
            with(&complete, "issuer", json!(null)),
            client.clone(),
            0o600,
        ),
        (
            with(&complete, "issuer", json!("http://as.example")),
            client.clone(),
            0o600,
        ),
        (
            with(&complete, "issuer", json!("https://other.example")),
            client.clone(),
            0o600,
        ),
        (
            complete.clone(),
            with(&client, "issuer", json!(null)),
            0o600,
        ),
        (
            complete.clone(),
            with(&client, "issuer", json!("https://as.example/other")),
            0o600,
        ),
        (
            complete.clone(),
            with(&client, "redirect_uris", json!([])),
            0o600,
        ),
        (
            with(&complete, "token_type", json!("DPoP")),
            client.clone(),
            0o600,
        ),
        (complete.clone(), client.clone(), 0o666),
    ] {
        let folder = Scratch::folder("tokens");
        fs::write(folder.path().join("mcp.json"), SERVER).unwrap();
        let store = folder.path().join(".mcp-auth/mcp-remote-v1");
        fs::create_dir_all(&store).unwrap();
        let tokens_file = store.join(format!("{ID}_tokens.json"));
        fs::write(&tokens_file, tokens.to_string()).unwrap();
        fs::set_permissions(&tokens_file, fs::Permissions::from_mode(mode)).unwrap();
        fs::write(
            store.join(format!("{ID}_client_info.json")),
            client.to_string(),
        )
        .unwrap();
        let written = import(&folder, "mcp.json").await;
        assert_eq!(written.code, Some(0), "{written:?}");
        assert!(
            written.stdout.contains("the sign-in cannot be moved"),
            "{written:?}"
        );
        assert!(!format!("{written:?}").contains("hush"), "{written:?}");
        assert_eq!(
            fs::read_to_string(&tokens_file).unwrap(),
            tokens.to_string()
        );
        assert!(!folder.path().join("state").exists(), "nothing was stored");
    }
}
