//! Whether the port is free.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{Method, header::HOST, uri::PathAndQuery};
use portcullis_config::plan::{Plan, READY};
use portcullis_discovery::FetchRequest;
use portcullis_doctor::{Finding, Rule, Step};
use portcullis_http1::RequestBuilder;
use portcullis_metadata::{EscapedText, ProtectedResourceMetadata, protected_resource_path};
use portcullis_serve::REFUSED;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;
use url::{Position, Url};

use crate::{
    exchange::{Answer, exchange},
    health::tls::any_certificate,
};

const PORT: Rule = Rule::new("listener.port", "docs/use/configuration.md");

/// The time limit of a request to a program that holds the port.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The most endpoints of another server that are shown, and the most characters of each.
const MAX_SHOWN: usize = 5;
const MAX_TEXT: usize = 200;

pub(super) async fn check(plan: &Plan, base_url: &str) -> Step {
    let mut step = Step::new(format!("the listener on {}", plan.listen));
    let finding = match TcpListener::bind(plan.listen).await {
        Ok(_) => Finding::met(PORT, "the port is free"),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => occupied(plan, base_url).await,
        Err(error) => {
            let fix = match error.kind() {
                io::ErrorKind::PermissionDenied => {
                    "use a port from 1024 on, a socket of the service manager, or allow CAP_NET_BIND_SERVICE"
                }
                io::ErrorKind::AddrNotAvailable => {
                    "write an address of this machine in listen, or 0.0.0.0 for all of them"
                }
                _ => "correct listen",
            };
            Finding::problem(
                PORT,
                format!("cannot listen on {}: {error}", plan.listen),
                fix,
            )
        }
    };
    step.findings.push(finding);
    step
}

/// A port that another program holds. That is no problem if it is a server with this configuration
/// or an earlier one.
async fn occupied(plan: &Plan, base_url: &str) -> Finding {
    if serves_this(plan, base_url).await {
        return Finding::note(
            PORT,
            "the port is in use by a server with these resources, which a restart or a reload replaces",
        );
    }
    if let Some(served) = other_server(plan, base_url).await {
        return Finding::warning(
            PORT,
            format!(
                "Portcullis with another configuration listens on {}{served}",
                plan.listen
            ),
            "if this configuration is for that server, reload or restart it; otherwise choose another port in listen",
        );
    }
    let fix = "stop the program that holds the port, or choose another port in listen";
    Finding::problem(
        PORT,
        format!("another program listens on {}", plan.listen),
        fix,
    )
}

/// Whether the program at the address publishes the metadata of the first resource.
async fn serves_this(plan: &Plan, base_url: &str) -> bool {
    let Some(resource) = plan.resources.first() else {
        return false;
    };
    // Without authorization, there is no metadata.
    if resource.issuers.is_empty() {
        let report = get(plan, base_url, READY, plan.tls.is_some()).await;
        return report
            .and_then(|answer| endpoints(&answer))
            .is_some_and(|served| served.contains(&resource.endpoint));
    }
    let path = protected_resource_path(&resource.endpoint);
    let Some(answer) = get(plan, base_url, &path, plan.tls.is_some()).await else {
        return false;
    };
    let metadata = ProtectedResourceMetadata::parse(&answer.body);
    metadata.is_ok_and(|metadata| metadata.resource.as_str() == resource.metadata.resource.as_str())
}

/// Recognizes Portcullis by its report of readiness, or by its rejection of a host that it does not
/// serve. Returns the endpoints in the report as the end of a sentence. The server can have TLS
/// although this configuration has none, and vice versa.
async fn other_server(plan: &Plan, base_url: &str) -> Option<String> {
    for has_tls in [plan.tls.is_some(), plan.tls.is_none()] {
        let Some(answer) = get(plan, base_url, READY, has_tls).await else {
            continue;
        };
        if let Some(served) = endpoints(&answer) {
            let served: Vec<String> = served
                .iter()
                .take(MAX_SHOWN)
                .map(|endpoint| EscapedText::first(endpoint, MAX_TEXT).to_string())
                .collect();
            return Some(format!(", which serves {}", served.join(", ")));
        }
        if answer.status.is_client_error() && answer.body == REFUSED.as_bytes() {
            return Some(", which serves another host than base_url".to_owned());
        }
    }
    None
}

/// Returns the endpoints in a report of readiness; `None` if the response is another one.
fn endpoints(answer: &Answer) -> Option<Vec<String>> {
    let report: Value = serde_json::from_slice(&answer.body).ok()?;
    let is_report = report.get("ready")?.is_boolean() && report.get("draining")?.is_boolean();
    let resources = report
        .get("resources")?
        .as_array()
        .filter(|resources| is_report && !resources.is_empty())?;
    resources
        .iter()
        .map(|resource| Some(resource.get("endpoint")?.as_str()?.to_owned()))
        .collect()
}

/// Sends a GET request to the address of the listener. `None` without a response in time.
async fn get(plan: &Plan, base_url: &str, path: &str, has_tls: bool) -> Option<Answer> {
    timeout(TIMEOUT, request(plan, base_url, path, has_tls))
        .await
        .ok()?
        .ok()
}

/// As [`get`]. With TLS, the certificate is for the name that clients use, and is not checked.
async fn request(plan: &Plan, base_url: &str, path: &str, has_tls: bool) -> anyhow::Result<Answer> {
    let base_url = Url::parse(base_url)?;
    let mut request = RequestBuilder::new(&Method::GET, &PathAndQuery::try_from(path)?);
    request.text_header(&HOST, &base_url[Position::BeforeHost..Position::AfterPort])?;
    let request = request.body(Bytes::new());
    let address = portcullis_config::reachable_address(plan.listen);
    let stream = TcpStream::connect(address).await?;
    if !has_tls {
        return exchange(stream, request, FetchRequest::MAX_BODY).await;
    }
    let name = ServerName::IpAddress(address.ip().into());
    let stream = TlsConnector::from(any_certificate()?)
        .connect(name, stream)
        .await?;
    exchange(stream, request, FetchRequest::MAX_BODY).await
}

#[cfg(test)]
mod tests {
    use http::StatusCode;

    use super::*;

    /// J9: only the report of Portcullis has endpoints.
    #[test]
    fn a_report_of_readiness_is_recognized() {
        let of = |body: &str| {
            endpoints(&Answer {
                status: StatusCode::OK,
                body: body.as_bytes().to_vec(),
            })
        };
        let report = r#"{"ready":false,"draining":false,"resources":[{"endpoint":"/a","issuers":[]},{"endpoint":"/b"}]}"#;
        assert_eq!(of(report), Some(vec!["/a".to_owned(), "/b".to_owned()]));
        for other in [
            "",
            "ok",
            r#"{"ready":true}"#,
            r#"{"ready":true,"resources":[{"endpoint":"/a"}]}"#,
            r#"{"ready":true,"draining":false,"resources":[]}"#,
            r#"{"ready":1,"draining":2,"resources":[{"endpoint":"/a"}]}"#,
            r#"{"ready":true,"draining":false,"resources":[{}]}"#,
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
