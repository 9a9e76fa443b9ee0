//! The connection to other replicas: validation of `[shared]`.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, bail, ensure};
use portcullis_metadata::SystemClock;
use portcullis_state_store::{RedisJournal, RedisSettings, Retention};
use url::Url;

use super::{SessionPlan, files, state_dir::name_of_server, url_fix::url_fix};
use crate::{
    Diagnostics, SecretSource,
    file::{Session, SharedStore},
};

/// The connection to the other replicas.
#[derive(Clone)]
pub struct ReplicasPlan {
    /// The connection.
    pub redis: RedisSettings,
    /// Whether every request for a resource or the broker gets 503 while Redis cannot be used.
    pub strict: bool,
    /// Whether the durability of Redis is confirmed, so that it is not checked for the broker.
    pub assumes_durable: bool,
}

/// Validates the table. `sessions` are valid settings of sessions: those of the configuration, or
/// the default. `has_broker` is whether replicas share the records of a broker as well.
///
/// Adds an error for each value that is invalid and each file that cannot be read. Returns `None`
/// if there is one.
pub(super) fn plan(
    configured: &SharedStore,
    base_url: &Url,
    sessions: &Session,
    has_broker: bool,
    errors: &mut Diagnostics<'_>,
) -> Option<ReplicasPlan> {
    if configured.assume_durable && !has_broker {
        errors.add(
            "assume_durable",
            "assume_durable has no effect without [broker]: sessions need no durable Redis; remove it",
        );
    }
    let url = errors.take("redis", parse_url(&configured.redis));
    let password = errors.take(
        "password",
        configured
            .password
            .as_ref()
            .map(SecretSource::read)
            .transpose(),
    );
    let is_tls = url.as_ref().is_none_or(|url| url.scheme() == "rediss");
    let certificates = configured
        .ca_file
        .as_deref()
        .map(|file| read_certificates(file, is_tls));
    let certificates = errors.take("ca_file", certificates.transpose());
    let retention = Retention {
        lifetime: sessions.lifetime.0,
        idle_timeout: sessions.idle_timeout.0,
    };
    let mut redis = RedisSettings::new(
        url?,
        format!("portcullis:{}", name_of_server(base_url)),
        retention,
    );
    redis.password = password?;
    redis.root_certificates = certificates?;
    let unusable = "shared.redis or shared.ca_file cannot be used; expected rediss://host:port/database and PEM certificates";
    let journal = RedisJournal::new(&redis, Arc::new(SystemClock::new())).context(unusable);
    errors.take("", journal)?;
    Some(ReplicasPlan {
        redis,
        strict: configured.strict,
        assumes_durable: configured.assume_durable,
    })
}

fn read_certificates(file: &Path, is_tls: bool) -> anyhow::Result<Vec<u8>> {
    ensure!(
        is_tls,
        "shared.ca_file has no effect: shared.redis has no TLS; write rediss:// or remove ca_file"
    );
    files::read("ca_file", file)
}

/// The URL of a server, for messages.
const EXAMPLE: &str = "rediss://redis.example.com:6379";

/// Parses the URL. The messages do not repeat it: it may contain a password.
fn parse_url(text: &str) -> anyhow::Result<Url> {
    let scheme = text.split_once(':').map_or("", |(scheme, _)| scheme);
    ensure!(
        !scheme.contains("sentinel"),
        "shared.redis is an address of Sentinel, which is not supported; name the primary, or a load balancer that leads to it \
         and closes the connections to the former one: rediss://host:port"
    );
    ensure!(
        !scheme.contains("cluster") && !text.contains(','),
        "shared.redis names a cluster or several servers, which is not supported; name one server: rediss://host:port"
    );
    let Ok(url) = Url::parse(text) else {
        bail!(
            "shared.redis is not a URL; {}",
            url_fix(text, "rediss", EXAMPLE)
        );
    };
    ensure!(
        matches!(url.scheme(), "redis" | "rediss"),
        "shared.redis has the scheme {:?}; {}, or with \"redis://\" without TLS",
        url.scheme(),
        url_fix(text, "rediss", EXAMPLE)
    );
    ensure!(
        url.password().is_none(),
        "shared.redis contains a password; name its source: shared.password = {{ env = \"NAME\" }} or {{ file = \"/path\" }}"
    );
    ensure!(
        url.host_str().is_some_and(|host| !host.is_empty()),
        "shared.redis has no host; write a URL such as \"{EXAMPLE}\""
    );
    let database = url.path().trim_start_matches('/');
    ensure!(
        url.query().is_none()
            && url.fragment().is_none()
            && (database.is_empty() || database.parse::<u16>().is_ok()),
        "shared.redis has more than user, host, port and database number; remove the rest"
    );
    Ok(url)
}

/// Returns warnings about settings that work but should be changed.
pub(super) fn warnings(configured: &SharedStore, sessions: &SessionPlan) -> Vec<String> {
    let mut warnings = Vec::new();
    if sessions.key_sources.is_none() {
        warnings.push(
            "shared.redis connects replicas, but session.keys is not set: each replica has keys of its own and does not \
             continue the sessions of others; give all replicas the same session.keys"
                .to_owned(),
        );
    }
    let is_local = |url: &Url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    if Url::parse(&configured.redis).is_ok_and(|url| url.scheme() == "redis" && !is_local(&url)) {
        let readable = match configured.password {
            Some(_) => "the password",
            None => "what replicas share",
        };
        warnings.push(format!(
            "shared.redis has no TLS, so that the network can read {readable}; write rediss://"
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Diagnostic;

    use crate::plan::sessions;

    fn shared(redis: &str) -> SharedStore {
        SharedStore {
            redis: redis.to_owned(),
            password: None,
            ca_file: None,
            strict: false,
            assume_durable: false,
        }
    }

    fn plan(configured: &SharedStore) -> Result<ReplicasPlan, String> {
        let base_url = Url::parse("https://mcp.example.com").unwrap();
        let planned = Diagnostics::collect(|errors| {
            super::plan(
                configured,
                &base_url,
                &Session::default(),
                false,
                &mut errors.table("shared"),
            )
        });
        planned.map_err(|errors| Diagnostic::joined(&errors))
    }

    /// E13: deployments with different URLs have different keys in Redis.
    #[test]
    fn the_prefix_follows_from_the_base_url() {
        let planned = plan(&shared("rediss://user@redis.example.com:6380/3")).unwrap();
        assert_eq!(planned.redis.prefix, "portcullis:604c32496e7129bf");
    }

    /// E13, J6: unusable values are named with the fix, and a password is not repeated.
    #[test]
    fn unusable_values_are_rejected() {
        for (url, named) in [
            (
                "redis.example.com:6379",
                "write it as \"rediss://redis.example.com:6379\"",
            ),
            ("", "is not a URL"),
            ("http://redis.example.com", "has the scheme \"http\""),
            (
                "http://:hunter2@redis.example.com:6380/0",
                "write it as \"rediss://redis.example.com:6380/0\"",
            ),
            (
                "redis",
                "write a URL such as \"rediss://redis.example.com:6379\"",
            ),
            (
                "rediss://:hunter2@redis.example.com",
                "shared.password = { env",
            ),
            ("rediss:///0", "has no host"),
            (
                "redis+sentinel://a:26379,b:26379/primary",
                "address of Sentinel",
            ),
            ("redis+cluster://a:6379", "names a cluster"),
            ("rediss://a:6379,b:6379", "several servers"),
            ("rediss://redis.example.com/zero", "has more than user"),
            (
                "rediss://redis.example.com/0?protocol=resp2",
                "has more than user",
            ),
        ] {
            let error = plan(&shared(url)).err().unwrap();
            assert!(error.contains(named), "{url}: {error}");
            assert!(!error.contains("hunter2"), "{url}: {error}");
        }
        let mut configured = shared("redis://127.0.0.1");
        configured.ca_file = Some("/nowhere".into());
        assert!(plan(&configured).err().unwrap().contains("has no TLS"));

        configured.redis = "rediss://127.0.0.1".to_owned();
        assert!(
            plan(&configured)
                .err()
                .unwrap()
                .contains("shared.ca_file = \"/nowhere\" cannot be read")
        );
        configured.ca_file = None;
        configured.password = Some(SecretSource::File("/nowhere".into()));
        assert!(
            plan(&configured)
                .err()
                .unwrap()
                .contains("shared.password: the file /nowhere")
        );
    }

    /// J9: every invalid value has its error.
    #[test]
    fn all_errors_are_found() {
        let configured = SharedStore {
            redis: "redis.example.com".to_owned(),
            password: Some(SecretSource::File("/nowhere".into())),
            ca_file: Some("/nowhere".into()),
            strict: false,
            assume_durable: false,
        };
        let error = plan(&configured).err().unwrap();
        for key in ["shared.redis", "shared.password", "shared.ca_file"] {
            assert!(
                error.split(" | ").any(|error| error.starts_with(key)),
                "{key}: {error}"
            );
        }
    }

    /// E13: replicas without common keys, and a password that the network can read, cause warnings.
    #[test]
    fn questionable_values_cause_warnings() {
        let sessions =
            Diagnostics::collect(|errors| sessions::plan(&Session::default(), errors)).unwrap();
        let warned = |url: &str| warnings(&shared(url), &sessions);
        assert_eq!(warned("redis://127.0.0.1").len(), 1);
        assert!(warned("rediss://redis.example.com")[0].contains("session.keys"));
        let plain = "redis://redis.example.com";
        assert!(warned(plain)[1].contains("has no TLS, so that the network can read what"));
        let mut configured = shared(plain);
        configured.password = Some(SecretSource::Env("A".to_owned()));
        assert!(warnings(&configured, &sessions)[1].contains("read the password"));
    }
}
