//! Fingerprints of the parts of a configuration, by which a reload recognizes the parts that have not changed.

use std::{
    collections::BTreeMap,
    fmt, fs,
    hash::{BuildHasher as _, Hash, RandomState},
    path::Path,
    sync::LazyLock,
};

use serde::Serialize;

use crate::config::{Change, Config, Issuer, Limits, Resource, Rule, SecretSource};

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

    /// Adds the content of a file. A file that cannot be read counts as one without content, and so does a pipe, which can be
    /// read only once.
    fn and_file(self, file: Option<&Path>) -> Self {
        self.and(file.filter(|file| file.is_file()).and_then(|file| fs::read(file).ok()))
    }

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

/// Fingerprints of the content of the files and secrets that a configuration names, by their keys.
#[derive(Debug, Default)]
pub(crate) struct Contents(BTreeMap<String, Fingerprint>);

impl Contents {
    /// Reads the files and secrets of issuers and resources.
    pub(super) fn of(config: &Config) -> Self {
        let mut contents = BTreeMap::new();
        let mut add_file = |key: String, file: Option<&Path>| {
            if file.is_some() {
                contents.insert(key, Fingerprint::of(&()).and_file(file));
            }
        };
        for issuer in &config.issuer {
            let key = |name| format!("issuer[{:?}].{name}", issuer.issuer);
            add_file(key("jwks_file"), issuer.jwks_file.as_deref());
            add_file(key("ca_file"), issuer.ca_file.as_deref());
        }
        for resource in &config.resource {
            let key = format!("resource[{:?}].upstream_ca_file", resource.endpoint);
            add_file(key, resource.upstream_ca_file.as_deref());
        }
        for issuer in config.issuer.iter().filter(|issuer| issuer.client_secret.is_some()) {
            let secret = Fingerprint::of(&()).and_secret(issuer.client_secret.as_ref());
            contents.insert(format!("issuer[{:?}].client_secret", issuer.issuer), secret);
        }
        Self(contents)
    }

    /// Returns a change for each file and secret whose content differs.
    pub(crate) fn changed_since(&self, former: &Self) -> Vec<Change> {
        let differs = |(key, content): &(&String, &Fingerprint)| former.0.get(*key).is_some_and(|old| old != *content);
        let change = |(key, _): (&String, &Fingerprint)| Change {
            key: key.clone(),
            old: "former content".to_owned(),
            new: "new content".to_owned(),
        };
        self.0.iter().filter(differs).map(change).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::from_text;

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

    /// J10: a part has another fingerprint if its settings or the content of its files differ, and only then.
    #[test]
    fn fingerprints_follow_settings_and_files() {
        let file = std::env::temp_dir().join(format!("portcullis-fingerprint-{}", std::process::id()));
        fs::write(&file, "one").unwrap();
        let config = |from: &str, to: &str| {
            from_text(&CONFIG.replace("KEYS", file.to_str().unwrap()).replace(from, to)).unwrap()
        };
        let parts = |config: &Config| {
            let (resource, base) = (&config.resource[0], config.base_url.as_str());
            let own = self::resource(resource, base, true);
            (
                issuer(&config.issuer[0]),
                own,
                upstream(resource, base, &config.limits),
                rule(&resource.rule[0], &config.limits),
                shared(config),
            )
        };
        let first = config("", "");
        let old = parts(&first);
        assert!(parts(&config("", "")) == old);
        let changed = |new: (Fingerprint, Fingerprint, Fingerprint, Fingerprint, Fingerprint)| {
            [new.0 != old.0, new.1 != old.1, new.2 != old.2, new.3 != old.3, new.4 != old.4]
        };
        assert_eq!(changed(parts(&config("\"/mcp\"", "\"/mcp\"\nrealm = \"r\""))), [false, true, false, false, false]);
        assert_eq!(
            changed(parts(&config("\"demo\"", "{ http = \"http://127.0.0.1:1\" }"))),
            [false, true, true, false, false]
        );
        assert_eq!(changed(parts(&config("[\"x\"]", "[\"y\"]"))), [false, true, false, true, false]);
        assert_eq!(
            changed(parts(&config("[[issuer]]", "[[issuer]]\nleeway = \"1s\""))),
            [true, false, false, false, false]
        );
        assert_eq!(
            changed(parts(&config("[[issuer]]", "[limits]\nmax_body = 9999\n[[issuer]]"))),
            [false, false, false, false, true]
        );
        let contents = Contents::of(&first);
        assert!(Contents::of(&first).changed_since(&contents).is_empty());
        fs::write(&file, "two").unwrap();
        assert_eq!(changed(parts(&first)), [true, false, false, false, false]);
        let found = Contents::of(&first).changed_since(&contents);
        fs::remove_file(&file).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].key, "issuer[\"https://a.example\"].jwks_file");
    }
}
