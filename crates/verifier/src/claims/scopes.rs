//! The scopes of a token: those of `scope` or `scp`, and those of the issuer's `scope_claims`.

use portcullis_metadata::{ClaimsError, IntrospectionResponse, Scopes, UnverifiedClaims};
use serde_json::Value;

use crate::{json_claims::JsonClaims, settings::IssuerSettings};

/// Returns the scopes of a signed token. `json` has the same claims. Fails if `scope` or `scp` is
/// malformed. A malformed value of another claim is ignored.
pub(crate) fn of_token(
    claims: &UnverifiedClaims<'_>,
    json: &JsonClaims,
    settings: &IssuerSettings,
) -> Result<Scopes, ClaimsError> {
    let scopes = claims.scopes()?;
    Ok(match of_scope_claims(json, settings) {
        Some(more) => scopes.union(&more),
        None => scopes,
    })
}

/// Returns the scopes of an introspection response, or `None` if it has no member with scopes.
/// `json` has the same members.
pub(crate) fn of_response(
    response: &IntrospectionResponse,
    json: &JsonClaims,
    settings: &IssuerSettings,
) -> Option<Scopes> {
    match (response.scope.clone(), of_scope_claims(json, settings)) {
        (Some(scopes), Some(more)) => Some(scopes.union(&more)),
        (scopes, more) => scopes.or(more),
    }
}

/// Returns the scopes of the issuer's `scope_claims`, or `None` if there is no such claim.
///
/// A value is not split at spaces, because that would turn a role such as `not admin` into the
/// scope `admin`. A value with a space is not a scope name (RFC 6749 section 3.3) and is ignored.
fn of_scope_claims(json: &JsonClaims, settings: &IssuerSettings) -> Option<Scopes> {
    let mut values = settings
        .scope_claims
        .iter()
        .filter_map(|path| json.get(path))
        .peekable();
    values.peek()?;
    let names = values.flat_map(|value| match value {
        Value::Array(entries) => entries.as_slice(),
        other => std::slice::from_ref(other),
    });
    let is_scope_name = |name: &&str| Scopes::from_names([*name]).is_ok();
    Some(
        Scopes::from_names(names.filter_map(Value::as_str).filter(is_scope_name))
            .unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::Issuer;
    use serde_json::json;

    use super::*;

    fn settings(scope_claims: &[&str]) -> IssuerSettings {
        let mut settings = IssuerSettings::new(Issuer::parse("https://issuer.example").unwrap());
        settings.scope_claims = scope_claims
            .iter()
            .map(|claim| (*claim).to_owned())
            .collect();
        settings
    }

    fn token_scopes(claims: &Value, scope_claims: &[&str]) -> String {
        let payload = serde_json::to_vec(claims).unwrap();
        let parsed = UnverifiedClaims::parse(&payload).unwrap();
        of_token(
            &parsed,
            &JsonClaims::new(payload.clone()),
            &settings(scope_claims),
        )
        .unwrap()
        .to_string()
    }

    fn response_scopes(members: &Value, scope_claims: &[&str]) -> Option<String> {
        let response = IntrospectionResponse::parse(&serde_json::to_vec(members).unwrap()).unwrap();
        let json = JsonClaims::new(response.to_json());
        of_response(&response, &json, &settings(scope_claims)).map(|scopes| scopes.to_string())
    }

    /// C8: configured claims add scopes: a string, an array, or the value of a JSON pointer.
    #[test]
    fn configured_claims_add_scopes() {
        let claims = json!({
            "scope": "openid", "permissions": ["read:a", "write:a"], "role": "admin",
            "realm_access": { "roles": ["tools"] }, "https://example.com/roles": ["x"],
        });
        assert_eq!(token_scopes(&claims, &[]), "openid");
        assert_eq!(
            token_scopes(&claims, &["permissions"]),
            "openid read:a write:a"
        );
        assert_eq!(
            token_scopes(&claims, &["role", "/realm_access/roles"]),
            "admin openid tools"
        );
        assert_eq!(
            token_scopes(
                &claims,
                &["https://example.com/roles", "absent", "/absent/x"]
            ),
            "openid x"
        );
    }

    /// C8: a value that is not a scope name is ignored. It is not split, and the token stays valid.
    #[test]
    fn other_values_are_ignored() {
        for (value, scopes) in [
            (json!("a b"), ""),
            (json!(["a b", "c", "", "d\"", "e\\", "ä", "f\n"]), "c"),
            (json!([["a"], { "b": "c" }, 1, null, true, "d"]), "d"),
            (json!({ "a": "b" }), ""),
            (json!(7), ""),
            (json!(null), ""),
            (json!(true), ""),
            (json!([]), ""),
        ] {
            assert_eq!(
                token_scopes(&json!({ "roles": value }), &["roles"]),
                scopes,
                "{value}"
            );
        }
    }

    /// C8: the same rule applies to introspection responses. A response without such a member does
    /// not restrict the scopes.
    #[test]
    fn responses_have_the_same_claims() {
        let response = |more: Value| {
            let mut members = json!({ "active": true });
            members
                .as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            members
        };
        let paths = ["/realm_access/roles"];
        assert_eq!(response_scopes(&response(json!({})), &paths), None);
        assert_eq!(
            response_scopes(&response(json!({ "scope": "a" })), &paths).as_deref(),
            Some("a")
        );
        let roles = json!({ "realm_access": { "roles": ["b", "not c"] } });
        assert_eq!(
            response_scopes(&response(roles.clone()), &paths).as_deref(),
            Some("b")
        );
        assert_eq!(response_scopes(&response(roles), &[]), None);
        let none = json!({ "scope": "a", "realm_access": { "roles": [] } });
        assert_eq!(
            response_scopes(&response(none), &paths).as_deref(),
            Some("a")
        );
    }
}
