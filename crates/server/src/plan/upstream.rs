//! Upstreams: validation of `resource.upstream`.

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, bail, ensure};
use http::HeaderName;
use portcullis_gateway::{
    ConnectionLimit, HttpUpstream, HttpUpstreamSettings, IdentityHeader, IdentitySource, UpstreamAddress, UpstreamTrust,
};
use portcullis_metadata::SystemClock;
use url::Url;

use crate::{
    config::{self, Limits, Resource, Span},
    demo,
};

/// The maximum time limit for the head of a response.
const MAX_HEAD_TIMEOUT: Span = Span::secs(24 * 60 * 60);

/// Where admitted requests are sent.
#[derive(Clone, Debug)]
pub(crate) enum UpstreamPlan {
    Demo,
    Http(Box<HttpUpstreamSettings>),
}

impl UpstreamPlan {
    /// Returns a text that differs for upstreams that do not share sessions.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Demo => "demo".to_owned(),
            Self::Http(settings) => match &settings.address {
                UpstreamAddress::Tcp(url) => url.to_string(),
                UpstreamAddress::Unix { path, uri } => format!("unix:{}:{uri}", path.display()),
                other => format!("{other:?}"),
            },
        }
    }
}

pub(super) fn plan(resource: &Resource, base_url: &Url, limits: &Limits) -> anyhow::Result<UpstreamPlan> {
    let head_timeout = resource.upstream_head_timeout;
    ensure!(
        (Span::secs(1)..=MAX_HEAD_TIMEOUT).contains(&head_timeout),
        "upstream_head_timeout = \"{head_timeout}\" is outside 1s to 24h"
    );
    let address = match &resource.upstream {
        // Created only to find out whether this package has it.
        config::Upstream::Demo => return demo::service().map(|_| UpstreamPlan::Demo),
        config::Upstream::Http(url) => {
            UpstreamAddress::Tcp(Url::parse(url).with_context(|| format!("upstream.http = {url:?} is not a URL"))?)
        }
        config::Upstream::Unix(socket) => {
            let (path, target) = match socket.split_once(":/") {
                Some((path, target)) => (path, format!("/{target}")),
                None => (socket.as_str(), resource.endpoint.clone()),
            };
            ensure!(path.starts_with('/'), "upstream.unix = {socket:?} is not the absolute path of a socket");
            let uri = Url::parse("http://localhost").and_then(|url| url.join(&target));
            UpstreamAddress::Unix {
                path: path.into(),
                uri: uri.with_context(|| format!("upstream.unix = {socket:?}"))?,
            }
        }
    };
    let is_tls = matches!(&address, UpstreamAddress::Tcp(url) if url.scheme() == "https");
    let mut settings = HttpUpstreamSettings::new(address);
    settings.trust = match (&resource.upstream_ca_file, is_tls) {
        (Some(file), true) => Some(own_trust(file)?),
        (Some(file), false) => {
            bail!("upstream_ca_file = {} is set, and the upstream is not https", file.display());
        }
        (None, true) => Some(UpstreamTrust::platform().context("upstream")?),
        (None, false) => None,
    };
    settings.public_url = Some(base_url.clone());
    settings.forward_cookies = resource.forward_cookies;
    settings.forward_headers = resource.forward_headers.iter().map(|name| forwarded(name)).collect::<Result<_, _>>()?;
    settings.head_timeout = head_timeout.0;
    settings.connection_limit = ConnectionLimit::new(limits.upstream_connections.unwrap_or(limits.max_connections));
    if let Some(headers) = &resource.identity_headers {
        settings.identity_headers =
            headers.iter().map(|(name, claim)| identity(name, claim)).collect::<Result<_, _>>()?;
    }
    // Created only to validate the settings. Each worker creates its own.
    HttpUpstream::new(settings.clone(), Arc::new(SystemClock::new())).context("upstream")?;
    Ok(UpstreamPlan::Http(Box::new(settings)))
}

fn own_trust(file: &Path) -> anyhow::Result<UpstreamTrust> {
    let pem = fs::read(file).with_context(|| format!("upstream_ca_file = {} cannot be read", file.display()))?;
    UpstreamTrust::from_pem(&pem).with_context(|| format!("upstream_ca_file = {} cannot be used", file.display()))
}

fn forwarded(name: &str) -> anyhow::Result<HeaderName> {
    HeaderName::from_bytes(name.as_bytes())
        .with_context(|| format!("forward_headers has {name:?}, which is not a header name"))
}

fn identity(name: &str, claim: &str) -> anyhow::Result<IdentityHeader> {
    let header = HeaderName::from_bytes(name.as_bytes());
    let header = header.with_context(|| format!("identity_headers has {name:?}, which is not a header name"))?;
    let source = match claim {
        "iss" => IdentitySource::Issuer,
        "sub" => IdentitySource::Subject,
        "client_id" => IdentitySource::Client,
        "scope" => IdentitySource::Scope,
        other => IdentitySource::Claim(other.into()),
    };
    Ok(IdentityHeader::new(header, source))
}
