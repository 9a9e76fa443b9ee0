//! The authorization code grant.

use portcullis_authorization_server::{
    ErrorResponse,
    token::{TokenError, exchange_code},
};

use crate::{
    app::App,
    token::{Issued, TokenRequest},
};

/// Exchanges a code for tokens (RFC 6749 section 4.1.3, RFC 7636 section 4.5).
pub(super) async fn exchange(
    app: &App,
    request: &TokenRequest<'_>,
) -> Result<Issued, ErrorResponse> {
    let TokenRequest { caller, form, key } = request;
    let granted = exchange_code(&*app.config, app, caller, form, key.as_deref())
        .await
        .map_err(|error| {
            if matches!(error, TokenError::Replayed(_)) {
                tracing::warn!(client.id = &*caller.id, "a code was used a second time");
            }
            error.response()
        })?;
    Issued::for_user(app, granted, key.as_deref())
}
