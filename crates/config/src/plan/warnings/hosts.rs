//! URLs whose hosts have letters of other scripts that look like ASCII letters. In an issuer, they
//! are an error.

use crate::{Config, file::Upstream, plan::look_alikes, shown_url};

/// Adds warnings about the URLs that are not issuers.
pub(super) fn warn(config: &Config, warnings: &mut Vec<String>) {
    let warned = urls(config).into_iter().filter_map(|(key, url)| {
        let problem = look_alikes::problem(url)?;
        Some(format!("{key} = {:?} {problem}", shown_url(url)))
    });
    warnings.extend(warned);
}

/// Returns the URLs that are not issuers, each with its key.
fn urls(config: &Config) -> Vec<(String, &str)> {
    let mut urls = vec![("base_url".to_owned(), config.base_url.as_str())];
    for (position, issuer) in config.issuer.iter().enumerate() {
        let configured = [
            ("jwks_uri", &issuer.jwks_uri),
            ("introspection_endpoint", &issuer.introspection_endpoint),
            ("proxy", &issuer.proxy),
        ];
        let key = format!("issuer[{position}]");
        urls.extend(with_keys(&key, configured));
    }
    for (position, provider) in config.providers().enumerate() {
        let configured = [("proxy", &provider.proxy), ("api_url", &provider.api_url)];
        let key = format!("broker.provider[{position}]");
        urls.extend(with_keys(&key, configured));
    }
    for (position, resource) in config.resource.iter().enumerate() {
        if let Upstream::Http(url) = &resource.upstream {
            urls.push((format!("resource[{position}].upstream.http"), url));
        }
    }
    let traces = config.traces.iter().map(|traces| &traces.endpoint);
    urls.extend(traces.map(|url| ("traces.endpoint".to_owned(), url.as_str())));
    let shared = config.shared.iter().map(|shared| &shared.redis);
    urls.extend(shared.map(|url| ("shared.redis".to_owned(), url.as_str())));
    urls
}

fn with_keys<'a, const N: usize>(
    table: &str,
    configured: [(&str, &'a Option<String>); N],
) -> impl Iterator<Item = (String, &'a str)> {
    configured
        .into_iter()
        .filter_map(move |(name, url)| Some((format!("{table}.{name}"), url.as_deref()?)))
}
