use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_metadata::Secret;
use zeroize::Zeroizing;

use crate::ClientError;

/// 256 random bits as text (Base64url). Fails with [`ClientError::NoRandomness`].
pub(crate) fn secret() -> Result<Secret, ClientError> {
    let mut bytes = Zeroizing::new([0; 32]);
    getrandom::fill(bytes.as_mut_slice()).map_err(|_| ClientError::NoRandomness)?;
    Ok(Secret::new(URL_SAFE_NO_PAD.encode(bytes.as_slice())))
}
