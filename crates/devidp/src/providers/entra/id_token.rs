//! The claims of Entra ID about a user.

use serde_json::{Map, Value, json};

use crate::{
    providers::{entra::TENANT, profile::IdTokenContext},
    users::claims::{is_uuid, uuid},
};

/// The claims at the userinfo endpoint.
const USER_INFO: [&str; 6] = [
    "sub",
    "name",
    "given_name",
    "family_name",
    "picture",
    "email",
];

/// Adds, removes and renames claims of an ID token. A user whose `tid` is configured is one of
/// another tenant, whose issuer the token then has.
pub(super) fn claims(claims: &mut Map<String, Value>, context: &IdTokenContext<'_>) {
    for removed in ["auth_time", "at_hash", "email_verified"] {
        claims.remove(removed);
    }
    claims.insert("ver".to_owned(), json!("2.0"));
    if let Some(issued_at) = claims.get("iat").cloned() {
        claims.insert("nbf".to_owned(), issued_at);
    }
    if let Some(tenant) = claims.get("tid").and_then(Value::as_str) {
        let issuer = format!("{}/{tenant}/v2.0", context.origin);
        claims.insert("iss".to_owned(), json!(issuer));
    } else {
        claims.insert("tid".to_owned(), json!(TENANT));
    }
    if context.scopes.contains("profile") {
        let object = claims.get("sub").and_then(Value::as_str).map(uuid);
        claims.entry("oid").or_insert_with(|| json!(object));
    } else {
        claims.remove("oid");
    }
    if let Some(Value::Array(groups)) = claims.get_mut("groups") {
        groups.iter_mut().for_each(replace_name);
    }
}

/// Removes the claims that the userinfo endpoint does not have.
pub(super) fn user_info(claims: &mut Map<String, Value>) {
    claims.retain(|name, _| USER_INFO.contains(&name.as_str()));
}

/// Replaces the name of a group with an identifier.
fn replace_name(group: &mut Value) {
    if let Some(identifier) = group.as_str().filter(|name| !is_uuid(name)).map(uuid) {
        *group = json!(identifier);
    }
}
