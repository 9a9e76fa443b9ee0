//! Rules that no user of a provider can meet, because of what its claims are like.

use std::borrow::Cow;

use portcullis_identity_provider::ProviderKind;
use portcullis_metadata::syntax::is_uuid;
use url::Url;

use super::{
    provider_rules::{ProviderRule, provider_rules},
    unmapped_claims::{first_name, plain_name},
};
use crate::{file::BrokerProvider, plan::warnings::claim_values, toml_text};

/// The claims that Google's ID tokens and user API can have:
/// <https://developers.google.com/identity/openid-connect/openid-connect>.
const OF_GOOGLE: &[&str] = &[
    "acr",
    "amr",
    "at_hash",
    "aud",
    "auth_time",
    "azp",
    "email",
    "email_verified",
    "exp",
    "family_name",
    "given_name",
    "hd",
    "iat",
    "iss",
    "jti",
    "locale",
    "name",
    "nbf",
    "nonce",
    "picture",
    "profile",
    "sub",
];

/// Names for the members of an organization that GitHub's API does not use.
const NOT_OF_GITHUB: &[&str] = &[
    "groups",
    "hd",
    "org",
    "org_id",
    "organization",
    "organizations",
    "roles",
    "team",
    "teams",
];

/// The domains of personal accounts, for which Google sends no `hd`.
const PERSONAL_DOMAINS: &[&str] = &["gmail.com", "googlemail.com"];

/// Claims of which a user has one value.
const SINGLE: &[&str] = &["email", "hd", "id", "login", "oid", "sub", "tid"];

/// A rule of `allow` or `grant`.
struct Rule<'a> {
    /// Its key, such as `broker.provider[0].allow[1]`.
    key: String,
    /// The claim, by its name if it is written as a pointer to it.
    claim: Cow<'a, str>,
    one_of: &'a [String],
    has_domain: bool,
}

/// Warns of each rule that no user can meet.
pub(super) fn warn(provider: &BrokerProvider, key: &str, warnings: &mut Vec<String>) {
    warn_of_contradictions(provider, key, warnings);
    let of_kind = match ProviderKind::from(provider.kind) {
        ProviderKind::Google => of_google,
        ProviderKind::GitHub => of_github,
        ProviderKind::Entra => of_entra,
        ProviderKind::Okta => of_okta,
        ProviderKind::Cognito => of_cognito,
        _ => |_: &Rule<'_>, _: &BrokerProvider| Vec::new(),
    };
    for rule in provider_rules(provider, key).map(Rule::from) {
        let found = of_kind(&rule, provider);
        if found.is_empty() {
            claim_values::warn(&rule.key, &rule.claim, rule.one_of, warnings);
        }
        warnings.extend(found);
    }
}

/// Warns of two entries of `allow` that one user cannot meet both. All entries must be met.
fn warn_of_contradictions(provider: &BrokerProvider, key: &str, warnings: &mut Vec<String>) {
    let single = provider.allow().iter().enumerate();
    let single: Vec<_> = single
        .map(|(number, rule)| (number, plain_name(&rule.claim), &rule.one_of))
        .filter(|(_, claim, _)| SINGLE.contains(&&**claim))
        .filter_map(|(number, claim, one_of)| Some((number, claim, one_of.as_ref()?)))
        .collect();
    for (position, (number, claim, values)) in single.iter().enumerate() {
        let is_disjoint = |other: &[String]| {
            let has = |value: &String| other.iter().any(|one| one.eq_ignore_ascii_case(value));
            !values.iter().any(has)
        };
        let mut earlier = single[..position].iter();
        if let Some((first, _, others)) =
            earlier.find(|(_, other, others)| other == claim && is_disjoint(others))
        {
            let all: Vec<String> = others
                .iter()
                .chain(values.iter())
                .map(|value| toml_text::string(value))
                .collect();
            warnings.push(format!(
                "{key}.allow[{number}] and allow[{first}] have no common value of {claim:?}, and users must meet all entries, so \
                 that no user can sign in; write one entry with one_of = [{}]",
                all.join(", ")
            ));
        }
    }
}

fn of_google(rule: &Rule<'_>, _: &BrokerProvider) -> Vec<String> {
    let key = &rule.key;
    if !OF_GOOGLE.contains(&&*first_name(&rule.claim)) {
        return vec![format!(
            "{key}.claim = {:?} is not a claim of Google's, so that no user meets the rule: Google sends no groups and roles; \
             write \"hd\" for the domain of an organization, or \"sub\" for a person",
            rule.claim
        )];
    }
    match &*rule.claim {
        "hd" | "sub" if rule.has_domain => vec![format!(
            "{key}.domain compares what follows an @, and the claim {:?} has none, so that no user meets the rule; write one_of \
             in place of domain",
            rule.claim
        )],
        "hd" => rule.values(|value| !is_domain_of_organization(value), |value| {
            let problem = match PERSONAL_DOMAINS.contains(&value.to_ascii_lowercase().as_str()) {
                true => "personal accounts have no \"hd\"",
                false => "\"hd\" is compared exactly with a domain in lower case",
            };
            format!("{problem}, so that no user has this value; write the domain of an organization, such as \"example.com\"")
        }),
        "sub" => rule.values(|value| value.contains('@'), |_| {
            "\"sub\" is not an e-mail address at Google, so that no user has this value; write a number such as \
             \"110169484474386276334\""
                .to_owned()
        }),
        _ => Vec::new(),
    }
}

fn of_github(rule: &Rule<'_>, provider: &BrokerProvider) -> Vec<String> {
    if NOT_OF_GITHUB.contains(&&*first_name(&rule.claim)) {
        return vec![format!(
            "{}.claim = {:?} is not in GitHub's API, so that no user meets the rule; write \"org_ids\" for an organization, or \
             \"id\" for a person",
            rule.key, rule.claim
        )];
    }
    let reads_organizations = provider.scopes.iter().any(|scope| scope == "read:org");
    if matches!(&*rule.claim, "orgs" | "org_ids") && !reads_organizations {
        return vec![format!(
            "{}.claim = {:?} is only read with the scope \"read:org\", so that no user meets the rule; write scopes = \
             [\"read:org\"] in the provider",
            rule.key, rule.claim
        )];
    }
    match &*rule.claim {
        "id" | "org_ids" => rule.values(
            |value| !is_number(value),
            |value| {
                let kind = if rule.claim == "id" { "users" } else { "orgs" };
                format!(
                    "{:?} has numbers at GitHub, so that no user has this value; write the id that \
                 https://api.github.com/{kind}/NAME shows, and not {value:?}",
                    rule.claim
                )
            },
        ),
        _ => Vec::new(),
    }
}

fn of_entra(rule: &Rule<'_>, _: &BrokerProvider) -> Vec<String> {
    match &*rule.claim {
        // An application can be set up to send names of groups.
        "groups" => rule.values(
            |value| !is_uuid(value),
            |_| {
                "\"groups\" has object IDs at Entra ID, so that no user has this value, unless the application sends names, which \
                 are not unique; write the object ID that the overview of the group shows, such as \
                 \"22223333-cccc-4444-dddd-5555eeee6666\""
                    .to_owned()
            },
        ),
        "oid" | "tid" => rule.values(
            |value| !is_uuid(value) || value.bytes().any(|byte| byte.is_ascii_uppercase()),
            |_| {
                format!(
                    "{:?} is a UUID in lower case at Entra ID, so that no user has this value; write the object ID or the ID of \
                     the tenant, such as \"aaaabbbb-0000-cccc-1111-dddd2222eeee\"",
                    rule.claim
                )
            },
        ),
        _ => Vec::new(),
    }
}

/// At the org authorization server of Okta, `groups` is requested by the scope of the same name. At
/// a custom one, whose issuer has a path, administrators choose the scopes with which it is sent.
fn of_okta(rule: &Rule<'_>, provider: &BrokerProvider) -> Vec<String> {
    let issuer = provider.issuer.as_deref().map(Url::parse);
    let is_of_organization = matches!(issuer, Some(Ok(url)) if url.path() == "/");
    let mut scopes: Vec<&str> = provider.scopes.iter().map(String::as_str).collect();
    if rule.claim != "groups" || !is_of_organization || scopes.contains(&"groups") {
        return Vec::new();
    }
    if scopes.is_empty() {
        scopes.extend(ProviderKind::Okta.default_scopes());
    }
    scopes.push("groups");
    vec![format!(
        "{}.claim = \"groups\" is only sent with the scope \"groups\", so that no user meets the rule; write scopes = {scopes:?} \
         in the provider",
        rule.key
    )]
}

fn of_cognito(rule: &Rule<'_>, _: &BrokerProvider) -> Vec<String> {
    if rule.claim != "groups" {
        return Vec::new();
    }
    vec![format!(
        "{}.claim = \"groups\" is \"cognito:groups\" in the tokens of Cognito, so that no user meets the rule; write claim = \
         \"cognito:groups\"",
        rule.key
    )]
}

impl<'a> From<ProviderRule<'a>> for Rule<'a> {
    fn from(rule: ProviderRule<'a>) -> Self {
        Self {
            key: rule.key,
            claim: plain_name(rule.claim),
            one_of: rule.one_of.unwrap_or_default(),
            has_domain: rule.has_domain,
        }
    }
}

impl Rule<'_> {
    /// Returns a warning for each value that no user has.
    fn values(
        &self,
        is_unmet: impl Fn(&str) -> bool,
        reason: impl Fn(&str) -> String,
    ) -> Vec<String> {
        let unmet = self.one_of.iter().filter(|value| is_unmet(value));
        unmet
            .map(|value| format!("{}.one_of has {value:?}: {}", self.key, reason(value)))
            .collect()
    }
}

/// Whether `hd` can have this value. Characters that are not ASCII are not judged.
fn is_domain_of_organization(value: &str) -> bool {
    let is_unusual = |byte: u8| {
        byte.is_ascii() && !matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.')
    };
    value.contains('.') && !value.bytes().any(is_unusual) && !PERSONAL_DOMAINS.contains(&value)
}

fn is_number(value: &str) -> bool {
    !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit())
}
