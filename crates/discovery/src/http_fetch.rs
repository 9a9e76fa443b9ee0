//! [`HttpFetch`]: fetches over the network.

use std::{error::Error, fmt, io, path::PathBuf, sync::OnceLock};

use bytes::Bytes;
use http::HeaderValue;
use reqwest::{Client, Proxy, Response, redirect};
use rustls::CertificateError;
use tokio::time::timeout;
use url::Url;

use crate::{
    BodyStream, BoxFuture, CertificateProblem, Fetch, FetchError, FetchRequest, FetchResponse, FetchSettingsError,
    NetworkError, NetworkFailure, OpenResponse, UrlPolicyError,
    connection_pool::ConnectionPool,
    proxy::{self, Proxies},
    resolver::{self, FilteringResolver, Lookup, NoAddress},
    tls::Tls,
    without_query,
};

/// How an [`HttpFetch`] is set up. The default trusts the machine's certificates, takes the proxy from the
/// environment, and names itself `portcullis/` with the version. `Debug` does not show the proxy's credentials.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct FetchSettings {
    /// A PEM file of certificates that are trusted beside the machine's own, for
    /// [`UrlPolicy::Operator`](crate::UrlPolicy::Operator) and [`UrlPolicy::StartOrigin`](crate::UrlPolicy::StartOrigin)
    /// alone.
    pub ca_file: Option<PathBuf>,
    /// The egress proxy, an `http` or `https` URL, for all hosts that are not loopback. The proxy resolves their names;
    /// [`UrlPolicy::check_proxied`](crate::UrlPolicy::check_proxied) decides on a name before it is sent there.
    ///
    /// By default the environment decides, as for curl: the first of `https_proxy`, `HTTPS_PROXY`, `all_proxy` and
    /// `ALL_PROXY` that is not empty names it, and `no_proxy` or `NO_PROXY` lists the hosts that are reached without it.
    pub proxy: Option<Url>,
    /// The `User-Agent` to send.
    pub user_agent: Option<String>,
}

impl fmt::Debug for FetchSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchSettings")
            .field("ca_file", &self.ca_file)
            .field("proxy", &self.proxy.as_ref().map(without_query))
            .field("user_agent", &self.user_agent)
            .finish()
    }
}

/// [`Fetch`] over HTTP/1.1 and HTTP/2, on reqwest and rustls with the ring provider.
///
/// Connections are pooled, and never shared between policies. They are driven by the runtime that opened them, so
/// that one value belongs to one long-lived runtime. The machine's trusted certificates are read at the first
/// `https` fetch, not before.
pub struct HttpFetch {
    settings: FetchSettings,
    tls: Tls,
    proxies: Proxies,
    lookup: Lookup,
    clients: [OnceLock<Client>; ConnectionPool::COUNT],
}

impl HttpFetch {
    /// Checks the settings; connects to nothing.
    ///
    /// # Errors
    /// [`FetchError::Settings`] when the CA file has no usable certificate, the proxy is no http or https URL, or
    /// the user agent cannot stand in a header.
    pub fn new(settings: FetchSettings) -> Result<Self, FetchError> {
        let tls = Tls::new(settings.ca_file.as_deref())?;
        if settings.proxy.as_ref().is_some_and(|proxy| !proxy::is_supported(proxy)) {
            return Err(FetchSettingsError::Proxy.into());
        }
        if settings.user_agent.as_deref().is_some_and(|agent| HeaderValue::from_str(agent).is_err()) {
            return Err(FetchSettingsError::UserAgent.into());
        }
        let proxies = match &settings.proxy {
            Some(proxy) => Proxies::fixed(proxy.clone()),
            None => Proxies::from_variables(|name| std::env::var(name).ok()),
        };
        let clients = [const { OnceLock::new() }; ConnectionPool::COUNT];
        Ok(Self { settings, tls, proxies, lookup: resolver::system, clients })
    }

    fn client(&self, pool: ConnectionPool) -> Result<Client, FetchError> {
        let slot = &self.clients[pool.index()];
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let client = self.build(pool)?;
        Ok(slot.get_or_init(|| client).clone())
    }

    fn build(&self, pool: ConnectionPool) -> Result<Client, FetchError> {
        let agent = self.settings.user_agent.as_deref().unwrap_or(concat!("portcullis/", env!("CARGO_PKG_VERSION")));
        let mut builder = Client::builder()
            .tls_backend_preconfigured(self.tls.config(pool)?)
            .dns_resolver(FilteringResolver::new(pool.policy(), self.lookup))
            .redirect(redirect::Policy::none())
            .referer(false)
            .user_agent(agent)
            // The environment is read here, not by the library.
            .no_proxy();
        if let ConnectionPool::Proxied { .. } = pool {
            builder = builder.proxy(Proxy::all(self.proxies.url()?.clone()).map_err(|_| FetchSettingsError::Proxy)?);
        }
        builder.build().map_err(classify)
    }

    async fn send(&self, request: FetchRequest) -> Result<Response, FetchError> {
        request.policy.check(&request.url).map_err(FetchError::UrlPolicy)?;
        let pool = ConnectionPool::of(request.policy, &request.url, &self.proxies);
        let is_proxied = matches!(pool, ConnectionPool::Proxied { .. });
        if is_proxied {
            request.policy.check_proxied(&request.url).map_err(FetchError::UrlPolicy)?;
        }
        let client = self.client(pool)?;
        let mut outgoing = reqwest::Request::new(request.method, request.url);
        *outgoing.headers_mut() = request.headers;
        if !request.body.is_empty() {
            *outgoing.body_mut() = Some(request.body.into());
        }
        client.execute(outgoing).await.map_err(|error| match classify(error) {
            FetchError::Network(error) if is_proxied => FetchError::Network(error.through_proxy()),
            other => other,
        })
    }

    async fn whole(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let limit = request.max_body;
        let mut response = self.send(request).await?;
        let declared = response.content_length().unwrap_or(0);
        if usize::try_from(declared).map_or(true, |declared| declared > limit) {
            return Err(FetchError::TooLarge { limit });
        }
        let mut body = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(classify)? {
            if piece.len() > limit - body.len() {
                return Err(FetchError::TooLarge { limit });
            }
            body.extend_from_slice(&piece);
        }
        Ok(FetchResponse {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body: body.into(),
        })
    }
}

impl fmt::Debug for HttpFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A client shows its proxies, credentials and all.
        f.debug_struct("HttpFetch").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Fetch for HttpFetch {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        let limit = request.timeout;
        Box::pin(async move { timeout(limit, self.whole(request)).await.unwrap_or(Err(FetchError::Timeout)) })
    }

    fn open(&self, request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        let limit = request.timeout;
        Box::pin(async move {
            let mut response = timeout(limit, self.send(request)).await.unwrap_or(Err(FetchError::Timeout))?;
            Ok(OpenResponse {
                status: response.status(),
                headers: std::mem::take(response.headers_mut()),
                body: Box::new(Incoming(response)),
            })
        })
    }
}

/// A response body as the network brings it.
struct Incoming(Response);

impl BodyStream for Incoming {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
        Box::pin(async { self.0.chunk().await.map_err(classify).transpose() })
    }
}

fn classify(error: reqwest::Error) -> FetchError {
    // The URL may have a query, which belongs into no error.
    let error = error.without_url();
    let mut failure = if error.is_connect() { NetworkFailure::Connect } else { NetworkFailure::Interrupted };
    let mut certificate = None;
    let mut source = error.source();
    while let Some(cause) = source {
        let inner = cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        if let Some(refusal) = cause.downcast_ref::<UrlPolicyError>() {
            return FetchError::UrlPolicy(*refusal);
        } else if cause.is::<NoAddress>() {
            failure = NetworkFailure::Resolve;
        } else if let Some(tls) = cause.downcast_ref().or_else(|| inner?.downcast_ref()) {
            failure = NetworkFailure::Tls;
            certificate = certificate_problem(tls);
        }
        source = cause.source();
    }
    let error = NetworkError::caused_by(failure, error);
    FetchError::Network(match certificate {
        Some(problem) => error.with_certificate_problem(problem),
        None => error,
    })
}

fn certificate_problem(error: &rustls::Error) -> Option<CertificateProblem> {
    let rustls::Error::InvalidCertificate(error) = error else { return None };
    Some(match error {
        CertificateError::UnknownIssuer => CertificateProblem::UnknownIssuer,
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => CertificateProblem::Expired,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => CertificateProblem::NotYetValid,
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            CertificateProblem::WrongName
        }
        _ => CertificateProblem::Other,
    })
}

#[cfg(test)]
mod tests;
