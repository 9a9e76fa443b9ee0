//! What errors of a provider mean.

use http::StatusCode;
use portcullis_discovery::{DiscoveryError, FetchError, FetchResponse};
use portcullis_metadata::authorization::OAuthError;
use portcullis_verifier::IdTokenError;

use crate::{ProviderError, UnreachableCause};

impl From<FetchError> for ProviderError {
    fn from(error: FetchError) -> Self {
        match &error {
            FetchError::UrlPolicy(_) | FetchError::TooLarge { .. } => {
                Self::ResponseInvalid(error.code())
            }
            _ => Self::Unreachable(UnreachableCause::new(error.code(), &error)),
        }
    }
}

impl From<DiscoveryError> for ProviderError {
    fn from(error: DiscoveryError) -> Self {
        match error {
            DiscoveryError::Fetch { error, .. } => error.into(),
            DiscoveryError::ServerError { .. } => {
                Self::Unreachable(UnreachableCause::new(error.code(), &error))
            }
            _ => Self::ResponseInvalid(error.code()),
        }
    }
}

impl From<IdTokenError> for ProviderError {
    fn from(error: IdTokenError) -> Self {
        if error.is_unavailable() {
            Self::Unreachable(UnreachableCause::new(error.code(), &error))
        } else {
            Self::IdTokenInvalid(error.code())
        }
    }
}

/// Returns the error of a status that no endpoint gives for a reason of its own: the provider is
/// overloaded or broken, or redirects.
pub(crate) fn check_status(response: &FetchResponse) -> Result<(), ProviderError> {
    let status = response.status;
    if status.is_server_error() {
        Err(ProviderError::Unreachable("status.server_error".into()))
    } else if status == StatusCode::TOO_MANY_REQUESTS {
        Err(ProviderError::Unreachable(
            "status.too_many_requests".into(),
        ))
    } else if status.is_redirection() {
        Err(ProviderError::ResponseInvalid("status.redirect"))
    } else {
        Ok(())
    }
}

/// Returns what an error of the token endpoint or the revocation endpoint means.
pub(crate) fn of_oauth_error(error: &OAuthError) -> ProviderError {
    use ProviderError::{ApplicationRejected, ResponseInvalid, SignInEnded, Unreachable};
    match error.error.as_str() {
        "invalid_grant"
        | "interaction_required"
        | "login_required"
        | "consent_required"
        | "account_selection_required"
        | "access_denied"
        | "bad_refresh_token"
        | "bad_verification_code"
        | "unverified_user_email" => SignInEnded,
        "invalid_client" => ApplicationRejected("invalid_client"),
        "unauthorized_client" => ApplicationRejected("unauthorized_client"),
        "incorrect_client_credentials" => ApplicationRejected("incorrect_client_credentials"),
        "application_suspended" => ApplicationRejected("application_suspended"),
        "redirect_uri_mismatch" => ApplicationRejected("redirect_uri_mismatch"),
        "invalid_request" => ApplicationRejected("invalid_request"),
        "invalid_scope" => ApplicationRejected("invalid_scope"),
        "unsupported_grant_type" => ApplicationRejected("unsupported_grant_type"),
        "server_error" => Unreachable("server_error".into()),
        "temporarily_unavailable" => Unreachable("temporarily_unavailable".into()),
        "slow_down" => Unreachable("slow_down".into()),
        _ => ResponseInvalid("error_unknown"),
    }
}
