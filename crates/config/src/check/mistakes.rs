//! Wrong configurations as people write them: each has one line with its place, its key and the
//! fix.

use std::{fs, path::Path};

use figment::Jail;

use super::check;
use crate::Overrides;

pub(super) const SOUND: &str = r#"listen = "127.0.0.1:3000"
base_url = "https://mcp.example.com"

[[issuer]]
issuer = "https://auth.example.com/realms/prod"

[[resource]]
endpoint = "/mcp"
required_scopes = ["mcp:tools"]
upstream = { http = "http://127.0.0.1:8000/mcp" }

[session]
idle_timeout = "30m"
"#;

const LISTEN: &str = "listen = \"127.0.0.1:3000\"";
const BASE_URL: &str = "base_url = \"https://mcp.example.com\"";
const ENDPOINT: &str = "endpoint = \"/mcp\"";
const TIMEOUT: &str = "idle_timeout = \"30m\"";

/// One mistake in [`SOUND`] a line, with five fields between tabs: the text that it replaces, the
/// mistake, the line that the error names, what the error begins with after file and line, and what
/// it contains to correct the mistake. `\n` is a line end.
const MISTAKES: &str = include_str!("../../tests/mistakes.tsv");

struct Mistake {
    sound: String,
    mistake: String,
    line: usize,
    start: String,
    fix: String,
}

impl Mistake {
    fn parse(row: &str) -> Self {
        let fields: Vec<String> = row
            .split('\t')
            .map(|field| field.replace("\\n", "\n").replace("\\\\", "\\"))
            .collect();
        let [sound, mistake, line, start, fix] =
            <[String; 5]>::try_from(fields).expect("five fields");
        Self {
            sound,
            mistake,
            line: line.parse().unwrap(),
            start,
            fix,
        }
    }
}

/// J9: every mistake has one line, which names the file, the line, the key and the fix.
#[test]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
fn every_mistake_has_key_line_and_fix() {
    let rows = MISTAKES.lines().filter(|row| !row.starts_with('#'));
    let mistakes: Vec<Mistake> = rows.map(Mistake::parse).collect();
    assert!(mistakes.len() >= 140, "{}", mistakes.len());
    let mut failures = Vec::new();
    Jail::expect_with(|jail| {
        jail.clear_env();
        jail.set_env("HOME", "/nonexistent");
        jail.set_env("PROVIDER_SECRET", "hunter2");
        for Mistake {
            sound,
            mistake,
            line,
            start,
            fix,
        } in &mistakes
        {
            assert!(SOUND.contains(sound.as_str()), "{sound}");
            let text = SOUND.replacen(sound, mistake, 1);
            for text in [
                text.clone(),
                format!("\u{feff}{}", text.replace('\n', "\r\n")),
                text.replace("\n", "\n\t"),
            ] {
                jail.create_file("portcullis.toml", &text)?;
                let lines = lines();
                let start = format!("portcullis.toml:{line}: {start}");
                let is_named =
                    |error: &String| error.starts_with(&start) && error.contains(fix.as_str());
                if lines.len() != 1 || !lines.iter().all(is_named) {
                    failures.push(format!("{mistake}\n  {start} … {fix}\n  {lines:#?}"));
                }
                assert!(
                    lines
                        .iter()
                        .all(|line| !line.contains("hunter2") && !line.contains('\n')),
                    "{lines:#?}"
                );
            }
        }
        Ok(())
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// J9: each mistake of a table has its own line, key and fix.
#[test]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
fn all_mistakes_of_a_table_are_named() {
    Jail::expect_with(|jail| {
        jail.clear_env();
        let files = "[tls]\ncertificates = \"/nowhere/a.pem\"\nkey = \"/nowhere/b.pem\"\n[session]";
        let sessions = "[session]\nmax_total = 0\nmax_per_owner = 0\nended_status = 500";
        jail.create_file(
            "portcullis.toml",
            &SOUND
                .replace("[session]", files)
                .replace("[session]", sessions),
        )?;
        let starts = [
            (
                13,
                "tls.certificates = \"/nowhere/a.pem\" cannot be read: there is no such file; correct the path",
            ),
            (
                14,
                "tls.key = \"/nowhere/b.pem\" cannot be read: there is no such file; correct the path",
            ),
            (16, "session.max_total = 0 is outside 1 to 10000000"),
            (17, "session.max_per_owner = 0 is outside 1 to 1000000"),
            (
                18,
                "session.ended_status = 500 is neither 400 nor 404; write one of them, or \"auto\"",
            ),
        ];
        assert_eq!(
            lines(),
            starts.map(|(line, text)| format!("portcullis.toml:{line}: {text}"))
        );

        let files =
            "[tls]\ncertificates = \"portcullis.toml\"\nkey = \"portcullis.toml\"\n[session]";
        jail.create_file("portcullis.toml", &SOUND.replace("[session]", files))?;
        let lines = lines();
        assert_eq!(lines.len(), 2, "{lines:#?}");
        assert!(lines[0].starts_with(
            "portcullis.toml:13: tls.certificates = portcullis.toml has no certificate; "
        ));
        assert!(
            lines[1].starts_with("portcullis.toml:14: tls.key = portcullis.toml is not a PEM file"),
            "{lines:#?}"
        );
        assert!(
            lines[1].ends_with("; name one that has BEGIN PRIVATE KEY"),
            "{lines:#?}"
        );
        Ok(())
    });
}

/// J9: a missing key is suggested for a name of it only.
#[test]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
fn missing_keys_are_suggested_for_their_names() {
    Jail::expect_with(|jail| {
        jail.clear_env();
        for (table, fixes) in [
            (
                "[tls]\nssl_certificate = \"/a.pem\"\nssl_certificate_key = \"/b.pem\"",
                &[
                    "13: tls.ssl_certificate is not a known key; did you mean `certificates`, which is missing?",
                    "14: tls.ssl_certificate_key is not a known key; did you mean `key`, which is missing?",
                ][..],
            ),
            (
                "[tls]\nmin_version = \"1.2\"",
                &[
                    "12: tls.certificates is missing; add certificates = \"/etc/portcullis/tls/fullchain.pem\"",
                    "12: tls.key is missing; add key = \"/etc/portcullis/tls/key.pem\"",
                    "13: tls.min_version is not a known key; remove it; TLS 1.2 and 1.3 are always served",
                ],
            ),
            (
                "[[resource.claim]]\nname = \"groups\"\nvalues = [\"x\"]",
                &[
                    "13: resource[0].claim[0].name is not a known key; did you mean `claim`, which is missing?",
                    "14: resource[0].claim[0].values is not a known key; did you mean `one_of`?",
                ],
            ),
        ] {
            let text = SOUND.replace("[session]", &format!("{table}\n[session]"));
            jail.create_file("portcullis.toml", &text)?;
            let expected: Vec<_> = fixes
                .iter()
                .map(|fix| format!("portcullis.toml:{fix}"))
                .collect();
            assert_eq!(lines(), expected);
        }
        Ok(())
    });
}

/// J9: one mistake causes one error, and errors of lifetimes do not hide each other.
#[test]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
fn mistakes_of_a_broker_are_independent() {
    Jail::expect_with(|jail| {
        jail.clear_env();
        let provider = "[[broker.provider]]\nkind = \"oidc\"\nissuer = \"https://a.example\"\nclient_id = \"x\"\n\
                        client_secret = { file = \"portcullis.toml\" }\n";
        for (broker, resource, expected) in [
            (
                "access_token_lifetime = \"2d\"\nrecheck = \"2d\"\nmax_unchecked = \"1d\"",
                "",
                &[
                    "6: broker.access_token_lifetime = \"2d\" is outside 1m to 24h",
                    "8: broker.max_unchecked = \"1d\" is shorter than recheck = \"2d\"",
                ][..],
            ),
            (
                "scope_descriptions = { \"mcp:tools\" = \"Use the tools\" }",
                "auth = \"none\"\n",
                &["16: resource[0].auth = \"none\" beside a [broker]"],
            ),
            (
                "remember_consent = true",
                "issuers = [\"https://a.example\"]\n",
                &[
                    "16: resource[0].issuers has \"https://a.example\", and no [[issuer]] has exactly this identifier; the [broker] \
                   issues the tokens: write \"https://mcp.example.com\"",
                ],
            ),
        ] {
            let text = SOUND
                .replace(
                    "[[issuer]]\nissuer = \"https://auth.example.com/realms/prod\"\n",
                    "",
                )
                .replace(
                    "\n[[resource]]",
                    &format!("\n[broker]\n{broker}\n\n{provider}\n[[resource]]"),
                )
                .replace(ENDPOINT, &format!("{ENDPOINT}\n{resource}"));
            jail.create_file("portcullis.toml", &text)?;
            let lines = lines();
            assert_eq!(lines.len(), expected.len(), "{lines:#?}");
            for (line, expected) in lines.iter().zip(expected) {
                let expected = format!("portcullis.toml:{expected}");
                assert!(line.starts_with(&expected), "{lines:#?} {expected}");
            }
        }
        Ok(())
    });
}

/// J9: files that cannot be read, and variables of the environment.
#[test]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
fn other_sources_are_named() {
    Jail::expect_with(|jail| {
        jail.clear_env();
        assert_eq!(
            lines()[0],
            "portcullis.toml: the configuration file does not exist"
        );
        let directory = jail.create_dir("portcullis.toml").unwrap();
        assert_eq!(lines()[0], "portcullis.toml: it is a directory");
        fs::remove_dir(directory).unwrap();
        let utf16: Vec<u8> = SOUND.encode_utf16().flat_map(u16::to_le_bytes).collect();
        fs::write("portcullis.toml", [&[0xff, 0xfe][..], &utf16].concat()).unwrap();
        assert!(
            lines()[0].contains("is UTF-16; save it as UTF-8"),
            "{:?}",
            lines()
        );
        jail.create_file("portcullis.toml", SOUND)?;
        assert_eq!(lines(), Vec::<String>::new());
        for (variable, value, words) in [
            (
                "PORTCULLIS_WORKERS",
                "many",
                "PORTCULLIS_WORKERS: workers is a string; expected an integer from 1 to 256",
            ),
            (
                "PORTCULLIS_WORKERS",
                "0",
                "PORTCULLIS_WORKERS: workers = 0 is outside 1 to 256",
            ),
            (
                "PORTCULLIS_SESSION__IDLE_TIMEOUT",
                "30",
                "PORTCULLIS_SESSION__IDLE_TIMEOUT: session.idle_timeout is an integer",
            ),
            (
                "PORTCULLIS_LOG_FORMAT",
                "json",
                "PORTCULLIS_LOG_FORMAT: log_format is not a known key; remove it, and start the server with the option --log-format \
                 json",
            ),
            (
                "PORTCULLIS_LISTN",
                "127.0.0.1:1",
                "PORTCULLIS_LISTN: listn is not a known key; did you mean `listen`?",
            ),
            (
                "PORTCULLIS_SESSION_IDLE_TIMEOUT",
                "10m",
                "PORTCULLIS_SESSION_IDLE_TIMEOUT: session_idle_timeout is not a known key; did you mean \
                 PORTCULLIS_SESSION__IDLE_TIMEOUT, with two underscores?",
            ),
            (
                "PORTCULLIS_LISTEN",
                "3000",
                "PORTCULLIS_LISTEN: listen is an integer; expected a string, such as PORTCULLIS_LISTEN=127.0.0.1:3000",
            ),
            (
                "PORTCULLIS_TRUSTED_PROXIES",
                "10.0.0.0/8,192.168.0.0/16",
                "PORTCULLIS_TRUSTED_PROXIES: trusted_proxies is a string; expected an array, such as \
                 PORTCULLIS_TRUSTED_PROXIES='[\"10.0.0.0/8\"]'",
            ),
            (
                "PORTCULLIS_RESOURCE__0__ENDPOINT",
                "/x",
                "PORTCULLIS_RESOURCE__0__ENDPOINT: resource[0].endpoint is in a list, and can only be set in the file",
            ),
            (
                "PORTCULLIS_ISSUER",
                "https://auth.example.com",
                "PORTCULLIS_ISSUER: issuer is a string; expected an array of tables; remove this variable, and write \
                 [[issuer]] in the file",
            ),
            (
                "PORTCULLIS_BASE_URL",
                "https://${HOST}",
                "PORTCULLIS_BASE_URL: base_url contains ${…}, which is not replaced here; write the value",
            ),
            (
                "PORTCULLIS_RESOURCE_ENDPOINT",
                "/x",
                "PORTCULLIS_RESOURCE_ENDPOINT: resource_endpoint is not a known key; keys of [[resource]] can only be set in \
                 the file",
            ),
            (
                "PORTCULLIS_ADMIN__METRICS_TOKEN",
                "{ env = \"A\" }",
                "PORTCULLIS_ADMIN__LISTEN: admin.listen is missing; set PORTCULLIS_ADMIN__LISTEN=127.0.0.1:9900",
            ),
            (
                "PORTCULLIS_BROKER__KEYS",
                "hunter2",
                "PORTCULLIS_BROKER__KEYS: broker.keys: a secret is not written into the configuration; name its source: \
                 PORTCULLIS_BROKER__KEYS__ENV=NAME or PORTCULLIS_BROKER__KEYS__FILE=/path",
            ),
            (
                "PORTCULLIS_BROKER__RECHECK",
                "30",
                "PORTCULLIS_BROKER__RECHECK: broker.recheck is an integer; expected a duration with a unit, such as \
                 PORTCULLIS_BROKER__RECHECK=",
            ),
        ] {
            jail.set_env(variable, value);
            let lines = lines();
            assert!(
                lines.len() == 1 && lines[0].starts_with(words),
                "{lines:#?}"
            );
            jail.clear_env();
        }
        Ok(())
    });
}

/// J9: several mistakes of different types are found at once, in the order of their lines.
#[test]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
fn all_mistakes_are_found_at_once() {
    Jail::expect_with(|jail| {
        jail.clear_env();
        let text = SOUND
            .replace(LISTEN, "listen = \"localhost\"")
            .replace(BASE_URL, "base_url = \"http://mcp.example.com\"")
            .replace(
                "[[resource]]",
                "algorithms = [\"none\"]\nleeway = \"2m\"\n[[resource]]",
            )
            .replace(ENDPOINT, "endpoint = \"mcp\"\nrevisions = []")
            .replace(TIMEOUT, "idle_timeout = 30\nmax_total = 0");
        jail.create_file("portcullis.toml", &text)?;
        let keys: Vec<String> = lines()
            .iter()
            .map(|line| line.split(' ').nth(1).unwrap().trim_end_matches(':').into())
            .collect();
        let expected = [
            "listen",
            "base_url",
            "issuer[0].algorithms",
            "issuer[0].leeway",
            "resource[0].endpoint",
            "resource[0].revisions",
            "session.idle_timeout",
            "session.max_total",
        ];
        assert_eq!(keys, expected, "{:#?}", lines());
        Ok(())
    });
}

/// The errors of the configuration, or the warnings of one that is valid.
pub(super) fn lines() -> Vec<String> {
    let found = match check(Path::new("portcullis.toml"), Overrides::default()) {
        Ok((loaded, plan)) => loaded.places.locate(plan.warnings),
        Err(errors) => errors.0,
    };
    found.iter().map(ToString::to_string).collect()
}
