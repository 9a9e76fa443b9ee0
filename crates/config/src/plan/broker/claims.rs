//! Claims of access tokens that have the value of a claim of the provider.

use std::collections::BTreeMap;

use anyhow::ensure;
use portcullis_verifier::is_claim_path;

use crate::Diagnostics;

/// The most mapped claims. Every token contains them.
const MAX_CLAIMS: usize = 32;
/// The longest name, in bytes.
const MAX_NAME: usize = 128;

/// Claims with a meaning that a provider's value must not change: those of RFC 7519, RFC 9068, RFC
/// 7662, RFC 7800, RFC 8693, RFC 9396 and OpenID Connect, and names that are read as scopes.
const RESERVED: &[&str] = &[
    "iss",
    "sub",
    "aud",
    "exp",
    "nbf",
    "iat",
    "jti",
    "client_id",
    "scope",
    "scp",
    "auth_time",
    "acr",
    "amr",
    "sid",
    "azp",
    "appid",
    "nonce",
    "at_hash",
    "c_hash",
    "s_hash",
    "cnf",
    "act",
    "may_act",
    "events",
    "authorization_details",
    "active",
    "token_type",
    "username",
];

/// Validates the mapping. Adds an error for each name that a claim cannot have, and returns `None`
/// if there is one.
pub(super) fn plan(
    configured: &BTreeMap<String, String>,
    errors: &mut Diagnostics<'_>,
) -> Option<BTreeMap<String, String>> {
    let is_small = configured.len() <= MAX_CLAIMS;
    if !is_small {
        let text = format!(
            "claims has {} entries; remove all but {MAX_CLAIMS}",
            configured.len()
        );
        errors.add("claims", text);
    }
    errors.take_all(
        "claims",
        configured.iter().map(|(name, source)| check(name, source)),
    )?;
    is_small.then(|| configured.clone())
}

/// Whether no mapped claim can have this name.
pub(super) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

fn check(name: &str, source: &str) -> anyhow::Result<()> {
    ensure!(
        !is_reserved(name),
        "claims has {name:?}, which this server sets itself or other servers give a meaning; choose another name, such as \
         \"provider_{name}\""
    );
    for text in [name, source] {
        ensure!(
            (1..=MAX_NAME).contains(&text.len()) && !text.chars().any(char::is_control),
            "claims has {text:?}, which is not the name of a claim; write claims = {{ email = \"email\" }}"
        );
    }
    ensure!(
        is_claim_path(source),
        "claims has {source:?}, which cannot name a claim of the provider; write a name, or a JSON pointer in which `~` is written \
         as `~0`"
    );
    Ok(())
}
