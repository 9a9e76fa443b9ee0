//! `portcullis import-mcp-remote`: replaces mcp-remote in the configurations of clients and takes
//! over its tokens.

use std::{fs, os::unix::fs::PermissionsExt as _, path::Path, process::Command};

use portcullis_scenarios::{Finished, Portcullis, Scratch};
use serde_json::{Value, json};

use crate::connect::demo;

/// A home folder with the configurations of clients on Linux.
struct Home(Scratch);

impl Home {
    fn new() -> Self {
        Self(Scratch::folder("home"))
    }

    async fn run(&self, arguments: &[&str]) -> Finished {
        let home = self.0.as_str();
        let configuration = format!("{home}/.config");
        let state = format!("{home}/state");
        let variables = [
            ("HOME", home),
            ("XDG_CONFIG_HOME", &configuration),
            ("XDG_STATE_HOME", &state),
        ];
        Portcullis::run_with(arguments, &variables).await
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap()
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    /// The identifier under which mcp-remote stores the credentials for a URL: its MD5.
    fn session_id(&self, url: &str) -> String {
        self.write("url", url);
        let output = Command::new("md5sum")
            .arg(self.path("url"))
            .output()
            .unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .split(' ')
            .next()
            .unwrap()
            .to_owned()
    }
}

/// The configuration files of clients, and the member with the servers.
const CLIENTS: [(&str, &str); 5] = [
    (".config/Claude/claude_desktop_config.json", "mcpServers"),
    (".cursor/mcp.json", "mcpServers"),
    (".config/Code/User/mcp.json", "servers"),
    (".codeium/windsurf/mcp_config.json", "mcpServers"),
    (".config/zed/settings.json", "context_servers"),
];

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// J2: without `--write`, the changes of all clients are only printed. With it, each file gets a
/// private backup. A second run changes nothing.
#[tokio::test]
async fn all_clients_are_rewritten_once() {
    let home = Home::new();
    let text = |list: &str| {
        format!(
            "{{\n  // mine\n  \"{list}\": {{\n    \"a\": {{\n      \"command\": \"npx\",\n      \"args\": [\"-y\", \"mcp-remote\", \
             \"https://a.example/mcp\", \"--header\", \"X-Key: hush\"],\n    }},\n  }},\n}}\n"
        )
    };
    CLIENTS
        .iter()
        .for_each(|(path, list)| home.write(path, &text(list)));
    let preview = home.run(&["import-mcp-remote"]).await;
    assert_eq!(preview.code, Some(0), "{preview:?}");
    assert_eq!(
        preview
            .stdout
            .matches("+      \"args\": [\"connect\", \"https://a.example/mcp\", ")
            .count(),
        5,
        "{preview:?}"
    );
    assert!(!preview.stdout.contains("hush"), "{preview:?}");
    assert!(preview.stderr.contains("--write"), "{preview:?}");

    CLIENTS
        .iter()
        .for_each(|(path, list)| assert_eq!(home.read(path), text(list)));

    let written = home
        .run(&["import-mcp-remote", "--write", "--command", "portcullis"])
        .await;
    assert_eq!(written.code, Some(0), "{written:?}");
    for (path, list) in CLIENTS {
        let result = home.read(path);
        assert!(result.contains("// mine"), "{result}");
        assert!(result.contains("\"command\": \"portcullis\""), "{result}");
        assert!(
            result.contains("[\"connect\", \"https://a.example/mcp\", \"--header\", \"X-Key: hush\", \"--store\""),
            "{result}"
        );
        let backup = format!("{path}.backup-1");
        assert_eq!(home.read(&backup), text(list));
        assert_eq!(mode(home.0.path().join(&backup).as_path()), 0o600);
    }
    let again = home.run(&["import-mcp-remote", "--write"]).await;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.stderr.contains("nothing to change"), "{again:?}");
    for (path, _) in CLIENTS {
        assert!(
            !home.0.path().join(format!("{path}.backup-2")).exists(),
            "{path}"
        );
    }
}

/// I9, H3: the tokens of mcp-remote move with their client registration and are refreshed at their
/// issuer. The files of mcp-remote are deleted.
#[tokio::test]
async fn tokens_move_with_their_registration() {
    let ((_demo, url), home) = (demo().await, Home::new());
    let scopes = ["--scope", "mcp:tools offline_access"];
    let signed_in = home
        .run(
            &[
                &[
                    "login",
                    &url,
                    "--auto-consent",
                    "--store",
                    &home.path("first"),
                ][..],
                &scopes,
            ]
            .concat(),
        )
        .await;
    assert_eq!(signed_in.code, Some(0), "{signed_in:?}");

    let entry = |prefix: &str| -> Value {
        let entries = fs::read_dir(home.path("first"))
            .unwrap()
            .map(|entry| entry.unwrap().path());
        let mut entries = entries.filter(|path| path.extension().is_some_and(|it| it == "json"));
        let path = entries
            .find(|path| {
                path.file_name()
                    .unwrap()
                    .to_str()
                    .unwrap()
                    .starts_with(prefix)
            })
            .unwrap();
        serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
    };
    let token = entry("token-");
    let client = entry("client-");
    assert!(token["refresh_token"].is_string());

    fs::remove_dir_all(home.path("first")).unwrap();

    let configuration =
        json!({ "mcpServers": { "a": { "command": "npx", "args": ["mcp-remote", url] } } })
            .to_string();
    home.write(".cursor/mcp.json", &configuration);
    let id = home.session_id(&url);
    let tokens = json!({
        "access_token": token["access_token"], "token_type": "Bearer", "refresh_token": token["refresh_token"],
        "expires_in": 60, "expires_at": 1_000, "scope": "mcp:tools offline_access", "issuer": token["issuer"],
    });
    let mut registration = client["registration"].clone();
    registration["issuer"] = token["issuer"].clone();
    registration["redirect_uris"] = json!(["http://localhost:4444/oauth/callback"]);
    let tokens_file = format!(".mcp-auth/mcp-remote-v1/{id}_tokens.json");
    let client_file = format!(".mcp-auth/mcp-remote-v1/{id}_client_info.json");
    home.write(&tokens_file, &tokens.to_string());
    home.write(&client_file, &registration.to_string());

    let preview = home.run(&["import-mcp-remote"]).await;
    assert!(
        preview.stdout.contains(&format!(
            "the sign-in at {} moves",
            token["issuer"].as_str().unwrap()
        )),
        "{preview:?}"
    );
    assert!(home.0.path().join(&tokens_file).exists());

    let written = home.run(&["import-mcp-remote", "--write"]).await;
    assert_eq!(written.code, Some(0), "{written:?}");
    let secret = token["refresh_token"].as_str().unwrap();
    assert!(!format!("{preview:?}{written:?}").contains(secret));
    assert!(!home.0.path().join(&tokens_file).exists());
    assert!(!home.0.path().join(&client_file).exists());

    let renewed = home.run(&["token", &url]).await;
    assert_eq!(renewed.code, Some(0), "{renewed:?}");
    assert_ne!(
        renewed.stdout.trim(),
        token["access_token"].as_str().unwrap(),
        "the expired token was refreshed"
    );
}
