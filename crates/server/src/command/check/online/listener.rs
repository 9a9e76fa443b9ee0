//! Whether the port is free.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{Method, header::HOST, uri::PathAndQuery};
use portcullis_discovery::FetchRequest;
use portcullis_doctor::{Finding, Rule, Step};
use portcullis_http1::RequestBuilder;
use portcullis_metadata::{ProtectedResourceMetadata, protected_resource_path};
use rustls::pki_types::ServerName;
use tokio::{
    net::{TcpListener, TcpStream},
    time::timeout,
};
use tokio_rustls::TlsConnector;
use url::{Position, Url};

use crate::{
    command::{
        exchange::{Answer, exchange},
        health::tls::any_certificate,
    },
    config,
    plan::{HEALTH, Plan},
};

const PORT: Rule = Rule::new("listener.port", "docs/use/configuration.md");

/// The time limit of the request to a program that holds the port.
const TIMEOUT: Duration = Duration::from_secs(2);

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
            Finding::problem(PORT, format!("cannot listen on {}: {error}", plan.listen), fix)
        }
    };
    step.findings.push(finding);
    step
}

/// A port that another program holds. That is no problem if it is a server with this configuration.
async fn occupied(plan: &Plan, base_url: &str) -> Finding {
    if serves_this(plan, base_url).await {
        return Finding::note(
            PORT,
            "the port is in use by a server with these resources, which a restart or a reload replaces",
        );
    }
    let fix = "stop the program that holds the port, or choose another port in listen";
    Finding::problem(PORT, format!("another program listens on {}", plan.listen), fix)
}

/// Whether the program at the address publishes the metadata of the first resource.
async fn serves_this(plan: &Plan, base_url: &str) -> bool {
    let Some(resource) = plan.resources.first() else { return false };
    // Without authorization, there is no metadata.
    let has_metadata = !resource.issuers.is_empty();
    let path = if has_metadata { protected_resource_path(&resource.endpoint) } else { HEALTH.to_owned() };
    let Ok(Ok(answer)) = timeout(TIMEOUT, get(plan, base_url, &path)).await else { return false };
    if !has_metadata {
        return answer.status.is_success();
    }
    let metadata = ProtectedResourceMetadata::parse(&answer.body);
    metadata.is_ok_and(|metadata| metadata.resource.as_str() == resource.metadata.resource.as_str())
}

/// Sends a GET request to the address of the listener. With TLS, its certificate is for the name that clients use.
async fn get(plan: &Plan, base_url: &str, path: &str) -> anyhow::Result<Answer> {
    let base_url = Url::parse(base_url)?;
    let mut request = RequestBuilder::new(&Method::GET, &PathAndQuery::try_from(path)?);
    request.text_header(&HOST, &base_url[Position::BeforeHost..Position::AfterPort])?;
    let request = request.body(Bytes::new());
    let address = config::reachable_address(plan.listen);
    let stream = TcpStream::connect(address).await?;
    if plan.tls.is_none() {
        return exchange(stream, request, FetchRequest::MAX_BODY).await;
    }
    let name = ServerName::IpAddress(address.ip().into());
    let stream = TlsConnector::from(any_certificate()?).connect(name, stream).await?;
    exchange(stream, request, FetchRequest::MAX_BODY).await
}
