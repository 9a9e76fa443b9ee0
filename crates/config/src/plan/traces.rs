use std::collections::{BTreeMap, HashSet};

use anyhow::{Context as _, bail, ensure};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use portcullis_discovery::{FetchSettings, HttpFetch, UrlPolicy, UrlPolicyError};
use portcullis_guard::trace::{ClientTrace, TraceSettings};
use portcullis_telemetry::ExportSettings;
use url::Url;

use super::{issuers::fetch_error, url_fix::web_fix};
use crate::{
    Diagnostic, Diagnostics, KeyPath, SecretSource,
    file::{Traces, TracesClient},
    shown_url,
};

/// The path that is added to an endpoint without one (OTLP/HTTP).
const DEFAULT_PATH: &str = "/v1/traces";
/// The maximum length of a service name in bytes.
const MAX_SERVICE_NAME: usize = 255;

/// The headers that describe the spans that are sent, and their connection.
const RESERVED_HEADERS: [HeaderName; 6] = [
    header::CONNECTION,
    header::CONTENT_ENCODING,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::HOST,
    header::TRANSFER_ENCODING,
];

/// Validates `[traces]`. It opens no connection.
///
/// Adds an error for each invalid value and for each header whose source cannot be read. Returns
/// `None` if there is one.
pub(super) fn plan(configured: &Traces, errors: &mut Diagnostics<'_>) -> Option<ExportSettings> {
    let Traces {
        endpoint,
        sample,
        service_name,
        client,
        headers,
        ca_file,
    } = configured;
    let endpoint = errors.take("endpoint", parse_endpoint(endpoint));
    let is_sample_valid = errors.take("sample", check_sample(*sample));
    let is_name_valid = errors.take("service_name", check_service_name(service_name));
    let headers = read_headers(headers, errors);
    let mut fetch = FetchSettings::default();
    fetch.ca_file.clone_from(ca_file);
    let is_file_valid = errors.take(
        "ca_file",
        HttpFetch::new(fetch.clone()).map(drop).map_err(fetch_error),
    );
    let mut sampling = TraceSettings::new(*sample);
    sampling.parent = match client {
        TracesClient::Restart => ClientTrace::Restart,
        TracesClient::Join => ClientTrace::Join,
        TracesClient::Trust => ClientTrace::Trust,
    };
    is_sample_valid.and(is_name_valid).and(is_file_valid)?;
    Some(ExportSettings {
        endpoint: endpoint?,
        headers: headers?,
        fetch,
        service_name: service_name.clone(),
        sampling,
    })
}

fn parse_endpoint(text: &str) -> anyhow::Result<Url> {
    let shown = shown_url(text);
    let mut endpoint = Url::parse(text).with_context(|| {
        let fix = web_fix(text, "http://127.0.0.1:4318");
        format!("traces.endpoint = {shown:?} is not a URL; {fix}")
    })?;
    if !endpoint.has_host() {
        // The host of `collector:4318` was read as a scheme.
        let fix = web_fix(text, "https://collector.example.com:4318");
        bail!(
            "traces.endpoint = {shown:?} is not an https URL; {fix}, or run a collector on this host and write \
             \"http://127.0.0.1:4318\""
        );
    }
    match UrlPolicy::Operator.check(&endpoint) {
        Err(UrlPolicyError::Scheme) => bail!(
            "traces.endpoint = {shown:?} must be https, or http on loopback; run a collector on this host, and write \
             \"http://127.0.0.1:4318\""
        ),
        checked => {
            checked.with_context(|| format!("traces.endpoint = {shown:?} cannot be used"))?
        }
    }
    if endpoint.path() == "/" {
        endpoint.set_path(DEFAULT_PATH);
    }
    Ok(endpoint)
}

/// The ports of OTLP: <https://opentelemetry.io/docs/specs/otlp/>.
const GRPC_PORT: u16 = 4317;
const HTTP_PORT: u16 = 4318;
/// The paths of what is not sent here.
const OTHER_SIGNALS: [&str; 3] = ["/v1/metrics", "/v1/logs", "/v1/profiles"];

/// Returns a warning about an endpoint that is probably not one for traces over HTTP.
pub(super) fn warning(configured: &Traces) -> Option<Diagnostic> {
    let endpoint = Url::parse(&configured.endpoint).ok()?;
    let mut meant = endpoint.clone();
    let problem = if OTHER_SIGNALS
        .iter()
        .any(|path| endpoint.path().ends_with(path))
    {
        let (start, _) = endpoint.path().rsplit_once("/v1/")?;
        meant.set_path(&format!("{start}{DEFAULT_PATH}"));
        "has the path of another signal, and traces are sent there"
    } else if endpoint.port() == Some(GRPC_PORT) {
        meant.set_port(Some(HTTP_PORT)).ok()?;
        "has the port of OTLP over gRPC, and traces are sent over HTTP"
    } else {
        return None;
    };
    let text = format!(
        "traces.endpoint = {:?} {problem}; write {:?}",
        shown_url(&configured.endpoint),
        shown_url(meant.as_str().trim_end_matches('/'))
    );
    Some(Diagnostic::new(&KeyPath::default(), &text))
}

fn check_sample(sample: f64) -> anyhow::Result<()> {
    let fix = if (1.0..=100.0).contains(&sample) {
        format!("; write {} for {sample} %", sample / 100.0)
    } else {
        String::new()
    };
    ensure!(
        (0.0..=1.0).contains(&sample),
        "traces.sample = {sample} is outside 0 to 1{fix}"
    );
    Ok(())
}

fn check_service_name(name: &str) -> anyhow::Result<()> {
    ensure!(
        (1..=MAX_SERVICE_NAME).contains(&name.len()),
        "traces.service_name must have 1 to {MAX_SERVICE_NAME} bytes"
    );
    Ok(())
}

/// Reads the values of the headers. They are secret, and marked so.
fn read_headers(
    configured: &BTreeMap<String, SecretSource>,
    errors: &mut Diagnostics<'_>,
) -> Option<HeaderMap> {
    let mut names = HashSet::new();
    let read = configured.iter().map(|(name, source)| {
        let header = read_header(name, source)?;
        ensure!(
            names.insert(header.0.clone()),
            "{name:?} is listed twice, in other letter case; remove one"
        );
        Ok(header)
    });
    Some(errors.take_all("headers", read)?.into_iter().collect())
}

fn read_header(text: &str, source: &SecretSource) -> anyhow::Result<(HeaderName, HeaderValue)> {
    let name = HeaderName::from_bytes(text.as_bytes())
        .ok()
        .with_context(|| {
            format!("{text:?} is not the name of a header; write one such as \"authorization\"")
        })?;
    ensure!(
        !RESERVED_HEADERS.contains(&name),
        "headers has {text:?}, which this server sets itself; remove it"
    );
    let mut value = HeaderValue::from_str(source.read().with_context(|| format!("traces.headers.{text}"))?.secret())
        .ok()
        .with_context(|| {
            format!(
                "traces.headers.{text}: {source} is not the value of a header; remove line ends and control characters"
            )
        })?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Diagnostic, from_text};

    fn planned(traces: &str) -> Result<ExportSettings, String> {
        let text = format!(
            "base_url = \"http://127.0.0.1:1\"\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\n[traces]\n{traces}"
        );
        let configured = from_text(&text).unwrap().traces.unwrap();
        Diagnostics::collect(|errors| plan(&configured, &mut errors.table("traces")))
            .map_err(|errors| Diagnostic::joined(&errors))
    }

    /// J7, J9: a receiver of something else than traces over HTTP is named.
    #[test]
    fn other_receivers_are_named() {
        let warned = |endpoint: &str| {
            let lines = format!("endpoint = \"{endpoint}\"");
            let found = warning(&toml::from_str(&lines).unwrap());
            found.map(|found| found.text).unwrap_or_default()
        };
        for (endpoint, meant) in [
            ("http://127.0.0.1:4317", "\"http://127.0.0.1:4318\""),
            (
                "http://127.0.0.1:4318/v1/metrics",
                "\"http://127.0.0.1:4318/v1/traces\"",
            ),
            (
                "https://a.example/otlp/v1/logs",
                "\"https://a.example/otlp/v1/traces\"",
            ),
        ] {
            let warning = warned(endpoint);
            assert!(warning.ends_with(&format!("write {meant}")), "{warning}");
        }
        for endpoint in [
            "http://127.0.0.1:4318",
            "https://a.example/v1/traces",
            "https://a.example/v1/logs/otlp",
        ] {
            assert_eq!(warned(endpoint), "", "{endpoint}");
        }
    }

    /// J7: the settings of traces have defaults and are checked.
    #[test]
    fn settings_are_checked() {
        let default = planned("endpoint = \"http://127.0.0.1:4318\"").unwrap();
        assert_eq!(default.endpoint.as_str(), "http://127.0.0.1:4318/v1/traces");
        assert_eq!(default.service_name.as_str(), "portcullis");
        assert_eq!(default.sampling.ratio, 0.01);
        assert_eq!(default.sampling.parent, ClientTrace::Restart);

        let other =
            planned("endpoint = \"https://otel.example.com/in\"\nsample = 1\nclient = \"trust\"")
                .unwrap();
        assert_eq!(other.endpoint.path(), "/in");
        assert_eq!(other.sampling.ratio, 1.0);
        assert_eq!(other.sampling.parent, ClientTrace::Trust);

        for (traces, message) in [
            (
                "endpoint = \"otel\"",
                "traces.endpoint = \"otel\" is not a URL",
            ),
            (
                "endpoint = \"http://otel.example.com:4318\"",
                "must be https, or http on loopback",
            ),
            (
                "endpoint = \"http://127.0.0.1:1\"\nsample = 1.5",
                "traces.sample = 1.5 is outside 0 to 1",
            ),
            (
                "endpoint = \"http://127.0.0.1:1\"\nservice_name = \"\"",
                "traces.service_name must have",
            ),
            (
                "endpoint = \"http://127.0.0.1:1\"\nca_file = \"/nowhere\"",
                "traces.ca_file",
            ),
            (
                "endpoint = \"http://127.0.0.1:1\"\nheaders = { Content-Type = { env = \"PATH\" } }",
                "traces.headers has \"Content-Type\", which this server sets itself; remove it",
            ),
            (
                "endpoint = \"http://127.0.0.1:1\"\nheaders = { authorization = { env = \"NO_SUCH_VARIABLE\" } }",
                "traces.headers.authorization: the environment variable NO_SUCH_VARIABLE is not set",
            ),
        ] {
            let error = planned(traces).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    /// J9: every invalid value has its error.
    #[test]
    fn all_errors_are_found() {
        let traces = "endpoint = \"otel\"\nsample = 2\nservice_name = \"\"\nca_file = \"/nowhere\"\n\
                      headers = { \"a b\" = { env = \"NO_SUCH\" }, a = { env = \"NO_SUCH\" }, b = { env = \"NO_SUCH\" } }";
        let error = planned(traces).unwrap_err();
        let names = [
            "endpoint",
            "sample",
            "service_name",
            "ca_file",
            "headers: \"a b\"",
            "headers.a: ",
            "headers.b: ",
        ];
        for name in names {
            assert!(
                error
                    .split(" | ")
                    .any(|error| error.starts_with(&format!("traces.{name}"))),
                "{name}: {error}"
            );
        }
        assert_eq!(error.split(" | ").count(), names.len(), "{error}");
    }

    /// J9: a name that is listed twice, in other letter case, is an error: the receiver would get
    /// both values.
    #[test]
    fn headers_are_listed_once() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "Bearer canary").unwrap();
        let source = format!("{{ file = \"{}\" }}", file.path().display());
        let error = planned(&format!(
            "endpoint = \"http://127.0.0.1:1\"\nheaders = {{ X-Key = {source}, x-key = {source} }}"
        ))
        .unwrap_err();
        assert_eq!(
            error,
            "traces.headers: \"x-key\" is listed twice, in other letter case; remove one"
        );
    }

    /// J2, J6: the value of a header is not printed.
    #[test]
    fn headers_are_secret() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let planned = || {
            let source = format!("{{ file = \"{}\" }}", file.path().display());
            planned(&format!(
                "endpoint = \"http://127.0.0.1:1\"\nheaders = {{ authorization = {source} }}"
            ))
        };
        std::fs::write(file.path(), "Bearer canary\n").unwrap();
        assert!(!format!("{:?}", planned().unwrap()).contains("canary"));
        std::fs::write(file.path(), "Bearer\ncanary\n").unwrap();
        let error = planned().unwrap_err();
        assert!(error.contains("is not the value of a header"), "{error}");
        assert!(!error.contains("canary"), "{error}");
    }
}
