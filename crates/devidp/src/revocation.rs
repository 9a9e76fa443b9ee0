use http::{HeaderMap, StatusCode};

use crate::{
    app::App,
    client_authentication::authenticate,
    form::Params,
    issued,
    oauth_error::{ErrorName, OAuthRefusal},
    respond::{Reply, json_refusal, plain},
};

/// Answers the revocation endpoint (RFC 7009 section 2). A client gives up its own tokens alone; what is no living token is
/// as good as given up.
pub(crate) fn revoke(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
    match revoked(app, headers, form) {
        Ok(()) => plain(StatusCode::OK, ""),
        Err(refusal) => {
            tracing::info!(
                revocation.error = refusal.error.as_str(),
                revocation.refused = refusal.description,
                "refused a revocation request"
            );
            json_refusal(refusal)
        }
    }
}

fn revoked(app: &App, headers: &HeaderMap, form: &Params) -> Result<(), OAuthRefusal> {
    let client_id = authenticate(app, headers, form)?;
    let missing = OAuthRefusal::new(ErrorName::InvalidRequest, "token is missing");
    let token = form.one("token")?.ok_or(missing)?;
    let Some(claims) = issued::read(app, token) else { return Ok(()) };
    if claims.azp.as_deref() != Some(&*client_id) {
        return Err(OAuthRefusal::new(ErrorName::InvalidRequest, "the token was issued to another client"));
    }
    let full = OAuthRefusal::new(ErrorName::TemporarilyUnavailable, "too many tokens are revoked; come again later");
    app.revoked.insert(claims.jti.as_deref().unwrap_or_default(), (), |()| false).map_err(|_| full)?;
    tracing::info!(client.id = &*client_id, "revoked a token");
    Ok(())
}
