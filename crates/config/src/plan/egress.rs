//! Environment variables for outgoing requests that would make all of them fail.

use portcullis_discovery::{FetchSettings, HttpFetch};
use portcullis_telemetry::ExportSettings;
use portcullis_verifier::KeySource;
use url::Url;

use super::{BrokerPlan, IssuerPlan};
use crate::{Diagnostic, KeyPath};

/// Returns a warning for each issuer, provider and receiver of traces to which no request can be
/// sent, because the environment names an unusable proxy or unusable certificates.
pub(super) fn warnings(
    issuers: &[IssuerPlan],
    broker: Option<&BrokerPlan>,
    traces: Option<&ExportSettings>,
) -> Vec<Diagnostic> {
    let issuers = issuers.iter().enumerate();
    let of_issuers = issuers
        .filter(|(_, plan)| !matches!(plan.settings.keys, KeySource::Fixed(_)))
        .filter_map(|(position, plan)| {
            let key = format!("issuer[{position}].issuer");
            warning(&key, plan.settings.issuer.url(), &plan.fetch)
        });
    let of_providers = broker.into_iter().flat_map(|broker| {
        let providers = broker.settings.providers.iter().zip(&broker.fetch);
        providers
            .enumerate()
            .filter_map(|(position, (provider, fetch))| {
                let key = format!("broker.provider[{position}]");
                warning(&key, provider.settings.issuer.url(), fetch)
            })
    });
    let of_traces =
        traces.and_then(|traces| warning("traces.endpoint", &traces.endpoint, &traces.fetch));
    of_issuers.chain(of_providers).chain(of_traces).collect()
}

fn warning(key: &str, url: &Url, fetch: &FetchSettings) -> Option<Diagnostic> {
    let error = HttpFetch::new(fetch.clone())
        .ok()?
        .check_environment(url)
        .err()?;
    let text = format!("no request can be sent to it: {error}");
    Some(Diagnostic::new(&KeyPath::parse(key), &text))
}

#[cfg(test)]
#[expect(
    clippy::result_large_err,
    reason = "the error type is that of figment's jail"
)]
mod tests {
    use figment::Jail;

    use crate::{from_text, plan::Plan};

    /// G6: variables with which every request fails are found before the first one.
    #[test]
    fn unusable_variables_are_found() {
        let text = "base_url = 'https://mcp.example.com'\nstate_dir = 'off'\n[[issuer]]\nissuer = 'https://a.example'\n\
                    [[issuer]]\nissuer = 'https://b.example'\nproxy = 'http://proxy.example:3128'\n[[resource]]\nendpoint = '/mcp'\n\
                    upstream = 'demo'\n[traces]\nendpoint = 'https://otel.example/v1/traces'";
        Jail::expect_with(|jail| {
            jail.clear_env();
            let found = || {
                let warnings = Plan::new(&from_text(text).unwrap()).unwrap().warnings;
                let texts = warnings.into_iter().map(|warning| warning.text);
                texts
                    .filter(|text| text.contains("no request can be sent to it"))
                    .collect::<Vec<_>>()
            };
            assert_eq!(found(), [""; 0]);
            jail.set_env("HTTPS_PROXY", "http://proxy.example:3128");
            assert_eq!(found(), [""; 0]);
            jail.set_env("HTTPS_PROXY", "socks5://proxy.example:1080");
            let warned = found();
            assert_eq!(warned.len(), 2, "{warned:?}");
            assert!(warned[0].starts_with("issuer[0].issuer: "), "{warned:?}");
            assert!(warned[0].contains("HTTPS_PROXY is not an http or https URL"));
            assert!(warned[1].starts_with("traces.endpoint: "), "{warned:?}");
            jail.set_env("NO_PROXY", "*");
            assert_eq!(found(), [""; 0]);
            #[cfg(not(target_vendor = "apple"))]
            {
                jail.set_env("SSL_CERT_FILE", "/nowhere.pem");
                assert_eq!(found().len(), 3);
            }
            Ok(())
        });
    }
}
