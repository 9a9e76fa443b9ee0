//! Rules of resources: scopes, claims and rates.

use std::time::Duration;

use portcullis_guard::{
    authorize::{ClaimRule, ClaimTest},
    limit::Rate,
};

use super::{GOOD, check, with_lines};

/// C14: claim rules apply to a resource or to some of its messages.
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
    let plan = check(&with_lines(more)).unwrap();
    let roles = ClaimRule::new(
        "/realm_access/roles",
        ClaimTest::OneOf(vec!["mcp-user".to_owned()]),
    )
    .unwrap();
    let org = ClaimRule::new("org", ClaimTest::Present)
        .unwrap()
        .report_only();
    assert_eq!(plan.resources[0].claims, [roles, org]);

    let email = ClaimRule::new("email", ClaimTest::Domain(vec!["example.com".to_owned()])).unwrap();
    assert_eq!(plan.resources[0].rules[0].claims, [email]);
    for (bad, named) in [
        (
            "claim = \"a\"\none_of = [\"b\"]\ndomain = [\"c\"]",
            "two rules",
        ),
        ("claim = \"\"", "must name a claim"),
        (
            "claim = \"a\"\none_of = []",
            "one_of = [] matches no value; list the accepted values",
        ),
        (
            "claim = \"a\"\ndomain = [\"a.example\", \"\"]",
            "domain has an empty value",
        ),
        ("claim = \"a\"\ndomain = [\"@c\"]", "domain has \"@c\""),
        ("claim = \"a\"\nequals = \"b\"", "equals"),
    ] {
        let message = format!(
            "{:#}",
            check(&with_lines(&format!("[[resource.claim]]\n{bad}")))
                .err()
                .unwrap()
        );
        assert!(message.contains(named), "{bad}: {message}");
    }
    let idle = check(&with_lines("[[resource.rule]]\nmethod = \"tools/call\""))
        .err()
        .unwrap();
    assert!(format!("{idle:#}").contains("requires nothing"), "{idle:#}");
}

/// J5: rate limits by address, principal and message, and trusted proxies.
#[test]
fn rate_limits_are_configurable() {
    assert!(
        check(GOOD).unwrap().rates.per_address.is_none(),
        "none by default"
    );
    let more = r#"
[[resource.rule]]
method = "tools/call"
name = "slow_*"
limit = { requests = 10, per = "1m" }

[limits]
per_address = { requests = 600, per = "1m" }
per_principal = { requests = 300, per = "1m" }
"#;
    let proxies =
        "trusted_proxies = [\"10.0.0.0/8\", \"::1\"]\ntrusted_proxy_header = \"Forwarded\"\n";
    let plan = check(&format!("{proxies}{GOOD}\n{more}")).unwrap();
    let rate = |requests| Some(Rate::new(requests, Duration::from_secs(60)).unwrap());
    assert_eq!(plan.rates.per_address, rate(600));
    assert_eq!(plan.rates.per_principal, rate(300));
    assert_eq!(plan.resources[0].rates, [rate(10)]);

    for (bad, named) in [
        (
            "[limits]\nper_address = { requests = 0, per = \"1m\" }",
            "limits.per_address",
        ),
        (
            "[limits]\nper_principal = { requests = 1, per = \"1ms\" }",
            "limits.per_principal",
        ),
        ("[limits]\nrate_entries = 1", "limits.rate_entries"),
        (
            "[[resource.rule]]\nmethod = \"a\"\nlimit = { requests = 0, per = \"1m\" }",
            "resource[0].rule[0].limit",
        ),
    ] {
        let message = format!("{:#}", check(&with_lines(bad)).err().unwrap());
        assert!(message.contains(named), "{bad}: {message}");
    }
    let message = format!(
        "{:#}",
        check(&format!(
            "trusted_proxies = [\"proxy\", \"::1\", \"b\"]\n{GOOD}"
        ))
        .err()
        .unwrap()
    );
    for proxy in ["`proxy`", "`b`"] {
        assert!(
            message
                .lines()
                .any(|line| line.starts_with("trusted_proxies") && line.contains(proxy)),
            "{message}"
        );
    }
}

/// B9: required catch-all scopes cause a warning.
#[test]
fn catch_all_scopes_cause_a_warning() {
    let rule = with_lines(
        "[[resource.rule]]\nmethod = \"tools/*\"\nname = \"admin_*\"\nscopes = [\"admin\"]",
    );
    let plan = check(&rule).unwrap();
    assert_eq!(plan.warnings.len(), 1);
    assert!(
        plan.warnings[0].text.contains("catch-all scope \"admin\""),
        "{:?}",
        plan.warnings
    );
}

/// B9: characters without a meaning in patterns are an error in a method pattern, and literal in a
/// name pattern, with a warning.
#[test]
fn method_patterns_are_plain() {
    let rule = |method: &str, name: &str| {
        check(&with_lines(&format!(
            "[[resource.rule]]\nmethod = '{method}'\nname = '{name}'\nscopes = [\"mcp:x\"]"
        )))
    };
    for method in [
        "tools/[call",
        "tools/[cl]all",
        "tools/{call,list}",
        "tools/cal?",
        "tools/call ",
        "a|b",
        "tools\\call",
        "",
    ] {
        let message = format!("{:#}", rule(method, "x").err().expect("an error"));
        assert!(message.contains("rule[0]"), "{message}");
        assert!(!message.contains('\n'), "{message}");
        assert!(
            method.is_empty() || message.contains("method = "),
            "{message}"
        );
    }
    let warnings = rule("tools/*", "[call] {x} ? | \\").unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(warnings[0].text.starts_with("resource[0].rule[0].name = "));
}

/// B9: scopes that `scopes_supported` lacks cause a warning with their key, if it is set.
#[test]
fn unsupported_scopes_cause_a_warning() {
    let more = r#"
[[resource.rule]]
method = "tools/call"
scopes = ["mcp:tools", "mcp:admim"]

[[resource.route]]
path = "/mcp"
scopes = ["mcp:route"]
"#;
    assert!(
        check(&with_lines(more)).unwrap().warnings.is_empty(),
        "nothing is published"
    );

    let supported = |names: &str| {
        let config = with_lines(more).replace(
            "required_scopes",
            &format!("scopes_supported = [{names}]\nrequired_scopes"),
        );
        check(&config).unwrap().warnings
    };
    let warnings = supported(r#""mcp:admin""#);
    let keys = [
        "resource[0].required_scopes",
        "resource[0].rule[0].scopes",
        "resource[0].rule[0].scopes",
        "resource[0].route[0].scopes",
    ];
    assert_eq!(warnings.len(), 4, "{warnings:?}");
    assert!(
        warnings
            .iter()
            .zip(keys)
            .all(|(warning, key)| warning.text.starts_with(key)),
        "{warnings:?}"
    );
    assert!(
        warnings[1].text.contains("did you mean `mcp:admin`?"),
        "{warnings:?}"
    );
    assert!(supported(r#""mcp:tools", "mcp:admim", "mcp:route""#).is_empty());
}

/// B7, J9: a scope with a star is one of exactly this name, unless it implies others.
#[test]
fn patterns_of_scopes_are_named() {
    let more = "[[resource.rule]]\nmethod = \"tools/call\"\nscopes = [\"mcp:*\"]\n\
                [[resource.route]]\npath = \"/mcp\"\nscopes = [\"mcp:*\"]";
    let found = |supported: &str| {
        let config = with_lines(more).replace(
            "required_scopes = [\"mcp:tools\"]",
            &format!("{supported}\nrequired_scopes = [\"a:*:b\"]"),
        );
        let warnings = check(&config).unwrap().warnings;
        let texts: Vec<String> = warnings.into_iter().map(|warning| warning.text).collect();
        texts
    };
    let rules = [
        "resource[0].required_scopes has \"a:*:b\"",
        "resource[0].rule[0].scopes has \"mcp:*\"",
        "resource[0].route[0].scopes has \"mcp:*\"",
    ];
    for (supported, of_supported) in [
        ("", None),
        ("scopes_supported = [\"mcp:tools\"]", None),
        (
            "scopes_supported = [\"x*\", \"mcp:tools\"]",
            Some("resource[0].scopes_supported has \"x*\""),
        ),
    ] {
        let found = found(supported);
        let expected: Vec<&str> = rules.into_iter().chain(of_supported).collect();
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (text, start) in found.iter().zip(expected) {
            let start = format!("{start}, and scopes have no wildcards");
            assert!(text.starts_with(&start), "{found:#?}");
        }
    }
    let implied = found(
        "scopes_supported = [\"mcp:*\", \"a:*:b\"]\n\
         scope_implies = { \"mcp:*\" = [\"mcp:tools\"], \"a:*:b\" = [\"mcp:*\"] }",
    );
    assert!(
        !implied.iter().any(|text| text.contains("wildcards")),
        "{implied:#?}"
    );
}

/// B9: a rule for a method that the served revisions do not have causes a warning with its key.
#[test]
fn unknown_methods_cause_a_warning() {
    let rules = "[[resource.rule]]\nmethod = \"tools/call\"\nscopes = [\"a\"]\n\
                 [[resource.rule]]\nmethod = \"initialize\"\nscopes = [\"a\"]";
    assert!(check(&with_lines(rules)).unwrap().warnings.is_empty());
    let modern = with_lines(rules).replace(
        "required_scopes",
        "revisions = [\"2026-07-28\"]\nrequired_scopes",
    );
    let warnings = check(&modern).unwrap().warnings;
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0]
            .text
            .starts_with("resource[0].rule[1].method = \"initialize\""),
        "{warnings:?}"
    );
}

/// C6, J9: the long form of a scope is in no token of Entra ID, wherever it is required. Other
/// issuers can write it.
#[test]
fn scopes_of_requests_at_entra_are_named() {
    const LONG: &str = "api://11112222-bbbb-3333-cccc-4444dddd5555/tools";
    const KEYCLOAK: &str = "issuer = \"https://auth.example.com/realms/prod\"";
    let tenant = "https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0";
    let entra = format!("issuer = \"{tenant}\"");
    let warned = |issuer: &str, lines: &str| {
        let text = GOOD.replace(KEYCLOAK, issuer);
        let text = text.replace("required_scopes = [\"mcp:tools\"]", lines);
        let plan = check(&text).unwrap();
        let texts = plan.warnings.into_iter().map(|found| found.text);
        // An audience of Entra ID would need required scopes.
        let of_resource = texts.filter(|text| !text.starts_with("issuer[0].audiences"));
        of_resource.collect::<Vec<String>>()
    };
    for (lines, key, fix) in [
        (
            format!("required_scopes = [\"{LONG}\"]"),
            "required_scopes",
            "write \"tools\" here",
        ),
        (
            format!("required_scopes = [\"{LONG}\"]\nscopes_supported = [\"{LONG}\"]"),
            "required_scopes",
            "write \"tools\" here",
        ),
        (
            format!("required_scopes = [\".default\"]\nscopes_supported = [\"{LONG}\"]"),
            "required_scopes",
            "write the names of the scopes",
        ),
        (
            "required_scopes = [\"api://mcp/.default\"]".to_owned(),
            "required_scopes",
            "write the names of the scopes",
        ),
        (
            format!("route = [{{ path = \"/mcp\", scopes = [\"{LONG}\"] }}]"),
            "route[0].scopes",
            "write \"tools\" here",
        ),
        (
            format!("rule = [{{ method = \"*\", scopes = [\"{LONG}\"] }}]"),
            "rule[0].scopes",
            "write \"tools\" here",
        ),
    ] {
        let found = warned(&entra, &lines);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(found[0].starts_with(&format!("resource[0].{key} has ")));
        assert!(found[0].contains(fix), "{found:#?}");
        let others = format!("{entra}\n[[issuer]]\n{KEYCLOAK}");
        for silent in [
            KEYCLOAK,
            &others,
            &format!("{entra}\nscope_claims = [\"roles\"]"),
        ] {
            let found = warned(silent, &lines);
            assert!(
                !found.iter().any(|text| text.contains("Entra")),
                "{found:#?}"
            );
        }
    }
    let sound = format!("required_scopes = [\"tools\"]\nscopes_supported = [\"{LONG}\"]");
    assert_eq!(warned(&entra, &sound), Vec::<String>::new());
}

/// Returns the warnings about scopes in [`GOOD`] with this issuer and these lines of the resource.
fn warnings_of_scopes(issuer: &str, lines: &str) -> Vec<String> {
    let text = GOOD.replace("issuer = \"https://auth.example.com/realms/prod\"", issuer);
    let text = text.replace("required_scopes = [\"mcp:tools\"]", lines);
    let warnings = check(&text).unwrap().warnings.into_iter();
    let texts = warnings.map(|found| found.text);
    texts
        .filter(|text| text.contains("scope") && text.starts_with("resource[0]"))
        .collect()
}

/// C6, J9: roles that count as scopes are assigned, and clients do not request them.
#[test]
fn roles_are_not_requested() {
    const ENTRA: &str = "issuer = \"https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0\"\n\
                         audiences = [\"11112222-bbbb-3333-cccc-4444dddd5555\"]";
    const KEYCLOAK: &str = "issuer = \"https://auth.example.com/realms/prod\"";
    for lines in [
        "required_scopes = [\"Mcp.Tools\"]\nscopes_supported = [\"api://mcp/.default\"]",
        "required_scopes = [\"read\"]\nscopes_supported = [\"read\"]\n\
         rule = [{ method = \"tools/call\", scopes = [\"Mcp.Tools\"] }]",
    ] {
        for silent in [
            format!("{ENTRA}\nscope_claims = [\"roles\"]"),
            format!("{KEYCLOAK}\nscope_claims = [\"permissions\", \"/realm_access/roles\"]"),
            format!("{ENTRA}\nscope_claims = [\"roles\"]\n[[issuer]]\n{KEYCLOAK}"),
        ] {
            assert_eq!(warnings_of_scopes(&silent, lines), Vec::<String>::new());
        }
        for requested in [
            KEYCLOAK.to_owned(),
            format!("{KEYCLOAK}\nscope_claims = [\"permissions\", \"/permissions\"]"),
        ] {
            let found = warnings_of_scopes(&requested, lines);
            assert_eq!(found.len(), 1, "{found:#?}");
            assert!(found[0].contains("has \"Mcp.Tools\", which is missing in scopes_supported"));
        }
    }
}

/// C6, J9: the short form of a required scope cannot be requested from Entra ID.
#[test]
fn short_forms_in_requests_to_entra_are_named() {
    const ENTRA: &str = "issuer = \"https://login.microsoftonline.com/aaaabbbb-0000-cccc-1111-dddd2222eeee/v2.0\"\n\
                         audiences = [\"11112222-bbbb-3333-cccc-4444dddd5555\"]";
    const KEYCLOAK: &str = "issuer = \"https://auth.example.com/realms/prod\"";
    const SHORT: &str = "required_scopes = [\"mcp.tools\"]\nscopes_supported = [\"mcp.tools\"]";
    let found = warnings_of_scopes(ENTRA, SHORT);
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0]
            .starts_with("resource[0].scopes_supported has \"mcp.tools\", which Entra ID takes")
    );
    assert!(
        found[0].contains("write \"api://<application ID>/mcp.tools\" there"),
        "{found:#?}"
    );
    let of_rule = "required_scopes = [\"a\"]\nscopes_supported = [\"api://mcp/a\", \"b\"]\n\
                   rule = [{ method = \"tools/call\", scopes = [\"b\"] }]";
    assert_eq!(warnings_of_scopes(ENTRA, of_rule).len(), 1);
    for (issuer, lines) in [
        (KEYCLOAK, SHORT),
        (&*format!("{ENTRA}\n[[issuer]]\n{KEYCLOAK}"), SHORT),
        (&*format!("{ENTRA}\nscope_claims = [\"roles\"]"), SHORT),
        (
            ENTRA,
            "required_scopes = [\"mcp.tools\"]\nscopes_supported = [\"api://mcp/mcp.tools\", \"profile\", \"User.Read\", \
             \"https://graph.microsoft.com/User.Read\"]",
        ),
        (
            ENTRA,
            "required_scopes = [\"profile\"]\nscopes_supported = [\"profile\"]",
        ),
    ] {
        assert_eq!(
            warnings_of_scopes(issuer, lines),
            Vec::<String>::new(),
            "{issuer} {lines}"
        );
    }
}
