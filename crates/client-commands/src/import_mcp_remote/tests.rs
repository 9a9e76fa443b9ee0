//! Tests of the changes in configurations of all clients.

use std::fs;

use serde_json::json;

use super::*;

fn rewritten(text: &str) -> (String, Rewrite) {
    let replacement = Replacement {
        program: "/bin/portcullis",
        store: Some(Path::new("/s")),
        is_store_chosen: false,
    };
    let rewrite = Rewrite::of(text, &Document::parse(text).unwrap(), &replacement);
    (
        applied(text, 0..text.len(), &rewrite.edits, |edit| &edit.text),
        rewrite,
    )
}

fn assert_rewritten(text: &str, expected: &str) {
    let (result, rewrite) = rewritten(text);
    assert_eq!(result, expected);
    assert!(rewrite.servers.iter().all(|server| server.result.is_ok()));
    let (again, rewrite) = rewritten(&result);
    assert_eq!(again, result, "a second run changes nothing");
    assert_eq!(rewrite.servers.len(), 0, "a second run changes nothing");
}

#[test]
fn claude_desktop() {
    assert_rewritten(
        r#"{
  "globalShortcut": "",
  "mcpServers": {
    "linear": {
      "command": "npx",
      "args": ["-y", "mcp-remote", "https://mcp.linear.app/sse"]
    },
    "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"] }
  }
}
"#,
        r#"{
  "globalShortcut": "",
  "mcpServers": {
    "linear": {
      "command": "/bin/portcullis",
      "args": ["connect", "https://mcp.linear.app/sse"]
    },
    "files": { "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me"] }
  }
}
"#,
    );
}

#[test]
fn cursor() {
    assert_rewritten(
        r#"{
    "mcpServers": {
        "example": {
            "command": "npx",
            "args": [
                "mcp-remote@latest",
                "https://mcp.example.com/mcp",
                "--header",
                "Authorization:${AUTH_HEADER}",
                "--transport",
                "http-only"
            ],
            "env": { "AUTH_HEADER": "Bearer hush" }
        }
    }
}"#,
        r#"{
    "mcpServers": {
        "example": {
            "command": "/bin/portcullis",
            "args": [
                "connect",
                "https://mcp.example.com/mcp",
                "--header",
                "Authorization:${AUTH_HEADER}",
                "--transport",
                "http"
            ],
            "env": { "AUTH_HEADER": "Bearer hush" }
        }
    }
}"#,
    );
}

#[test]
fn vs_code() {
    assert_rewritten(
        "{\r\n\t// servers of the team\r\n\t\"servers\": {\r\n\t\t\"a\": {\r\n\t\t\t\"type\": \"stdio\",\r\n\t\t\t\"command\": \"npx\", // started by VS Code\r\n\t\t\t\"args\": [\"-y\", /* latest */ \"mcp-remote@latest\", \"https://a.example/mcp\", \"3334\",],\r\n\t\t},\r\n\t},\r\n}\r\n",
        "{\r\n\t// servers of the team\r\n\t\"servers\": {\r\n\t\t\"a\": {\r\n\t\t\t\"type\": \"stdio\",\r\n\t\t\t\"command\": \"/bin/portcullis\", // started by VS Code\r\n\t\t\t\"args\": [\"connect\", /* latest */ \"https://a.example/mcp\", \"--callback-port\", \"3334\", \"--callback-host\", \"localhost\", \"--callback-path\", \"/oauth/callback\",],\r\n\t\t},\r\n\t},\r\n}\r\n",
    );
}

#[test]
fn windsurf() {
    assert_rewritten(
        r#"{"mcpServers":{"w":{"command":"npx","args":["-y","mcp-remote","https://w.example/mcp","--static-oauth-client-metadata","{\"scope\":\"a b\"}"],"disabled":false}}}"#,
        r#"{"mcpServers":{"w":{"command":"/bin/portcullis","args":["connect","https://w.example/mcp","--scope", "a b"],"disabled":false}}}"#,
    );
}

#[test]
fn zed_in_both_forms() {
    assert_rewritten(
        r#"{
  "theme": "One Dark", // dark
  "context_servers": {
    "new": {
      "source": "custom",
      "command": "npx",
      "args": ["-y", "mcp-remote", "https://new.example/mcp"],
      "env": {}
    },
    "old": {
      "command": { "path": "npx", "args": ["mcp-remote", "https://old.example/mcp", "--debug"], "env": null },
      "settings": {}
    }
  }
}
"#,
        r#"{
  "theme": "One Dark", // dark
  "context_servers": {
    "new": {
      "source": "custom",
      "command": "/bin/portcullis",
      "args": ["connect", "https://new.example/mcp"],
      "env": {}
    },
    "old": {
      "command": { "path": "/bin/portcullis", "args": ["connect", "https://old.example/mcp"], "env": null },
      "settings": {}
    }
  }
}
"#,
    );
}

/// What is known only at the start stays in the arguments, for `portcullis mcp-remote`.
#[test]
fn values_of_the_start_are_left_to_it() {
    let text = r#"{"servers":{"a":{"command":"npx","args":["-y","mcp-remote","${input:url}","--debug"]}}}"#;
    let (result, _) = rewritten(text);
    assert!(
        result.contains(r#""args":["mcp-remote","${input:url}","--debug"]"#),
        "{result}"
    );
    let text = r#"{"servers":{"a":{"command":"npx","args":["mcp-remote","https://a.example/m","--static-oauth-client-info","{\"client_id\":\"x\",\"client_secret\":\"${S}\"}"]}}}"#;
    let (result, rewrite) = rewritten(text);
    assert!(
        result.contains(r#""args":["mcp-remote","https://a.example/m","--static-oauth"#),
        "{result}"
    );
    assert!(
        rewrite.servers[0]
            .result
            .as_ref()
            .unwrap()
            .client_secret
            .is_none()
    );
}

/// J2: the preview shows no secret of the file, and the changes.
#[test]
fn the_preview_hides_secrets() {
    let text = r#"{
  "mcpServers": {
    "a": {
      "env": { "TOKEN": "hush" }, // hush
      "command": "npx", /* hush
      hush */
      "args": ["mcp-remote", "https://a.example/mcp?key=hush", "--header", "Authorization: Bearer hush", // hush
        // "--header", "X-Key: hush",
        "--static-oauth-client-info", "{\"client_id\":\"me\",\"client_secret\":\"hush\"}"]
    }, "b": { "command": "other", "args": ["--key", "hush"] }
  }
}"#;
    let (result, rewrite) = rewritten(text);
    let shown = diff::diff(text, &rewrite.edits, &rewrite.masks).join("\n");
    assert!(!shown.contains("hush"), "{shown}");

    for expected in [
        "-      \"command\": \"npx\"",
        "+      \"command\": \"/bin/portcullis\"",
        "Authorization: …",
        "mcp?…",
    ] {
        assert!(shown.contains(expected), "{expected}\n{shown}");
    }
    assert!(!result.contains("client_secret"), "{result}");
    assert!(result.contains("--client-secret-file"), "{result}");
    assert_eq!(result.matches("// hush").count(), 2);
    assert!(result.contains("/* hush\n      hush */"));
}

/// A server that cannot be replaced safely stays as it is.
#[test]
fn uncertain_servers_stay() {
    for server in [
        r#"{"command":"sh","args":["-c","npx mcp-remote https://a.example/mcp"]}"#,
        r#"{"command":"npx mcp-remote https://a.example/mcp"}"#,
        r#"{"command":"npx","args":["mcp-remote"]}"#,
        r#"{"command":"npx","args":["mcp-remote","http://a.example/mcp","--allow-http"]}"#,
        r#"{"command":"npx","args":["mcp-remote","https://a.example/mcp",7]}"#,
        r#"{"command":"npx","args":["mcp-remote","https://a.example/mcp","--ignore-tool","x"]}"#,
    ] {
        let text = format!(r#"{{"mcpServers":{{"a":{server}}}}}"#);
        let (result, rewrite) = rewritten(&text);
        assert_eq!(result, text);
        assert_eq!(rewrite.servers.len(), 1, "{server}");
        assert!(rewrite.servers[0].result.is_err(), "{server}");
    }
    for server in [
        r#"{"command":"npx","command":"sh","args":["mcp-remote","https://a.example/mcp"]}"#,
        r#"{"command":7,"args":["mcp-remote"]}"#,
        r#"{"url":"https://a.example/mcp"}"#,
        "null",
    ] {
        let text = format!(r#"{{"mcpServers":{{"a":{server}}}}}"#);
        let (result, rewrite) = rewritten(&text);
        assert!(result == text, "{server}");
        assert!(rewrite.servers.is_empty(), "{server}");
    }
}

/// If a token cannot be moved, the configuration still names mcp-remote, so that the next run moves
/// the token.
#[test]
fn a_configuration_is_written_after_its_tokens_have_moved() {
    let directory = tempfile::tempdir().unwrap();
    let [path, store] = ["mcp.json", "store"].map(|name| directory.path().join(name));
    let replacement = Replacement {
        program: "portcullis",
        store: Some(&store),
        is_store_chosen: true,
    };
    let server = json!({
        "command": "npx",
        "args": ["mcp-remote", "https://a.example/mcp", "--static-oauth-client-info", r#"{"client_id":"x"}"#],
        "env": { "MCP_REMOTE_CONFIG_DIR": directory.path() },
    });
    let text = json!({ "mcpServers": { "a": server } }).to_string();
    fs::write(&path, &text).unwrap();

    let plan = || planned(&path, &replacement).unwrap().unwrap();
    let session = plan().servers[0]
        .result
        .as_ref()
        .unwrap()
        .session
        .as_str()
        .to_owned();
    let folder = directory.path().join("mcp-remote-v1");
    // A token cannot replace a folder.
    let [tokens, obstacle] =
        ["tokens.json", "tokens.json.moving"].map(|name| folder.join(format!("{session}_{name}")));
    fs::create_dir_all(&obstacle).unwrap();
    let token = json!({ "access_token": "t", "token_type": "Bearer", "issuer": "https://auth.example.com" });
    fs::write(&tokens, token.to_string()).unwrap();

    assert!(write(&plan()).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert!(tokens.exists());

    fs::remove_dir(&obstacle).unwrap();
    write(&plan()).unwrap();
    assert!(fs::read_to_string(&path).unwrap().contains("portcullis"));
    assert!(!tokens.exists());
}
