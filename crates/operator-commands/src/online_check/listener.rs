//! Whether the port is free.

use std::{io, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, Method,
    header::{HOST, SERVER, VIA},
    uri::PathAndQuery,
};
use portcullis_config::{
    file::Authorization,
    plan::{Plan, READY, ResourcePlan},
};
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
/// The most characters of a program's name.
const MAX_NAME: usize = 60;

/// The step of the listener, and who has the port.
pub(super) struct Listener {
    pub(super) step: Step,
    pub(super) port: Port,
}

/// Who has the port of the listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Port {
    /// No program.
    Free,
    /// A server with these resources, or a proxy in front of it that cannot be told from it.
    Served,
    /// Another program, or the port cannot be used.
    Other,
}

pub(super) async fn check(plan: &Plan, base_url: &str) -> Listener {
    let mut step = Step::new(format!("the listener on {}", plan.listen));
    let (finding, port) = match TcpListener::bind(plan.listen).await {
        Ok(_) => (Finding::met(PORT, "the port is free"), Port::Free),
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
            let text = format!("cannot listen on {}: {error}", plan.listen);
            (Finding::problem(PORT, text, fix), Port::Other)
        }
    };
    step.findings.push(finding);
    Listener { step, port }
}

/// A port that another program holds. That is no problem if it is a server with this configuration
/// or an earlier one.
async fn occupied(plan: &Plan, base_url: &str) -> (Finding, Port) {
    let listen = plan.listen;
    let program = match program(plan, base_url).await {
        Program::This { proxy: None } => {
            let proxy = match shares_port(plan, base_url) {
                true => {
                    "; a proxy in front of it that listens there needs another port in listen, and its address in \
                     trusted_proxies"
                }
                false => "",
            };
            let text = format!(
                "the port is in use by a server with these resources, which a restart replaces{proxy}"
            );
            return (Finding::note(PORT, text), Port::Served);
        }
        Program::Portcullis {
            served,
            proxy: None,
        } => {
            let text = format!("Portcullis with another configuration listens on {listen}{served}");
            let fix = "if this configuration is for that server, reload or restart it; otherwise choose another port in listen";
            return (Finding::warning(PORT, text, fix), Port::Other);
        }
        Program::This { proxy: Some(proxy) }
        | Program::Portcullis {
            proxy: Some(proxy), ..
        } => format!(
            "another program listens on {listen}: a proxy ({proxy}), which passes requests to Portcullis"
        ),
        Program::Other { name: Some(name) } => {
            format!("another program listens on {listen} ({name})")
        }
        Program::Other { name: None } => format!("another program listens on {listen}"),
    };
    (
        Finding::problem(PORT, program, other_port(plan)),
        Port::Other,
    )
}

/// Whether clients connect to the port of the listener: a proxy with the address of the base URL
/// then has the same port.
fn shares_port(plan: &Plan, base_url: &str) -> bool {
    let port = Url::parse(base_url)
        .ok()
        .and_then(|url| url.port_or_known_default());
    port == Some(plan.listen.port())
}

/// The fix if another program has the port, which may be the proxy in front.
fn other_port(plan: &Plan) -> String {
    let ip = plan.listen.ip();
    let address = if ip.is_unspecified() {
        "127.0.0.1".to_owned()
    } else {
        ip.to_string()
    };
    format!(
        "if that is the proxy in front of this server, choose another port in listen, to which the proxy passes requests, and \
         write trusted_proxies = [\"{address}\"] (init: --listen and --trusted-proxy {address}); otherwise stop the program, \
         or choose another port in listen"
    )
}

/// The program that has the port.
enum Program {
    /// It publishes the metadata of the first resource.
    This {
        proxy: Option<String>,
    },
    /// `served` ends a sentence: the endpoints, or the host that is rejected.
    Portcullis {
        served: String,
        proxy: Option<String>,
    },
    Other {
        name: Option<String>,
    },
}

/// Asks the program what it is. Portcullis sends no `Server` and no `Via`: such a header is that of
/// another program. Not all proxies add one.
async fn program(plan: &Plan, base_url: &str) -> Program {
    if let Some(answer) = this_server(plan, base_url).await {
        let proxy = name(&answer.headers);
        return Program::This { proxy };
    }
    let mut named = None;
    // The server can have TLS although this configuration has none, and vice versa.
    for has_tls in [plan.tls.is_some(), plan.tls.is_none()] {
        let Some(answer) = get(plan, base_url, READY, has_tls).await else {
            continue;
        };
        let name = name(&answer.headers);
        match other_server(&answer) {
            Some(served) => {
                return Program::Portcullis {
                    served,
                    proxy: name,
                };
            }
            None => named = named.or(name),
        }
    }
    Program::Other { name: named }
}

/// The name that a program has in `Server` or `Via`.
fn name(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(SERVER).or_else(|| headers.get(VIA))?;
    let text = String::from_utf8_lossy(value.as_bytes());
    (!text.is_empty()).then(|| EscapedText::first(&text, MAX_NAME).to_string())
}

/// Returns the response of the program at the address if it publishes the metadata of the first
/// resource.
async fn this_server(plan: &Plan, base_url: &str) -> Option<Answer> {
    let resource = plan.resources.first()?;
    // Without authorization, there is no metadata.
    if resource.authorization == Authorization::None {
        let report = get(plan, base_url, READY, plan.tls.is_some()).await?;
        return endpoints(&report)?
            .contains(&resource.endpoint)
            .then_some(report);
    }
    let path = protected_resource_path(&resource.endpoint);
    let answer = get(plan, base_url, &path, plan.tls.is_some()).await?;
    is_metadata_of(resource, &answer.body).then_some(answer)
}

/// Whether a document is the metadata of a resource.
pub(super) fn is_metadata_of(resource: &ResourcePlan, document: &[u8]) -> bool {
    ProtectedResourceMetadata::parse(document)
        .is_ok_and(|found| found.resource.as_str() == resource.metadata.resource.as_str())
}

/// Recognizes Portcullis by its report of readiness, or by its rejection of a host that it does not
/// serve. Returns the endpoints in the report as the end of a sentence.
fn other_server(answer: &Answer) -> Option<String> {
    if let Some(served) = endpoints(answer) {
        let served: Vec<String> = served
            .iter()
            .take(MAX_SHOWN)
            .map(|endpoint| EscapedText::first(endpoint, MAX_TEXT).to_string())
            .collect();
        return Some(format!(", which serves {}", served.join(", ")));
    }
    let is_rejected = answer.status.is_client_error() && answer.body == REFUSED.as_bytes();
    is_rejected.then(|| ", which serves another host than base_url".to_owned())
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
                headers: HeaderMap::new(),
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
