//! Fingerprints of the parts of a configuration, by which a reload recognizes the parts that have
//! not changed.

use std::{
    fmt,
    hash::{BuildHasher as _, Hash, RandomState},
    path::Path,
    sync::LazyLock,
};

use portcullis_verifier::FurtherAudience;
use serde::Serialize;

use super::files;
use crate::{
    Config, SecretSource,
    file::{Broker, BrokerProvider, Issuer, Limits, Resource, Rule, Upstream},
};

/// A hash of a part of the configuration and of the files and secrets that it names. It is keyed
/// with a key of the process: fingerprints of other processes differ, and nothing can be learned
/// from one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u64);

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Fingerprint {
    /// Returns the fingerprint of what a server derives itself, such as public keys.
    pub fn of_derived(content: &[u8]) -> Self {
        Self(KEY.hash_one(content))
    }

    /// Returns the fingerprint of the content of a file; see [`and_file`](Self::and_file).
    pub(super) fn of_file(file: &Path) -> Self {
        Self::of(&()).and_file(Some(file))
    }

    pub(super) fn of_secret(source: &SecretSource) -> Self {
        Self::of(&()).and_secret(Some(source))
    }

    /// Returns the fingerprint of a part as it is configured.
    fn of<T: Serialize>(part: &T) -> Self {
        // Every part was read from such text, so it can be written. The fingerprint of one that
        // cannot is a new random number, so that it counts as changed.
        let hash = serde_json::to_string(part).map_or_else(
            |_| RandomState::new().hash_one(()),
            |text| KEY.hash_one(text),
        );
        Self(hash)
    }

    fn and(self, more: impl Hash) -> Self {
        Self(KEY.hash_one((self.0, more)))
    }

    /// Adds the content of a file. A file that cannot be read counts as no file, and so does a
    /// pipe, which can be read only once.
    fn and_file(self, file: Option<&Path>) -> Self {
        self.and(
            file.filter(|file| file.is_file())
                .and_then(|file| files::content(file).ok()),
        )
    }

    /// Adds a secret. One that cannot be read counts as none, and so does a pipe.
    fn and_secret(self, source: Option<&SecretSource>) -> Self {
        let source = source.filter(|source| source.file().is_none_or(Path::is_file));
        let secret = source.and_then(|source| source.read().ok());
        self.and(secret.as_ref().map(|secret| secret.secret()))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint")
    }
}

/// Returns the fingerprint of what all resources share: limits, trusted proxies, and the settings
/// of sessions.
pub(super) fn shared(config: &Config) -> Fingerprint {
    Fingerprint::of(&(
        &config.limits,
        &config.trusted_proxies,
        config.trusted_proxy_header,
        &config.session,
    ))
}

/// Returns the fingerprint of an issuer, and of the resources that its audiences name. Take it
/// before the issuer's files are read: a file that changes in between then counts as changed.
pub(super) fn issuer(issuer: &Issuer, audiences: &[FurtherAudience]) -> Fingerprint {
    let named: Vec<&str> = audiences
        .iter()
        .map(|audience| audience.resource.as_str())
        .collect();
    Fingerprint::of(issuer)
        .and(named)
        .and_file(issuer.jwks_file.as_deref())
        .and_file(issuer.ca_file.as_deref())
        .and_secret(issuer.client_secret.as_ref())
}

/// Returns the fingerprint of the broker, of its resources, and of its files and secrets. Take it
/// before these are read.
pub(super) fn broker(config: &Config, broker: &Broker, base_url: &str) -> Fingerprint {
    let of_resource = |resource: &Resource| {
        let rules = resource.rule.iter().map(|rule| &rule.scopes);
        let routes = resource.route.iter().map(|route| &route.scopes);
        Fingerprint::of(&(
            &resource.endpoint,
            resource.auth,
            &resource.issuers,
            &resource.resource_name,
            &resource.scopes_supported,
            &resource.required_scopes,
            &resource.scope_implies,
            rules.chain(routes).collect::<Vec<_>>(),
        ))
    };
    let resources: Vec<_> = config.resource.iter().map(of_resource).collect();
    let fingerprint = Fingerprint::of(broker)
        .and((base_url, resources))
        .and_file(broker.page.logo_file.as_deref())
        .and_secret(broker.keys.as_ref());
    let of_provider = |fingerprint: Fingerprint, provider: &BrokerProvider| {
        fingerprint
            .and_file(provider.ca_file.as_deref())
            .and_secret(Some(&provider.client_secret))
    };
    let fingerprint = broker.provider.iter().fold(fingerprint, of_provider);
    broker
        .introspection
        .iter()
        .fold(fingerprint, |fingerprint, client| {
            fingerprint.and_secret(Some(&client.client_secret))
        })
}

/// Returns the fingerprint of a resource without its issuers. Take it before the resource's files
/// are read.
///
/// `is_only` is whether it is the only resource, which serves its metadata at the root path, too.
pub(super) fn resource(resource: &Resource, base_url: &str, is_only: bool) -> Fingerprint {
    Fingerprint::of(resource)
        .and((base_url, is_only))
        .and_file(resource.upstream_ca_file.as_deref())
}

/// Returns the fingerprint of the upstream of a resource, and of how it is called. Take it before
/// the upstream's files are read.
pub(super) fn upstream(resource: &Resource, base_url: &str, limits: &Limits) -> Fingerprint {
    // Without `..`: a new setting does not compile until it is in one of the two groups.
    let Resource {
        endpoint,
        proto,
        upstream,
        upstream_ca_file,
        upstream_head_timeout,
        identity_headers,
        forward_headers,
        forward_cookies,
        revisions,
        // These change nothing for the upstream.
        auth: _,
        issuers: _,
        default: _,
        realm: _,
        resource_name: _,
        resource_documentation: _,
        scopes_supported: _,
        required_scopes: _,
        scope_implies: _,
        claim: _,
        sessions: _,
        response_grace: _,
        allowed_hosts: _,
        allowed_origins: _,
        rule: _,
        route: _,
    } = resource;
    let connections = limits
        .upstream_connections
        .unwrap_or(limits.max_connections);
    let address = (
        endpoint,
        proto,
        upstream,
        upstream_ca_file,
        upstream_head_timeout,
        connections,
        base_url,
    );
    let headers = (identity_headers, forward_headers, forward_cookies);
    // Only the demo server is created with them.
    let revisions = matches!(upstream, Upstream::Demo).then_some(revisions);
    Fingerprint::of(&(address, headers, revisions)).and_file(upstream_ca_file.as_deref())
}

/// Returns the fingerprint of a rule for messages, and of the number of principals that its limit
/// counts apart.
pub(super) fn rule(rule: &Rule, limits: &Limits) -> Fingerprint {
    Fingerprint::of(&(rule, limits.rate_entries))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{
        super::audiences::{self, Endpoints},
        *,
    };
    use crate::{Diagnostics, from_text};

    const CONFIG: &str = r#"
        base_url = "http://127.0.0.1:3000"
        [[issuer]]
        issuer = "https://a.example"
        jwks_file = "KEYS"
        [[resource]]
        endpoint = "/mcp"
        upstream = "demo"
        [[resource.rule]]
        method = "tools/*"
        scopes = ["x"]
    "#;

    /// The fingerprints of the parts of [`CONFIG`], with the names of the parts.
    fn parts(config: &Config) -> [(&'static str, Fingerprint); 5] {
        let resource = &config.resource[0];
        let base_url = config.base_url.as_str();
        let limits = &config.limits;
        [
            ("shared", shared(config)),
            ("issuer", of_issuer(config)),
            ("resource", super::resource(resource, base_url, true)),
            ("upstream", upstream(resource, base_url, limits)),
            ("rule", rule(&resource.rule[0], limits)),
        ]
    }

    fn of_issuer(config: &Config) -> Fingerprint {
        let base_url = config.base_url.parse().unwrap();
        let endpoints = Endpoints::new(config, &base_url);
        let issuer = &config.issuer[0];
        Diagnostics::collect(|errors| {
            let audiences = audiences::of_issuer(issuer, &endpoints, errors);
            Some(super::issuer(issuer, &audiences))
        })
        .unwrap()
    }

    /// C6: the resources that audiences name are a part of the issuer.
    #[test]
    fn named_resources_are_a_part_of_the_issuer() {
        let named = "[[issuer]]\naudiences = [\"https://old.example.com/mcp\"]";
        let with = |base_url: &str, issuer: &str| {
            let text = CONFIG
                .replace("http://127.0.0.1:3000", base_url)
                .replace("[[issuer]]", issuer)
                .replace("jwks_file = \"KEYS\"\n", "");
            of_issuer(&from_text(&text).unwrap())
        };
        let (old, new) = ("http://127.0.0.1:3000", "http://127.0.0.1:3001");
        assert!(with(old, named) == with(old, named));
        assert!(with(old, named) != with(new, named));
        assert!(with(old, "[[issuer]]") == with(new, "[[issuer]]"));
    }

    /// J10: a part has another fingerprint if its settings or the content of its files differ, and
    /// only then.
    #[test]
    fn fingerprints_follow_settings_and_files() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "one").unwrap();
        let config = |from: &str, to: &str| {
            from_text(
                &CONFIG
                    .replace("KEYS", file.path().to_str().unwrap())
                    .replace(from, to),
            )
            .unwrap()
        };
        let old = parts(&config("", ""));
        let changed = |config: &Config| -> Vec<&str> {
            let pairs = old.into_iter().zip(parts(config));
            pairs
                .filter(|(old, new)| old != new)
                .map(|((name, _), _)| name)
                .collect()
        };
        for (from, to, expected) in [
            ("", "", &[][..]),
            ("\"/mcp\"", "\"/mcp\"\nrealm = \"r\"", &["resource"]),
            (
                "\"demo\"",
                "{ http = \"http://127.0.0.1:1\" }",
                &["resource", "upstream"],
            ),
            (
                "\"demo\"",
                "\"demo\"\nforward_cookies = true",
                &["resource", "upstream"],
            ),
            (
                "\"demo\"",
                "\"demo\"\nrevisions = [\"2025-11-25\"]",
                &["resource", "upstream"],
            ),
            ("[\"x\"]", "[\"y\"]", &["resource", "rule"]),
            ("[[issuer]]", "[[issuer]]\nleeway = \"1s\"", &["issuer"]),
            (
                "[[issuer]]",
                "[limits]\nmax_body = 9999\n[[issuer]]",
                &["shared"],
            ),
            (
                "[[issuer]]",
                "[limits]\nupstream_connections = 9\n[[issuer]]",
                &["shared", "upstream"],
            ),
            (
                "[[issuer]]",
                "[limits]\nrate_entries = 9999\n[[issuer]]",
                &["shared", "rule"],
            ),
        ] {
            assert_eq!(changed(&config(from, to)), expected, "{to}");
        }
        fs::write(file.path(), "two").unwrap();
        assert_eq!(changed(&config("", "")), ["issuer"]);
    }
}
