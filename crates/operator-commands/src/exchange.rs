//! One HTTP/1.1 request over a connection, and its whole response.

use anyhow::ensure;
use http::{HeaderMap, StatusCode};
use portcullis_http1::{Connection, Request};
use tokio::io::{AsyncRead, AsyncWrite};
use url::Url;

/// A response.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Sends a request and reads its response. There is no time limit. Fails when the connection fails,
/// the response is not valid, or its body has more than `max_body` bytes.
pub(super) async fn exchange<S>(
    stream: S,
    request: Request,
    max_body: usize,
) -> anyhow::Result<Answer>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (response, mut connection) = Connection::new(stream).send(request).await?;
    let mut body = Vec::new();
    while let Some(data) = connection.next_data().await {
        body.extend_from_slice(&data?);
        ensure!(
            body.len() <= max_body,
            "the response has more than {max_body} bytes"
        );
    }
    Ok(Answer {
        status: response.status(),
        headers: response.headers().clone(),
        body,
    })
}

/// Returns the host of a URL, for a connection or a certificate. An IPv6 address has no brackets.
pub(super) fn host_name(url: &Url) -> &str {
    url.host_str().unwrap_or_default().trim_matches(['[', ']'])
}
