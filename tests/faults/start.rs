//! Invalid configurations: one line that names the problem and the fix, and a non-zero exit code.

mod files;
mod ports;
mod secrets;

use portcullis_scenarios::{Finished, Portcullis, Scratch};

const ISSUER: &str = "[[issuer]]\nissuer = \"https://auth.example.com\"\n";
const RESOURCE: &str =
    "[[resource]]\nendpoint = \"/mcp\"\nupstream = { http = \"http://127.0.0.1:9/mcp\" }\n";

fn with(top: &str, issuer: &str, resource: &str) -> String {
    let listen = if top.contains("listen") {
        ""
    } else {
        "listen = \"127.0.0.1:0\"\n"
    };
    let base_url = if top.contains("base_url") {
        ""
    } else {
        "base_url = \"http://127.0.0.1:3000\"\n"
    };
    format!("{listen}{base_url}{top}\n{ISSUER}{issuer}\n{RESOURCE}{resource}\n")
}

/// Asserts that a run failed with one line that has all these words and no other output.
fn assert_rejected(case: &str, finished: &Finished, words: &[&str]) {
    assert_eq!(finished.code, Some(1), "{case}: {finished:?}");
    assert_eq!(
        finished.stderr.trim_end().lines().count(),
        1,
        "{case}: {}",
        finished.stderr
    );
    assert!(
        finished.stderr.starts_with("error: "),
        "{case}: {}",
        finished.stderr
    );
    assert!(finished.stdout.is_empty(), "{case}: {finished:?}");
    for word in words {
        assert!(
            finished.stderr.contains(word),
            "{case}: {word:?} is missing: {}",
            finished.stderr
        );
    }
}

async fn assert_neither_serves_nor_checks(case: &str, configuration: &str, words: &[&str]) {
    let file = Scratch::file("bad.toml", configuration);
    for command in ["serve", "check"] {
        let finished = Portcullis::run(&[command, "--config", file.as_str()]).await;
        assert_rejected(&format!("{command}, {case}"), &finished, words);
        assert!(
            !finished.stderr.contains("hunter2"),
            "{case}: a secret is printed: {}",
            finished.stderr
        );
    }
}

/// A1, A3, A5: the metadata is validated at startup.
#[tokio::test]
async fn metadata() {
    let none = "base_url = \"http://127.0.0.1:3000\"\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\n";
    assert_neither_serves_nor_checks("no issuer", none, &["resource[0]", "/mcp", "issuer", "add"])
        .await;
    let offline = with("", "", "scopes_supported = [\"offline_access\"]");
    assert_neither_serves_nor_checks(
        "offline_access supported",
        &offline,
        &["offline_access", "resource[0].scopes_supported"],
    )
    .await;

    let offline = with("", "", "required_scopes = [\"offline_access\"]");
    assert_neither_serves_nor_checks(
        "offline_access required",
        &offline,
        &["offline_access", "resource[0].required_scopes"],
    )
    .await;

    let offline = with(
        "",
        "",
        "[[resource.rule]]\nmethod = \"*\"\nscopes = [\"offline_access\"]",
    );
    assert_neither_serves_nor_checks(
        "offline_access in a rule",
        &offline,
        &["offline_access", "resource[0].rule[0].scopes"],
    )
    .await;

    for duplicate in ["/MCP", "/mcp/", "/Mcp/", "/mcp"] {
        let configuration = with(
            "",
            "",
            &RESOURCE.replace("/mcp\"\nu", &format!("{duplicate}\"\nu")),
        );
        assert_neither_serves_nor_checks(duplicate, &configuration, &["/mcp", duplicate, "rename"])
            .await;
    }
    let defaults = with(
        "",
        "",
        &format!(
            "default = true\n{}default = true",
            RESOURCE.replace("\"/mcp\"", "\"/other\"")
        ),
    );
    assert_neither_serves_nor_checks("two defaults", &defaults, &["default = true"]).await;
}

/// C1, C6, C7: issuers are validated at startup.
#[tokio::test]
async fn issuers() {
    for (case, issuer, words) in [
        (
            "introspection without a client",
            "validate = \"introspection\"",
            &["issuer[0].client_id", "introspection"][..],
        ),
        (
            "both without a client",
            "validate = \"jwt+introspection\"",
            &["issuer[0].client_id", "introspection"],
        ),
        (
            "an unknown validation",
            "validate = \"hope\"",
            &[
                "issuer[0].validate has an unknown value",
                "known are \"jwt\"",
            ],
        ),
        (
            "no algorithm",
            "algorithms = []",
            &["issuer[0].algorithms", "RS256"],
        ),
        (
            "an unknown algorithm",
            "algorithms = [\"RS255\"]",
            &["RS255", "RS256"],
        ),
        ("none", "algorithms = [\"none\"]", &["none", "algorithms"]),
        ("HMAC", "algorithms = [\"HS256\"]", &["HS256", "algorithms"]),
        ("leeway", "leeway = \"61s\"", &["leeway", "60 s"]),
        (
            "cooldown",
            "jwks = { cooldown = \"0s\" }",
            &["cooldown", "1 s"],
        ),
        (
            "keys over plain http",
            "jwks_uri = \"http://keys.example.com/\"",
            &["jwks_uri", "https"],
        ),
        (
            "a key file that is missing",
            "jwks_file = \"/nowhere/jwks.json\"",
            &["/nowhere/jwks.json", "jwks_file"],
        ),
        (
            "two sources of keys",
            "jwks_uri = \"https://k.example/\"\njwks_file = \"/x\"",
            &["jwks_uri", "jwks_file", "remove one"],
        ),
        (
            "an audience that is not a URL",
            "audiences = [\"api\"]",
            &["audiences", "api", "absolute URL"],
        ),
        ("twice", ISSUER, &["https://auth.example.com", "twice"]),
        (
            "plain http",
            "[[issuer]]\nissuer = \"http://auth.example.com\"",
            &["http://auth.example.com", "https"],
        ),
        ("not a URL", "[[issuer]]\nissuer = \"auth\"", &["auth"]),
    ] {
        assert_neither_serves_nor_checks(case, &with("", issuer, ""), words).await;
    }
    let unknown = with("", "", "issuers = [\"https://auth.example.com/\"]");
    assert_neither_serves_nor_checks(
        "an issuer that is not configured",
        &unknown,
        &["https://auth.example.com/", "exactly this identifier"],
    )
    .await;
}

/// Unknown keys are rejected with the most similar known key, in every table.
#[tokio::test]
async fn unknown_keys() {
    for (case, configuration, words) in [
        (
            "at the top",
            with("lisen = \"127.0.0.1:1\"\nlisten = \"127.0.0.1:0\"", "", ""),
            &["lisen", "did you mean `listen`?"][..],
        ),
        (
            "in an issuer",
            with("", "algorithm = [\"RS256\"]", ""),
            &["issuer[0].algorithm", "did you mean `algorithms`?"],
        ),
        (
            "in a resource",
            with("", "", "required_scope = [\"a\"]"),
            &[
                "resource[0].required_scope",
                "did you mean `required_scopes`?",
            ],
        ),
        (
            "in limits",
            with("", "", "[limits]\nmax_bdy = 1"),
            &["limits.max_bdy", "did you mean `max_body`?"],
        ),
        (
            "in a session",
            with("", "", "[session]\nidle = \"1m\""),
            &["session.idle", "did you mean `idle_timeout`?"],
        ),
    ] {
        let words = [words, &["bad.toml"]].concat();
        assert_neither_serves_nor_checks(case, &configuration, &words).await;
    }
}

/// The error for an invalid value names its key.
#[tokio::test]
async fn values_out_of_bounds() {
    for (case, configuration, words) in [
        (
            "plain http",
            with("base_url = \"http://mcp.example.com\"", "", ""),
            &["base_url", "http://mcp.example.com", "https"][..],
        ),
        (
            "another scheme",
            with("base_url = \"ftp://127.0.0.1\"", "", ""),
            &["base_url", "ftp://127.0.0.1"],
        ),
        (
            "not a URL",
            with("base_url = \"mcp\"", "", ""),
            &["base_url", "not a URL"],
        ),
        (
            "a path",
            with("base_url = \"http://127.0.0.1/x\"", "", ""),
            &["base_url", "resource.endpoint"],
        ),
        (
            "an invalid address",
            with("listen = \"everywhere\"", "", ""),
            &["listen"],
        ),
        ("no workers", with("workers = 0", "", ""), &["workers = 0"]),
        (
            "a time without a unit",
            with("", "", "[session]\nidle_timeout = \"30\""),
            &["session.idle_timeout", "\"30m\""],
        ),
        (
            "no sessions",
            with("", "", "[session]\nmax_total = 0"),
            &["session.max_total"],
        ),
        (
            "too small a body",
            with("", "", "[limits]\nmax_body = 1"),
            &["limits.max_body"],
        ),
        (
            "a budget below one body",
            with("", "", "[limits]\nbody_budget = 1024"),
            &["limits.body_budget"],
        ),
        (
            "revisions",
            with("", "", "revisions = [\"2024-11-05\"]"),
            &["2024-11-05", "2025-06-18", "2026-07-28"],
        ),
        (
            "no revision",
            with("", "", "revisions = []"),
            &["revisions"],
        ),
        ("proto", with("", "", "proto = \"a b\""), &["proto", "a b"]),
        (
            "a host with a star",
            with("", "", "allowed_hosts = [\"*.example.com\"]"),
            &["*.example.com"],
        ),
        (
            "the null origin",
            with("", "", "allowed_origins = [\"null\"]"),
            &["null", "origin"],
        ),
        (
            "an origin with a path",
            with("", "", "allowed_origins = [\"https://a.example/x\"]"),
            &["https://a.example/x"],
        ),
        (
            "a reserved header",
            with("", "", "identity_headers = { Authorization = \"sub\" }"),
            &["authorization"],
        ),
        (
            "a reserved path",
            with("", "", "").replace("\"/mcp\"\nu", "\"/healthz\"\nu"),
            &["/healthz"],
        ),
        (
            "an endpoint without a slash",
            with("", "", "").replace("\"/mcp\"\nu", "\"mcp\"\nu"),
            &["endpoint", "slash"],
        ),
        (
            "an endpoint with dots",
            with("", "", "").replace("\"/mcp\"\nu", "\"/a/../mcp\"\nu"),
            &["endpoint", "dot segment"],
        ),
        (
            "an invalid upstream",
            with("", "", "").replace("http://127.0.0.1:9/mcp", "nowhere"),
            &["upstream", "nowhere"],
        ),
    ] {
        assert_neither_serves_nor_checks(case, &configuration, words).await;
    }
}
