//! Providers: their issuers, and the rules of their users.

use portcullis_identity_provider::ProviderKind;

use proptest::{option, prelude::*};

use super::*;
use crate::{
    SecretSource,
    file::{BrokerProvider, BrokerProviderKind, Claim},
};

const TENANT: &str = "aaaabbbb-0000-cccc-1111-dddd2222eeee";
const OTHER_TENANT: &str = "bbbbbbbb-0000-cccc-1111-dddd2222eeee";

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

fn kinds() -> impl Strategy<Value = BrokerProviderKind> {
    use BrokerProviderKind::{Auth0, Cognito, Entra, GitHub, Google, Keycloak, Oidc, Okta};
    prop::sample::select(vec![
        Entra, Google, GitHub, Okta, Auth0, Keycloak, Cognito, Oidc,
    ])
}

/// Tenants, valid and not.
fn tenants_or_not() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(TENANT.to_owned()),
        Just(OTHER_TENANT.to_owned()),
        Just("common".to_owned()),
        "\\PC{0,40}",
    ]
}

/// Issuers, valid and not.
fn issuers_or_not() -> impl Strategy<Value = String> {
    let host = prop::sample::select(vec![
        "auth.example.com",
        "accounts.google.com",
        "github.com",
        "login.microsoftonline.com",
        "example.auth0.com",
        "127.0.0.1:1",
        "a b",
    ]);
    let path = prop_oneof![
        Just(String::new()),
        Just("/".to_owned()),
        Just(format!("/{TENANT}/v2.0")),
        "\\PC{0,20}",
    ];
    (
        prop::sample::select(vec!["https://", "http://", ""]),
        host,
        path,
    )
        .prop_map(|(scheme, host, path)| format!("{scheme}{host}{path}"))
}

/// Mostly no value, so that providers are often valid.
fn rarely<T: Clone + std::fmt::Debug>(
    values: impl Strategy<Value = T>,
) -> impl Strategy<Value = Option<T>> {
    option::weighted(0.1, values)
}

fn providers() -> impl Strategy<Value = BrokerProvider> {
    let lists = || prop::collection::vec(tenants_or_not(), 0..3);
    let place = prop_oneof![
        issuers_or_not().prop_map(|issuer| (None, None, Some(issuer))),
        rarely(issuers_or_not()).prop_map(|issuer| (None, None, issuer)),
        tenants_or_not().prop_map(|tenant| (Some(tenant), None, None)),
        lists().prop_map(|tenants| (None, Some(tenants), None)),
        (
            option::of(tenants_or_not()),
            option::of(lists()),
            option::of(issuers_or_not())
        ),
    ];
    let place = (place, rarely(issuers_or_not()))
        .prop_map(|((tenant, tenants, issuer), api_url)| (tenant, tenants, issuer, api_url));
    let name = rarely("[a-z0-9-]{1,33}|\\PC{0,9}");
    let scopes = rarely(prop::collection::vec("openid|email|\\PC{0,9}", 0..3))
        .prop_map(Option::unwrap_or_default);
    let rule = (
        prop::sample::select(vec!["groups", "email", ""]).prop_map(str::to_owned),
        option::of(prop::collection::vec("[a-z]{1,3}", 1..3)),
    );
    let allow = option::of(prop::collection::vec(rule, 0..2));
    (kinds(), place, name, scopes, allow).prop_map(
        |(kind, (tenant, tenants, issuer, api_url), name, scopes, allow)| BrokerProvider {
            kind,
            name,
            tenant,
            tenants,
            issuer,
            client_id: "portcullis".to_owned(),
            client_secret: SecretSource::Env("UNUSED".to_owned()),
            allow: allow.map(|rules| {
                rules
                    .into_iter()
                    .map(|(claim, one_of)| Claim {
                        claim,
                        one_of,
                        domain: None,
                        report_only: false,
                    })
                    .collect()
            }),
            grant: None,
            scopes,
            ca_file: None,
            proxy: None,
            api_url,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// ST6, PR4: each error about a provider has its key and one line. A provider that is accepted
    /// is not open to the accounts of everyone, and its tenants are identifiers.
    #[test]
    fn accepted_providers_are_restricted(provider in providers()) {
        let secret = secret();
        let text = BROKER.replace("SECRET", secret.path().to_str().unwrap());
        let mut config = from_text(&text).unwrap();
        let client_secret = SecretSource::File(secret.path().to_owned());
        config.broker.as_mut().unwrap().provider = vec![BrokerProvider { client_secret, ..provider.clone() }];
        match Plan::new(&config) {
            Ok(plan) => {
                let planned = plan.broker.unwrap().settings.providers.remove(0);
                let kind = planned.settings.kind;
                let is_public = [ProviderKind::Google, ProviderKind::GitHub].contains(&kind)
                    || planned.settings.tenants.len() > 1;
                prop_assert!(!is_public || provider.allow().iter().any(|rule| rule.one_of.is_some()));
                if kind == ProviderKind::Entra {
                    let issuer = planned.settings.issuer.as_str();
                    prop_assert!(issuer.contains(TENANT) || issuer.contains(OTHER_TENANT) || issuer.contains("127.0.0.1"));
                }
                let host = planned.settings.issuer.url().host_str().unwrap();
                prop_assert!(host != "accounts.google.com" || kind == ProviderKind::Google);
                prop_assert!(host != "github.com" || kind == ProviderKind::GitHub);
            }
            Err(errors) => {
                for error in errors {
                    prop_assert!(error.text.starts_with("broker.provider[0]"), "{}", error);
                    prop_assert!(!error.text.contains('\n'), "{}", error);
                }
            }
        }
    }
}
