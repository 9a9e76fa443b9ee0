//! Wrong configurations as people write them: each has one line with its place, its key and the fix.

use std::{fs, path::Path};

use figment::Jail;

use super::valid;
use crate::cli::Check;

const SOUND: &str = r#"listen = "127.0.0.1:3000"
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
const ISSUER: &str = "issuer = \"https://auth.example.com/realms/prod\"";
const ENDPOINT: &str = "endpoint = \"/mcp\"";
const SCOPES: &str = "required_scopes = [\"mcp:tools\"]";
const UPSTREAM: &str = "upstream = { http = \"http://127.0.0.1:8000/mcp\" }";
const TIMEOUT: &str = "idle_timeout = \"30m\"";

/// The text to replace, the mistake, the line, the start of the text, and the fix.
type Mistake = (&'static str, &'static str, usize, &'static str, &'static str);

const TOP_LEVEL: &[Mistake] = &[
    (LISTEN, "listen = 127.0.0.1:3000", 1, "listen: ", "put the value in double quotes"),
    (LISTEN, "listen = 3000", 1, "listen is an integer", "such as listen = \"127.0.0.1:3000\""),
    (LISTEN, "listen = \":3000\"", 1, "listen: \":3000\" has no address", "write \"127.0.0.1:3000\" for this machine"),
    (LISTEN, "listen = \"127.0.0.1\"", 1, "listen: \"127.0.0.1\" has no port", "such as \"127.0.0.1:3000\""),
    (LISTEN, "listen = \"http://127.0.0.1:3000\"", 1, "listen: ", "is a URL; write an address and a port"),
    (LISTEN, "listen = \"localhost:99999\"", 1, "listen: ", "no port from 0 to 65535"),
    (LISTEN, "listen = \"mcp.invalid:3000\"", 1, "listen: ", "cannot be resolved; write an address and a port"),
    (LISTEN, "Listen = \"127.0.0.1:3000\"", 1, "Listen is not a known key", "did you mean `listen`?"),
    (LISTEN, "host = \"127.0.0.1\"", 1, "host is not a known key", "use one of"),
    (LISTEN, "workers = 0", 1, "workers = 0 is outside", "1 to 256"),
    (LISTEN, "workers = -2", 1, "workers is an integer", "expected a non-negative integer"),
    (LISTEN, "reload = \"auto\"", 1, "reload has the unknown value \"auto\"", "write one of \"signal\", \"watch\""),
    (LISTEN, "state_dir = \"\"", 1, "state_dir is empty", "name a directory, or \"off\""),
    (
        LISTEN,
        "trusted_proxies = \"10.0.0.0/8\"",
        1,
        "trusted_proxies is a string",
        "such as trusted_proxies = [\"10.0.0.0/8\"]",
    ),
    (LISTEN, "trusted_proxies = [\"nginx\"]", 1, "trusted_proxies: ", "a network such as `10.0.0.0/8`"),
    (LISTEN, "shutdown_timeout = 10", 1, "shutdown_timeout is an integer", "such as shutdown_timeout = \"10s\""),
    (LISTEN, "dangerous_allow_unauthenticated_network = \"true\"", 1, "dangerous_", "write it without quotes"),
    (BASE_URL, "base_url = \"http://mcp.example.com\"", 2, "base_url = ", "use https"),
    (BASE_URL, "base_url = \"https://mcp.example.com/mcp\"", 2, "base_url = ", "put the path into `resource.endpoint`"),
    (
        BASE_URL,
        "base_url = \"mcp.example.com\"",
        2,
        "base_url = \"mcp.example.com\" is not a URL",
        "write it as \"https://",
    ),
    (BASE_URL, "base_url = \"wss://mcp.example.com\"", 2, "base_url = ", "use https"),
    (BASE_URL, "base-url = \"https://mcp.example.com\"", 2, "base-url is not a known key", "did you mean `base_url`?"),
    (BASE_URL, "", 1, "base_url is missing", "add base_url = \"https://mcp.example.com\""),
    (BASE_URL, "base_url = \"\"", 2, "base_url = \"\" is not a URL", "write it as \"https://"),
    (TIMEOUT, "workers = 4", 13, "session.workers is a top-level key", "above the first table, [[issuer]] in line 4"),
];

const ISSUERS: &[Mistake] = &[
    ("[[issuer]]", "[issuer]", 4, "issuer is a single table", "write [[issuer]] instead of [issuer]"),
    ("[[issuer]]", "[[issuers]]", 4, "issuers is not a known key", "did you mean `issuer`?"),
    (
        ISSUER,
        "issuer = \"auth.example.com\"",
        5,
        "issuer[0].issuer: ",
        "such as \"https://auth.example.com/realms/prod\"",
    ),
    (ISSUER, "issuer = \"http://auth.example.com\"", 5, "issuer[0].issuer: ", "https"),
    (
        ISSUER,
        "url = \"https://auth.example.com\"",
        5,
        "issuer[0].url is not a known key",
        "did you mean `issuer`, which is missing?",
    ),
    (
        ISSUER,
        "issuer = \"https://login.microsoftonline.com/{tenantid}/v2.0\"",
        5,
        "issuer[0].issuer: ",
        "write the ID of your tenant",
    ),
    (
        "[[resource]]",
        "algorithms = \"RS256\"\n[[resource]]",
        7,
        "issuer[0].algorithms is a string",
        "algorithms = [\"RS256\"]",
    ),
    (
        "[[resource]]",
        "algorithms = [\"HS256\"]\n[[resource]]",
        7,
        "issuer[0].algorithms has \"HS256\"",
        "known are RS256",
    ),
    ("[[resource]]", "algorithms = []\n[[resource]]", 7, "issuer[0].algorithms: ", "name at least one"),
    (
        "[[resource]]",
        "audience = \"x\"\n[[resource]]",
        7,
        "issuer[0].audience is not a known key",
        "did you mean `audiences`?",
    ),
    ("[[resource]]", "audiences = [\"api\"]\n[[resource]]", 7, "issuer[0].audiences has \"api\"", "absolute URL"),
    (
        "[[resource]]",
        "jwks_url = \"https://a.example/jwks\"\n[[resource]]",
        7,
        "issuer[0].jwks_url",
        "did you mean `jwks_uri`?",
    ),
    ("[[resource]]", "jwks_uri = \"http://a.example/jwks\"\n[[resource]]", 7, "issuer[0].jwks_uri = ", "use https"),
    ("[[resource]]", "jwks_uri = \"/jwks\"\n[[resource]]", 7, "issuer[0].jwks_uri = \"/jwks\" is not a URL", "https"),
    ("[[resource]]", "jwks_file = \"keys.json\"\n[[resource]]", 7, "issuer[0].jwks_file = ", "write the absolute path"),
    (
        "[[resource]]",
        "jwks_file = \".\"\n[[resource]]",
        7,
        "issuer[0].jwks_file = ",
        "is a directory; name the file in it",
    ),
    (
        "[[resource]]",
        "jwks_file = \"/nowhere/keys.json\"\n[[resource]]",
        7,
        "issuer[0].jwks_file = ",
        "correct the path",
    ),
    ("[[resource]]", "jwks_file = \"portcullis.toml\"\n[[resource]]", 7, "issuer[0].jwks_file = ", "save the document"),
    ("[[resource]]", "leeway = 10\n[[resource]]", 7, "issuer[0].leeway is an integer", "such as leeway = \"10s\""),
    ("[[resource]]", "leeway = \"5m\"\n[[resource]]", 7, "issuer[0].leeway: ", "at most 60 s"),
    ("[[resource]]", "jwks.cooldown = \"0s\"\n[[resource]]", 7, "issuer[0].jwks.cooldown: ", "at least 1 s"),
    (
        "[[resource]]",
        "validate = \"opaque\"\n[[resource]]",
        7,
        "issuer[0].validate has",
        "write one of \"jwt\", \"introspection\"",
    ),
    (
        "[[resource]]",
        "validate = \"introspection\"\n[[resource]]",
        4,
        "issuer[0].client_id: ",
        "set it to the identifier",
    ),
    ("[[resource]]", "client_secret = \"hunter2\"\n[[resource]]", 7, "issuer[0].client_secret: ", "{ env = \"NAME\" }"),
    ("[[resource]]", "client_id = \"x\"\n[[resource]]", 7, "issuer[0].client_id is for introspection", "or remove it"),
    (
        "[[resource]]",
        "ca_file = \"/nowhere/ca.pem\"\n[[resource]]",
        7,
        "issuer[0].ca_file cannot be read",
        "name a PEM file",
    ),
    (
        "[[resource]]",
        "ca_file = \"portcullis.toml\"\n[[resource]]",
        7,
        "issuer[0].ca_file has no usable",
        "BEGIN CERTIFICATE",
    ),
    ("[[resource]]", "proxy = \"proxy:3128\"\n[[resource]]", 7, "issuer[0].proxy is not", "http or https URL"),
    (
        "[[resource]]",
        "require_at_jwt = \"true\"\n[[resource]]",
        7,
        "issuer[0].require_at_jwt is a string",
        "without quotes",
    ),
    (
        "[[resource]]",
        "scope_claims = [\"scope\"]\n[[resource]]",
        7,
        "issuer[0].scope_claims has \"scope\"",
        "JSON pointer",
    ),
    (
        "[[resource]]",
        "[[issuer]]\nissuer = \"https://auth.example.com/realms/prod\"\n[[resource]]",
        8,
        "issuer[1].issuer: ",
        "is configured twice; remove it here or in issuer[0]",
    ),
    (
        "[[resource]]",
        "validate = \"introspection\"\nclient_id = \"x\"\nclient_secret = { env = \"NOT_SET\" }\n[[resource]]",
        9,
        "issuer[0].client_secret: the environment variable NOT_SET is not set",
        "set it for this process",
    ),
    (
        "[[resource]]",
        "validate = \"introspection\"\nclient_id = \"x\"\nintrospection_endpoint = \"http://a.example/i\"\n[[resource]]",
        9,
        "issuer[0].introspection_endpoint = ",
        "use https",
    ),
];

const RESOURCES: &[Mistake] = &[
    ("[[resource]]", "[resource]", 7, "resource is a single table", "write [[resource]] instead of [resource]"),
    ("[[resource]]", "[[server]]", 7, "server is not a known key", "did you mean `resource`, which is missing?"),
    (
        ENDPOINT,
        "endpoint = \"mcp\"",
        8,
        "resource[0].endpoint = \"mcp\" must start with a slash",
        "write it as \"/mcp\"",
    ),
    (ENDPOINT, "endpoint = \"https://mcp.example.com/mcp\"", 8, "resource[0].endpoint = ", "write it as \"/mcp\""),
    (ENDPOINT, "endpoint = \"/healthz\"", 8, "resource[0].endpoint = ", "choose another one"),
    (
        ENDPOINT,
        "path = \"/mcp\"",
        8,
        "resource[0].path is not a known key",
        "did you mean `endpoint`, which is missing?",
    ),
    (ENDPOINT, "", 7, "resource[0].endpoint is missing", "add endpoint = \"/mcp\""),
    (
        ENDPOINT,
        "endpoint = \"/mcp\"\nauth = \"off\"",
        9,
        "resource[0].auth has the unknown value",
        "\"required\", \"none\"",
    ),
    (
        ENDPOINT,
        "endpoint = \"/mcp\"\nsessions = false",
        9,
        "resource[0].sessions is a boolean",
        "such as sessions = \"on\"",
    ),
    (
        ENDPOINT,
        "endpoint = \"/mcp\"\nproto = \"a b\"",
        9,
        "resource[0].proto = \"a b\"",
        "use letters, such as \"Mcp\"",
    ),
    (
        ENDPOINT,
        "endpoint = \"/mcp\"\nrevisions = [\"2024-11-05\"]",
        9,
        "resource[0].revisions has",
        "known are 2025-03-26",
    ),
    (ENDPOINT, "endpoint = \"/mcp\"\nrevisions = [2025-06-18]", 9, "resource[0].revisions[0] is", "expected a string"),
    (
        ENDPOINT,
        "endpoint = \"/mcp\"\nissuers = [\"https://auth.example.com/realms/prod/\"]",
        9,
        "resource[0].issuers has",
        "write it as there, \"https://auth.example.com/realms/prod\"",
    ),
    (
        SCOPES,
        "required_scopes = \"mcp:tools\"",
        9,
        "resource[0].required_scopes is a string",
        "such as required_scopes = [",
    ),
    (
        SCOPES,
        "required_scopes = [\"mcp:tools mcp:admin\"]",
        9,
        "resource[0].required_scopes: ",
        "one scope in each string",
    ),
    (SCOPES, "required_scopes = [\"offline_access\"]", 9, "resource[0].required_scopes: ", "remove it"),
    (SCOPES, "scopes = [\"mcp:tools\"]", 9, "resource[0].scopes is not a known key", "[[resource.rule]]"),
    (SCOPES, "allowed_hosts = [\"https://mcp.example.com\"]", 9, "resource[0].allowed_hosts: ", "write `name`"),
    (
        SCOPES,
        "allowed_origins = [\"https://app.example.com/x\"]",
        9,
        "resource[0].allowed_origins: ",
        "write `https://host`",
    ),
    (
        SCOPES,
        "identity_headers = { Authorization = \"sub\" }",
        9,
        "resource[0].identity_headers: ",
        "cannot be an identity header",
    ),
    (SCOPES, "forward_headers = [\"Authorization\"]", 9, "resource[0].forward_headers lists", "remove it"),
    (SCOPES, "upstream_head_timeout = \"48h\"", 9, "resource[0].upstream_head_timeout = ", "1s to 24h"),
    (SCOPES, "upstream_ca_file = \"/etc/ca.pem\"", 9, "resource[0].upstream_ca_file = ", "remove it, or use https"),
    (
        UPSTREAM,
        "upstream = \"http://127.0.0.1:8000/mcp\"",
        10,
        "resource[0].upstream is a string",
        "write upstream = { http = ",
    ),
    (
        UPSTREAM,
        "upstream = { url = \"http://127.0.0.1:8000\" }",
        10,
        "resource[0].upstream has",
        "\"demo\", \"http\", \"unix\"",
    ),
    (
        UPSTREAM,
        "upstream = { http = \"127.0.0.1:8000/mcp\" }",
        10,
        "resource[0].upstream.http = ",
        "write it as \"http://",
    ),
    (UPSTREAM, "upstream = { http = \"localhost:8000\" }", 10, "resource[0].upstream.http = ", "write it as \"http://"),
    (
        UPSTREAM,
        "upstream = { unix = \"mcp.sock\" }",
        10,
        "resource[0].upstream.unix = ",
        "write it as \"/run/mcp.sock\"",
    ),
    (UPSTREAM, "", 7, "resource[0].upstream is missing", "add upstream = { http = "),
    (
        "[session]",
        "[[resource]]\nendpoint = \"/MCP\"\nupstream = \"demo\"\n[session]",
        13,
        "resource[1].endpoint = ",
        "rename one",
    ),
    (
        "[session]",
        "[[resource.rule]]\nmethod = \"tools/call\"\n[session]",
        12,
        "resource[0].rule[0]: ",
        "add scopes, claims or a limit",
    ),
    (
        "[session]",
        "[[resource.rule]]\nmethod = \"tools/[ab]\"\nscopes = [\"x\"]\n[session]",
        13,
        "resource[0].rule[0].method = ",
        "a pattern with `*`",
    ),
    (
        "[session]",
        "[[resource.rule]]\nmethod = \"x\"\nlimit = { requests = 10, per = 60 }\n[session]",
        14,
        "resource[0].rule[0].limit.per is an integer",
        "such as per = \"1m\"",
    ),
    (
        "[session]",
        "[[resource.rule]]\ntool = \"x\"\nscopes = [\"x\"]\n[session]",
        13,
        "resource[0].rule[0].tool is not",
        "did you mean `method`",
    ),
    (
        "[session]",
        "[[resource.route]]\npath = \"mcp\"\nscopes = [\"x\"]\n[session]",
        13,
        "resource[0].route[0].path = ",
        "must start with `/`",
    ),
    (
        "[session]",
        "[[resource.route]]\npath = \"/mcp\"\n[session]",
        12,
        "resource[0].route[0].scopes is missing",
        "add scopes = [",
    ),
    (
        "[session]",
        "[[resource.claim]]\nclaim = \"groups\"\none_of = \"admins\"\n[session]",
        14,
        "resource[0].claim[0].one_of is a string",
        "such as one_of = [",
    ),
];

const TABLES: &[Mistake] = &[
    (TIMEOUT, "idle_timeout = 30", 13, "session.idle_timeout is an integer", "such as idle_timeout = \"30m\""),
    (TIMEOUT, "idle_timeout = \"30\"", 13, "session.idle_timeout: \"30\" is not a duration", "such as \"30m\""),
    (TIMEOUT, "idle_timeout = \"0s\"", 13, "session.idle_timeout = \"0s\" is outside", "1s to"),
    (TIMEOUT, "timeout = \"30m\"", 13, "session.timeout is not a known key", "idle_timeout"),
    (TIMEOUT, "ended_status = 410", 13, "session.ended_status = 410 is neither", "400 nor 404"),
    (TIMEOUT, "keys = \"hunter2\"", 13, "session.keys is a string", "expected an array"),
    (TIMEOUT, "keys = [{ file = \"/nowhere/keys\" }]", 13, "session.keys: ", "name a file that this user can read"),
    (TIMEOUT, "max_body = 4096", 13, "session.max_body is not a known key", "move it to [limits]"),
    ("[session]", "[sessions]", 12, "sessions is not a known key", "did you mean `session`?"),
    ("[session]", "[[session]]", 12, "session is a single table", "write [session] instead of [[session]]"),
    (
        "[session]",
        "[limits]\nmax_body = \"4MB\"\n[session]",
        13,
        "limits.max_body is a string",
        "such as max_body = 4194304",
    ),
    (
        "[session]",
        "[limits]\nmax_body = \"4096\"\n[session]",
        13,
        "limits.max_body is a string",
        "write it without quotes",
    ),
    ("[session]", "[limits]\nmax_body = 1\n[session]", 13, "limits.max_body = 1 is outside", "1024 to"),
    (
        "[session]",
        "[limits]\nper_address = \"10/s\"\n[session]",
        13,
        "limits.per_address is a string",
        "requests = 600",
    ),
    (
        "[session]",
        "[limits]\nper_address = { requests = 10 }\n[session]",
        13,
        "limits.per_address.per is missing",
        "add per = ",
    ),
    (
        "[session]",
        "[tls]\ncertificates = \"/nowhere/a.pem\"\nkey = \"/nowhere/b.pem\"\n[session]",
        13,
        "tls.certificates = ",
        "there is no such file; correct the path",
    ),
    (
        "[session]",
        "[tls]\ncertificates = \"portcullis.toml\"\nkey = \"portcullis.toml\"\n[session]",
        13,
        "tls.certificates = portcullis.toml has no certificate",
        "BEGIN CERTIFICATE",
    ),
    (LISTEN, "tls = true", 1, "tls is a boolean", "expected a table"),
    (LISTEN, "audit = \"stdout\"", 1, "audit is a string", "expected a table"),
    (
        "[session]",
        "[audit]\ntarget = \"/var/log/audit.jsonl\"\n[session]",
        13,
        "audit.target is a string",
        "write target = { file = ",
    ),
    ("[session]", "[audit]\ntarget = { file = \"/nowhere/a\" }\n[session]", 13, "audit.target", "folder that exists"),
    ("[session]", "[audit]\nqueue = 1\ntarget = \"stdout\"\n[session]", 13, "audit.queue = 1 is outside", "65536 to"),
];

const SYNTAX: &[Mistake] = &[
    (BASE_URL, "base_url = \"https://mcp.example.com", 2, "base_url: ", "close the text with the quote"),
    (BASE_URL, "base_url = “https://mcp.example.com”", 2, "base_url: ", "typographic quotes"),
    (BASE_URL, "base_url: \"https://mcp.example.com\"", 2, "base_url: ", "write key = value"),
    (BASE_URL, "base_url = \"https://a.example\"\nbase_url = \"https://b.example\"", 3, "base_url: ", "remove one"),
    (TIMEOUT, "idle_timeout = 30m", 13, "session.idle_timeout: ", "double quotes"),
    (
        "[[resource]]",
        "jwks_file = \"C:\\keys\\jwks.json\"\n[[resource]]",
        7,
        "issuer[0].jwks_file: ",
        "backslash twice",
    ),
    ("[[resource]]", "require_at_jwt = True\n[[resource]]", 7, "issuer[0].require_at_jwt: ", "in lower case"),
    ("[[resource]]", "[[resource]", 7, "", "write a header as [table], or [[table]]"),
    (SCOPES, "required_scopes = [\"a\" \"b\"]", 9, "resource[0].required_scopes: ", "separate the entries by commas"),
    ("[session]", "[session]\n[session]", 13, "", "already above"),
];

/// J9: every mistake has one line, which names the file, the line, the key and the fix.
#[test]
#[expect(clippy::result_large_err, reason = "the error type is that of figment's jail")]
fn every_mistake_has_key_line_and_fix() {
    let tables = [TOP_LEVEL, ISSUERS, RESOURCES, TABLES, SYNTAX];
    let mistakes: Vec<&Mistake> = tables.into_iter().flatten().collect();
    assert!(mistakes.len() >= 100, "{}", mistakes.len());
    let mut failures = Vec::new();
    Jail::expect_with(|jail| {
        jail.clear_env();
        for &&(from, to, line, start, fix) in &mistakes {
            assert!(SOUND.contains(from), "{from}");
            let text = SOUND.replacen(from, to, 1);
            for text in [text.clone(), format!("\u{feff}{}", text.replace('\n', "\r\n")), text.replace("\n", "\n\t")] {
                jail.create_file("portcullis.toml", &text)?;
                let lines = lines();
                let start = format!("portcullis.toml:{line}: {start}");
                let is_named = |error: &String| error.starts_with(&start) && error.contains(fix);
                if lines.len() != 1 || !lines.iter().all(is_named) {
                    failures.push(format!("{to}\n  {start} … {fix}\n  {lines:#?}"));
                }
                assert!(lines.iter().all(|line| !line.contains("hunter2") && !line.contains('\n')), "{lines:#?}");
            }
        }
        Ok(())
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// J9: files that cannot be read, and variables of the environment.
#[test]
#[expect(clippy::result_large_err, reason = "the error type is that of figment's jail")]
fn other_sources_are_named() {
    Jail::expect_with(|jail| {
        jail.clear_env();
        assert!(
            lines()[0].starts_with("portcullis.toml: the configuration file does not exist; name one with --config")
        );
        let directory = jail.create_dir("portcullis.toml").unwrap();
        assert!(lines()[0].starts_with("portcullis.toml: it is a directory; name the configuration file in it"));
        fs::remove_dir(directory).unwrap();
        let utf16: Vec<u8> = SOUND.encode_utf16().flat_map(u16::to_le_bytes).collect();
        fs::write("portcullis.toml", [&[0xff, 0xfe][..], &utf16].concat()).unwrap();
        assert!(lines()[0].contains("is UTF-16; save it as UTF-8"), "{:?}", lines());
        jail.create_file("portcullis.toml", SOUND)?;
        assert_eq!(lines(), Vec::<String>::new());
        for (variable, value, words) in [
            ("PORTCULLIS_WORKERS", "many", "PORTCULLIS_WORKERS: workers is a string; expected a non-negative integer"),
            ("PORTCULLIS_WORKERS", "0", "PORTCULLIS_WORKERS: workers = 0 is outside 1 to 256"),
            (
                "PORTCULLIS_SESSION__IDLE_TIMEOUT",
                "30",
                "PORTCULLIS_SESSION__IDLE_TIMEOUT: session.idle_timeout is an integer",
            ),
            ("PORTCULLIS_LISTN", "127.0.0.1:1", "PORTCULLIS_LISTN: listn is not a known key; did you mean `listen`?"),
        ] {
            jail.set_env(variable, value);
            let lines = lines();
            assert!(lines.len() == 1 && lines[0].starts_with(words), "{lines:#?}");
            jail.clear_env();
        }
        Ok(())
    });
}

/// J9: several mistakes of different types are found at once, in the order of their lines.
#[test]
#[expect(clippy::result_large_err, reason = "the error type is that of figment's jail")]
fn all_mistakes_are_found_at_once() {
    Jail::expect_with(|jail| {
        jail.clear_env();
        let text = SOUND
            .replace(LISTEN, "listen = \"localhost\"")
            .replace(BASE_URL, "base_url = \"http://mcp.example.com\"")
            .replace("[[resource]]", "algorithms = [\"none\"]\nleeway = \"2m\"\n[[resource]]")
            .replace(ENDPOINT, "endpoint = \"mcp\"\nrevisions = []")
            .replace(TIMEOUT, "idle_timeout = 30\nmax_total = 0");
        jail.create_file("portcullis.toml", &text)?;
        let keys: Vec<String> =
            lines().iter().map(|line| line.split(' ').nth(1).unwrap().trim_end_matches(':').into()).collect();
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

fn lines() -> Vec<String> {
    let arguments = Check {
        config: Path::new("portcullis.toml").to_owned(),
        online: false,
        json: false,
        deny_warnings: false,
        schema: false,
    };
    let errors = valid(&arguments).err().map(|errors| errors.0).unwrap_or_default();
    errors.iter().map(ToString::to_string).collect()
}
