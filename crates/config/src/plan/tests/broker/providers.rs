//! Providers: their issuers, and the rules of their users.

use portcullis_identity_provider::ProviderKind;

use super::*;

/// Each kind of provider has its issuer.
#[test]
fn issuers_follow_from_the_kind() {
    let of = |kind: &str, lines: &str| {
        let plan = provider(kind, lines).unwrap().broker.unwrap();
        let provider = plan.settings.providers.into_iter().next().unwrap();
        assert_eq!(provider.settings.kind, ProviderKind::parse(kind).unwrap());
        assert_eq!(&*provider.settings.name, kind);
        (
            provider.settings.issuer.as_str().to_owned(),
            provider.settings.tenants.len(),
        )
    };
    let google = "allow = [{ claim = \"hd\", one_of = [\"example.com\"] }]";
    let github = "allow = [{ claim = \"id\", one_of = [\"583231\"] }]";
    let entra = format!("https://login.microsoftonline.com/{TENANT}/v2.0");
    let government = format!("https://login.microsoftonline.us/{TENANT}/v2.0");
    let imitation = format!("http://127.0.0.1:9000/{TENANT}/v2.0");
    for (kind, lines, issuer, tenants) in [
        (
            "google",
            google.to_owned(),
            "https://accounts.google.com",
            0,
        ),
        ("github", github.to_owned(), "https://github.com", 0),
        (
            "github",
            format!(
                "issuer = \"https://github.example.com\"\napi_url = \"http://127.0.0.1:1/api\"\n{github}"
            ),
            "https://github.example.com",
            0,
        ),
        (
            "entra",
            format!("tenant = \"{}\"", TENANT.to_uppercase()),
            &*entra,
            0,
        ),
        ("entra", format!("tenants = [\"{TENANT}\"]"), &*entra, 0),
        (
            "entra",
            format!(
                "tenants = [\"{TENANT}\", \"{OTHER_TENANT}\"]\nallow = [{{ claim = \"roles\", one_of = [\"a\"] }}]"
            ),
            &*entra,
            2,
        ),
        (
            "entra",
            format!("tenant = \"{TENANT}\"\nissuer = \"{government}\""),
            &*government,
            0,
        ),
        (
            "entra",
            format!("tenant = \"{TENANT}\"\nissuer = \"{imitation}\""),
            &*imitation,
            0,
        ),
        (
            "okta",
            "issuer = \"https://example.okta.com\"".to_owned(),
            "https://example.okta.com",
            0,
        ),
        (
            "auth0",
            "issuer = \"https://example.eu.auth0.com/\"".to_owned(),
            "https://example.eu.auth0.com/",
            0,
        ),
        (
            "oidc",
            "issuer = \"https://auth.example.com\"".to_owned(),
            "https://auth.example.com",
            0,
        ),
    ] {
        assert_eq!(of(kind, &lines), (issuer.to_owned(), tenants), "{lines}");
    }
}

/// ST6: an account at a public provider is not enough.
#[test]
fn public_providers_need_rules() {
    let tenants = format!("tenants = [\"{TENANT}\", \"{OTHER_TENANT}\"]");
    for (kind, lines, words) in [
        ("google", "", "anyone can have a Google account"),
        ("github", "", "anyone can have a GitHub account"),
        ("entra", &*tenants, "several tenants"),
    ] {
        assert_error(
            provider(kind, lines),
            "broker.provider[0].allow is missing",
            words,
        );
        let present = format!("{lines}\nallow = [{{ claim = \"email\" }}]");
        assert_error(
            provider(kind, &present),
            "broker.provider[0].allow has no rule with one_of or domain",
            words,
        );
        let reported = format!(
            "{lines}\nallow = [{{ claim = \"sub\", one_of = [\"a\"], report_only = true }}]"
        );
        assert_error(
            provider(kind, &reported),
            "broker.provider[0].allow[0].report_only = true",
            "remove it",
        );
    }
    for shared in [
        "common",
        "Organizations",
        "consumers",
        "9188040d-6c67-4c5b-b112-36a304b66dad",
    ] {
        assert_error(
            provider("entra", &format!("tenant = \"{shared}\"")),
            &format!("broker.provider[0].tenant has \"{shared}\""),
            "anyone with an account at Microsoft could sign in",
        );
    }
    for issuer in [
        "http://127.0.0.1:9000/v2.0",
        &format!("http://127.0.0.1:9000/{OTHER_TENANT}/v2.0"),
        &format!("https://login.microsoftonline.us/{OTHER_TENANT}/v2.0"),
    ] {
        assert_error(
            provider(
                "entra",
                &format!("tenant = \"{TENANT}\"\nissuer = \"{issuer}\""),
            ),
            "broker.provider[0].issuer = ",
            "is not that of the tenant",
        );
    }
    for (issuer, kind) in [
        ("https://accounts.google.com", "google"),
        ("https://github.com/login/oauth", "github"),
        ("https://login.microsoftonline.com/common/v2.0", "entra"),
    ] {
        assert_error(
            provider("oidc", &format!("issuer = \"{issuer}\"")),
            "broker.provider[0].issuer",
            &format!("write kind = \"{kind}\""),
        );
    }
}

/// The redirect URI is registered at the host of the provider.
#[test]
fn the_notes_have_the_host_of_the_provider() {
    let github = "allow = [{ claim = \"id\", one_of = [\"583231\"] }]";
    let entra =
        |host: &str| format!("tenant = \"{TENANT}\"\nissuer = \"https://{host}/{TENANT}/v2.0\"");
    for (kind, lines, page) in [
        (
            "github",
            github.to_owned(),
            "https://github.com/settings/developers",
        ),
        (
            "github",
            format!("issuer = \"https://github.corp.example.com\"\n{github}"),
            "https://github.corp.example.com/settings/developers",
        ),
        (
            "github",
            format!("issuer = \"http://127.0.0.1:9000\"\n{github}"),
            "https://github.com/settings/developers",
        ),
        (
            "entra",
            format!("tenant = \"{TENANT}\""),
            "https://entra.microsoft.com: App registrations",
        ),
        (
            "entra",
            entra("login.microsoftonline.us"),
            "https://portal.azure.us: App registrations",
        ),
        (
            "entra",
            entra("login.partner.microsoftonline.cn"),
            "https://portal.azure.cn: App registrations",
        ),
    ] {
        let plan = provider(kind, &lines).unwrap();
        let page = format!("register it in {page}");
        assert!(
            plan.notes.iter().any(|note| note.contains(&page)),
            "{:#?}",
            plan.notes
        );
    }
}

/// The rules of users are those of tokens.
#[test]
fn rules_of_users_are_planned() {
    let lines = r#"
        issuer = "https://auth.example.com/realms/prod"
        allow = [{ claim = "groups", one_of = ["mcp-users"] }]
        grant = [{ scopes = ["mcp:tools"] }, { claim = "roles", one_of = ["admin"], scopes = ["mcp:admin"] }]
    "#;
    let plan = provider("keycloak", lines).unwrap().broker.unwrap();
    let provider = &plan.settings.providers[0];
    assert_eq!(provider.allow.len(), 1);
    let rules: Vec<bool> = provider
        .grants
        .iter()
        .map(|grant| grant.rule.is_some())
        .collect();
    assert_eq!(rules, [false, true]);
    assert_eq!(provider.grants[1].scopes.as_str(), "mcp:admin");
}
