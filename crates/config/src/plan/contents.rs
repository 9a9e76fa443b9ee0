use std::collections::BTreeMap;

use super::Fingerprint;
use crate::{Change, Config};

/// Fingerprints of the content of the files and secrets that a configuration names, by their keys.
#[derive(Debug, Default)]
pub struct Contents(BTreeMap<String, Fingerprint>);

impl Contents {
    /// Reads the files and secrets of issuers, resources, administrators and the broker.
    pub(super) fn of(config: &Config) -> Self {
        let mut contents = BTreeMap::new();
        for issuer in &config.issuer {
            let key = |name| format!("issuer[{:?}].{name}", issuer.issuer);
            let files = [
                ("jwks_file", &issuer.jwks_file),
                ("ca_file", &issuer.ca_file),
            ];
            let of_files = files
                .into_iter()
                .filter_map(|(name, file)| Some((name, Fingerprint::of_file(file.as_deref()?))));
            let secret = issuer
                .client_secret
                .as_ref()
                .map(|source| ("client_secret", Fingerprint::of_secret(source)));
            contents.extend(
                of_files
                    .chain(secret)
                    .map(|(name, content)| (key(name), content)),
            );
        }
        for resource in &config.resource {
            let key = || format!("resource[{:?}].upstream_ca_file", resource.endpoint);
            contents.extend(
                resource
                    .upstream_ca_file
                    .as_deref()
                    .map(|file| (key(), Fingerprint::of_file(file))),
            );
        }
        if let Some(admin) = &config.admin {
            let token = Fingerprint::of_secret(&admin.token);
            contents.insert("admin.token".to_owned(), token);
            let metrics_token = admin.metrics_token.as_ref().map(Fingerprint::of_secret);
            contents.extend(metrics_token.map(|token| ("admin.metrics_token".to_owned(), token)));
        }
        for provider in config.providers() {
            let key = |name| format!("broker.provider[{:?}].{name}", provider.name());
            let secret = Fingerprint::of_secret(&provider.client_secret);
            contents.insert(key("client_secret"), secret);
            contents.extend(
                provider
                    .ca_file
                    .as_deref()
                    .map(|file| (key("ca_file"), Fingerprint::of_file(file))),
            );
        }
        if let Some(broker) = &config.broker {
            let logo = broker.page.logo_file.as_deref().map(Fingerprint::of_file);
            contents.extend(logo.map(|content| ("broker.page.logo_file".to_owned(), content)));
            let keys = broker.keys.as_ref().map(Fingerprint::of_secret);
            contents.extend(keys.map(|content| ("broker.keys".to_owned(), content)));
            contents.extend(broker.introspection.iter().map(|client| {
                (
                    format!("broker.introspection[{:?}].client_secret", client.client_id),
                    Fingerprint::of_secret(&client.client_secret),
                )
            }));
        }
        Self(contents)
    }

    /// Returns a change for each file and secret whose content differs. The content itself is not
    /// in it.
    pub fn changed_since(&self, former: &Self) -> Vec<Change> {
        let differs = |(key, content): &(&String, &Fingerprint)| {
            former.0.get(*key).is_some_and(|old| old != *content)
        };
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
    use std::{fs, path::Path};

    use super::*;
    use crate::from_text;

    /// J10: a file or a secret with another content is a change of its key.
    #[test]
    fn changed_contents_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| folder.path().join(name).display().to_string();
        let text = format!(
            "base_url = 'http://127.0.0.1:3000'\n[[issuer]]\nissuer = 'https://a.example'\njwks_file = '{}'\nca_file = '{}'\n\
             client_secret = {{ file = '{}' }}\n[[resource]]\nendpoint = '/mcp'\nupstream = 'demo'\nupstream_ca_file = '{}'\n\
             [broker]\nkeys = {{ file = '{}' }}\npage.logo_file = '{}'\nprovider = [{{ kind = 'oidc', client_id = 'a', \
             client_secret = {{ file = '{}' }}, ca_file = '{}' }}]\nintrospection = [{{ client_id = 'b', client_secret = \
             {{ file = '{}' }}, resource = '/mcp' }}]\n[admin]\nlisten = '127.0.0.1:1'\ntoken = {{ file = '{}' }}\n\
             metrics_token = {{ file = '{}' }}",
            place("keys"),
            place("ca"),
            place("secret"),
            place("upstream-ca"),
            place("broker-keys"),
            place("logo"),
            place("provider-secret"),
            place("provider-ca"),
            place("introspection-secret"),
            place("admin-token"),
            place("metrics-token")
        );
        let config = from_text(&text).unwrap();
        let files = config.files();
        for (file, key) in [
            ("keys", "issuer[\"https://a.example\"].jwks_file"),
            ("ca", "issuer[\"https://a.example\"].ca_file"),
            ("secret", "issuer[\"https://a.example\"].client_secret"),
            ("upstream-ca", "resource[\"/mcp\"].upstream_ca_file"),
            ("broker-keys", "broker.keys"),
            ("logo", "broker.page.logo_file"),
            ("provider-secret", "broker.provider[\"oidc\"].client_secret"),
            ("provider-ca", "broker.provider[\"oidc\"].ca_file"),
            (
                "introspection-secret",
                "broker.introspection[\"b\"].client_secret",
            ),
            ("admin-token", "admin.token"),
            ("metrics-token", "admin.metrics_token"),
        ] {
            assert!(files.contains(&Path::new(&place(file))), "{file}");
            fs::write(place(file), "one").unwrap();
            let former = Contents::of(&config);
            assert_eq!(Contents::of(&config).changed_since(&former), []);
            fs::write(place(file), "two").unwrap();
            let changes = Contents::of(&config).changed_since(&former);
            assert_eq!(
                changes
                    .iter()
                    .map(|change| change.key.as_str())
                    .collect::<Vec<_>>(),
                [key]
            );
        }
    }
}
