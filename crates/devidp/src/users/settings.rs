//! [`UserSettings`]: a user whose claims are configured.

use serde_json::{Map, Value};

use crate::{authorize::user::is_user_name, error::DevIdpError};

/// A user whose claims are configured. Every other valid user name can sign in as well.
///
/// ```
/// use portcullis_devidp::{DevIdpSettings, UserSettings};
/// use serde_json::json;
///
/// let mut alice = UserSettings::new("alice");
/// alice.claims.insert("groups".to_owned(), json!(["admins"]));
/// let settings = DevIdpSettings { users: vec![alice], ..DevIdpSettings::default() };
/// assert_eq!(settings.users[0].name, "alice");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct UserSettings {
    /// The user name, which is the `sub`.
    pub name: String,
    /// The claims about the user in ID tokens and at the userinfo endpoint. They replace those that
    /// the server derives from the name. A claim that belongs to the scope `profile`, `email`,
    /// `address` or `phone` needs this scope. With the imitation of GitHub, `id`, `login`, `name`,
    /// `email`, `orgs` (logins) and `teams` (`ORG/SLUG`) are what its API says. At most 4096 bytes
    /// as JSON. Default none.
    pub claims: Map<String, Value>,
}

impl UserSettings {
    /// Creates a user without configured claims.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            claims: Map::new(),
        }
    }
}

/// The claims that the server sets itself. Access tokens are distinguished from ID tokens by their
/// identifier, which is `jti`, `uti` or `uid`.
const OWN_CLAIMS: [&str; 14] = [
    "aud",
    "at_hash",
    "auth_time",
    "azp",
    "exp",
    "iat",
    "iss",
    "jti",
    "nbf",
    "nonce",
    "sid",
    "sub",
    "uid",
    "uti",
];
/// The maximum size of a user's claims in bytes.
const MAX_CLAIMS: usize = 4096;

/// Validates the users of the settings.
pub(crate) fn check(users: &[UserSettings]) -> Result<(), DevIdpError> {
    for (index, UserSettings { name, claims }) in users.iter().enumerate() {
        let user = || name.clone();
        if !is_user_name(name) {
            return Err(DevIdpError::User { user: user() });
        }
        if users.iter().take(index).any(|other| other.name == *name) {
            return Err(DevIdpError::UserTwice { user: user() });
        }
        let is_own = |claim: &str| claim.is_empty() || OWN_CLAIMS.contains(&claim);
        if let Some(claim) = claims.keys().find(|claim| is_own(claim)) {
            return Err(DevIdpError::Claim {
                name: claim.clone(),
            });
        }
        let size = serde_json::to_vec(claims).map_or(usize::MAX, |json| json.len());
        if size > MAX_CLAIMS {
            return Err(DevIdpError::ClaimsTooLarge { size });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn users_are_validated() {
        let user = |name: &str, claims: Value| UserSettings {
            name: name.to_owned(),
            claims: claims.as_object().unwrap().clone(),
        };
        let alice = || user("alice", json!({ "groups": ["a"], "tid": "t" }));
        for (users, code) in [
            (vec![alice(), user("bob", json!({}))], None),
            (vec![alice(), alice()], Some("devidp.user_twice")),
            (vec![user("", json!({}))], Some("devidp.user")),
            (
                vec![user("alice", json!({ "sub": "bob" }))],
                Some("devidp.claim"),
            ),
            (
                vec![user("alice", json!({ "jti": "j" }))],
                Some("devidp.claim"),
            ),
            (
                vec![user("alice", json!({ "groups": "a".repeat(5000) }))],
                Some("devidp.claims_too_large"),
            ),
        ] {
            assert_eq!(check(&users).err().map(|error| error.code()), code);
        }
    }
}
