//! The algorithms of the keys of `jwks_file`.

use std::path::Path;

use anyhow::ensure;
use portcullis_jose::{Algorithm, AlgorithmSet};
use portcullis_metadata::{Jwk, JwkSet};

/// Checks that a key is for one of the allowed algorithms. Fails with the algorithms to write. Keys
/// of unknown types are left to the verifier.
pub(super) fn check(set: &JwkSet, allowed: AlgorithmSet, file: &Path) -> anyhow::Result<()> {
    let of_keys: Vec<_> = set.keys.iter().filter_map(of_key).collect();
    let is_allowed = |of_key: &&[Algorithm]| of_key.iter().any(|one| allowed.contains(*one));
    let usual = of_keys.iter().filter_map(|of_key| of_key.first());
    let usual: AlgorithmSet = usual.copied().collect();
    let names = |set: AlgorithmSet| set.iter().map(Algorithm::as_str).collect::<Vec<_>>();
    ensure!(
        allowed.is_empty() || of_keys.is_empty() || of_keys.iter().any(is_allowed),
        "jwks_file = {:?} has keys for {}, and algorithms allows {}; write algorithms = {:?}",
        file.display(),
        names(usual).join(", "),
        names(allowed).join(", "),
        names(usual)
    );
    Ok(())
}

/// The algorithms of a key, the usual one first.
fn of_key(key: &Jwk) -> Option<&'static [Algorithm]> {
    use Algorithm as A;

    let of_type: &[A] = match (key.kty.as_str(), key.crv.as_deref()) {
        ("RSA", _) => &[A::Rs256, A::Rs384, A::Rs512, A::Ps256, A::Ps384, A::Ps512],
        ("EC", Some("P-256")) => &[A::Es256],
        ("EC", Some("P-384")) => &[A::Es384],
        ("EC", Some("P-521")) => &[A::Es512],
        ("OKP", Some("Ed25519")) => &[A::EdDsa],
        _ => return None,
    };
    let Some(name) = &key.alg else {
        return Some(of_type);
    };
    let alg: A = name.parse().ok()?;
    of_type
        .iter()
        .position(|one| *one == alg)
        .map(|at| &of_type[at..=at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(keys: &str, allowed: &[Algorithm]) -> String {
        let set = JwkSet::parse(format!("{{\"keys\":[{keys}]}}").as_bytes()).unwrap();
        let allowed = allowed.iter().copied().collect();
        match check(&set, allowed, Path::new("/keys.json")) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    const EC: &str = r#"{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}"#;
    const RSA: &str = r#"{"kty":"RSA","n":"AA","e":"AQAB"}"#;
    const PS384: &str = r#"{"kty":"RSA","n":"AA","e":"AQAB","alg":"PS384"}"#;

    /// J9: the algorithms to write are those of the keys.
    #[test]
    fn the_algorithms_of_the_keys_are_named() {
        let default = [Algorithm::Rs256];
        for (keys, words) in [
            (
                EC,
                "has keys for ES256, and algorithms allows RS256; write algorithms = [\"ES256\"]",
            ),
            (PS384, "write algorithms = [\"PS384\"]"),
            (
                &format!("{EC},{PS384}"),
                "write algorithms = [\"PS384\", \"ES256\"]",
            ),
        ] {
            let error = checked(keys, &default);
            assert!(error.ends_with(words), "{error}");
        }
        assert!(checked(RSA, &[Algorithm::Es256]).ends_with("write algorithms = [\"RS256\"]"));
        assert_eq!(checked(RSA, &default), "");
        assert_eq!(checked(RSA, &[Algorithm::Ps256]), "");
        assert_eq!(checked(&format!("{EC},{RSA}"), &default), "");
    }
}
