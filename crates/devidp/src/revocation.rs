use http::{HeaderMap, StatusCode};

use crate::{
    app::App,
    client_authentication::{Caller, authenticate},
    form::Params,
    issued,
    oauth_error::{ErrorName, OAuthRefusal},
    refresh,
    respond::{Reply, json_refusal, plain},
    session,
};

/// Answers the revocation endpoint (RFC 7009 section 2). A client gives up its own tokens alone; what is no living token is
/// as good as given up. With a refresh token goes all that came from it.
pub(crate) async fn revoke(app: &App, headers: &HeaderMap, form: &Params) -> Reply {
    match revoked(app, headers, form).await {
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

async fn revoked(app: &App, headers: &HeaderMap, form: &Params) -> Result<(), OAuthRefusal> {
    let caller = authenticate(app, headers, form).await?;
    let missing = OAuthRefusal::new(ErrorName::InvalidRequest, "token is missing");
    let token = form.one("token")?.ok_or(missing)?;
    if let Some(session) = refresh::find(app, token) {
        is_own(&caller, &session.client_id)?;
        session::withdraw(app, &session.id);
    } else if let Some(claims) = issued::read(app, token) {
        is_own(&caller, claims.azp.as_deref().unwrap_or_default())?;
        let full = "too many tokens are revoked; come again later";
        let full = OAuthRefusal::new(ErrorName::TemporarilyUnavailable, full);
        app.revoked.insert(claims.jti.as_deref().unwrap_or_default(), (), |()| false).map_err(|_| full)?;
    } else {
        return Ok(());
    }
    tracing::info!(client.id = &*caller.id, "revoked a token");
    Ok(())
}

fn is_own(caller: &Caller, client_id: &str) -> Result<(), OAuthRefusal> {
    if *caller.id == *client_id {
        return Ok(());
    }
    Err(OAuthRefusal::new(ErrorName::InvalidRequest, "the token was issued to another client"))
}
