//! HTTP requests to the listener for administrators.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use http::{
    Method,
    header::{AUTHORIZATION, CONTENT_TYPE, HOST},
    uri::PathAndQuery,
};
use portcullis_gateway::UpstreamTrust;
use portcullis_http1::{Request, RequestBuilder};
use rustls::pki_types::ServerName;
use serde::Serialize;
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::TlsConnector;
use url::Url;
use zeroize::Zeroizing;

use super::{
    peer::{self, UntrustedPeer},
    target::{Place, Target},
};
use portcullis_config::plan::file_content;

use crate::exchange::{Answer, exchange, host_name};

/// The time limit of a request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of a response in bytes. A page of sessions is smaller.
const MAX_RESPONSE: usize = 32 << 20;

impl Target {
    /// Sends a GET and reads the response. Fails when the server cannot be reached or does not
    /// answer.
    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(&Method::GET, path, Bytes::new()).await
    }

    /// Sends a POST with a JSON body and reads the response. Fails when the server cannot be
    /// reached or does not answer.
    pub(super) async fn post(&self, path: &str, body: &impl Serialize) -> anyhow::Result<Answer> {
        self.send(&Method::POST, path, serde_json::to_vec(body)?.into())
            .await
    }

    async fn send(&self, method: &Method, path: &str, body: Bytes) -> anyhow::Result<Answer> {
        let answer = timeout(TIMEOUT, async {
            match &self.place {
                Place::Unix(path_of_socket) => {
                    let request = self.request(method, path, "localhost", body)?;
                    exchange(peer::connect(path_of_socket).await?, request, MAX_RESPONSE).await
                }
                Place::Url(url) => self.send_to(url, method, path, body).await,
            }
        });
        let place = || {
            format!(
                "the listener for administrators at {} did not answer; is the server running?",
                self.place
            )
        };
        match answer.await {
            // It did answer, and the message says what to fix.
            Ok(Err(error)) if error.is::<UntrustedPeer>() => Err(error),
            Ok(answer) => answer.with_context(place),
            Err(_) => bail!("{}: it took more than {} s", place(), TIMEOUT.as_secs()),
        }
    }

    async fn send_to(
        &self,
        url: &Url,
        method: &Method,
        path: &str,
        body: Bytes,
    ) -> anyhow::Result<Answer> {
        let host = host_name(url);
        let port = url.port_or_known_default().context("the URL has no port")?;
        let stream = TcpStream::connect((host, port)).await?;
        let authority = url.authority();
        let request = self.request(method, path, authority, body)?;
        if url.scheme() != "https" {
            return exchange(stream, request, MAX_RESPONSE).await;
        }
        let connector = TlsConnector::from(self.trust()?.tls_settings());
        exchange(
            connector
                .connect(ServerName::try_from(host.to_owned())?, stream)
                .await?,
            request,
            MAX_RESPONSE,
        )
        .await
    }

    fn request(
        &self,
        method: &Method,
        path: &str,
        host: &str,
        body: Bytes,
    ) -> anyhow::Result<Request> {
        let mut request = RequestBuilder::new(method, &PathAndQuery::try_from(path)?);
        let authorization = Zeroizing::new(format!("Bearer {}", self.token.secret()));
        // The error contains no value.
        request
            .text_header(&AUTHORIZATION, &authorization)
            .context("the admin token has characters that a header cannot contain")?;
        request.text_header(&HOST, host)?;
        if !body.is_empty() {
            request.text_header(&CONTENT_TYPE, "application/json")?;
        }
        Ok(request.body(body))
    }

    fn trust(&self) -> anyhow::Result<UpstreamTrust> {
        let Some(file) = &self.ca_file else {
            return Ok(UpstreamTrust::platform()?);
        };
        let name = || format!("--ca-file {} cannot be used", file.display());
        let pem = file_content(file).with_context(name)?;
        UpstreamTrust::from_pem(&pem).with_context(name)
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Url(url) => f.write_str(url.as_str().trim_end_matches('/')),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use portcullis_metadata::Secret;

    use super::*;

    /// E12: a file without an end is not read to its end.
    #[test]
    fn the_file_of_certificates_is_bounded() {
        let place = Place::Url(Url::parse("https://localhost").unwrap());
        let ca_file = Some(Path::new("/dev/zero").to_owned());
        let error = Target {
            place,
            token: Secret::new("t"),
            ca_file,
        }
        .trust()
        .err()
        .unwrap();
        assert_eq!(
            format!("{error:#}"),
            "--ca-file /dev/zero cannot be used: file too large"
        );
    }
}
