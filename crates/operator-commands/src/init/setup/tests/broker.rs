//! The answers about `[broker]`.

use super::*;

/// Runs `init` without requests on these answers. Returns the file and what was shown.
fn file(lines: &'static str, options: &[&str]) -> (String, String) {
    let (questions, shown) = answered(lines);
    let arguments = arguments(options);
    let mut setup = Setup::new(&arguments, Product::default(), Some(questions)).unwrap();
    setup.ask_all().unwrap();
    let (values, _) = setup.finish().unwrap();
    (template::text(&values), shown.text())
}

#[track_caller]
fn assert_lines(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(
            text.lines().any(|other| other.trim() == *line),
            "{line}\n{text}"
        );
    }
}

/// A provider at which clients cannot register becomes that of a broker, if the user agrees.
#[test]
fn a_broker_is_proposed_for_such_a_provider() {
    let lines = "https://mcp.example.com\n\n\n\n\nhttps://accounts.google.com\n\n1.apps.googleusercontent.com\n\nexample.com\nhd=example.com\n";
    let (text, shown) = file(lines, &[]);
    assert_lines(
        &text,
        &[
            "[broker]",
            "kind = \"google\"",
            "# https://mcp.example.com/oauth/callback/google",
            "client_id = \"1.apps.googleusercontent.com\"",
            "client_secret = { env = \"GOOGLE_CLIENT_SECRET\" }",
            "allow = [{ claim = \"hd\", one_of = [\"example.com\"] }]",
        ],
    );
    assert!(!text.contains("[[issuer]]"), "{text}");
    for part in [
        "MCP clients cannot register at Google",
        "https://mcp.example.com/oauth/callback/google",
        "\"example.com\" is not a claim and its value",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
}

/// Without a broker, Entra ID stays an issuer, and Google is rejected.
#[test]
fn a_broker_can_be_declined() {
    let issuer = "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0";
    let lines = Box::leak(
        format!("\n\n\n\nhttps://accounts.google.com\nn\n{issuer}\nn\n").into_boxed_str(),
    );
    let (text, shown) = file(lines, &[]);
    assert_lines(&text, &["[[issuer]]", &format!("issuer = \"{issuer}\"")]);
    assert!(!text.contains("[broker]"), "{text}");
    assert!(shown.contains("only for Google's APIs"), "{shown}");
}

/// Every kind of provider has a valid file, from options alone.
#[test]
fn options_give_a_broker() {
    const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";
    let entra = format!("https://login.microsoftonline.com/{TENANT}/v2.0");
    let tenant = format!("tenant = \"{TENANT}\"");
    for (options, lines) in [
        (
            &[
                "--broker-kind",
                "google",
                "--broker-allow",
                "hd=a.example,b.example",
            ][..],
            &["allow = [{ claim = \"hd\", one_of = [\"a.example\", \"b.example\"] }]"][..],
        ),
        (
            &["--broker-kind", "github", "--broker-allow", "orgs=an-org"],
            &["kind = \"github\"", "scopes = [\"read:org\"]"],
        ),
        (
            &["--broker", "--issuer", &entra],
            &[
                "kind = \"entra\"",
                &tenant,
                "# allow = [{ claim = \"roles\", one_of = [\"mcp-users\"] }]",
            ],
        ),
        (
            &[
                "--broker",
                "--issuer",
                "https://auth.example.com/realms/prod",
            ],
            &[
                "kind = \"keycloak\"",
                "issuer = \"https://auth.example.com/realms/prod\"",
            ],
        ),
        (
            &[
                "--broker",
                "--issuer",
                "https://auth.example.com",
                "--broker-secret-env",
                "A_SECRET",
            ],
            &["kind = \"oidc\"", "client_secret = { env = \"A_SECRET\" }"],
        ),
        (
            &[
                "--broker-kind",
                "okta",
                "--issuer",
                "https://example.okta.com",
            ],
            &["kind = \"okta\"", "issuer = \"https://example.okta.com\""],
        ),
        (
            &["--broker", "--issuer", "https://example.eu.auth0.com/"],
            &[
                "kind = \"auth0\"",
                "issuer = \"https://example.eu.auth0.com/\"",
            ],
        ),
        (
            &[
                "--broker",
                "--issuer",
                "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_A",
            ],
            &["kind = \"cognito\""],
        ),
    ] {
        let required = [
            "--base-url",
            "http://127.0.0.1:3000",
            "--upstream",
            "http://127.0.0.1:9100/mcp",
            "--broker-client-id",
            "a-client",
        ];
        let arguments = arguments(&[&required, options].concat());
        crate::init::require_options(&arguments).unwrap();
        let mut setup = Setup::new(&arguments, Product::default(), None).unwrap();
        setup
            .ask_all()
            .unwrap_or_else(|error| panic!("{options:?}: {error:#}"));
        let (values, plan) = setup.finish().unwrap();
        let text = template::text(&values);
        assert_lines(&text, lines);
        assert_lines(&text, &["client_id = \"a-client\""]);
        let callback = format!(
            "http://127.0.0.1:3000/oauth/callback/{}",
            values.broker.as_ref().unwrap().source.kind.as_str()
        );
        assert!(text.contains(&callback), "{text}");
        assert!(
            plan.notes.iter().any(|note| note.contains(&callback)),
            "{:?}",
            plan.notes
        );
        assert!(
            text.lines().all(|line| line.chars().count() <= 125),
            "{text}"
        );
    }
}

/// What is missing or invalid is named by its option.
#[test]
fn invalid_options_of_a_broker_are_named() {
    for (options, named) in [
        (&["--broker-kind", "google"][..], "--broker-allow"),
        (
            &["--broker-kind", "google", "--broker-allow", "a.example"],
            "--broker-allow: ",
        ),
        (
            &[
                "--broker",
                "--issuer",
                "https://login.microsoftonline.com/common/v2.0",
            ],
            "<tenant ID>",
        ),
        (
            &[
                "--broker",
                "--issuer",
                "https://auth.example.com",
                "--broker-secret-env",
                "hunter-2",
            ],
            "--broker-secret-env: ",
        ),
    ] {
        let required = [
            "--base-url",
            "http://127.0.0.1:3000",
            "--upstream",
            "http://127.0.0.1:9100/mcp",
            "--broker-client-id",
            "a-client",
        ];
        let arguments = arguments(&[&required, options].concat());
        let mut setup = Setup::new(&arguments, Product::default(), None).unwrap();
        let error = setup.ask_all().unwrap_err().to_string();
        assert!(error.contains(named), "{named}: {error}");
    }
    let arguments = arguments(&["--broker-kind", "google"]);
    let error = crate::init::require_options(&arguments)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("--base-url, --upstream, --broker-client-id"),
        "{error}"
    );
}

/// The written settings in comments are valid, and a value cannot end its string.
#[test]
fn values_of_a_broker_stay_in_their_strings() {
    let options = [
        "--broker-kind",
        "google",
        "--broker-client-id",
        "a\"]#",
        "--broker-allow",
        "hd=a\"}]\nlisten=1",
    ];
    let (text, _) = file("\n\n\n\n\n", &options);
    let parsed: toml::Table = toml::from_str(&text).unwrap();
    let provider = &parsed["broker"]["provider"][0];
    assert_eq!(provider["client_id"].as_str(), Some("a\"]#"));
    assert_eq!(
        provider["allow"][0]["one_of"][0].as_str(),
        Some("a\"}]\nlisten=1")
    );
    let uncommented = text
        .replace("# clients = ", "clients = ")
        .replace("# scope_descriptions = ", "scope_descriptions = ");
    let config = portcullis_config::from_text(&uncommented).unwrap();
    let broker = config.broker.unwrap();
    assert_eq!(broker.clients.redirect_hosts, ["app.example.com"]);
    assert_eq!(broker.scope_descriptions.len(), 1);
}
