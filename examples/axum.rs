//! A REST API behind the guard alone: `cargo run -p portcullis-examples --example axum -- https://issuer.example`
//!
//! Without a token, `curl -i http://127.0.0.1:3001/reports` shows the challenge. A token of the issuer for
//! `http://127.0.0.1:3001/` needs the scope `reports:read`, to post also `reports:write`.

use std::{error::Error, sync::Arc};

use axum::{Extension, Router, http::Method, routing::get};
use portcullis_discovery::HttpFetch;
use portcullis_guard::{Authentication, Caller, GuardLayer, GuardSettings, ProtectedResource, RouteRule};
use portcullis_metadata::{Issuer, ProtectedResourceMetadata, ResourceUri, Scopes, SystemClock};
use portcullis_verifier::{IssuerSettings, TrustedIssuer, Verifier, VerifierSettings};
use tokio::{net::TcpListener, runtime::Handle};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let issuer = std::env::args().nth(1).ok_or("usage: axum ISSUER")?;
    let app = app("http://127.0.0.1:3001/", &issuer)?;
    Ok(axum::serve(TcpListener::bind("127.0.0.1:3001").await?, app).await?)
}

/// The API, known as `resource`, for tokens of `issuer`.
pub(crate) fn app(resource: &str, issuer: &str) -> Result<Router, Box<dyn Error>> {
    let (resource, issuer) = (ResourceUri::parse(resource)?, Issuer::parse(issuer)?);
    let (fetch, clock) = (Arc::new(HttpFetch::new(Default::default())?), Arc::new(SystemClock::new()));
    let trusted = TrustedIssuer::new(IssuerSettings::new(issuer.clone()), fetch, clock.clone(), Handle::current())?;
    trusted.spawn_refresh();
    let verifier = Verifier::new(VerifierSettings::new(resource.clone()), vec![trusted], clock)?;

    let metadata = ProtectedResourceMetadata::new(resource, vec![issuer]);
    let mut settings = GuardSettings::new(metadata, Authentication::Required(verifier))?;
    settings.required_scopes = Scopes::parse("reports:read")?;
    let (path, scopes) = ("/reports/**".parse()?, Scopes::parse("reports:write")?);
    settings.routes = vec![RouteRule::new(path, scopes).methods([Method::POST])];
    let guard = GuardLayer::new(ProtectedResource::new(settings)?);
    Ok(Router::new().route("/reports", get(whoami).post(whoami)).layer(guard))
}

async fn whoami(Extension(caller): Extension<Caller>) -> String {
    caller.principal().and_then(|principal| principal.subject()).unwrap_or("nobody").to_owned()
}
