use portcullis_jose::Compact;
use portcullis_metadata::Scopes;
use serde_json::Value;

use crate::{
    app::App,
    assertion::{self, MAX_ASSERTION},
    authorize::{resource_of, scopes_of},
    handle::random_text,
    oauth_error::{ErrorName, OAuthRefusal},
    session::Session,
    token::{Issued, TokenRequest, access_token},
};

/// The type of an identity assertion that another authorization server made for this one
/// (draft-ietf-oauth-identity-assertion-authz-grant section 3.1).
pub(super) const ID_JAG: &str = "oauth-id-jag+jwt";

/// Gives a token for whom a trusted issuer vouches (RFC 7523 section 2.1): a person, by an identity assertion that names the client
/// and counts once, or a workload, by its own token, which may be used again.
pub(super) fn grant(app: &App, asked: &TokenRequest<'_>) -> Result<Issued, OAuthRefusal> {
    let TokenRequest { caller, form, key } = asked;
    let missing = OAuthRefusal::new(ErrorName::InvalidRequest, "assertion is missing");
    let text = form.one("assertion")?.ok_or(missing)?;
    let compact = Compact::parse(text, MAX_ASSERTION).map_err(|_| invalid("the assertion is no signed JWT"))?;
    let keys = app.trusted_keys(&compact).ok_or(invalid("the assertion's issuer is not trusted here"))?;
    let claims = assertion::verified(app, keys, &compact, app.issuer.as_str()).map_err(invalid)?;
    let subject = claims.sub.as_deref().filter(|subject| !subject.is_empty());
    let subject = subject.ok_or(invalid("the assertion speaks for nobody: it has no sub"))?;

    let is_identity = compact.header().typ() == Some(ID_JAG);
    let mut scopes = scopes_of(app, &caller.client, form)?;
    let mut resource = None;
    match compact.header().typ() {
        _ if is_identity => {
            if claims.client_id.as_deref() != Some(&*caller.id) {
                return Err(invalid("the assertion was made for another client"));
            }
            resource = claims.extra.get("resource").and_then(Value::as_str);
            if claims.scope != Scopes::default() {
                scopes = scopes.intersection(&claims.scope);
            }
        }
        None | Some("JWT" | "jwt") => {}
        Some(_) => return Err(invalid("the assertion is a JWT of another type")),
    }
    let requested = resource_of(form, app.settings.default_resource.as_ref());
    let resource = match resource {
        None => requested?,
        Some(granted) => match requested {
            Ok(requested) if requested.as_str() == granted => requested,
            _ => {
                let description = "resource is not the one of the assertion";
                return Err(OAuthRefusal::new(ErrorName::InvalidTarget, description));
            }
        },
    };
    if is_identity {
        assertion::use_once(app, &claims).map_err(invalid)?;
    }
    let session = Session {
        id: random_text(16)?.as_str().into(),
        client_id: caller.id.clone(),
        subject: subject.into(),
        auth_time: app.settings.clock.unix(),
        scopes,
        resource,
        key: None,
    };
    Ok(Issued {
        access_token: access_token::sign(app, &session, &session.scopes, key.as_deref())?,
        scopes: session.scopes,
        refresh_token: None,
    })
}

const fn invalid(description: &'static str) -> OAuthRefusal {
    OAuthRefusal::new(ErrorName::InvalidGrant, description)
}
