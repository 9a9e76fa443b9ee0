use std::time::Duration;

use portcullis_guard::{ClaimRule, ClaimTest, Rate};
use portcullis_metadata::Scopes;

mod issuers;
mod limits;

use super::*;
use crate::{config, serve};

/// A configuration that runs. Tests change one thing in it.
const GOOD: &str = r#"
listen = "127.0.0.1:0"
base_url = "https://mcp.example.com"

[[issuer]]
issuer = "https://auth.example.com/realms/prod"

[[resource]]
endpoint = "/mcp"
required_scopes = ["mcp:tools"]
upstream = { http = "http://127.0.0.1:8000/mcp" }
"#;

/// Judges a configuration as `check` does.
fn judge(text: &str) -> anyhow::Result<Plan> {
    let plan = Plan::new(&config::from_text(text)?)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async { serve::dry_run(&plan) })?;
    Ok(plan)
}

/// The one line that says what is wrong when `from` becomes `to`.
fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    let message = format!("{:#}", judge(&GOOD.replace(from, to)).err().expect("it is refused"));
    assert!(!message.contains('\n'), "{message}");
    message
}

fn with(more: &str) -> String {
    format!("{GOOD}\n{more}")
}

#[test]
fn a_good_configuration_is_good() {
    let plan = judge(GOOD).unwrap();
    assert_eq!(plan.resources[0].metadata.resource.as_str(), "https://mcp.example.com/mcp");
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
    assert_eq!(plan.max_head(), 32 << 10);
}

/// Plain http is for loopback, or for the listener behind a proxy.
#[test]
fn the_base_url_is_https_or_loopback() {
    let message = error("https://mcp.example.com", "http://mcp.example.com");
    assert!(message.contains("base_url") && message.contains("use https"), "{message}");
    for loopback in ["http://127.0.0.1:3000", "http://localhost", "http://[::1]:3000"] {
        assert!(judge(&GOOD.replace("https://mcp.example.com", loopback)).is_ok(), "{loopback}");
    }
    for more in ["https://mcp.example.com/mcp", "https://mcp.example.com/?a", "https://a@mcp.example.com", "mcp"] {
        assert!(error("https://mcp.example.com", more).contains("base_url"), "{more}");
    }
}

/// A1: a resource that nobody can issue tokens for is refused.
#[test]
fn a_resource_needs_an_issuer() {
    let issuer = "[[issuer]]\nissuer = \"https://auth.example.com/realms/prod\"\n";
    assert!(error(issuer, "").contains("add an [[issuer]]"));
    let message = error("required_scopes", "issuers = [\"https://auth.example.com/realms/prod/\"]\nrequired_scopes");
    assert!(message.contains("byte for byte"), "{message}");
    assert!(error("required_scopes", "issuers = []\nrequired_scopes").contains("no issuer"));
}

/// A3: endpoints that only case or a trailing slash tells apart are refused, and one resource is the default at most.
#[test]
fn endpoints_are_told_apart() {
    let second = |endpoint: &str| with(&format!("[[resource]]\nendpoint = \"{endpoint}\"\nupstream = \"demo\""));
    for twin in ["/mcp", "/MCP", "/mcp/"] {
        let message = format!("{:#}", judge(&second(twin)).err().expect("refused"));
        assert!(message.contains("rename one"), "{message}");
    }
    let plan = judge(&second("/other")).unwrap();
    assert!(plan.resources.iter().all(|resource| !resource.root_metadata), "nobody was made the default");

    let two = second("/other").replace("required_scopes", "default = true\nrequired_scopes");
    let plan = judge(&two).unwrap();
    assert_eq!(plan.resources.iter().map(|resource| resource.root_metadata).collect::<Vec<_>>(), [true, false]);
    let both = two.replace("upstream = \"demo\"", "default = true\nupstream = \"demo\"");
    assert!(judge(&both).is_err());
}

/// A5: `offline_access` is no scope of a resource.
#[test]
fn offline_access_is_refused() {
    assert!(error("\"mcp:tools\"", "\"offline_access\"").contains("offline_access"));
    assert!(
        error("required_scopes", "scopes_supported = [\"offline_access\"]\nrequired_scopes").contains("offline_access")
    );
    let rule = with("[[resource.rule]]\nmethod = \"tools/call\"\nscopes = [\"offline_access\"]");
    assert!(format!("{:#}", judge(&rule).err().expect("refused")).contains("offline_access"));
}

/// B7: broader scopes and what they imply come from the configuration, and have to be scopes.
#[test]
fn implied_scopes_are_configurable() {
    let implies = |table: &str| format!("scope_implies = {table}\nrequired_scopes");
    let plan = judge(&GOOD.replace("required_scopes", &implies(r#"{ "mcp:admin" = ["mcp:tools"] }"#))).unwrap();
    let (admin, tools) = (Scopes::parse("mcp:admin").unwrap(), Scopes::parse("mcp:tools").unwrap());
    assert!(plan.resources[0].scope_implications.covers(&admin, &tools));
    for table in [r#"{ "a b" = ["c"] }"#, r#"{ "a" = ["b c"] }"#, r#"{ "a" = ["offline_access"] }"#] {
        let message = error("required_scopes", &implies(table));
        assert!(message.contains("scope"), "{message}");
    }
}

/// C14: claim rules are for a resource, and for some of its messages.
#[test]
fn claim_rules_are_configurable() {
    let more = r#"
[[resource.claim]]
claim = "/realm_access/roles"
one_of = ["mcp-user"]

[[resource.claim]]
claim = "org"
report_only = true

[[resource.rule]]
method = "tools/call"
claims = [{ claim = "email", domain = ["example.com"] }]
"#;
    let plan = judge(&with(more)).unwrap();
    let roles = ClaimRule::new("/realm_access/roles", ClaimTest::OneOf(vec!["mcp-user".to_owned()])).unwrap();
    let org = ClaimRule::new("org", ClaimTest::Present).unwrap().report_only();
    assert_eq!(plan.resources[0].claims, [roles, org]);
    let email = ClaimRule::new("email", ClaimTest::Domain(vec!["example.com".to_owned()])).unwrap();
    assert_eq!(plan.resources[0].rules[0].claims, [email]);
    for (bad, named) in [
        ("claim = \"a\"\none_of = [\"b\"]\ndomain = [\"c\"]", "two rules"),
        ("claim = \"\"", "names a claim"),
        ("claim = \"a\"\none_of = []", "at least one value"),
        ("claim = \"a\"\ndomain = [\"@c\"]", "without `@`"),
        ("claim = \"a\"\nequals = \"b\"", "equals"),
    ] {
        let message = format!("{:#}", judge(&with(&format!("[[resource.claim]]\n{bad}"))).err().unwrap());
        assert!(message.contains(named), "{bad}: {message}");
    }
    let idle = judge(&with("[[resource.rule]]\nmethod = \"tools/call\"")).err().unwrap();
    assert!(format!("{idle:#}").contains("asks for nothing"), "{idle:#}");
}

/// J5: limits by address, principal and message, and the proxies whose word counts.
#[test]
fn rate_limits_are_configurable() {
    assert!(judge(GOOD).unwrap().rates.per_address.is_none(), "none by default");
    let more = r#"
[[resource.rule]]
method = "tools/call"
name = "slow_*"
limit = { requests = 10, per = "1m" }

[limits]
per_address = { requests = 600, per = "1m" }
per_principal = { requests = 300, per = "1m" }
"#;
    let proxies = "trusted_proxies = [\"10.0.0.0/8\", \"::1\"]\ntrusted_proxy_header = \"Forwarded\"\n";
    let plan = judge(&format!("{proxies}{GOOD}\n{more}")).unwrap();
    let rate = |requests| Some(Rate::new(requests, Duration::from_secs(60)).unwrap());
    assert_eq!((plan.rates.per_address, plan.rates.per_principal), (rate(600), rate(300)));
    assert_eq!(plan.resources[0].rates, [rate(10)]);
    for (bad, named) in [
        ("[limits]\nper_address = { requests = 0, per = \"1m\" }", "limits.per_address"),
        ("[limits]\nper_principal = { requests = 1, per = \"1ms\" }", "limits.per_principal"),
        ("[limits]\nrate_entries = 1", "limits.rate_entries"),
        ("[[resource.rule]]\nmethod = \"a\"\nlimit = { requests = 0, per = \"1m\" }", "the rule for \"a\""),
    ] {
        let message = format!("{:#}", judge(&with(bad)).err().unwrap());
        assert!(message.contains(named), "{bad}: {message}");
    }
    let message = format!("{:#}", judge(&format!("trusted_proxies = [\"proxy\"]\n{GOOD}")).err().unwrap());
    assert!(message.contains("trusted_proxies") && message.contains("`proxy`"), "{message}");
}

/// B9: catch-all scopes are warned of, wherever they are asked for.
#[test]
fn catch_all_scopes_are_warned_of() {
    let rule = with("[[resource.rule]]\nmethod = \"tools/*\"\nname = \"admin_*\"\nscopes = [\"admin\"]");
    let plan = judge(&rule).unwrap();
    assert_eq!(plan.warnings.len(), 1);
    assert!(plan.warnings[0].contains("catch-all scope \"admin\""), "{:?}", plan.warnings);
}

/// B9: a method pattern with characters that have no meaning in it is an error; in a name they stand for themselves.
#[test]
fn method_patterns_are_plain() {
    let rule = |method: &str, name: &str| {
        judge(&with(&format!("[[resource.rule]]\nmethod = '{method}'\nname = '{name}'\nscopes = [\"mcp:x\"]")))
    };
    for method in
        ["tools/[call", "tools/[cl]all", "tools/{call,list}", "tools/cal?", "tools/call ", "a|b", "tools\\call", ""]
    {
        let message = format!("{:#}", rule(method, "x").err().expect("refused"));
        assert!(message.contains("rule[0]") && !message.contains('\n'), "{message}");
        assert!(method.is_empty() || message.contains("method = "), "{message}");
    }
    assert!(rule("tools/*", "[call] {x} ? | \\").unwrap().warnings.is_empty());
}

/// B9: scopes that `scopes_supported` lacks are warned of with their key, where it is set.
#[test]
fn unsupported_scopes_are_warned_of() {
    let more = r#"
[[resource.rule]]
method = "tools/call"
scopes = ["mcp:tools", "mcp:admim"]

[[resource.route]]
path = "/mcp"
scopes = ["mcp:route"]
"#;
    assert!(judge(&with(more)).unwrap().warnings.is_empty(), "nothing is published");
    let supported = |names: &str| {
        let config = with(more).replace("required_scopes", &format!("scopes_supported = [{names}]\nrequired_scopes"));
        judge(&config).unwrap().warnings
    };
    let warnings = supported(r#""mcp:admin""#);
    let keys = [
        "resource[0].required_scopes",
        "resource[0].rule[0].scopes",
        "resource[0].rule[0].scopes",
        "resource[0].route[0].scopes",
    ];
    assert!(
        warnings.len() == 4 && warnings.iter().zip(keys).all(|(warning, key)| warning.starts_with(key)),
        "{warnings:?}"
    );
    assert!(warnings[1].contains("did you mean `mcp:admin`?"), "{warnings:?}");
    assert!(supported(r#""mcp:tools", "mcp:admim", "mcp:route""#).is_empty());
}

/// B9: a rule whose method the served revisions do not have is warned of, with its key.
#[test]
fn unknown_methods_are_warned_of() {
    let rules = "[[resource.rule]]\nmethod = \"tools/call\"\nscopes = [\"a\"]\n\
                 [[resource.rule]]\nmethod = \"initialize\"\nscopes = [\"a\"]";
    assert!(judge(&with(rules)).unwrap().warnings.is_empty());
    let modern = with(rules).replace("required_scopes", "revisions = [\"2026-07-28\"]\nrequired_scopes");
    let warnings = judge(&modern).unwrap().warnings;
    assert!(
        warnings.len() == 1 && warnings[0].starts_with("resource[0].rule[1].method = \"initialize\""),
        "{warnings:?}"
    );
}

/// F7: an issuer on loopback behind an address that other machines use is warned of.
#[test]
fn loopback_issuers_of_public_resources_are_warned_of() {
    let issuer = "https://auth.example.com/realms/prod";
    let local = GOOD.replace(issuer, "http://127.0.0.1:8080/realms/prod");
    let warnings = judge(&local).unwrap().warnings;
    assert!(
        warnings.len() == 1 && warnings[0].starts_with("issuer[0].issuer = \"http://127.0.0.1:8080"),
        "{warnings:?}"
    );
    assert!(judge(&local.replace("https://mcp.example.com", "http://127.0.0.1:3000")).unwrap().warnings.is_empty());
    assert!(judge(&GOOD.replace(issuer, "https://localhost:8443")).unwrap().warnings.is_empty());
}

/// C6: an audience beside the resource is an absolute URL, of the one resource that there is.
#[test]
fn audiences_are_urls_of_one_resource() {
    let issuer = "issuer = \"https://auth.example.com/realms/prod\"";
    let audience = |text: &str| format!("{issuer}\naudiences = [\"{text}\"]");
    assert!(judge(&GOOD.replace(issuer, &audience("https://old.example.com/mcp"))).is_ok());
    for name in ["api", "account", "mcp.example.com", "//mcp.example.com/mcp"] {
        assert!(error(issuer, &audience(name)).contains("audiences"), "{name}");
    }
    let two = with("[[resource]]\nendpoint = \"/other\"\nupstream = \"demo\"");
    let two = two.replace(issuer, &audience("https://old.example.com/mcp"));
    assert!(format!("{:#}", judge(&two).err().expect("refused")).contains("would count for all"));
}

/// F7: without authorization on an open network only when it is said twice.
#[test]
fn no_authorization_stays_on_loopback() {
    let off = GOOD.replace("required_scopes", "auth = \"none\"\nrequired_scopes");
    let plan = judge(&off).unwrap();
    assert!(plan.warnings.iter().any(|warning| warning.contains("anybody")), "{:?}", plan.warnings);
    let open = off.replace("127.0.0.1:0", "0.0.0.0:0");
    let message = format!("{:#}", judge(&open).err().expect("refused"));
    assert!(message.contains("dangerous_allow_unauthenticated_network = true"), "{message}");
    assert!(judge(&format!("dangerous_allow_unauthenticated_network = true\n{open}")).is_ok());
}

/// F1: the endpoint is the path as it stands in a request.
#[test]
fn endpoints_are_plain_paths() {
    for endpoint in
        ["mcp", "/a b", "/a?b", "/a#b", "//a", "/a//b", "/../a", "/.well-known/x", "/healthz", "/readyz", ""]
    {
        assert!(error("\"/mcp\"", &format!("{endpoint:?}")).contains("endpoint"), "{endpoint}");
    }
    for endpoint in ["/", "/mcp/v1", "/mcp/", "/a%20b"] {
        assert!(judge(&GOOD.replace("\"/mcp\"", &format!("{endpoint:?}"))).is_ok(), "{endpoint}");
    }
}

/// F2, F3: a list of origins narrows, an empty one to none; elsewhere it does so only where every resource has a list.
#[test]
fn origins_are_those_of_the_list() {
    let admits = |policy: &OriginPolicy, origin: &'static str| {
        let mut headers = http::HeaderMap::new();
        headers.insert(http::header::HOST, http::HeaderValue::from_static("mcp.example.com"));
        headers.insert(http::header::ORIGIN, http::HeaderValue::from_static(origin));
        policy.check(http::Version::HTTP_11, &http::Uri::from_static("/mcp"), &headers).is_ok()
    };
    let listed = |list: &str| GOOD.replace("required_scopes", &format!("allowed_origins = {list}\nrequired_scopes"));
    let (app, other) = ("https://app.example", "https://other.example");

    let plan = judge(GOOD).unwrap();
    assert!(admits(&plan.resources[0].origins, other) && admits(&plan.origins, other));
    let plan = judge(&listed("[\"https://app.example\"]")).unwrap();
    assert!(admits(&plan.resources[0].origins, app) && !admits(&plan.resources[0].origins, other));
    let plan = judge(&listed("[]")).unwrap();
    assert!(!admits(&plan.resources[0].origins, app) && !admits(&plan.origins, app));

    let second = "[[resource]]\nendpoint = \"/other\"\nupstream = \"demo\"";
    let plan = judge(&format!("{}\n{second}", listed("[]"))).unwrap();
    assert!(!admits(&plan.resources[0].origins, app) && admits(&plan.resources[1].origins, app));
    assert!(admits(&plan.origins, app), "one resource admits it");
}

#[test]
fn upstreams_are_checked() {
    let upstream = "http://127.0.0.1:8000/mcp";
    assert!(error(upstream, "ftp://127.0.0.1:8000/mcp").contains("upstream"));
    assert!(error(upstream, "127.0.0.1:8000").contains("upstream"));
    let unix = |socket: &str| GOOD.replace(&format!("http = \"{upstream}\""), &format!("unix = \"{socket}\""));
    for socket in ["/run/mcp.sock", "/run/mcp.sock:/mcp"] {
        assert!(judge(&unix(socket)).is_ok(), "{socket}");
    }
    assert!(judge(&unix("run/mcp.sock")).is_err());
}

#[test]
fn limits_have_ranges() {
    for (line, named) in [
        ("[limits]\nmax_body = 1", "limits.max_body"),
        ("[limits]\nmax_token = 1000000", "limits.max_token"),
        ("[limits]\nheader_timeout = \"1h\"", "limits.header_timeout"),
        ("[session]\nmax_total = 0", "session.max_total"),
        ("[session]\nidle_timeout = \"1ms\"", "session.idle_timeout"),
    ] {
        let message = format!("{:#}", judge(&with(line)).err().expect("refused"));
        assert!(message.contains(named), "{message}");
    }
    assert!(error("listen", "workers = 0\nlisten").contains("workers"));
}

/// E1: the header is made of the configured word.
#[test]
fn the_session_header_is_configurable() {
    let plan = judge(&GOOD.replace("required_scopes", "proto = \"Acme\"\nrequired_scopes")).unwrap();
    assert_eq!(plan.resources[0].session_header, "acme-session-id");
    for proto in ["", "a b", "a:b"] {
        assert!(error("required_scopes", &format!("proto = {proto:?}\nrequired_scopes")).contains("proto"), "{proto}");
    }
}

/// L8, L9: what is forwarded, and how long and how often the upstream is waited for.
#[test]
fn upstream_settings() {
    let settings = |more: &str| {
        let text = GOOD.replace("required_scopes", &format!("{more}\nrequired_scopes"));
        let plan = judge(&text).unwrap();
        let UpstreamPlan::Http(settings) = &plan.resources[0].upstream else { panic!("an HTTP upstream") };
        (**settings).clone()
    };
    let defaults = settings("");
    assert_eq!((defaults.head_timeout.as_secs(), defaults.connection_limit.max()), (300, 10_000));
    assert!(defaults.forward_headers.is_empty());
    let chosen = settings("upstream_head_timeout = \"24h\"\nforward_headers = [\"X-User\", \"CF-Connecting-IP\"]");
    assert_eq!(chosen.head_timeout.as_secs(), 24 * 60 * 60);
    assert_eq!(chosen.forward_headers, ["x-user", "cf-connecting-ip"]);

    for (line, key) in [
        ("upstream_head_timeout = \"999ms\"", "upstream_head_timeout"),
        ("upstream_head_timeout = \"25h\"", "upstream_head_timeout"),
        ("forward_headers = [\"Authorization\"]", "forward_headers lists `authorization`"),
        ("forward_headers = [\"Cookie\"]", "forward_cookies"),
        ("forward_headers = [\"Mcp-Session-Id\"]", "forward_headers"),
        ("forward_headers = [\"X-Portcullis-Subject\"]", "identity_headers"),
        ("forward_headers = [\"a b\"]", "forward_headers"),
        ("forward_headers = [\"X-User\"]\nidentity_headers = { X-User = \"sub\" }", "identity_headers"),
    ] {
        let error = error("required_scopes", &format!("{line}\nrequired_scopes"));
        assert!(error.contains(key), "{line}: {error}");
    }
}

/// L9: an upstream may have as many connections as there are of clients, unless it is told otherwise.
#[test]
fn upstream_connections() {
    for (limits, expected) in [
        ("max_connections = 7", 7),
        ("upstream_connections = 9", 9),
        ("max_connections = 7\nupstream_connections = 9", 9),
    ] {
        let plan = judge(&with(&format!("[limits]\n{limits}"))).unwrap();
        let UpstreamPlan::Http(settings) = &plan.resources[0].upstream else { panic!("an HTTP upstream") };
        assert_eq!(settings.connection_limit.max(), expected, "{limits}");
    }
}

#[test]
fn revisions_are_known_ones() {
    let plan = judge(&GOOD.replace("required_scopes", "revisions = [\"2026-07-28\"]\nrequired_scopes")).unwrap();
    assert!(!plan.resources[0].revisions.has_legacy());
    assert!(error("required_scopes", "revisions = [\"2024-11-05\"]\nrequired_scopes").contains("2024-11-05"));
    assert!(error("required_scopes", "revisions = []\nrequired_scopes").contains("revisions"));
}

/// Every TOML block of the documentation, judged as `check` would.
#[test]
fn the_documented_configurations_run() {
    for (name, text) in [
        ("README.md", include_str!("../../../../README.md")),
        ("docs/use/audit.md", include_str!("../../../../docs/use/audit.md")),
        ("docs/use/configuration.md", include_str!("../../../../docs/use/configuration.md")),
    ] {
        let blocks: Vec<&str> = text.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
        assert!(!blocks.is_empty(), "{name} shows no configuration");
        for block in blocks {
            judge(block).unwrap_or_else(|error| panic!("{name}: {error:#}"));
        }
    }
}
