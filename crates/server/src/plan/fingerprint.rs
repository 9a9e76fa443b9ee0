//! Fingerprints of the parts of a configuration, by which a reload recognizes the parts that have not changed.

use std::{
    fmt, fs,
    hash::{BuildHasher as _, Hash, RandomState},
    path::Path,
    sync::LazyLock,
};

use serde::Serialize;

use crate::config::{Config, Issuer, Limits, Resource, Rule, SecretSource};

/// A hash of a part of the configuration and of the files and secrets that it names. It is keyed with a key of the process:
/// fingerprints of other processes differ, and nothing can be learned from one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fingerprint(u64);

static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

impl Fingerprint {
    /// Returns the fingerprint of a part as it is configured.
    fn of<T: Serialize>(part: &T) -> Self {
        // Every part was read from such text, so it can be written. One that cannot differs from all others.
        let text = serde_json::to_string(part).unwrap_or_else(|error| error.to_string());
        Self(KEY.hash_one(text))
    }

    fn and(self, more: impl Hash) -> Self {
        Self(KEY.hash_one((self.0, more)))
    }

    /// Adds the content of a file. A file that cannot be read counts as one without content.
    fn and_file(self, file: Option<&Path>) -> Self {
        self.and(file.and_then(|file| fs::read(file).ok()))
    }

    fn and_secret(self, source: Option<&SecretSource>) -> Self {
        let secret = source.and_then(|source| source.read().ok());
        self.and(secret.as_ref().map(|secret| secret.secret()))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint")
    }
}

/// What all resources share: limits, trusted proxies, and the settings of sessions.
pub(super) fn shared(config: &Config) -> Fingerprint {
    Fingerprint::of(&(&config.limits, &config.trusted_proxies, config.trusted_proxy_header, &config.session))
}

/// An issuer. Take it before the issuer's files are read: a file that changes in between then counts as changed.
pub(super) fn issuer(issuer: &Issuer) -> Fingerprint {
    Fingerprint::of(issuer)
        .and_file(issuer.jwks_file.as_deref())
        .and_file(issuer.ca_file.as_deref())
        .and_secret(issuer.client_secret.as_ref())
}

/// A resource without its issuers. Take it before the resource's files are read.
pub(super) fn resource(resource: &Resource, base_url: &str, alone: bool) -> Fingerprint {
    Fingerprint::of(resource).and((base_url, alone)).and_file(resource.upstream_ca_file.as_deref())
}

/// The upstream of a resource, and how it is called. Take it before the upstream's files are read.
pub(super) fn upstream(resource: &Resource, base_url: &str, limits: &Limits) -> Fingerprint {
    let Resource { endpoint, proto, upstream, upstream_ca_file, upstream_head_timeout, .. } = resource;
    let connections = limits.upstream_connections.unwrap_or(limits.max_connections);
    let address = (endpoint, proto, upstream, upstream_ca_file, upstream_head_timeout, connections, base_url);
    let headers = (&resource.identity_headers, &resource.forward_headers, resource.forward_cookies);
    Fingerprint::of(&(address, headers)).and_file(upstream_ca_file.as_deref())
}

/// A rule for messages, and the number of principals that its limit counts apart.
pub(super) fn rule(rule: &Rule, limits: &Limits) -> Fingerprint {
    Fingerprint::of(&(rule, limits.rate_entries))
}
