//! Upstreams: validation of `resource.upstream`.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, anyhow, bail, ensure};
use http::HeaderName;
use portcullis_gateway::{
    ConnectionLimit, HttpUpstream, HttpUpstreamSettings, IdentityHeader, IdentitySource,
    UpstreamAddress, UpstreamSettingsError, UpstreamTrust,
};
use portcullis_mcp::header;
use portcullis_metadata::SystemClock;
use portcullis_verifier::is_claim_path;
use url::Url;

use super::{files, optional, unix_socket, url_fix::url_fix};
use crate::{
    Diagnostics, Span,
    file::{self, Limits, Resource},
    shown_url, without_dev,
};

/// The maximum time limit for the head of a response.
const MAX_HEAD_TIMEOUT: Span = Span::secs(24 * 60 * 60);

/// Where admitted requests are sent.
#[derive(Clone, Debug)]
pub enum UpstreamPlan {
    /// The built-in MCP server.
    Demo,
    /// A server over HTTP, at a port or a Unix socket.
    Http(Box<HttpUpstreamSettings>),
}

impl UpstreamPlan {
    /// Returns a text that differs for upstreams that do not share sessions.
    pub fn identity(&self) -> String {
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

/// Validates the upstream of a resource, and adds an error for each invalid setting. It opens no
/// connection. `session_header` is `None` if it is invalid.
///
/// Returns `None` if a setting is invalid.
pub(super) fn plan(
    resource: &Resource,
    base_url: &Url,
    session_header: Option<&HeaderName>,
    limits: &Limits,
    errors: &mut Diagnostics<'_>,
) -> Option<UpstreamPlan> {
    let head_timeout = resource.upstream_head_timeout;
    if !(Span::secs(1)..=MAX_HEAD_TIMEOUT).contains(&head_timeout) {
        errors.add(
            "",
            format!("upstream_head_timeout = \"{head_timeout}\" is outside 1s to 24h"),
        );
    }
    let forward_headers = errors.take_all(
        "forward_headers",
        resource.forward_headers.iter().map(|name| forwarded(name)),
    );
    let identity_headers = optional(resource.identity_headers.as_ref(), |headers| {
        errors.take_all(
            "identity_headers",
            headers.iter().map(|(name, claim)| identity(name, claim)),
        )
    });
    let address = errors.take("upstream", address(resource));
    let trust = address
        .as_ref()
        .and_then(|address| trust(resource, address.as_ref()?, errors));
    if matches!(address, Some(None)) {
        return forward_headers
            .and(identity_headers)
            .map(|_| UpstreamPlan::Demo);
    }
    // Invalid values are replaced by valid ones, so that the others are checked.
    let is_address_valid = trust.is_some();
    let mut settings = HttpUpstreamSettings::new(address.flatten().or_else(substitute)?);
    settings.trust = trust.flatten();
    settings.public_url = Some(base_url.clone());
    settings.forward_cookies = resource.forward_cookies;
    settings.forward_headers = forward_headers.clone().unwrap_or_default();
    if let Some(header) = session_header {
        settings.session_header = header.clone();
    }
    settings.head_timeout = head_timeout.0;
    settings.connection_limit = ConnectionLimit::new(
        limits
            .upstream_connections
            .unwrap_or(limits.max_connections),
    );
    if let Some(headers) = identity_headers.clone().flatten() {
        settings.identity_headers = headers;
    }
    check_settings(&mut settings, is_address_valid, errors);
    forward_headers
        .and(identity_headers)
        .filter(|_| is_address_valid)?;
    Some(UpstreamPlan::Http(Box::new(settings)))
}

/// Checks the settings together. Adds an error for each invalid one, and replaces it by a valid
/// one: the check returns the first problem only. If the address is known to be invalid, only the
/// others are checked.
fn check_settings(
    settings: &mut HttpUpstreamSettings,
    is_address_valid: bool,
    errors: &mut Diagnostics<'_>,
) {
    let mut has_substitute = !is_address_valid;
    if has_substitute && !replace_address(settings) {
        return;
    }
    // Created only to validate the settings. Each worker creates its own.
    while let Err(error) = HttpUpstream::new(settings.clone(), Arc::new(SystemClock::new())) {
        errors.add(key_of(&error), format!("{error}{}", fix_of(&error)));
        match &error {
            UpstreamSettingsError::IdentityHeader(name) => settings
                .identity_headers
                .retain(|header| header.name != *name),
            UpstreamSettingsError::IdentityHeaderDuplicate(name) => {
                let mut is_first = true;
                settings.identity_headers.retain(|header| {
                    header.name != *name || std::mem::replace(&mut is_first, false)
                });
            }
            UpstreamSettingsError::ForwardHeader(name, _) => {
                settings.forward_headers.retain(|header| header != name)
            }
            UpstreamSettingsError::SessionHeader(_) => settings.session_header = header::SESSION,
            _ if has_substitute || !replace_address(settings) => return,
            _ => has_substitute = true,
        }
    }
}

/// Sets an address with which the other settings can be checked. Returns whether that is possible.
fn replace_address(settings: &mut HttpUpstreamSettings) -> bool {
    settings.trust = None;
    substitute()
        .map(|address| settings.address = address)
        .is_some()
}

/// Returns a valid address.
fn substitute() -> Option<UpstreamAddress> {
    Url::parse("http://localhost/")
        .ok()
        .map(UpstreamAddress::Tcp)
}

/// Returns the address; `None` for the built-in server. Fails when the URL or the path of the
/// socket is invalid, or this package has no built-in server.
fn address(resource: &Resource) -> anyhow::Result<Option<UpstreamAddress>> {
    match &resource.upstream {
        // The tests of this crate need no feature.
        file::Upstream::Demo if cfg!(any(test, feature = "dev")) => Ok(None),
        file::Upstream::Demo => bail!(without_dev("upstream = \"demo\"")),
        file::Upstream::Http(url) => {
            let lower = url.to_ascii_lowercase();
            let scheme = if lower.starts_with("https:") || lower.starts_with("wss:") {
                "https"
            } else {
                "http"
            };
            let (shown, fix) = (
                shown_url(url),
                url_fix(url, scheme, "http://127.0.0.1:8000/mcp"),
            );
            if let Some(socket) = unix_socket::meant(url) {
                bail!(
                    "upstream.http = {shown:?} is a Unix socket; write upstream = {{ unix = {:?} }}",
                    shown_url(&socket)
                );
            }
            let parsed = Url::parse(url);
            ensure!(
                lower.starts_with("http://") || lower.starts_with("https://"),
                "upstream.http = {shown:?} is not an http or https URL; {fix}"
            );
            Ok(Some(UpstreamAddress::Tcp(parsed.with_context(|| {
                format!("upstream.http = {shown:?} is not a URL; {fix}")
            })?)))
        }
        file::Upstream::Unix(socket) => {
            let (path, target) = match socket.split_once(":/") {
                Some((path, target)) => (path, format!("/{target}")),
                None => (socket.as_str(), resource.endpoint.clone()),
            };
            if !path.starts_with('/') {
                let fix = match unix_socket::meant(socket) {
                    Some(meant) => format!("write it as {:?}", shown_url(&meant)),
                    None => "write one such as \"/run/mcp.sock\"".to_owned(),
                };
                bail!(
                    "upstream.unix = {:?} is not the absolute path of a socket; {fix}",
                    shown_url(socket)
                );
            }
            unix_socket::check_length(Path::new(path))
                .map_err(|error| anyhow!("upstream.unix = {:?} {error}", shown_url(socket)))?;
            let uri = Url::parse("http://localhost").and_then(|url| url.join(&target));
            Ok(Some(UpstreamAddress::Unix {
                path: path.into(),
                uri: uri.with_context(|| format!("upstream.unix = {:?}", shown_url(socket)))?,
            }))
        }
    }
}

/// Returns the certificates that are trusted: none without TLS. Adds an error and returns `None` if
/// they cannot be read, or are configured without TLS.
fn trust(
    resource: &Resource,
    address: &UpstreamAddress,
    errors: &mut Diagnostics<'_>,
) -> Option<Option<UpstreamTrust>> {
    let is_tls = matches!(address, UpstreamAddress::Tcp(url) if url.scheme() == "https");
    match (&resource.upstream_ca_file, is_tls) {
        (Some(file), true) => errors.take("upstream_ca_file", own_trust(file)).map(Some),
        (Some(file), false) => {
            let file = file.display();
            errors.add(
                "",
                format!("upstream_ca_file = \"{file}\" is set, and the upstream is not https; remove it, or use https"),
            );
            None
        }
        (None, true) => errors.take("upstream", UpstreamTrust::platform()).map(Some),
        (None, false) => Some(None),
    }
}

/// The key that an error of the settings is about.
fn key_of(error: &UpstreamSettingsError) -> &'static str {
    match error {
        UpstreamSettingsError::IdentityHeader(_)
        | UpstreamSettingsError::IdentityHeaderDuplicate(_) => "identity_headers",
        UpstreamSettingsError::ForwardHeader(..) => "forward_headers",
        UpstreamSettingsError::SessionHeader(_) => "proto",
        _ => "upstream",
    }
}

/// The fix of an error whose text does not imply it.
fn fix_of(error: &UpstreamSettingsError) -> &'static str {
    match error {
        UpstreamSettingsError::AddressUserInformation => "; remove everything before the `@`",
        UpstreamSettingsError::AddressFragment => "; remove the `#` and what follows it",
        UpstreamSettingsError::SessionHeader(_) => "; choose another word, such as \"Acme\"",
        _ => "",
    }
}

/// Reads the configured certificate authorities.
fn own_trust(file: &Path) -> anyhow::Result<UpstreamTrust> {
    let pem = files::read("upstream_ca_file", file)?;
    UpstreamTrust::from_pem(&pem).with_context(|| {
        format!(
            "upstream_ca_file = \"{}\" cannot be used; name a PEM file that has BEGIN CERTIFICATE",
            file.display()
        )
    })
}

fn forwarded(name: &str) -> anyhow::Result<HeaderName> {
    HeaderName::from_bytes(name.as_bytes()).with_context(|| {
        format!("forward_headers has {name:?}, which is not a header name; correct it")
    })
}

fn identity(name: &str, claim: &str) -> anyhow::Result<IdentityHeader> {
    let header = HeaderName::from_bytes(name.as_bytes());
    let header = header.with_context(|| {
        format!("identity_headers has {name:?}, which is not a header name; correct it")
    })?;
    ensure!(
        is_claim_path(claim),
        "identity_headers has {name:?} = {claim:?}, which cannot name a claim; write a name such as \"email\", or a JSON pointer such \
         as \"/realm_access/roles\", in which `~` is written as `~0`"
    );
    let source = match claim {
        "iss" => IdentitySource::Issuer,
        "sub" => IdentitySource::Subject,
        "client_id" => IdentitySource::Client,
        "scope" => IdentitySource::Scope,
        other => IdentitySource::Claim(other.into()),
    };
    Ok(IdentityHeader::new(header, source))
}
