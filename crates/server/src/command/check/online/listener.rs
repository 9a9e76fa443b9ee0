//! Whether the port is free.

use std::{io, time::Duration};

use http::HeaderValue;
use portcullis_discovery::{Fetch as _, FetchRequest, FetchSettings, HttpFetch, UrlPolicy};
use portcullis_doctor::{Finding, Rule, Step};
use portcullis_metadata::ProtectedResourceMetadata;
use tokio::net::TcpListener;
use url::Url;

use crate::{config, plan::Plan};

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
    let ask = async {
        let resource = plan.resources.first()?;
        let local = config::reachable_address(plan.listen);
        // Without authorization, there is no metadata.
        let has_metadata = !resource.issuers.is_empty();
        let path = if has_metadata {
            format!("/.well-known/oauth-protected-resource{}", resource.endpoint)
        } else {
            crate::plan::HEALTH.to_owned()
        };
        let scheme = if plan.tls.is_some() { "https" } else { "http" };
        let url = Url::parse(&format!("{scheme}://{local}{path}")).ok()?;
        let mut request = FetchRequest::get(url, UrlPolicy::Operator);
        request.timeout = TIMEOUT;
        let base_url = Url::parse(base_url).ok()?;
        let host = &base_url[url::Position::BeforeHost..url::Position::AfterPort];
        request = request.header(http::header::HOST, HeaderValue::from_str(host).ok()?);
        let response = HttpFetch::new(FetchSettings::default()).ok()?.fetch(request).await.ok()?;
        if !has_metadata {
            return response.status.is_success().then_some(());
        }
        let metadata = ProtectedResourceMetadata::parse(&response.body).ok()?;
        (metadata.resource.as_str() == resource.metadata.resource.as_str()).then_some(())
    };
    ask.await.is_some()
}
