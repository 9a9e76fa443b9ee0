//! Whether requests to the base URL arrive at this server, through the proxy in front.

use portcullis_client::error_chain;
use portcullis_config::plan::{Plan, ResourcePlan};
use portcullis_discovery::{
    Fetch as _, FetchRequest, FetchResponse, FetchSettings, HttpFetch, Product, UrlPolicy,
};
use portcullis_doctor::{Finding, Rule, Step};
use portcullis_metadata::{EscapedText, protected_resource_path, syntax::is_loopback};
use url::Url;

use super::{
    REQUEST_TIMEOUT,
    listener::{Port, is_metadata_of},
};

const PUBLIC: Rule = Rule::new("public_address.reachable", "RFC 9728 section 3.1");

/// Requests the metadata of a resource as clients do. Without a running server, a note says that
/// this is not tested. `None` if clients connect to the listener itself, if another program has its
/// port, and without a resource that has metadata.
pub(super) async fn check(
    plan: &Plan,
    base_url: &str,
    port: Port,
    product: Product,
) -> Option<Step> {
    let resource = plan
        .resources
        .iter()
        .find(|resource| !resource.issuers.is_empty())?;
    let mut url = Url::parse(base_url).ok()?;
    if is_listener(plan, &url) || port == Port::Other {
        return None;
    }
    let mut step = Step::new(format!(
        "the address that clients use, {}",
        url.origin().ascii_serialization()
    ));
    let is_local = is_loopback(&url);
    url.set_path(&protected_resource_path(&resource.endpoint));
    step.findings.push(match port {
        Port::Served => {
            let fetched = request(url.clone(), product).await;
            finding(plan, resource, &url, is_local, fetched)
        }
        _ => Finding::note(
            PUBLIC,
            format!(
                "it is not tested, because the server does not run; when it runs, run `portcullis doctor {}`",
                resource.metadata.resource.as_str()
            ),
        ),
    });
    Some(step)
}

/// Whether clients connect to the listener without a proxy.
fn is_listener(plan: &Plan, base_url: &Url) -> bool {
    let port = base_url.port_or_known_default();
    port == Some(plan.listen.port()) && is_loopback(base_url)
}

async fn request(url: Url, product: Product) -> Result<FetchResponse, String> {
    let fetch = HttpFetch::new(FetchSettings::of(product)).map_err(|error| error_chain(&error))?;
    let mut request = FetchRequest::get(url, UrlPolicy::Operator);
    request.timeout = REQUEST_TIMEOUT;
    fetch
        .fetch(request)
        .await
        .map_err(|error| error_chain(&error))
}

/// A failure is a problem on this machine. Elsewhere it is a warning: the network of this machine
/// can differ from that of clients.
fn finding(
    plan: &Plan,
    resource: &ResourcePlan,
    url: &Url,
    is_local: bool,
    fetched: Result<FetchResponse, String>,
) -> Finding {
    let listen = portcullis_config::reachable_address(plan.listen);
    let (text, fix) = match fetched {
        Ok(response) if is_metadata_of(resource, &response.body) => {
            return Finding::met(
                PUBLIC,
                "requests to it arrive at a server with these resources",
            );
        }
        Ok(response) => (
            format!(
                "{url} is answered with {}, and not with the metadata of {}",
                response.status,
                resource.metadata.resource.as_str()
            ),
            format!(
                "let the proxy pass the requests to {listen} with their path and Host, or correct base_url"
            ),
        ),
        Err(error) => (
            format!("{url} cannot be requested: {}", EscapedText(&error)),
            "start the proxy, or correct base_url".to_owned(),
        ),
    };
    if is_local {
        return Finding::problem(PUBLIC, text, fix);
    }
    let fix = format!(
        "{fix}; from the network of clients, run `portcullis doctor {}`",
        resource.metadata.resource.as_str()
    );
    Finding::warning(PUBLIC, text, fix)
}
