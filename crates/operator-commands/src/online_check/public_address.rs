//! Whether requests to the base URL arrive at this server, through the proxy in front.

use portcullis_client::error_chain;
use portcullis_config::{
    file::Authorization,
    plan::{Plan, ResourcePlan},
};
use portcullis_discovery::{
    CertificateProblem, Fetch as _, FetchError, FetchRequest, FetchResponse, FetchSettings,
    HttpFetch, NetworkError, NetworkFailure, Product, UrlPolicy,
};
use portcullis_doctor::{Finding, Rule, Step};
use portcullis_metadata::{
    AuthorizationServerMetadata, EscapedText, Issuer, authorization_server_urls,
    protected_resource_path, syntax::is_loopback,
};
use url::Url;

use super::{
    REQUEST_TIMEOUT,
    listener::{Port, is_metadata_of},
};

const PUBLIC: Rule = Rule::new("public_address.reachable", "RFC 9728 section 3.1");

/// Requests the metadata of a resource and of the broker as clients do. Without a running server, a
/// note says that this is not tested. `None` if clients connect to the listener itself, if another
/// program has its port, and without a resource that has metadata.
pub(super) async fn check(
    plan: &Plan,
    base_url: &str,
    port: Port,
    product: Product,
    on_start: &mut dyn FnMut(&str),
) -> Option<Step> {
    let resource = plan
        .resources
        .iter()
        .find(|resource| resource.authorization == Authorization::Required)?;
    let base_url = Url::parse(base_url).ok()?;
    if is_listener(plan, &base_url) || port == Port::Other {
        return None;
    }
    let mut step = Step::new(format!(
        "the address that clients use, {}",
        base_url.origin().ascii_serialization()
    ));
    let address = PublicAddress {
        plan,
        resource,
        base_url,
    };
    step.findings.push(match port {
        Port::Served => {
            on_start("the address that clients use");
            address.examine(product).await
        }
        _ => Finding::note(
            PUBLIC,
            format!(
                "it is not tested, because the server does not run; when it runs, run {}",
                address.doctor()
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

/// The base URL, with a resource that has metadata.
struct PublicAddress<'a> {
    plan: &'a Plan,
    resource: &'a ResourcePlan,
    base_url: Url,
}

/// A metadata document of this server.
struct Document<'a> {
    url: Url,
    subject: Subject<'a>,
}

/// What a document describes.
enum Subject<'a> {
    Resource(&'a ResourcePlan),
    Broker(&'a Issuer),
}

/// Why a document is not found, and the fix.
struct Failure {
    text: String,
    fix: String,
}

impl PublicAddress<'_> {
    /// Returns the first failure. It is a problem on this machine. Elsewhere it is a warning: the
    /// network of this machine can differ from that of clients.
    async fn examine(&self, product: Product) -> Finding {
        let Err(Failure { text, fix }) = self.request_all(product).await else {
            let text = "requests to it arrive at a server with these resources";
            return Finding::met(PUBLIC, text);
        };
        if is_loopback(&self.base_url) {
            return Finding::problem(PUBLIC, text, fix);
        }
        let doctor = self.doctor();
        let fix = format!("{fix}; from the network of clients, run {doctor}");
        Finding::warning(PUBLIC, text, fix)
    }

    async fn request_all(&self, product: Product) -> Result<(), Failure> {
        for document in self.documents() {
            let fetched = request(document.url.clone(), product).await;
            self.check(&document, fetched)?;
        }
        Ok(())
    }

    /// Returns the documents that clients look for: that of the resource, then those of the broker.
    fn documents(&self) -> Vec<Document<'_>> {
        let mut url = self.base_url.clone();
        url.set_path(&protected_resource_path(&self.resource.endpoint));
        let of_resource = Document {
            url,
            subject: Subject::Resource(self.resource),
        };
        let broker = self.plan.broker.as_ref();
        let of_broker = broker.into_iter().flat_map(|broker| {
            let issuer = &broker.settings.issuer;
            let urls = authorization_server_urls(issuer).into_iter();
            urls.map(|url| Document {
                url,
                subject: Subject::Broker(issuer),
            })
        });
        [of_resource].into_iter().chain(of_broker).collect()
    }

    fn check(
        &self,
        document: &Document<'_>,
        fetched: Result<FetchResponse, FetchError>,
    ) -> Result<(), Failure> {
        let Document { url, subject } = document;
        match fetched {
            Ok(response) if subject.is_described_by(&response.body) => Ok(()),
            Ok(response) => Err(Failure {
                text: format!(
                    "{url} is answered with {}, and not with the metadata of {}",
                    response.status,
                    subject.identifier()
                ),
                fix: format!(
                    "let the proxy pass all requests to {} with their path and Host, or correct base_url",
                    portcullis_config::reachable_address(self.plan.listen)
                ),
            }),
            Err(error) => Err(Failure {
                text: format!(
                    "{url} cannot be requested: {}",
                    EscapedText(&error_chain(&error))
                ),
                fix: fix_for_fetch(&error),
            }),
        }
    }

    /// Returns the command that examines the address as clients see it.
    fn doctor(&self) -> String {
        let resource = self.resource.metadata.resource.as_str();
        format!("`portcullis doctor {resource}`")
    }
}

impl Subject<'_> {
    /// Returns the identifier that the document has.
    fn identifier(&self) -> &str {
        match self {
            Self::Resource(resource) => resource.metadata.resource.as_str(),
            Self::Broker(issuer) => issuer.as_str(),
        }
    }

    fn is_described_by(&self, document: &[u8]) -> bool {
        match self {
            Self::Resource(resource) => is_metadata_of(resource, document),
            Self::Broker(issuer) => AuthorizationServerMetadata::parse(document)
                .is_ok_and(|found| found.issuer.as_str() == issuer.as_str()),
        }
    }
}

async fn request(url: Url, product: Product) -> Result<FetchResponse, FetchError> {
    let mut request = FetchRequest::get(url, UrlPolicy::Operator);
    request.timeout = REQUEST_TIMEOUT;
    HttpFetch::new(FetchSettings::of(product))?
        .fetch(request)
        .await
}

fn fix_for_fetch(error: &FetchError) -> String {
    let fix = match error {
        FetchError::Network(network) => fix_for_network(network),
        _ => "start the proxy, or correct base_url",
    };
    fix.to_owned()
}

fn fix_for_network(error: &NetworkError) -> &'static str {
    match (error.certificate_problem(), error.failure()) {
        (Some(CertificateProblem::UnknownIssuer), _) => {
            "let the proxy send its whole certificate chain; for a private certificate authority, run `check` with \
             SSL_CERT_FILE set to its PEM file"
        }
        (Some(CertificateProblem::Expired), _) => {
            "renew the certificate of the proxy, or correct the clock of this machine"
        }
        (Some(CertificateProblem::NotYetValid), _) => "correct the clock of this machine",
        (Some(CertificateProblem::OfAuthority), _) => {
            "let the proxy send a certificate of a server, with CA:FALSE: this one is of an authority"
        }
        (_, NetworkFailure::Tls) => {
            "let the proxy send a certificate that is valid for the host of base_url, or correct base_url"
        }
        (_, NetworkFailure::NotTls) => {
            "let the proxy serve https on this port, or correct base_url"
        }
        (_, NetworkFailure::Proxy) => {
            "correct HTTPS_PROXY, or list the host of base_url in NO_PROXY if it needs no egress proxy"
        }
        _ => "start the proxy, or correct base_url",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J9: the fix names what the failure is about: the certificate, the egress proxy, or the proxy
    /// in front.
    #[test]
    fn each_failure_has_its_fix() {
        let tls = |problem| FetchError::Network(NetworkError::tls(problem, std::fmt::Error));
        for (error, expected) in [
            (tls(CertificateProblem::UnknownIssuer), "SSL_CERT_FILE"),
            (tls(CertificateProblem::Expired), "renew the certificate"),
            (tls(CertificateProblem::NotYetValid), "clock"),
            (tls(CertificateProblem::WrongName), "the host of base_url"),
            (tls(CertificateProblem::Other), "the host of base_url"),
            (FetchError::network(NetworkFailure::NotTls), "serve https"),
            (FetchError::network(NetworkFailure::Proxy), "NO_PROXY"),
            (
                FetchError::network(NetworkFailure::Connect),
                "start the proxy",
            ),
            (FetchError::Timeout, "start the proxy"),
        ] {
            let fix = fix_for_fetch(&error);
            assert!(fix.contains(expected), "{error:?}: {fix}");
        }
    }
}
