//! Random values of the operating system.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::Secret;
use zeroize::Zeroizing;

/// The operating system gave no random bytes.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(transparent)]
pub struct RandomError(getrandom::Error);

/// Returns random bytes.
///
/// # Errors
/// Fails when the operating system gives no random bytes.
pub fn random_bytes<const N: usize>() -> Result<[u8; N], RandomError> {
    let mut random = [0; N];
    getrandom::fill(&mut random).map_err(RandomError)?;
    Ok(random)
}

/// Returns this number of random bytes in base64url without padding (RFC 4648 section 5), as
/// identifiers, codes and secrets need them (RFC 6749 section 10.10).
///
/// # Errors
/// Fails when the operating system gives no random bytes.
pub fn random_secret(bytes: usize) -> Result<Secret, RandomError> {
    let mut random = Zeroizing::new(vec![0; bytes]);
    getrandom::fill(&mut random).map_err(RandomError)?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(&*random)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_differ() {
        assert_ne!(random_bytes::<16>().unwrap(), random_bytes::<16>().unwrap());
        let secret = random_secret(16).unwrap();
        assert_eq!(secret.secret().len(), 22);
        assert!(secret != random_secret(16).unwrap());
    }
}
