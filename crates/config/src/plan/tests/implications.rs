//! Scopes that imply others, and scopes that all tokens have.

use portcullis_metadata::Scopes;

use super::{GOOD, check, error};

/// B7: broader scopes and the scopes that they imply are configurable and must be valid scopes.
#[test]
fn implied_scopes_are_configurable() {
    let implies = |table: &str| format!("scope_implies = {table}\nrequired_scopes");
    let plan = check(&GOOD.replace(
        "required_scopes",
        &implies(r#"{ "mcp:admin" = ["mcp:tools"] }"#),
    ))
    .unwrap();
    let admin = Scopes::parse("mcp:admin").unwrap();
    let tools = Scopes::parse("mcp:tools").unwrap();
    assert!(plan.resources[0].scope_implications.covers(&admin, &tools));
    for (table, named) in [
        (r#"{ "a b" = ["c"] }"#, "\"a b\" is not a scope"),
        (r#"{ "a" = ["b c"] }"#, "\"b c\" is not a scope"),
        (
            r#"{ "a" = ["offline_access"] }"#,
            "`offline_access` is not a scope",
        ),
        (
            r#"{ "offline_access" = ["a"] }"#,
            "`offline_access` is not a scope",
        ),
    ] {
        let message = error("required_scopes", &implies(table));
        assert!(
            message.starts_with(&format!("resource[0].scope_implies: {named}")),
            "{message}"
        );
        assert!(message.contains("; "), "the fix: {message}");
    }
}

/// Returns the warnings with these keys of the resource and these further lines.
fn warnings(keys: &str, more: &str) -> Vec<String> {
    let text = GOOD.replace("required_scopes", &format!("{keys}\nrequired_scopes"));
    let plan = check(&format!("{text}\n{more}")).unwrap();
    plan.warnings.iter().map(ToString::to_string).collect()
}

/// B7, J9: a misspelled broader scope has a warning. Others need not be in `scopes_supported`,
/// roles among them, and can have almost the name of a scope that they imply.
#[test]
fn misspelled_broader_scopes_are_named() {
    const SUPPORTED: &str = "scopes_supported = [\"mcp:tools\", \"mcp:admin\"]";
    let warned = |broad: &str, narrow: &str| {
        let keys = format!("{SUPPORTED}\nscope_implies = {{ \"{broad}\" = [\"{narrow}\"] }}");
        warnings(&keys, "")
    };
    let found = warned("mcp:admn", "mcp:tools");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(
        found[0].starts_with("resource[0].scope_implies has \"mcp:admn\""),
        "{found:#?}"
    );
    assert!(
        found[0].ends_with("did you mean `mcp:admin`?"),
        "{found:#?}"
    );
    for (broad, narrow) in [
        ("mcp:admin", "mcp:tools"),
        ("mcp:operator", "mcp:admin"),
        ("mcp:admins", "mcp:admin"),
    ] {
        assert_eq!(warned(broad, narrow), Vec::<String>::new(), "{broad}");
    }
    let unlisted = "scope_implies = { \"mcp:tool\" = [\"mcp:write\"] }";
    assert_eq!(warnings(unlisted, ""), Vec::<String>::new());
}

/// B9, J9: rules and routes that require what every token needs have a warning, unless they require
/// something else, too.
#[test]
fn rules_with_required_scopes_only_are_named() {
    const RULE: &str = "[[resource.rule]]\nmethod = \"tools/call\"\nscopes";
    const ROUTE: &str = "[[resource.route]]\npath = \"/mcp\"\nscopes";
    for (more, key) in [
        (format!("{RULE} = [\"mcp:tools\"]"), "rule[0]"),
        (format!("{ROUTE} = [\"mcp:tools\"]"), "route[0]"),
        (format!("{RULE} = [\"mcp:tools\", \"mcp:admin\"]"), ""),
        (format!("{ROUTE} = [\"mcp:admin\"]"), ""),
        (
            format!("{RULE} = [\"mcp:tools\"]\nclaims = [{{ claim = \"org\" }}]"),
            "",
        ),
        (
            format!("{RULE} = [\"mcp:tools\"]\nlimit = {{ requests = 10, per = \"1m\" }}"),
            "",
        ),
    ] {
        let warnings = warnings("", &more);
        assert_eq!(warnings.is_empty(), key.is_empty(), "{more}: {warnings:#?}");
        let start = format!("resource[0].{key}.scopes has only scopes of required_scopes");
        assert!(
            warnings.iter().all(|warning| warning.starts_with(&start)),
            "{more}: {warnings:#?}"
        );
    }
    let without_tokens = warnings("auth = \"none\"", &format!("{RULE} = [\"mcp:tools\"]"));
    assert_eq!(without_tokens.len(), 1, "{without_tokens:#?}");
}

/// B7, J9: scopes of a rule or a route that all tokens have, because of a reversed pair, are named.
#[test]
fn reversed_implications_are_named() {
    let warned = |implies: &str, required: &str, rest: &str| {
        let lines = format!("required_scopes = [{required}]\nscope_implies = {implies}\n{rest}");
        let plan = check(&GOOD.replace("required_scopes = [\"mcp:tools\"]", &lines)).unwrap();
        let texts: Vec<String> = plan.warnings.into_iter().map(|found| found.text).collect();
        texts
    };
    const REVERSED: &str = r#"{ "mcp:tools" = ["mcp:admin"] }"#;
    const TOOLS: &str = r#""mcp:tools""#;
    for (rest, key) in [
        (
            r#"rule = [{ method = "tools/call", scopes = ["mcp:admin"] }]"#,
            "rule[0]",
        ),
        (
            r#"route = [{ path = "/mcp", scopes = ["mcp:admin"] }]"#,
            "route[0]",
        ),
    ] {
        let found = warned(REVERSED, TOOLS, rest);
        assert_eq!(found.len(), 1, "{found:#?}");
        let start = format!("resource[0].{key}.scopes has \"mcp:admin\"");
        assert!(found[0].starts_with(&start), "{found:#?}");
        let fix = r#"write scope_implies = { "mcp:admin" = ["mcp:tools"] }"#;
        assert!(found[0].contains(fix), "{found:#?}");
        for (implies, required) in [
            (r#"{ "mcp:admin" = ["mcp:tools"] }"#, TOOLS),
            (REVERSED, ""),
        ] {
            let found = warned(implies, required, rest);
            assert_eq!(found, Vec::<String>::new(), "{implies} {required}");
        }
        let found = warned(REVERSED, r#""mcp:tools", "mcp:admin""#, rest);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert!(
            found[0].contains("has only scopes of required_scopes"),
            "{found:#?}"
        );
    }
}
