//! Tests of the translation of arguments.

use std::path::Path;

use super::*;

fn translate(texts: &[&str]) -> anyhow::Result<Translation> {
    let arguments = Arguments::parse(texts.iter().copied())?;
    let variable = |name: &str| (name == "SECRET").then(|| "hush".to_owned());
    let context = Context {
        environment: Some(&variable),
        store: Some(Path::new("/store")),
    };
    Translation::of(&arguments, &context)
}

const URL: &str = "https://mcp.example.com/mcp";

/// Options that have an equivalent are translated without a notice.
#[test]
fn options_are_honoured() {
    for (arguments, expected) in [
        (
            &["--header", "A:b"][..],
            "--header A:b --store /store/mcp-remote-4d2d8d3f4b",
        ),
        (
            &["--header", "Authorization: x"],
            "--header Authorization: x",
        ),
        (
            &[
                "--header",
                "Authorization: x",
                "--header",
                "Authorization: y",
            ],
            "--header Authorization: y",
        ),
        (&["--transport", "http-only"], "--transport http"),
        (&["--transport", "sse-only"], "--transport sse"),
        (
            &[
                "--transport",
                "http-first",
                "--protocol",
                "legacy",
                "--body-timeout",
                "0",
                "--enable-proxy",
            ],
            "",
        ),
        (&["--headers-timeout", "1.5"], "--timeout 2"),
        (&["--headers-timeout", "0"], "--timeout 86400"),
        (&["--debug", "--silent"], ""),
        (&["--resource", URL], ""),
        (&["--resource", ""], "--no-resource"),
        (&["--disable-resource-parameter"], "--no-resource"),
        (&["--device-code"], "--device"),
        (&["--client-credentials"], "--client-credentials"),
        (
            &["--static-oauth-client-metadata", r#"{"scope":"a b"}"#],
            "--scope a b",
        ),
        (
            &["9696", "--host", "127.0.0.1", "--callback-path", "/cb"],
            "--callback-port 9696 --callback-host 127.0.0.1 --callback-path /cb",
        ),
        (
            &[
                "--static-oauth-client-info",
                r#"{"client_id":"-me","client_secret":"${SECRET}"}"#,
            ],
            "--client-id=-me --callback-port 41409 --callback-host localhost --callback-path /oauth/callback",
        ),
    ] {
        let translation = translate(&[&[URL][..], arguments].concat()).unwrap();
        assert_eq!(translation.notices, [""; 0], "{arguments:?}");
        let texts = translation.arguments.join(" ");
        let rest = texts
            .strip_prefix(&format!("connect {URL}"))
            .unwrap()
            .trim_start();
        match expected.split_once("mcp-remote-") {
            Some((before, _)) => assert!(rest.starts_with(before), "{rest}"),
            None => assert_eq!(rest, expected),
        }
    }
    let client = [
        "--static-oauth-client-info",
        r#"{"client_id":"me","client_secret":"${SECRET}"}"#,
    ];
    let translation = translate(&[&[URL][..], &client].concat()).unwrap();
    assert_eq!(translation.client_secret.unwrap().secret(), "hush");
}

/// Every other option is answered with one line.
#[test]
fn other_options_are_answered_with_one_line() {
    for arguments in [
        &["--allow-http"][..],
        &["--ipv4"],
        &["--keep-alive"],
        &["--ping-interval", "60"],
        &["--use-id-token"],
        &["--body-timeout", "60"],
        &["--connect-timeout", "5"],
        &["--headers-timeout", "-1"],
        &["--headers-timeout", "NaN"],
        &["--auth-timeout", "60"],
        &["--auth-success-url", "https://a.example/"],
        &["--protocol", "auto"],
        &["--transport", "sse-first"],
        &["--transport", "carrier-pigeon"],
        &["--client-metadata-url", "https://a.example"],
        &["--static-oauth-client-metadata", r#"{"client_name":"x"}"#],
        &["--header", "no header"],
        &[
            "--header",
            "Content-Length: 1",
            "--header",
            "Authorization: x",
        ],
        &["--resource", "https://tenant.example.com/"],
        &["--disable-cookies"],
        &["--host"],
        &["--frobnicate"],
        &["--callback-path", "relative", "--callback-path", "/x"],
    ] {
        let translation = translate(&[&[URL][..], arguments].concat()).unwrap();
        let expected = if arguments.contains(&"/x") { 2 } else { 1 };
        assert_eq!(
            translation.notices.len(),
            expected,
            "{arguments:?} {:?}",
            translation.notices
        );
        assert!(
            translation
                .notices
                .iter()
                .all(|notice| !notice.contains('\n'))
        );
    }
}

/// I9: what would weaken security is refused, and no error repeats a secret.
#[test]
fn what_weakens_security_is_refused() {
    let secret = r#"{"client_secret":"hush"#;
    for arguments in [
        &["http://mcp.example.com/mcp"][..],
        &["http://mcp.example.com/mcp", "--allow-http"],
        &["http://10.0.0.1/mcp", "--allow-http"],
        &["http://localhost.evil.example/mcp", "--allow-http"],
        &["https://me:hush@mcp.example.com/mcp"],
        &[URL, "--host", "evil.example"],
        &[URL, "--host", "0.0.0.0"],
        &[URL, "--ignore-tool", "delete*"],
        &[
            URL,
            "--authorize-param",
            "redirect_uri=https://hush.example",
        ],
        &[URL, "--authorize-param", "hush"],
        &[URL, "--token-endpoint", "https://hush.example"],
        &[URL, "--static-oauth-client-info", secret],
        &[
            URL,
            "--static-oauth-client-info",
            r#"{"client_secret":"hush"}"#,
        ],
        &[URL, "--static-oauth-client-info", "@/nonexistent/info.json"],
        &[URL, "--header-file", "/nonexistent/headers"],
        &[URL, "--header-file", "/dev/zero"],
        &[URL, "--resource", "hush"],
    ] {
        let error = format!("{:#}", translate(arguments).unwrap_err());
        assert!(!error.contains("hush"), "{error}");
    }
    assert!(translate(&["http://127.0.0.1:3000/mcp", "--allow-http"]).is_ok());
    assert!(translate(&["http://localhost:3000/mcp"]).is_ok());
}

/// Every option that is passed on belongs to `connect`.
#[test]
fn translated_arguments_are_accepted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("headers");
    std::fs::write(
        &file,
        "# a comment\n\nX-Team: blue\nAuthorization: Bearer ${SECRET}\n",
    )
    .unwrap();
    let texts = [
        &[
            URL,
            "9696",
            "--header-file",
            file.to_str().unwrap(),
            "--transport",
            "sse-only",
        ][..],
        &[
            "--static-oauth-client-info",
            r#"{"client_id":"-me"}"#,
            "--headers-timeout",
            "60",
        ],
        &[
            "--static-oauth-client-metadata",
            r#"{"scope":"a b","token_endpoint_auth_method":"client_secret_post"}"#,
        ],
        &[
            "--disable-resource-parameter",
            "--authorize-param",
            "access_type=offline",
        ],
        &["--device-code"],
    ]
    .concat();
    let (connect, notices) = translated(
        &texts
            .iter()
            .map(|&text| text.to_owned())
            .collect::<Vec<_>>(),
    )
    .unwrap();
    assert_eq!(
        connect.headers,
        ["X-Team: blue", "Authorization: Bearer ${SECRET}"],
        "{notices:?}"
    );
    assert_eq!(connect.sign_in.client_id.as_deref(), Some("-me"));
    assert_eq!(connect.sign_in.callback_port, Some(9696));
    assert_eq!(connect.timeout, 60);
    assert!(connect.device);
}

/// The guide describes every option.
#[test]
fn the_guide_names_every_option() {
    const GUIDE: &str = include_str!("../../../../docs/use/migrate-from-mcp-remote.md");
    for option in arguments::SWITCHES.iter().chain(&arguments::OPTIONS) {
        assert!(GUIDE.contains(&format!("`{option}")), "{option}");
    }
}
