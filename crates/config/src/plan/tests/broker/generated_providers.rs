//! Properties of generated providers.

use portcullis_identity_provider::ProviderKind;
use proptest::{option, prelude::*};

use super::*;
use crate::{
    SecretSource,
    file::{BrokerProvider, BrokerProviderKind, Claim},
};

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
