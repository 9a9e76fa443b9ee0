//! Signs ID tokens and logout tokens, and forges them if a fault says so.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_authorization_server::{ErrorCode, ErrorResponse};
use portcullis_jose::{SigningError, SigningKey};
use portcullis_metadata::Secret;
use serde_json::{Map, Value, json};

use crate::{
    config::Config,
    control::{fault_effect::WRONG_ISSUER, faults::FaultKind, token_faults::TokenFault},
    keys::Keys,
};

/// Signs claims with the current key. `typ` is the type of the token. A fault changes the claims or
/// the signature.
pub(crate) fn sign(
    config: &Config,
    keys: &Keys,
    typ: &str,
    mut claims: Map<String, Value>,
    fault: Option<FaultKind>,
) -> Result<Secret, ErrorResponse> {
    let fault = match fault {
        Some(FaultKind::Token(fault)) => {
            fault.change_claims(&mut claims, config.now());
            Some(fault)
        }
        Some(FaultKind::WrongIssuer) => {
            claims.insert("iss".to_owned(), json!(WRONG_ISSUER));
            None
        }
        _ => None,
    };
    let keys = keys.current();
    let key = keys.signing_key(config.settings.signing_algorithm);
    let payload = Value::Object(claims).to_string();
    let token = match fault {
        Some(TokenFault::AlgNone) => Ok(unsigned(typ, &payload)),
        Some(TokenFault::UnknownKey) => wrongly_signed(key, typ, "unknown-key", &payload),
        Some(TokenFault::WrongSignature) => wrongly_signed(key, typ, key.kid(), &payload),
        _ => key.sign(typ, payload.as_bytes()),
    };
    token.map(Secret::new).map_err(|error| {
        tracing::error!(
            error = &error as &dyn std::error::Error,
            "cannot sign a token"
        );
        ErrorResponse::new(ErrorCode::ServerError, "the token could not be signed")
    })
}

fn unsigned(typ: &str, payload: &str) -> String {
    let header = json!({ "alg": "none", "typ": typ }).to_string();
    let encode = |part: &str| URL_SAFE_NO_PAD.encode(part);
    format!("{}.{}.", encode(&header), encode(payload))
}

/// Returns a token whose signature is that of another payload.
fn wrongly_signed(
    key: &SigningKey,
    typ: &str,
    kid: &str,
    payload: &str,
) -> Result<String, SigningError> {
    let header = json!({ "alg": key.algorithm().as_str(), "kid": kid, "typ": typ }).to_string();
    let other = key.dangerous_sign_with_header(header.as_bytes(), b"{}")?;
    let (_, signature) = other.rsplit_once('.').unwrap_or_default();
    let encode = |part: &str| URL_SAFE_NO_PAD.encode(part);
    Ok(format!(
        "{}.{}.{signature}",
        encode(&header),
        encode(payload)
    ))
}
