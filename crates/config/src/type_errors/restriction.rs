//! [`restriction`]: how to restrict access in place of an unknown key that was meant to.

use std::iter;

use figment::value::Value;

use super::lookup::{get, last_name};
use crate::{KeyPath, file::BrokerProviderKind, similar::words};

/// What an unknown key restricts access to, by the words of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Roles,
    Groups,
    Organizations,
    Users,
    EmailDomains,
    Permissions,
    AuthenticationContext,
    AnyClaim,
    Scopes,
    Tools,
    Unknown,
}

/// The words of names, and what a key with one of them restricts access to. The first one applies.
const SUBJECTS: &[(&[&str], Subject)] = &[
    (&["tool", "prompt"], Subject::Tools),
    (&["domain"], Subject::EmailDomains),
    (&["role"], Subject::Roles),
    (
        &["organization", "organisation", "org"],
        Subject::Organizations,
    ),
    (&["group", "team", "member"], Subject::Groups),
    (
        &["permission", "entitlement", "authority"],
        Subject::Permissions,
    ),
    (
        &[
            "user",
            "username",
            "email",
            "subject",
            "sub",
            "principal",
            "person",
        ],
        Subject::Users,
    ),
    (&["acr", "amr", "mfa"], Subject::AuthenticationContext),
    (&["claim"], Subject::AnyClaim),
    (&["scope"], Subject::Scopes),
    (
        &[
            "acl",
            "allow",
            "allowed",
            "allowlist",
            "authz",
            "blacklist",
            "block",
            "blocked",
            "blocklist",
            "deny",
            "denied",
            "denylist",
            "exclude",
            "forbid",
            "forbidden",
            "only",
            "permit",
            "permitted",
            "policy",
            "rbac",
            "require",
            "required",
            "restrict",
            "restricted",
            "whitelist",
        ],
        Subject::Unknown,
    ),
];

/// The table that an unknown key is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// The top of the file, an issuer or a resource.
    Resource,
    Rule,
    Route,
    Broker,
    Provider,
    /// A requirement on a claim.
    Claim,
}

impl Place {
    fn of(table: &KeyPath) -> Option<Self> {
        Some(match &*table.header() {
            "" | "issuer" | "resource" => Self::Resource,
            "resource.rule" => Self::Rule,
            "resource.route" => Self::Route,
            "broker" | "broker.clients" => Self::Broker,
            "broker.provider" => Self::Provider,
            "resource.claim"
            | "resource.rule.claims"
            | "broker.provider.allow"
            | "broker.provider.grant" => Self::Claim,
            _ => return None,
        })
    }
}

/// Returns how to write what an unknown key restricts access to. Removing the key would admit
/// everyone. `None` if the name says nothing of access.
pub(super) fn restriction(key: &KeyPath, root: &Value) -> Option<String> {
    if let Some(of_sign_in) = restriction_of_sign_in(key, root) {
        return Some(of_sign_in);
    }
    let table = key.parent().unwrap_or_default();
    let place = Place::of(&table)?;
    let Some(subject) = subject(last_name(key)) else {
        return (place == Place::Claim).then(|| CONDITIONS.to_owned());
    };
    Some(match subject {
        Subject::Tools => tools(place).to_owned(),
        Subject::Scopes => scopes(place).to_owned(),
        Subject::Unknown => unknown(place).to_owned(),
        _ => claim(
            place,
            &requirement(subject, kind_of_provider(&table, root), root),
        ),
    })
}

/// Returns how to write in `allow` what an unknown key restricts. `None` if it does not restrict who
/// signs in at a `[broker]`.
pub(super) fn restriction_of_sign_in(key: &KeyPath, root: &Value) -> Option<String> {
    let table = key.parent()?;
    let is_claim =
        |subject: &Subject| !matches!(subject, Subject::Tools | Subject::Scopes | Subject::Unknown);
    let subject = subject(last_name(key)).filter(is_claim)?;
    restricts_sign_in(Place::of(&table)?, &table, root).then(|| sign_in(subject, root))
}

/// Whether a key restricts who signs in at a `[broker]`. The tokens of the broker have only the
/// claims that it copies, which can be ones that do not identify users for certain.
fn restricts_sign_in(place: Place, table: &KeyPath, root: &Value) -> bool {
    let has = |name: &str| get(root, &KeyPath::parse(name)).is_some();
    match place {
        Place::Broker => true,
        Place::Resource => has("broker") && (table.is_root() || !has("issuer")),
        _ => false,
    }
}

/// Returns the entry of `allow` for each kind of provider in the file.
fn sign_in(subject: Subject, root: &Value) -> String {
    let entry = |kind| format!("allow = [{{ {} }}]", requirement(subject, kind, root));
    let mut entries: Vec<(String, String)> = Vec::new();
    for (name, kind) in kinds_of_providers(root) {
        let entry = entry(Some(kind));
        if entries.iter().all(|(_, other)| *other != entry) {
            entries.push((name, entry));
        }
    }
    let of_issuers = match get(root, &KeyPath::parse("issuer")) {
        Some(_) => ", and what tokens of an [[issuer]] need in [[resource.claim]]",
        None => "",
    };
    match &entries[..] {
        [] => format!("write {} in [[broker.provider]]{of_issuers}", entry(None)),
        [(_, entry)] => format!("write {entry} in [[broker.provider]]{of_issuers}"),
        _ => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(kind, entry)| format!("{entry} in that with kind = \"{kind}\""))
                .collect();
            format!(
                "write it in each [[broker.provider]]: {}{of_issuers}",
                entries.join(", ")
            )
        }
    }
}

/// Returns the kinds of the providers, each with its name.
fn kinds_of_providers(root: &Value) -> Vec<(String, BrokerProviderKind)> {
    let providers = get(root, &KeyPath::parse("broker.provider")).and_then(Value::as_array);
    let kinds = providers.into_iter().flatten().filter_map(|provider| {
        let kind = provider.as_dict()?.get("kind")?;
        Some((kind.as_str()?.to_owned(), kind.deserialize().ok()?))
    });
    kinds.collect()
}

const CONDITIONS: &str = "a requirement has the conditions one_of and domain; without one, every value of the claim is accepted";

fn tools(place: Place) -> &'static str {
    match place {
        Place::Rule => {
            "write the name in name = \"…\", with method = \"tools/call\"; a rule lists what the token needs, and other tools \
             need other rules"
        }
        _ => {
            "write [[resource.rule]] with method = \"tools/call\", name = \"…\", and the scopes or claims that it needs"
        }
    }
}

fn scopes(place: Place) -> &'static str {
    match place {
        Place::Rule | Place::Route | Place::Provider => "write scopes = [\"…\"]",
        _ => "write required_scopes in [[resource]]: the scopes that every request needs",
    }
}

fn unknown(place: Place) -> &'static str {
    match place {
        Place::Claim => "list the accepted values in one_of, which are compared exactly",
        Place::Broker | Place::Provider => {
            "if it restricts access, write what a user needs in allow of [[broker.provider]]; else remove it"
        }
        _ => {
            "if it restricts access, write what a token needs in required_scopes, [[resource.claim]] and [[resource.rule]]; \
             else remove it"
        }
    }
}

fn claim(place: Place, requirement: &str) -> String {
    match place {
        Place::Resource => format!("write [[resource.claim]] with {requirement}"),
        Place::Rule => format!("write claims = [{{ {requirement} }}]"),
        Place::Route => {
            format!("a route has only scopes; write [[resource.claim]] with {requirement}")
        }
        Place::Broker | Place::Provider => format!("write allow = [{{ {requirement} }}]"),
        Place::Claim => format!("write {requirement}"),
    }
}

/// Returns the kind of the provider that the table is, or is in.
fn kind_of_provider(table: &KeyPath, root: &Value) -> Option<BrokerProviderKind> {
    let mut tables = iter::successors(Some(table.clone()), KeyPath::parent);
    let provider = tables.find(|table| {
        table.header() == "broker.provider" && get(root, &table.name("kind")).is_some()
    })?;
    get(root, &provider.name("kind"))?.deserialize().ok()
}

/// Whether a name restricts access to another thing than the known one, of which it can therefore
/// not be a misspelling, such as `role` of `rule`.
pub(super) fn is_of_other_subject(name: &str, known: &str) -> bool {
    match subject(name) {
        None | Some(Subject::Unknown) => false,
        of_name => of_name != subject(known),
    }
}

fn subject(name: &str) -> Option<Subject> {
    let words = words(name);
    let is_in = |names: &[&str]| words.iter().any(|word| names.contains(&word.as_str()));
    SUBJECTS
        .iter()
        .find(|(names, _)| is_in(names))
        .map(|(_, subject)| *subject)
}

/// Returns the keys of a requirement on a claim. That of a provider is for the kind of provider.
fn requirement(subject: Subject, kind: Option<BrokerProviderKind>, root: &Value) -> String {
    let claim = match (subject, kind) {
        (Subject::EmailDomains, Some(BrokerProviderKind::Google)) => "hd",
        // At these providers, an email address does not identify a user for certain.
        (Subject::EmailDomains, Some(BrokerProviderKind::GitHub)) => "org_ids",
        (Subject::EmailDomains, Some(BrokerProviderKind::Entra)) => "groups",
        (Subject::EmailDomains, _) => return "claim = \"email\", domain = [\"…\"]".to_owned(),
        (Subject::Users, Some(BrokerProviderKind::GitHub)) => "id",
        (Subject::Users, Some(BrokerProviderKind::Entra)) => "oid",
        (Subject::Groups | Subject::Organizations, Some(BrokerProviderKind::GitHub)) => "org_ids",
        (Subject::Roles, None | Some(BrokerProviderKind::Keycloak)) if has_keycloak(root) => {
            "/realm_access/roles"
        }
        (Subject::Roles, _) => "roles",
        (Subject::Groups, _) => "groups",
        (Subject::Organizations, _) => "org_id",
        (Subject::Permissions, _) => "permissions",
        (Subject::Users, _) => "sub",
        (Subject::AuthenticationContext, _) => "acr",
        (Subject::AnyClaim | Subject::Scopes | Subject::Tools | Subject::Unknown, _) => "…",
    };
    format!("claim = \"{claim}\", one_of = [\"…\"]")
}

/// Whether an issuer or a provider is a realm of Keycloak.
fn has_keycloak(root: &Value) -> bool {
    let issuers = ["issuer", "broker.provider"]
        .into_iter()
        .filter_map(|list| get(root, &KeyPath::parse(list))?.as_array());
    issuers.flatten().any(|issuer| {
        let url = issuer
            .as_dict()
            .and_then(|issuer| issuer.get("issuer")?.as_str());
        url.is_some_and(|url| url.contains("/realms/"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: a name that restricts access is no misspelling of a key that does not.
    #[test]
    fn subjects_are_no_misspellings() {
        for (name, known) in [("role", "rule"), ("users", "issuers"), ("group", "grant")] {
            assert!(is_of_other_subject(name, known), "{name}");
        }
        for (name, known) in [
            ("domains", "domain"),
            ("per_user", "per_principal"),
            ("required_scope", "required_scopes"),
            ("rul", "rule"),
        ] {
            assert!(!is_of_other_subject(name, known), "{name}");
        }
    }
}
