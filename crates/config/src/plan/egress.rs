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
mod tests {
    use std::{
        env,
        process::{Command, Stdio},
    };

    use crate::{from_text, plan::Plan};

    const TEXT: &str = "base_url = 'https://mcp.example.com'\nstate_dir = 'off'\n[[issuer]]\nissuer = 'https://a.example'\n\
                        [[issuer]]\nissuer = 'https://b.example'\nproxy = 'http://proxy.example:3128'\n[[resource]]\n\
                        endpoint = '/mcp'\nupstream = 'demo'\n[traces]\nendpoint = 'https://otel.example/v1/traces'";
    /// Names the beginnings of the expected warnings, one a line, for the process of a case.
    const EXPECTED: &str = "EXPECTED_WARNINGS";

    fn found() -> Vec<String> {
        let warnings = Plan::new(&from_text(TEXT).unwrap()).unwrap().warnings;
        let texts = warnings.into_iter().map(|warning| warning.text);
        texts
            .filter(|text| text.contains("no request can be sent to it"))
            .collect()
    }

    /// G6: variables with which every request fails are found before the first one.
    #[test]
    fn unusable_variables_are_found() {
        // The environment applies to a whole process, so each case runs in its own.
        if let Ok(expected) = env::var(EXPECTED) {
            let (found, expected) = (found(), expected.lines().collect::<Vec<_>>());
            assert_eq!(found.len(), expected.len(), "{found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.starts_with(expected), "{found}");
            }
            return;
        }
        let unusable = ("HTTPS_PROXY", "socks5://proxy.example:1080");
        let without = ("NO_PROXY", "*");
        for (environment, expected) in [
            (vec![], ""),
            (vec![("HTTPS_PROXY", "http://proxy.example:3128")], ""),
            (
                vec![unusable],
                "issuer[0].issuer: no request can be sent to it: HTTPS_PROXY is not an http or https URL\ntraces.endpoint: ",
            ),
            (vec![unusable, without], ""),
            #[cfg(not(target_vendor = "apple"))]
            (
                vec![unusable, without, ("SSL_CERT_FILE", "/nowhere.pem")],
                "issuer[0].issuer: \nissuer[1].issuer: \ntraces.endpoint: ",
            ),
        ] {
            let output = Command::new(env::current_exe().unwrap())
                .args([
                    "--exact",
                    "plan::egress::tests::unusable_variables_are_found",
                ])
                .env_clear()
                .envs(environment.iter().copied())
                .env(EXPECTED, expected)
                .stderr(Stdio::inherit())
                .output()
                .unwrap();
            let report = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{environment:?}: {report}");
            // A name without a test is no failure.
            assert!(report.contains("1 passed"), "{report}");
        }
    }
}
