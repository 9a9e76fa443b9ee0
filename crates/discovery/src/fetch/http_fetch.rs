mod failure;

use std::{fmt, path::PathBuf, sync::OnceLock};

use bytes::Bytes;
use http::HeaderValue;
use reqwest::{Client, Proxy, Response, redirect};
use tokio::time::timeout;
use url::Url;

use self::failure::fetch_error;
use super::{
    BoxFuture, Fetch,
    error::FetchError,
    pool_key::PoolKey,
    product::Product,
    proxy::{self, Proxies},
    request::FetchRequest,
    resolver::{self, FilteringResolver, Lookup},
    response::{BodyStream, FetchResponse, OpenResponse},
    sent_secrets::SentSecrets,
    settings_error::FetchSettingsError,
    shown_url,
    tls::{self, Tls},
    trace::RequestTrace,
};

/// The settings of an [`HttpFetch`]. The default trusts the system's certificates, uses the proxy
/// of the environment and sends the default [`Product`] as user agent. `Debug` does not print
/// the proxy's credentials.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct FetchSettings {
    /// A PEM file of certificates that are trusted in addition to the system's, for
    /// [`UrlPolicy::Operator`](crate::UrlPolicy::Operator) and
    /// [`UrlPolicy::StartOrigin`](crate::UrlPolicy::StartOrigin) only.
    pub ca_file: Option<PathBuf>,
    /// The egress proxy, an `http` or `https` URL, for all hosts other than loopback. It resolves
    /// the names ([`UrlPolicy::check_proxied`](crate::UrlPolicy::check_proxied)).
    ///
    /// Default: the environment, as for curl. The first non-empty variable of `https_proxy`,
    /// `HTTPS_PROXY`, `all_proxy` and `ALL_PROXY` contains the URL, and `no_proxy` or `NO_PROXY`
    /// the hosts that are requested without the proxy.
    pub proxy: Option<Url>,
    /// The `User-Agent` header.
    pub user_agent: Option<String>,
}

impl FetchSettings {
    /// The default settings, with this program as the user agent.
    pub fn of(product: Product) -> Self {
        Self {
            user_agent: Some(product.to_string()),
            ..Self::default()
        }
    }
}

impl fmt::Debug for FetchSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FetchSettings")
            .field("ca_file", &self.ca_file)
            .field("proxy", &self.proxy.as_ref().map(shown_url))
            .field("user_agent", &self.user_agent)
            .finish()
    }
}

/// [`Fetch`] over HTTP/1.1 and HTTP/2, on reqwest and rustls with the ring provider.
///
/// Connections are pooled. Direct `https` connections are not shared between policies. Connections
/// depend on the runtime that opened them, so use one value with one long-lived runtime only. The
/// system's trusted certificates are read by the first `https` fetch.
pub struct HttpFetch {
    settings: FetchSettings,
    tls: Tls,
    proxies: Proxies,
    lookup: Lookup,
    /// One client for each pool, which its first request creates.
    clients: [OnceLock<Client>; PoolKey::COUNT],
}

impl HttpFetch {
    /// Creates a fetcher. Nothing is sent.
    ///
    /// # Errors
    /// Fails with [`FetchError::Settings`] if the CA file cannot be read, is too large or has no
    /// usable certificate, the proxy is not an `http` or `https` URL, or the user agent is not a
    /// valid header value. A proxy variable that cannot be used is an error of each request to
    /// which it applies.
    pub fn new(settings: FetchSettings) -> Result<Self, FetchError> {
        let tls = Tls::new(settings.ca_file.as_deref())?;
        if settings
            .proxy
            .as_ref()
            .is_some_and(|proxy| !proxy::is_supported(proxy))
        {
            return Err(FetchSettingsError::Proxy.into());
        }
        if settings
            .user_agent
            .as_deref()
            .is_some_and(|agent| HeaderValue::from_str(agent).is_err())
        {
            return Err(FetchSettingsError::UserAgent.into());
        }
        let proxies = match &settings.proxy {
            Some(proxy) => Proxies::fixed(proxy.clone()),
            // A proxy that is not UTF-8 becomes an unusable one: without it, requests would be sent
            // directly.
            None => Proxies::from_variables(|name| {
                Some(std::env::var_os(name)?.to_string_lossy().into_owned())
            }),
        };
        let clients = [const { OnceLock::new() }; PoolKey::COUNT];
        Ok(Self {
            settings,
            tls,
            proxies,
            lookup: resolver::system,
            clients,
        })
    }

    /// Checks that environment variables name no unusable proxy for requests to this URL, and no
    /// unusable certificates. Sends nothing.
    ///
    /// # Errors
    /// Fails with the error of these requests.
    pub fn check_environment(&self, url: &Url) -> Result<(), FetchSettingsError> {
        if self.proxies.applies_to(url) {
            self.proxies.url()?;
        }
        match url.scheme() {
            "https" => tls::check_environment(),
            _ => Ok(()),
        }
    }

    fn client(&self, key: PoolKey) -> Result<Client, FetchError> {
        let slot = &self.clients[key.index()];
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let client = self.build(key)?;
        Ok(slot.get_or_init(|| client).clone())
    }

    /// Creates the client of a pool: its policy filters the resolved addresses, and it follows no
    /// redirects.
    fn build(&self, key: PoolKey) -> Result<Client, FetchError> {
        let agent = match &self.settings.user_agent {
            Some(agent) => agent.clone(),
            None => Product::default().to_string(),
        };
        let mut builder = Client::builder()
            .tls_backend_preconfigured(self.tls.config(key)?)
            .dns_resolver(FilteringResolver::new(key.policy(), self.lookup))
            .redirect(redirect::Policy::none())
            .referer(false)
            .user_agent(agent)
            // `Proxies` reads the environment.
            .no_proxy()
            // Another crate of the program may enable the codings of reqwest.
            .no_gzip()
            .no_brotli()
            .no_deflate()
            .no_zstd();
        if let PoolKey::Proxied { .. } = key {
            builder = builder.proxy(
                Proxy::all(self.proxies.url()?.clone()).map_err(|_| FetchSettingsError::Proxy)?,
            );
        }
        builder.build().map_err(fetch_error)
    }

    /// Sends a request that its policy permits, and returns the response once its head is complete.
    async fn send(&self, request: FetchRequest) -> Result<Response, FetchError> {
        request
            .policy
            .check(&request.url)
            .map_err(FetchError::UrlPolicy)?;
        let key = PoolKey::of(request.policy, &request.url, &self.proxies);
        let is_proxied = matches!(key, PoolKey::Proxied { .. });
        if is_proxied {
            request
                .policy
                .check_proxied(&request.url)
                .map_err(FetchError::UrlPolicy)?;
        }
        let client = self.client(key)?;
        let mut outgoing = reqwest::Request::new(request.method, request.url);
        *outgoing.headers_mut() = request.headers;
        if !request.body.is_empty() {
            *outgoing.body_mut() = Some(request.body.into());
        }
        client
            .execute(outgoing)
            .await
            .map_err(|error| match fetch_error(error) {
                FetchError::Network(error) if is_proxied => {
                    FetchError::Network(error.through_proxy())
                }
                other => other,
            })
    }

    /// Sends a request and reads the body, up to the maximum of the request.
    async fn send_and_read(&self, request: FetchRequest) -> Result<FetchResponse, FetchError> {
        let limit = request.max_body;
        let mut response = self.send(request).await?;
        let declared = response.content_length().unwrap_or(0);
        if usize::try_from(declared).map_or(true, |declared| declared > limit) {
            return Err(FetchError::TooLarge { limit });
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(fetch_error)? {
            if chunk.len() > limit - body.len() {
                return Err(FetchError::TooLarge { limit });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(FetchResponse {
            status: response.status(),
            headers: std::mem::take(response.headers_mut()),
            body: body.into(),
            sent: SentSecrets::default(),
        })
    }
}

impl fmt::Debug for HttpFetch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // `Client` prints the credentials of its proxies.
        f.debug_struct("HttpFetch")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

impl Fetch for HttpFetch {
    fn fetch(&self, request: FetchRequest) -> BoxFuture<'_, Result<FetchResponse, FetchError>> {
        let limit = request.timeout;
        Box::pin(async move {
            let trace = RequestTrace::begin(&request);
            let result = timeout(limit, self.send_and_read(request))
                .await
                .unwrap_or(Err(FetchError::Timeout));
            if let Some(trace) = trace {
                trace.end(result.as_ref().map(|response| response.status));
            }
            result
        })
    }

    fn open(&self, request: FetchRequest) -> BoxFuture<'_, Result<OpenResponse, FetchError>> {
        let limit = request.timeout;
        Box::pin(async move {
            let trace = RequestTrace::begin(&request);
            let result = timeout(limit, self.send(request))
                .await
                .unwrap_or(Err(FetchError::Timeout));
            if let Some(trace) = trace {
                trace.end(result.as_ref().map(Response::status));
            }
            let mut response = result?;
            Ok(OpenResponse {
                status: response.status(),
                headers: std::mem::take(response.headers_mut()),
                body: Box::new(Incoming(response)),
                sent: SentSecrets::default(),
            })
        })
    }
}

/// A response body that is received.
struct Incoming(Response);

impl BodyStream for Incoming {
    fn next(&mut self) -> BoxFuture<'_, Option<Result<Bytes, FetchError>>> {
        Box::pin(async { self.0.chunk().await.map_err(fetch_error).transpose() })
    }
}

#[cfg(test)]
mod tests;
