//! Warnings about the rules and identifiers of a provider.

use super::*;

/// ST6, J9: names of organizations can be taken by others at GitHub, in `allow` and `grant`.
#[test]
fn names_of_organizations_are_not_certain() {
    let warned = |rules: &str| {
        let lines = format!("scopes = [\"read:org\"]\n{rules}");
        let plan = provider("github", &lines).unwrap();
        let found: Vec<String> = warnings(&plan).into_iter().map(str::to_owned).collect();
        found
    };
    let found = warned(
        "allow = [{ claim = \"orgs\", one_of = [\"example\"] }]\n\
         grant = [{ claim = \"orgs\", one_of = [\"example\"], scopes = [\"mcp:tools\"] }]",
    );
    for key in ["allow[0]", "grant[0]"] {
        let start = format!("broker.provider[0].{key}.claim = \"orgs\" decides by a claim");
        let is_named =
            |text: &&String| text.starts_with(&start) && text.ends_with("use \"org_ids\"");
        assert_eq!(found.iter().filter(is_named).count(), 1, "{found:#?}");
    }
    let by_number = warned("allow = [{ claim = \"org_ids\", one_of = [\"9919\"] }]");
    assert!(
        !by_number.iter().any(|text| text.contains("certain")),
        "{by_number:#?}"
    );
}

/// ST6, J9: a requirement of a resource about a claim that the broker takes from such a claim of the
/// provider is named, and others are not.
#[test]
fn requirements_by_uncertain_claims_are_named() {
    let found = |kind: &str, claims: &str, claim: &str| {
        let plan = broker(&[
            (
                "  [[resource.rule]]",
                &format!(
                    "  [[resource.claim]]\n  claim = \"{claim}\"\n  one_of = [\"a\"]\n  [[resource.rule]]"
                ),
            ),
            ("[broker]\n", &format!("[broker]\nclaims = {claims}\n")),
            ("  issuer = \"https://auth.example.com/realms/prod\"\n", ""),
            (
                "\"keycloak\"",
                &format!("\"{kind}\"\n  allow = [{{ claim = \"sub\", one_of = [\"1\"] }}]"),
            ),
        ]);
        let texts = plan.unwrap().warnings.into_iter().map(|found| found.text);
        texts
            .filter(|text| text.contains(" decides by "))
            .collect::<Vec<_>>()
    };
    for claim in ["mail", "/mail"] {
        let found = found("google", "{ mail = \"email\" }", claim);
        assert_eq!(found.len(), 1, "{found:#?}");
        let start = format!(
            "resource[0].claim[0].claim = {claim:?} decides by \"email\" of broker.provider[0], which is not certain: a Google"
        );
        assert!(found[0].starts_with(&start), "{found:#?}");
        assert!(found[0].contains("as allow of the provider, where you can use \"hd\""));
    }
    for (claims, claim) in [
        ("{ domain = \"hd\", mail = \"email\" }", "domain"),
        ("{ mail = \"email\" }", "sub"),
    ] {
        assert_eq!(found("google", claims, claim), Vec::<String>::new());
    }
}

/// ST6, J9: a claim is examined also if it is written as a JSON pointer to it.
#[test]
fn pointers_to_claims_are_examined() {
    for (kind, claim, problem) in [
        ("google", "/email", "decides by a claim that is not certain"),
        ("google", "/groups", "is not a claim of Google's"),
        ("google", "/hd", "one_of has \"@Example\""),
        ("github", "/login", "decides by a claim that is not certain"),
        ("github", "/id", "one_of has \"@Example\""),
        ("cognito", "groups", "write claim = \"cognito:groups\""),
        ("cognito", "/groups", "write claim = \"cognito:groups\""),
    ] {
        let issuer = match kind {
            "cognito" => {
                "issuer = \"https://cognito-idp.eu-west-1.amazonaws.com/eu-west-1_aB3dE5fG7\""
            }
            _ => "",
        };
        let allow =
            format!("{issuer}\nallow = [{{ claim = \"{claim}\", one_of = [\"@Example\"] }}]");
        let plan = provider(kind, &allow).unwrap();
        let found = warnings(&plan);
        let is_named = |text: &&&str| {
            text.starts_with("broker.provider[0].allow[0].") && text.contains(problem)
        };
        assert_eq!(
            found.iter().filter(is_named).count(),
            1,
            "{kind} {claim}: {found:#?}"
        );
    }
}

/// ST6, J9: the number of an application at GitHub and the tenant at Entra ID are no identifiers of
/// clients.
#[test]
fn other_identifiers_are_named() {
    let github = "allow = [{ claim = \"id\", one_of = [\"583231\"] }]";
    let entra = format!("tenant = \"{TENANT}\"");
    let warned = |kind: &str, lines: &str, client_id: &str| {
        let client = format!("\"{client_id}\"");
        let issuer = "  issuer = \"https://auth.example.com/realms/prod\"\n";
        let plan = broker(&[
            (issuer, &format!("{lines}\n")),
            ("\"keycloak\"", &format!("\"{kind}\"")),
            ("\"portcullis\"", &client),
        ]);
        let plan = plan.unwrap();
        let found: Vec<String> = warnings(&plan)
            .into_iter()
            .filter(|text| text.contains("].client_id = "))
            .map(str::to_owned)
            .collect();
        found.join("\n")
    };
    assert!(warned("github", github, "123456").contains("is the App ID of a GitHub App; write"));
    for id in ["Iv1.8a61f9b3a7aba766", "Iv23liAbCd", "01234567890123456789"] {
        assert_eq!(warned("github", github, id), "");
    }
    for id in [TENANT, &TENANT.to_uppercase()] {
        assert!(warned("entra", &entra, id).contains("is the ID of the tenant; write"));
    }
    let several = format!(
        "tenants = [\"{OTHER_TENANT}\", \"{TENANT}\"]\nallow = [{{ claim = \"roles\", one_of = [\"a\"] }}]"
    );
    assert!(warned("entra", &several, TENANT).contains("is the ID of the tenant; write"));
    assert_eq!(warned("entra", &entra, OTHER_TENANT), "");
}

/// ST6, J9: the org authorization server of Okta sends groups with a scope of that name.
#[test]
fn groups_of_okta_need_their_scope() {
    const ALLOW: &str = "allow = [{ claim = \"groups\", one_of = [\"mcp-users\"] }]";
    const GRANT: &str =
        "grant = [{ claim = \"groups\", one_of = [\"mcp-users\"], scopes = [\"mcp:tools\"] }]";
    let warned = |issuer: &str, lines: &str| {
        let plan = provider("okta", &format!("issuer = \"{issuer}\"\n{lines}")).unwrap();
        let all = warnings(&plan).into_iter();
        let found: Vec<String> = all
            .filter(|text| text.contains("is only sent with the scope \"groups\""))
            .map(str::to_owned)
            .collect();
        found
    };
    for (rule, key) in [(ALLOW, "allow[0]"), (GRANT, "grant[0]")] {
        for (scopes, fix) in [
            (
                "",
                "[\"openid\", \"profile\", \"email\", \"offline_access\", \"groups\"]",
            ),
            ("scopes = [\"openid\"]", "[\"openid\", \"groups\"]"),
        ] {
            let found = warned("https://example.okta.com", &format!("{scopes}\n{rule}"));
            assert_eq!(found.len(), 1, "{found:#?}");
            assert!(found[0].starts_with(&format!("broker.provider[0].{key}.claim")));
            assert!(
                found[0].contains(&format!("write scopes = {fix}")),
                "{found:#?}"
            );
        }
    }
    for (issuer, lines) in [
        (
            "https://example.okta.com",
            &*format!("scopes = [\"openid\", \"groups\"]\n{ALLOW}"),
        ),
        ("https://example.okta.com/oauth2/default", ALLOW),
        (
            "https://example.okta.com",
            "allow = [{ claim = \"email\", one_of = [\"a@example.com\"] }]",
        ),
    ] {
        assert_eq!(
            warned(issuer, lines),
            Vec::<String>::new(),
            "{issuer} {lines}"
        );
    }
}
