//! Plans of configurations with `[broker]`.

mod generated_providers;
mod provider_warnings;
mod providers;

use std::{collections::BTreeSet, fs, io::Write as _};

use portcullis_broker::BrokerKeys;
use tempfile::NamedTempFile;

use portcullis_metadata::Secret;

use super::*;
use crate::{SecretSource, schema};

const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";
const OTHER_TENANT: &str = "bbbbbbbb-0000-cccc-1111-dddd2222eeee";

/// A valid configuration with a broker and no issuer. `SECRET` is a file.
const BROKER: &str = r#"
listen = "127.0.0.1:0"
base_url = "https://mcp.example.com"
state_dir = "/var/lib/portcullis"

[[resource]]
endpoint = "/mcp"
resource_name = "Example"
scopes_supported = ["mcp:tools", "mcp:files"]
required_scopes = ["mcp:tools"]
upstream = { http = "http://127.0.0.1:8000/mcp" }

  [[resource.rule]]
  method = "tools/call"
  scopes = ["mcp:admin"]

  [[resource.route]]
  path = "/mcp"
  methods = ["DELETE"]
  scopes = ["mcp:end"]

[broker]
access_token_lifetime = "1h"

  [[broker.provider]]
  kind = "keycloak"
  issuer = "https://auth.example.com/realms/prod"
  client_id = "portcullis"
  client_secret = { file = "SECRET" }
"#;

fn secret() -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(b"0123456789abcdef0123456789abcdef").unwrap();
    file
}

/// Validates [`BROKER`] with these replacements.
fn broker(edits: &[(&str, &str)]) -> anyhow::Result<Plan> {
    let secret = secret();
    let mut text = BROKER.to_owned();
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    check(&text.replace("SECRET", secret.path().to_str().unwrap()))
}

/// Validates [`BROKER`] with lines in the table of the provider.
fn provider(kind: &str, lines: &str) -> anyhow::Result<Plan> {
    broker(&[
        (
            "  issuer = \"https://auth.example.com/realms/prod\"\n",
            &format!("{lines}\n"),
        ),
        ("\"keycloak\"", &format!("\"{kind}\"")),
        ("\"portcullis\"", client_id(kind)),
    ])
}

/// Returns an identifier as those that the provider gives to applications.
fn client_id(kind: &str) -> &'static str {
    match kind {
        "google" => "\"1234567890-example.apps.googleusercontent.com\"",
        "entra" => "\"11112222-bbbb-3333-cccc-4444dddd5555\"",
        _ => "\"portcullis\"",
    }
}

/// Returns the warnings about the broker.
fn warnings(plan: &Plan) -> Vec<&str> {
    let texts = plan.warnings.iter().map(|warning| warning.text.as_str());
    texts.filter(|text| text.starts_with("broker")).collect()
}

#[track_caller]
fn assert_error(plan: anyhow::Result<Plan>, key: &str, words: &str) {
    let error = format!("{:#}", plan.err().expect("an error"));
    assert!(
        error.starts_with(key) && error.contains(words) && !error.contains('\n'),
        "{key} … {words}: {error}"
    );
}

/// A broker needs no `[[issuer]]`: it is the issuer of all resources, and the first in their
/// metadata.
#[test]
fn the_broker_is_the_issuer_of_resources() {
    let plan = broker(&[]).unwrap();
    assert_eq!(warnings(&plan), [""; 0]);
    let resource = &plan.resources[0];
    assert!(resource.accepts_broker && resource.issuers.is_empty());
    let servers = |plan: &Plan| {
        plan.resources[0]
            .metadata
            .authorization_servers
            .iter()
            .map(|issuer| issuer.as_str().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(servers(&plan), ["https://mcp.example.com"]);
    let settings = plan.broker.unwrap().settings;
    assert_eq!(settings.issuer.as_str(), "https://mcp.example.com");

    let issuer = "[[issuer]]\nissuer = \"https://auth.example.com\"\n\n[broker]";
    let both = broker(&[("[broker]", issuer)]).unwrap();
    assert_eq!(
        servers(&both),
        ["https://mcp.example.com", "https://auth.example.com"]
    );
    assert_eq!(both.resources[0].issuers, [0]);

    let own = (
        "endpoint = \"/mcp\"",
        "endpoint = \"/mcp\"\nissuers = [\"https://mcp.example.com\"]",
    );
    let only_own = broker(&[("[broker]", issuer), own]).unwrap();
    assert_eq!(servers(&only_own), ["https://mcp.example.com"]);
    assert!(only_own.resources[0].accepts_broker && only_own.resources[0].issuers.is_empty());
}

/// The issuer of the broker is not configured once more, however its URL is written.
#[test]
fn the_broker_is_no_configured_issuer() {
    for (base_url, issuer) in [
        ("https://mcp.example.com", "https://mcp.example.com"),
        ("https://mcp.example.com:443", "https://mcp.example.com"),
        ("https://mcp.example.com/", "https://MCP.example.com:443/"),
    ] {
        let issuer = format!("[[issuer]]\nissuer = \"{issuer}\"\n\n[broker]");
        let base_url = format!("\"{base_url}\"");
        let edits = [
            ("\"https://mcp.example.com\"", &*base_url),
            ("[broker]", &issuer),
        ];
        assert_error(
            broker(&edits),
            "issuer[0].issuer: it is base_url",
            "remove this [[issuer]]",
        );
    }
}

/// The base URL may be written with a slash and a default port.
#[test]
fn the_issuer_has_no_slash_at_its_end() {
    for base_url in ["https://MCP.example.com:443/", "https://mcp.example.com/"] {
        let plan = broker(&[("https://mcp.example.com", base_url)]).unwrap();
        let issuer = plan.broker.unwrap().settings.issuer;
        assert_eq!(issuer.as_str(), "https://mcp.example.com", "{base_url}");
    }
}

/// TK4: no token is issued for a resource that would not accept it.
#[test]
fn resources_without_the_broker_are_not_its_own() {
    let other = r#"
        [[issuer]]
        issuer = "https://auth.example.com"
        [[resource]]
        endpoint = "/other"
        issuers = ["https://auth.example.com"]
        upstream = { http = "http://127.0.0.1:8001/mcp" }
        [broker]"#;
    let plan = broker(&[("[broker]", other)]).unwrap();
    let accepts: Vec<bool> = plan
        .resources
        .iter()
        .map(|resource| resource.accepts_broker)
        .collect();
    assert_eq!(accepts, [true, false]);
    let settings = plan.broker.unwrap().settings;
    let uris: Vec<&str> = settings
        .resources
        .iter()
        .map(|resource| resource.uri.as_str())
        .collect();
    assert_eq!(uris, ["https://mcp.example.com/mcp"]);
    let default = other.replace("[broker]", "[broker]\ndefault_resource = \"/other\"");
    assert_error(
        broker(&[("[broker]", &default)]),
        "broker.default_resource = \"/other\"",
        "is not the endpoint of a resource that accepts the broker's tokens",
    );
    assert_error(
        broker(&[
            (
                "endpoint = \"/mcp\"",
                "issuers = [\"https://auth.example.com\"]\nendpoint = \"/mcp\"",
            ),
            (
                "[broker]",
                "[[issuer]]\nissuer = \"https://auth.example.com\"\n[broker]",
            ),
        ]),
        "broker: no resource accepts the tokens of the broker",
        "remove `issuers`",
    );
}

/// A resource has all scopes that its settings name. Clients that name none get the required ones.
#[test]
fn scopes_come_from_the_resources() {
    let scopes = |edits: &[(&str, &str)]| {
        let settings = broker(edits).unwrap().broker.unwrap().settings;
        let resource = &settings.resources[0];
        assert_eq!(resource.name.as_deref(), Some("Example"));
        (
            resource.scopes.as_str().to_owned(),
            resource.default_scopes.as_str().to_owned(),
        )
    };
    assert_eq!(
        scopes(&[]),
        (
            "mcp:admin mcp:end mcp:files mcp:tools".to_owned(),
            "mcp:tools".to_owned()
        )
    );
    let implied = "scope_implies = { all = [\"mcp:files\", \"one\"] }";
    assert_eq!(
        scopes(&[("required_scopes = [\"mcp:tools\"]", implied)]),
        (
            "all mcp:admin mcp:end mcp:files mcp:tools one".to_owned(),
            "mcp:files mcp:tools".to_owned()
        )
    );
}

/// Keys that cannot be used are an error with the name of the key and of the file, and without a
/// part of a secret.
#[test]
fn malformed_keys_are_refused() {
    let error = broker(&[("[broker]", "[broker]\nkeys = { file = \"SECRET\" }")]);
    let error = format!("{:#}", error.err().unwrap());
    assert!(error.starts_with("broker.keys: the file /"), "{error}");
    assert!(error.contains("line 1 is not a purpose"), "{error}");
    assert!(!error.contains("0123456789abcdef"), "{error}");
}

/// All values of the table are in the settings.
#[test]
fn all_values_are_planned() {
    let logo = NamedTempFile::new().unwrap();
    fs::write(logo.path(), "<svg xmlns=\"http://www.w3.org/2000/svg\"/>").unwrap();
    let keys = NamedTempFile::new().unwrap();
    fs::write(keys.path(), &*BrokerKeys::generate().unwrap()).unwrap();
    let lines = format!(
        r##"[broker]
        clients = {{ redirect_hosts = ["*.Example.com", "bücher.example:8443"], registration = false, max_registered = 7 }}
        default_resource = "/mcp"
        grant_lifetime = "30d"
        refresh_reuse = "0s"
        recheck = "2m"
        max_unchecked = "3m"
        remember_consent = true
        paste_callback = false
        claims = {{ email = "email", subject = "sub" }}
        keys = {{ file = "{}" }}
        page = {{ name = "Example", logo_file = "{}", accent = "#0b57D0" }}
        scope_descriptions = {{ "mcp:tools" = "Use the tools" }}
        introspection = [{{ client_id = "rs", client_secret = {{ file = "SECRET" }}, resource = "/mcp" }}]
        "##,
        keys.path().display(),
        logo.path().display()
    );
    let plan = broker(&[("[broker]", &lines)]).unwrap().broker.unwrap();
    assert!(plan.keys.is_some());
    assert_eq!(plan.fetch.len(), 1);
    let settings = plan.settings;
    assert_eq!(settings.default_resource, Some(0));
    let hosts: Vec<&str> = settings
        .clients
        .redirect_hosts
        .iter()
        .map(|host| &**host)
        .collect();
    assert_eq!(hosts, ["*.example.com", "xn--bcher-kva.example:8443"]);
    assert!(!settings.clients.registration && settings.clients.documents);
    assert_eq!(settings.clients.max_registered, 7);
    let lifetimes = settings.lifetimes;
    assert_eq!(lifetimes.access_token, Duration::from_secs(3600));
    assert_eq!(lifetimes.grant, Duration::from_secs(30 * 24 * 3600));
    assert_eq!(lifetimes.refresh_reuse, Duration::ZERO);
    assert_eq!(lifetimes.recheck, Duration::from_secs(120));
    assert_eq!(lifetimes.max_unchecked, Duration::from_secs(180));
    assert_eq!(settings.claims["subject"], "sub");
    let pages = settings.pages;
    assert!(pages.remember && !pages.paste_callback);
    assert_eq!(pages.name.as_deref(), Some("Example"));
    assert_eq!(pages.accent, Some([0x0b, 0x57, 0xd0]));
    assert_eq!(pages.logo.unwrap().media_type, "image/svg+xml");
    assert_eq!(pages.scopes["mcp:tools"], "Use the tools");
    let client = &settings.introspection_clients[0];
    assert_eq!(&*client.id, "rs");
    assert_eq!(client.resource.as_str(), "https://mcp.example.com/mcp");
}

/// A sign-in that ends with the process, and a rule about a claim that others can set, cause
/// warnings.
#[test]
fn questionable_brokers_cause_warnings() {
    let plan = broker(&[("\"/var/lib/portcullis\"", "\"off\"")]).unwrap();
    let found = warnings(&plan);
    assert!(
        found.len() == 1 && found[0].contains("end with the process"),
        "{found:?}"
    );

    let allow = "allow = [{ claim = \"email\", domain = [\"example.com\"] }]";
    let plan = provider("google", allow).unwrap();
    let found = warnings(&plan);
    assert!(
        found.len() == 1 && found[0].contains("use \"hd\""),
        "{found:?}"
    );
}

/// J10: a changed scope of a resource changes the broker, a changed limit does not.
#[test]
fn fingerprints_follow_the_table_and_its_resources() {
    let secret = secret();
    let of = |from: &str, to: &str| {
        assert!(BROKER.contains(from), "{from}");
        let text = BROKER
            .replacen(from, to, 1)
            .replace("SECRET", secret.path().to_str().unwrap());
        check(&text).unwrap().broker.unwrap().fingerprint
    };
    let same = of("[broker]", "[broker]");
    assert_eq!(of("[broker]", "[limits]\nmax_body = 9999\n[broker]"), same);
    for (from, to) in [
        ("[broker]", "[broker]\nrecheck = \"2m\""),
        ("https://mcp.example.com", "https://other.example.com"),
        ("\"mcp:files\"", "\"mcp:more\""),
        ("[\"mcp:admin\"]", "[\"mcp:more\"]"),
        ("\"Example\"", "\"Other\""),
        ("\"portcullis\"", "\"other\""),
    ] {
        assert_ne!(of(from, to), same, "{to}");
    }
    fs::write(secret.path(), "another secret").unwrap();
    assert_ne!(of("[broker]", "[broker]"), same);
}

/// The page has every key of the table, and no others.
#[test]
fn the_page_has_every_key() {
    let page = include_str!("../../../../../docs/use/configuration-broker.md");
    let keys = |header: &str| {
        let section = page.split(header).nth(1).unwrap();
        let section = section.split("\n#").next().unwrap();
        let cells = section.lines().filter_map(|line| line.split('|').nth(1));
        let names = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
        names.map(str::to_owned).collect::<BTreeSet<_>>()
    };
    let known = |table: &str| {
        let names = schema::keys_of(&KeyPath::parse(table));
        names
            .into_iter()
            .map(str::to_owned)
            .collect::<BTreeSet<_>>()
    };
    assert_eq!(
        keys("## `[[broker.provider]]`"),
        known("broker.provider[0]")
    );
    assert_eq!(
        keys("## `[[broker.introspection]]`"),
        known("broker.introspection[0]")
    );
    let mut expected = known("broker");
    for table in ["provider", "introspection", "clients", "page"] {
        assert!(expected.remove(table), "{table}");
    }
    for table in ["clients", "page"] {
        let inner = known(&format!("broker.{table}"));
        expected.extend(inner.iter().map(|name| format!("{table}.{name}")));
    }
    assert_eq!(keys("# `[broker]`"), expected);
}

/// J9: an invalid base URL is the only error, also if a resource lists the broker.
#[test]
fn an_invalid_base_url_is_one_error() {
    let error = broker(&[
        ("https://mcp.example.com", "http://mcp.example.com"),
        (
            "endpoint = \"/mcp\"",
            "endpoint = \"/mcp\"\nissuers = [\"https://mcp.example.com\"]",
        ),
    ]);
    assert_error(error, "base_url = \"http://mcp.example.com\"", "use https");
}

/// J9: an invalid resource causes no errors about its scopes in the broker.
#[test]
fn an_invalid_resource_is_one_error() {
    let error = broker(&[
        ("endpoint = \"/mcp\"", "endpoint = \"mcp\""),
        (
            "[broker]",
            "[broker]\ndefault_resource = \"/mcp\"\nscope_descriptions = { \"mcp:tools\" = \"Use\" }",
        ),
    ]);
    assert_error(
        error,
        "resource[0].endpoint = \"mcp\"",
        "must start with a slash",
    );
}

/// Replicas whose brokers have keys of their own would not accept each other's tokens.
#[cfg(feature = "redis")]
#[test]
fn replicas_need_common_keys() {
    let shared = "[shared]\nredis = \"redis://127.0.0.1\"\nassume_durable = true\n[broker]";
    let error = broker(&[("[broker]", shared)]);
    assert_error(error, "broker.keys", "all replicas must have the same keys");

    let mut keys = NamedTempFile::new().unwrap();
    keys.write_all(BrokerKeys::generate().unwrap().as_bytes())
        .unwrap();
    let keys = format!("{shared}\nkeys = {{ file = {:?} }}", keys.path());
    let plan = broker(&[("[broker]", &keys)]).unwrap();
    assert!(plan.replicas.unwrap().assumes_durable);
    // The records are in Redis.
    let in_memory = broker(&[
        ("state_dir = \"/var/lib/portcullis\"", "state_dir = \"off\""),
        ("[broker]", &keys),
    ]);
    let warnings = in_memory.unwrap().warnings;
    let is_about_memory = |warning: &&Diagnostic| warning.text.contains("in memory only");
    assert_eq!(warnings.iter().filter(is_about_memory).count(), 0);
}

/// `check` says what to register at each provider.
#[test]
fn the_notes_have_the_redirect_uri() {
    let plan = broker(&[(
        "kind = \"keycloak\"",
        "kind = \"keycloak\"\n  name = \"staff\"",
    )])
    .unwrap();
    let [note] = &plan.notes[..] else {
        panic!("{:?}", plan.notes)
    };
    for part in [
        "broker.provider[0]",
        "https://mcp.example.com/oauth/callback/staff;",
        "Valid redirect URIs",
        "https://mcp.example.com/oauth/logout/staff",
    ] {
        assert!(note.contains(part), "{part}: {note}");
    }
    let google = broker(&[
        (
            "kind = \"keycloak\"",
            "kind = \"google\"\n  allow = [{ claim = \"hd\", one_of = [\"a.example\"] }]",
        ),
        ("issuer = \"https://auth.example.com/realms/prod\"", ""),
    ])
    .unwrap();
    assert!(!google.notes[0].contains("logout"), "{:?}", google.notes);
}

/// A program can give a secret itself, which is never written.
#[test]
fn a_secret_of_the_program_is_used() {
    let mut config: Config = toml::from_str(&BROKER.replace("SECRET", "/nowhere")).unwrap();
    let table = config.broker.as_mut().unwrap();
    table.provider[0].client_secret = SecretSource::Given(Secret::new("hunter2"));
    let plan = Plan::new(&config).unwrap();
    let provider = &plan.broker.unwrap().settings.providers[0].settings;
    assert_eq!(provider.client_secret.secret(), "hunter2");
    assert!(serde_json::to_string(&config).is_err());
    assert!(!format!("{config:?}").contains("hunter2"));
}
