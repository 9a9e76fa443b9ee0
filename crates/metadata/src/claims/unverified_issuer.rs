use serde::Deserialize;
use serde_json::Value;

use crate::claims::error::ClaimsError;

/// Returns the `iss` claim of a payload whose signature is not verified yet. Use it only to choose
/// the keys that verify the signature. `null` counts as missing. The other claims are not checked.
///
/// # Errors
/// Fails if the payload is not a JSON object, or `iss` is duplicated or not a string.
pub fn unverified_issuer(payload: &[u8]) -> Result<Option<String>, ClaimsError> {
    #[derive(Deserialize)]
    struct IssuerClaim {
        iss: Option<Value>,
    }

    // Serde also deserializes an array as a struct.
    if payload.trim_ascii_start().first() != Some(&b'{') {
        return Err(ClaimsError::NotAnObject);
    }
    let claim: IssuerClaim =
        serde_json::from_slice(payload).map_err(|_| ClaimsError::NotAnObject)?;
    match claim.iss {
        None => Ok(None),
        Some(Value::String(issuer)) => Ok(Some(issuer)),
        Some(_) => Err(ClaimsError::WrongType { claim: "iss" }),
    }
}
