//! `PORTCULLIS_TOKEN`: an access token that replaces the sign-in.

use std::env::{self, VarError};

use anyhow::bail;
use portcullis_metadata::AccessToken;

/// The environment variable with a token that replaces the sign-in.
pub(crate) const TOKEN_VARIABLE: &str = "PORTCULLIS_TOKEN";

/// Returns the token of the environment that replaces the sign-in, if there is one. Fails when the
/// variable is empty or not UTF-8. The message does not contain the token.
pub(crate) fn token_of_the_environment() -> anyhow::Result<Option<AccessToken>> {
    match env::var(TOKEN_VARIABLE) {
        Ok(token) if token.trim().is_empty() => {
            bail!("{TOKEN_VARIABLE} is empty; unset it, or set it to a token")
        }
        Ok(token) => Ok(Some(AccessToken::new(token.trim()))),
        Err(VarError::NotPresent) => Ok(None),
        // The error's text would contain the token.
        Err(VarError::NotUnicode(_)) => bail!("{TOKEN_VARIABLE} is not UTF-8"),
    }
}
