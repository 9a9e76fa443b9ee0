//! Client authentication (RFC 6749 section 2.3), and the authentication of resources that
//! introspect.

pub(crate) mod assertions;
pub(crate) mod bearer;
pub(crate) mod dpop;
pub(crate) mod mode;

use http::HeaderMap;
use portcullis_authorization_server::{
    ErrorCode, ErrorResponse, Params,
    authentication::{AuthenticatedClient, PresentedCredential, check_secret},
    client::{ClientDirectory, Credential},
};

use crate::{
    app::App,
    clients::settings::ClientAuthentication,
    providers::profile::{Profile, PublicClientRule},
};

/// Authenticates the client at the token, revocation or device authorization endpoint (RFC 6749
/// section 2.3).
///
/// The client must use the method that it registered, and no other one, unless it has none in the
/// settings, or they have another mode. Fails when the client cannot be found or its credential is
/// wrong, missing, or presented by another method, or the imitated provider rejects public clients.
pub(crate) async fn authenticate(
    app: &App,
    headers: &HeaderMap,
    form: &Params,
) -> Result<AuthenticatedClient, ErrorResponse> {
    let presented = PresentedCredential::parse(headers, form)?;
    let mode = app.config.settings.client_authentication_mode;
    mode.check(presented.secret_method(), form.get("client_id")?.is_some())
        .map_err(failed)?;
    let client = app.clients.find(presented.id(), headers).await?;
    if client.credential.is_public() {
        check_public_client(app.config.profile)?;
    }
    match (client.credential.secret(), presented.secret()) {
        (Some(secret), Some(given))
            if mode.accepts_any_method() || is_without_method(app, presented.id()) =>
        {
            check_secret(secret, given)?;
        }
        _ => {
            let issuer = app.config.issuer.as_str();
            presented
                .verify(&client.credential, app, issuer, app.config.now())
                .await?;
        }
    }
    Ok(AuthenticatedClient {
        id: presented.id().into(),
        client,
    })
}

/// Whether the settings give a client a secret without a method of authentication.
fn is_without_method(app: &App, id: &str) -> bool {
    let mut clients = app.config.settings.clients.iter();
    clients.any(|client| {
        client.id == id && matches!(client.authentication, ClientAuthentication::Secret(_))
    })
}

/// Rejects public clients if the imitated provider does.
fn check_public_client(profile: &Profile) -> Result<(), ErrorResponse> {
    match profile.public_clients {
        PublicClientRule::Allowed => Ok(()),
        PublicClientRule::InvalidClient => Err(failed(
            "The client_id and/or client_secret passed are incorrect.",
        )),
        PublicClientRule::MissingSecret => Err(ErrorResponse::new(
            ErrorCode::InvalidRequest,
            "client_secret is missing.",
        )),
    }
}

/// Authenticates the protected resource at the introspection endpoint and returns its client
/// identifier. A secret may be in the header or in the form. Fails when the client is unknown, may
/// not introspect, or has another credential. For a wrong secret, the error does not say which.
pub(crate) async fn authenticate_resource(
    app: &App,
    headers: &HeaderMap,
    form: &Params,
) -> Result<Box<str>, ErrorResponse> {
    let rejected = failed("the client is unknown, may not introspect, or has another secret");
    let presented = PresentedCredential::parse(headers, form)?;
    let client = app.clients.find_resource(presented.id()).ok_or(rejected)?;
    let has_secret = client.credential.secret().is_some();
    match &client.credential {
        Credential::Keys(_) if presented.is_assertion() => {
            let issuer = app.config.issuer.as_str();
            presented
                .verify(&client.credential, app, issuer, app.config.now())
                .await?;
        }
        registered if has_secret && registered.secret() == presented.secret() => {}
        _ => return Err(rejected),
    }
    Ok(presented.id().into())
}

const fn failed(description: &'static str) -> ErrorResponse {
    ErrorResponse::new(ErrorCode::InvalidClient, description)
}
