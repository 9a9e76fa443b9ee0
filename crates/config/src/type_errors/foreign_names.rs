//! [`meaning`]: names that other programs use, with what to write here.

use crate::KeyPath;

/// What a name of another program means in this configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// This key of the same table.
    Key(&'static str),
    /// What to write instead.
    Write(&'static str),
}

use Meaning::{Key, Write};

/// Returns the meaning of a name that the table of `key` does not know. `is_table`: whether the
/// file has a table of this name.
pub(super) fn meaning(key: &KeyPath, is_table: bool) -> Option<Meaning> {
    let table = key.parent()?.header();
    let name = key.names().next_back()?.to_ascii_lowercase();
    let of_table = NAMES
        .iter()
        .filter(|(tables, ..)| tables.contains(&&*table) || (*tables == ANY && !table.is_empty()));
    let of_tables = TABLES.iter().filter(|_| is_table && table.is_empty());
    of_tables
        .map(|(names, meaning)| (names, meaning))
        .chain(of_table.map(|(_, names, meaning)| (names, meaning)))
        .find(|(names, _)| names.contains(&&*name))
        .map(|(_, meaning)| *meaning)
}

const NO_PROGRAM: Meaning = Write(
    "Portcullis starts no programs; let the MCP server listen on HTTP, and write upstream = { http = \
     \"http://127.0.0.1:8000/mcp\" }",
);
const HTTP: Meaning = Write("write upstream = { http = \"http://127.0.0.1:8000/mcp\" }");
const ISSUER_OF_REALM: Meaning =
    Write("write the issuer of the realm: issuer = \"https://auth.example.com/realms/prod\"");
const AUDIT_FILE: Meaning = Write("write target = { file = \"/var/log/portcullis/audit.jsonl\" }");
const LISTEN: Meaning = Write("write address and port in listen = \"127.0.0.1:3000\"");

/// Why `[broker.clients]` has no clients, and what to write.
pub(super) const CLIENTS_REGISTER: &str = "clients register themselves: list the hosts of their redirect URIs in redirect_hosts of [broker.clients]";
const RATE: Meaning = Write("a rate has two keys: requests = 600, per = \"1m\"");
/// The tables of rates.
const RATES: &[&str] = &[
    "limits.per_address",
    "limits.per_principal",
    "limits.rejected_per_address",
    "resource.rule.limit",
];

/// Names of tables at the top of the file.
const TABLES: &[(&[&str], Meaning)] = &[
    (
        &[
            "auth",
            "authentication",
            "authorization",
            "authorization_server",
            "authorization_servers",
            "idp",
            "jwt",
            "oauth",
            "oauth2",
            "oidc",
            "openid",
        ],
        Write(
            "write [[issuer]] with issuer = \"https://auth.example.com/realms/prod\", the `iss` of the tokens",
        ),
    ),
    (
        &["backend", "endpoint", "endpoints", "mcp", "servers"],
        Key("resource"),
    ),
    (&["ssl", "https"], Key("tls")),
    (&["rules"], Write("write [[resource.rule]]")),
    (&["routes"], Write("write [[resource.route]]")),
];

/// Every table, but not the top of the file.
const ANY: &[&str] = &["*"];

/// The tables, the names in them, and their meaning. The empty name is the top of the file.
const NAMES: &[(&[&str], &[&str], Meaning)] = &[
    (&[""], &["address", "bind", "host", "port"], LISTEN),
    (
        &[""],
        &["log", "logging", "log_level"],
        Write(
            "remove it, and set the environment variable PORTCULLIS_LOG, such as PORTCULLIS_LOG=debug",
        ),
    ),
    (
        &[""],
        &["metrics", "prometheus"],
        Write("write [admin], which serves /metrics"),
    ),
    (
        &[""],
        &["config", "config_file"],
        Write("remove it; the option --config names the file"),
    ),
    (
        &["", "resource", "limits"],
        &["rate", "rate_limit", "rate_limits", "ratelimit"],
        Write("write per_principal = { requests = 600, per = \"1m\" } in [limits]"),
    ),
    (
        &["", "resource"],
        &["cors"],
        Write("remove it; allowed_origins of [[resource]] narrows the origins"),
    ),
    (
        ANY,
        &["enable", "enabled"],
        Write("remove it; a table takes effect by being in the file"),
    ),
    (
        &["resource"],
        &["location", "path", "prefix"],
        Key("endpoint"),
    ),
    (&["resource"], &["scope", "scopes"], Key("required_scopes")),
    (
        &["resource"],
        &["read_timeout", "timeout"],
        Key("upstream_head_timeout"),
    ),
    (&["resource"], &["origins"], Key("allowed_origins")),
    (&["resource"], &["hosts"], Key("allowed_hosts")),
    (
        &["resource"],
        &["backend", "proxy_pass", "server", "target", "uri", "url"],
        HTTP,
    ),
    (
        &["resource"],
        &["tls"],
        Write(
            "remove it; an upstream with TLS has https in its URL, and its certificate authorities are in upstream_ca_file",
        ),
    ),
    (
        &["issuer", "broker.provider", "traces"],
        &["tls"],
        Write("remove it; the certificate authorities are in ca_file"),
    ),
    (
        &["shared"],
        &["tls"],
        Write("write redis = \"rediss://…\"; the certificate authorities are in ca_file"),
    ),
    (
        &["issuer"],
        &["resource"],
        Write(
            "remove it; protected endpoints are [[resource]] tables, and other audiences are listed in audiences",
        ),
    ),
    (
        &["resource.rule", "resource.route"],
        &["action", "allow", "decision", "deny", "effect"],
        Write(
            "remove it; a rule neither allows nor denies: it lists what a token needs, such as scopes = [\"mcp:admin\"]",
        ),
    ),
    (
        &["broker.clients"],
        &[
            "client_id",
            "client_name",
            "client_secret",
            "id",
            "name",
            "redirect_uri",
            "redirect_uris",
        ],
        Write(CLIENTS_REGISTER),
    ),
    (
        RATES,
        &[
            "average", "count", "day", "hour", "limit", "max", "minute", "rate", "rps", "second",
        ],
        RATE,
    ),
    (
        RATES,
        &["duration", "interval", "period", "unit", "window"],
        Key("per"),
    ),
    (
        RATES,
        &["burst", "policy"],
        Write("remove it; a rate has only requests and per"),
    ),
    (
        &["audit"],
        &["rotate", "rotation"],
        Write("write rotate_size, rotate_age and keep in [audit]"),
    ),
    (
        &["audit"],
        &["backups", "max_backups", "max_files"],
        Key("keep"),
    ),
    (&["audit"], &["max_age"], Key("rotate_age")),
    (&["audit"], &["max_size"], Key("rotate_size")),
    (
        &["resource"],
        &["aud", "audience", "audiences"],
        Write(
            "remove it; the audience is base_url with the endpoint, and others are listed in audiences of [[issuer]]",
        ),
    ),
    (
        &["resource", "resource.upstream"],
        &["arg", "args", "cmd", "command", "exec", "stdio"],
        NO_PROGRAM,
    ),
    (
        &["resource.upstream"],
        &["address", "endpoint", "host", "https", "uri", "url"],
        HTTP,
    ),
    (
        &["resource.upstream"],
        &["path", "port", "socket"],
        Write(
            "write it in one text: upstream = { http = \"http://127.0.0.1:8000/mcp\" }, or for a socket upstream = { unix = \
             \"/path/to/socket:/request/path\" }",
        ),
    ),
    (
        &["resource.rule"],
        &["tool", "tool_name", "tools"],
        Write("write the tool as name = \"…\", with method = \"tools/call\""),
    ),
    (&["resource.route"], &["endpoint", "url"], Key("path")),
    (
        &["issuer", "broker.provider"],
        &[
            "authority",
            "discovery_url",
            "domain",
            "iss",
            "issuer_url",
            "oidc_issuer",
            "oidc_issuer_url",
            "server",
            "uri",
            "url",
        ],
        Key("issuer"),
    ),
    (
        &["issuer", "broker.provider"],
        &["auth-server-url", "auth_server_url", "realm", "realms"],
        ISSUER_OF_REALM,
    ),
    (
        &["issuer"],
        &["tenant", "tenant_id"],
        Write(
            "write the issuer of the tenant: issuer = \"https://login.microsoftonline.com/<tenant ID>/v2.0\"",
        ),
    ),
    (&["issuer"], &["aud"], Key("audiences")),
    (&["issuer"], &["alg", "algs"], Key("algorithms")),
    (
        &["issuer"],
        &["clock_skew", "clock_tolerance", "skew"],
        Key("leeway"),
    ),
    (
        &["issuer", "broker.provider"],
        &["ca", "ca_cert", "cafile"],
        Key("ca_file"),
    ),
    (
        &["issuer", "broker.provider"],
        &["secret"],
        Key("client_secret"),
    ),
    (&["broker.provider"], &["provider", "type"], Key("kind")),
    (
        &["tls", "admin.tls"],
        &[
            "cert",
            "cert_file",
            "certificate",
            "chain",
            "crt",
            "fullchain",
        ],
        Key("certificates"),
    ),
    (
        &["tls", "admin.tls"],
        &["key_file", "keyfile", "private_key"],
        Key("key"),
    ),
    (&["session"], &["timeout", "ttl"], Key("idle_timeout")),
    (&["session"], &["max_age"], Key("lifetime")),
    (
        &["limits"],
        &[
            "body",
            "body_limit",
            "client_max_body_size",
            "max_body_size",
        ],
        Key("max_body"),
    ),
    (
        &["admin"],
        &["address", "bind", "host", "port"],
        Write("write address and port in listen = \"127.0.0.1:9900\""),
    ),
    (&["admin"], &["password", "secret"], Key("token")),
    (&["audit"], &["file", "output", "path"], AUDIT_FILE),
    (&["audit.target"], &["name", "path"], AUDIT_FILE),
    (&["traces"], &["uri", "url"], Key("endpoint")),
    (&["shared"], &["uri", "url"], Key("redis")),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    /// J9: a suggested key is one of its table, and a foreign name is none.
    #[test]
    fn suggested_keys_exist() {
        let array =
            |name: &&str| matches!(*name, "resource" | "issuer" | "rule" | "route" | "provider");
        for (tables, names, meaning) in NAMES.iter().filter(|(tables, ..)| *tables != ANY) {
            for table in *tables {
                let path = table.split('.').filter(|name| !name.is_empty());
                let path = path.fold(KeyPath::default(), |path, name| {
                    let path = path.name(name);
                    if array(&name) { path.index(0) } else { path }
                });
                let known = schema::keys_of(&path);
                assert!(!known.is_empty(), "{table}");
                assert!(
                    names.iter().all(|name| !known.contains(name)),
                    "{table} {names:?}"
                );
                if let Key(key) = meaning {
                    assert!(known.contains(key), "{table} {key}");
                }
            }
        }
    }
}
