use portcullis_metadata::Jwk;

use crate::encoding::sha256_base64url;

/// Returns the SHA-256 thumbprint of a public key in base64url: the hash of its required members in
/// lexicographic order (RFC 7638 section 3.2, RFC 8037 section 2). Returns `None` if a required
/// member is missing or the type is unknown.
///
/// The members are not checked. If they contain quotation marks or backslashes, the key cannot be
/// imported either.
pub(crate) fn thumbprint(key: &Jwk) -> Option<String> {
    let Jwk {
        kty,
        crv,
        n,
        e,
        x,
        y,
        ..
    } = key;
    match (kty.as_str(), crv, n, e, x, y) {
        ("RSA", _, Some(n), Some(e), ..) => Some(sha256_base64url(&format!(
            r#"{{"e":"{e}","kty":"RSA","n":"{n}"}}"#
        ))),
        ("EC", Some(crv), _, _, Some(x), Some(y)) => Some(ec_thumbprint(crv, x, y)),
        ("OKP", Some(crv), _, _, Some(x), _) => Some(sha256_base64url(&format!(
            r#"{{"crv":"{crv}","kty":"OKP","x":"{x}"}}"#
        ))),
        _ => None,
    }
}

/// Returns the thumbprint of an elliptic curve key, given its curve and its coordinates in
/// base64url.
pub(crate) fn ec_thumbprint(crv: &str, x: &str, y: &str) -> String {
    sha256_base64url(&format!(
        r#"{{"crv":"{crv}","kty":"EC","x":"{x}","y":"{y}"}}"#
    ))
}

#[cfg(test)]
mod tests {
    use portcullis_metadata::JwkSet;
    use serde_json::json;

    use super::*;

    /// The thumbprint of the key in RFC 7638 section 3.1 is correct.
    #[test]
    fn the_thumbprint_matches_the_rfc_example() {
        let n = "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw";
        let set = json!({ "keys": [{ "kty": "RSA", "n": n, "e": "AQAB", "alg": "RS256", "kid": "2011-04-29" }] });
        let set = JwkSet::parse(set.to_string().as_bytes()).unwrap();
        assert_eq!(
            thumbprint(&set.keys[0]).as_deref(),
            Some("NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs")
        );
    }

    /// The thumbprint of the key in RFC 8037 appendix A.3 is correct.
    #[test]
    fn the_thumbprint_of_an_ed25519_key_matches_the_rfc_example() {
        let x = "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo";
        let set = json!({ "keys": [{ "kty": "OKP", "crv": "Ed25519", "x": x }] });
        let set = JwkSet::parse(set.to_string().as_bytes()).unwrap();
        assert_eq!(
            thumbprint(&set.keys[0]).as_deref(),
            Some("kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k")
        );
    }
}
