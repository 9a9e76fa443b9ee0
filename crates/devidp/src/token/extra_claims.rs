//! Checks the further claims of access tokens that the settings contain.

use serde_json::{Map, Value};

use crate::{error::DevIdpError, providers::Provider};

/// The claims that the server sets itself.
const OWN_CLAIMS: [&str; 18] = [
    "aud",
    "auth_time",
    "azp",
    "appid",
    "cid",
    "client_id",
    "cnf",
    "exp",
    "iat",
    "iss",
    "jti",
    "nbf",
    "scope",
    "scp",
    "sid",
    "sub",
    "typ",
    "uti",
];
/// The claim in which Authentik has the identifier of a token. At other providers it has another
/// meaning.
const AUTHENTIK_TOKEN_ID: &str = "uid";
/// The maximum size of all extra claims in bytes.
const MAX_EXTRA_CLAIMS: usize = 4096;

/// Checks that the extra claims have names that the server does not use when it imitates this
/// provider, and at most 4096 bytes as JSON.
pub(crate) fn check(
    claims: &Map<String, Value>,
    provider: Option<Provider>,
) -> Result<(), DevIdpError> {
    let is_own = |name: &str| {
        OWN_CLAIMS.contains(&name)
            || (name == AUTHENTIK_TOKEN_ID && provider == Some(Provider::Authentik))
    };
    if let Some(name) = claims.keys().find(|name| name.is_empty() || is_own(name)) {
        return Err(DevIdpError::Claim { name: name.clone() });
    }
    let size = serde_json::to_vec(claims).map_or(usize::MAX, |json| json.len());
    if size > MAX_EXTRA_CLAIMS {
        Err(DevIdpError::ClaimsTooLarge { size })
    } else {
        Ok(())
    }
}
