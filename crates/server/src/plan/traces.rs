//! Traces: validation of `[traces]`.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use http::{HeaderMap, HeaderName, HeaderValue};
use portcullis_discovery::{FetchSettings, HttpFetch, UrlPolicy};
use portcullis_guard::{ClientTrace, TraceSettings};
use url::Url;

use crate::config::{SecretSource, Traces, TracesClient, shown_url};

/// The path that is added to an endpoint without one (OTLP/HTTP).
const DEFAULT_PATH: &str = "/v1/traces";
/// The maximum length of a service name in bytes.
const MAX_SERVICE_NAME: usize = 255;

/// A validated receiver of spans.
#[derive(Clone, Debug)]
pub(crate) struct TracesPlan {
    pub(crate) endpoint: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) fetch: FetchSettings,
    pub(crate) service_name: String,
    pub(crate) settings: TraceSettings,
}

/// Validates `[traces]`. It opens no connection.
///
/// # Errors
/// Fails when a value is invalid, or a header's source cannot be read.
pub(super) fn plan(configured: &Traces) -> anyhow::Result<TracesPlan> {
    let Traces { endpoint: text, sample, service_name, client, headers, ca_file } = configured;
    let shown = shown_url(text);
    let mut endpoint = Url::parse(text)
        .with_context(|| format!("traces.endpoint = {shown:?} is not a URL; write it as \"http://127.0.0.1:4318\""))?;
    UrlPolicy::Operator.check(&endpoint).with_context(|| {
        format!(
            "traces.endpoint = {shown:?} must be https, or http on loopback; run a collector on this host, and write \
             \"http://127.0.0.1:4318\""
        )
    })?;
    if endpoint.path() == "/" {
        endpoint.set_path(DEFAULT_PATH);
    }
    ensure!((0.0..=1.0).contains(sample), "traces.sample = {sample} is outside 0 to 1");
    ensure!(
        (1..=MAX_SERVICE_NAME).contains(&service_name.len()),
        "traces.service_name must have 1 to {MAX_SERVICE_NAME} bytes"
    );
    let headers = read_headers(headers)?;
    let mut fetch = FetchSettings::default();
    fetch.ca_file.clone_from(ca_file);
    HttpFetch::new(fetch.clone()).context("traces.ca_file")?;
    let mut settings = TraceSettings::new(*sample);
    settings.parent = match client {
        TracesClient::Restart => ClientTrace::Restart,
        TracesClient::Join => ClientTrace::Join,
        TracesClient::Trust => ClientTrace::Trust,
    };
    Ok(TracesPlan { endpoint, headers, fetch, service_name: service_name.clone(), settings })
}

/// Reads the values of the headers. They are secret, and marked so.
fn read_headers(configured: &BTreeMap<String, SecretSource>) -> anyhow::Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, source) in configured {
        let key = || format!("traces.headers.{name}");
        let name = HeaderName::from_bytes(name.as_bytes()).with_context(key)?;
        let mut value = HeaderValue::from_str(source.read().with_context(key)?.secret())
            .ok()
            .with_context(|| format!("{}: {source} is not the value of a header", key()))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_text;

    fn planned(traces: &str) -> Result<TracesPlan, String> {
        let text = format!(
            "base_url = \"http://127.0.0.1:1\"\n[[resource]]\nendpoint = \"/mcp\"\nupstream = \"demo\"\n[traces]\n{traces}"
        );
        plan(&from_text(&text).unwrap().traces.unwrap()).map_err(|error| format!("{error:#}"))
    }

    /// J7: the settings of traces have defaults and are checked.
    #[test]
    fn settings_are_checked() {
        let default = planned("endpoint = \"http://127.0.0.1:4318\"").unwrap();
        assert_eq!(
            (default.endpoint.as_str(), default.service_name.as_str()),
            ("http://127.0.0.1:4318/v1/traces", "portcullis")
        );
        assert_eq!((default.settings.ratio, default.settings.parent), (0.01, ClientTrace::Restart));
        let other = planned("endpoint = \"https://otel.example.com/in\"\nsample = 1\nclient = \"trust\"").unwrap();
        assert_eq!(
            (other.endpoint.path(), other.settings.ratio, other.settings.parent),
            ("/in", 1.0, ClientTrace::Trust)
        );
        for (traces, message) in [
            ("endpoint = \"otel\"", "traces.endpoint = \"otel\" is not a URL"),
            ("endpoint = \"http://otel.example.com:4318\"", "must be https, or http on loopback"),
            ("endpoint = \"http://127.0.0.1:1\"\nsample = 1.5", "traces.sample = 1.5 is outside 0 to 1"),
            ("endpoint = \"http://127.0.0.1:1\"\nservice_name = \"\"", "traces.service_name must have"),
            ("endpoint = \"http://127.0.0.1:1\"\nca_file = \"/nowhere\"", "traces.ca_file"),
            (
                "endpoint = \"http://127.0.0.1:1\"\nheaders = { authorization = { env = \"NO_SUCH_VARIABLE\" } }",
                "traces.headers.authorization: the environment variable NO_SUCH_VARIABLE is not set",
            ),
        ] {
            let error = planned(traces).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }

    /// J2, J6: the value of a header is not printed.
    #[test]
    fn headers_are_secret() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let planned = || {
            let source = format!("{{ file = \"{}\" }}", file.path().display());
            planned(&format!("endpoint = \"http://127.0.0.1:1\"\nheaders = {{ authorization = {source} }}"))
        };
        std::fs::write(file.path(), "Bearer canary\n").unwrap();
        assert!(!format!("{:?}", planned().unwrap()).contains("canary"));
        std::fs::write(file.path(), "Bearer\ncanary\n").unwrap();
        let error = planned().unwrap_err();
        assert!(error.contains("is not the value of a header") && !error.contains("canary"), "{error}");
    }
}
