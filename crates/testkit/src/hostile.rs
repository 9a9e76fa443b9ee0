//! Tokens that an attacker would send: changed, unsigned, or signed with a public key as an HMAC
//! secret.

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use hmac::{Hmac, KeyInit, Mac};
use portcullis_jose::SigningKey;
use serde_json::Value;
use sha2::Sha256;

/// Returns a token that is signed with HMAC-SHA256. The header's `alg` is not changed.
pub fn hmac_token(secret: &[u8], header: &[u8], payload: &[u8]) -> String {
    let signing_input = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(payload)
    );
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(signing_input.as_bytes());
    format!(
        "{signing_input}.{}",
        URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes())
    )
}

/// Returns the encodings of a public key that a verifier might use as an HMAC secret: PEM with and
/// without the last line break, DER, the JWK, and the modulus or x coordinate as bytes and in
/// base64url.
pub fn public_key_forms(key: &SigningKey) -> Vec<Vec<u8>> {
    let jwk = key.public_jwk();
    let member_name = if jwk["kty"] == "RSA" { "n" } else { "x" };
    let mut forms = vec![
        jwk.to_string().into_bytes(),
        member(&jwk, member_name),
        encoded_member(&jwk, member_name).as_bytes().to_vec(),
    ];
    if let Some(der) = subject_public_key_info(&jwk) {
        let pem = pem(&der);
        forms.extend([pem.trim_end().as_bytes().to_vec(), pem.into_bytes(), der]);
    }
    forms
}

/// Returns the token with one bit of its signature changed.
pub fn flip_signature(token: &str) -> String {
    let (signing_input, signature) = token.rsplit_once('.').expect("a token has a signature");
    format!("{signing_input}.{}", flip_last_bit(signature))
}

/// Returns the token with one bit of its payload changed.
pub fn flip_payload(token: &str) -> String {
    let mut segments: Vec<String> = token.split('.').map(str::to_owned).collect();
    let payload = segments.get_mut(1).expect("a token has a payload");
    *payload = flip_last_bit(payload);
    segments.join(".")
}

/// Returns a token without a signature.
pub(crate) fn unsigned_token(header: &[u8], payload: &[u8]) -> String {
    format!(
        "{}.{}.",
        URL_SAFE_NO_PAD.encode(header),
        URL_SAFE_NO_PAD.encode(payload)
    )
}

/// Changes the last bit of a base64url segment.
fn flip_last_bit(segment: &str) -> String {
    let mut bytes = URL_SAFE_NO_PAD
        .decode(segment)
        .expect("a token is base64url");
    *bytes.last_mut().expect("there is a bit to flip") ^= 1;
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Returns a decoded member of a JWK.
fn member(jwk: &Value, name: &str) -> Vec<u8> {
    URL_SAFE_NO_PAD
        .decode(encoded_member(jwk, name))
        .expect("a JWK is base64url")
}

/// Returns a member of a JWK in base64url.
fn encoded_member<'a>(jwk: &'a Value, name: &str) -> &'a str {
    jwk[name].as_str().expect("a public key has the member")
}

/// Returns the DER encoding (RFC 5280 section 4.1.2.7) of an RSA or P-256 key, or `None` for other
/// keys.
fn subject_public_key_info(jwk: &Value) -> Option<Vec<u8>> {
    const RSA: &[u8] = &[
        0x30, 13, 6, 9, 0x2A, 0x86, 0x48, 0x86, 0xF7, 0x0D, 1, 1, 1, 5, 0,
    ];
    const P256: &[u8] = &[
        0x30, 19, 6, 7, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 2, 1, 6, 8, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 3,
        1, 7,
    ];
    let (algorithm, key) = if jwk["kty"] == "RSA" {
        let integer = |name| der(2, &[&[0], member(jwk, name).as_slice()].concat());
        let exponent = der(2, &member(jwk, "e"));
        (RSA, der(0x30, &[integer("n"), exponent].concat()))
    } else if jwk["crv"] == "P-256" {
        (P256, [vec![4], member(jwk, "x"), member(jwk, "y")].concat())
    } else {
        return None;
    };
    Some(der(
        0x30,
        &[algorithm.to_vec(), der(3, &[vec![0], key].concat())].concat(),
    ))
}

/// Returns a DER value with this tag.
fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len())
        .expect("test keys are short")
        .to_be_bytes();
    let length = match length {
        [0, short @ 0..=127] => vec![short],
        [0, long] => vec![0x81, long],
        [high, low] => vec![0x82, high, low],
    };
    [vec![tag], length, content.to_vec()].concat()
}

/// Returns a public key in PEM.
fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(64)
        .map(|line| str::from_utf8(line).unwrap_or_default())
        .collect();
    format!(
        "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
        lines.join("\n")
    )
}
